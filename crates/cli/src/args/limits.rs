//! `--memory`, `--spill`, `--threads`: limits of a query.

use holdfast_base::ByteSize;
use holdfast_query::Limits;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// What a question may take of the machine.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct LimitArgs {
    /// Memory for sorting, grouping and joining; excess data is spilled to disk
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    memory: ByteSize,
    /// Folder for spilled data [default: the system's]
    #[arg(long, value_name = "DIR")]
    spill: Option<PathBuf>,
    /// Limit on spilled data
    #[arg(long, value_name = "SIZE", default_value = "16GiB")]
    spill_size: ByteSize,
    /// Threads [default: one a core]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

impl LimitArgs {
    /// As the engine wants it.
    pub(crate) fn limits(&self) -> Limits {
        let threads = self.threads.or_else(|| std::thread::available_parallelism().ok());
        Limits {
            memory: self.memory,
            spill: self.spill.clone(),
            spill_bytes: self.spill_size,
            threads: threads.unwrap_or(NonZeroUsize::MIN),
        }
    }
}
