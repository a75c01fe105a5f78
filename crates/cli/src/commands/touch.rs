//! `holdfast touch`: make empty objects on a site.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::{Session, SitePath, Upload, failure};
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::json::TouchedObject;
use holdfast_remote::{CatalogStat, RemoteErrorKind};
use std::io;

/// Make empty objects on a site
#[derive(clap::Args, Debug)]
#[command(after_help = "An object or collection that exists stays as it is.\n\n\
    Examples:\n  holdfast touch /lab/2026/notes.txt\n  holdfast touch /lab/2026/seen /lab/2026/checked")]
pub(crate) struct Args {
    /// Objects to make: /PROJECT/PATH
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<SitePath>,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast touch`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    if let Some(path) = args.paths.iter().find(|path| path.is_folder()) {
        return Err(Failure::usage("this is no path of an object")
            .at(path)
            .advice("write /PROJECT/PATH; `holdfast mkdir` makes collections"));
    }
    let session = args.site.session()?;
    args.paths.iter().try_for_each(|path| touch(&session, path, out))
}

fn touch(session: &Session, path: &SitePath, out: &mut Out) -> Result<()> {
    let shown = path.to_string();
    let (made, version) = if let Some(stat) = find(session, &shown)? {
        (false, stat.current)
    } else {
        let upload = Upload { session, path, attributes: &[], replaces: Some("none") };
        match upload.reader(io::empty(), &mut |_| {}) {
            Ok(sent) => (true, sent.version),
            // Somebody else may have made it meanwhile.
            Err(failure) => (false, find(session, &shown)?.ok_or(failure)?.current),
        }
    };
    if out.is_json() {
        return out.object(&TouchedObject { path: &shown, made, version: version.as_deref() });
    }
    out.line(format_args!("{}: {}", clean(&shown), if made { "made" } else { "exists" }))
}

fn find(session: &Session, path: &str) -> Result<Option<CatalogStat>> {
    session.run(async {
        match session.site().catalog_stat(path).await {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if error.kind == RemoteErrorKind::NotFound => Ok(None),
            Err(error) => Err(failure(&error)),
        }
    })
}
