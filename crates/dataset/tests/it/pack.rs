//! Tests that a packed folder gives back the same tree, and nothing that is wrong.

use bytes::Bytes;
use holdfast_base::failure::Result;
use holdfast_dataset::{
    Compression, Dataset, LocalFile, LocalTarget, Options, PackProgress, Packed, PackedTree, Packing,
    RangeRead, unpack, verify,
};
use holdfast_export::SourceAccess;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

/// State of an entry that packing keeps: mode with kind, time, contents or target, and number of names.
pub(crate) type State = (u32, i64, i64, Vec<u8>, u64);

/// States of all entries below a folder, the folder included.
pub(crate) fn states(folder: &Path) -> BTreeMap<Vec<u8>, State> {
    fn add(all: &mut BTreeMap<Vec<u8>, State>, folder: &Path, path: &Path) {
        let found = fs::symlink_metadata(path).unwrap();
        let contents = if found.is_symlink() {
            fs::read_link(path).unwrap().into_os_string().into_vec()
        } else if found.is_file() {
            fs::read(path).unwrap()
        } else {
            Vec::new()
        };
        let names = if found.is_dir() { 0 } else { found.nlink() };
        let key = path.strip_prefix(folder).unwrap().as_os_str().as_bytes().to_vec();
        all.insert(key, (found.mode(), found.mtime(), found.mtime_nsec(), contents, names));
        if found.is_dir() {
            for item in fs::read_dir(path).unwrap() {
                add(all, folder, &item.unwrap().path());
            }
        }
    }
    let mut all = BTreeMap::new();
    add(&mut all, folder, folder);
    all
}

fn packing<'a>(folder: &'a Path, series: &'a [String]) -> Packing<'a> {
    let owner = "tester".to_owned();
    Packing {
        folder,
        options: Options::default(),
        series,
        raw: None,
        plain_images: false,
        below: None,
        owner,
    }
}

fn pack(packing: &Packing<'_>, to: &Path, progress: &mut dyn FnMut(PackProgress)) -> Result<Packed> {
    holdfast_dataset::pack(packing, Box::new(LocalTarget::make(to, SourceAccess::default())?), progress)
}

fn packed(folder: &Path, to: &Path) -> Packed {
    pack(&packing(folder, &[]), to, &mut |_| ()).unwrap()
}

fn dataset(path: &Path) -> Dataset {
    Dataset::open(Arc::new(LocalFile::open(path).unwrap())).unwrap()
}

/// Packs and unpacks a folder, and compares all entries.
pub(crate) fn round_trip(folder: &Path) -> (tempfile::TempDir, PathBuf, Packed) {
    let out = tempfile::tempdir().unwrap();
    let (to, again) = (out.path().join("p.mcap"), out.path().join("again"));
    let packed = packed(folder, &to);
    assert_eq!((packed.left_out_count, packed.changed_count), (0, 0), "{:?}", packed.left_out);
    let unpacked = unpack(&PackedTree::open_file(&to).unwrap(), &again, &mut |_| ()).unwrap();
    let (before, after) = (states(folder), states(&again));
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    for (path, state) in &before {
        assert!(after[path] == *state, "{}", path.escape_ascii());
    }
    assert_eq!((unpacked.entries, unpacked.damaged_count), (before.len() as u64, 0));
    let dataset = dataset(&to);
    assert_eq!(verify(&dataset, &mut |_| ()).unwrap(), []);
    assert_eq!(dataset.id(), packed.written.id);
    (out, to, packed)
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn cat(file: &Path, path: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    PackedTree::open_file(file).unwrap().cat(path, &mut out).unwrap().unwrap();
    out
}

/// Bytes that do not compress.
fn noise(seed: &str, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new_derive_key(seed).finalize_xof().fill(&mut bytes);
    bytes
}

#[test]
fn plain_files_come_back_and_one_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    for at in 0..300 {
        write(&dir.join(format!("sub{}/f{at}.txt", at % 7)), format!("line {at}\n").repeat(at));
    }
    let old = SystemTime::UNIX_EPOCH + Duration::new(86_400, 123_456_789);
    let file = File::open(dir.join("sub1/f1.txt")).unwrap();
    file.set_times(FileTimes::new().set_modified(old)).unwrap();
    fs::set_permissions(dir.join("sub1/f8.txt"), Permissions::from_mode(0o640)).unwrap();
    fs::set_permissions(dir.join("sub2"), Permissions::from_mode(0o1711)).unwrap();
    let (_out, to, packed) = round_trip(dir);
    let tree = packed.written.manifest.tree.unwrap();
    assert_eq!((tree.files, tree.directories, tree.entries), (300, 8, 308));
    assert_eq!(cat(&to, b"sub3/f10.txt"), fs::read(dir.join("sub3/f10.txt")).unwrap());
    assert_eq!(cat(&to, b"./sub3/f10.txt"), fs::read(dir.join("sub3/f10.txt")).unwrap());
    let open = PackedTree::open_file(&to).unwrap();
    for missing in [&b"sub3/f11.txt"[..], b"sub", b"z", b"../etc/passwd"] {
        assert_eq!(open.cat(missing, &mut io::sink()).unwrap(), None);
    }
    assert!(open.cat(b"sub3", &mut io::sink()).unwrap_err().to_string().contains("a directory"));
}

