//! `holdfast format`: make a ring on a device or in a file.

use crate::args::MoreArgs;
use crate::out::Out;
use crate::progress;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{BLOCK, ByteSize, Rate};
use holdfast_client::config;
use holdfast_client::json::FormattedRing;
use holdfast_client::{random, session};
use holdfast_export::AtomicFile;
use holdfast_format::{Geometry, Key, Name, Terms};
use holdfast_media::{
    Access, Buffer, CreateError, Device, Foreign, Medium, Prefill, RealDisk, create_file, signature, wipe,
};
use holdfast_planning::plan::{Kept, Promise};
use holdfast_planning::{guarantee, identity, profile_notes};
use holdfast_ring::{NewRing, Shape, create, least_named, too_small_to_hold};
use rustix::fs::FileType;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes that prefilling a device writes at once.
const FILL: usize = 8 << 20;

/// Slot buffers of a recorder on a small ring, unless it was given little or much memory.
const BUFFERS: u32 = 4;

/// Create a ring on a device, or in a new file
#[derive(clap::Args, Clone, Debug)]
#[command(
    after_help = "A device or file with contents is refused without --force. The printed recovery string rebuilds a\n\
    lost superblock (`holdfast check --geometry STRING PATH`): keep it elsewhere.\n\n\
    With --profile and --rate the ring is created only if the rate is admissible; otherwise the ring\n\
    works at best effort. `holdfast plan` computes this in advance.\n\n\
    Examples:\n  holdfast format lab.hf --size 10GiB\n  holdfast format /dev/sdb --name lwa1 --slot 64MiB\n  \
    holdfast format /dev/sdb --profile sdb.profile.json --rate 60MiB/s --region 0..80%"
)]
pub(crate) struct Args {
    /// Block device, partition, new file, or a name from the configuration file
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Size of the file (a device is used completely)
    #[arg(long, value_name = "SIZE")]
    size: Option<ByteSize>,
    /// Name of the ring, up to 64 bytes (default: the file's name)
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Slot size, a power of two from 64KiB to 256MiB (default: a 64th of the ring)
    #[arg(long, value_name = "SIZE")]
    slot: Option<ByteSize>,
    /// Write all slots once now, so that the first lap is as fast as later ones
    #[arg(long)]
    prefill: bool,
    /// Destroy existing contents
    #[arg(long)]
    force: bool,
    /// Profile of the device, from `holdfast profile`, for a guaranteed rate
    #[arg(long, value_name = "FILE", requires = "rate")]
    profile: Option<PathBuf>,
    /// Payload rate of all streams together to guarantee
    #[arg(long, value_name = "RATE", requires = "profile")]
    rate: Option<Rate>,
    #[command(flatten)]
    more: MoreArgs,
}

/// What is at the path.
enum There {
    Nothing,
    File,
    Device,
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let args = &Args { path: config::ring(&args.path)?.path, ..args.clone() };
    let path = args.path.as_path();
    let name = args.name.clone().unwrap_or_else(|| named_after(path));
    Name::new(&name).map_err(|error| Failure::usage(error).at("--name"))?;
    let promise = promise(args)?;
    let Made { device, layout, filled, place } = match there(path)? {
        There::Device => on_device(args, promise.as_ref())?,
        There::File => in_place_of(args, promise.as_ref())?,
        There::Nothing => in_new_file(args, promise.as_ref())?,
    };
    let mut warnings = device.warnings().to_vec();
    let nothing = too_small_to_hold(&layout.geometry, layout.buffers, layout.named);
    warnings.extend(nothing.map(|nothing| nothing.to_string()));
    let mut disk = RealDisk::new(device, &[], 1);
    let plain = NewRing::plain(random::ring_id()?, Key(random::bytes()?), &name, layout.geometry);
    let new = NewRing { prefilled: filled, terms: layout.terms, ..plain };
    let made = create(&mut disk, new, session::now())
        .map_err(|error| Failure::failed(format_args!("cannot make the ring: {error}")).at_path(path))?;
    drop(disk);
    if let Some(place) = place {
        place.take()?;
    }
    let geometry = &made.geometry;
    let unwritten = if made.prefilled { 0 } else { geometry.slots };
    let guarantee = guarantee::of(path, &made, unwritten);
    if let Some(promise) = &promise {
        warnings.extend(promise.elsewhere(path));
        warnings.extend(profile_notes(promise.profile()));
    }
    let shown = FormattedRing {
        path,
        name: &made.name,
        ring: made.ring.to_string(),
        lane_bytes: geometry.lane_bytes,
        slot_bytes: geometry.slot_bytes,
        slots: geometry.slots,
        reserve: made.reserve,
        prefilled: made.prefilled,
        recovery: made.to_recovery_string(),
        warnings: &warnings,
        guarantee: guarantee.as_ref(),
    };
    if out.is_json() {
        return out.object(&shown);
    }
    out.line(format_args!(
        "{}: ring \"{}\", {} slots of {}, {} of them never held",
        path.display(),
        shown.name,
        shown.slots,
        ByteSize(shown.slot_bytes),
        shown.reserve
    ))?;
    for line in guarantee::lines(guarantee.as_ref()) {
        out.line(format_args!("  {line}"))?;
    }
    for warning in &warnings {
        out.line(format_args!("note: {warning}"))?;
    }
    out.line("recovery string (keep it somewhere else; it holds the ring's key):")?;
    out.line(format_args!("  {}", shown.recovery))
}

