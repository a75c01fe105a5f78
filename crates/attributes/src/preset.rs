//! Ready-made lists of attributes: `packets`, `packets:src,dst`, `vdif`, `spead`, `dada`, `sigproc`, `mcap`, `none`.

use crate::cursor::Cursor;
use crate::{
    Attribute, DadaKey, From, PacketField, Problem, SchemaError, SigprocField, SpeadField, Type, VdifField,
    dada, sigproc,
};

/// What a replayed MCAP file gives with each message; its log time is the event time.
const MCAP: [(&str, Type); 4] =
    [("topic", Type::Text), ("sequence", Type::Uint), ("publish_time", Type::Time), ("channel", Type::Uint)];

/// What a text without `=` stands for; nothing for `none`.
pub(crate) fn expand(text: &str) -> Result<Vec<Attribute>, SchemaError> {
    let mut cursor = Cursor::new(text);
    match cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_') {
        "none" if cursor.is_done() => Ok(Vec::new()),
        // Values are given in just this order: all of them, or none.
        "mcap" if cursor.is_done() => {
            Ok(MCAP.map(|(name, kind)| Attribute::plain(name, kind, From::Given)).to_vec())
        }
        "packets" => fields(&mut cursor, &PacketField::ALL, PacketField::parse, |field| {
            Attribute::plain(field.name(), field.kind(), From::Packet(field))
        }),
        "vdif" => fields(&mut cursor, &VdifField::ALL, VdifField::parse, |field| {
            Attribute::plain(field.name(), field.kind(), From::Vdif(field))
        }),
        "spead" => fields(&mut cursor, &SpeadField::ALL, SpeadField::parse, |field| {
            Attribute::plain(field.name(), SpeadField::KIND, From::Spead(field))
        }),
        "dada" => {
            let usual: Vec<usize> = (0..dada::USUAL.len()).collect();
            fields(&mut cursor, &usual, dada_key, |at| {
                let (key, kind) = dada::USUAL[at];
                Attribute::plain(&key.to_ascii_lowercase(), kind, From::Dada(DadaKey(key.to_owned())))
            })
        }
        "sigproc" => {
            let usual: Vec<SigprocField> =
                sigproc::USUAL.iter().filter_map(|name| SigprocField::named(name)).collect();
            fields(&mut cursor, &usual, SigprocField::parse, |field| {
                let kind = field.gives().first().copied().unwrap_or(Type::Float);
                Attribute::plain(field.name(), kind, From::Sigproc(field))
            })
        }
        _ => Err(cursor.wrong_at(
            0,
            Problem::Wanted(
                "`NAME:TYPE=FROM`, or one of packets, vdif, spead, dada, sigproc, mcap and none,",
            ),
        )),
    }
}

/// One of the keys that are usual, in small letters.
fn dada_key(cursor: &mut Cursor<'_>) -> Result<usize, SchemaError> {
    let at = cursor.at();
    let name = cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
    dada::USUAL.iter().position(|(key, _)| key.eq_ignore_ascii_case(name)).ok_or_else(|| {
        let known = dada::USUAL.iter().map(|(key, _)| *key).collect();
        cursor.wrong_at(at, Problem::Field { of: "dada", name: name.to_owned(), known })
    })
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