#[test]
fn odd_names_links_and_empty_entries_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let longest = "x".repeat(255);
    let names: [&[u8]; 9] = [
        b"new\nline",
        b"\xff\xfe not utf-8",
        longest.as_bytes(),
        b" ",
        b"-rf",
        b"a.b",
        b"a-b",
        b"\\",
        "\u{1f512}\u{202e}".as_bytes(),
    ];
    for (at, name) in names.iter().enumerate() {
        write(&dir.join(OsStr::from_bytes(name)), format!("{at}"));
        write(&dir.join("a").join(OsStr::from_bytes(name)), format!("in {at}"));
    }
    fs::create_dir_all(dir.join("empty/and/deep")).unwrap();
    for name in ["empty.txt", "a/empty.txt", "empty/too"] {
        write(&dir.join(name), "");
    }
    for (name, target) in [
        ("to-file", "a.b"),
        ("to-dir", "a"),
        ("dangling", "nowhere/at/all"),
        ("absolute", "/etc/passwd"),
        ("loop", "loop"),
        ("up", "../../.."),
    ] {
        symlink(target, dir.join(name)).unwrap();
    }
    symlink(OsStr::from_bytes(b"\xff\n"), dir.join("a/odd")).unwrap();
    for name in ["0-first", "a/second", "z"] {
        fs::hard_link(dir.join("a.b"), dir.join(name)).unwrap();
    }
    let (out, to, packed) = round_trip(dir);
    let tree = packed.written.manifest.tree.unwrap();
    assert_eq!((tree.hard_links, tree.symlinks), (3, 7));
    let inode = |name: &str| fs::metadata(out.path().join("again").join(name)).unwrap().ino();
    assert!(
        inode("a.b") == inode("0-first") && inode("z") == inode("a/second") && inode("z") == inode("a.b")
    );
    assert_eq!(cat(&to, b"new\nline"), b"0");
    assert_eq!(cat(&to, b"a/second"), b"5");
    let linked = PackedTree::open_file(&to).unwrap().cat(b"absolute", &mut io::sink()).unwrap_err();
    assert!(linked.to_string().contains("a symbolic link to `/etc/passwd`"), "{linked}");
}

#[test]
fn large_and_sparse_files_come_back_with_their_holes() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let dir = folder.path();
    let large = noise("large", (9 << 20) + 17);
    write(&dir.join("large"), &large);
    write(&dir.join("larger"), [&large[..], b"and more"].concat());
    for (name, places, size) in [
        ("hole-first", vec![30 << 20], (30 << 20) + 4096),
        ("hole-last", vec![0], 64 << 20),
        ("holes", vec![1 << 20, 20 << 20, (20 << 20) + 4096], 41 << 20),
        ("all-hole", vec![], 1 << 30),
    ] {
        let file = File::create(dir.join(name)).unwrap();
        file.set_len(size).unwrap();
        for place in places {
            file.write_all_at(&[7; 4096], place).unwrap();
        }
    }
    let to = dir.join("../").join(format!("{}.mcap", dir.file_name().unwrap().display()));
    let packed = packed(dir, &to);
    let again = tempfile::tempdir_in("/var/tmp").unwrap();
    unpack(&PackedTree::open_file(&to).unwrap(), again.path(), &mut |_| ()).unwrap();
    fs::remove_file(&to).unwrap();
    assert!(packed.written.bytes < 12 << 20, "{}", packed.written.bytes);
    for name in ["large", "larger", "hole-first", "hole-last", "holes", "all-hole"] {
        let (before, after) = (dir.join(name), again.path().join(name));
        let (old, new) = (fs::metadata(&before).unwrap(), fs::metadata(&after).unwrap());
        assert_eq!((old.len(), old.mtime_nsec()), (new.len(), new.mtime_nsec()), "{name}");
        assert!(name == "all-hole" || fs::read(&before).unwrap() == fs::read(&after).unwrap(), "{name}");
        assert!(new.blocks() <= old.blocks() + 16, "{name}: {} and {} blocks", old.blocks(), new.blocks());
    }
}

