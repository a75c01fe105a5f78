//! Promise 1: memory stays within what was configured, whatever is asked.

use crate::common::{Contents, Place};
use std::io::Write as _;

/// A figure of `/proc/PID/status`, in bytes.
fn memory(pid: u32, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn resident_memory_is_bounded_by_the_plan_the_slots_and_64_mib() {
    for bound in ["16MiB", "48MiB"] {
        let place = Place::new();
        let options = [
            "--size",
            "32MiB",
            "--slot",
            "256KiB",
            "--memory",
            bound,
            "--source",
            "stdin",
            "--name",
            "s",
            "--frame",
            "fixed:1024",
        ];
        let mut recorder = place.start(&options);
        let mut stdin = recorder.stdin().unwrap();
        let block = vec![7u8; 64 << 10];
        for _ in 0..800 {
            stdin.write_all(&block).unwrap();
        }
        recorder.await_packed(51_200);
        assert!(Contents::read(&mut recorder.reader()).damaged.is_empty());
        for _ in 0..50 {
            recorder.connect().status().unwrap();
        }
        let slots = u64::from(recorder.connect().status().unwrap().ring.slots.total);
        let peak = memory(recorder.child.id(), "VmHWM");
        let configured = bound.parse::<holdfast_base::ByteSize>().unwrap().0;
        assert!(peak <= configured + 64 * slots + (64 << 20), "{peak} resident for {bound}");
        drop(stdin);
        let ended = recorder.end();
        assert!(ended.status.success());
        assert!(ended.out.contains("51200 elements"), "{}", ended.out);
    }
}
