//! Values of attributes, the cells that store them, and the order-preserving conversion between the two.

use crate::Type;
use holdfast_base::Timestamp;
use holdfast_format::CellBuffer;
use std::cmp::Ordering;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const SIGN: u64 = 1 << 63;

/// A value of an attribute.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// See [`Type::Int`].
    Int(i64),
    /// See [`Type::Uint`].
    Uint(u64),
    /// See [`Type::Float`].
    Float(f64),
    /// See [`Type::Bool`].
    Bool(bool),
    /// See [`Type::Time`].
    Time(Timestamp),
    /// See [`Type::Text`].
    Text(&'a str),
    /// See [`Type::Binary`].
    Binary(&'a [u8]),
    /// See [`Type::Ipv4`].
    Ipv4(Ipv4Addr),
    /// See [`Type::Mac`].
    Mac([u8; 6]),
    /// See [`Type::Ipv6`].
    Ipv6(Ipv6Addr),
    /// See [`Type::Ip`].
    Ip(IpAddr),
}

/// A value as it is kept: words and bytes in the order of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell<'a> {
    /// See [`Class::Word`](holdfast_format::Class::Word).
    Word(u64),
    /// See [`Class::Wide`](holdfast_format::Class::Wide).
    Wide(u128),
    /// See [`Class::Bytes`](holdfast_format::Class::Bytes).
    Bytes(&'a [u8]),
}

impl Cell<'_> {
    /// Adds it to a buffer.
    #[inline]
    pub fn push(self, into: &mut CellBuffer) {
        match self {
            Self::Word(word) => into.word(word),
            Self::Wide(wide) => into.wide(wide),
            Self::Bytes(bytes) => into.bytes(bytes),
        }
    }
}

/// A signed number with its sign bit flipped.
#[inline]
pub(crate) fn int(value: i64) -> u64 {
    value as u64 ^ SIGN
}

/// A number in IEEE total order: the sign bit flipped if it is positive, all bits if it is negative.
#[inline]
pub(crate) fn float(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits & SIGN == 0 { bits ^ SIGN } else { !bits }
}

/// An IPv4 address as its number.
#[inline]
pub(crate) fn ipv4(octets: [u8; 4]) -> u64 {
    u64::from(u32::from_be_bytes(octets))
}

/// A link address as its number.
#[inline]
pub(crate) fn mac(octets: [u8; 6]) -> u64 {
    octets.iter().fold(0, |number, octet| number << 8 | u64::from(*octet))
}

/// An IPv4 address among IPv6 addresses: `::ffff:a.b.c.d`.
#[inline]
pub(crate) fn mapped(octets: [u8; 4]) -> u128 {
    0xffff << 32 | u128::from(u32::from_be_bytes(octets))
}

/// Gives the digits of a number to `put`.
pub(crate) fn decimal(mut number: u32, put: impl FnOnce(&[u8])) {
    let mut digits = [b'0'; 10];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return put(&digits[at..]);
        }
    }
}

impl<'a> Value<'a> {
    /// Its type.
    pub fn kind(&self) -> Type {
        match self {
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Float(_) => Type::Float,
            Self::Bool(_) => Type::Bool,
            Self::Time(_) => Type::Time,
            Self::Text(_) => Type::Text,
            Self::Binary(_) => Type::Binary,
            Self::Ipv4(_) => Type::Ipv4,
            Self::Mac(_) => Type::Mac,
            Self::Ipv6(_) => Type::Ipv6,
            Self::Ip(_) => Type::Ip,
        }
    }

