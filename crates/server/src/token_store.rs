//! Store of tokens: the `SQLite` file `tokens.db`. Commands and a running server may use the file at the same time.

use crate::account::AccountName;
use crate::clock::{Clock, Timestamp};
use crate::database::{Database, DatabaseError, Sharing};
use crate::error::ServerError;
use crate::object_path::ProjectName;
use crate::token::{NewToken, Scope, Scopes, TokenId, TokenInfo, TokenText};
use rusqlite::{Connection, OptionalExtension as _, Row};
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// Name of the file in the data folder.
pub const TOKENS_FILE: &str = "tokens.db";

/// Resolution of the last use: spares a durable write on every request.
const USE_RESOLUTION: Duration = Duration::from_mins(1);

/// Greatest length of a token's name in bytes.
const MOST_NAME: usize = 200;

/// Version of the table layout, in `user_version` of the file.
const LAYOUT: i64 = 2;

/// Time for which an expired token of an account stays in the list. Every log-in makes one.
const KEPT_EXPIRED: Duration = Duration::from_hours(7 * 24);

const COLUMNS: &str = "id, hash, name, scopes, project, created, expires, revoked, last_use, account";

/// Reason why a token is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenRefusal {
    /// The text is no token, or no such token exists.
    Unknown,
    /// The token's validity has ended.
    Expired,
    /// The token was revoked by an administrator.
    Revoked,
    /// The store cannot be read, for the given reason.
    Unavailable(String),
}

impl fmt::Display for TokenRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("the token is unknown"),
            Self::Expired => f.write_str("the token has expired"),
            Self::Revoked => f.write_str("the token was revoked"),
            Self::Unavailable(reason) => write!(f, "the tokens cannot be read: {reason}"),
        }
    }
}

impl std::error::Error for TokenRefusal {}

/// Store of tokens with their hashes, never their secrets.
#[derive(Debug)]
pub struct TokenStore {
    database: Database,
    clock: Clock,
}

impl TokenStore {
    /// Opens the store in a data folder, or makes it there.
    pub fn open(data: &Path, clock: Clock) -> Result<Self, ServerError> {
        let path = data.join(TOKENS_FILE);
        let database = Database::open(&path, Sharing::Shared, prepare)?;
        Ok(Self { database, clock })
    }

    /// Creates a token and returns its text, which is stored nowhere. Blocks: not for async threads.
    pub fn create(&self, new: NewToken) -> Result<(TokenInfo, String), ServerError> {
        let (info, text, hash) = self.prepare_token(new)?;
        let row = info.clone();
        let stored = self.database.write_blocking(move |connection| insert(connection, &row, hash));
        stored.map_err(|error| failed("create the token", &error))?;
        Ok((info, text))
    }

    /// Creates a token like [`create`](Self::create), for async threads.
    pub(crate) async fn create_async(&self, new: NewToken) -> Result<(TokenInfo, String), ServerError> {
        let (info, text, hash) = self.prepare_token(new)?;
        let row = info.clone();
        let stored = self.database.write(move |connection| insert(connection, &row, hash)).await;
        stored.map_err(|error| failed("create the token", &error))?;
        Ok((info, text))
    }

    fn prepare_token(&self, new: NewToken) -> Result<(TokenInfo, String, blake3::Hash), ServerError> {
        let refuse = |reason, remedy| {
            ServerError::usage(format_args!("create the token '{}'", new.name), reason, remedy)
        };
        if new.name.is_empty() || new.name.len() > MOST_NAME || new.name.contains(char::is_control) {
            let remedy = "choose a name of 1 to 200 bytes without control characters";
            return Err(refuse("its name is not usable", remedy));
        }
        if new.scopes.is_empty() {
            return Err(refuse("it has no scope", "give read, write or admin"));
        }
        // Operations of another site have the rights of all accounts.
        if new.account.is_some() && Vec::from(new.scopes).contains(&Scope::Replicate) {
            return Err(refuse("the scope replicate belongs to no account", "leave one of both out"));
        }
        let text = TokenText::random()
            .map_err(|_| refuse("the operating system supplies no random bytes", "try again"))?;
        let info = TokenInfo {
            id: text.id,
            name: new.name,
            scopes: new.scopes,
            project: new.project,
            account: new.account,
            created: self.clock.now(),
            expires: new.expires,
            revoked: None,
            last_use: None,
        };
        Ok((info, text.to_string(), text.hash()))
    }

