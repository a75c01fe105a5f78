//! Tests of the libraries without a command: the example program records, holds, queries and exports.

#[path = "../../examples/flight_recorder.rs"]
mod flight_recorder;

use flight_recorder::flight_recorder;
use holdfast_client::session;

#[test]
fn the_example_records_holds_queries_and_exports() {
    let folder = tempfile::tempdir().unwrap();
    let line = |at: u32| {
        let level = if at.is_multiple_of(10) { "error" } else { "info" };
        format!("{{\"level\": \"{level}\", \"code\": {}}}\n", at % 3)
    };
    let input = folder.path().join("events.jsonl");
    std::fs::write(&input, (0..90).map(line).collect::<String>()).unwrap();
    flight_recorder(input.to_str().unwrap(), folder.path()).unwrap();
    let counts = std::fs::read_to_string(folder.path().join("counts.csv")).unwrap();
    assert_eq!(counts, "code,n\n0,3\n1,3\n2,3\n");
    let exported = std::fs::read_to_string(folder.path().join("held.jsonl")).unwrap();
    assert_eq!(exported.lines().count(), 90);
    let holds = session::open(&folder.path().join("lab.hf")).unwrap().holds().unwrap();
    let [hold] = &holds[..] else { panic!("one hold was given: {holds:?}") };
    assert_eq!(hold.condition_hold.as_ref().unwrap().condition, "level = 'error'");
    // A second run finds the ring and the exports of the first, and replaces nothing.
    let again = flight_recorder(input.to_str().unwrap(), folder.path()).unwrap_err().to_string();
    assert!(again.contains("held.jsonl") || again.contains("exists"), "{again}");
}
