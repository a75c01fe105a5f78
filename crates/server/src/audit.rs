//! Audit of a site: denied requests, log-ins and administrative acts, in the journal (`site.db`).
//!
//! Records are kept for 90 days. Denied requests, which anybody can make, are bounded in number, too.

use crate::access::{Access, Peer};
use crate::app::App;
use crate::clock::Timestamp;
use rusqlite::Connection;
use serde::Serialize;
use std::fmt;
use std::time::Duration;
use utoipa::ToSchema;

/// Time for which records are kept.
const KEPT: Duration = Duration::from_hours(90 * 24);

/// Most records of denied requests: some tens of megabytes.
const MOST_DENIED: i64 = 100_000;

/// Records between two removals of old ones.
const BETWEEN_REMOVALS: i64 = 256;

/// Greatest length of an object in characters; the rest is cut.
const MOST_OBJECT: usize = 500;

const COLUMNS: &str = "id, time, account, token, peer, act, object, outcome";

/// Outcome of an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The act was carried out.
    Done,
    /// The request was refused for lack of access.
    Denied,
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Denied => "denied",
        }
    }
}

/// Record of the audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct AuditRecord {
    /// Number of the record; later ones have greater numbers.
    pub(crate) id: i64,
    /// Time of the act, in milliseconds since 1970.
    pub(crate) time: i64,
    /// Account of the token, null for a token without one.
    pub(crate) account: Option<String>,
    /// Identity of the token, null for a request without a valid one.
    pub(crate) token: Option<String>,
    /// Address of the client, null if it is not known.
    pub(crate) peer: Option<String>,
    /// Act, such as `account add`; of a denied request its method.
    pub(crate) act: String,
    /// Object of the act; of a denied request its address.
    pub(crate) object: String,
    /// Outcome: done or denied.
    pub(crate) outcome: String,
}

/// Choice of records of the audit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    /// True for denied requests only.
    pub(crate) denied: bool,
    /// Time before which no record is wanted.
    pub(crate) since: Timestamp,
    /// Number of a record before which the answer begins.
    pub(crate) before: Option<i64>,
    /// Most records of the answer.
    pub(crate) most: usize,
}

impl Choice {
    /// Choice that leaves out what is older than the time for which records are kept.
    pub(crate) fn kept(self, now: Timestamp) -> Self {
        let oldest = now.milliseconds().saturating_sub(KEPT.as_millis() as i64);
        Self { since: self.since.max(Timestamp::from_milliseconds(oldest)), ..self }
    }
}

impl App {
    /// Records an act that was carried out, durably.
    pub(crate) async fn audit(&self, access: &Access, act: &str, object: impl fmt::Display) {
        let record = self.record(Some(access), access.peer, act, object, Outcome::Done);
        let written = self.site.journal.database.write(move |connection| insert(connection, &record)).await;
        if let Err(error) = written {
            self.log.trouble("audit", error);
        }
    }

    /// Records a denied request, soon.
    pub(crate) fn audit_denied(
        &self,
        access: Option<&Access>,
        peer: Option<Peer>,
        act: &str,
        object: impl fmt::Display,
    ) {
        let record = self.record(access, peer, act, object, Outcome::Denied);
        self.site.journal.database.write_later(move |connection| insert(connection, &record));
    }

    fn record(
        &self,
        access: Option<&Access>,
        peer: Option<Peer>,
        act: &str,
        object: impl fmt::Display,
        outcome: Outcome,
    ) -> AuditRecord {
        let token = access.and_then(|access| access.token.as_ref());
        AuditRecord {
            id: 0,
            time: self.clock.now().milliseconds(),
            account: token.and_then(|token| token.account.as_ref()).map(ToString::to_string),
            token: token.map(|token| token.id.to_string()),
            peer: peer.map(|peer| peer.0.ip().to_string()),
            act: act.to_owned(),
            object: object.to_string().chars().take(MOST_OBJECT).collect(),
            outcome: outcome.name().to_owned(),
        }
    }
}