    /// As it is kept.
    #[inline]
    pub fn cell(&self) -> Cell<'a> {
        match *self {
            Self::Int(value) | Self::Time(Timestamp(value)) => Cell::Word(int(value)),
            Self::Uint(value) => Cell::Word(value),
            Self::Float(value) => Cell::Word(float(value)),
            Self::Bool(value) => Cell::Word(u64::from(value)),
            Self::Text(value) => Cell::Bytes(value.as_bytes()),
            Self::Binary(value) => Cell::Bytes(value),
            Self::Ipv4(value) => Cell::Word(ipv4(value.octets())),
            Self::Mac(value) => Cell::Word(mac(value)),
            Self::Ipv6(value) | Self::Ip(IpAddr::V6(value)) => Cell::Wide(u128::from(value)),
            Self::Ip(IpAddr::V4(value)) => Cell::Wide(mapped(value.octets())),
        }
    }

    /// The value of this type that is kept as `cell`; `None` where no value is. `::ffff:a.b.c.d` of either kind is an IPv4
    /// address.
    pub fn from_cell(kind: Type, cell: Cell<'a>) -> Option<Self> {
        Some(match (kind, cell) {
            (Type::Int, Cell::Word(word)) => Self::Int((word ^ SIGN) as i64),
            (Type::Uint, Cell::Word(word)) => Self::Uint(word),
            (Type::Float, Cell::Word(word)) => {
                Self::Float(f64::from_bits(if word & SIGN == 0 { !word } else { word ^ SIGN }))
            }
            (Type::Bool, Cell::Word(word @ 0..=1)) => Self::Bool(word == 1),
            (Type::Time, Cell::Word(word)) => Self::Time(Timestamp((word ^ SIGN) as i64)),
            (Type::Text, Cell::Bytes(bytes)) => Self::Text(std::str::from_utf8(bytes).ok()?),
            (Type::Binary, Cell::Bytes(bytes)) => Self::Binary(bytes),
            (Type::Ipv4, Cell::Word(word)) => Self::Ipv4(u32::try_from(word).ok()?.into()),
            (Type::Mac, Cell::Word(word)) if word >> 48 == 0 => {
                let [_, _, octets @ ..] = word.to_be_bytes();
                Self::Mac(octets)
            }
            (Type::Ipv6, Cell::Wide(wide)) => Self::Ipv6(wide.into()),
            (Type::Ip, Cell::Wide(wide)) => Self::Ip(IpAddr::V6(wide.into()).to_canonical()),
            _ => return None,
        })
    }

    /// The order of values of one type, which is that of their cells; of different types, `None`. Numbers that are none stand
    /// at the ends, and -0.0 before 0.0.
    pub fn order(&self, other: &Self) -> Option<Ordering> {
        Some(match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Uint(a), Self::Uint(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b),
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Time(a), Self::Time(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Binary(a), Self::Binary(b)) => a.cmp(b),
            (Self::Ipv4(a), Self::Ipv4(b)) => a.cmp(b),
            (Self::Mac(a), Self::Mac(b)) => a.cmp(b),
            (Self::Ipv6(a), Self::Ipv6(b)) => a.cmp(b),
            (Self::Ip(a), Self::Ip(b)) => wide(*a).cmp(&wide(*b)),
            _ => return None,
        })
    }
}

