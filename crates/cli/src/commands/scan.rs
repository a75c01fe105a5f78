//! `holdfast scan`: run a module over the contents of rings, datasets, vaults and files.

use crate::args::{ScanArgs, SiteArgs};
use crate::distant::{self, DistantRings};
use crate::item_name;
use crate::out::{Out, say_of};
use crate::scanning;
use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_base::{ByteSize, counted};
use holdfast_client::json::{FoundMatch, ItemStatistics, ModuleResult, ModuleTotal};
use holdfast_client::{programs, times};
use holdfast_scan::{
    Alphabet, Approximate, ApproximateOptions, Biology, BiologyOptions, Container, Fuel, ItemId, Metric,
    ModuleLimits, Pick, Statistics, StatisticsRow, Strand, Wasm, WasmOutput,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Run a module over the contents of rings, datasets, vaults and files
#[derive(clap::Args, Debug)]
#[command(
    after_help = "SOURCE is a ring (path or name), a dataset, a file, a folder with all below it, VAULT:PREFIX, or -\n\
    for standard input. `holdfast grep` and `holdfast hash` are modules with commands of their own.\n\n\
    Modules:\n  \
    stats      count, size, entropy (bits a byte) and type of each file, or of the elements of a stream\n  \
    approx     matches of --pattern with at most --distance edits, or replaced bytes (--hamming)\n  \
    bio        the same in DNA (IUPAC codes, both strands) or proteins (--protein): records of FASTA and\n             \
    FASTQ, also compressed by gzip; every other file is one sequence\n  \
    wasm:FILE  your own module in WebAssembly (docs/scan.md); it runs in processes of its own, without\n             \
    files or network, and is ended when it exceeds its time or memory\n\n\
    hf://SITE/rings/RING is scanned at its site, through the site that is asked (--site).\n\n\
    Exits with 1 if some data could not be scanned (the results are printed), with 3 if there is no\n\
    result.\n\n\
    Examples:\n  holdfast scan lab.hf runs/ --module stats\n  \
    holdfast scan s3:2026/ --module stats --explain\n  \
    holdfast scan mail/ --module approx --pattern \"Mahanaxar\" --distance 2\n  \
    holdfast scan genomes/ --module bio --pattern GATTACANNNTTACCA --distance 1\n  \
    holdfast scan lab.hf --stream eth0 --module wasm:./my.wasm --arg 12"
)]
pub(crate) struct Args {
    /// Ring, dataset, file, folder, VAULT:PREFIX, or - for standard input
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<PathBuf>,
    /// Module that is run: stats, approx, bio or wasm:FILE
    #[arg(long, value_name = "NAME", value_parser = module_name)]
    module: ModuleName,
    #[command(flatten)]
    pattern: PatternArgs,
    #[command(flatten)]
    wasm: WasmArgs,
    #[command(flatten)]
    scan: ScanArgs,
    #[command(flatten)]
    site: SiteArgs,
}

/// Options of the modules that search.
#[derive(clap::Args, Debug)]
struct PatternArgs {
    /// Pattern of approx or bio (may be repeated)
    #[arg(long = "pattern", value_name = "TEXT")]
    patterns: Vec<String>,
    /// Edits that a match may have: replaced, inserted and deleted letters
    #[arg(long, value_name = "K", default_value_t = 0)]
    distance: u32,
    /// Count replaced bytes alone (approx)
    #[arg(long)]
    hamming: bool,
    /// Upper and lower case are the same (approx; always so for bio)
    #[arg(short = 'i', long)]
    ignore_case: bool,
    /// Patterns and sequences are proteins, not DNA (bio)
    #[arg(long)]
    protein: bool,
    /// Hits of a file or element at most
    #[arg(short = 'm', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_count: Option<u64>,
}

impl PatternArgs {
    fn bytes(&self) -> Vec<Vec<u8>> {
        self.patterns.iter().map(|pattern| pattern.as_bytes().to_vec()).collect()
    }

    /// Refuses options of modules that search, for another module.
    fn refuse(&self) -> Result<()> {
        let is_given = !self.patterns.is_empty()
            || self.distance > 0
            || self.hamming
            || self.ignore_case
            || self.protein
            || self.max_count.is_some();
        if is_given {
            return Err(Failure::usage("--pattern and its options are for --module approx and bio")
                .advice("leave them out, or take another module"));
        }
        Ok(())
    }
}

