//! `holdfast get`: receive an object of a site, verified, into a file or a pipe.

use crate::args::SiteArgs;
use crate::out::{Out, broken};
use crate::progress;
use crate::site::{Download, Received, SitePath};
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, clean};
use holdfast_client::json::ReceivedFile;
use holdfast_export::{Existing, OutputFile, SourceAccess};
use holdfast_remote::ByteRange;
use indicatif::ProgressBar;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

/// Receive an object of a site, verified, into a file or a pipe
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The file appears under its name when all bytes are there and their BLAKE3 is that of the stored\n\
    version. After a broken connection the rest is read. --follow reads an upload while it grows,\n\
    until its end.\n\n\
    Examples:\n  holdfast get /lab/2026/run1.dada\n  holdfast get /lab/2026/run1.dada copy.dada --force\n  \
    holdfast get /lab/2026/run1.dada - --range 0-4095 | head -c 80\n  holdfast get /lab/live.dada --follow"
)]
pub(crate) struct Args {
    /// Object to receive: /PROJECT/PATH
    #[arg(value_name = "PATH")]
    path: SitePath,
    /// File or folder to write to; `-` is standard output (default: the object's name, in this folder)
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Wait for the end of an upload, and write its bytes as they come
    #[arg(long, conflicts_with_all = ["version", "range"])]
    follow: bool,
    /// Version to receive, as `stat` shows it [default: the newest]
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// First and last byte to receive, from 0; without the last, up to the end
    #[arg(long, value_name = "FIRST-[LAST]", value_parser = range)]
    range: Option<ByteRange>,
    /// Replace a file that exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    site: SiteArgs,
}

fn range(text: &str) -> Result<ByteRange, String> {
    let wrong = || format!("`{text}` is no range: write FIRST-LAST or FIRST-, such as 0-4095");
    let (first, last) = text.split_once('-').ok_or_else(wrong)?;
    let first = first.parse().map_err(|_| wrong())?;
    let last = match last {
        "" => None,
        last => Some(last.parse().ok().filter(|last| *last >= first).ok_or_else(wrong)?),
    };
    Ok(ByteRange { first, last })
}

impl Args {
    /// True if the object goes to standard output.
    pub(crate) fn to_stdout(&self) -> bool {
        self.file.as_deref().is_some_and(|file| file.as_os_str() == "-")
    }
}

/// Runs the command `holdfast get`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let Some(name) = args.path.name().filter(|_| !args.path.is_folder()) else {
        return Err(Failure::usage("this is no path of an object")
            .at(&args.path)
            .advice("write /PROJECT/PATH; `holdfast ls` lists objects"));
    };
    let session = args.site.session()?;
    let download = Download {
        session: &session,
        path: &args.path,
        version: args.version.as_deref(),
        range: args.range,
        follow: args.follow,
    };
    if args.to_stdout() {
        // Without a buffer: who follows gets the bytes as they come.
        let output = io::stdout().as_fd().try_clone_to_owned().map(File::from);
        let mut output = output.map_err(|error| broken(&error))?;
        return received(&download, &mut output).map(drop);
    }
    let file = match &args.file {
        Some(folder) if folder.is_dir() => folder.join(name),
        Some(file) => file.clone(),
        None => PathBuf::from(name),
    };
    let target = OutputFile::make(&file, Existing::by_force(args.force), SourceAccess::default())?;
    let got = received(&download, &mut target.writer()?)?;
    target.finish()?;
    told(args, &file, &got, out)
}

fn received(download: &Download<'_>, output: &mut dyn io::Write) -> Result<Received> {
    let mut bar: Option<ProgressBar> = None;
    let got = download.write_to(output, &mut |bytes, all| {
        let bar = bar.get_or_insert_with(|| match all {
            Some(all) => progress::bar(all, true),
            None => progress::count(),
        });
        bar.set_position(bytes);
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    got
}

fn told(args: &Args, file: &Path, got: &Received, out: &mut Out) -> Result<()> {
    let (path, blake3) = (args.path.to_string(), got.blake3.to_hex());
    if out.is_json() {
        return out.object(&ReceivedFile {
            path: &path,
            file: &file.to_string_lossy(),
            version: got.version.as_deref(),
            bytes: got.bytes,
            blake3: &blake3,
            verified: got.verified,
        });
    }
    let (file, bytes) = (clean(&file.to_string_lossy()), ByteSize(got.bytes));
    let check = if got.verified { "verified" } else { "a part of the object" };
    out.line(format_args!("{file}: {bytes}, BLAKE3 {blake3}, {check}"))
}
