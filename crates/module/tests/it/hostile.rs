//! Requests of random bytes are answered or refused, and never bring the program down in disorder.

use crate::fixtures::{ModuleFile, metered};
use crate::isolation::bare;
use holdfast_module_wire::{Answer, Failure, MAX_ANSWER_BYTES, Request};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::io::Read;

/// Requests that are encoded, and payloads of any bytes.
fn frames() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let valid = prop_oneof![
        (".{0,9}", any::<Option<u64>>()).prop_map(|(name, size)| Request::Item { name, size }),
        (0..5_000_000u64, 0..2000u32, any::<u64>(), any::<bool>())
            .prop_map(|(at, length, offset, last)| Request::Block { at, length, offset, last }),
        Just(Request::End),
        Just(Request::Finish),
    ]
    .prop_map(|request| {
        let mut frame = Vec::new();
        request.encode(&mut frame);
        frame
    });
    let payload = proptest::collection::vec(any::<u8>(), 0..40).prop_map(|payload| {
        let length = u32::try_from(payload.len()).unwrap();
        [length.to_le_bytes().as_slice(), &payload].concat()
    });
    let raw = proptest::collection::vec(any::<u8>(), 4..20);
    let frame = prop_oneof![6 => valid, 1 => payload, 1 => raw];
    proptest::collection::vec(frame, 1..8)
}

#[test]
fn any_requests_end_in_order() {
    let module = ModuleFile::with(&[]);
    let mut runner = TestRunner::new(Config { cases: 48, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&frames(), |frames| {
        let (mut child, mut channel) = bare(&module, metered());
        for frame in &frames {
            // The program may have ended the conversation already.
            if channel.send(frame, None).is_err() {
                break;
            }
            let whole =
                frame.len() >= 4 + u32::from_le_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize;
            let too_long = frame[2] > 0 || frame[3] > 0;
            if !whole && !too_long {
                break;
            }
            match channel.receive(MAX_ANSWER_BYTES, None).map(Answer::decode) {
                Ok(Ok(Answer::Results(_))) => {}
                Ok(Ok(Answer::Failed { failure: Failure::Request(_) | Failure::Garbage(_), .. }))
                | Err(_) => {
                    break;
                }
                other => return Err(TestCaseError::fail(format!("{other:?}"))),
            }
        }
        drop(channel);
        let mut messages = String::new();
        child.stderr.take().unwrap().read_to_string(&mut messages).unwrap();
        let status = child.wait().unwrap();
        prop_assert!(status.success() && messages.is_empty(), "{status}: {messages}");
        Ok(())
    });
    outcome.unwrap();
}