fn wide(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum OwnedValue {
        Plain(Value<'static>),
        Text(String),
        Binary(Vec<u8>),
    }

    impl OwnedValue {
        fn value(&self) -> Value<'_> {
            match self {
                Self::Plain(value) => *value,
                Self::Text(text) => Value::Text(text),
                Self::Binary(bytes) => Value::Binary(bytes),
            }
        }
    }

    /// Values of one type, near each other and at the edges, too.
    fn values(kind: Type) -> BoxedStrategy<OwnedValue> {
        let word = prop_oneof![any::<u64>(), 0..4u64, Just(u64::MAX), Just(SIGN), Just(SIGN - 1)];
        let wide = prop_oneof![any::<u128>(), 0..4u128, Just(u128::MAX), Just(0xffff << 32)];
        let plain = |value| OwnedValue::Plain(value);
        match kind {
            Type::Int => word.prop_map(move |word| plain(Value::Int(word as i64))).boxed(),
            Type::Uint => word.prop_map(move |word| plain(Value::Uint(word))).boxed(),
            Type::Float => {
                let edges = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN, 1.0];
                prop_oneof![word.prop_map(f64::from_bits), proptest::sample::select(edges.to_vec())]
                    .prop_map(move |value| plain(Value::Float(value)))
                    .boxed()
            }
            Type::Bool => any::<bool>().prop_map(move |value| plain(Value::Bool(value))).boxed(),
            Type::Time => word.prop_map(move |word| plain(Value::Time(Timestamp(word as i64)))).boxed(),
            Type::Text => "[a-cé\u{10ffff}]{0,4}".prop_map(OwnedValue::Text).boxed(),
            Type::Binary => prop::collection::vec(prop_oneof![0..3u8, Just(255)], 0..4)
                .prop_map(OwnedValue::Binary)
                .boxed(),
            Type::Ipv4 => any::<u32>().prop_map(move |n| plain(Value::Ipv4(n.into()))).boxed(),
            Type::Mac => any::<[u8; 6]>().prop_map(move |octets| plain(Value::Mac(octets))).boxed(),
            Type::Ipv6 => wide.prop_map(move |n| plain(Value::Ipv6(n.into()))).boxed(),
            Type::Ip => prop_oneof![
                any::<u32>().prop_map(|n| IpAddr::V4(n.into())),
                wide.prop_map(|n| IpAddr::V6(n.into()).to_canonical())
            ]
            .prop_map(move |address| plain(Value::Ip(address)))
            .boxed(),
        }
    }

    fn pairs() -> impl Strategy<Value = (OwnedValue, OwnedValue)> {
        proptest::sample::select(Type::ALL.to_vec()).prop_flat_map(|kind| (values(kind), values(kind)))
    }

    proptest! {
        /// What is kept comes back, to the bit, and cells stand in the order of their values.
        #[test]
        fn cells_are_values_in_their_order((a, b) in pairs()) {
            let (a, b) = (a.value(), b.value());
            prop_assert_eq!(a.order(&b), Some(a.cell().cmp(&b.cell())));
            let back = Value::from_cell(a.kind(), a.cell()).unwrap();
            prop_assert_eq!(back.kind(), a.kind());
            prop_assert_eq!(back.order(&a), Some(Ordering::Equal));
            let mut buffer = CellBuffer::new(a.kind().class(), 1, 0);
            a.cell().push(&mut buffer);
            prop_assert_eq!(buffer.valid(), [true]);
        }
    }

    #[test]
    fn the_order_of_floats_is_total() {
        let order = [-f64::NAN, f64::NEG_INFINITY, -1.0, -0.0, 0.0, 1e-300, f64::INFINITY, f64::NAN];
        assert!(order.windows(2).all(|pair| float(pair[0]) < float(pair[1])));
    }

    #[test]
    fn a_cell_that_is_no_value_of_the_type_is_none() {
        let none = |kind, cell| Value::from_cell(kind, cell).is_none();
        assert!(none(Type::Bool, Cell::Word(2)));
        assert!(none(Type::Ipv4, Cell::Word(1 << 32)));
        assert!(none(Type::Mac, Cell::Word(1 << 48)));
        assert!(none(Type::Text, Cell::Bytes(&[0xff])));
        assert!(none(Type::Int, Cell::Wide(0)));
        assert!(Value::Int(0).order(&Value::Uint(0)).is_none());
    }

    #[test]
    fn addresses_stand_first_byte_highest() {
        assert_eq!(Value::Ipv4(Ipv4Addr::new(10, 0, 0, 1)).cell(), Cell::Word(0x0a00_0001));
        assert_eq!(Value::Mac([1, 2, 3, 4, 5, 6]).cell(), Cell::Word(0x0102_0304_0506));
        let ip = Value::Ip(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!(ip.cell(), Cell::Wide(0xffff_0a00_0001));
    }
}
