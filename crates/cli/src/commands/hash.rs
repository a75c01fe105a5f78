//! `holdfast hash`: digests of files, objects and elements, all algorithms in one pass.

use crate::args::{ScanArgs, SiteArgs};
use crate::commands::hash_check;
use crate::distant::{self, DistantRings};
use crate::out::Out;
use crate::scanning;
use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_client::json::ItemHashes;
use holdfast_scan::{Algorithm, Hash, Hashes, Pick};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Print the digests of files, objects of vaults, and elements of rings and datasets
#[derive(clap::Args, Debug)]
#[command(
    after_help = "SOURCE is a file, a folder with all below it, VAULT:PREFIX, a ring (its elements), or - for standard\n\
    input. Each file is read once, whatever the number of algorithms. With one algorithm, `md5sum -c`,\n\
    `sha256sum -c` and `b3sum -c` read the output. With several, each line begins with the algorithm.\n\n\
    hf://SITE/rings/RING is read at its site, through the site that is asked (--site).\n\n\
    --check reads such lists, and those of md5sum, sha1sum, sha256sum and b3sum (also --tag), and prints OK\n\
    or FAILED for each file. Without a name of the hash function, 64 digits may be BLAKE3 or SHA-256.\n\n\
    Exits with 1 if some data could not be hashed (the digests of the rest are printed), or if a file of a\n\
    list is changed or missing.\n\n\
    Examples:\n  holdfast hash runs/ > runs.b3\n  \
    holdfast hash runs.b3 --check\n  \
    holdfast hash s3:2026/ --algorithm sha256,md5\n  \
    holdfast hash runs/ --duplicates\n  \
    holdfast hash run1.mcap --elements --stream camera"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// File, folder, VAULT:PREFIX, ring, or - for standard input
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<PathBuf>,
    /// Hash functions, separated by commas: blake3 (the default), sha256, sha1, md5
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    algorithm: Vec<Algorithm>,
    /// Hash the elements of datasets, and the files of packed folders, instead of the dataset files
    #[arg(long)]
    elements: bool,
    /// Print only files and elements that are the same as another, in groups with an empty line between
    #[arg(long)]
    duplicates: bool,
    /// Sources are lists of digests: compare the files that they name
    #[arg(long, conflicts_with_all = ["elements", "duplicates", "null"])]
    check: bool,
    /// End each line with a NUL instead of a line end, and print names as they are
    #[arg(short = '0', long)]
    null: bool,
    #[command(flatten)]
    scan: ScanArgs,
    #[command(flatten)]
    site: SiteArgs,
}

impl Args {
    /// True if digests are compared: the exit code then tells the truth whatever happens to the output.
    pub(super) fn checks(&self) -> bool {
        self.check
    }
}

/// Runs the command `holdfast hash`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    if args.check {
        return hash_check::run(&args.sources, &args.algorithm, &args.scan, out);
    }
    if let Some(rings) = DistantRings::among(&args.sources)? {
        return distant::scan("hash", rings, (&[], Vec::new()), &args.site, out.is_json());
    }
    let pick = if args.elements { Pick::Elements } else { Pick::Files };
    let mut algorithms = Vec::new();
    let usual = [Algorithm::Blake3];
    for algorithm in if args.algorithm.is_empty() { &usual[..] } else { &args.algorithm[..] } {
        if !algorithms.contains(algorithm) {
            algorithms.push(*algorithm);
        }
    }
    let sources = args.scan.sources(&args.sources, pick)?;
    let mut items = 0_u64;
    let mut groups: BTreeMap<(u64, String), Vec<Hashes>> = BTreeMap::new();
    let report = scanning::run(&Hash::new(&algorithms), &sources, &args.scan, &mut |hashes| {
        items += 1;
        if !args.duplicates {
            return printed(&hashes, args.null, out);
        }
        let first = hashes.values.first().map(|value| value.hex.clone()).unwrap_or_default();
        groups.entry((hashes.bytes, first)).or_default().push(hashes);
        Ok(())
    })?;
    let mut separator = false;
    for group in groups.values_mut().filter(|group| group.len() > 1) {
        if separator && !out.is_json() {
            out.bytes(if args.null { b"\0" } else { b"\n" })?;
        }
        separator = true;
        group.sort_by(|a, b| a.item.cmp(&b.item));
        for hashes in group.iter() {
            printed(hashes, args.null, out)?;
        }
    }
    scanning::end(&report, &args.scan, out)?;
    if items == 0 || (args.duplicates && !separator) { Err(Failure::said(Kind::Nothing)) } else { Ok(()) }
}

fn printed(hashes: &Hashes, is_null: bool, out: &mut Out) -> Result<()> {
    if out.is_json() {
        let values = hashes.values.iter().map(|value| (value.algorithm.name(), value.hex.as_str()));
        return out.object(&ItemHashes {
            item: scanning::item(&hashes.item),
            bytes: hashes.bytes,
            hashes: values.collect(),
        });
    }
    let name = hashes.item.name();
    // As the coreutils do: a name with a line end or a backslash is escaped, and its line begins with a backslash.
    let mark = if !is_null && name.iter().any(|byte| b"\n\r\\".contains(byte)) { "\\" } else { "" };
    let escaped = if mark.is_empty() { name } else { escaped(&name) };
    for value in &hashes.values {
        let algorithm = if hashes.values.len() > 1 { format!("{} ", value.algorithm) } else { String::new() };
        let mut line = format!("{algorithm}{mark}{}  ", value.hex).into_bytes();
        line.extend(&escaped);
        line.push(if is_null { 0 } else { b'\n' });
        out.bytes(&line)?;
    }
    Ok(())
}

/// Name with its line ends and backslashes escaped.
fn escaped(name: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(name.len() + 1);
    for byte in name {
        match byte {
            b'\n' => escaped.extend(b"\\n"),
            b'\r' => escaped.extend(b"\\r"),
            b'\\' => escaped.extend(b"\\\\"),
            byte => escaped.push(*byte),
        }
    }
    escaped
}
