//! Alarm of a shipper: the local disk fills before the archive catches up.

use super::Notice;
use super::status::Status;
use crate::planning::DiskAlarm;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// State of the alarm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "state")]
pub enum AlarmReport {
    /// The archive catches up long before the disk is full.
    #[default]
    Ok,
    /// The archive catches up, but the disk would not outlast an outage of two days.
    Warning {
        /// Hours until the disk is full.
        full_in_hours: f64,
    },
    /// The disk is full before the archive catches up, or the reserve is used up.
    Alarm {
        /// Hours until the disk is full.
        full_in_hours: f64,
    },
}

impl AlarmReport {
    /// Report of an alarm.
    pub(super) fn of(alarm: DiskAlarm, is_below_reserve: bool) -> Self {
        match alarm {
            _ if is_below_reserve => Self::Alarm { full_in_hours: 0.0 },
            DiskAlarm::Ok => Self::Ok,
            DiskAlarm::Warning { full_in } => Self::Warning { full_in_hours: full_in.get() },
            DiskAlarm::Alarm { full_in } => Self::Alarm { full_in_hours: full_in.get() },
        }
    }

    /// True for an alarm, not for a warning.
    pub fn is_alarm(self) -> bool {
        matches!(self, Self::Alarm { .. })
    }

    /// Text of the alarm for people.
    pub fn text(self) -> String {
        match self {
            Self::Ok => "the archive keeps up".to_owned(),
            Self::Warning { full_in_hours } => {
                format!("the local disk would be full after {full_in_hours:.1} h without the archive")
            }
            Self::Alarm { full_in_hours } => format!(
                "the local disk is full in {full_in_hours:.1} h, before the archive catches up; produce less, or make room"
            ),
        }
    }
}

/// Alarm that was reported last, with the command that it has started.
#[derive(Debug, Default)]
pub(super) struct AlarmState {
    was_alarm: bool,
    child: Option<Child>,
}

impl AlarmState {
    /// Starts the command and returns a notice when an alarm begins or ends.
    pub(super) fn take(&mut self, status: &Status, command: &[String]) -> Option<Notice> {
        if let Some(child) = &mut self.child
            && !matches!(child.try_wait(), Ok(None))
        {
            self.child = None;
        }
        let is_alarm = status.alarm.is_alarm();
        if std::mem::replace(&mut self.was_alarm, is_alarm) == is_alarm {
            return None;
        }
        if let (Some((program, arguments)), None) = (command.split_first(), &self.child) {
            let state = if is_alarm { "alarm" } else { "ok" };
            let started = Command::new(program)
                .args(arguments)
                .env("HOLDFAST_ALARM", state)
                .env("HOLDFAST_ALARM_TEXT", status.alarm.text())
                .stdin(Stdio::null())
                .spawn();
            match started {
                Ok(child) => self.child = Some(child),
                Err(error) => {
                    let reason =
                        format!("the command of the alarm cannot be started: {error}; correct [alarm]");
                    return Some(Notice::Warning { path: program.clone(), reason });
                }
            }
        }
        Some(Notice::Alarm(status.alarm))
    }
}

/// Free bytes of the fullest file system of the folders; `None` if no folder exists.
pub(super) fn free_space<'a>(roots: impl Iterator<Item = &'a Path>) -> Option<u64> {
    let free = |root: &Path| rustix::fs::statvfs(root).ok().map(|space| space.f_bavail * space.f_frsize);
    roots.filter_map(free).min()
}
