//! `holdfast edit`: change an object of a site with an editor.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::{Download, Session, SitePath, Upload};
use holdfast_base::failure::{Failure, Result, reason};
use holdfast_base::{ByteSize, clean};
use holdfast_client::json::EditedObject;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Change an object of a site with an editor
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The editor is $VISUAL, else $EDITOR, else vi. It gets a copy in a temporary folder. A changed copy\n\
    becomes the next version of the object, unless the object has changed meanwhile: then the copy stays,\n\
    and the error names it.\n\n\
    Examples:\n  holdfast edit /lab/2026/notes.txt\n  holdfast edit /lab/2026/notes.txt --json"
)]
pub(crate) struct Args {
    /// Object to change: /PROJECT/PATH
    #[arg(value_name = "PATH")]
    path: SitePath,
    #[command(flatten)]
    site: SiteArgs,
}

/// Copy of an object in a temporary folder.
struct EditedCopy {
    folder: TempDir,
    version: String,
    bytes: u64,
    blake3: blake3::Hash,
}

/// Runs the command `holdfast edit`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let Some(name) = args.path.name().filter(|_| !args.path.is_folder()) else {
        return Err(Failure::usage("this is no path of an object")
            .at(&args.path)
            .advice("write /PROJECT/PATH; `holdfast ls` lists objects"));
    };
    let session = args.site.session()?;
    let copy = receive(&session, &args.path, name)?;
    let file = copy.folder.path().join(name);
    let edited = open_editor(&file);
    let blake3 = hash(&file)?;
    if blake3 == copy.blake3 {
        edited?;
        return told(&args.path, false, Some(&copy.version), copy.bytes, out);
    }
    let sent = edited.and_then(|()| send(&session, &args.path, &file, &copy.version));
    match sent {
        Ok((version, bytes)) => told(&args.path, true, version.as_deref(), bytes, out),
        Err(failure) => {
            let kept = copy.folder.keep().join(name);
            Err(failure.advice(format_args!("your copy is {}: put it by hand", kept.display())))
        }
    }
}

fn receive(session: &Session, path: &SitePath, name: &str) -> Result<EditedCopy> {
    let place = std::env::temp_dir();
    let cannot = |error: &io::Error| Failure::io("cannot make a temporary copy", &place, error);
    let folder = tempfile::Builder::new().prefix("holdfast-edit.").tempdir_in(&place);
    let folder = folder.map_err(|error| cannot(&error))?;
    let mut file = File::create(folder.path().join(name)).map_err(|error| cannot(&error))?;
    let download = Download { session, path, version: None, range: None, follow: false };
    let got = download.write_to(&mut file, &mut |_, _| {})?;
    let Some(version) = got.version else {
        return Err(Failure::failed("the object is not stored yet").at(path).advice("wait until it is"));
    };
    Ok(EditedCopy { folder, version, bytes: got.bytes, blake3: got.blake3 })
}

fn open_editor(file: &Path) -> Result<()> {
    let named = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let editor = named("VISUAL").or_else(|| named("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    // The shell splits the editor's arguments.
    let ended = Command::new("sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(file).status();
    let ended =
        ended.map_err(|error| Failure::failed(format_args!("cannot start a shell: {}", reason(&error))))?;
    if ended.success() {
        return Ok(());
    }
    Err(Failure::failed(format_args!("the editor `{}` failed ({ended})", clean(&editor)))
        .advice("set $EDITOR to another one"))
}

fn hash(file: &Path) -> Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    let read = File::open(file).and_then(|file| hasher.update_reader(file).map(drop));
    read.map_err(|error| Failure::io("cannot read the edited copy", file, &error))?;
    Ok(hasher.finalize())
}

/// Sends the changed copy, if the object still has the version that was copied.
fn send(session: &Session, path: &SitePath, file: &Path, version: &str) -> Result<(Option<String>, u64)> {
    let stat = session.request(session.site().catalog_stat(&path.to_string()))?;
    if stat.current.as_deref() != Some(version) {
        return Err(Failure::failed("the object has changed since it was copied").at(path));
    }
    // The site compares the versions again when it stores the upload.
    let upload = Upload { session, path, attributes: &[], replaces: Some(version) };
    let sent = upload.file(file, &mut |_| {})?;
    Ok((sent.version, sent.bytes))
}

fn told(path: &SitePath, changed: bool, version: Option<&str>, bytes: u64, out: &mut Out) -> Result<()> {
    let path = path.to_string();
    if out.is_json() {
        return out.object(&EditedObject { path: &path, changed, version, bytes });
    }
    let path = clean(&path);
    if !changed {
        return out.line(format_args!("{path}: not changed"));
    }
    out.line(format_args!("{path}: {}, version {}", ByteSize(bytes), clean(version.unwrap_or("none"))))
}