fn named_after(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut name = String::new();
    for c in stem.chars().take_while(|c| !c.is_control()) {
        if name.len() + c.len_utf8() > holdfast_base::MAX_NAME {
            break;
        }
        name.push(c);
    }
    name
}

fn there(path: &Path) -> Result<There> {
    match rustix::fs::stat(path) {
        Ok(stat) => Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => There::File,
            // What is neither is refused when it is opened, by its kind.
            _ => There::Device,
        }),
        Err(rustix::io::Errno::NOENT) => Ok(There::Nothing),
        Err(error) => Err(Failure::io("cannot look there", path, &error.into())),
    }
}

/// What is to be made of a lane.
struct Layout {
    geometry: Geometry,
    /// What it is admitted for.
    terms: Option<Terms>,
    /// Slot buffers that a recorder will have.
    buffers: u32,
    /// Slots that it will have named to be overwritten, at least.
    named: u32,
}

/// A place that is ready to become a ring.
struct Made {
    device: Device,
    layout: Layout,
    filled: bool,
    /// Where a file belongs, which has another name until it is a ring.
    place: Option<Place>,
}

/// The place of a ring file in the making.
struct Place {
    file: AtomicFile,
    path: PathBuf,
    /// What is there until then, and nobody else's.
    old: Option<Device>,
}

impl Place {
    /// The file gets its name, and what was there is gone.
    fn take(self) -> Result<()> {
        let Self { file, path, old } = self;
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let taken = file.named(&path, old.is_some());
        taken.and_then(|()| File::open(folder)?.sync_all()).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => refused("something", &path),
            _ => Failure::io("cannot give the ring its name", &path, &error),
        })
    }
}

/// What is to be promised, if anything.
fn promise(args: &Args) -> Result<Option<Promise>> {
    let Some((file, rate)) = args.profile.as_ref().zip(args.rate) else { return Ok(None) };
    Promise::read(file, &args.more.options(rate, args.slot)).map(Some)
}

/// How a lane of so many bytes is divided: as was said, or as is admitted.
fn layout(bytes: u64, args: &Args, promise: Option<&Promise>) -> Result<Layout> {
    let Some(promise) = promise else {
        return Ok(Layout { geometry: divide(bytes, args.slot)?, terms: None, buffers: BUFFERS, named: 0 });
    };
    let Kept { geometry, terms, admitted } = promise.weigh(bytes)?;
    let Shape { buffers, gather, .. } = admitted.shape;
    let named = least_named(&admitted.guarantee, gather);
    Ok(Layout { geometry, terms: Some(terms), buffers, named })
}

/// The division of a lane; a slot size that does not fit is the caller's mistake.
fn divide(bytes: u64, slot: Option<ByteSize>) -> Result<Geometry> {
    let slot = slot.map_or_else(|| Geometry::default_slot(bytes), |slot| slot.0);
    let divided = |bytes| Geometry::for_lane(bytes, slot, Vec::new()).map_err(Failure::usage);
    // Looked at as it was given, so that it is told so.
    divided(bytes).and_then(|_| divided(whole_blocks(bytes)))
}

fn whole_blocks(bytes: u64) -> u64 {
    bytes / BLOCK as u64 * BLOCK as u64
}

fn in_new_file(args: &Args, promise: Option<&Promise>) -> Result<Made> {
    let path = args.path.as_path();
    let size = args.size.ok_or_else(|| needs_size("there is nothing at that path", path))?;
    in_file(args, promise, path, size, None)
}

/// In a file of another name, so that what is there stays until the ring is whole.
fn in_file(
    args: &Args,
    promise: Option<&Promise>,
    path: &Path,
    size: ByteSize,
    mut old: Option<Device>,
) -> Result<Made> {
    let layout = layout(size.0, args, promise)?;
    let bytes = layout.geometry.lane_bytes;
    let mut made = beside(path, bytes, args.prefill)?;
    if let (Err(CreateError::NoSpace { free, .. }), Some(_)) = (&made, &old)
        && free.saturating_add(gives_back(path)?) >= bytes
    {
        // There is room for one of them only.
        std::fs::remove_file(path).map_err(|error| Failure::io("cannot replace the file", path, &error))?;
        old = None;
        made = beside(path, bytes, args.prefill)?;
    }
    let (file, device) =
        made.map_err(|error| Failure::failed(format_args!("cannot make the file: {error}")))?;
    let place = Place { file, path: path.to_owned(), old };
    Ok(Made { device, layout, filled: args.prefill, place: Some(place) })
}

