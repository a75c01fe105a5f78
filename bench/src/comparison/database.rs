//! A database as a recorder: a row an element in `SQLite`, through its own shell. The oldest rows are deleted for new
//! ones, many in a transaction; a rollback journal, because with a write-ahead log everything would be written twice.

use super::cell::{ElementSize, FileSystem, PartitionState};
use super::opponent::ElementStore;
use super::stand::{Mounted, Stand};
use super::tally::ReadGate;
use crate::cleanup::{Cleanup, CleanupGuard, register};
use crate::{BenchError, tools};
use holdfast_media::Seed;
use rustix::fs::{Advice, fadvise};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// The share of the file system that rows fill, once what a transaction's journal may take is left out.
const FULL: f64 = 0.96;

/// Bytes of a page: the most that there can be.
const PAGE: u64 = 65_536;

/// Rows that a reader takes with one question.
const ROWS_BYTES: u64 = 4 << 20;

/// The shell, with a database open.
#[derive(Debug)]
struct SqliteShell {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    #[allow(dead_code, reason = "for a signal")]
    noted: CleanupGuard,
}

impl SqliteShell {
    fn open(database: &Path) -> Result<Self, BenchError> {
        let program = tools::need("sqlite3")?;
        let mut command = tools::command(program);
        command.arg("-batch").arg("-bail").arg(database);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let failed = |said: String| BenchError::program("sqlite3", said);
        let mut child = command.spawn().map_err(|cause| failed(cause.to_string()))?;
        let noted = register(Cleanup::Program(child.id()));
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(|| failed("it has no output".into()))?;
        let mut shell = Self { child, input, output: BufReader::new(output), noted };
        shell.say(".timeout 600000\nPRAGMA page_size=65536;PRAGMA synchronous=FULL;\n")?;
        Ok(shell)
    }

    fn failed(said: impl std::fmt::Display) -> BenchError {
        BenchError::program("sqlite3", said)
    }

    fn say(&mut self, text: &str) -> Result<(), BenchError> {
        let input = self.input.as_mut().ok_or_else(|| Self::failed("it was closed"))?;
        input.write_all(text.as_bytes()).and_then(|()| input.flush()).map_err(Self::failed)
    }

    /// Says something and waits for its one line of answer.
    fn ask(&mut self, text: &str) -> Result<String, BenchError> {
        self.say(text)?;
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(Self::failed)?;
        if line.is_empty() {
            Err(Self::failed("it ended before it answered"))
        } else {
            Ok(line.trim().to_owned())
        }
    }
}

impl Drop for SqliteShell {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

/// A database full of elements.
#[derive(Debug)]
pub struct Database {
    mounted: Mounted,
    size: ElementSize,
    limit: u64,
    state: RowIndex,
}

/// Space that a row takes: of a large one a little stays in its leaf, the rest fills pages of its own.
fn space(bytes: u64) -> u64 {
    const LOCAL: u64 = 8199;
    if bytes < PAGE / 2 {
        bytes + bytes / 8 + 16
    } else {
        LOCAL + bytes.saturating_sub(LOCAL).div_ceil(PAGE - 4) * PAGE
    }
}

/// Which rows there are.
#[derive(Clone, Debug, Default)]
struct RowIndex {
    next: u64,
    sizes: std::collections::VecDeque<u64>,
    bytes: u64,
}

impl RowIndex {
    /// The statements that put the next row there.
    fn statements(&mut self, bytes: u64, limit: u64) -> String {
        let mut text = String::new();
        let mut gone = 0;
        while self.bytes + bytes > limit {
            let Some(oldest) = self.sizes.pop_front() else { break };
            self.bytes -= oldest;
            gone += 1;
        }
        if gone > 0 {
            let first = self.next - self.sizes.len() as u64;
            let _ = writeln!(text, "DELETE FROM elements WHERE ordinal<{first};");
        }
        let _ = writeln!(text, "INSERT INTO elements VALUES({},zeroblob({bytes}));", self.next);
        self.next += 1;
        self.sizes.push_back(bytes);
        self.bytes += bytes;
        text
    }
}

impl Database {
    /// A new one on a file system without a journal of its own, filled and aged if that is wanted.
    pub fn prepare(stand: &Stand, size: ElementSize, state: PartitionState) -> Result<Self, BenchError> {
        tools::need("sqlite3")?;
        let mounted = Mounted::new(stand, FileSystem::Ext2, 1024)?;
        let batch = stand.setup().sync_bytes;
        let room = (mounted.room()?.0.saturating_sub(batch * 2) as f64 * FULL) as u64;
        let limit = match size {
            ElementSize::Fixed(bytes) => room / space(bytes) * bytes,
            ElementSize::Varied => room * 3 / 4,
        };
        let mut database = Self { mounted, size, limit, state: RowIndex::default() };
        let (mut writer, reader) = database.open()?;
        drop(reader);
        if state == PartitionState::Aged {
            let (mut seed, mut written, mut dirty) = (Seed::new(2), 0, 0);
            while written < limit * 3 {
                let bytes = size.next(&mut seed);
                writer.put(bytes)?;
                written += bytes;
                dirty += bytes;
                if dirty + bytes > batch {
                    writer.sync()?;
                    dirty = 0;
                }
            }
        }
        writer.end()?;
        Ok(database)
    }

