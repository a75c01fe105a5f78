//! What goes on record: who takes data out of a ring, and why.

use crate::commands::hold::who;
use crate::orders;
use crate::session::{link, refused};
use holdfast_base::MAX_REASON;
use holdfast_base::failure::Result;
use holdfast_reader::{RingReader, Selection};
use holdfast_ring::{ExportRequest, Order, Outcome};
use std::path::Path;

/// Who does something, and why.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Because {
    /// Reason, for the audit log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Owner, for the audit log (default: you)
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
}

impl Because {
    /// Why; nothing where nobody said.
    pub(crate) fn reason(&self) -> String {
        self.reason.clone().unwrap_or_default()
    }

    /// Who.
    pub(crate) fn owner(&self) -> String {
        self.owner.clone().unwrap_or_else(who)
    }

    /// Puts on record that `what` is taken out of a selection, before it is, by the recorder that `reader` asks. Where none
    /// runs, see [`Self::export_alone`].
    pub(crate) fn export(&self, reader: &mut RingReader, selection: &Selection, what: &str) -> Result<()> {
        let Some(connection) = reader.connection() else { return Ok(()) };
        noted(connection.order(self.order(selection, what)).map_err(|error| link(&error))?)
    }

    /// The same where no recorder runs, and somebody said who he is or why: otherwise a ring that nobody records to is only read.
    /// Readers that were opened before are of the ring as it was: whether there are any such.
    pub(crate) fn export_alone(&self, ring: &Path, selection: &Selection, what: &str) -> Result<bool> {
        if self.reason.is_none() && self.owner.is_none() || orders::recorder(ring)?.is_some() {
            return Ok(false);
        }
        noted(orders::give(ring, &self.order(selection, what))?)?;
        Ok(true)
    }

    fn order(&self, selection: &Selection, what: &str) -> Order {
        let mut reason = match &self.reason {
            Some(reason) => format!("{reason} ({what})"),
            None => what.to_owned(),
        };
        reason.truncate(reason.floor_char_boundary(MAX_REASON));
        let Selection { streams, range } = selection.clone();
        Order::Export(ExportRequest { streams, range, reason, owner: self.owner() })
    }
}

fn noted(outcome: Outcome) -> Result<()> {
    match outcome {
        Outcome::Noted => Ok(()),
        Outcome::Refused(refusal) => Err(refused(&refusal)),
        other => Err(orders::unexpected(&other)),
    }
}
