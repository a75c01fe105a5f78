//! Text of a source on the command line: kind, preamble, speed.

use holdfast_ingest::{PreambleFrom, SourceSpec, Speed};

/// A source that is read must be shown so that it is read as the same.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = (text.parse::<PreambleFrom>(), text.parse::<Speed>());
    let Ok(source) = text.parse::<SourceSpec>() else { return };
    assert_eq!(source.to_string().parse(), Ok(source));
}

/// One of each kind.
pub fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "stdin",
        "file:/dev/ttyUSB0",
        "tcp:[::1]:5000",
        "tcp::5000",
        "shm:/run/camera.sock",
        "udp:239.1.2.3:5000@eth0",
        "iface:eth0",
        "replay:a:b.pcap",
        "4096",
        "0.5x",
        "max",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}
