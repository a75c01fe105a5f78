//! `fio`, given what the recorder has: `io_uring`, registered buffers and file, huge pages.

use crate::cleanup::{Cleanup, CleanupGuard, register};
use crate::{BenchError, tools};
use std::path::Path;

const POOL: &str = "/proc/sys/vm/nr_hugepages";

/// Reserved huge pages for `fio`, which are given back at the end.
///
/// The recorder asks for transparent ones, which `fio` cannot; both are 2 MiB.
#[derive(Debug)]
pub struct HugePages {
    before: Option<u64>,
    #[allow(dead_code, reason = "for a signal")]
    noted: Option<CleanupGuard>,
}

impl HugePages {
    /// Reserves enough for `bytes`.
    pub fn reserve(bytes: u64) -> Self {
        let read = || std::fs::read_to_string(POOL).ok()?.trim().parse::<u64>().ok();
        let wanted = bytes.div_ceil(2 << 20) + 8;
        let before = read().filter(|have| *have < wanted);
        let noted = before.map(|before| register(Cleanup::Setting(POOL, before.to_string())));
        if before.is_some() {
            let _ = std::fs::write(POOL, wanted.to_string());
        }
        Self { before, noted }
    }

    /// Where `fio` gets its buffers.
    fn memory() -> &'static str {
        let free = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let free = free.lines().find_map(|line| line.strip_prefix("HugePages_Free:"));
        if free.is_some_and(|free| free.trim() != "0") { "mmaphuge" } else { "mmap" }
    }

    /// In words, for the report.
    pub fn describe() -> &'static str {
        match Self::memory() {
            "mmaphuge" => "huge pages",
            _ => "small pages (no huge ones could be reserved)",
        }
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            let _ = std::fs::write(POOL, before.to_string());
        }
    }
}

/// A job.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// `write`, `read` or `randread`.
    pub kind: &'a str,
    /// The file or device.
    pub path: &'a Path,
    /// Where it begins.
    pub offset: u64,
    /// The part that is used.
    pub size: u64,
    /// Bytes in all: may go over the part several times.
    pub total: u64,
    /// Bytes of one request.
    pub block: u64,
    /// Requests at once.
    pub depth: usize,
    /// What places of requests are multiples of, if not of their size.
    pub align: Option<u64>,
}

impl Job<'_> {
    /// Runs it; bytes a second.
    pub fn run(&self) -> Result<f64, BenchError> {
        tools::need("fio")?;
        let Self { kind, path, offset, size, total, block, depth, align } = self;
        let mut arguments = vec![
            "--name=job".to_owned(),
            format!("--filename={}", path.display()),
            format!("--rw={kind}"),
            format!("--offset={offset}"),
            format!("--size={size}"),
            format!("--io_size={total}"),
            format!("--bs={block}"),
            format!("--iodepth={depth}"),
            format!("--iomem={}", HugePages::memory()),
        ];
        if let Some(align) = align {
            arguments.push(format!("--blockalign={align}"));
        }
        let always = "--ioengine=io_uring --fixedbufs=1 --registerfiles=1 --direct=1 --overwrite=1 --thread \
                      --allow_file_create=0 --randrepeat=0 --output-format=terse --terse-version=3";
        arguments.extend(always.split_whitespace().map(str::to_owned));
        if *kind == "write" {
            arguments.push("--sync=dsync".into());
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let said = tools::output("fio", &arguments)?;
        parse(&said, *kind == "write").ok_or_else(|| BenchError::program("fio", said))
    }
}

/// Bytes a second from its terse output: total KiB and milliseconds of the direction.
fn parse(terse: &str, write: bool) -> Option<f64> {
    let line = terse.lines().find(|line| line.starts_with("3;"))?;
    let fields: Vec<&str> = line.split(';').collect();
    let at = if write { 46 } else { 5 };
    let number = |at: usize| fields.get(at)?.parse::<f64>().ok();
    let (kib, millis) = (number(at)?, number(at + 3)?);
    (kib > 0.0 && millis > 0.0).then(|| kib * 1024.0 / (millis / 1000.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_taken_from_totals_and_times() {
        let mut fields = vec!["0"; 130];
        (fields[0], fields[5], fields[8], fields[46], fields[49]) = ("3", "1024", "500", "2048", "250");
        let line = format!("noise\n{}\n", fields.join(";"));
        assert_eq!(parse(&line, false), Some(2_097_152.0));
        assert_eq!(parse(&line, true), Some(8_388_608.0));
        assert_eq!(parse("fio: failed", true), None);
    }
}
