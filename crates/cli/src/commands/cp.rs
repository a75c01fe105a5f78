//! `holdfast cp`: copy objects and collections within a site. No bytes are moved.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::{Session, SitePath, Target};
use holdfast_base::failure::Result;
use holdfast_base::{ByteSize, clean, counted};
use holdfast_client::json::CopiedEntry;

/// Copy objects and collections within a site, without moving bytes
#[derive(clap::Args, Debug)]
#[command(
    after_help = "A copy is a new object with the current version, the attributes and the replicas of the other one.\n\
    One entry gets the path TO; several, or one with a collection as TO, go below TO. Nothing is\n\
    overwritten. The last name of FROM may have * ? [abc] in it.\n\n\
    Examples:\n  holdfast cp /lab/2026/run1.dada /lab/2026/best.dada\n  holdfast cp -r /lab/2026 /archive/"
)]
pub(crate) struct Args {
    /// Objects and collections to copy: /PROJECT/PATH
    #[arg(value_name = "FROM", required = true)]
    from: Vec<SitePath>,
    /// Path of the copy, or collection of the copies
    #[arg(value_name = "TO")]
    to: SitePath,
    /// Copy collections with all that is below them
    #[arg(short, long)]
    recursive: bool,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast cp`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let session = args.site.session()?;
    Target::each(&session, &args.from, &args.to, &mut |from, to| {
        copy(&session, from, to, args.recursive, out)
    })
}

fn copy(session: &Session, from: &str, to: &str, recursive: bool, out: &mut Out) -> Result<()> {
    let (mut objects, mut collections, mut bytes, mut after) = (0, 0, 0, None);
    loop {
        let part = session.site().copy_entry(from, to, recursive, after.as_deref());
        let part = session.request(part)?;
        objects += part.objects;
        collections += part.collections;
        bytes += part.bytes;
        after = part.next;
        if after.is_none() {
            break;
        }
    }
    if out.is_json() {
        return out.object(&CopiedEntry { from, to, objects, collections, bytes });
    }
    let (from, to, number) = (clean(from), clean(to), counted(objects, "object"));
    out.line(format_args!("{from} -> {to}: {number}, {}", ByteSize(bytes)))
}