    fn file(&self) -> PathBuf {
        self.mounted.folder().join("elements.db")
    }

    /// Two connections: one writes, one reads. The page cache is empty then.
    pub fn open(&mut self) -> Result<(RowWriter<'_>, RowReader), BenchError> {
        self.mounted.renew()?;
        let path = self.file();
        let mut shell = SqliteShell::open(&path)?;
        shell.ask(
            "CREATE TABLE IF NOT EXISTS elements(ordinal INTEGER PRIMARY KEY,payload BLOB);SELECT 1;\n",
        )?;
        let file = File::open(&path).map_err(BenchError::file(&path, "open it"))?;
        let reader = RowReader { shell: SqliteShell::open(&path)?, file, path, mean: self.size.mean() };
        Ok((RowWriter { shell, database: self, open: false }, reader))
    }
}

/// Writes rows.
#[derive(Debug)]
pub struct RowWriter<'a> {
    shell: SqliteShell,
    database: &'a mut Database,
    open: bool,
}

impl RowWriter<'_> {
    /// Ends well.
    pub fn end(mut self) -> Result<(), BenchError> {
        self.sync()
    }
}

impl ElementStore for RowWriter<'_> {
    fn put(&mut self, bytes: u64) -> Result<(), BenchError> {
        let limit = self.database.limit;
        let mut text = if self.open { String::new() } else { "BEGIN IMMEDIATE;\n".to_owned() };
        text += &self.database.state.statements(bytes, limit);
        self.open = true;
        // Large rows one by one, so that what has not been taken yet counts as waiting.
        if bytes < 256 << 10 {
            return self.shell.say(&text);
        }
        self.shell.ask(&(text + "SELECT 1;\n")).map(drop)
    }

    fn sync(&mut self) -> Result<(), BenchError> {
        let text = if std::mem::take(&mut self.open) { "COMMIT;SELECT 1;\n" } else { "SELECT 1;\n" };
        self.shell.ask(text).map(drop)
    }
}

/// Reads rows.
#[derive(Debug)]
pub struct RowReader {
    shell: SqliteShell,
    file: File,
    path: PathBuf,
    mean: u64,
}

impl RowReader {
    /// Reads some after the other, the oldest of the newest quarter first.
    pub fn read(&mut self, gate: &mut ReadGate<'_>) -> Result<(), BenchError> {
        let rows = (ROWS_BYTES / self.mean).max(1);
        let mut next = 0u64;
        while gate.may() {
            // A disk is larger than memory in life: nothing is found there.
            fadvise(&self.file, 0, None, Advice::DontNeed)
                .map_err(BenchError::file(&self.path, "forget it"))?;
            let question = format!(
                "SELECT ifnull(sum(writefile('/dev/null',payload)),0)||' '||ifnull(max(ordinal),0) FROM (SELECT \
                 ordinal,payload FROM elements WHERE ordinal>={next} ORDER BY ordinal LIMIT {rows});\n"
            );
            let answer = self.shell.ask(&question)?;
            let mut numbers = answer.split(' ').map(|number| number.parse::<u64>().unwrap_or(0));
            let (bytes, last) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
            gate.got(bytes);
            next = last + 1;
            if bytes == 0 {
                let begin =
                    self.shell.ask("SELECT ifnull((min(ordinal)+3*max(ordinal))/4,0) FROM elements;\n")?;
                next = begin.parse().unwrap_or(0);
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_rows_give_way_and_no_others() {
        let mut books = RowIndex::default();
        assert_eq!(books.statements(40, 100), "INSERT INTO elements VALUES(0,zeroblob(40));\n");
        assert_eq!(books.statements(60, 100), "INSERT INTO elements VALUES(1,zeroblob(60));\n");
        let text = books.statements(30, 100);
        assert_eq!(
            text,
            "DELETE FROM elements WHERE ordinal<1;\nINSERT INTO elements VALUES(2,zeroblob(30));\n"
        );
        let text = books.statements(100, 100);
        assert_eq!(
            text,
            "DELETE FROM elements WHERE ordinal<3;\nINSERT INTO elements VALUES(3,zeroblob(100));\n"
        );
        assert_eq!((books.bytes, books.sizes.len()), (100, 1));
    }
}
