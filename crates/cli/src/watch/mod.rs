//! `holdfast status --watch`: looks at the ring again and again and draws what it sees. The loop and the terminal are
//! here; what is drawn is `view`'s.

pub(crate) mod picture;
mod view;

use crate::out::Out;
use holdfast_base::failure::{Failure, Kind, Result, reason};
use holdfast_client::json::RingStatus;
use holdfast_client::rates::{self, Rates};
use holdfast_client::session::ring_failure;
use holdfast_planning::guarantee;
use holdfast_protocol::wire::Status;
use holdfast_reader::ReaderError;
use holdfast_reader::RingReader;
use holdfast_ring::SlotStatus;
use ratatui::DefaultTerminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, enable_raw_mode};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::panic;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between two looks at the recorder.
const LOOK: Duration = Duration::from_millis(500);
/// Between two lines for programs.
const LINE: Duration = Duration::from_secs(1);
/// Looks over which rates are taken: long enough to be read, short enough to be news.
const WINDOW: usize = 6;
/// More slots than this are asked for less often: a request takes some 30 bytes a slot.
const MANY_SLOTS: usize = 20_000;

/// All that is drawn.
pub(crate) struct Scene {
    path: String,
    status: Status,
    slots: Vec<SlotStatus>,
    rates: Option<Rates>,
    /// What the ring promises, in a line.
    promise: String,
    /// Why the last look failed.
    trouble: Option<String>,
}

/// Watches until the person or a signal says that it is enough.
pub(crate) fn run(path: &Path, mut reader: RingReader, out: &mut Out) -> Result<()> {
    let end = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&end))
            .map_err(|error| Failure::failed(format_args!("cannot catch signals: {}", reason(&error))))?;
    }
    if out.is_json() {
        return lines(path, &mut reader, out, &end);
    }
    if !io::stdout().is_terminal() {
        return Err(Failure::usage("--watch draws on a terminal, and standard output is none")
            .advice("leave --watch out, or add --json for one object every second"));
    }
    let mut watch = Watch::new(path, reader)?;
    let mut terminal = take_terminal().map_err(|error| terminal_failed(&error))?;
    let ended = watch.draw_until(&mut terminal, &end);
    give_back(terminal);
    // Whose terminal is gone has seen enough, whichever call was the first to notice.
    if wait_for_key(Duration::ZERO) { Err(Failure::said(Kind::Done)) } else { ended }
}

/// Draws from now on, on the terminal's other screen; a panic gives the terminal back first. What the library offers for
/// this complains on standard error when it fails, and panics when that is gone as well.
fn take_terminal() -> io::Result<DefaultTerminal> {
    let told = panic::take_hook();
    panic::set_hook(Box::new(move |bug| {
        let _ = ratatui::try_restore();
        told(bug);
    }));
    let taken = enable_raw_mode()
        .and_then(|()| execute!(io::stdout(), EnterAlternateScreen))
        .and_then(|()| DefaultTerminal::new(CrosstermBackend::new(io::stdout())));
    if taken.is_err() {
        let _ = ratatui::try_restore();
    }
    taken
}

/// Leaves the terminal as it was, if it is still there.
fn give_back(mut terminal: DefaultTerminal) {
    let shown = terminal.show_cursor();
    let _ = ratatui::try_restore();
    if shown.is_err() {
        // Dropped, it would try again, and complain where nobody listens.
        std::mem::forget(terminal);
    }
}

