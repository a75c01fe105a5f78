//! Extensions of a hold. A recorder keeps what is found from expiring as soon as it takes the order. That all of it would survive
//! a crash is heard later: on a busy drive this takes seconds, and what arrives does not wait.

use holdfast_base::HoldId;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::Notices;
use holdfast_client::orders;
use holdfast_client::session::protocol_failure;
use holdfast_protocol::ProtocolError;
use holdfast_protocol::client::{Connection, ORDER_TIME};
use holdfast_ring::{ExtendRequest, Order, Outcome};
use std::path::Path;
use std::time::{Duration, Instant};

/// After this long without an answer the recorder is asked how it does, and again.
const LOOK: Duration = Duration::from_secs(2);

/// That all is durable was asked for.
struct Asked {
    request: u64,
    since: Instant,
    /// When the recorder was asked how it does, and whether that was told.
    looked: Instant,
    said: bool,
}

/// Gives what is found to whoever records.
pub(crate) struct Extensions<'a> {
    path: &'a Path,
    hold: HoldId,
    notices: &'a Notices,
    /// All is taken over the same connection, or nobody knows what is durable.
    recorder: Option<Connection>,
    /// Whether something came since it was last asked whether all is durable.
    owes: bool,
    asked: Option<Asked>,
    /// It has ended before that was answered.
    lost: bool,
}

impl<'a> Extensions<'a> {
    pub(crate) fn new(path: &'a Path, hold: HoldId, notices: &'a Notices) -> Self {
        Self { path, hold, notices, recorder: None, owes: false, asked: None, lost: false }
    }

    /// Whether all that was taken would survive a crash.
    pub(crate) fn is_sure(&self) -> bool {
        !self.owes && self.asked.is_none()
    }

    /// Whether the connection has ended before what was taken was said to be durable: a recorder may have ended with it.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Connects before the hold is read: what it has then others may have given, and whether that is durable is to be asked, too.
    pub(crate) fn begin(&mut self) -> Result<()> {
        self.recorder = orders::recorder(self.path)?;
        (self.owes, self.asked) = (self.recorder.is_some(), None);
        Ok(())
    }

    /// Something was found in slots that the hold keeps: it may be durable later than these.
    pub(crate) fn owe(&mut self) -> Result<()> {
        if self.recorder.is_none() {
            self.recorder = orders::recorder(self.path)?;
        }
        self.owes |= self.recorder.is_some();
        Ok(())
    }

    /// What the connection had ended with was found again.
    pub(crate) fn has_found(&mut self) {
        self.lost = false;
    }

    /// Makes the hold grow. Where no recorder runs that is durable.
    pub(crate) fn give(&mut self, request: &ExtendRequest) -> Result<Outcome> {
        let order = |durable| Order::Extend(ExtendRequest { durable, ..request.clone() });
        let mut is_new = self.recorder.is_none();
        loop {
            if self.recorder.is_none() {
                self.recorder = orders::recorder(self.path)?;
                is_new = true;
            }
            let Some(recorder) = &mut self.recorder else {
                return orders::ask(self.path, &order(true), self.notices);
            };
            match recorder.order(order(false)) {
                Ok(outcome) => {
                    self.owes |= matches!(outcome, Outcome::Extended { .. });
                    return Ok(outcome);
                }
                // It may be another one by now.
                Err(error) if !self.is_sure() || is_new => return Err(self.left(&error)),
                Err(_) => self.recorder = None,
            }
        }
    }

    /// Asks to hear when all that was taken would survive a crash; whether it does now.
    pub(crate) fn ask(&mut self) -> Result<bool> {
        let Some(recorder) = self.recorder.as_mut().filter(|_| self.owes && self.asked.is_none()) else {
            return Ok(false);
        };
        let (sequences, watermarks) = (Vec::new(), Vec::new());
        let all = ExtendRequest { hold: self.hold, sequences, watermarks, durable: true };
        match recorder.give(Order::Extend(all)) {
            Ok(request) => {
                let now = Instant::now();
                self.asked = Some(Asked { request, since: now, looked: now, said: false });
                self.owes = false;
                Ok(true)
            }
            Err(error) => Err(self.left(&error)),
        }
    }

    /// What is heard of that within some time, if anything is.
    pub(crate) fn hear(&mut self, within: Duration) -> Result<Option<Outcome>> {
        match self.heard(within) {
            Ok(heard) => Ok(heard),
            Err(error) => Err(self.left(&error)),
        }
    }

    fn heard(&mut self, within: Duration) -> std::result::Result<Option<Outcome>, ProtocolError> {
        let (Some(recorder), Some(asked)) = (&mut self.recorder, &mut self.asked) else { return Ok(None) };
        if let Some(outcome) = recorder.outcome_within(asked.request, within)? {
            self.asked = None;
            // What it is refused for does not make it durable.
            self.owes |= matches!(outcome, Outcome::Refused(_));
            return Ok(Some(outcome));
        }
        if asked.since.elapsed() >= ORDER_TIME {
            let (path, seconds) = (recorder.path().to_owned(), ORDER_TIME.as_secs());
            return Err(ProtocolError::Timeout { path, during: "order", seconds });
        }
        if asked.looked.elapsed() >= LOOK {
            orders::say_why(self.path, &recorder.status()?, &mut asked.said, self.notices);
            asked.looked = Instant::now();
        }
        Ok(None)
    }

    /// Nothing more is heard of this one.
    fn left(&mut self, error: &ProtocolError) -> Failure {
        self.lost |= !self.is_sure();
        (self.recorder, self.owes, self.asked) = (None, false, None);
        protocol_failure(error)
    }
}
