//! Attributes at fixed offsets, read column by column where elements of one size are adjacent.

use crate::field_location::{Bytes, Layout, Order};
use crate::unit::TimeUnit;
use crate::{Attribute, FieldLocation, From, Type, value};
use holdfast_format::CellBuffer;

/// The attributes of a schema that lie at fixed places.
#[derive(Clone, Debug, Default)]
pub struct Fixed {
    columns: Vec<FixedColumn>,
}

#[derive(Clone, Debug)]
struct FixedColumn {
    /// Its number in the schema.
    number: usize,
    place: FieldLocation,
    kind: Type,
    unit: TimeUnit,
}

impl Fixed {
    pub(crate) fn push(&mut self, number: usize, attribute: &Attribute, place: &FieldLocation) {
        let (kind, unit) = (attribute.kind(), attribute.time_unit());
        self.columns.push(FixedColumn { number, place: place.clone(), kind, unit });
    }

    pub(crate) fn len(&self) -> usize {
        self.columns.len()
    }

    /// One cell to each of its columns; whether there was a value for each.
    pub(crate) fn extract(&self, data: &[u8], cells: &mut [CellBuffer]) -> bool {
        let mut all = true;
        for column in &self.columns {
            let Some(into) = cells.get_mut(column.number) else { continue };
            let nulls = into.nulls();
            column.push(std::iter::once(data), into);
            all &= into.nulls() == nulls;
        }
        all
    }

    /// Reads elements of `size` bytes that lie one behind the other, and pushes one cell of each to each of `cells`, which have
    /// room for them; bytes behind the last whole element are left alone. Gives the number of elements that have not all
    /// values: it is the same as if each were read alone. Of a size of 0 there are none.
    pub fn extract_many(&self, elements: &[u8], size: usize, cells: &mut [CellBuffer]) -> u64 {
        if size == 0 {
            return 0;
        }
        let mut whole = true;
        for column in &self.columns {
            let Some(into) = cells.get_mut(column.number) else { continue };
            let nulls = into.nulls();
            column.push(elements.chunks_exact(size), into);
            whole &= into.nulls() == nulls;
        }
        if whole { 0 } else { self.lacking(elements.len() / size, cells) }
    }

    /// How many of the last `count` elements lack a value.
    fn lacking(&self, count: usize, cells: &[CellBuffer]) -> u64 {
        let valid =
            |column: &FixedColumn| cells.get(column.number).map(CellBuffer::valid).unwrap_or_default();
        let lacks = |back: &usize| {
            self.columns.iter().any(|column| {
                let valid = valid(column);
                valid.len().checked_sub(*back).is_some_and(|at| !valid[at])
            })
        };
        (1..=count).filter(lacks).count() as u64
    }
}

/// Of a schema all of whose attributes lie at fixed places.
pub(crate) fn all_fixed(attributes: &[Attribute]) -> bool {
    !attributes.is_empty() && attributes.iter().all(|attribute| matches!(attribute.from(), From::At(_)))
}

fn load<const N: usize>(bytes: &[u8; N], order: Order) -> u64 {
    let mut all = [0; 8];
    match order {
        Order::Little => {
            all[..N].copy_from_slice(bytes);
            u64::from_le_bytes(all)
        }
        Order::Big => {
            all[8 - N..].copy_from_slice(bytes);
            u64::from_be_bytes(all)
        }
    }
}

/// The same number of `width` bytes with its sign in 64 bits.
fn signed(raw: u64, width: usize) -> i64 {
    let unused = 64 - 8 * width as u32;
    (raw << unused) as i64 >> unused
}

