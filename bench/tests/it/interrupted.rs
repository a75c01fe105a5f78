//! Clean-up of an interrupted bench: it leaves neither folder, loop device, name space nor program behind.

use holdfast_bench::link::VirtualLink;
use holdfast_bench::program::Program;
use holdfast_bench::work_folder::{LoopDevice, WorkFolder};
use holdfast_bench::{cleanup, tools};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Set for the process that is going to be interrupted.
const VICTIM: &str = "HOLDFAST_BENCH_VICTIM";

/// What the victim made.
#[derive(Debug)]
struct Made {
    folder: String,
    device: String,
    space: String,
    program: Pid,
}

impl Made {
    fn is_there(&self) -> [bool; 4] {
        let attached =
            tools::output("losetup", &["--list", "--noheadings", "--raw", "--output", "BACK-FILE"]);
        [
            Path::new(&self.folder).exists(),
            !self.device.is_empty() && attached.unwrap_or_default().contains(&self.folder),
            !self.space.is_empty() && Path::new("/run/netns").join(&self.space).exists(),
            test_kill_process(self.program).is_ok(),
        ]
    }
}

/// Makes one of each, tells their names, and waits for ever.
fn be_victim() {
    cleanup::handle_signals().unwrap();
    let place = WorkFolder::with_room(1 << 20).unwrap();
    let file = place.file("file");
    std::fs::File::create(&file).unwrap().set_len(1 << 20).unwrap();
    let device = LoopDevice::over(&file).ok();
    let link = VirtualLink::make().ok();
    let program =
        Program::start(Path::new("sleep"), &["1000000"], Stdio::null(), &place.file("said")).unwrap();
    let show = |path: Option<&Path>| path.map_or_else(String::new, |path| path.display().to_string());
    let space = link.as_ref().map_or("", VirtualLink::space);
    let device = show(device.as_ref().map(LoopDevice::path));
    println!("made {}|{device}|{space}|{}", show(Some(place.path())), program.pid());
    std::io::stdout().flush().unwrap();
    loop {
        std::thread::park();
    }
}

fn victim() -> (Child, Made) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "interrupted::what_a_bench_has_made_is_gone_when_it_is_interrupted", "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line =
        lines.find_map(|line| line.unwrap().split_once("made ").map(|(_, made)| made.to_owned())).unwrap();
    let parts: Vec<&str> = line.split('|').collect();
    let [folder, device, space, program] = parts[..] else { panic!("{line}") };
    let program = Pid::from_raw(program.parse().unwrap()).unwrap();
    let made = Made { folder: folder.into(), device: device.into(), space: space.into(), program };
    (child, made)
}

#[test]
fn what_a_bench_has_made_is_gone_when_it_is_interrupted() {
    if std::env::var_os(VICTIM).is_some() {
        be_victim();
    }
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let (mut child, made) = victim();
        let there = made.is_there();
        assert!(there[0] && there[3], "{made:?}");
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
        await_gone(&made, |there| there == [false; 4]);
    }
}

#[test]
fn what_a_killed_bench_has_left_the_next_one_takes_down() {
    let (mut child, made) = victim();
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    let there = made.is_there();
    assert!(there[0], "{made:?}");
    cleanup::sweep();
    await_gone(&made, |there| there[..3] == [false; 3]);
    // A program that runs is not known any more; ours is ended here.
    kill_process(made.program, Signal::KILL).unwrap();
}

/// The kernel lets go of a loop device, and of a process, a moment later.
fn await_gone(made: &Made, gone: impl Fn([bool; 4]) -> bool) {
    for _ in 0..100_000 {
        if gone(made.is_there()) {
            return;
        }
    }
    panic!("still there: {:?} of {made:?}", made.is_there());
}