/// Makes the file under another name; errors are told of the name that it is to have.
fn beside(path: &Path, bytes: u64, prefill: bool) -> Result<Result<(AtomicFile, Device), CreateError>> {
    let bar = progress::bar(bytes, prefill);
    let mut told = |done| bar.set_position(done);
    let create = |part: &Path| {
        let prefill = if prefill { Prefill::Yes(&mut told) } else { Prefill::No };
        create_file(part, bytes, prefill)
    };
    let made = AtomicFile::beside(path, create, |error| matches!(error, CreateError::Exists { .. }))?;
    bar.finish_and_clear();
    Ok(made.map_err(|error| error.of(path)))
}

/// What the file system has more when that file is gone.
fn gives_back(path: &Path) -> Result<u64> {
    let found = std::fs::metadata(path).map_err(|error| Failure::io("cannot look there", path, &error))?;
    Ok(if found.nlink() == 1 { found.blocks() * 512 } else { 0 })
}

fn needs_size(why: &str, path: &Path) -> Failure {
    let advice = "give --size to make a ring file, such as --size 10GiB, or the path of a device";
    Failure::usage(why).at_path(path).advice(advice)
}

/// A file that is there already gives way, if it may.
fn in_place_of(args: &Args, promise: Option<&Promise>) -> Result<Made> {
    // A link to it stays one.
    let path = std::fs::canonicalize(&args.path);
    let path = &path.map_err(|error| Failure::io("cannot look there", &args.path, &error))?;
    // Opened as its owner first: a ring that is being recorded is refused whatever was said.
    let device = own(path)?;
    let length =
        std::fs::metadata(path).map_err(|error| Failure::io("cannot look there", path, &error))?.len();
    if length > 0 && !args.force {
        let file = || refused(&format!("a file of {}", ByteSize(length)), path);
        return Err(found(&device, path)?.map_or_else(file, |found| occupied(found, path)));
    }
    let length_or_none = (length > 0).then_some(ByteSize(length));
    let size = args.size.or(length_or_none).ok_or_else(|| needs_size("this file is empty", path))?;
    in_file(args, promise, path, size, Some(device))
}

fn on_device(args: &Args, promise: Option<&Promise>) -> Result<Made> {
    let path = args.path.as_path();
    let device = own(path)?;
    if args.size.is_some() {
        return Err(Failure::usage("a device is used whole")
            .at_path(path)
            .advice("leave --size out, or make a partition of that size"));
    }
    if device.info().medium != Medium::Device {
        return Err(Failure::failed("this changed while it was looked at").at_path(path).advice("try again"));
    }
    // Who destroys it anyway need not be able to read it.
    if !args.force
        && let Some(found) = found(&device, path)?
    {
        return Err(occupied(found, path));
    }
    if let Some(promise) = promise {
        promise.is_of(&identity::of(path, device.info().bytes))?;
    }
    let layout = layout(device.info().bytes, args, promise)?;
    let bytes = layout.geometry.lane_bytes;
    let wrong = |error| Failure::failed(format_args!("cannot write to the device: {error}")).at_path(path);
    wipe(&device).map_err(wrong)?;
    if args.prefill {
        let bar = progress::bar(bytes, true);
        let mut zeros = Buffer::aligned(FILL).map_err(Failure::failed)?;
        zeros.fill(0);
        let mut at = 0;
        while at < bytes {
            let len = (bytes - at).min(FILL as u64) as usize;
            device.write(at, &zeros, len).map_err(wrong)?;
            at += len as u64;
            bar.set_position(at);
        }
        device.sync().map_err(wrong)?;
        bar.finish_and_clear();
    }
    Ok(Made { device, layout, filled: args.prefill, place: None })
}

fn own(path: &Path) -> Result<Device> {
    Device::open(path, Access::Own)
        .map_err(|error| Failure::failed(format_args!("cannot make a ring here: {error}")))
}

fn found(device: &Device, path: &Path) -> Result<Option<Foreign>> {
    signature(device)
        .map_err(|error| Failure::failed(format_args!("cannot see what is there: {error}")).at_path(path))
}

/// It is not for us to take; a ring that was only damaged can be had back.
fn occupied(found: Foreign, path: &Path) -> Failure {
    let refused = refused(&found.to_string(), path);
    if found == Foreign::LostRing {
        return refused.advice(format_args!(
            "`holdfast check --geometry find {}` brings the ring back; --force destroys it",
            path.display()
        ));
    }
    refused
}

fn refused(what: &str, path: &Path) -> Failure {
    Failure::failed(format_args!("there is {what} already"))
        .at_path(path)
        .advice("choose another path, or say --force to destroy it")
}
