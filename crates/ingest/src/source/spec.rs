//! Specification of a source: its text form and options, and which options apply to which kind. Nothing is opened here.

use super::SourceError;
use crate::framing::{DEFAULT_BLOCK, Framing};
use crate::producer::Overload;
use holdfast_attributes::Counter;
use holdfast_base::{ByteSize, UnitError};
use holdfast_format::StreamKind;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where elements come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceSpec {
    /// Standard input.
    Stdin,
    /// A file, a named pipe or a character device.
    File(PathBuf),
    /// A TCP address to listen on.
    Tcp(String),
    /// A socket at which producers get memory to share.
    Shm(PathBuf),
    /// A UDP address to receive on, multicast groups included, and the interface to join them on.
    Udp {
        /// `HOST:PORT`.
        address: String,
        /// The interface for a group.
        interface: Option<String>,
    },
    /// A network interface.
    Iface(String),
    /// A capture file.
    Replay(PathBuf),
}

const WANTED: &str = "stdin, file:PATH, tcp:HOST:PORT, shm:PATH, udp:HOST:PORT, udp:GROUP:PORT@INTERFACE, iface:NAME or replay:FILE";

impl FromStr for SourceSpec {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong = || UnitError::new("source", text, WANTED);
        if text == "stdin" || text == "-" {
            return Ok(Self::Stdin);
        }
        let (kind, rest) = text.split_once(':').filter(|(_, rest)| !rest.is_empty()).ok_or_else(wrong)?;
        // `:5000` listens on all addresses.
        let address = |text: &str| {
            let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
            port.parse::<u16>().map_err(|_| wrong())?;
            Ok(if host.is_empty() { format!("[::]:{port}") } else { text.to_owned() })
        };
        match kind {
            "file" => Ok(Self::File(rest.into())),
            "replay" => Ok(Self::Replay(rest.into())),
            "iface" => Ok(Self::Iface(rest.to_owned())),
            "tcp" => Ok(Self::Tcp(address(rest)?)),
            "shm" => Ok(Self::Shm(rest.into())),
            "udp" => {
                let (at, interface) = match rest.split_once('@') {
                    Some((_, "")) => return Err(wrong()),
                    Some((at, interface)) => (at, Some(interface.to_owned())),
                    None => (rest, None),
                };
                Ok(Self::Udp { address: address(at)?, interface })
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for SourceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("stdin"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
            Self::Shm(path) => write!(f, "shm:{}", path.display()),
            Self::Udp { address, interface: None } => write!(f, "udp:{address}"),
            Self::Udp { address, interface: Some(interface) } => write!(f, "udp:{address}@{interface}"),
            Self::Iface(name) => write!(f, "iface:{name}"),
            Self::Replay(path) => write!(f, "replay:{}", path.display()),
        }
    }
}

/// Where a stream's preamble comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreambleFrom {
    /// The first bytes of the input itself.
    Leading(ByteSize),
    /// A file.
    File(PathBuf),
}

impl FromStr for PreambleFrom {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        match text.parse::<ByteSize>() {
            Ok(size) => Ok(Self::Leading(size)),
            Err(_) if !text.is_empty() => Ok(Self::File(text.into())),
            Err(_) => Err(UnitError::new("preamble", text, "a file, or a number of bytes such as 4096")),
        }
    }
}

/// How fast a capture file is replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// As many times as fast as it was recorded.
    Times(f64),
    /// As fast as the ring takes it.
    Max,
}

impl FromStr for Speed {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong = || UnitError::new("speed", text, "a factor such as 2 or 0.5, or max");
        if text == "max" {
            return Ok(Self::Max);
        }
        let times: f64 = text.strip_suffix('x').unwrap_or(text).parse().map_err(|_| wrong())?;
        if times.is_finite() && times > 0.0 { Ok(Self::Times(times)) } else { Err(wrong()) }
    }
}

/// What is said of a source beside what it is. Defaults are by kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceOptions {
    /// How bytes are cut into elements.
    pub framing: Option<Framing>,
    /// What a reader needs before any element.
    pub preamble: Option<PreambleFrom>,
    /// Which packets, in tcpdump syntax.
    pub filter: Option<String>,
    /// Packets for others, too.
    pub promiscuous: bool,
    /// Most bytes of a packet that are kept.
    pub snaplen: Option<u32>,
    /// How fast a file is replayed; as it was recorded unless said.
    pub speed: Option<Speed>,
    /// The file is replayed again when it ends.
    pub repeat: bool,
    /// What happens when there is no room.
    pub overload: Option<Overload>,
    /// Packet rings of an interface.
    pub rings: Option<usize>,
    /// Bytes of the ring that is shared with a producer.
    pub area: Option<ByteSize>,
    /// By what is seen which elements were lost upstream.
    pub counter: Option<Counter>,
}

impl SourceSpec {
    /// What its elements are.
    pub fn kind(&self) -> StreamKind {
        match self {
            Self::Stdin | Self::File(_) | Self::Tcp(_) | Self::Shm(_) | Self::Udp { .. } => StreamKind::Bytes,
            Self::Iface(_) | Self::Replay(_) => StreamKind::Packets,
        }
    }

    /// The policy unless another is asked for: who can wait, waits.
    pub fn default_overload(&self) -> Overload {
        match self {
            Self::Stdin | Self::File(_) | Self::Tcp(_) | Self::Shm(_) | Self::Replay(_) => Overload::Block,
            Self::Udp { .. } | Self::Iface(_) => Overload::DropNewest,
        }
    }

