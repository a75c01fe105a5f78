//! Engine of a shipper: one loop that owns the state, takes sightings and answers, and starts actions.
//!
//! Decisions are those of `fleet` and `run_end`; reading and the network are the courier's.

mod answers;
mod destination;
mod sightings;
mod unsent;

use super::courier::Answer;
use super::files::{Files, Folder, Tracked};
use super::meter::Meter;
use super::pace::Pace;
use super::status::{Counts, Measured, Status};
use super::{Notice, ShipError, Until};
use crate::fleet::Fleet;
use crate::folder_scan::Found;
use crate::folder_watch::{FolderWatch, WatchOptions};
use crate::ledger::{Journal, Ledger};
use crate::settings::Settings;
use crate::sighting::Sighting;
use crate::throttle::Throttle;
use crate::transfer::Rules;
use holdfast_remote::{Site, UploadAddress};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use unsent::Unsent;

/// Age of unsent bytes at which a segment shorter than a block is sent.
const LAG: Duration = Duration::from_millis(500);

/// Answers that are recorded in one transaction.
const BATCH: usize = 256;

/// Interval of the status file.
const STATUS_EVERY: Duration = Duration::from_secs(1);

/// Interval of the ledger's rows of throughput.
const FLUSH_EVERY: Duration = Duration::from_secs(5);

/// Interval of looking for a stop.
const TICK: Duration = Duration::from_millis(250);

/// Sightings that wait for the engine.
const SIGHTINGS: usize = 1024;

/// Message to the engine.
enum Message {
    Sighting(usize, Sighting),
    Scanned { folder: usize, below: String, found: Vec<Found>, is_last: bool },
}

pub(super) struct Engine {
    settings: Settings,
    folders: Vec<Folder>,
    site: Site,
    /// Token that the site uses.
    token: Option<String>,
    fleet: Fleet<UploadAddress>,
    files: Files,
    ledger: Journal,
    /// True while the state cannot be written.
    is_unwritten: bool,
    unsent: Unsent,
    meter: Meter,
    pace: Pace,
    window: usize,
    /// True until the archive turns out to need lengths at first.
    can_defer: bool,
    throttle: Arc<Mutex<Throttle>>,
    started: Instant,
    answers: mpsc::UnboundedSender<Answer>,
    notices: Vec<Notice>,
    alarm: super::alarm::AlarmState,
    status: Status,
    reported: Option<Instant>,
    flushed: Option<Instant>,
}

/// Time since 1970 in milliseconds.
fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

impl Engine {
    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn rules(&self) -> Rules {
        let (block, window) = (self.settings.network.block, self.window);
        Rules { block, lag: LAG, window, can_defer: self.can_defer }
    }

    /// Runs a shipper until its end. `stop` is asked regularly.
    pub(super) async fn run(
        settings: Settings,
        until: Until,
        stop: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(&Notice),
    ) -> Result<Status, ShipError> {
        let mut ledger = Ledger::open(&settings.state.folder)?;
        let endpoint = settings.archive.endpoint()?;
        let site = Site::connect(&endpoint).map_err(|error| ShipError(error.message))?;
        let folders = settings.folders.iter().map(Folder::new).collect::<Result<Vec<_>, _>>();
        let mut folders = folders.map_err(|reason| ShipError(format!("cannot watch a folder: {reason}")))?;
        destination::bind(&mut ledger, &settings, endpoint.url.as_str(), &mut folders)?;
        let connections = settings.network.connections;
        let (answers, mut incoming) = mpsc::unbounded_channel();
        let limit = settings.network.rate_schedule().limit_at(jiff::Zoned::now().datetime());
        let mut engine = Self {
            token: endpoint.token,
            pace: Pace::new(connections, settings.network.compress),
            fleet: Fleet::new(connections),
            throttle: Arc::new(Mutex::new(Throttle::new(limit, Instant::now()))),
            folders,
            site,
            files: Files::default(),
            ledger: Journal::new(ledger),
            is_unwritten: false,
            unsent: Unsent::default(),
            meter: Meter::default(),
            window: 1,
            can_defer: true,
            started: Instant::now(),
            answers,
            notices: Vec::new(),
            alarm: super::alarm::AlarmState::default(),
            status: Status::default(),
            reported: None,
            flushed: None,
            settings,
        };
        let (messages, mut sightings) = mpsc::channel(SIGHTINGS);
        for (number, folder) in engine.folders.iter().enumerate() {
            let options = WatchOptions::default();
            let watch = FolderWatch::new(&folder.root, folder.filter.clone(), options);
            let mut watch = watch.map_err(|error| {
                ShipError(format!("cannot watch {}: {error}; check the folder", folder.root.display()))
            })?;
            let messages = messages.clone();
            tokio::spawn(async move {
                while messages.send(Message::Sighting(number, watch.next().await)).await.is_ok() {}
            });
        }
        let mut tick = tokio::time::interval(TICK);
        loop {
            let wake = engine.wakes_at().map(|at| engine.started + at);
            let wake = wake.unwrap_or_else(|| Instant::now() + Duration::from_hours(1));
            tokio::select! {
                biased;
                Some(first) = incoming.recv() => {
                    let mut next = Some(first);
                    let mut count = 0;
                    while let Some(answer) = next {
                        engine.answer(answer)?;
                        count += 1;
                        next = if count < BATCH { incoming.try_recv().ok() } else { None };
                    }
                    engine.sync()?;
                }
                Some(message) = sightings.recv() => {
                    engine.message(message, &messages)?;
                    engine.sync()?;
                }
                () = tokio::time::sleep_until(wake.into()) => {}
                _ = tick.tick() => {
                    engine.tick(None)?;
                    if stop() {
                        break;
                    }
                }
            }
            engine.end_quiet_runs();
            engine.start_actions();
            engine.notices.drain(..).for_each(|notice| tell(&notice));
            if until == Until::Shipped && engine.is_done() {
                break;
            }
        }
        engine.tick(Some(until))?;
        engine.notices.drain(..).for_each(|notice| tell(&notice));
        Ok(engine.status)
    }

