//! Parser of the command line: a table of the options, and one function a value that checks it.

use super::{Invocation, MAX_SOURCES, PATIENCE, PATIENCE_LIMITS, Settings, SourceSettings, WrongUse};
use holdfast_attributes::{From, Schema};
use holdfast_base::{ByteSize, FLUSH_LIMITS, MAX_NAME, Rate, typed};
use holdfast_ingest::packet::af_packet::MAX_RINGS;
use holdfast_ingest::{AREA_LIMITS, Overload};
use holdfast_ingest::{SourceOptions, SourceSpec, StreamKind};
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Options: name, and what value it wants (none: a switch).
const OPTIONS: [(&str, Option<&str>); 29] = [
    ("--size", Some("bytes of a new ring file, such as 10GiB")),
    ("--slot", Some("bytes of its slots, such as 64MiB")),
    ("--source", Some("stdin, file:PATH, tcp:ADDR, shm:PATH, udp:ADDR, iface:NAME or replay:FILE")),
    ("--name", Some("a name for the stream")),
    ("--frame", Some("fixed:N, blocks:N, lines, len32, len32be, attr32 or syslog")),
    ("--preamble", Some("a file, or how many bytes at the head of the input, such as 4096")),
    ("--filter", Some("a filter in the syntax of tcpdump, such as 'tcp port 80'")),
    ("--promisc", None),
    ("--snaplen", Some("most bytes of a packet, such as 128")),
    ("--rings", Some("how many packet rings share the interface, such as 2")),
    ("--area", Some("bytes of memory to share, a power of two such as 64MiB")),
    ("--speed", Some("a factor such as 1 or 10, or max")),
    ("--loop", None),
    ("--counter", Some("vdif, spead, rtp, mcap, or the place of a number such as at:2:u16be")),
    ("--on-overload", Some("block or drop-newest")),
    ("--rate", Some("bytes of payload a second, such as 60MiB/s")),
    ("--elements", Some("elements a second, such as 20000")),
    ("--burst", Some("bytes that may come at once beyond the rate, such as 64MiB")),
    (
        "--attr",
        Some(
            "NAME:TYPE=FROM, such as temp:float=json:temp, or auto, packets, vdif, spead, dada, sigproc, mcap or none",
        ),
    ),
    ("--flush", Some("a time such as 1s or 200ms")),
    ("--memory", Some("a size such as 512MiB")),
    ("--birds-eye", Some("a size such as 256MiB, or 0")),
    ("--patience", Some("a time such as 10s or 1m")),
    ("--cpu", Some("a list of cores such as 2,3 or 0-3")),
    ("--realtime", None),
    ("--json", None),
    ("--quiet", None),
    ("--help", None),
    ("--version", None),
];

/// The value of --attr that infers attributes.
const AUTO: &str = "auto";

/// Reads a command line, without the program's name.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Invocation, WrongUse> {
    let text =
        |word: OsString| word.into_string().map_err(|word| WrongUse::NotText(word.display().to_string()));
    Parser::default().run(words.into_iter().map(text).collect::<Result<_, _>>()?)
}

#[derive(Default)]
struct Parser {
    ring: Option<String>,
    size: Option<ByteSize>,
    slot: Option<ByteSize>,
    flush: Option<Duration>,
    memory: Option<ByteSize>,
    birds_eye: Option<ByteSize>,
    patience: Option<Duration>,
    cpus: Option<Vec<usize>>,
    switches: Vec<&'static str>,
    sources: Vec<Unfinished>,
}

/// A source whose options are being read.
struct Unfinished {
    spec: SourceSpec,
    name: Option<String>,
    options: SourceOptions,
    attributes: Vec<String>,
    rate: Option<Rate>,
    elements: Option<u64>,
    burst: Option<ByteSize>,
}