impl FixedColumn {
    fn push<'a>(&self, elements: impl Iterator<Item = &'a [u8]>, into: &mut CellBuffer) {
        let (kind, unit) = (self.kind, self.unit);
        match self.place.layout {
            Layout::Unsigned(Bytes { width, order }, bits) => {
                let (from, count) = bits.unwrap_or((0, 8 * width as u32));
                let mask = u64::MAX >> (64 - count);
                let cell = move |raw: u64| {
                    let number = raw >> from & mask;
                    match kind {
                        Type::Bool => Some(u64::from(number != 0)),
                        Type::Int => Some(value::int(number as i64)),
                        Type::Time => unit.whole(number.into()).map(value::int),
                        _ => Some(number),
                    }
                };
                self.sized(elements, into, width, order, cell);
            }
            Layout::Signed(Bytes { width, order }) => {
                let cell = move |raw| match kind {
                    Type::Time => unit.whole(signed(raw, width).into()).map(value::int),
                    _ => Some(value::int(signed(raw, width))),
                };
                self.sized(elements, into, width, order, cell);
            }
            Layout::Float32(order) => {
                self.words::<4>(elements, into, order, |raw| {
                    float(f64::from(f32::from_bits(raw as u32)), kind, unit)
                });
            }
            Layout::Float64(order) => {
                self.words::<8>(elements, into, order, |raw| float(f64::from_bits(raw), kind, unit));
            }
            Layout::Mac => self.words::<6>(elements, into, Order::Big, Some),
            Layout::Ipv4 if kind == Type::Ipv4 => self.words::<4>(elements, into, Order::Big, Some),
            Layout::Ipv4 => self.each(elements, into, |bytes, into| {
                bytes.first_chunk().map(|octets| into.wide(value::mapped(*octets)))
            }),
            Layout::Ipv6 => self.each(elements, into, |bytes, into| {
                bytes.first_chunk().map(|octets| into.wide(u128::from_be_bytes(*octets)))
            }),
            Layout::Raw(count) => {
                self.each(elements, into, |bytes, into| bytes.get(..count).map(|bytes| into.bytes(bytes)));
            }
            Layout::Text(count) => self.each(elements, into, |bytes, into| {
                let text = bytes.get(..count)?;
                let end = text.iter().position(|byte| *byte == 0).unwrap_or(count);
                std::str::from_utf8(&text[..end]).ok().map(|text| into.bytes(text.as_bytes()))
            }),
        }
    }

    /// Numbers of a width that is known only now.
    fn sized<'a>(
        &self,
        elements: impl Iterator<Item = &'a [u8]>,
        into: &mut CellBuffer,
        width: usize,
        order: Order,
        cell: impl Fn(u64) -> Option<u64>,
    ) {
        match width {
            1 => self.words::<1>(elements, into, order, cell),
            2 => self.words::<2>(elements, into, order, cell),
            4 => self.words::<4>(elements, into, order, cell),
            _ => self.words::<8>(elements, into, order, cell),
        }
    }

    fn words<'a, const N: usize>(
        &self,
        elements: impl Iterator<Item = &'a [u8]>,
        into: &mut CellBuffer,
        order: Order,
        cell: impl Fn(u64) -> Option<u64>,
    ) {
        self.each(elements, into, |bytes, into| {
            bytes.first_chunk::<N>().and_then(|bytes| cell(load(bytes, order))).map(|word| into.word(word))
        });
    }

    /// What `put` does not find is null.
    fn each<'a>(
        &self,
        elements: impl Iterator<Item = &'a [u8]>,
        into: &mut CellBuffer,
        put: impl Fn(&'a [u8], &mut CellBuffer) -> Option<()>,
    ) {
        for element in elements {
            if element.get(self.place.offset..).and_then(|bytes| put(bytes, into)).is_none() {
                into.null();
            }
        }
    }
}

