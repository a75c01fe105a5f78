//! `holdfast grep`: search the contents of rings, datasets, vaults and files.

use crate::args::{ScanArgs, SiteArgs};
use crate::commands::grep_lines::{Colour, Printer};
use crate::distant::{self, DistantRings};
use crate::out::Out;
use crate::scanning;
use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_client::json::{FoundItem, FoundLine};
use holdfast_scan::{Hit, Pick, Search, SearchOptions, Syntax, Wanted};
use std::ffi::OsString;
use std::path::PathBuf;

/// Search the contents of rings, datasets, vaults and files for a pattern
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "holdfast grep [OPTIONS] <PATTERN> <SOURCE>...",
    after_help = "SOURCE is a ring (path or name), a dataset, a file, a folder with all below it, VAULT:PREFIX, or -\n\
    for standard input. Elements of rings and datasets are searched as files are, line by line. The\n\
    pattern is a regular expression in the syntax of ripgrep.\n\n\
    A hit is printed as PATH:OFFSET: LINE, or SOURCE:STREAM/ORDINAL: LINE; bytes that are no text are\n\
    printed as \\xNN. Of a line longer than 8 KiB, the part around its first match is printed.\n\n\
    hf://SITE/rings/RING is searched at its site, through the site that is asked (--site).\n\n\
    Exits with 1 if some data could not be searched (hits are printed), with 3 if there is no hit. With -q,\n\
    a hit is enough for 0.\n\n\
    Examples:\n  holdfast grep \"GET /[a-z]+\" lab.hf --stream eth0 --last 5m\n  \
    holdfast grep -F password hf://ams/rings/lab hf://gva/rings/lab --last 5m\n  \
    holdfast grep -F -i password lab.hf s3:2026/ /var/log\n  \
    holdfast grep --hex \"de ad be ef\" run1.mcap -l\n  \
    holdfast grep -e error -e warning logs/ --count\n  \
    holdfast grep -i timeout logs/ -g '*.log' --sort"
)]
pub(crate) struct Args {
    /// Pattern, unless -e or -f gives it; behind it the sources
    #[arg(value_names = ["PATTERN", "SOURCE"], required = true, num_args = 1..)]
    words: Vec<OsString>,
    /// Pattern (may be repeated)
    #[arg(short = 'e', long = "regexp", value_name = "PATTERN", allow_hyphen_values = true)]
    patterns: Vec<String>,
    /// File with a pattern a line
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Patterns are text, not regular expressions
    #[arg(short = 'F', long, conflicts_with = "hex")]
    fixed_strings: bool,
    /// Patterns are bytes, as pairs of hexadecimal digits
    #[arg(long, conflicts_with_all = ["ignore_case", "word_regexp"])]
    hex: bool,
    /// Upper and lower case are the same
    #[arg(short = 'i', long)]
    ignore_case: bool,
    /// Matches are whole words
    #[arg(short = 'w', long)]
    word_regexp: bool,
    /// Print line numbers instead of offsets
    #[arg(short = 'n', long)]
    line_number: bool,
    /// Print the matches alone, a line each
    #[arg(short = 'o', long, conflicts_with_all = ["files_with_matches", "count"])]
    only_matching: bool,
    /// Print the names of files and elements with hits
    #[arg(short = 'l', long)]
    files_with_matches: bool,
    /// Print the number of lines with hits of each file or element that has one
    #[arg(short = 'c', long, conflicts_with = "files_with_matches")]
    count: bool,
    /// Lines with hits of a file or element at most
    #[arg(short = 'm', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_count: Option<u64>,
    /// Print nothing, and end at the first hit with 0, whatever could not be searched
    #[arg(short, long)]
    quiet: bool,
    /// Print names of files and elements, as is always done
    #[arg(short = 'H', long)]
    with_filename: bool,
    /// Print a NUL behind each name, and names as they are: their control characters are escaped otherwise
    #[arg(short = '0', long)]
    null: bool,
    /// Colours of names, numbers and matches
    #[arg(long, visible_alias = "colour", value_name = "WHEN", default_value = "auto", value_enum)]
    color: Colour,
    #[command(flatten)]
    scan: ScanArgs,
    #[command(flatten)]
    site: SiteArgs,
}