fn lines(path: &Path, reader: &mut RingReader, out: &mut Out, end: &AtomicBool) -> Result<()> {
    while !end.load(Ordering::Relaxed) {
        let look = reader.status().and_then(|status| Ok((status, reader.streams()?, reader.slots()?)));
        let failed = match look {
            Ok((status, streams, slots)) => {
                let guarantee = guarantee::seen(path, reader.superblock(), &status);
                out.object(&RingStatus::new(path, &status, &streams, &slots).promising(guarantee))?;
                out.flush()?;
                None
            }
            Err(error) => Some(ring_failure(&error)),
        };
        let fresh = refresh(reader, path, failed.is_some());
        if let (Some(failure), false) = (failed, fresh) {
            return Err(failure);
        }
        let next = Instant::now() + LINE;
        while !end.load(Ordering::Relaxed) && Instant::now() < next {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    Ok(())
}

/// Opens the ring anew when what is open is of the past: its recorder has ended, or one has started. Says whether it did.
fn refresh(reader: &mut RingReader, path: &Path, failed: bool) -> bool {
    let answers = || holdfast_protocol::find_recorder_now(&holdfast_protocol::locate(path)?);
    let started = || !reader.is_live() && answers().is_ok_and(|recorder| recorder.is_some());
    if (failed || started())
        && let Ok(fresh) = RingReader::open(path)
    {
        *reader = fresh;
        return true;
    }
    false
}

fn terminal_failed(error: &io::Error) -> Failure {
    Failure::failed(format_args!("the terminal cannot be used: {}", reason(error)))
        .advice("leave --watch out")
}

struct Watch {
    reader: RingReader,
    path: std::path::PathBuf,
    scene: Scene,
    /// The latest looks, oldest first.
    looks: VecDeque<Status>,
    slots_at: Instant,
}

/// Waits for a key; true when the terminal is gone. It must not be asked for keys then: that would never end.
fn wait_for_key(at_most: Duration) -> bool {
    let out = io::stdout();
    let mut polled = [PollFd::new(&out, PollFlags::IN)];
    let span = Timespec { tv_sec: 0, tv_nsec: i64::from(at_most.subsec_nanos()) };
    // A signal ends the wait early: the caller looks around and comes back.
    poll(&mut polled, Some(&span)).is_ok() && polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

impl Watch {
    fn new(path: &Path, mut reader: RingReader) -> Result<Self> {
        let status = reader.status().map_err(|error| ring_failure(&error))?;
        let scene = Scene {
            path: path.to_string_lossy().into_owned(),
            slots: reader.slots().map_err(|error| ring_failure(&error))?,
            rates: rates::lately(&status),
            promise: String::new(),
            status: status.clone(),
            trouble: None,
        };
        let looks = VecDeque::from([status]);
        let mut watch = Self { reader, path: path.to_owned(), scene, looks, slots_at: Instant::now() };
        watch.weigh();
        Ok(watch)
    }

    fn draw_until(&mut self, terminal: &mut DefaultTerminal, end: &AtomicBool) -> Result<()> {
        loop {
            terminal.draw(|frame| view::draw(frame, &self.scene)).map_err(|error| terminal_failed(&error))?;
            let next = Instant::now() + LOOK;
            loop {
                if end.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let left = next.saturating_duration_since(Instant::now()).min(Duration::from_millis(100));
                if left.is_zero() {
                    break;
                }
                if wait_for_key(left) {
                    return Ok(());
                }
                if event::poll(Duration::ZERO).map_err(|error| terminal_failed(&error))? {
                    match event::read().map_err(|error| terminal_failed(&error))? {
                        Event::Key(key) if key.kind != KeyEventKind::Release && ends(key) => return Ok(()),
                        Event::Resize(..) => break,
                        _ => {}
                    }
                }
            }
            self.scene.trouble = self.look().err().map(|error| ring_failure(&error).to_string());
            if refresh(&mut self.reader, &self.path, self.scene.trouble.is_some()) {
                self.looks.clear();
            }
        }
    }

    fn look(&mut self) -> std::result::Result<(), ReaderError> {
        let status = self.reader.status()?;
        if let Some(oldest) = self.looks.front() {
            self.scene.rates = rates::recent(oldest, &status).or_else(|| rates::lately(&status));
        }
        self.looks.push_back(status.clone());
        if self.looks.len() > WINDOW {
            self.looks.pop_front();
        }
        self.scene.status = status;
        let patience = LOOK * (self.scene.slots.len() / MANY_SLOTS) as u32;
        if self.slots_at.elapsed() >= patience {
            self.scene.slots = self.reader.slots()?;
            self.slots_at = Instant::now();
            self.weigh();
        }
        Ok(())
    }

    fn weigh(&mut self) {
        let seen = guarantee::seen(&self.path, self.reader.superblock(), &self.scene.status);
        self.scene.promise = guarantee::lines(seen.as_ref()).swap_remove(0);
    }
}

fn ends(key: event::KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    matches!(key.code, KeyCode::Char('q' | 'Q') | KeyCode::Esc) || (control && key.code == KeyCode::Char('c'))
}
