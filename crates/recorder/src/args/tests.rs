//! Tests of wrong command lines (promise 8): every error names the option.

use super::*;
use holdfast_ingest::{Framing, Overload};
use holdfast_ingest::{PreambleFrom, Speed};

fn run(line: &str) -> Result<Invocation, WrongUse> {
    parse(line.split_whitespace().map(Into::into))
}

fn settings(line: &str) -> Settings {
    match run(line) {
        Ok(Invocation::Record(settings)) => *settings,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn a_full_command_line_is_read_and_source_options_belong_to_the_source_before_them() {
    let all = settings(
        "r.hf --size 10GiB --slot=64MiB --source stdin --name a --frame fixed:5032 --preamble 4096 \
         --source iface:eth0 --name b --promisc --snaplen 128 --rings 4 --filter=tcp --on-overload block \
         --source replay:x.pcap --name c --speed 2.5 --loop --flush 200ms --memory 1GiB --birds-eye 0 --patience 1m --cpu 1,4-5 --realtime --json",
    );
    assert_eq!((all.size, all.slot), (Some(ByteSize::gib(10)), Some(ByteSize::mib(64))));
    assert_eq!((all.flush, all.memory), (Duration::from_millis(200), Some(ByteSize::gib(1))));
    assert_eq!(all.birds_eye, Some(ByteSize(0)));
    assert_eq!(all.patience, Duration::from_mins(1));
    assert_eq!(all.cpus, [1, 4, 5]);
    assert!(all.realtime && all.json && !all.quiet);
    let [a, b, c] = &all.sources[..] else { panic!("{:?}", all.sources) };
    assert_eq!((&*a.name, &a.spec, a.options.framing), ("a", &SourceSpec::Stdin, Some(Framing::Fixed(5032))));
    assert_eq!(a.options.preamble, Some(PreambleFrom::Leading(ByteSize(4096))));
    assert_eq!((&*b.name, b.options.snaplen, b.options.promiscuous), ("b", Some(128), true));
    assert_eq!((b.options.rings, a.options.rings), (Some(4), None));
    assert_eq!((b.options.filter.as_deref(), b.options.overload), (Some("tcp"), Some(Overload::Block)));
    assert_eq!((&*c.name, c.options.speed, c.options.repeat), ("c", Some(Speed::Times(2.5)), true));
    assert!(!c.options.promiscuous && a.options.filter.is_none());
    let shared = &settings("r --source shm:/run/x --name a --area 64MiB").sources[0].options;
    assert_eq!((shared.area, shared.framing), (Some(ByteSize::mib(64)), None));
}

#[test]
fn a_counter_is_that_of_the_source_before_it() {
    let all = settings(
        "r --source stdin --name a --counter vdif --source udp::1 --name b --counter=at:2:u16be,flow=at:8:u32be",
    );
    let texts = all.sources.iter().map(|source| source.options.counter.as_ref().unwrap().to_string());
    assert_eq!(texts.collect::<Vec<_>>(), ["vdif", "at:2:u16be,flow=at:8:u32be"]);
}

#[test]
fn attributes_are_those_of_the_source_before_them() {
    let all = settings(
        "r --source stdin --name a --attr t:float=json:t --attr=beam:uint=at:4:u16be --source iface:x --name b --attr none \
         --source iface:y --name c --attr packets:src,vlan --source iface:z --name d",
    );
    let texts =
        all.sources.iter().map(|source| source.schema.as_ref().map(holdfast_attributes::Schema::text));
    let wanted = [
        Some("t:float=json:t\nbeam:uint=at:4:u16be\n"),
        Some(""),
        Some("src:ip=packet:src\nvlan:uint=packet:vlan\n"),
        None,
    ];
    assert_eq!(texts.collect::<Vec<_>>(), wanted.map(|text| text.map(str::to_owned)));
}

#[test]
fn a_source_declares_its_load() {
    let all = settings(
        "r --source stdin --name a --rate 60MiB/s --elements 20000/s --burst 64MiB --source file:x --name b --rate 1MB/s",
    );
    let [a, b] = &all.sources[..] else { panic!("{:?}", all.sources) };
    assert_eq!((a.rate, a.elements), (Some(Rate(60 << 20)), Some(20_000)));
    assert_eq!(a.burst, Some(ByteSize::mib(64)));
    assert_eq!((b.rate, b.elements, b.burst), (Some(Rate(1_000_000)), None, None));
}

#[test]
fn defaults_are_those_of_the_manual() {
    let plain = settings("--source stdin --name s r.hf");
    assert_eq!((plain.flush, plain.memory, plain.size), (Duration::from_secs(1), None, None));
    assert_eq!((plain.patience, plain.birds_eye), (Duration::from_secs(10), None));
    assert_eq!(settings("--source stdin --name s -- --odd").ring, PathBuf::from("--odd"));
}

#[test]
fn wrong_command_lines_are_told_by_the_option() {
    for (line, said) in [
        ("", "no ring is given"),
        ("r", "no source is given"),
        ("r --source stdin", "--source stdin has no name"),
        ("r s --source stdin --name a", "unexpected argument s"),
        ("r --name a --source stdin", "--name is an option of a source"),
        ("r --source stdin --name a --name b", "--name is given twice for one source"),
        ("r --source stdin --name a --source file:x --name a", "two sources have the --name a"),
        ("r --source stdin --name a --source - --name b", "--source stdin is given twice"),
        ("r --source stdin --name a --flush", "--flush needs a value"),
        ("r --source stdin --name a --flush 1ns", "--flush 1ns: give a time"),
        ("r --source stdin --name a --flush 2h", "--flush 2h"),
        ("r --source stdin --name a --patience 0s", "--patience 0s: give a time"),
        ("r --source stdin --name a --memory lots", "--memory lots: `lots` is not a size"),
        ("r --source stdin --name a --cpu 3-1", "--cpu 3-1"),
        ("r --source stdin --name a --cpu 1,1", "a core is named twice"),
        ("r --source stdin --name a --realtime=yes", "--realtime takes no value"),
        ("r --source stdin --name a --json --json", "--json is given twice"),
        ("r --source stdin --name a --frame words", "--frame words"),
        ("r --source stdin --name a --filter tcp", "--filter cannot be used with stdin"),
        ("r --source iface:lo --name a --snaplen 0", "--snaplen 0"),
        ("r --source iface:lo --name a --rings 65", "--rings 65: give a number from 1 to 64"),
        ("r --source iface:lo --name a --rings 0", "--rings 0"),
        ("r --source shm:x --name a --area 5MiB", "--area 5MiB: give a power of two from 4KiB to 1GiB"),
        ("r --source shm:x --name a --area 2KiB", "--area 2KiB"),
        (
            "r --source tcp::9 --name a --area 1MiB",
            "--area cannot be used with tcp:[::]:9: only shared memory",
        ),
        ("r --source replay:x --name a --rings 2", "--rings cannot be used with replay:x"),
        ("r --source iface:lo --name a --frame lines", "--frame cannot be used with iface:lo"),
        ("r --source replay:x --name a --speed fast", "--speed fast"),
        (
            "r --source stdin --name a --on-overload explode",
            "--on-overload explode: give block or drop-newest",
        ),
        ("r --source stdin --name a --counter", "--counter needs a value: vdif, spead, rtp, mcap"),
        (
            "r --source stdin --name a --counter at:2:i16be",
            "--counter at:2:i16be: in `at:2:i16be`, column 4: expected an unsigned",
        ),
        ("r --source stdin --name a --counter rtp --counter vdif", "--counter is given twice for one source"),
        ("r --source replay:x --name a --counter rtp", "--counter cannot be used with replay:x"),
        ("r --source stdin --name a --counter mcap", "--counter mcap cannot be used with stdin"),
        ("r --source iface:lo --name a --counter rtp", "--counter cannot be used with iface:lo"),
        (
            "r --source stdin --name a --attr t:double=json:t",
            "--attr: in `t:double=json:t`, column 3: unknown type `double`",
        ),
        ("r --source stdin --name a --attr none --attr vdif", "--attr: in `none`"),
        (
            "r --source stdin --name a --attr packets:src",
            "--attr src:ip=packet:src: only packets have it, and --source stdin",
        ),
        (
            "r --source stdin --name a --attr gain:float=given",
            "--attr gain:float=given: a producer sends it in the header of a frame, and --source stdin has none",
        ),
        ("r --source iface:lo --name a --attr gain:float=given", "with --frame attr32"),
        (
            "r --source iface:lo --name a --attr vdif:frame,thread",
            "--attr frame:uint=vdif:frame: --source iface:lo delivers packets",
        ),
        (
            "r --source iface:lo --name a --attr t:float=json:t",
            "or give the offset in the packet (at:42:u32be)",
        ),
        ("r --source udp::9 --name a --frame attr32", "--frame cannot be used with udp:"),
        ("r --attr none --source stdin --name a", "--attr is an option of a source"),
        ("r --source stdin --name a --schema x.toml", "run `holdfast record`"),
        ("r --source ftp:x --name a", "--source ftp:x"),
        ("r --source replay:x --name a --loop --loop", "--loop is given twice for one source"),
        ("r --source stdin --name a --rate fast", "--rate fast"),
        ("r --source stdin --name a --rate 0", "--rate 0: use a rate above 0"),
        (
            "r --source stdin --name a --rate 1MB/s --elements many",
            "--elements many: give a number of elements",
        ),
        ("r --source stdin --name a --burst 1MiB", "--burst goes with --rate"),
        ("r --rate 1MB/s --source stdin --name a", "--rate is an option of a source"),
        ("r --colour", "unknown option --colour"),
        ("r -x", "unknown option -x"),
        ("r --metrics=:9", "run `holdfast metrics RING --listen ADDR`"),
        ("r --source stdin --name a --rate 1MB/s --elements 0", "--elements 0: give a number of elements"),
    ] {
        let error = run(line).expect_err(line).to_string();
        assert!(error.contains(said), "{line}: {error}");
    }
    let long = "x".repeat(65);
    assert!(
        run(&format!("r --source stdin --name {long}")).unwrap_err().to_string().contains("1 to 64 bytes")
    );
}

#[test]
fn help_is_given_whatever_else_is_said_and_names_every_option() {
    assert_eq!(run("r --help --colour"), Ok(Invocation::Help));
    assert_eq!(run("-V"), Ok(Invocation::Version));
    for option in [
        "--size",
        "--slot",
        "--source",
        "--name",
        "--frame",
        "--preamble",
        "--filter",
        "--promisc",
        "--snaplen",
        "--rings",
        "--area",
        "--speed",
        "--loop",
        "--attr",
        "--schema",
        "--on-overload",
        "--rate",
        "--elements",
        "--burst",
        "--flush",
        "--memory",
        "--birds-eye",
        "--patience",
        "--cpu",
        "--realtime",
        "--json",
        "--quiet",
    ] {
        assert!(HELP.contains(option), "{option}");
    }
    assert!(HELP.contains("Examples"));
}
