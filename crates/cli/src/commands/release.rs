//! `holdfast release`: let what was held expire in its turn.

use crate::args::AuditArgs;
use crate::args::RingArg;
use crate::out::{Out, notices};
use holdfast_base::failure::Result;
use holdfast_base::{HoldId, UnitError};
use holdfast_client::json::ReleasedHold;
use holdfast_client::orders;
use holdfast_ring::{Order, Outcome, ReleaseRequest};

/// End a hold: its data expires in turn
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  holdfast release lab.hf 3")]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    /// Number of the hold, as listed by `holdfast holds`
    #[arg(value_name = "ID", value_parser = number)]
    id: u64,
    #[command(flatten)]
    because: AuditArgs,
}

fn number(text: &str) -> std::result::Result<u64, UnitError> {
    let wrong = |_| UnitError::new("hold", text, "its number, as `holdfast holds` lists it");
    text.parse().map_err(wrong)
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let (hold, by) = (HoldId(args.id), args.because.attribution());
    let order = Some(orders::new_id()?);
    let order = ReleaseRequest { hold, reason: by.reason(), owner: by.owner(), order };
    let outcome = orders::give(&args.ring.path()?, &Order::Release(order), &notices())?;
    let Outcome::Released { slots } = outcome else { return Err(orders::unexpected(&outcome)) };
    if out.is_json() {
        return out.object(&ReleasedHold { id: args.id, slots });
    }
    let what = if slots == 1 { "slot is" } else { "slots are" };
    out.line(format_args!("released hold {}: {slots} {what} held no longer", args.id))
}
