//! Ready-made lists of attributes: `packets`, `packets:src,inner_src,vxlan=8472`, `vdif`, `spead`, `dada`, `sigproc`, `mcap`, `none`.

use crate::cursor::Cursor;
use crate::packet::VXLAN;
use crate::{
    Attribute, DadaKey, From, PacketField, Problem, SchemaError, SigprocField, SpeadField, Type, VdifField,
    VxlanPorts, dada, sigproc, vdif,
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
        "packets" => {
            let usual = &PacketField::ALL[..PacketField::USUAL];
            let (some, ports) =
                with_option(&mut cursor, usual, PacketField::parse, VXLAN, VxlanPorts::parse)?;
            if ports != VxlanPorts::default() && !some.iter().any(|field| field.is_of_tunnels()) {
                return Err(
                    cursor.wrong(Problem::Wanted("a field of tunnels, such as `inner_src`, before `vxlan=`"))
                );
            }
            let attribute = |field: PacketField| {
                let ports = if field.is_of_tunnels() { ports } else { VxlanPorts::default() };
                Attribute::plain(field.name(), field.kind(), From::Packet(field, ports))
            };
            Ok(some.into_iter().map(attribute).collect())
        }
        "vdif" => {
            let (some, rate) =
                with_option(&mut cursor, &VdifField::ALL, VdifField::parse, vdif::RATE, vdif::rate)?;
            if rate.is_some() && !some.contains(&VdifField::EventTime) {
                return Err(cursor.wrong(Problem::Wanted("the field `event_time` before `rate=`")));
            }
            let attribute = |field: VdifField| {
                let rate = rate.filter(|_| field == VdifField::EventTime);
                Attribute::plain(field.name(), field.kind(), From::Vdif(field, rate))
            };
            Ok(some.into_iter().map(attribute).collect())
        }
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

/// Attributes of all fields, or of those behind `:`.
fn fields<F: Copy>(
    cursor: &mut Cursor<'_>,
    all: &[F],
    parse: impl Fn(&mut Cursor<'_>) -> Result<F, SchemaError>,
    attribute: impl Fn(F) -> Attribute,
) -> Result<Vec<Attribute>, SchemaError> {
    let some = listed(cursor, all, parse, None)?;
    Ok(some.into_iter().map(attribute).collect())
}

/// All fields, or those behind `:`, and the option at the end that begins with `begin`.
fn with_option<F: Copy, O>(
    cursor: &mut Cursor<'_>,
    all: &[F],
    parse: impl Fn(&mut Cursor<'_>) -> Result<F, SchemaError>,
    begin: &str,
    option: impl Fn(&mut Cursor<'_>) -> Result<O, SchemaError>,
) -> Result<(Vec<F>, O), SchemaError> {
    let some = listed(cursor, all, parse, Some(begin))?;
    let option = option(cursor)?;
    if cursor.is_done() { Ok((some, option)) } else { Err(cursor.wrong(Problem::Wanted("the end"))) }
}

/// All fields, or those behind `:`, up to the end or to an option.
fn listed<F: Copy>(
    cursor: &mut Cursor<'_>,
    all: &[F],
    parse: impl Fn(&mut Cursor<'_>) -> Result<F, SchemaError>,
    option: Option<&str>,
) -> Result<Vec<F>, SchemaError> {
    let is_over = |cursor: &Cursor<'_>| {
        cursor.is_done() || option.is_some_and(|begin| cursor.rest().starts_with(begin))
    };
    if is_over(cursor) {
        return Ok(all.to_vec());
    }
    cursor.expect(":", "`:` and some of the fields, or the end,")?;
    let mut some = Vec::new();
    loop {
        some.push(parse(cursor)?);
        if is_over(cursor) {
            return Ok(some);
        }
        cursor.expect(",", "`,` or the end")?;
    }
}