impl Parser {
    fn run(mut self, words: Vec<String>) -> Result<Invocation, WrongUse> {
        let mut words = words.into_iter();
        let mut only_ring = false;
        while let Some(word) = words.next() {
            if only_ring || !word.starts_with('-') || word == "-" {
                self.take_ring(word)?;
                continue;
            }
            if word == "--" {
                only_ring = true;
                continue;
            }
            let (name, joined) = match word.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (word, None),
            };
            let name = match name.as_str() {
                "-h" => "--help".to_owned(),
                "-V" => "--version".to_owned(),
                _ => name,
            };
            let Some((option, wants)) = OPTIONS.iter().find(|(option, _)| *option == name) else {
                return Err(match name.as_str() {
                    "--metrics" => WrongUse::Metrics,
                    "--schema" => WrongUse::Schema,
                    _ => WrongUse::Unknown(name),
                });
            };
            match (*option, wants) {
                (_, None) if joined.is_some() => return Err(WrongUse::Switch(option)),
                ("--help", _) => return Ok(Invocation::Help),
                ("--version", _) => return Ok(Invocation::Version),
                (_, None) => self.switch(option)?,
                (_, Some(wanted)) => {
                    let Some(value) = joined.or_else(|| words.next()) else {
                        return Err(WrongUse::Missing { option, wanted });
                    };
                    self.value(option, value)?;
                }
            }
        }
        self.finish()
    }

    fn take_ring(&mut self, word: String) -> Result<(), WrongUse> {
        if self.ring.is_some() {
            return Err(WrongUse::TwoRings(word));
        }
        self.ring = Some(word);
        Ok(())
    }

    fn switch(&mut self, option: &'static str) -> Result<(), WrongUse> {
        match option {
            "--promisc" => raise(option, &mut self.source(option)?.options.promiscuous),
            "--loop" => raise(option, &mut self.source(option)?.options.repeat),
            _ if self.switches.contains(&option) => Err(WrongUse::Twice { option, of_source: false }),
            _ => {
                self.switches.push(option);
                Ok(())
            }
        }
    }

    fn source(&mut self, option: &'static str) -> Result<&mut Unfinished, WrongUse> {
        self.sources.last_mut().ok_or(WrongUse::BeforeSource(option))
    }

    fn value(&mut self, option: &'static str, value: String) -> Result<(), WrongUse> {
        match option {
            "--size" => once(option, false, &mut self.size, read(option, &value)?),
            "--slot" => once(option, false, &mut self.slot, read(option, &value)?),
            "--memory" => once(option, false, &mut self.memory, read(option, &value)?),
            "--birds-eye" => once(option, false, &mut self.birds_eye, read(option, &value)?),
            "--flush" => once(option, false, &mut self.flush, span(option, &value, FLUSH_LIMITS)?),
            "--patience" => once(option, false, &mut self.patience, span(option, &value, PATIENCE_LIMITS)?),
            "--cpu" => once(option, false, &mut self.cpus, cpus(option, &value)?),
            "--source" => {
                let (spec, options) = (read(option, &value)?, SourceOptions::default());
                let (name, rate, elements, burst) = (None, None, None, None);
                let attributes = Vec::new();
                self.sources.push(Unfinished { spec, name, options, attributes, rate, elements, burst });
                Ok(())
            }
            "--name" => once(option, true, &mut self.source(option)?.name, name(option, value)?),
            "--attr" => {
                self.source(option)?.attributes.push(value);
                Ok(())
            }
            "--rate" => once(option, true, &mut self.source(option)?.rate, rate(option, &value)?),
            "--elements" => once(option, true, &mut self.source(option)?.elements, elements(option, &value)?),
            "--burst" => once(option, true, &mut self.source(option)?.burst, read(option, &value)?),
            _ => {
                let options = &mut self.source(option)?.options;
                match option {
                    "--frame" => once(option, true, &mut options.framing, read(option, &value)?),
                    "--preamble" => once(option, true, &mut options.preamble, read(option, &value)?),
                    "--filter" => once(option, true, &mut options.filter, value),
                    "--snaplen" => once(option, true, &mut options.snaplen, snaplen(option, &value)?),
                    "--rings" => once(option, true, &mut options.rings, rings(option, &value)?),
                    "--area" => once(option, true, &mut options.area, area(option, &value)?),
                    "--counter" => once(option, true, &mut options.counter, read(option, &value)?),
                    "--speed" => once(option, true, &mut options.speed, read(option, &value)?),
                    _ => once(option, true, &mut options.overload, overload(option, &value)?),
                }
            }
        }
    }

    fn finish(self) -> Result<Invocation, WrongUse> {
        let ring = self.ring.filter(|ring| !ring.is_empty()).ok_or(WrongUse::NoRing)?;
        match self.sources.len() {
            0 => return Err(WrongUse::NoSource),
            many if many > MAX_SOURCES => return Err(WrongUse::TooManySources(many)),
            _ => {}
        }
        let mut sources: Vec<SourceSettings> = Vec::with_capacity(self.sources.len());
        for source in self.sources {
            let source = source.finish()?;
            if sources.iter().any(|other| other.name == source.name) {
                return Err(WrongUse::SameName(source.name));
            }
            if source.spec == SourceSpec::Stdin && sources.iter().any(|other| other.spec == source.spec) {
                return Err(WrongUse::TwiceStdin);
            }
            sources.push(source);
        }
        let said = |switch| self.switches.contains(&switch);
        Ok(Invocation::Record(Box::new(Settings {
            ring: PathBuf::from(ring),
            size: self.size,
            slot: self.slot,
            sources,
            flush: self.flush.unwrap_or(Duration::from_secs(1)),
            memory: self.memory,
            birds_eye: self.birds_eye,
            patience: self.patience.unwrap_or(PATIENCE),
            cpus: self.cpus.unwrap_or_default(),
            realtime: said("--realtime"),
            json: said("--json"),
            quiet: said("--quiet"),
        })))
    }
}

