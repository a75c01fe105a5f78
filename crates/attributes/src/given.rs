//! Attribute values that a producer sends in a header before each element: in the order of the attributes, each a
//! little-endian length of 2 bytes and that many bytes. How a header is framed is not known here.

use crate::{Cell, Outcome, Type, value};
use holdfast_format::{CellBuffer, MAX_TEXT};

/// The length that stands for a null.
const NULL: u16 = u16::MAX;

/// Adds a value to a header; one that is too long is a null.
pub fn push(header: &mut Vec<u8>, value: Option<&[u8]>) {
    match value.and_then(|value| Some((value, u16::try_from(value.len()).ok().filter(|len| *len != NULL)?))) {
        Some((value, len)) => {
            header.extend_from_slice(&len.to_le_bytes());
            header.extend_from_slice(value);
        }
        None => header.extend_from_slice(&NULL.to_le_bytes()),
    }
}

/// The values of a header, one after the other, as far as they are there: `None` for a null.
pub fn values(mut header: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    std::iter::from_fn(move || match take(&mut header) {
        Given::Value(value) => Some(Some(value)),
        Given::Null => Some(None),
        Given::Nothing | Given::Cut => None,
    })
}

/// One cell to each of these columns. Where the header ends between two values the rest are null: who gives fewer than a schema
/// has by now does nothing wrong, nor does who gives more.
pub(crate) fn extract(
    columns: &[(usize, Type)],
    header: Option<&[u8]>,
    cells: &mut [CellBuffer],
    outcome: &mut Outcome,
) {
    outcome.undecodable |= header.is_none();
    let mut rest = header.unwrap_or_default();
    for (number, kind) in columns {
        let cell = match take(&mut rest) {
            Given::Value(bytes) if bytes.len() > MAX_TEXT && matches!(kind, Type::Text | Type::Binary) => {
                outcome.too_long += 1;
                None
            }
            Given::Value(bytes) => {
                let cell = cell(*kind, bytes);
                outcome.undecodable |= cell.is_none();
                cell
            }
            Given::Null | Given::Nothing => None,
            Given::Cut => {
                outcome.undecodable = true;
                None
            }
        };
        match (cells.get_mut(*number), cell) {
            (Some(into), Some(cell)) => cell.push(into),
            (Some(into), None) => into.null(),
            (None, _) => {}
        }
    }
}

/// What stands next in a header.
enum Given<'a> {
    Value(&'a [u8]),
    Null,
    /// It is at its end.
    Nothing,
    /// The beginning of a value: nothing behind it means anything.
    Cut,
}

fn take<'a>(rest: &mut &'a [u8]) -> Given<'a> {
    if rest.is_empty() {
        return Given::Nothing;
    }
    let value = rest.split_first_chunk().and_then(|(len, behind)| match u16::from_le_bytes(*len) {
        NULL => Some((Given::Null, behind)),
        len => behind.split_at_checked(len.into()).map(|(value, behind)| (Given::Value(value), behind)),
    });
    let (given, behind) = value.unwrap_or((Given::Cut, &[]));
    *rest = behind;
    given
}

/// The cell of a value; `None` where its bytes are none of this type.
fn cell(kind: Type, bytes: &[u8]) -> Option<Cell<'_>> {
    let word = || bytes.try_into().ok().map(u64::from_le_bytes);
    Some(match kind {
        Type::Int | Type::Time => Cell::Word(value::int(word()? as i64)),
        Type::Uint => Cell::Word(word()?),
        Type::Float => Cell::Word(value::float(f64::from_bits(word()?))),
        Type::Bool => Cell::Word(u64::from(*bytes.first().filter(|_| bytes.len() == 1)? != 0)),
        Type::Text => Cell::Bytes(std::str::from_utf8(bytes).ok()?.as_bytes()),
        Type::Binary => Cell::Bytes(bytes),
        Type::Ipv4 => Cell::Word(value::ipv4(bytes.try_into().ok()?)),
        Type::Mac => Cell::Word(value::mac(bytes.try_into().ok()?)),
        Type::Ip if bytes.len() == 4 => Cell::Wide(value::mapped(bytes.try_into().ok()?)),
        Type::Ipv6 | Type::Ip => Cell::Wide(u128::from_be_bytes(bytes.try_into().ok()?)),
    })
}