#[test]
fn shared_contents_are_stored_once() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let (small, large) = (noise("small", 50_000), noise("large", 9 << 20));
    for at in 0..40 {
        write(&dir.join(format!("{at}/copy")), &small);
    }
    write(&dir.join("a"), &large);
    write(&dir.join("b"), &large);
    let (_out, to, packed) = round_trip(dir);
    assert_eq!(packed.stored, (small.len() + large.len()) as u64);
    assert!(packed.written.bytes < packed.stored + 30_000, "{}", packed.written.bytes);
    assert_eq!(cat(&to, b"39/copy"), small);
    assert!(cat(&to, b"b") == large);
}

#[test]
fn series_are_channels_of_one_message_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    for at in 0..20u8 {
        write(&dir.join(format!("cam/frame_{at:06}.raw")), vec![at; 1000]);
        write(&dir.join(format!("cam/other{at}.txt")), format!("other {at}"));
    }
    for at in 7..10u8 {
        write(&dir.join(format!("few/{at}.raw")), vec![at; 6 << 20]);
    }
    write(&dir.join("notes.txt"), "notes");
    let out = tempfile::tempdir().unwrap();
    let to = out.path().join("p.mcap");
    let series = ["few/*.raw".to_owned()];
    let options = Options { compression: Compression::None, ..Options::default() };
    let packed = pack(&Packing { options, ..packing(dir, &series) }, &to, &mut |_| ()).unwrap();
    assert_eq!(packed.written.manifest.tree.unwrap().series, 3);
    let bytes = fs::read(&to).unwrap();
    let mut found: BTreeMap<String, Vec<(u32, Vec<u8>)>> = BTreeMap::new();
    for message in mcap::MessageStream::new(&bytes).unwrap() {
        let message = message.unwrap();
        let all = found.entry(message.channel.topic.clone()).or_default();
        all.push((message.sequence, message.data.to_vec()));
    }
    let numbers = |topic: &str| found[topic].iter().map(|(number, _)| *number).collect::<Vec<_>>();
    assert_eq!(numbers("cam/frame_*.raw"), (0..20).collect::<Vec<_>>());
    assert_eq!(found["cam/frame_*.raw"][3].1, [3; 1000]);
    assert_eq!(found["cam/other*.txt"].len(), 20);
    assert_eq!(numbers("few/*.raw"), [7, 8, 9]);
    assert_eq!(found["files"], [(0, b"notes".to_vec())]);
    let wrong = ["[".to_owned()];
    let wrong = pack(&packing(dir, &wrong), &out.path().join("q.mcap"), &mut |_| ()).unwrap_err();
    assert!(wrong.number() == 2 && wrong.to_string().contains("--series"), "{wrong}");
}

#[test]
fn images_are_stored_smaller_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    for frame in 0..20u32 {
        // A slope with noise, as sensors give it.
        let pixel =
            |at: u32| (at % 320 * 7 + at / 320 * 11 + frame + at.wrapping_mul(2_654_435_761) % 13) as u16;
        let pixels: Vec<u8> = (0..320 * 240).flat_map(|at| pixel(at).to_le_bytes()).collect();
        write(&dir.join(format!("raw/{frame:03}.raw")), &pixels);
        write(&dir.join(format!("grey/{frame:03}.pgm")), [b"P5 640 240 255\n", &pixels[..]].concat());
    }
    let (out, raw) = (tempfile::tempdir().unwrap(), "320x240x16".parse().unwrap());
    let sizes = [true, false].map(|plain_images| {
        let to = out.path().join(format!("{plain_images}.mcap"));
        let again = out.path().join(format!("{plain_images}"));
        let packed = pack(&Packing { raw: Some(raw), plain_images, ..packing(dir, &[]) }, &to, &mut |_| ());
        let tree = PackedTree::open_file(&to).unwrap();
        unpack(&tree, &again, &mut |_| ()).unwrap();
        assert!(states(dir) == states(&again));
        assert_eq!(tree.tree().series, 2);
        assert_eq!(cat(&to, b"raw/007.raw"), fs::read(dir.join("raw/007.raw")).unwrap());
        packed.unwrap().written.bytes
    });
    assert!(sizes[1] * 10 < sizes[0] * 8, "{sizes:?}");
}

