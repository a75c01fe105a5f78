//! Hunting one address in recorded packets: `holdfast query` and, in a session that is open, `holdfast sql` on a ring while its
//! recorder runs, `tshark` and `tcpdump` on the capture file that the ring was recorded from, `stenographer`, which runs, too, on
//! the same packets as they come over a link, and `ReductStore` with the address as a label of each record. Each is timed from the
//! start of the question to its end, and has to give the packets that are there: programs are started for each question, servers
//! run already. Meanwhile Holdfast goes on recording, 20 MiB/s of another stream.
//!
//! Packets are UDP datagrams over Ethernet, of 120 bytes; their senders are uniform among 100,000 even addresses, and an odd one amid them comes three times.

use crate::link::VirtualLink;
use crate::program::{Program, holdfast};
use crate::reductstore::{FIRST, NO_CONTENT, ReductClient, ReductServer};
use crate::report::{Goal, Report};
use crate::rounds::Rounds;
use crate::sql_session::SqlSession;
use crate::stenographer::Stenographer;
use crate::work_folder::WorkFolder;
use crate::{BenchError, Scale, row, tools};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};
use std::time::{Duration, Instant};

const PACKET: usize = 120;
const SENDERS: u64 = 100_000;
/// Amid the others.
const NEEDLE: Ipv4Addr = Ipv4Addr::new(10, 1, 134, 161);
/// How often it sends.
const HITS: u64 = 3;
/// Packets a second that come over the link: all are to arrive.
const LINK: u64 = 150_000;
/// MiB a second that go on being recorded while all are asked, in elements of so many bytes.
const RATE: u64 = 20;
const OTHER: usize = 1400;
/// How long it may take until all are found.
const INDEXED: Duration = Duration::from_mins(2);
/// Bytes of a capture file before its packets, and before each of them.
const CAPTURE_HEAD: usize = 24;
const CAPTURE_HEAD_OF_ONE: usize = 16;
/// Records that `ReductStore` takes in one request.
const TOGETHER: u64 = 80;

fn sender(number: u64, packets: u64) -> Ipv4Addr {
    if (1..=HITS).any(|part| number == packets * part / 4) {
        return NEEDLE;
    }
    let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24;
    Ipv4Addr::from_bits(0x0a00_0000 + (random % SENDERS) as u32 * 2)
}

/// An Ethernet frame.
fn packet(number: u64, packets: u64) -> [u8; PACKET] {
    let mut bytes = [0x5a; PACKET];
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    let total = (PACKET - 14) as u16;
    bytes[14..26].copy_from_slice(&[0x45, 0, (total >> 8) as u8, total as u8, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    bytes[26..30].copy_from_slice(&sender(number, packets).octets());
    bytes[30..34].copy_from_slice(&[10, 200, 0, 1]);
    let udp = total - 20;
    bytes[34..42].copy_from_slice(&[0x30, 0x39, 0x1f, 0x90, (udp >> 8) as u8, udp as u8, 0, 0]);
    bytes[42..50].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn write_capture(path: &Path, packets: u64) -> std::io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    file.write_all(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0])?;
    for number in 0..packets {
        let (seconds, micros) = (1_700_000_000 + number / 1_000_000, number % 1_000_000);
        for field in [seconds as u32, micros as u32, PACKET as u32, PACKET as u32] {
            file.write_all(&field.to_le_bytes())?;
        }
        file.write_all(&packet(number, packets))?;
    }
    file.flush()
}

/// Who finds packets: how many of the needle's.
type FindPackets<'f> = Box<dyn FnMut() -> Result<u64, BenchError> + 'f>;

/// One who was given packets and is asked.
struct PacketFinder<'f> {
    name: &'static str,
    packets: u64,
    /// Seconds until it had them; nothing for who reads the file itself, or takes them as they come.
    took: Option<f64>,
    find: FindPackets<'f>,
    /// Which of Holdfast's it is compared with: a program with a program, who is there already with who is.
    beside: Option<usize>,
}

/// Where Holdfast's are among the contestants.
const PROGRAM: usize = 0;
const SESSION: usize = 1;