impl Unfinished {
    fn finish(self) -> Result<SourceSettings, WrongUse> {
        let Self { spec, name, options, mut attributes, rate, elements, burst } = self;
        if rate.is_none() {
            let said = [("--elements", elements.is_some()), ("--burst", burst.is_some())];
            if let Some((option, _)) = said.iter().find(|(_, said)| *said) {
                return Err(WrongUse::WithoutRate { option, source_spec: spec.to_string() });
            }
        }
        spec.check(&options).map_err(|error| WrongUse::NotFor(error.to_string()))?;
        let name = name.ok_or_else(|| WrongUse::Nameless(spec.to_string()))?;
        let is_said = !attributes.is_empty();
        let auto = attributes.iter().any(|attribute| attribute == AUTO);
        attributes.retain(|attribute| attribute != AUTO);
        if auto && attributes.iter().any(|attribute| attribute == "none") {
            return Err(WrongUse::NoneAndAuto);
        }
        if auto && matches!(spec, SourceSpec::Iface(_) | SourceSpec::Replay(_)) {
            return Err(WrongUse::AutoOfPackets(spec.to_string()));
        }
        let schema = is_said.then(|| Schema::typed(&attributes)).transpose()?;
        let first = |is: fn(&From) -> bool| schema.iter().flat_map(Schema::attributes).find(|a| is(a.from()));
        if let Some(attribute) = first(From::is_of_no_packet)
            && matches!(spec, SourceSpec::Iface(_))
        {
            let (attribute, source_spec) = (attribute.to_string(), spec.to_string());
            return Err(WrongUse::OnlyPackets { attribute, source_spec });
        }
        if let Some(attribute) = first(|from| matches!(from, From::Packet(..)))
            && spec.kind() != StreamKind::Packets
        {
            let (attribute, source_spec) = (attribute.to_string(), spec.to_string());
            return Err(WrongUse::NoPackets { attribute, source_spec });
        }
        if let Some(attribute) = first(|from| *from == From::Given)
            && !matches!(spec, SourceSpec::Replay(_))
            && !options.framing.unwrap_or_else(|| spec.default_framing()).has_header()
        {
            let (attribute, source_spec) = (attribute.to_string(), spec.to_string());
            return Err(WrongUse::NotGiven { attribute, source_spec });
        }
        Ok(SourceSettings { spec, name, options, schema, auto, rate, elements, burst })
    }
}

fn raise(option: &'static str, place: &mut bool) -> Result<(), WrongUse> {
    if std::mem::replace(place, true) {
        return Err(WrongUse::Twice { option, of_source: true });
    }
    Ok(())
}

