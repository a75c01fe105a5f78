//! `holdfast cat`: write objects of a site, verified, to standard output.

use crate::args::SiteArgs;
use crate::out::broken;
use crate::site::{Download, SitePath, each_match};
use holdfast_base::failure::{Failure, Result};
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;

/// Write objects of a site, verified, to standard output
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The command fails if the BLAKE3 of an object's bytes is not that of the stored version.\n\
    The last name of PATH may have * ? [abc] in it.\n\n\
    Examples:\n  holdfast cat /lab/2026/notes.txt\n  holdfast cat \"/lab/2026/*.dada\" | wc -c"
)]
pub(crate) struct Args {
    /// Objects to write: /PROJECT/PATH
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<SitePath>,
    /// Version of the only object, as `stat` shows it [default: the newest]
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast cat`.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.version.is_some() && args.paths.len() > 1 {
        return Err(Failure::usage("a version belongs to one object")
            .at("--version")
            .advice("give one PATH"));
    }
    if let Some(path) = args.paths.iter().find(|path| path.is_folder()) {
        return Err(Failure::usage("this is no path of an object")
            .at(path)
            .advice("write /PROJECT/PATH; `holdfast ls` lists objects"));
    }
    let session = args.site.session()?;
    let output = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let mut output = output.map_err(|error| broken(&error))?;
    for path in &args.paths {
        each_match(&session, path, &mut |path| {
            let version = args.version.as_deref();
            let download = Download { session: &session, path, version, range: None, follow: false };
            download.write_to(&mut output, &mut |_, _| {}).map(drop)
        })?;
    }
    Ok(())
}
