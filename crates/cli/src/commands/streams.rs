//! `holdfast streams`: what is recorded on a ring, and how much of it was ever lost.

use crate::args::RingArg;
use crate::out::Out;
use holdfast_attributes::Schema;
use holdfast_base::ByteSize;
use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_base::grouped;
use holdfast_client::json::{self, Stream};
use holdfast_client::session::ring_failure;
use holdfast_client::table::{Side, Table};
use holdfast_client::times;
use holdfast_reader::RingReader;
use holdfast_ring::StreamStatus;

/// List the streams of a ring, with received and lost elements over its life
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Losses upstream and purged elements are in neither `lost` nor `gaps`: `holdfast gaps` lists them.\n\n\
    Examples:\n  holdfast streams lab.hf\n  holdfast streams lab.hf --attributes"
)]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    /// List the attributes of each stream, with type, origin, unit and comment
    #[arg(long)]
    attributes: bool,
}

/// The schema of a stream.
fn schema(reader: &mut RingReader, stream: &StreamStatus) -> Result<Schema> {
    let text = reader.schema(stream.id).map_err(|error| ring_failure(&error))?;
    Schema::parse(&text).map_err(|why| {
        let what = format_args!("the attributes of stream {} are of a later release ({why})", stream.name);
        Failure::failed(what).advice("use commands of the recorder's release")
    })
}

/// A line for every attribute of every stream.
fn attributes(streams: &[StreamStatus], schemas: &[Schema]) -> Table {
    let columns = ["stream", "attribute", "type", "from", "unit", "comment"];
    let mut table = Table::new(&columns.map(|column| (column, Side::Left)));
    for (stream, schema) in streams.iter().zip(schemas) {
        for attribute in schema.attributes() {
            let json::Attribute { name, kind, from, unit, comment } = attribute.into();
            let (unit, comment) = (unit.unwrap_or("-"), comment.unwrap_or_default());
            table.row([
                stream.name.clone(),
                name.to_owned(),
                kind,
                from,
                unit.to_owned(),
                comment.to_owned(),
            ]);
        }
    }
    table
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let (_, mut reader) = args.ring.open()?;
    let streams = reader.streams().map_err(|error| ring_failure(&error))?;
    let schemas = if args.attributes {
        streams.iter().map(|stream| schema(&mut reader, stream)).collect::<Result<Vec<_>>>()?
    } else {
        Vec::new()
    };
    let mut table = Table::new(&[
        ("stream", Side::Left),
        ("kind", Side::Left),
        ("framing", Side::Left),
        ("elements", Side::Right),
        ("bytes", Side::Right),
        ("lost", Side::Right),
        ("gaps", Side::Right),
        ("preamble", Side::Right),
        ("attributes", Side::Right),
        ("since", Side::Left),
    ]);
    for (at, stream) in streams.iter().enumerate() {
        let counters = &stream.counters;
        if out.is_json() {
            out.object(&Stream {
                id: stream.id.0,
                name: &stream.name,
                kind: stream.kind.name(),
                framing: &stream.framing,
                created: stream.created,
                preamble_version: stream.preamble,
                preamble_bytes: stream.preamble_bytes,
                attributes: stream.schema,
                schema: schemas.get(at).map(|schema| schema.attributes().iter().map(Into::into).collect()),
                counters: counters.into(),
            })?;
            continue;
        }
        let lost = grouped(counters.lost) + if counters.unknown_gaps > 0 { " + unknown" } else { "" };
        table.row([
            stream.name.clone(),
            stream.kind.name().to_owned(),
            stream.framing.clone(),
            grouped(counters.received),
            ByteSize(counters.received_bytes).to_string(),
            lost,
            grouped(counters.gaps),
            if stream.preamble > 0 {
                ByteSize(stream.preamble_bytes.into()).to_string()
            } else {
                "-".to_owned()
            },
            if stream.schema > 0 { stream.schema.to_string() } else { "-".to_owned() },
            times::to_the_second(stream.created),
        ]);
    }
    if streams.is_empty() {
        if !out.is_json() {
            out.line("no streams: nothing was recorded on this ring yet")?;
        }
        return Err(Failure::said(Kind::Nothing));
    }
    match out.is_json() {
        true => Ok(()),
        false if args.attributes => {
            let table = attributes(&streams, &schemas);
            out.table(&table)
        }
        false => out.table(&table),
    }
}
