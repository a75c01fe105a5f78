//! `holdfast sql` with its input left open: asked again and again, without a program that starts for each question.

use crate::Trouble;
use crate::undo::{Noted, Undo, note};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A session over one ring; ended when dropped.
#[derive(Debug)]
pub struct Session {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    #[allow(dead_code, reason = "for a signal")]
    noted: Noted,
}

impl Session {
    /// Begins one.
    pub fn begin(program: &Path, ring: &Path) -> Result<Self, Trouble> {
        let mut command = Command::new(program);
        command.arg("sql").arg(ring).arg("--json").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|cause| trouble(&cause))?;
        let noted = note(Undo::Program(child.id()));
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Trouble::skipped("no pipes to `holdfast sql`"));
        };
        Ok(Self { child, questions, answers: BufReader::new(answers), noted })
    }

    /// The answer to a question that has one row.
    pub fn row(&mut self, question: &str) -> Result<serde_json::Value, Trouble> {
        writeln!(self.questions, "{question};").map_err(|cause| trouble(&cause))?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|cause| trouble(&cause))?;
        serde_json::from_str(&line)
            .map_err(|_| Trouble::Accounting(format!("`holdfast sql` says {line:?} to {question}")))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn trouble(cause: &io::Error) -> Trouble {
    Trouble::Program { command: "holdfast sql".to_owned(), said: cause.to_string() }
}
