//! Extractor: reads one cell of each attribute from an element, and counts cells that are too long or undecodable.

use crate::fixed::{Fixed, all_fixed};
use crate::given;
use crate::json::Json;
use crate::packet::Packets;
use crate::spead::Items;
use crate::unit::TimeUnit;
use crate::vdif::VdifHeader;
use crate::{
    DadaKey, From, PacketField, Schema, SigprocField, SpeadField, Type, VdifField, VxlanPorts, dada, sigproc,
};
use holdfast_base::Timestamp;
use holdfast_format::{CellBuffer, Cells};

/// Bytes of an element that are looked at: any header, and nearly any document, lies in them, and no element keeps a source
/// from the next one for longer than that takes.
pub const MAX_DATA: usize = 64 << 10;

/// What is known of an element. Cells are a function of nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// Its bytes, or the first [`MAX_DATA`] of them: what is beyond is not looked at.
    pub data: &'a [u8],
    /// Bytes that are recorded of it.
    pub size: u64,
    /// Bytes that it had where it came from: for a packet those on the wire, the recorded ones and the row's `extra`.
    pub original_size: u64,
    /// Of a packet: what it begins with, as capture files tell it of the interface that the row's tag names (1: Ethernet).
    /// Frames from the kernel have their VLAN tags in place again when they are recorded.
    pub link_type: Option<u16>,
    /// The header that its producer gave it, if it came with one.
    pub header: Option<&'a [u8]>,
}

impl<'a> Element<'a> {
    /// One that is recorded whole and is no packet.
    pub fn of(data: &'a [u8]) -> Self {
        let size = data.len() as u64;
        Self {
            data: &data[..data.len().min(MAX_DATA)],
            size,
            original_size: size,
            link_type: None,
            header: None,
        }
    }
}

/// What came of an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Its event time, if the schema has one and the element, too.
    pub event_time: Option<Timestamp>,
    /// Whether it is not what the schema takes it for, in part or in whole: a header that is cut or malformed, a document
    /// that is none, an element that ends before a place. What could be read all the same has its cells.
    pub undecodable: bool,
    /// True if the event time has whole seconds, because neither the header nor the schema tells a rate.
    pub whole_second: bool,
    /// Texts that are null since they are longer than a cell may be.
    pub too_long: u32,
}

/// Reads the attributes of a schema. All its memory is allocated when it is made.
#[derive(Clone, Debug)]
pub struct Extractor {
    fixed: Fixed,
    all_fixed: bool,
    json: Option<Json>,
    packets: Packets,
    vdif: Vec<(usize, (VdifField, Option<u32>))>,
    spead: Vec<(usize, SpeadField)>,
    dada: Vec<(usize, DadaKey, Type, TimeUnit)>,
    sigproc: Vec<(usize, SigprocField, Type)>,
    given: Vec<(usize, Type)>,
    event_time: Option<usize>,
}

impl Extractor {
    /// For the elements of a stream with this schema.
    pub fn new(schema: &Schema) -> Self {
        let mut fixed = Fixed::default();
        let mut packets: Vec<(usize, PacketField, VxlanPorts)> = Vec::new();
        let (mut paths, mut vdif, mut spead) = (Vec::new(), Vec::new(), Vec::new());
        let (mut dada, mut sigproc, mut given) = (Vec::new(), Vec::new(), Vec::new());
        for (number, attribute) in schema.attributes().iter().enumerate() {
            match attribute.from() {
                From::At(place) => fixed.push(number, attribute, place),
                From::Json(path) => paths.push((number, attribute, path)),
                From::Packet(field, ports) => packets.push((number, *field, *ports)),
                From::Vdif(field, rate) => vdif.push((number, (*field, *rate))),
                From::Spead(field) => spead.push((number, *field)),
                From::Dada(key) => dada.push((number, key.clone(), attribute.kind(), attribute.time_unit())),
                From::Sigproc(field) => sigproc.push((number, *field, attribute.kind())),
                From::Given => given.push((number, attribute.kind())),
            }
        }
        Self {
            fixed,
            all_fixed: all_fixed(schema.attributes()),
            json: (!paths.is_empty()).then(|| Json::new(&paths)),
            packets: Packets::new(packets),
            vdif,
            spead,
            dada,
            sigproc,
            given,
            event_time: schema.event_time(),
        }
    }

    /// Pushes one cell to each of `cells`, of which there are as many as attributes, each with room for one more
    /// ([`CellBuffer::has_room`]).
    pub fn extract(&mut self, element: &Element<'_>, cells: &mut [CellBuffer]) -> Outcome {
        let element = Element { data: &element.data[..element.data.len().min(MAX_DATA)], ..*element };
        let mut outcome = Outcome::default();
        if self.fixed.len() > 0 {
            outcome.undecodable |= !self.fixed.extract(element.data, cells);
        }
        if let Some(json) = &mut self.json {
            json.extract(&element, cells, &mut outcome);
        }
        self.packets.extract(&element, cells, &mut outcome);
        if !self.vdif.is_empty() {
            let header = VdifHeader::read(element.data, element.size);
            outcome.undecodable |= header.is_none();
            outcome.whole_second = self.vdif.iter().any(|(_, (field, rate))| {
                *field == VdifField::EventTime && header.is_some_and(|header| !header.has_rate(*rate))
            });
            push(&self.vdif, cells, |(field, rate), into| match header {
                Some(header) => header.push(field, rate, into),
                None => into.null(),
            });
        }
        if !self.spead.is_empty() {
            let items = Items::read(element.data);
            outcome.undecodable |= items.is_none();
            push(&self.spead, cells, |field, into| match items {
                Some(items) => items.push(field, into),
                None => into.null(),
            });
        }
        if !self.dada.is_empty() {
            let header = dada::DadaHeader::read(element.data);
            outcome.undecodable |= header.is_none();
            for (number, key, kind, unit) in &self.dada {
                let Some(into) = cells.get_mut(*number) else { continue };
                match header {
                    Some(header) => header.push(key, *kind, *unit, into, &mut outcome),
                    None => into.null(),
                }
            }
        }
        if !self.sigproc.is_empty() {
            let header = sigproc::SigprocHeader::read(element.data);
            outcome.undecodable |= header.is_none();
            for (number, field, kind) in &self.sigproc {
                let Some(into) = cells.get_mut(*number) else { continue };
                match header {
                    Some(header) => header.push(*field, *kind, into, &mut outcome),
                    None => into.null(),
                }
            }
        }
        if !self.given.is_empty() {
            given::extract(&self.given, element.header, cells, &mut outcome);
        }
        outcome.event_time = self.event_time.and_then(|number| last_time(cells.get(number)?));
        outcome
    }

    /// For schemas all of whose attributes lie at fixed places: the way to read many elements at once.
    pub fn fixed(&self) -> Option<&Fixed> {
        self.all_fixed.then_some(&self.fixed)
    }
}

/// One cell to each of these columns.
fn push<F: Copy>(columns: &[(usize, F)], cells: &mut [CellBuffer], put: impl Fn(F, &mut CellBuffer)) {
    for (number, field) in columns {
        if let Some(into) = cells.get_mut(*number) {
            put(*field, into);
        }
    }
}

/// The time in the last cell.
fn last_time(buffer: &CellBuffer) -> Option<Timestamp> {
    match (buffer.cells(), buffer.valid().last()) {
        (Cells::Words([.., word]), Some(true)) => Some(Timestamp((word ^ 1 << 63) as i64)),
        _ => None,
    }
}
