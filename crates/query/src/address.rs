//! Text form of addresses: parsed where a query compares an address with a text, formatted where results
//! are printed.

use holdfast_attributes::Type;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Error of a text that is no address or network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot parse `{text}` as {what}; write one such as {example}")]
pub struct InvalidAddress {
    text: String,
    what: &'static str,
    example: &'static str,
}

fn wrong(text: &str, kind: Type) -> InvalidAddress {
    let (what, example) = match kind {
        Type::Ipv4 => ("an IPv4 address", "10.0.0.1"),
        Type::Mac => ("a MAC address", "00:1b:21:3c:4d:5e"),
        Type::Ipv6 => ("an IPv6 address", "2001:db8::1"),
        _ => ("an IP address", "10.0.0.1 or 2001:db8::1"),
    };
    InvalidAddress { text: text.chars().take(80).collect(), what, example }
}

/// The bytes of an address of this type.
pub fn parse(kind: Type, text: &str) -> Result<Vec<u8>, InvalidAddress> {
    let text = text.trim();
    let bytes = match kind {
        Type::Ipv4 => text.parse::<Ipv4Addr>().ok().map(|address| address.octets().to_vec()),
        Type::Ipv6 => text.parse::<Ipv6Addr>().ok().map(|address| address.octets().to_vec()),
        Type::Ip => text.parse::<IpAddr>().ok().map(|address| wide(address).octets().to_vec()),
        Type::Mac => mac(text).map(|octets| octets.to_vec()),
        _ => None,
    };
    bytes.ok_or_else(|| wrong(text, kind))
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let mut octets = [0; 6];
    let mut parts = text.split([':', '-']);
    for octet in &mut octets {
        let part =
            parts.next().filter(|part| part.len() <= 2 && part.bytes().all(|b| b.is_ascii_hexdigit()))?;
        *octet = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(octets)
}

fn wide(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// Shows the bytes of an address; those that are none of this type are shown in hexadecimal digits.
pub fn show(kind: Type, bytes: &[u8]) -> String {
    if let (Type::Ipv4, Ok(octets)) = (kind, <[u8; 4]>::try_from(bytes)) {
        return Ipv4Addr::from(octets).to_string();
    }
    if let (Type::Ipv6 | Type::Ip, Ok(octets)) = (kind, <[u8; 16]>::try_from(bytes)) {
        let address = Ipv6Addr::from(octets);
        return if kind == Type::Ip { address.to_canonical().to_string() } else { address.to_string() };
    }
    let between = if kind == Type::Mac { ":" } else { "" };
    bytes.iter().enumerate().fold(String::new(), |mut text, (at, byte)| {
        // Writing to a string does not fail.
        let _ = write!(text, "{}{byte:02x}", if at == 0 { "" } else { between });
        text
    })
}

fn no_network(text: &str, kind: Type) -> InvalidAddress {
    let (what, example) = match kind {
        Type::Ipv4 => ("an IPv4 network", "10.0.0.0/8"),
        Type::Mac => ("a group of MAC addresses", "00:1b:21:00:00:00/24"),
        Type::Ipv6 => ("an IPv6 network", "2001:db8::/32"),
        _ => ("a network", "10.0.0.0/8 or 2001:db8::/32"),
    };
    InvalidAddress { what, example, ..wrong(text, kind) }
}

/// First and last address of a network, as bytes, from `ADDRESS/BITS` or one address.
fn network(kind: Type, text: &str) -> Result<(Vec<u8>, Vec<u8>), InvalidAddress> {
    let (address, bits) = match text.trim().split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<usize>().map_err(|_| no_network(text, kind))?)),
        None => (text, None),
    };
    let first = parse(kind, address).map_err(|_| no_network(text, kind))?;
    let all = first.len() * 8;
    // The bits of an IPv4 network stand behind those that say that it is one.
    let before =
        if kind == Type::Ip && address.contains('.') && !address.contains(':') { all - 32 } else { 0 };
    let bits = before + bits.unwrap_or(all - before);
    if bits > all {
        return Err(no_network(text, kind));
    }
    let edge = |fill: u8| {
        let byte = |(at, byte): (usize, &u8)| {
            let kept = bits.saturating_sub(8 * at).min(8);
            let host = 0xffu16.checked_shr(kept as u32).unwrap_or(0) as u8;
            (byte & !host) | (fill & host)
        };
        first.iter().enumerate().map(byte).collect()
    };
    Ok((edge(0), edge(0xff)))
}

/// First and last address of a range, as bytes.
pub(crate) type AddressRange = (Vec<u8>, Vec<u8>);

