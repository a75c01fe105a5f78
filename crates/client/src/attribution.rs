//! Attribution of acts: who takes data out of a ring and why, as the audit log keeps it.

use crate::notices::Notices;
use crate::orders;
use crate::session::{protocol_failure, refused};
use holdfast_base::MAX_REASON;
use holdfast_base::failure::Result;
use holdfast_reader::{RingReader, Selection};
use holdfast_ring::{ExportRequest, Order, Outcome};
use std::path::Path;

/// Owner and reason of an act.
#[derive(Clone, Debug, Default)]
pub struct Attribution {
    /// Reason, for the audit log.
    pub reason: Option<String>,
    /// Owner, for the audit log; the current user where nobody is named.
    pub owner: Option<String>,
}

impl Attribution {
    /// Reason; empty where nobody gave one.
    pub fn reason(&self) -> String {
        self.reason.clone().unwrap_or_default()
    }

    /// Owner; the current user where nobody is named.
    pub fn owner(&self) -> String {
        self.owner.clone().unwrap_or_else(current_user)
    }

    /// Puts on record that `what` is taken out of a selection, before it is, by the recorder that `reader` asks. Where none
    /// runs, see [`Self::export_alone`].
    pub fn export(&self, reader: &mut RingReader, selection: &Selection, what: &str) -> Result<()> {
        let Some(connection) = reader.connection() else { return Ok(()) };
        noted(connection.order(self.order(selection, what)).map_err(|error| protocol_failure(&error))?)
    }

    /// The same where no recorder runs, and somebody said who he is or why: otherwise a ring that nobody records to is only read.
    /// Readers that were opened before are of the ring as it was: whether there are any such.
    pub fn export_alone(
        &self,
        ring: &Path,
        selection: &Selection,
        what: &str,
        notices: &Notices,
    ) -> Result<bool> {
        if self.reason.is_none() && self.owner.is_none() || orders::recorder(ring)?.is_some() {
            return Ok(false);
        }
        noted(orders::give(ring, &self.order(selection, what), notices)?)?;
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

/// Name of the user who gives an order: who asked for root's rights, or else who runs this.
pub fn current_user() -> String {
    let named = ["SUDO_USER", "USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    named.filter(|user| !user.is_empty()).unwrap_or_else(|| {
        let uid = rustix::process::getuid().as_raw();
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        name_of(uid, &users).map_or_else(|| format!("uid {uid}"), str::to_owned)
    })
}

/// The name of a user in a file of users.
fn name_of(uid: u32, users: &str) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_names() {
        let users = "root:x:0:0::/:/bin/sh\n\nbroken\nada:x:1000:1000:Ada:/home/ada:/bin/sh\n";
        assert_eq!(
            [name_of(0, users), name_of(1000, users), name_of(7, users)],
            [Some("root"), Some("ada"), None]
        );
    }
}