/// Options of a module in WebAssembly.
#[derive(clap::Args, Debug)]
struct WasmArgs {
    /// Argument of a module in WebAssembly (may be repeated)
    #[arg(long = "arg", value_name = "TEXT", allow_hyphen_values = true)]
    arguments: Vec<String>,
    /// Memory that a module in WebAssembly may have, in each of its processes
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    module_memory: ByteSize,
    /// Time that it may take for a block
    #[arg(long, value_name = "SPAN", value_parser = times::span, default_value = "10s")]
    module_time: Duration,
    /// Instructions that it may execute for each byte of a block, in millions for each call (default: not counted)
    #[arg(long, value_name = "N")]
    module_fuel: Option<u64>,
}

/// Module, as it is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ModuleName {
    Stats,
    Approximate,
    Biology,
    Wasm(PathBuf),
}

fn module_name(text: &str) -> Result<ModuleName, String> {
    match (text, text.split_once(':')) {
        ("stats", _) => Ok(ModuleName::Stats),
        ("approx", _) => Ok(ModuleName::Approximate),
        ("bio", _) => Ok(ModuleName::Biology),
        (_, Some(("wasm", path))) if !path.is_empty() => Ok(ModuleName::Wasm(path.into())),
        _ => Err(format!("`{text}` is no module: take stats, approx, bio or wasm:FILE")),
    }
}

/// Runs the command `holdfast scan`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    if matches!(args.module, ModuleName::Stats | ModuleName::Wasm(_)) {
        args.pattern.refuse()?;
    }
    if let Some(rings) = DistantRings::among(&args.sources)? {
        return distant::scan("scan", rings, (&[], Vec::new()), &args.site, out.is_json());
    }
    match &args.module {
        ModuleName::Stats => statistics(args, out),
        ModuleName::Approximate => approximate(args, out),
        ModuleName::Biology => biology(args, out),
        ModuleName::Wasm(path) => wasm(args, path, out),
    }
}

/// Failure of options that a module refuses.
fn refused(error: String) -> Failure {
    Failure::usage(error)
}

fn approximate(args: &Args, out: &mut Out) -> Result<()> {
    let PatternArgs { distance, hamming, ignore_case, protein, max_count, .. } = args.pattern;
    if protein {
        return Err(Failure::usage("--protein is for --module bio"));
    }
    let module = Approximate::new(ApproximateOptions {
        patterns: args.pattern.bytes(),
        distance,
        metric: if hamming { Metric::Hamming } else { Metric::Edit },
        ignore_case,
        most: max_count,
    })
    .map_err(refused)?;
    let sources = args.scan.sources(&args.sources, Pick::Elements)?;
    let mut hits = 0_u64;
    let report = scanning::run(&module, &sources, &args.scan, &mut |hit| {
        hits += 1;
        found(&hit.item, None, (hit.pattern, hit.start, hit.end, hit.distance), &hit.text, out)
    })?;
    scanning::end(&report, &args.scan, out)?;
    if hits == 0 { Err(Failure::said(Kind::Nothing)) } else { Ok(()) }
}

fn biology(args: &Args, out: &mut Out) -> Result<()> {
    let PatternArgs { distance, hamming, ignore_case, protein, max_count, .. } = args.pattern;
    if hamming || ignore_case {
        return Err(Failure::usage("--hamming and --ignore-case are for --module approx"));
    }
    let module = Biology::new(BiologyOptions {
        patterns: args.pattern.bytes(),
        alphabet: if protein { Alphabet::Protein } else { Alphabet::Dna },
        distance,
        most: max_count,
        ..BiologyOptions::default()
    })
    .map_err(refused)?;
    let sources = args.scan.sources(&args.sources, Pick::Elements)?;
    let mut hits = 0_u64;
    let report = scanning::run(&module, &sources, &args.scan, &mut |hit| {
        hits += 1;
        let strand = if hit.strand == Strand::Forward { "+" } else { "-" };
        let place = (hit.pattern, hit.start, hit.end, hit.distance);
        found(&hit.item, Some((&hit.record, strand)), place, &hit.text, out)
    })?;
    scanning::end(&report, &args.scan, out)?;
    if hits == 0 { Err(Failure::said(Kind::Nothing)) } else { Ok(()) }
}

