//! Printer of a server's events, on a thread of its own: no request waits for the reader of the log.

use crate::serving::rfc3339;
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result};
use holdfast_server::{Clock, Event, Log};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Lines that wait for the reader of the log; further events are counted and left out.
const MOST_WAITING: usize = 10_000;

/// Message to the thread that prints.
enum Message {
    Event(Value),
    End,
}

/// Thread that prints events.
pub(crate) struct EventPrinter {
    sender: SyncSender<Message>,
    left_out: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl EventPrinter {
    /// Starts printing: JSON lines on standard output, or lines for people on standard error.
    pub(crate) fn start(json: bool) -> Result<Self> {
        let failed = |error| Failure::failed(format_args!("cannot start the log: {error}"));
        // A descriptor without a buffer: an event that was not written is not kept.
        let to = if json {
            io::stdout().as_fd().try_clone_to_owned()
        } else {
            io::stderr().as_fd().try_clone_to_owned()
        };
        let mut lines = Lines::to(File::from(to.map_err(failed)?));
        let (sender, messages) = sync_channel(MOST_WAITING);
        let left_out = Arc::new(AtomicU64::new(0));
        let lost = Arc::clone(&left_out);
        let print = move || print(&messages, &lost, &mut lines, json);
        let thread = Builder::new().name("log".to_owned()).spawn(print).map_err(failed)?;
        Ok(Self { sender, left_out, thread })
    }

    /// Log of a server whose events this thread prints. The start is printed by the command itself.
    pub(crate) fn log(&self) -> Log {
        let (sender, left_out) = (self.sender.clone(), Arc::clone(&self.left_out));
        Log::new(move |event| {
            if matches!(event, Event::Started { .. }) {
                return;
            }
            let Ok(Value::Object(mut fields)) = serde_json::to_value(event) else { return };
            fields.insert("time".to_owned(), rfc3339(Clock::System.now()).into());
            if sender.try_send(Message::Event(Value::Object(fields))).is_err() {
                left_out.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    /// Prints the waiting events and ends.
    pub(crate) fn end(self) {
        // A thread that has ended has nothing to print.
        let _ = self.sender.send(Message::End);
        let _ = self.thread.join();
    }
}

/// Output that gets whole lines, each at once.
struct Lines<W> {
    to: W,
    /// True if the output ends in a part of a line.
    is_cut: bool,
}

impl<W: Write> Lines<W> {
    fn to(to: W) -> Self {
        Self { to, is_cut: false }
    }

    /// Writes a line. The part of an earlier line that an error has cut is ended first.
    fn write(&mut self, line: &str) -> io::Result<()> {
        let text = if self.is_cut { format!("\n{line}\n") } else { format!("{line}\n") };
        let text = text.as_bytes();
        let mut written = 0;
        while written < text.len() {
            match self.to.write(&text[written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    written += count;
                    self.is_cut = !text[..written].ends_with(b"\n");
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Prints messages until the last. An output that nobody reads any more ends it, and not the server; events that a full
/// disk does not take are counted.
fn print(messages: &Receiver<Message>, left_out: &AtomicU64, lines: &mut Lines<impl Write>, json: bool) {
    let text = |event: &Value| if json { event.to_string() } else { line(event) };
    while let Ok(Message::Event(event)) = messages.recv() {
        let lost = left_out.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let event = serde_json::json!({ "event": "left_out", "events": lost, "time": event["time"] });
            if lines.write(&text(&event)).is_err() {
                left_out.fetch_add(lost, Ordering::Relaxed);
            }
        }
        match lines.write(&text(&event)) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return,
            Err(_) => {
                left_out.fetch_add(1, Ordering::Relaxed);
            }
            Ok(()) => {}
        }
    }
}

/// Line for people: time, name of the event, and its fields.
fn line(event: &Value) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => clean(text),
        other => other.to_string(),
    };
    let mut line = format!("{} {}", text(&event["time"]), text(&event["event"]));
    for (name, value) in event.as_object().into_iter().flatten() {
        if !matches!(name.as_str(), "time" | "event") && !value.is_null() {
            // The line goes to a text that grows without limit.
            let _ = write!(line, " {name}={}", text(value));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Output that takes a part of its first line, fails once, and takes everything from then on.
    #[derive(Default)]
    struct FailsOnce {
        calls: usize,
        taken: Vec<u8>,
    }

    impl Write for FailsOnce {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            let count = match self.calls {
                1 => 4,
                2 => return Err(io::ErrorKind::StorageFull.into()),
                _ => bytes.len(),
            };
            self.taken.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_event_that_a_full_disk_does_not_take_is_counted_and_later_ones_are_printed() {
        let (sender, messages) = sync_channel(2);
        for name in ["first", "second"] {
            sender.send(Message::Event(json!({"event": name, "time": "now"}))).unwrap();
        }
        drop(sender);
        let mut lines = Lines::to(FailsOnce::default());
        print(&messages, &AtomicU64::new(0), &mut lines, true);
        let text = String::from_utf8(lines.to.taken).unwrap();
        let (cut, whole) = text.split_once('\n').unwrap();
        let whole: Vec<Value> = whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let left_out = json!({"event": "left_out", "events": 1, "time": "now"});
        assert_eq!((cut, whole), ("{\"ev", vec![left_out, json!({"event": "second", "time": "now"})]));
    }

    #[test]
    fn a_line_has_time_name_and_fields() {
        let event = json!({"event": "expired", "uploads": 2, "path": "a\nb", "token": null, "time": "2026-11-20T10:05:00Z"});
        assert_eq!(line(&event), "2026-11-20T10:05:00Z expired path=a\\nb uploads=2");
    }
}