/// File that counts how often it is read.
struct Counting {
    file: LocalFile,
    reads: AtomicUsize,
}

impl RangeRead for Counting {
    fn size(&self) -> u64 {
        self.file.size()
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.file.read(offset, length)
    }

    fn name(&self) -> String {
        self.file.name()
    }
}

#[test]
fn one_file_of_many_is_found_in_three_reads() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    for at in 0..9000 {
        write(&dir.join(format!("{:02}/{at}x", at % 50)), format!("file {at}"));
    }
    let to = dir.join("p.mcap");
    // A chunk a file makes a summary that is larger than the end that is read first.
    let options = Options { chunk_bytes: 1, ..Options::default() };
    let packed = pack(&Packing { options, ..packing(dir, &[]) }, &to, &mut |_| ()).unwrap();
    assert_eq!(packed.written.manifest.chunks.len(), 9000);
    assert!(packed.written.manifest.tree.as_ref().unwrap().parts.len() > 1);
    for at in [0, 49, 4711, 8999] {
        let file = Arc::new(Counting { file: LocalFile::open(&to).unwrap(), reads: AtomicUsize::new(0) });
        let tree = PackedTree::open(Arc::clone(&file) as Arc<dyn RangeRead>).unwrap();
        let mut out = Vec::new();
        tree.cat(format!("{:02}/{at}x", at % 50).as_bytes(), &mut out).unwrap().unwrap();
        assert_eq!(out, format!("file {at}").as_bytes());
        assert_eq!(file.reads.load(Ordering::Relaxed), 3);
    }
}

#[test]
fn a_dataset_is_as_private_as_the_most_private_entry_in_it() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let folder = tempfile::tempdir().unwrap();
    let (dir, out) = (folder.path().join("in"), folder.path());
    write(&dir.join("sub/a"), "a");
    write(&dir.join("b"), "b");
    symlink("/nowhere", dir.join("link")).unwrap();
    for path in ["", "sub"] {
        fs::set_permissions(dir.join(path), Permissions::from_mode(0o755)).unwrap();
    }
    let private = |name: &str| {
        packed(&dir, &out.join(name));
        fs::metadata(out.join(name)).unwrap().mode().is_multiple_of(0o100)
    };
    let set = |path: &str, mode| fs::set_permissions(dir.join(path), Permissions::from_mode(mode)).unwrap();
    for path in ["sub/a", "b"] {
        set(path, 0o644);
    }
    assert!(!private("all.mcap"));
    set("sub/a", 0o600);
    assert!(private("file.mcap"));
    set("sub/a", 0o644);
    set("sub", 0o700);
    assert!(private("directory.mcap"));
}

#[test]
fn special_files_and_the_output_itself_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    write(&dir.join("a"), "a");
    let _socket = UnixListener::bind(dir.join("socket")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, dir.join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let to = dir.join("p.mcap");
    let packed = packed(dir, &to);
    let left_out: Vec<_> = packed.left_out.iter().map(|one| (one.shown(), one.reason.as_str())).collect();
    assert_eq!(packed.left_out_count, 2);
    assert!(left_out[0].0 == "pipe" && left_out[0].1.contains("a named pipe"), "{left_out:?}");
    assert!(left_out[1].0 == "socket" && left_out[1].1.contains("a socket"), "{left_out:?}");
    assert_eq!(packed.written.manifest.tree.unwrap().entries, 2);
}

#[test]
fn a_file_that_changes_meanwhile_is_told_and_consistent() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let large = noise("large", 12 << 20);
    write(&dir.join("in/large"), &large);
    let to = dir.join("p.mcap");
    let mut is_changed = false;
    let inside = dir.join("in");
    let packed = pack(&packing(&inside, &[]), &to, &mut |_| {
        if !std::mem::replace(&mut is_changed, true) {
            OpenOptions::new().append(true).open(dir.join("in/large")).unwrap().write_all(b"more").unwrap();
        }
    });
    let packed = packed.unwrap();
    assert_eq!((packed.changed_count, packed.changed[0].shown()), (1, "large".to_owned()));
    let (read, now) = (cat(&to, b"large"), fs::read(dir.join("in/large")).unwrap());
    assert!(read.len() >= large.len() && now.starts_with(&read));
    assert_eq!(verify(&dataset(&to), &mut |_| ()).unwrap(), []);
}

