//! Packet filters in tcpdump syntax: compiled by libpcap, run by the kernel (live) or by `bpf` (files).

use super::bpf::{BadProgram, Instruction, Program};
use super::libpcap::{Compiler, LibpcapError};
use super::{Interface, LinkType, Packet};

/// Longest expression that is taken; libpcap's parser works recursively.
pub const MAX_EXPRESSION: usize = 16 << 10;

/// Bytes to keep when a filter is the only one to say so: all.
const ALL: u32 = u32::MAX;

/// Why there is no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// libpcap does not understand it, or it makes no sense for this kind of packet.
    #[error("the filter `{expression}` {}: {message}", blame(*link_type, message))]
    Expression {
        /// The filter as given, its beginning if it is long.
        expression: String,
        /// Link type it was compiled for.
        link_type: u16,
        /// What libpcap says.
        message: String,
    },
    /// The kernel does not take it.
    #[error(
        "the filter `{0}` follows chains of headers, which no kernel filter can; record without it, and filter when reading"
    )]
    Loops(String),
    /// Too long.
    #[error("the filter has {0} bytes; at most {MAX_EXPRESSION} are allowed")]
    TooLong(usize),
    /// libpcap is not installed.
    #[error(
        "cannot compile the filter `{expression}`: {reason}; install libpcap (on Debian the package libpcap0.8), or leave the \
         filter out"
    )]
    Library {
        /// The filter as given, its beginning if it is long.
        expression: String,
        /// Reason why the library cannot be loaded.
        reason: String,
    },
    /// libpcap made an invalid program.
    #[error(transparent)]
    Program(#[from] BadProgram),
}

/// A filter compiled for packets of one link type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    program: Program,
}

impl Filter {
    /// Compiles `expression` for packets that are given whole, as from a file.
    pub fn compile(expression: &str, link_type: LinkType) -> Result<Self, FilterError> {
        check_length(expression)?;
        let wrong = |error| refused(expression, link_type, error);
        let compiler = Compiler::dead(link_type.dlt()).map_err(wrong)?;
        Self::from_compiled(compiler.compile(expression).map_err(wrong)?)
    }

    /// Compiles `expression` for packets as the kernel sees them on this interface: VLAN tags beside the packet
    /// and not in it, and the direction known, so that `vlan` and `inbound` mean what they say. Needs the same
    /// privilege as capturing.
    pub(crate) fn compile_live(
        expression: &str,
        interface: &str,
        link_type: LinkType,
    ) -> Result<Self, FilterError> {
        check_length(expression)?;
        let wrong = |error| refused(expression, link_type, error);
        let compiler = Compiler::live(interface).map_err(wrong)?;
        if compiler.link_type() != link_type.dlt() {
            return Self::compile(expression, link_type)?.for_kernel(expression);
        }
        Self::from_compiled(compiler.compile(expression).map_err(wrong)?)?.for_kernel(expression)
    }

    fn for_kernel(self, expression: &str) -> Result<Self, FilterError> {
        if self.program.has_loops() {
            return Err(FilterError::Loops(expression.chars().take(200).collect()));
        }
        Ok(self)
    }

    fn from_compiled(instructions: Vec<Instruction>) -> Result<Self, FilterError> {
        Ok(Self { program: Program::new(instructions)?.keeping(ALL) })
    }

    /// The program, which keeps all of what it accepts.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Whether the packet passes.
    pub fn accepts(&self, data: &[u8], original_len: u32) -> bool {
        self.program.run(data, original_len) != 0
    }
}

/// Refuses an expression that is longer than [`MAX_EXPRESSION`].
fn check_length(expression: &str) -> Result<(), FilterError> {
    if expression.len() > MAX_EXPRESSION {
        return Err(FilterError::TooLong(expression.len()));
    }
    Ok(())
}

/// What is at fault, as far as libpcap tells.
fn blame(link_type: u16, message: &str) -> String {
    if message.contains("syntax error") {
        return "is not in the syntax of tcpdump (`man pcap-filter`)".to_owned();
    }
    format!("cannot be used on packets of link type {link_type}")
}

fn refused(expression: &str, link_type: LinkType, error: LibpcapError) -> FilterError {
    let expression = expression.chars().take(200).collect();
    match error {
        LibpcapError::Refused(message) => {
            FilterError::Expression { expression, link_type: link_type.0, message }
        }
        LibpcapError::Missing(reason) => FilterError::Library { expression, reason },
    }
}

/// One expression for all the interfaces of a file, compiled once for each link type.
#[derive(Clone, Debug)]
pub struct FileFilter {
    filters: Vec<Filter>,
    by_interface: Vec<u16>,
}

impl FileFilter {
    /// Compiles `expression` for the packets of `interfaces`.
    pub fn compile(expression: &str, interfaces: &[Interface]) -> Result<Self, FilterError> {
        let mut link_types: Vec<LinkType> = Vec::new();
        let mut filters = Vec::new();
        let mut by_interface = Vec::new();
        for interface in interfaces {
            let known = link_types.iter().position(|known| *known == interface.link_type);
            let at = if let Some(at) = known {
                at
            } else {
                filters.push(Filter::compile(expression, interface.link_type)?);
                link_types.push(interface.link_type);
                filters.len() - 1
            };
            by_interface.push(at as u16);
        }
        Ok(Self { filters, by_interface })
    }

    /// Whether the packet passes; one of an interface that was not there at compiling does not.
    pub fn accepts(&self, packet: &Packet<'_>) -> bool {
        self.by_interface
            .get(usize::from(packet.interface))
            .and_then(|at| self.filters.get(usize::from(*at)))
            .is_some_and(|filter| filter.accepts(packet.data, packet.original_len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_from_header_to_header_is_for_files() {
        let of = |expression| Filter::compile(expression, LinkType::ETHERNET).unwrap();
        let chain = "ip6 protochain 58";
        // Behind the header of IPv6 hop-by-hop options, and behind these ICMPv6; or a header that lacks its end.
        let mut packet = [0; 14 + 40 + 8 + 8];
        packet[12..14].copy_from_slice(&[0x86, 0xdd]);
        (packet[14], packet[14 + 40]) = (0x60, 58);
        assert!(of(chain).accepts(&packet, 70) && !of("ip6 protochain 6").accepts(&packet, 70));
        assert!(!of(chain).accepts(&packet[..54], 70));
        assert_eq!(of(chain).for_kernel(chain), Err(FilterError::Loops(chain.to_owned())));
        assert!(of("icmp6").for_kernel("icmp6").is_ok());
    }
}