fn float(number: f64, kind: Type, unit: TimeUnit) -> Option<u64> {
    match kind {
        Type::Time => unit.float(number).map(value::int),
        _ => Some(value::float(number)),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Cell, Element, Extractor, Schema};
    use holdfast_format::{CellBuffer, Cells};
    use proptest::prelude::*;

    fn cells(schema: &Schema, elements: usize) -> Vec<CellBuffer> {
        schema.classes().iter().map(|class| CellBuffer::new(class, elements, 1 << 16)).collect()
    }

    fn first(buffer: &CellBuffer) -> Option<Cell<'_>> {
        buffer.valid().first().filter(|valid| **valid).map(|_| match buffer.cells() {
            Cells::Words(words) => Cell::Word(words[0]),
            Cells::Wide(wide) => Cell::Wide(wide[0]),
            Cells::Bytes(ends, bytes) => Cell::Bytes(&bytes[..ends[0] as usize]),
        })
    }

    /// What stands at the places of one element.
    fn check(attribute: &str, data: &[u8], wanted: Option<Cell<'_>>) {
        let schema = Schema::typed([attribute]).unwrap();
        let mut buffers = cells(&schema, 1);
        let outcome = Extractor::new(&schema).extract(&Element::of(data), &mut buffers);
        assert_eq!(first(&buffers[0]), wanted, "{attribute} of {data:02x?}");
        assert_eq!(outcome.undecodable, wanted.is_none());
    }

    #[test]
    fn every_layout_is_read_as_it_says() {
        let data: Vec<u8> = (0..32).map(|n| 0x80 + n).collect();
        let word = |word| Some(Cell::Word(word));
        let int = |number: i64| word(number as u64 ^ 1 << 63);
        check("a:uint=at:1:u8", &data, word(0x81));
        check("a:uint=at:1:u16le", &data, word(0x8281));
        check("a:uint=at:1:u16be", &data, word(0x8182));
        check("a:uint=at:1:u32be", &data, word(0x8182_8384));
        check("a:uint=at:0:u64le", &data, word(0x8786_8584_8382_8180));
        check("a:int=at:1:i8", &data, int(-127));
        check("a:int=at:0:i16be", &data, int(-0x7f7f));
        check("a:int=at:0:i32le", &data, int(i64::from(0x8382_8180_u32 as i32)));
        check("a:int=at:0:i64be", &data, int(0x8081_8283_8485_8687_u64 as i64));
        check("a:int=at:0:u32le", &data, int(0x8382_8180));
        check("a:uint=at:0:u32le:bits0..24", &data, word(0x82_8180));
        check("a:uint=at:0:u32le:bits31..32", &data, word(1));
        check("a:uint=at:0:u64le:bits0..64", &data, word(0x8786_8584_8382_8180));
        check("a:bool=at:0:u8:bits0..7", &data, word(0));
        check("a:bool=at:0:u8", &data, word(1));
        check("a:ipv4=at:2:ipv4", &data, word(0x8283_8485));
        check("a:ip=at:2:ipv4", &data, Some(Cell::Wide(0xffff_8283_8485)));
        check("a:mac=at:2:mac", &data, word(0x8283_8485_8687));
        let wide = Some(Cell::Wide(0x8081_8283_8485_8687_8889_8a8b_8c8d_8e8f));
        check("a:ipv6=at:0:ipv6", &data, wide);
        check("a:ip=at:0:ipv6", &data, wide);
        check("a:binary=at:30:bytes2", &data, Some(Cell::Bytes(&[0x9e, 0x9f])));
        check("a:binary=at:30:bytes3", &data, None);
        check("a:text=at:0:text2", &data, None);
        check("a:text=at:1:text5", b".spam\0", Some(Cell::Bytes(b"spam")));
        check("a:text=at:1:text7", b".\0\0\0\0\0\0\0", Some(Cell::Bytes(b"")));
        check("a:text=at:0:text5", b"ab\0cd", Some(Cell::Bytes(b"ab")));
        check("a:uint=at:31:u16le", &data, None);
        check("a:uint=at:0:u8", b"", None);
        for snr in [1.5f64, -1.5, f64::NAN] {
            let cell = Some(crate::Value::Float(snr).cell());
            check("a:float=at:1:f64le", &[&[9], &snr.to_le_bytes()[..]].concat(), cell);
            check("a:float=at:1:f64be", &[&[9], &snr.to_be_bytes()[..]].concat(), cell);
            check("a:float=at:1:f32be", &[&[9], &(snr as f32).to_be_bytes()[..]].concat(), cell);
        }
    }

    #[test]
    fn times_are_nanoseconds_whatever_they_count() {
        let time = |nanos: i64| Some(crate::Value::Time(holdfast_base::Timestamp(nanos)).cell());
        check("a:time=at:0:u32be", &[0, 0, 1, 0], time(256_000_000_000));
        check("a:time=at:0:u8,unit=ms", &[7], time(7_000_000));
        check("a:time=at:0:i8,unit=us", &[0xff], time(-1000));
        check("a:time=at:0:u64le,unit=ns", &u64::MAX.to_le_bytes(), None);
        check("a:time=at:0:f64le", &1.5f64.to_le_bytes(), time(1_500_000_000));
        check("a:time=at:0:f64le", &f64::NAN.to_le_bytes(), None);
    }

    #[test]
    fn the_event_time_is_told() {
        let schema = Schema::typed(["event_time:time=at:0:u8"]).unwrap();
        let mut extractor = Extractor::new(&schema);
        let mut event =
            |data: &[u8]| extractor.extract(&Element::of(data), &mut cells(&schema, 1)).event_time;
        assert_eq!(event(&[2]), Some(holdfast_base::Timestamp(2_000_000_000)));
        assert_eq!(event(&[]), None);
    }

    proptest! {
        /// Many at once come to the same as one by one.
        #[test]
        fn many_are_each_as_if_alone(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'a')], 0..400), size in 1..30usize
        ) {
            let schema = Schema::typed([
                "a:uint=at:0:u32le:bits3..17", "b:text=at:4:text4", "c:ip=at:8:ipv4", "d:time=at:2:i64be,unit=us",
                "e:float=at:12:f32le", "f:binary=at:1:bytes3",
            ]).unwrap();
            let count = bytes.len() / size;
            let mut extractor = Extractor::new(&schema);
            let mut many = cells(&schema, count);
            let lacking = extractor.fixed().unwrap().extract_many(&bytes, size, &mut many);
            let mut single = cells(&schema, count);
            let alone = bytes.chunks_exact(size).filter(|element| {
                extractor.extract(&Element::of(element), &mut single).undecodable
            });
            prop_assert_eq!(lacking, alone.count() as u64);
            for (many, single) in many.iter().zip(&single) {
                prop_assert_eq!((many.cells(), many.valid()), (single.cells(), single.valid()));
                prop_assert_eq!(many.len(), count);
            }
        }
    }
}
