//! What goes on record: who takes data out of a ring, and why. Where no recorder runs a ring is only read, and nothing is.

use crate::commands::hold::who;
use crate::failure::Result;
use crate::orders;
use crate::session::{link, refused};
use holdfast_base::MAX_REASON;
use holdfast_link::{RingReader, Selection};
use holdfast_ring::{ExportRequest, Order, Outcome};

/// Who does something, and why.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Because {
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Who does it, for the audit log (you, otherwise)
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

    /// Puts on record that `what` is taken out of a selection, before it is.
    pub(crate) fn export(&self, reader: &mut RingReader, selection: &Selection, what: &str) -> Result<()> {
        let Some(connection) = reader.connection() else { return Ok(()) };
        let mut reason = match &self.reason {
            Some(reason) => format!("{reason} ({what})"),
            None => what.to_owned(),
        };
        reason.truncate(reason.floor_char_boundary(MAX_REASON));
        let Selection { streams, range } = selection.clone();
        let order = Order::Export(ExportRequest { streams, range, reason, owner: self.owner() });
        match connection.order(order).map_err(|error| link(&error))? {
            Outcome::Noted => Ok(()),
            Outcome::Refused(refusal) => Err(refused(&refusal)),
            other => Err(orders::unexpected(&other)),
        }
    }
}