    /// The framing unless another is asked for.
    pub fn default_framing(&self) -> Framing {
        match self {
            Self::Stdin | Self::File(_) => Framing::Blocks(DEFAULT_BLOCK.0),
            Self::Tcp(_) | Self::Shm(_) => Framing::Len32,
            Self::Udp { .. } | Self::Iface(_) | Self::Replay(_) => Framing::Whole,
        }
    }

    /// Refuses options that mean nothing for this kind of source.
    pub fn check(&self, options: &SourceOptions) -> Result<(), SourceError> {
        let bytes = matches!(self, Self::Stdin | Self::File(_) | Self::Tcp(_) | Self::Shm(_));
        let packets = self.kind() == StreamKind::Packets;
        let live = matches!(self, Self::Iface(_));
        let replay = matches!(self, Self::Replay(_));
        let shared = matches!(self, Self::Shm(_));
        let counts_messages = options.counter == Some(Counter::Mcap);
        let leading = matches!(options.preamble, Some(PreambleFrom::Leading(_)));
        let own = packets && options.preamble.is_some();
        let checks = [
            (options.framing.is_some() && !bytes, "--frame", "its elements have boundaries already"),
            (own, "--preamble", "it creates the preamble of its packets itself"),
            (
                leading && !matches!(self, Self::Stdin | Self::File(_)),
                "--preamble BYTES",
                "its inputs have no common beginning; use a file",
            ),
            (
                options.filter.is_some() && !packets,
                "--filter",
                "it delivers no packets: use iface: or replay:",
            ),
            (
                options.snaplen.is_some() && !packets,
                "--snaplen",
                "it delivers no packets: use iface: or replay:",
            ),
            (
                options.counter.is_some() && packets && !(replay && counts_messages),
                "--counter",
                "it is read at the beginning of an element, where packets have their headers",
            ),
            (counts_messages && !replay, "--counter mcap", "it counts the messages of MCAP files (replay:)"),
            (options.promiscuous && !live, "--promisc", "only an interface (iface:) has such a mode"),
            (options.rings.is_some() && !live, "--rings", "only an interface (iface:) has packet rings"),
            (options.area.is_some() && !shared, "--area", "only shared memory (shm:) has such an area"),
            (options.speed.is_some() && !replay, "--speed", "only a replayed file (replay:) has a speed"),
            (options.repeat && !replay, "--loop", "only a replayed file (replay:) can be looped"),
            (
                options.framing == Some(Framing::Whole),
                "--frame whole",
                "a stream of bytes has no boundaries of its own",
            ),
        ];
        match checks.into_iter().find(|(wrong, _, _)| *wrong) {
            Some((_, option, why)) => Err(SourceError::Option { name: self.to_string(), option, why }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_and_shown() {
        for text in [
            "stdin",
            "file:/dev/ttyUSB0",
            "tcp:127.0.0.1:5000",
            "tcp:[::1]:5000",
            "shm:/run/camera.sock",
            "udp:localhost:9",
            "udp:239.1.2.3:5000@eth0",
            "iface:eth0",
            "replay:a:b.pcap",
        ] {
            assert_eq!(text.parse::<SourceSpec>().unwrap().to_string(), text);
        }
        assert_eq!("tcp::5000".parse::<SourceSpec>().unwrap().to_string(), "tcp:[::]:5000");
        for text in ["", "stdin:", "file:", "shm:", "tcp:5000", "udp:host:port", "udp:1.2.3.4:5@", "ftp:x"] {
            let said = text.parse::<SourceSpec>().unwrap_err().to_string();
            assert!(said.contains("replay:FILE"), "{said}");
        }
        assert_eq!("0.5x".parse(), Ok(Speed::Times(0.5)));
        assert!(
            "0".parse::<Speed>().is_err()
                && "-1".parse::<Speed>().is_err()
                && "nan".parse::<Speed>().is_err()
        );
        assert_eq!("4096".parse(), Ok(PreambleFrom::Leading(ByteSize(4096))));
        assert_eq!("a.hdr".parse(), Ok(PreambleFrom::File("a.hdr".into())));
    }

    #[test]
    fn options_that_mean_nothing_are_refused_by_name() {
        let stdin = SourceSpec::Stdin;
        let filter = SourceOptions { filter: Some("tcp".into()), ..SourceOptions::default() };
        let said = stdin.check(&filter).unwrap_err().to_string();
        assert!(said.contains("--filter") && said.contains("stdin") && said.contains("iface:"), "{said}");
        let replay: SourceSpec = "replay:x".parse().unwrap();
        assert!(replay.check(&filter).is_ok());
        for options in [
            SourceOptions { promiscuous: true, ..SourceOptions::default() },
            SourceOptions { rings: Some(2), ..SourceOptions::default() },
            SourceOptions { area: Some(ByteSize::mib(1)), ..SourceOptions::default() },
            SourceOptions { framing: Some(Framing::Lines), ..SourceOptions::default() },
            SourceOptions { preamble: Some(PreambleFrom::File("x".into())), ..SourceOptions::default() },
            SourceOptions { counter: Some(Counter::Rtp), ..SourceOptions::default() },
        ] {
            assert!(replay.check(&options).is_err(), "{options:?}");
        }
        let tcp: SourceSpec = "tcp::1".parse().unwrap();
        let leading =
            SourceOptions { preamble: Some(PreambleFrom::Leading(ByteSize(1))), ..SourceOptions::default() };
        assert!(tcp.check(&leading).is_err() && stdin.check(&leading).is_ok());
        let shm: SourceSpec = "shm:x".parse().unwrap();
        let area = SourceOptions { area: Some(ByteSize::mib(1)), ..SourceOptions::default() };
        assert!(shm.check(&leading).is_err() && shm.check(&area).is_ok() && tcp.check(&area).is_err());
    }
}