/// Measures each contestant that is installed.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let packets: u64 = scale.pick(5_000, 4_000_000);
    let place = WorkFolder::with_room(scale.pick(64 << 20, 4 << 30))?;
    let program = holdfast("holdfast", scale)?;
    let capture = place.file("packets.pcap");
    write_capture(&capture, packets).map_err(BenchError::file(&capture, "write it"))?;
    let mut contestants = vec![ring(&program, &place, &capture, packets, scale)?];
    contestants.push(in_session(&program, &place, packets)?);
    if scale == Scale::Real {
        let files = ["tshark", "tcpdump"].into_iter().map(|name| in_file(name, &capture, packets));
        for peer in files.chain([on_a_link(&place, &capture, packets), labels(&place, packets / 20)]) {
            match peer {
                Ok(peer) => contestants.push(peer),
                Err(why) => println!("{why}"),
            }
        }
    }
    let rounds = Rounds::run(scale.pick(1, 3), contestants.len(), |at| {
        let start = Instant::now();
        let found = (contestants[at].find)()?;
        let took = start.elapsed().as_secs_f64();
        let name = contestants[at].name;
        let wrong = || BenchError::Accounting(format!("{name} finds {found} packets, and there are {HITS}"));
        if found == HITS { Ok(took) } else { Err(wrong()) }
    })?;
    let mut report = Report::new("hunt", scale);
    let mut rows = vec![row![
        "",
        "packets",
        "thousand a second taken",
        "Holdfast's to that",
        "ms until all are found",
        "million a second searched",
        "to Holdfast's",
        "verdict"
    ]];
    let rate = |who: &PacketFinder<'_>| who.took.map(|took| who.packets as f64 / took);
    let ours = rate(&contestants[PROGRAM]);
    for (at, who) in contestants.iter().enumerate() {
        let taken = rate(who).map_or("–".to_owned(), |rate| format!("{:.0}", rate / 1e3));
        let faster = rate(who).zip(ours).filter(|_| who.beside.is_some()).map(|(rate, ours)| ours / rate);
        let faster = faster.map_or("–".to_owned(), |ratio| format!("{ratio:.1}"));
        let took = rounds.of(at);
        let searched = format!("{:.2}", who.packets as f64 / took.median / 1e6);
        let (ratio, verdict) = match who.beside {
            None => (String::new(), String::new()),
            Some(holdfast) => {
                let ratio = rounds.ratio(at, holdfast);
                (ratio.show(2), Goal::AtLeast(1.0).verdict(&ratio))
            }
        };
        rows.push(row![who.name, who.packets, taken, faster, took.by(1e3).show(0), searched, ratio, verdict]);
    }
    report.table(&rows);
    report.say(&format!(
        "Packets of {PACKET} bytes; their senders are uniform among {SENDERS} even addresses, and the one that is looked for, an odd one amid them, sends {HITS}. Holdfast \
         reads past the page cache, in which the others have all of it. While all are asked it records {RATE} MiB/s of another stream. What stenographer and Holdfast take of a link is told by the bench `packets`: here it is \
         {LINK} a second, all of which are to arrive."
    ));
    report.finish()
}

fn ring<'f>(
    program: &Path,
    place: &WorkFolder,
    capture: &Path,
    packets: u64,
    scale: Scale,
) -> Result<PacketFinder<'f>, BenchError> {
    let (program, ring) = (program.display().to_string(), place.file("ring").display().to_string());
    let (size, slot) = scale.pick(("16MiB", "256KiB"), ("1536MiB", "32MiB"));
    tools::output(&program, &["format", &ring, "--size", size, "--slot", slot, "--prefill"])?;
    let source = format!("replay:{}", capture.display());
    let replay = ["--source", &source, "--name", "packets", "--speed", "max", "--attr", "packets"];
    // Goes on when all is replayed.
    let other = ["--source", "stdin", "--name", "other", "--frame", &format!("fixed:{OTHER}")];
    let arguments = [&["record", &ring][..], &replay, &other].concat();
    let start = Instant::now();
    let mut recorder =
        Program::start(Path::new(&program), &arguments, Stdio::piped(), &place.file("recorder"))?;
    let input = recorder.input().ok_or_else(|| BenchError::skipped("no pipe to the recorder"))?;
    recorder.until("all is recorded", |_| {
        let Ok(text) = tools::output(&program, &["streams", &ring, "--json"]) else { return false };
        let streams = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let mut of_packets = streams.filter(|stream| stream["name"] == "packets");
        of_packets.any(|stream| stream["received"] == packets && stream["lost"] == 0)
    })?;
    let took = start.elapsed().as_secs_f64();
    // What comes from now on needs the room of others.
    tools::output(&program, &["hold", &ring, "--stream", "packets", "--reason", "they are looked for"])?;
    std::thread::spawn(move || feed(input, scale.pick(1, RATE)));
    let find = move || {
        recorder.runs()?;
        let text = tools::output(&program, &["query", &ring, &question(), "--json"])?;
        let row = serde_json::from_str(&text);
        let row = row.map_err(|_| BenchError::Accounting(format!("`holdfast query` says {text}")))?;
        Ok(found(&row))
    };
    Ok(PacketFinder {
        name: "Holdfast, `query`",
        packets,
        took: Some(took),
        find: Box::new(find),
        beside: None,
    })
}

/// So many MiB a second of other elements, until nobody takes them.
fn feed(mut input: ChildStdin, rate: u64) {
    let block = vec![0x5a; (rate << 20) as usize / 50 / OTHER * OTHER];
    let (began, mut turn) = (Instant::now(), 0);
    while input.write_all(&block).is_ok() {
        turn += 1;
        std::thread::sleep((Duration::from_millis(20) * turn).saturating_sub(began.elapsed()));
    }
}

/// One row with all packets in it.
fn question() -> String {
    format!("select array_agg(hex(payload)) found from packets where src = '{NEEDLE}'")
}

/// How many packets that row has, each whole.
fn found(row: &serde_json::Value) -> u64 {
    let packets = row["found"].as_array().map_or(&[][..], Vec::as_slice);
    let whole = |packet: &&serde_json::Value| packet.as_str().is_some_and(|hex| hex.len() == 2 * PACKET);
    packets.iter().filter(whole).count() as u64
}