/// Makes the table of the audit in the journal.
pub(crate) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS audit (id INTEGER PRIMARY KEY, time INTEGER NOT NULL, account TEXT, token TEXT,
            peer TEXT, act TEXT NOT NULL, object TEXT NOT NULL, outcome TEXT NOT NULL) STRICT;
         CREATE INDEX IF NOT EXISTS audit_denied ON audit (id) WHERE outcome = 'denied';",
    )
}

fn insert(connection: &Connection, record: &AuditRecord) -> rusqlite::Result<()> {
    let AuditRecord { time, account, token, peer, act, object, outcome, .. } = record;
    let sql = format!("INSERT INTO audit({COLUMNS}) VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    connection.execute(&sql, (time, account, token, peer, act, object, outcome))?;
    if connection.last_insert_rowid() % BETWEEN_REMOVALS == 0 {
        remove_old(connection, *time, MOST_DENIED)?;
    }
    Ok(())
}

fn remove_old(connection: &Connection, now: i64, most_denied: i64) -> rusqlite::Result<()> {
    let oldest = now.saturating_sub(KEPT.as_millis() as i64);
    connection.execute("DELETE FROM audit WHERE time < ?1", [oldest])?;
    let sql = "DELETE FROM audit WHERE outcome = 'denied' AND id <=
        (SELECT id FROM audit WHERE outcome = 'denied' ORDER BY id DESC LIMIT 1 OFFSET ?1)";
    connection.execute(sql, [most_denied]).map(drop)
}

/// Records of a choice, from the newest to the oldest.
pub(crate) fn records(connection: &Connection, choice: &Choice) -> rusqlite::Result<Vec<AuditRecord>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM audit WHERE id < ?1 AND time >= ?2 AND (?3 = 0 OR outcome = 'denied')
            ORDER BY id DESC LIMIT ?4"
    );
    let values = (
        choice.before.unwrap_or(i64::MAX),
        choice.since.milliseconds(),
        i64::from(choice.denied),
        choice.most as i64,
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(values, |row| {
        Ok(AuditRecord {
            id: row.get(0)?,
            time: row.get(1)?,
            account: row.get(2)?,
            token: row.get(3)?,
            peer: row.get(4)?,
            act: row.get(5)?,
            object: row.get(6)?,
            outcome: row.get(7)?,
        })
    })?;
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_records_and_too_many_denied_ones_are_removed() {
        let connection = Connection::open_in_memory().unwrap();
        prepare(&connection).unwrap();
        let now = KEPT.as_millis() as i64 + 10;
        for time in 0..40 {
            let outcome = if time % 2 == 0 { Outcome::Done } else { Outcome::Denied };
            let record = AuditRecord {
                id: 0,
                time,
                account: None,
                token: None,
                peer: None,
                act: "act".to_owned(),
                object: "object".to_owned(),
                outcome: outcome.name().to_owned(),
            };
            insert(&connection, &record).unwrap();
        }
        let since = Timestamp::from_milliseconds(0);
        let choice = Choice { denied: false, since, before: None, most: 100 };
        let count = |choice: Choice| records(&connection, &choice).unwrap().len();
        assert_eq!((count(choice), count(choice.kept(Timestamp::from_milliseconds(now)))), (40, 30));
        remove_old(&connection, now, 5).unwrap();
        // The 15 acts that were done from time 10 on stay, and the last 5 denied requests.
        assert_eq!((count(choice), count(Choice { denied: true, ..choice })), (20, 5));
        let last = records(&connection, &Choice { most: 1, ..choice }).unwrap().remove(0);
        assert_eq!((last.id, last.time), (40, 39));
        let page = records(&connection, &Choice { before: Some(40), most: 1, ..choice }).unwrap();
        assert_eq!(page[0].id, 39);
    }
}
