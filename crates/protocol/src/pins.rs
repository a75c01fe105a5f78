//! Pins of a search: slots that the recorder keeps from expiring as long as other slots can be overwritten.
//!
//! The pins of a connection are those of its last request, and end with it. The search chooses the slots and renews them.

use crate::client::Connection;
use holdfast_base::Sequence;

/// The pins of one search; none where no recorder runs, or one that knows of none.
#[derive(Debug, Default)]
pub struct Pins {
    connection: Option<Connection>,
}

impl Pins {
    /// Those of a connection, on which nothing else is waited for.
    pub fn over(connection: Connection) -> Self {
        Self { connection: Some(connection) }
    }

    /// Whether there is anybody to ask for them.
    pub fn is_open(&self) -> bool {
        self.connection.is_some()
    }

    /// Pins these slots, in the place of those that were pinned before; at most [`MAX_PINS`](crate::wire::MAX_PINS), those that
    /// are needed first in front. How many are.
    pub fn keep(&mut self, sequences: Vec<Sequence>) -> usize {
        let asked = self.connection.as_mut().map(|connection| connection.pin(sequences));
        if let Some(Ok(granted)) = asked {
            return granted as usize;
        }
        // A recorder of an earlier release, or one that has gone: who reads is told what has expired all the same.
        self.connection = None;
        0
    }
}