impl Args {
    /// Splits the words into patterns and sources.
    fn split(&self) -> Result<(Vec<String>, Vec<PathBuf>)> {
        let mut patterns = self.patterns.clone();
        for file in &self.files {
            let text = std::fs::read_to_string(file)
                .map_err(|error| Failure::io("cannot read the patterns", file, &error))?;
            patterns.extend(text.lines().map(str::to_owned));
        }
        let mut words = &self.words[..];
        if self.patterns.is_empty() && self.files.is_empty() {
            let (first, rest) = words.split_first().ok_or_else(|| Failure::usage("there is no pattern"))?;
            let pattern = first.to_str().ok_or_else(|| Failure::usage("the pattern is not UTF-8"))?;
            patterns.push(pattern.to_owned());
            words = rest;
        }
        if words.is_empty() {
            return Err(Failure::usage("there is no source to search")
                .advice("name a ring, a dataset, a file or a folder, or - for standard input"));
        }
        Ok((patterns, words.iter().map(PathBuf::from).collect()))
    }

    fn search(&self, patterns: Vec<String>) -> Result<Search> {
        let syntax = match (self.fixed_strings, self.hex) {
            (true, _) => Syntax::Text,
            (_, true) => Syntax::Hex,
            _ => Syntax::Regex,
        };
        let wanted = match (self.count || self.files_with_matches, self.only_matching, self.line_number) {
            (true, ..) => Wanted::Counts,
            (_, true, false) => Wanted::Matches,
            (_, true, true) => Wanted::NumberedMatches,
            (_, false, true) => Wanted::NumberedLines,
            _ => Wanted::Lines,
        };
        Search::new(SearchOptions {
            patterns,
            syntax,
            ignore_case: self.ignore_case,
            word: self.word_regexp,
            wanted,
            most: if self.files_with_matches { Some(1) } else { self.max_count },
            ..SearchOptions::default()
        })
    }
}

/// Runs the command `holdfast grep`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let (patterns, places) = args.split()?;
    if let Some(rings) = DistantRings::among(&places)? {
        if patterns.is_empty() {
            return Err(Failure::usage("there is no pattern"));
        }
        let with = patterns.into_iter().map(|pattern| format!("--regexp={pattern}")).collect();
        return distant::scan(
            "grep",
            rings,
            (&["regexp", "file", "color", "with-filename"], with),
            &args.site,
            out.is_json(),
        );
    }
    let search = args.search(patterns)?;
    let sources = args.scan.sources(&places, Pick::Elements)?;
    let printer = Printer::new(args.color, args.null);
    let mut hits = 0_u64;
    let report = scanning::run(&search, &sources, &args.scan, &mut |hit| {
        hits += 1;
        if args.quiet {
            return Err(Failure::said(Kind::Done));
        }
        if out.is_json() {
            return in_json(&hit, out);
        }
        match hit {
            Hit::Line(line) if args.only_matching => printer.matches(&line, out),
            Hit::Line(line) => printer.line(&line, out),
            Hit::Count(item, _) if args.files_with_matches => printer.name(&item, out),
            Hit::Count(item, lines) => printer.count(&item, lines, out),
        }
    })?;
    scanning::end(&report, &args.scan, out)?;
    if hits == 0 { Err(Failure::said(Kind::Nothing)) } else { Ok(()) }
}

fn in_json(hit: &Hit, out: &mut Out) -> Result<()> {
    match hit {
        Hit::Line(line) => out.object(&FoundLine {
            item: scanning::item(&line.item),
            offset: line.offset,
            line: line.number,
            text_offset: line.text_offset,
            text: &String::from_utf8_lossy(&line.text),
            matches: &line.matches,
        }),
        Hit::Count(item, lines) => out.object(&FoundItem { item: scanning::item(item), lines: *lines }),
    }
}
