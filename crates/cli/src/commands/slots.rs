//! `holdfast slots`: every slot of a ring, by place.

use crate::args::RingArg;
use crate::out::Out;
use holdfast_base::Timestamp;
use holdfast_base::failure::Result;
use holdfast_client::json::Slot;
use holdfast_client::session::ring_failure;
use holdfast_client::table::{Side, Table};
use holdfast_client::times;
use holdfast_planning::guarantee;

/// List the slots of a ring, with state and order of expiry
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Slots expire in the order of their ages: the lowest one that is neither free nor held is next.\n\n\
    Example:\n  holdfast slots lab.hf"
)]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let (path, mut reader) = args.ring.open()?;
    reader.learn_times().map_err(|error| ring_failure(&error))?;
    let slots = reader.slots().map_err(|error| ring_failure(&error))?;
    let mut table = Table::new(&[
        ("slot", Side::Right),
        ("state", Side::Left),
        ("sequence", Side::Right),
        ("age", Side::Right),
        ("first arrival", Side::Left),
        ("last arrival", Side::Left),
    ]);
    for slot in &slots {
        let row = Slot::from(slot);
        if out.is_json() {
            out.object(&row)?;
            continue;
        }
        let number = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
        let time = |time: Option<Timestamp>| time.map_or("-".to_owned(), times::to_the_milli);
        table.row([
            row.slot.to_string(),
            row.state.to_owned(),
            number(row.sequence),
            number(row.age),
            time(row.first),
            time(row.last),
        ]);
    }
    if out.is_json() {
        return Ok(());
    }
    out.table(&table)?;
    let status = reader.status().map_err(|error| ring_failure(&error))?;
    for line in guarantee::lines(guarantee::seen(&path, reader.superblock(), &status).as_ref()) {
        out.line(line)?;
    }
    Ok(())
}