/// Ranges of the addresses in a network. IPv4 addresses are none of an IPv6 network, though they are stored among the
/// addresses of `::ffff:0:0/96`, unless the network lies within these.
pub(crate) fn network_ranges(kind: Type, text: &str) -> Result<Vec<AddressRange>, InvalidAddress> {
    let (first, last) = network(kind, text)?;
    let number = |bytes: &[u8]| <[u8; 16]>::try_from(bytes).map(u128::from_be_bytes);
    let (Type::Ip, Ok(from), Ok(to)) = (kind, number(&first), number(&last)) else {
        return Ok(vec![(first, last)]);
    };
    let (mapped, mapped_end) = (0xffff_u128 << 32, (0xffff_u128 << 32) + u128::from(u32::MAX));
    let is_around = from <= mapped && to >= mapped_end && (from, to) != (mapped, mapped_end);
    if !is_around {
        return Ok(vec![(first, last)]);
    }
    let bytes = |number: u128| number.to_be_bytes().to_vec();
    // A side is empty where the network begins or ends with them.
    let sides = [(from, mapped - 1), (mapped_end + 1, to)].into_iter().filter(|(from, to)| from <= to);
    Ok(sides.map(|(from, to)| (bytes(from), bytes(to))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_shown() {
        for (kind, text) in [
            (Type::Ipv4, "10.0.0.1"),
            (Type::Ipv6, "2001:db8::1"),
            (Type::Ip, "10.0.0.1"),
            (Type::Ip, "fe80::1"),
            (Type::Mac, "00:1b:21:3c:4d:5e"),
        ] {
            assert_eq!(show(kind, &parse(kind, text).unwrap()), text);
        }
        assert_eq!(parse(Type::Mac, "0-1B-21-3c-4d-5e").unwrap(), [0, 0x1b, 0x21, 0x3c, 0x4d, 0x5e]);
        for (kind, text) in [
            (Type::Ipv4, "10.0.0.256"),
            (Type::Ipv4, "::1"),
            (Type::Ip, "x"),
            (Type::Mac, "00:1b:21:3c:4d"),
            (Type::Mac, "00:1b:21:3c:4d:5e:6f"),
            (Type::Mac, "+1:1b:21:3c:4d:5e"),
        ] {
            let said = parse(kind, text).unwrap_err().to_string();
            assert!(said.contains(text) && said.contains("such as"), "{said}");
        }
    }

    #[test]
    fn networks_are_all_addresses_that_begin_alike() {
        let shown = |kind, text: &str| {
            let (first, last) = network(kind, text).unwrap();
            [show(kind, &first), show(kind, &last)]
        };
        assert_eq!(shown(Type::Ipv4, "10.1.2.3/8"), ["10.0.0.0", "10.255.255.255"]);
        assert_eq!(shown(Type::Ip, "10.1.2.3/30"), ["10.1.2.0", "10.1.2.3"]);
        assert_eq!(shown(Type::Ip, "0.0.0.0/0"), ["0.0.0.0", "255.255.255.255"]);
        assert_eq!(
            shown(Type::Ip, "2001:db8::/33"),
            ["2001:db8::", "2001:db8:7fff:ffff:ffff:ffff:ffff:ffff"]
        );
        assert_eq!(shown(Type::Ip, "192.168.0.1"), ["192.168.0.1", "192.168.0.1"]);
        assert_eq!(shown(Type::Mac, "00:1b:21:00:00:00/24"), ["00:1b:21:00:00:00", "00:1b:21:ff:ff:ff"]);
        let ranges = |kind, text: &str| {
            let ranges = network_ranges(kind, text).unwrap();
            ranges
                .iter()
                .map(|(first, last)| [show(kind, first), show(kind, last)].join(" "))
                .collect::<Vec<_>>()
        };
        let end = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
        assert_eq!(
            ranges(Type::Ip, "::/0"),
            ["::".to_owned() + " ::fffe:ffff:ffff", format!("::1:0:0:0 {end}")]
        );
        assert_eq!(ranges(Type::Ip, "::8000:0:0/81"), ["::8000:0:0 ::fffe:ffff:ffff"]);
        assert_eq!(ranges(Type::Ip, "::ffff:0:0/96"), ["0.0.0.0 255.255.255.255"]);
        assert_eq!(ranges(Type::Ip, "::ffff:10.0.0.0/104"), ["10.0.0.0 10.255.255.255"]);
        assert_eq!(ranges(Type::Ip, "0.0.0.0/0"), ["0.0.0.0 255.255.255.255"]);
        assert_eq!(ranges(Type::Ip, "2000::/3").len(), 1);
        assert_eq!(ranges(Type::Ipv6, "::/0"), [format!(":: {end}")]);
        let said = |kind, text: &str| network(kind, text).unwrap_err().to_string();
        assert_eq!(
            said(Type::Ipv4, "10.0.0.0/33"),
            "cannot parse `10.0.0.0/33` as an IPv4 network; write one such as 10.0.0.0/8"
        );
        assert!(said(Type::Ip, "10.0.0.0/x").contains("as a network; write one such as"));
    }
}
