//! Printer of a server's events, on a thread of its own: no request waits for the reader of the log.

use crate::commands::Effect;
use crate::out::Out;
use crate::serving::rfc3339;
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result};
use holdfast_server::{Clock, Event, Log};
use serde_json::Value;
use std::fmt::Write as _;
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
        let (sender, messages) = sync_channel(MOST_WAITING);
        let left_out = Arc::new(AtomicU64::new(0));
        let lost = Arc::clone(&left_out);
        let print = move || print(&messages, &lost, json);
        let thread = Builder::new().name("log".to_owned()).spawn(print);
        let thread =
            thread.map_err(|error| Failure::failed(format_args!("cannot start the log: {error}")))?;
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

/// Prints messages until the last. An output that nobody reads any more ends it, and not the server; events that a full
/// disk does not take are counted.
fn print(messages: &Receiver<Message>, left_out: &AtomicU64, json: bool) {
    let mut out = if json { Out::stdout(Effect::Prints, true) } else { Out::stderr(false) };
    while let Ok(Message::Event(event)) = messages.recv() {
        let lost = left_out.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let event = serde_json::json!({ "event": "left_out", "events": lost, "time": event["time"] });
            if printed(&mut out, &event).is_err() {
                left_out.fetch_add(lost, Ordering::Relaxed);
            }
        }
        match printed(&mut out, &event) {
            Err(failure) if failure.is_quiet() => return,
            Err(_) => {
                left_out.fetch_add(1, Ordering::Relaxed);
            }
            Ok(()) => {}
        }
    }
}

fn printed(out: &mut Out, event: &Value) -> Result<()> {
    if out.is_json() { out.object(event) } else { out.line(line(event)) }.and_then(|()| out.flush())
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

    #[test]
    fn a_line_has_time_name_and_fields() {
        let event = json!({"event": "expired", "uploads": 2, "path": "a\nb", "token": null, "time": "2026-11-20T10:05:00Z"});
        assert_eq!(line(&event), "2026-11-20T10:05:00Z expired path=a\\nb uploads=2");
    }
}