    /// All tokens, also revoked and expired ones, oldest first. Blocks: not for async threads.
    pub fn list(&self) -> Result<Vec<TokenInfo>, ServerError> {
        self.database.read_blocking(all).map_err(|error| failed("list the tokens", &error))
    }

    /// All tokens like [`list`](Self::list), for async threads.
    pub(crate) async fn list_async(&self) -> Result<Vec<TokenInfo>, ServerError> {
        self.database.read(all).await.map_err(|error| failed("list the tokens", &error))
    }

    /// Revokes a token; false if there is none of that identity. Blocks: not for async threads.
    pub fn revoke(&self, id: TokenId) -> Result<bool, ServerError> {
        let now = self.clock.now();
        let revoked = self.database.write_blocking(move |connection| revoke(connection, id, now));
        revoked.map_err(|error| failed("revoke the token", &error))
    }

    /// Revokes a token like [`revoke`](Self::revoke), for async threads.
    pub(crate) async fn revoke_async(&self, id: TokenId) -> Result<bool, ServerError> {
        let now = self.clock.now();
        let revoked = self.database.write(move |connection| revoke(connection, id, now)).await;
        revoked.map_err(|error| failed("revoke the token", &error))
    }

    /// Properties of the token with this text, if it is valid now. Blocks: not for async threads.
    pub fn check(&self, text: &str) -> Result<TokenInfo, TokenRefusal> {
        let token = TokenText::parse(text).ok_or(TokenRefusal::Unknown)?;
        let id = token.id;
        let found = self.database.read_blocking(move |connection| find(connection, id));
        self.judge(&token, found)
    }

    /// Properties of a valid token like [`check`](Self::check), for async threads.
    pub(crate) async fn check_async(&self, text: &str) -> Result<TokenInfo, TokenRefusal> {
        let token = TokenText::parse(text).ok_or(TokenRefusal::Unknown)?;
        let id = token.id;
        let found = self.database.read(move |connection| find(connection, id)).await;
        self.judge(&token, found)
    }

    /// True when no token was ever created.
    pub(crate) async fn is_empty(&self) -> Result<bool, TokenRefusal> {
        let empty = self.database.read(|connection| {
            connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM tokens)", [], |row| row.get(0))
        });
        empty.await.map_err(|error| TokenRefusal::Unavailable(error.to_string()))
    }

    fn judge(
        &self,
        token: &TokenText,
        found: Result<Option<(TokenInfo, blake3::Hash)>, DatabaseError>,
    ) -> Result<TokenInfo, TokenRefusal> {
        let now = self.clock.now();
        let found = found.map_err(|error| TokenRefusal::Unavailable(error.to_string()))?;
        let (info, hash) = found.ok_or(TokenRefusal::Unknown)?;
        if token.hash() != hash {
            return Err(TokenRefusal::Unknown);
        }
        if info.revoked.is_some() {
            return Err(TokenRefusal::Revoked);
        }
        if info.expires.is_some_and(|expires| expires <= now) {
            return Err(TokenRefusal::Expired);
        }
        if info.last_use.is_none_or(|last| now.since(last) >= USE_RESOLUTION) {
            let id = info.id;
            self.database.write_later(move |connection| {
                let sql = "UPDATE tokens SET last_use = max(ifnull(last_use, 0), ?2) WHERE id = ?1";
                connection.execute(sql, (id.bits() as i64, now.milliseconds())).map(drop)
            });
        }
        Ok(info)
    }
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    // A command and the server may open the file at the same time.
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let prepared = prepare_tables(connection);
    connection.execute_batch(if prepared.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    prepared
}

