//! Threads of the sources: their state, and the results of those that ended.

use super::progress::Progress;
use holdfast_ingest::Running;
use holdfast_protocol::wire::SourceState;

/// Thread of one source, and its state.
#[derive(Debug)]
struct SourceThread {
    running: Option<Running>,
    state: SourceState,
    error: String,
}

/// All sources, in the order they were given.
#[derive(Debug, Default)]
pub struct Watch {
    all: Vec<SourceThread>,
}

impl Watch {
    /// Watches threads that were just started.
    pub fn new(running: Vec<Running>) -> Self {
        let one = |running| SourceThread {
            running: Some(running),
            state: SourceState::Running,
            error: String::new(),
        };
        Self { all: running.into_iter().map(one).collect() }
    }

    /// Takes note of those that ended; waits for all of them when `all` is set.
    pub(super) fn gather(&mut self, all: bool, progress: &mut Progress) {
        for one in &mut self.all {
            if let Some(running) = one.running.take_if(|running| all || running.is_finished()) {
                match running.join() {
                    Ok(_) => one.state = SourceState::Ended,
                    Err(error) => {
                        one.state = SourceState::Failed;
                        one.error = error.to_string();
                        progress.error(&one.error);
                    }
                }
            }
        }
    }

    /// How a source does, and its error.
    pub(super) fn state(&self, at: usize) -> (SourceState, String) {
        self.all.get(at).map(|one| (one.state, one.error.clone())).unwrap_or_default()
    }

    pub(super) fn into_failures(self) -> Vec<String> {
        self.all.into_iter().map(|one| one.error).filter(|error| !error.is_empty()).collect()
    }
}
