//! Origins of attribute values.

use crate::cursor::Cursor;
use crate::packet::{ID_BYTES, MOST_NAME};
use crate::vdif::RATE;
use crate::{
    DadaKey, FieldLocation, PacketField, Path, Problem, SchemaError, SigprocField, SpeadField, Type,
    VdifField, VxlanPorts, dada, vdif,
};
use holdfast_format::MAX_TEXT;
use std::fmt;

/// What an attribute is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum From {
    /// Bytes at a fixed place: `at:4:u16be`.
    At(FieldLocation),
    /// A value in a JSON document: `json:sensors[0].temp`.
    Json(Path),
    /// Headers of a packet: `packet:src`; contents of tunnels with further ports of VXLAN: `packet:vni,vxlan=8472`.
    Packet(PacketField, VxlanPorts),
    /// The header of a VDIF frame: `vdif:frame`; the event time with a rate of frames: `vdif:event_time,rate=1600`.
    Vdif(VdifField, Option<u32>),
    /// An item of a SPEAD packet: `spead:heap`.
    Spead(SpeadField),
    /// A key of a DADA file's header: `dada:UTC_START`.
    Dada(DadaKey),
    /// A keyword of a SIGPROC file's header: `sigproc:tstart`.
    Sigproc(SigprocField),
    /// The next value in the header that its producer gave it: `given`.
    Given,
}

/// A field out of a list, by its name.
fn field<F: Copy>(
    cursor: &mut Cursor<'_>,
    of: &'static str,
    known: &[F],
    name_of: impl Fn(F) -> &'static str,
) -> Result<F, SchemaError> {
    let at = cursor.at();
    let name = cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
    known.iter().copied().find(|field| name_of(*field) == name).ok_or_else(|| {
        let known = known.iter().map(|field| name_of(*field)).collect();
        cursor.wrong_at(at, Problem::Field { of, name: name.to_owned(), known })
    })
}

impl PacketField {
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self, SchemaError> {
        field(cursor, "packet", &Self::ALL, Self::name)
    }
}

impl VdifField {
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self, SchemaError> {
        field(cursor, "vdif", &Self::ALL, Self::name)
    }
}

impl SigprocField {
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self, SchemaError> {
        field(cursor, "sigproc", &Self::all(), Self::name)
    }
}

impl SpeadField {
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self, SchemaError> {
        field(cursor, "spead", &Self::ALL, Self::name)
    }
}

impl From {
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self, SchemaError> {
        let at = cursor.at();
        let name = cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        if !matches!(name, "at" | "json" | "packet" | "vdif" | "spead" | "dada" | "sigproc" | "given") {
            return Err(cursor.wrong_at(at, Problem::From(name.to_owned())));
        }
        if name == "given" {
            return Ok(Self::Given);
        }
        cursor.expect(":", "`:`")?;
        Ok(match name {
            "at" => Self::At(FieldLocation::parse(cursor)?),
            "json" => Self::Json(Path::parse(cursor)?),
            "packet" => {
                let field = PacketField::parse(cursor)?;
                let has_ports = field.is_of_tunnels();
                Self::Packet(
                    field,
                    if has_ports { VxlanPorts::parse(cursor)? } else { VxlanPorts::default() },
                )
            }
            "vdif" => {
                let field = VdifField::parse(cursor)?;
                Self::Vdif(field, if field == VdifField::EventTime { vdif::rate(cursor)? } else { None })
            }
            "dada" => Self::Dada(DadaKey::parse(cursor)?),
            "sigproc" => Self::Sigproc(SigprocField::parse(cursor)?),
            _ => Self::Spead(SpeadField::parse(cursor)?),
        })
    }

    /// The types of which its values may be.
    pub fn gives(&self) -> Vec<Type> {
        match self {
            Self::At(place) => place.gives().to_vec(),
            Self::Json(_) => Type::ALL.into_iter().filter(|kind| *kind != Type::Binary).collect(),
            Self::Packet(field, _) => vec![field.kind()],
            Self::Vdif(field, _) => vec![field.kind()],
            Self::Spead(_) => vec![SpeadField::KIND],
            Self::Dada(_) => dada::GIVES.to_vec(),
            Self::Sigproc(field) => field.gives().to_vec(),
            Self::Given => Type::ALL.to_vec(),
        }
    }

    /// Bytes of a text of it, at most.
    pub(crate) fn most_text(&self) -> usize {
        match self {
            Self::At(place) => place.layout.width(),
            Self::Json(_) | Self::Dada(_) | Self::Sigproc(_) | Self::Given => MAX_TEXT,
            // `icmpv6`, `0x88b5`; a station's number.
            Self::Packet(PacketField::Protocol | PacketField::InnerProtocol, _)
            | Self::Vdif(..)
            | Self::Spead(_) => 8,
            Self::Packet(PacketField::CommunityId | PacketField::InnerCommunityId, _) => ID_BYTES,
            Self::Packet(..) => MOST_NAME,
        }
    }

    /// Whether no packet has it: an element is taken for what begins with a header of its own, or for a document, and a packet begins
    /// with one of the network.
    pub fn is_of_no_packet(&self) -> bool {
        matches!(self, Self::Json(_) | Self::Vdif(..) | Self::Spead(_) | Self::Dada(_) | Self::Sigproc(_))
    }

    /// Whether a time of it is a number of some unit.
    pub(crate) fn counts_time(&self) -> bool {
        matches!(self, Self::At(_) | Self::Json(_) | Self::Dada(_))
    }
}

impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(place) => write!(f, "at:{place}"),
            Self::Json(path) => write!(f, "json:{path}"),
            Self::Packet(field, vxlan) => write!(f, "packet:{}{vxlan}", field.name()),
            Self::Vdif(field, None) => write!(f, "vdif:{}", field.name()),
            Self::Vdif(field, Some(rate)) => write!(f, "vdif:{}{RATE}{rate}", field.name()),
            Self::Spead(field) => write!(f, "spead:{}", field.name()),
            Self::Dada(key) => write!(f, "dada:{}", key.0),
            Self::Sigproc(field) => write!(f, "sigproc:{}", field.name()),
            Self::Given => f.write_str("given"),
        }
    }
}
