//! `holdfast index`: keeps copies of a ring's index on a faster drive, behind capture.

use crate::args::IndexArg;
use crate::args::RingArg;
use crate::interruption::interruption;
use crate::out::Out;
use holdfast_base::counted;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, Sequence};
use holdfast_client::index_copies::{self, CheckedCopies, CopyError, CopyReport};
use holdfast_client::json::CopiedIndex;
use holdfast_client::session;
use holdfast_client::times;
use holdfast_reader::{IndexDrive, RingReader};
use std::collections::HashSet;
use std::io::{self, Write as _};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// From one turn to the next.
const TURN: Duration = Duration::from_millis(500);

/// Turns from one look at a ring without a recorder to the next: it takes reading its journal.
const REST: u32 = 20;

/// Keep copies of the index on a faster drive, for faster searches
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The copies contain everything of a slot except its payload (times, bounds, filters, columns), the\n\
    youngest slots first. A copy is removed when its slot expires. PATH is a folder, in which each\n\
    ring has its own, or a device without other contents that may serve several rings. The command\n\
    reads with the priority of a search. Nothing depends on the copies: searches read the ring instead\n\
    of a lost, outdated or damaged copy, which is then made again.\n\n\
    The command continues with new slots until it is interrupted. `holdfast query` and `sql` use the\n\
    copies with --index PATH, or with `index = \"PATH\"` of the ring in the configuration file.\n\n\
    Examples:\n  holdfast index lab.hf --index /ssd/holdfast --size 20GiB\n  \
    holdfast index lab.hf --index /dev/nvme0n1p3 --size 60GiB\n  \
    holdfast index lab.hf --index /ssd/holdfast --once\n  \
    holdfast query lab.hf \"select count(*) from eth0 where dst_port = 443\" --index /ssd/holdfast"
)]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    #[command(flatten)]
    index: IndexArg,
    /// Limit on the copies of this ring; the oldest slots have none
    #[arg(long, value_name = "SIZE", default_value = "16GiB")]
    size: ByteSize,
    /// Use a device with other contents
    #[arg(long)]
    force: bool,
    /// End when existing slots are copied
    #[arg(long)]
    once: bool,
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    session::give_way();
    let place = args.index.place(&args.ring)?.ok_or_else(|| {
        Failure::usage("it is not said where the copies are to be")
            .advice("name a folder on the index drive, or a device, with --index PATH")
    })?;
    let (path, mut reader) = args.ring.open()?;
    let drive = IndexDrive::new(&place, reader.superblock().ring);
    let cannot = |error: io::Error| Failure::io("cannot keep copies", drive.path(), &error);
    let others = || {
        Failure::failed("another `holdfast index` keeps the copies of this ring")
            .at_path(drive.path())
            .advice("stop it first, or give another place")
    };
    let mut owner = drive.lock(args.force).map_err(cannot)?.ok_or_else(others)?;
    let end = interruption()?;
    let ending = || end.load(Ordering::Relaxed);
    let (mut told, mut sound) = (Told::default(), CheckedCopies::default());
    loop {
        // Lost, or replaced: it is made again from the ring, as soon as there is a place for it.
        let is_there = drive.is_locked(&owner);
        let made = if is_there { Ok(true) } else { drive.relock(&mut owner) };
        let copied = match made {
            Ok(false) => return Err(others()),
            Ok(true) => {
                if !is_there {
                    sound = CheckedCopies::default();
                    told.complain(&format!(
                        "what was at {} is lost: it is copied again",
                        drive.path().display()
                    ));
                }
                Some(index_copies::copy(&mut reader, &drive, args.size.0, &mut sound, &ending))
            }
            Err(error) => {
                told.complain(&cannot(error).to_string());
                None
            }
        };
        match copied {
            Some(Ok(done)) => {
                if let Some(why) = &done.kept {
                    told.complain(&format!(
                        "copies at {} were taken away, but could not be overwritten: {why}",
                        drive.path().display()
                    ));
                }
                told.tell(&done, args.once, out)?;
            }
            Some(Err(CopyError::Drive(failure))) if args.once || drive.is_locked(&owner) => {
                return Err(failure);
            }
            // Lost meanwhile: that is told next.
            None | Some(Err(CopyError::Drive(_))) => {}
            Some(Err(CopyError::Ring(failure))) if args.once => return Err(failure),
            Some(Err(CopyError::Ring(failure))) => told.complain(&failure.to_string()),
        }
        if args.once || ending() {
            return Ok(());
        }
        out.flush()?;
        let rest = if reader.is_live() { 1 } else { REST };
        for _ in 0..rest {
            std::thread::sleep(TURN);
            if ending() {
                return Ok(());
            }
        }
        // The recorder may have ended, or another begun.
        match RingReader::open(&path) {
            Ok(opened) => reader = opened,
            Err(error) => told.complain(&session::ring_failure(&error).to_string()),
        }
    }
}

/// What was said already.
#[derive(Default)]
struct Told {
    trouble: Option<String>,
    damaged: HashSet<Sequence>,
    is_full: bool,
}

impl Told {
    fn complain(&mut self, trouble: &str) {
        if self.trouble.as_deref() != Some(trouble) {
            let _ = writeln!(io::stderr(), "holdfast: {trouble}");
        }
        self.trouble = Some(trouble.to_owned());
    }

    fn tell(&mut self, done: &CopyReport, always: bool, out: &mut Out) -> Result<()> {
        self.trouble = None;
        for (sequence, place) in &done.damaged {
            if self.damaged.insert(*sequence) {
                let _ =
                    writeln!(io::stderr(), "holdfast: the slot of sequence {sequence} has no copy: {place}");
            }
        }
        let is_news = done.copied > 0 || done.removed > 0 || (done.left > 0) != self.is_full;
        self.is_full = done.left > 0;
        if !is_news && !always {
            return Ok(());
        }
        let CopyReport { slots, bytes, copied, removed, left, .. } = *done;
        if out.is_json() {
            return out.object(&CopiedIndex { slots, bytes, copied, removed, left });
        }
        let room = match left {
            0 => String::new(),
            left => format!("; no room for {} more", counted(left, "slot")),
        };
        out.line(format_args!(
            "{}: {copied} copied, {removed} taken away; {} in {}{room}",
            times::to_the_second(session::now()),
            counted(slots, "slot"),
            ByteSize(bytes),
        ))
    }
}
