//! `holdfast put`: send files to a site.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::progress;
use crate::site::{AttributeText, Sent, Session, SitePath, Upload};
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, clean};
use holdfast_client::json::SentFile;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Send files to a site, each verified there
#[derive(clap::Args, Debug)]
#[command(
    after_help = "One file becomes the object PATH; several, or one with a PATH that ends with a slash, become\n\
    objects below PATH. An object that exists gets a new version. Standard input is `-`: its bytes can\n\
    be read while they come (`get --follow`). The command ends when the site has stored the bytes and\n\
    their BLAKE3 is that of the file. Interrupted with a large file, it goes on when it is given again.\n\
    A value of --meta is a time, a number, a size (1.5GB) or a text.\n\n\
    Examples:\n  holdfast put run1.dada /lab/2026/run1.dada\n  \
    holdfast put run1.dada run2.dada /lab/2026/ --meta target=m31 --meta exposure=1.5[s]\n  \
    holdfast put -r 2026 /lab/2026\n  cat run1.dada | holdfast put - /lab/live.dada"
)]
pub(crate) struct Args {
    /// Files to send; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Object, or collection of the objects: /PROJECT/PATH
    #[arg(value_name = "PATH")]
    path: SitePath,
    /// Send folders with all that is in them
    #[arg(short, long)]
    recursive: bool,
    /// Attribute of all objects (may be repeated)
    #[arg(long = "meta", value_name = "NAME=VALUE[UNIT]")]
    attributes: Vec<AttributeText>,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast put`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let sources = sources(args)?;
    let session = args.site.session()?;
    for (file, path) in &sources {
        let sent = send(&session, file, path, &args.attributes)?;
        told(file, path, &sent, out)?;
    }
    Ok(())
}

/// Files and the paths of their objects.
fn sources(args: &Args) -> Result<Vec<(PathBuf, SitePath)>> {
    if args.path.project().is_none() {
        return Err(Failure::usage("the root takes no files").advice("write /PROJECT/PATH"));
    }
    let is_many = args.files.len() > 1;
    let mut sources = Vec::new();
    for file in &args.files {
        let is_folder = args.recursive && file.is_dir();
        let is_stdin = file.as_os_str() == "-";
        // One folder becomes the collection itself, as one file becomes the object.
        let is_collection = if is_folder { args.path.ends_with_slash() } else { args.path.is_folder() };
        let goes_below = is_many || is_collection;
        if is_stdin && goes_below {
            return Err(Failure::usage("standard input has no name")
                .at(&args.path)
                .advice("write the path of the object"));
        }
        let path = if goes_below { args.path.child(&name(file)?) } else { args.path.clone() };
        if is_folder {
            walk(file, &path, &mut sources)?;
        } else {
            sources.push((file.clone(), path));
        }
    }
    Ok(sources)
}

/// Last name of a path of this machine.
fn name(file: &Path) -> Result<String> {
    let found = fs::canonicalize(file);
    let path = found.as_deref().unwrap_or(file);
    let name = path.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned)
        .ok_or_else(|| Failure::usage("a name of the file is not UTF-8").at_path(file).advice("rename it"))
}

/// Collects the regular files below a folder. Links to folders are not followed.
fn walk(folder: &Path, path: &SitePath, sources: &mut Vec<(PathBuf, SitePath)>) -> Result<()> {
    let cannot = |error: io::Error| Failure::io("cannot list the folder", folder, &error);
    let entries = fs::read_dir(folder).map_err(cannot)?;
    let mut entries = entries.collect::<io::Result<Vec<_>>>().map_err(cannot)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let file = entry.path();
        let child = entry.file_name().to_str().map(|name| path.child(name)).ok_or_else(|| {
            Failure::usage("a name of the file is not UTF-8").at_path(&file).advice("rename it")
        })?;
        if entry.file_type().map_err(cannot)?.is_dir() {
            walk(&file, &child, sources)?;
        } else if file.is_file() {
            sources.push((file, child));
        }
    }
    Ok(())
}

fn send(session: &Session, file: &Path, path: &SitePath, attributes: &[AttributeText]) -> Result<Sent> {
    let upload = Upload { session, path, attributes, replaces: None };
    if file.as_os_str() == "-" {
        let bar = progress::count();
        let sent = upload.reader(io::stdin(), &mut |bytes| bar.set_position(bytes));
        bar.finish_and_clear();
        return sent;
    }
    let bar = progress::bar(fs::metadata(file).map_or(0, |found| found.len()), true);
    let sent = upload.file(file, &mut |bytes| bar.set_position(bytes));
    bar.finish_and_clear();
    sent
}

fn told(file: &Path, path: &SitePath, sent: &Sent, out: &mut Out) -> Result<()> {
    let (file, path) = (file.to_string_lossy(), path.to_string());
    let blake3 = sent.blake3.to_hex();
    if out.is_json() {
        out.object(&SentFile {
            file: &file,
            path: &path,
            version: sent.version.as_deref(),
            bytes: sent.bytes,
            blake3: &blake3,
            resumed_bytes: sent.resumed,
        })?;
    } else {
        let version = sent.version.as_deref().unwrap_or("none");
        let resumed = match sent.resumed {
            0 => String::new(),
            bytes => format!(", {} of it before", ByteSize(bytes)),
        };
        let (path, bytes) = (clean(&path), ByteSize(sent.bytes));
        out.line(format_args!("{path}: {bytes} sent{resumed}, version {version}, BLAKE3 {blake3}"))?;
    }
    out.flush()
}
