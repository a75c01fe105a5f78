//! Ready-made lists of attributes: `packets`, `packets:src,dst`, `vdif`, `spead`, `none`.

use crate::cursor::Cursor;
use crate::{Attribute, From, PacketField, Problem, SchemaError, SpeadField, VdifField};

/// What a text without `=` stands for; nothing for `none`.
pub(crate) fn expand(text: &str) -> Result<Vec<Attribute>, SchemaError> {
    let mut cursor = Cursor::new(text);
    match cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_') {
        "none" if cursor.is_done() => Ok(Vec::new()),
        "packets" => fields(&mut cursor, &PacketField::ALL, PacketField::parse, |field| {
            Attribute::plain(field.name(), field.kind(), From::Packet(field))
        }),
        "vdif" => fields(&mut cursor, &VdifField::ALL, VdifField::parse, |field| {
            Attribute::plain(field.name(), field.kind(), From::Vdif(field))
        }),
        "spead" => fields(&mut cursor, &SpeadField::ALL, SpeadField::parse, |field| {
            Attribute::plain(field.name(), SpeadField::KIND, From::Spead(field))
        }),
        _ => {
            Err(cursor
                .wrong_at(0, Problem::Wanted("`NAME:TYPE=FROM`, or one of packets, vdif, spead and none,")))
        }
    }
}

/// All fields, or those behind `:`.
fn fields<F: Copy>(
    cursor: &mut Cursor<'_>,
    all: &[F],
    parse: impl Fn(&mut Cursor<'_>) -> Result<F, SchemaError>,
    attribute: impl Fn(F) -> Attribute,
) -> Result<Vec<Attribute>, SchemaError> {
    if cursor.is_done() {
        return Ok(all.iter().map(|field| attribute(*field)).collect());
    }
    cursor.expect(":", "`:` and some of the fields, or the end,")?;
    let mut some = Vec::new();
    loop {
        some.push(attribute(parse(cursor)?));
        if cursor.is_done() {
            return Ok(some);
        }
        cursor.expect(",", "`,` or the end")?;
    }
}
