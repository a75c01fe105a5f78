//! Types of attribute values.

use holdfast_format::Class;
use std::fmt;

/// The type of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Whole numbers from -2⁶³.
    Int,
    /// Whole numbers from 0 to 2⁶⁴.
    Uint,
    /// 64-bit floating point, NaN and infinities included.
    Float,
    /// True or false.
    Bool,
    /// Nanoseconds since 1970.
    Time,
    /// UTF-8.
    Text,
    /// Any bytes.
    Binary,
    /// IPv4 addresses.
    Ipv4,
    /// 48-bit link addresses.
    Mac,
    /// IPv6 addresses.
    Ipv6,
    /// Addresses of either kind.
    Ip,
}

impl Type {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 11] = [
        Self::Int,
        Self::Uint,
        Self::Float,
        Self::Bool,
        Self::Time,
        Self::Text,
        Self::Binary,
        Self::Ipv4,
        Self::Mac,
        Self::Ipv6,
        Self::Ip,
    ];

    /// Its name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Float => "float",
            Self::Bool => "bool",
            Self::Time => "time",
            Self::Text => "text",
            Self::Binary => "binary",
            Self::Ipv4 => "ipv4",
            Self::Mac => "mac",
            Self::Ipv6 => "ipv6",
            Self::Ip => "ip",
        }
    }

    /// The type of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// How its cells are kept.
    pub fn class(self) -> Class {
        match self {
            Self::Int | Self::Uint | Self::Float | Self::Bool | Self::Time | Self::Ipv4 | Self::Mac => {
                Class::Word
            }
            Self::Ipv6 | Self::Ip => Class::Wide,
            Self::Text | Self::Binary => Class::Bytes,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
