//! Tests of a source that fails or panics (promises 1 and 2): it ends alone, what it delivered stays, the loss is
//! recorded.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::common;

use common::rig::Rig;
use holdfast_ingest::{
    Cause, Cutter, Framing, Marks, Overload, Producer, Source, SourceEnd, SourceError, StopFlag,
};

struct Panics {
    in_element: bool,
}

impl Source for Panics {
    fn run(self: Box<Self>, out: &mut Producer, _stop: &StopFlag) -> Result<SourceEnd, SourceError> {
        for n in 0..10u8 {
            out.element(&[], &[n; 100], Marks::default()).unwrap();
        }
        if self.in_element {
            let mut cutter = Cutter::new(Framing::Fixed(1000));
            out.space(&cutter).unwrap()[..300].fill(9);
            out.feed(300, &mut cutter).unwrap();
            out.flush().unwrap();
        }
        panic!("a mistake on purpose");
    }
}

#[test]
fn a_panic_ends_the_source_with_a_gap_and_nothing_else() {
    for in_element in [false, true] {
        let rig = Rig::run(Box::new(Panics { in_element }), Overload::Block, StopFlag::new().unwrap(), 4);
        let (collector, end) = rig.finish();
        let said = end.unwrap_err().to_string();
        assert_eq!(said, "test: internal error of the source: a mistake on purpose");
        assert_eq!(collector.elements.len(), 10);
        let last = collector.gaps.last().unwrap();
        assert_eq!((last.cause, last.elements, last.bytes), (Cause::SourceFailed as u8, None, None));
        assert_eq!((collector.aborts, collector.aborted_bytes), if in_element { (1, 300) } else { (0, 0) });
        assert_eq!(collector.gaps.len(), if in_element { 2 } else { 1 });
    }
}

struct Endless;

impl Source for Endless {
    fn run(self: Box<Self>, out: &mut Producer, _stop: &StopFlag) -> Result<SourceEnd, SourceError> {
        loop {
            if out.element(&[], &[1; 1000], Marks::default()).is_err() {
                return Ok(SourceEnd::CaptureGone);
            }
        }
    }
}

#[test]
fn a_source_whose_capture_side_is_gone_ends() {
    let mut rig = Rig::run(Box::new(Endless), Overload::Block, StopFlag::new().unwrap(), 4);
    rig.starve(4);
    assert_eq!(rig.hang_up().unwrap(), SourceEnd::CaptureGone);
}