    /// True if every file is delivered, or cannot be.
    fn is_done(&self) -> bool {
        let is_unreadable = |key| self.files.get(key).is_some_and(Tracked::is_unreadable);
        self.fleet.in_flight() == 0
            && self.folders.iter().all(|folder| folder.is_scanned)
            && self.fleet.transfers().all(|(key, transfer)| transfer.is_settled() || is_unreadable(key))
    }

    /// Makes the changes of the ledger durable. While its disk takes nothing, each tick tries again.
    fn sync(&mut self) -> Result<(), ShipError> {
        if self.is_unwritten {
            return Ok(());
        }
        let synced = self.sync_ledger()?;
        if synced.is_err() {
            self.note_state(synced);
        }
        Ok(())
    }

    /// Tries to make the changes of the ledger durable. The outer error stays, the inner one may pass.
    fn sync_ledger(&mut self) -> Result<Result<(), ShipError>, ShipError> {
        match self.ledger.sync() {
            Err(error) if !error.is_passing() => Err(error.into()),
            synced => Ok(synced.map_err(ShipError::from)),
        }
    }

    /// Tells when the state cannot be written, and when it can again.
    fn note_state(&mut self, written: Result<(), ShipError>) {
        let was_unwritten = std::mem::replace(&mut self.is_unwritten, written.is_err());
        match written {
            Err(error) if !was_unwritten => {
                self.notices.push(Notice::StateUnwritten { reason: error.to_string() });
            }
            Ok(()) if was_unwritten => self.notices.push(Notice::StateWritten),
            _ => {}
        }
    }

    fn wakes_at(&self) -> Option<Duration> {
        let quiet = self.files.first_quiet().map(|(at, _)| at);
        [self.fleet.wakes_at(), quiet].into_iter().flatten().min()
    }

    /// Regular work: rate limit by the schedule, rows of the ledger, status file, alarm. At the end of the shipper `last` is
    /// what it ran until.
    fn tick(&mut self, last: Option<Until>) -> Result<(), ShipError> {
        let is_last = last.is_some();
        if !is_last && self.reported.is_some_and(|at| at.elapsed() < STATUS_EVERY) {
            return Ok(());
        }
        self.reported = Some(Instant::now());
        let limit = self.settings.network.rate_schedule().limit_at(jiff::Zoned::now().datetime());
        self.throttle.lock().unwrap_or_else(PoisonError::into_inner).set_limit(limit, Instant::now());
        let minute = now_ms().div_euclid(60_000);
        let mut counts = Counts::default();
        for (_, transfer) in self.fleet.transfers() {
            counts.add(transfer);
        }
        if is_last || self.flushed.is_none_or(|at| at.elapsed() >= FLUSH_EVERY) {
            self.flushed = Some(Instant::now());
            self.meter.flush(minute, &mut self.ledger);
            self.ledger.set_backlog(minute, counts.backlog_bytes);
            self.unsent.drop_gone();
        }
        let synced = self.sync_ledger()?;
        let outage =
            self.fleet.link().outage().map(|(outage, since)| (outage, self.now().saturating_sub(since)));
        let roots = self.folders.iter().map(|folder| folder.root.as_path());
        let recent = self.ledger.minutes(minute - super::status::RECENT_MINUTES, minute + 1)?;
        let free = super::alarm::free_space(roots);
        let measured = Measured {
            time_ms: now_ms(),
            counts,
            totals: self.meter.totals,
            outage,
            window: self.window,
            recent: &recent,
            free,
        };
        let unsent = self.unsent_files(last == Some(Until::Shipped));
        let status = Status { unsent, ..Status::new(&self.settings, &measured) };
        self.note_state(synced.and(status.write(&self.settings.state.folder)));
        if let Some(notice) = self.alarm.take(&status, &self.settings.alarm.command) {
            self.warn("alarm", "", &status.alarm.text());
            self.notices.push(notice);
        }
        self.status = status;
        Ok(())
    }
}