#[test]
fn an_existing_file_and_a_folder_that_is_not_empty_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    write(&dir.join("in/a"), "a");
    write(&dir.join("mine"), "mine");
    let inside = dir.join("in");
    let taken = pack(&packing(&inside, &[]), &dir.join("mine"), &mut |_| ()).unwrap_err();
    assert!(taken.to_string().contains("there is a file of that name"), "{taken}");
    assert_eq!(fs::read(dir.join("mine")).unwrap(), b"mine");
    let missing = pack(&packing(&dir.join("none"), &[]), &dir.join("q"), &mut |_| ()).unwrap_err();
    assert!(missing.to_string().contains("cannot open the folder"), "{missing}");
    let file = pack(&packing(&dir.join("mine"), &[]), &dir.join("q"), &mut |_| ()).unwrap_err();
    assert_eq!(file.number(), 2, "{file}");
    assert!(!dir.join("q").exists());
    let to = dir.join("p.mcap");
    packed(&inside, &to);
    let tree = PackedTree::open_file(&to).unwrap();
    let refused = unpack(&tree, &inside, &mut |_| ()).unwrap_err();
    assert!(refused.to_string().contains("not empty"), "{refused}");
    fs::create_dir(dir.join("empty")).unwrap();
    assert_eq!(unpack(&tree, &dir.join("empty"), &mut |_| ()).unwrap().entries, 2);
}

/// Distance of the bytes that are changed, one at a time.
const STEP: usize = 43;

#[test]
fn a_changed_byte_gives_an_error_or_what_was_packed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    for at in 0..30 {
        write(&dir.join(format!("in/{}/{at}", at % 3)), format!("file {at} ").repeat(at * 5));
    }
    write(&dir.join("in/shared"), "file 3 ".repeat(15));
    symlink("shared", dir.join("in/link")).unwrap();
    let (whole, changed, again) = (dir.join("p.mcap"), dir.join("q.mcap"), dir.join("again"));
    let inside = dir.join("in");
    let options = Options { chunk_bytes: 2000, ..Options::default() };
    pack(&Packing { options, ..packing(&inside, &[]) }, &whole, &mut |_| ()).unwrap();
    let (right, bytes) = (states(&inside), fs::read(&whole).unwrap());
    let mut errors = 0;
    for at in (0..bytes.len()).step_by(STEP) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&changed, &bytes).unwrap();
        let tree = PackedTree::open(Arc::new(LocalFile::open(&changed).unwrap()));
        let unpacked =
            tree.map_err(|_| ()).and_then(|tree| unpack(&tree, &again, &mut |_| ()).map_err(|_| ()));
        let is_whole = unpacked.as_ref().is_ok_and(|unpacked| unpacked.damaged_count == 0);
        if let Ok(unpacked) = &unpacked {
            let found = states(&again);
            assert_eq!(found.len() as u64 + unpacked.damaged_count, right.len() as u64, "byte {at}");
            // The time of a directory is that of its last entry, be it one that was removed again.
            let is_right =
                |(path, state): (&Vec<u8>, &State)| state.3 == right[path].3 && state.0 == right[path].0;
            assert!(found.iter().all(is_right), "byte {at}");
        }
        let dataset = Dataset::open(Arc::new(LocalFile::open(&changed).unwrap()));
        let findings = dataset.and_then(|dataset| verify(&dataset, &mut |_| ()));
        // Verification finds what unpacking fails of.
        assert!(is_whole || findings.is_err() || findings.is_ok_and(|found| !found.is_empty()), "byte {at}");
        errors += usize::from(!is_whole);
        let _ = fs::remove_dir_all(&again);
    }
    assert!(errors > bytes.len() / STEP / 4, "{errors} of {} bytes", bytes.len());
    for length in (0..bytes.len()).step_by(97) {
        fs::write(&changed, &bytes[..length]).unwrap();
        assert!(PackedTree::open(Arc::new(LocalFile::open(&changed).unwrap())).is_err(), "{length} bytes");
    }
}

#[test]
fn real_inputs_come_back() {
    let Some(data) = std::env::var_os("HOLDFAST_TEST_DATA") else {
        println!("skipped: $HOLDFAST_TEST_DATA does not name the folder of real inputs");
        return;
    };
    for name in ["odd", "licences", "robot", "rosbag", "pcap"] {
        round_trip(&Path::new(&data).join(name));
    }
}