fn prepare_tables(connection: &Connection) -> rusqlite::Result<()> {
    crate::database::check_layout(connection, LAYOUT)?;
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS tokens(
             id INTEGER PRIMARY KEY, hash BLOB NOT NULL, name TEXT NOT NULL, scopes TEXT NOT NULL,
             project TEXT, created INTEGER NOT NULL, expires INTEGER, revoked INTEGER, last_use INTEGER,
             account TEXT
         ) STRICT;",
    )?;
    // Layout 1 has no accounts.
    let sql = "SELECT EXISTS (SELECT 1 FROM pragma_table_info('tokens') WHERE name = 'account')";
    if connection.query_row(sql, [], |row| row.get(0))? {
        return Ok(());
    }
    connection.execute_batch("ALTER TABLE tokens ADD COLUMN account TEXT")
}

fn insert(connection: &Connection, info: &TokenInfo, hash: blake3::Hash) -> rusqlite::Result<()> {
    let sql = format!("INSERT INTO tokens({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, NULL, ?8)");
    let values = (
        info.id.bits() as i64,
        hash.as_bytes(),
        &info.name,
        info.scopes.names(),
        info.project.as_ref().map(ProjectName::as_str),
        info.created.milliseconds(),
        info.expires.map(Timestamp::milliseconds),
        info.account.as_ref().map(AccountName::as_str),
    );
    connection.execute(&sql, values)?;
    let sql = "DELETE FROM tokens WHERE account IS NOT NULL AND expires < ?1";
    let oldest = info.created.milliseconds().saturating_sub(KEPT_EXPIRED.as_millis() as i64);
    connection.execute(sql, [oldest]).map(drop)
}

fn all(connection: &Connection) -> rusqlite::Result<Vec<TokenInfo>> {
    let mut statement =
        connection.prepare_cached(&format!("SELECT {COLUMNS} FROM tokens ORDER BY created, id"))?;
    let rows = statement.query_map([], |row| token(row).map(|(info, _)| info))?;
    rows.collect()
}

fn find(connection: &Connection, id: TokenId) -> rusqlite::Result<Option<(TokenInfo, blake3::Hash)>> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM tokens WHERE id = ?1"))?;
    statement.query_row([id.bits() as i64], token).optional()
}

fn revoke(connection: &Connection, id: TokenId, now: Timestamp) -> rusqlite::Result<bool> {
    let sql = "UPDATE tokens SET revoked = ifnull(revoked, ?2) WHERE id = ?1";
    Ok(connection.execute(sql, (id.bits() as i64, now.milliseconds()))? > 0)
}

fn token(row: &Row<'_>) -> rusqlite::Result<(TokenInfo, blake3::Hash)> {
    let time =
        |index| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(index)?.map(Timestamp::from_milliseconds));
    let project = row.get::<_, Option<String>>(4)?.map(|project| ProjectName::parse(&project)).transpose();
    let account = row.get::<_, Option<String>>(9)?.map(|account| AccountName::parse(&account)).transpose();
    let info = TokenInfo {
        id: TokenId::from_bits(row.get::<_, i64>(0)? as u64),
        name: row.get(2)?,
        scopes: Scopes::from_names(&row.get::<_, String>(3)?),
        // A project that cannot be read must not turn into all projects.
        project: project.map_err(|error| crate::database::unreadable(4, error))?,
        // Nor must an account that cannot be read turn into all rights.
        account: account.map_err(|error| crate::database::unreadable(9, error))?,
        created: Timestamp::from_milliseconds(row.get(5)?),
        expires: time(6)?,
        revoked: time(7)?,
        last_use: time(8)?,
    };
    Ok((info, blake3::Hash::from_bytes(row.get(1)?)))
}

fn failed(action: &str, error: &DatabaseError) -> ServerError {
    ServerError::failed(action, error, "check the file tokens.db in the data folder and the space there")
}
