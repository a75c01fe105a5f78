//! Tests with headers of real files (`$HOLDFAST_TEST_DATA`) against values from other readers of the formats.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::{read, real, schema};
use holdfast_attributes::Element;

#[test]
fn a_real_dada_file_is_read() {
    let Some(path) = real("vlbi/sample_mkbf.dada") else { return };
    let file = std::fs::read(path).unwrap();
    let (values, outcome) = read(&schema(&["dada"]), &Element::of(&file));
    assert!(!outcome.undecodable);
    let [start, offset, source, telescope, freq, bandwidth, tsamp, channels, polarisations, bits] =
        &values[..]
    else {
        panic!()
    };
    assert_eq!(start, "1689780244000000000", "2023-07-19T15:24:04Z");
    assert_eq!([offset, source, telescope], ["418222440448", "J1823-3021A", "MeerKAT"]);
    assert_eq!([freq, bandwidth, tsamp], ["815.734375", "544", "1.882352941176471"]);
    assert_eq!([channels, polarisations, bits], ["1024", "2", "8"]);
}

#[test]
fn a_real_filterbank_file_is_read() {
    let Some(path) = real("filterbank/parkes_8bit_1.fil") else { return };
    let file = std::fs::read(path).unwrap();
    let (values, outcome) =
        read(&schema(&["sigproc", "event_time:time=sigproc:tstart"]), &Element::of(&file));
    assert!(!outcome.undecodable);
    assert_eq!(values[..1], ["J0534+2200"]);
    assert_eq!(values[1..3], ["58543.330387241345", "0.000512"]);
    assert_eq!(values[3..10], ["4030", "-4", "832", "8", "1", "0", "0"]);
    // MJD 58543.3303…
    let time = outcome.event_time.unwrap().0 / 1_000_000_000;
    assert_eq!(time / 86_400 + 40_587, 58_543, "{values:?}");
}
