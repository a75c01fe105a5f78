//! `holdfast sql` with its input left open: asked again and again, without a program that starts for each question.

use crate::cleanup::{Cleanup, CleanupGuard, register};
use crate::{BenchError, tools};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A session over one ring; ended when dropped.
#[derive(Debug)]
pub struct SqlSession {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    #[allow(dead_code, reason = "for a signal")]
    noted: CleanupGuard,
}

impl SqlSession {
    /// Begins one.
    pub fn begin(program: &Path, ring: &Path) -> Result<Self, BenchError> {
        let mut command = tools::command(program);
        command.arg("sql").arg(ring).arg("--json").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|cause| program_error(&cause))?;
        let noted = register(Cleanup::Program(child.id()));
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(BenchError::skipped("no pipes to `holdfast sql`"));
        };
        Ok(Self { child, questions, answers: BufReader::new(answers), noted })
    }

    /// The answer to a question that has one row.
    pub fn row(&mut self, question: &str) -> Result<serde_json::Value, BenchError> {
        writeln!(self.questions, "{question};").map_err(|cause| program_error(&cause))?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|cause| program_error(&cause))?;
        serde_json::from_str(&line)
            .map_err(|_| BenchError::Accounting(format!("`holdfast sql` says {line:?} to {question}")))
    }
}

impl Drop for SqlSession {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program_error(cause: &io::Error) -> BenchError {
    BenchError::program("holdfast sql", cause)
}