fn once<T>(option: &'static str, of_source: bool, place: &mut Option<T>, value: T) -> Result<(), WrongUse> {
    if place.replace(value).is_some() {
        return Err(WrongUse::Twice { option, of_source });
    }
    Ok(())
}

fn wrong(option: &'static str, value: &str, why: impl Into<String>) -> WrongUse {
    WrongUse::Value { option, value: value.chars().take(80).collect(), why: why.into() }
}

fn read<T: FromStr<Err = impl ToString>>(option: &'static str, value: &str) -> Result<T, WrongUse> {
    value.parse().map_err(|cause: T::Err| wrong(option, value, cause.to_string()))
}

fn name(option: &'static str, value: String) -> Result<String, WrongUse> {
    if value.is_empty() || value.len() > MAX_NAME || value.chars().any(char::is_control) {
        return Err(wrong(
            option,
            &value,
            format!("a name has 1 to {MAX_NAME} bytes and no control characters"),
        ));
    }
    Ok(value)
}

fn rate(option: &'static str, value: &str) -> Result<Rate, WrongUse> {
    let rate: Rate = read(option, value)?;
    if rate.0 == 0 {
        return Err(wrong(option, value, "use a rate above 0, such as 60MiB/s"));
    }
    Ok(rate)
}

fn elements(option: &'static str, value: &str) -> Result<u64, WrongUse> {
    let number = value.strip_suffix("/s").unwrap_or(value);
    let number = number.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| wrong(option, value, "give a number of elements a second, such as 20000"))
}

fn snaplen(option: &'static str, value: &str) -> Result<u32, WrongUse> {
    let bytes = value.parse::<u32>().ok().filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| wrong(option, value, "give a number of bytes from 1 on, such as 128"))
}

fn rings(option: &'static str, value: &str) -> Result<usize, WrongUse> {
    let rings = value.parse::<usize>().ok().filter(|rings| (1..=MAX_RINGS).contains(rings));
    rings.ok_or_else(|| wrong(option, value, format!("give a number from 1 to {MAX_RINGS}, such as 2")))
}

fn area(option: &'static str, value: &str) -> Result<ByteSize, WrongUse> {
    let (least, most) = AREA_LIMITS;
    let bytes: ByteSize = read(option, value)?;
    if (least..=most).contains(&bytes) && bytes.0.is_power_of_two() {
        return Ok(bytes);
    }
    Err(wrong(option, value, format!("give a power of two from {} to {}", typed(least), typed(most))))
}

fn overload(option: &'static str, value: &str) -> Result<Overload, WrongUse> {
    match value {
        "block" => Ok(Overload::Block),
        "drop-newest" => Ok(Overload::DropNewest),
        _ => Err(wrong(option, value, "give block or drop-newest")),
    }
}

fn span(option: &'static str, value: &str, limits: (Duration, Duration)) -> Result<Duration, WrongUse> {
    let end = value.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(value.len());
    let (number, unit) = value.split_at(end);
    let factor = match unit.trim() {
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => f64::NAN,
    };
    let (least, most) = limits;
    let span =
        number.parse::<f64>().ok().and_then(|number| Duration::try_from_secs_f64(number * factor).ok());
    span.filter(|span| (least..=most).contains(span)).ok_or_else(|| {
        let least = least.as_millis();
        wrong(option, value, format!("give a time from {least}ms to 1h, such as 1s or 200ms"))
    })
}

fn cpus(option: &'static str, value: &str) -> Result<Vec<usize>, WrongUse> {
    let bad =
        || wrong(option, value, "give cores by number, such as 2,3 or 0-3 (capture, disk, then sources)");
    let mut all = Vec::new();
    for part in value.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.trim().parse().map_err(|_| bad())?;
        let last: usize = last.trim().parse().map_err(|_| bad())?;
        // The kernel's own limit of cores.
        if first > last || last >= 8192 {
            return Err(bad());
        }
        all.extend(first..=last);
    }
    if all.iter().enumerate().any(|(at, core)| all[..at].contains(core)) {
        return Err(wrong(option, value, "a core is named twice"));
    }
    Ok(all)
}