/// Prints a match: pattern, start, end and distance; of a sequence, record and strand, too.
fn found(
    item: &ItemId,
    sequence: Option<(&str, &str)>,
    (pattern, start, end, distance): (usize, u64, u64, u32),
    text: &[u8],
    out: &mut Out,
) -> Result<()> {
    let text = String::from_utf8_lossy(text);
    if out.is_json() {
        return out.object(&FoundMatch {
            item: scanning::item(item),
            record: sequence.map(|(record, _)| record),
            strand: sequence.map(|(_, strand)| strand),
            pattern,
            start,
            end,
            distance,
            text: &text,
        });
    }
    let place = sequence.map_or_else(String::new, |(record, strand)| format!(" {record}{strand}"));
    let line = format_args!(":{start}..{end}:{place} {distance} {}", text.escape_debug());
    out.line_of(&item_name::shown(item), line)
}

fn wasm(args: &Args, path: &Path, out: &mut Out) -> Result<()> {
    let sources = args.scan.sources(&args.sources, Pick::Elements)?;
    let limits = ModuleLimits {
        memory: args.wasm.module_memory.0,
        call_time: args.wasm.module_time,
        fuel: args
            .wasm
            .module_fuel
            .map(|fuel| Fuel { per_call: fuel.saturating_mul(1_000_000), per_byte: fuel }),
        ..ModuleLimits::default()
    };
    let module = Wasm::new(&programs::module(), path, args.wasm.arguments.clone(), limits)?;
    let mut results = 0_u64;
    let report = scanning::run(&module, &sources, &args.scan, &mut |output| match output {
        WasmOutput::Log(item, line) => {
            say_of(&item_name::shown(&item), &line);
            Ok(())
        }
        WasmOutput::Result(item, offset, bytes) => {
            results += 1;
            let text = String::from_utf8_lossy(&bytes);
            if out.is_json() {
                return out.object(&ModuleResult { item: scanning::item(&item), offset, text: &text });
            }
            match offset {
                Some(offset) if item.ordinal.is_none() => {
                    out.line_of(&item_name::shown(&item), format_args!(":{offset}: {text}"))
                }
                _ => out.line_of(&item_name::shown(&item), format_args!(": {text}")),
            }
        }
    })?;
    for total in module.finish()? {
        results += 1;
        let text = String::from_utf8_lossy(&total);
        if out.is_json() {
            out.object(&ModuleTotal { total: &text })?;
        } else {
            out.line(text)?;
        }
    }
    scanning::end(&report, &args.scan, out)?;
    if results == 0 { Err(Failure::said(Kind::Nothing)) } else { Ok(()) }
}

fn statistics(args: &Args, out: &mut Out) -> Result<()> {
    let sources = args.scan.sources(&args.sources, Pick::Elements)?;
    let mut streams: BTreeMap<Arc<Container>, StatisticsRow> = BTreeMap::new();
    let report = scanning::run(&Statistics, &sources, &args.scan, &mut |row| {
        if row.item.ordinal.is_none() {
            return printed(&row, out);
        }
        match streams.get_mut(&row.item.container) {
            Some(known) => known.merge(&row),
            None => drop(streams.insert(Arc::clone(&row.item.container), row)),
        }
        Ok(())
    })?;
    for row in streams.values() {
        printed(row, out)?;
    }
    scanning::end(&report, &args.scan, out)?;
    if report.items() == 0 { Err(Failure::said(Kind::Nothing)) } else { Ok(()) }
}

fn printed(row: &StatisticsRow, out: &mut Out) -> Result<()> {
    let container = &row.item.container;
    if out.is_json() {
        return out.object(&ItemStatistics {
            source: &container.source,
            source_bytes: item_name::source_bytes(container),
            stream: container.stream.as_deref(),
            items: row.items,
            bytes: row.bytes(),
            entropy: row.entropy(),
            kind: row.kind,
            histogram: &row.histogram[..],
        });
    }
    let items = if row.item.ordinal.is_some() {
        format!("{}, ", counted(row.items, "element"))
    } else {
        String::new()
    };
    let size = ByteSize(row.bytes());
    let (entropy, kind) = (row.entropy(), row.kind.unwrap_or("unknown type"));
    let line = format_args!(": {items}{size}, entropy {entropy:.3}, {kind}");
    out.line_of(&item_name::escaped(&container.name()), line)
}
