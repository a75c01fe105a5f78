use holdfast_format::*;
use holdfast_sim::*;
use std::time::Duration;
fn dump(world: &mut World, image: &holdfast_media::Image) {
    let sb = world.superblock().clone();
    for e in 0..2 {
        let at = sb.geometry.extent_offset(e);
        let bytes = image.range(at, sb.geometry.extent_bytes() as usize);
        let mut p = 0;
        println!("extent {e}");
        while p < bytes.len() {
            match read_commit(&bytes[p..], &sb.key, sb.ring) {
                Ok((head, records, len)) => {
                    println!(
                        " @{p} gen {} no {} epoch {} b{} p{} e{}",
                        head.generation, head.number, head.epoch, head.begins, head.part, head.ends
                    );
                    for r in records.flatten() {
                        match r {
                            Record::OpenPayload { sequence, offset, bytes } => {
                                println!("    payload {sequence} {offset}+{}", bytes.len())
                            }
                            Record::OpenRows { sequence, first_row, .. } => {
                                println!("    rows {sequence} {first_row}")
                            }
                            Record::OpenSlot(o) => println!("    open {}", o.sequence),
                            Record::Preamble { stream, version, bytes, last, .. } => {
                                println!("    preamble {stream} {version} {} last {last}", bytes.len())
                            }
                            Record::Table { first, entries } => println!(
                                "    table {first} {:?}",
                                entries.iter().map(|e| (e.sequence.0, e.age.0, e.state)).collect::<Vec<_>>()
                            ),
                            r => println!("    {r:?}"),
                        }
                    }
                    p += len;
                }
                Err(_) => {
                    break;
                }
            }
        }
    }
    for no in 0..sb.geometry.slots {
        let b = image.range(sb.geometry.slot_offset(holdfast_base::SlotNo(no)), 65536);
        match PartHeader::decode(&b, &sb.key, sb.ring) {
            Ok(h) => println!(
                "slot {no}: seq {} slot {} whole {}",
                h.sequence,
                h.slot,
                check_image(&b, &sb.key, sb.ring).is_ok()
            ),
            Err(e) => println!("slot {no}: {e}"),
        }
    }
}
fn main() {
    let seed: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let diet = match std::env::args().nth(2).unwrap().as_str() {
        "calm" => Diet::Calm,
        "crashes" => Diet::Crashes,
        _ => Diet::Faults,
    };
    let mut world = World::new(Setup::draw(seed)).unwrap();
    let _ = Duration::ZERO;
    let _ = diet;
    let text = std::fs::read_to_string("/tmp/ops.txt").unwrap();
    let steps: Vec<Op> = parse(&text);
    let last = steps.len() - 1;
    for (i, s) in steps.iter().enumerate() {
        if i == last {
            let im = world.disk().unwrap().seen();
            println!("== before {s:?}");
            dump(&mut world, &im);
        }
        let r = world.run(s);
        println!("{i} {s:?} at {} -> {r:?}", world.now().0);
        if r.is_err() {
            if let Ok(d) = world.disk() {
                let im = d.seen();
                dump(&mut world, &im);
            }
            for (s, m) in &world.model.slots {
                println!("model {s}: {:?} {} rows floor {}", m.stage, m.rows.len(), m.floor);
            }
            break;
        }
    }
}
fn dur(t: &str) -> Duration {
    let t = t.trim();
    if let Some(x) = t.strip_suffix("ns") {
        Duration::from_nanos(x.parse().unwrap())
    } else if let Some(x) = t.strip_suffix("µs") {
        Duration::from_nanos((x.parse::<f64>().unwrap() * 1e3) as u64)
    } else if let Some(x) = t.strip_suffix("ms") {
        Duration::from_nanos((x.parse::<f64>().unwrap() * 1e6) as u64)
    } else {
        Duration::from_nanos((x_s(t) * 1e9).round() as u64)
    }
}
fn x_s(t: &str) -> f64 {
    t.strip_suffix("s").unwrap().parse().unwrap()
}
fn field<'a>(l: &'a str, n: &str) -> &'a str {
    let a = l.find(&format!("{n}: ")).unwrap() + n.len() + 2;
    let r = &l[a..];
    let mut d = 0;
    let mut e = r.len();
    for (i, c) in r.char_indices() {
        match c {
            '(' => d += 1,
            ')' => d -= 1,
            ',' | '}' if d == 0 => {
                e = i;
                break;
            }
            _ => {}
        }
    }
    r[..e].trim()
}
fn opt(t: &str) -> Option<&str> {
    if t == "None" { None } else { Some(t.strip_prefix("Some(").unwrap().strip_suffix(")").unwrap()) }
}
fn parse(text: &str) -> Vec<Op> {
    text.lines()
        .map(|l| l.trim().trim_end_matches(','))
        .filter(|l| !l.is_empty())
        .map(|l| {
            let arg = || {
                let a = l.find('(').unwrap();
                l[a + 1..l.rfind(')').unwrap()].to_owned()
            };
            if l.starts_with("Write {") {
                Op::Write {
                    stream: field(l, "stream").parse().unwrap(),
                    count: field(l, "count").parse().unwrap(),
                    bytes: field(l, "bytes").parse().unwrap(),
                    every: dur(field(l, "every")),
                    event: field(l, "event") == "true",
                }
            } else if l.starts_with("Pass") {
                Op::Pass(dur(&arg()))
            } else if l.starts_with("Seal") {
                Op::Seal
            } else if l.starts_with("HoldOrd") {
                Op::HoldOrdinals {
                    stream: field(l, "stream").parse().unwrap(),
                    back: field(l, "back").parse().unwrap(),
                    count: field(l, "count").parse().unwrap(),
                }
            } else if l.starts_with("Hold") {
                Op::Hold {
                    stream: opt(field(l, "stream")).map(|s| s.parse().unwrap()),
                    back: dur(field(l, "back")),
                    span: dur(field(l, "span")),
                    by_event: field(l, "by_event") == "true",
                    lasts: opt(field(l, "lasts")).map(dur),
                    wait: field(l, "wait") == "true",
                }
            } else if l.starts_with("Release") {
                Op::Release(arg().parse().unwrap())
            } else if l.starts_with("Read") {
                Op::Read(arg().parse().unwrap())
            } else if l.starts_with("Restart") {
                Op::Restart
            } else if l.starts_with("CrashTwice") {
                Op::CrashTwice {
                    after: field(l, "after").parse().unwrap(),
                    draw: field(l, "draw").parse().unwrap(),
                }
            } else if l.starts_with("Crash") {
                Op::Crash {
                    after: field(l, "after").parse().unwrap(),
                    draw: field(l, "draw").parse().unwrap(),
                }
            } else if l.starts_with("Grow") {
                Op::Grow(arg().parse().unwrap())
            } else if l.starts_with("ClockStep") {
                Op::ClockStep(arg().parse().unwrap())
            } else if l.starts_with("WriteErrors") {
                Op::WriteErrors { one_in: field(l, "one_in").parse().unwrap(), lasts: dur(field(l, "lasts")) }
            } else if l.starts_with("Stall") {
                Op::Stall(dur(&arg()))
            } else if l.starts_with("Death") {
                Op::Death(dur(&arg()))
            } else {
                panic!("{l}")
            }
        })
        .collect()
}