/// The same ring, asked through a program that runs already, as the servers of others do.
fn in_session<'f>(program: &Path, place: &WorkFolder, packets: u64) -> Result<PacketFinder<'f>, BenchError> {
    let mut session = SqlSession::begin(program, &place.file("ring"))?;
    let find = move || Ok(found(&session.row(&question())?));
    Ok(PacketFinder { name: "Holdfast, `sql`", packets, took: None, find: Box::new(find), beside: None })
}

/// Who looks through the capture file.
fn in_file<'f>(name: &'static str, capture: &Path, packets: u64) -> Result<PacketFinder<'f>, BenchError> {
    tools::need(name)?;
    let (file, host): (PathBuf, String) = (capture.to_owned(), NEEDLE.to_string());
    let find = move || {
        let file = file.display().to_string();
        let filter = format!("ip.src == {host}");
        let text = match name {
            "tshark" => tools::output(name, &["-n", "-r", &file, "-Y", &filter])?,
            _ => tools::output(name, &["-n", "-r", &file, "src", "host", &host])?,
        };
        Ok(text.lines().filter(|line| line.contains(&host)).count() as u64)
    };
    Ok(PacketFinder { name, packets, took: None, find: Box::new(find), beside: Some(PROGRAM) })
}

/// `ReductStore`, with fewer of them.
fn labels<'f>(place: &WorkFolder, packets: u64) -> Result<PacketFinder<'f>, BenchError> {
    let (server, mut client) = ReductServer::begin(place, "{}")?;
    let start = Instant::now();
    for first in (0..packets).step_by(TOGETHER as usize) {
        let (mut headers, mut body) = (String::new(), Vec::new());
        for number in first..packets.min(first + TOGETHER) {
            let sender = sender(number, packets);
            let _ = write!(headers, "x-reduct-time-{}: {PACKET},,src={sender}\r\n", FIRST + number);
            body.extend_from_slice(&packet(number, packets));
        }
        let (status, said) = client.answer("POST", "/b/bench/packets/batch", &headers, &body)?;
        if status != 200 {
            return Err(not_taken(status, &said));
        }
    }
    let took = start.elapsed().as_secs_f64();
    let find = move || {
        // It lives as long as it may be asked.
        let server = &server;
        let mut client = ReductClient::connect(server.port)?;
        let question = format!("{{\"query_type\":\"QUERY\",\"when\":{{\"&src\":{{\"$eq\":\"{NEEDLE}\"}}}}}}");
        let (status, said) = client.answer("POST", "/b/bench/packets/q", "", question.as_bytes())?;
        let id = serde_json::from_slice::<serde_json::Value>(&said).ok().and_then(|said| said["id"].as_u64());
        let Some(id) = id.filter(|_| status == 200) else { return Err(not_taken(status, &said)) };
        let mut bytes = 0;
        loop {
            let (status, some) = client.answer("GET", &format!("/b/bench/packets/batch?q={id}"), "", &[])?;
            match status {
                200 => bytes += some.len(),
                NO_CONTENT => return Ok((bytes / PACKET) as u64),
                _ => return Err(not_taken(status, &some)),
            }
        }
    };
    Ok(PacketFinder {
        name: "ReductStore, labels",
        packets,
        took: Some(took),
        find: Box::new(find),
        beside: Some(SESSION),
    })
}

/// Who records the packets as they come over a link, and knows where the address is.
fn on_a_link<'f>(place: &WorkFolder, capture: &Path, packets: u64) -> Result<PacketFinder<'f>, BenchError> {
    tools::need("tcpreplay")?;
    let link = VirtualLink::make()?;
    let mut server = Stenographer::begin(place, link.near())?;
    let (capture, far, rate) = (capture.display().to_string(), link.far().to_owned(), LINK.to_string());
    let replay = ["netns", "exec", link.space(), "tcpreplay", "-q", "-K", "-p", &rate, "-i", &far, &capture];
    let start = Instant::now();
    tools::output("ip", &replay)?;
    // Before it has an index of them they are not found.
    let mut there = 0;
    while there < packets && start.elapsed() < INDEXED {
        std::thread::sleep(Duration::from_millis(100));
        there = server.packets()?;
    }
    if there < packets {
        println!("stenographer has {there} of {packets} packets");
    }
    let find = move || {
        // They live as long as it may be asked.
        let _ = &link;
        let found = server.ask(&format!("host {NEEDLE}"))?;
        Ok((found.len().saturating_sub(CAPTURE_HEAD) / (CAPTURE_HEAD_OF_ONE + PACKET)) as u64)
    };
    Ok(PacketFinder {
        name: "stenographer",
        packets: there,
        // As fast as they came, and no faster.
        took: None,
        find: Box::new(find),
        beside: Some(SESSION),
    })
}

fn not_taken(status: u16, said: &[u8]) -> BenchError {
    BenchError::Accounting(format!("ReductStore answers {status}: {}", String::from_utf8_lossy(said)))
}
