//! The mount: real programs and system calls on it. As root with /dev/fuse; elsewhere these tests check nothing.

use crate::world::{World, contents};
use holdfast_fs::{FileSystem, MountOptions, MountSession, mount};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

struct Mounted {
    session: Option<MountSession>,
    pub(crate) fs: Arc<FileSystem>,
    folder: PathBuf,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        assert!(!self.session.take().unwrap().unmount().unwrap(), "the mount is still used");
    }
}

fn mounted(world: &World) -> Option<Mounted> {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        eprintln!("the mount is not tested: this is not root, or there is no /dev/fuse");
        return None;
    }
    let folder = world.folder().join("mnt");
    fs::create_dir(&folder).unwrap();
    let files = world.fs(world.options());
    let session =
        mount(Arc::clone(&files), &folder, MountOptions::default(), world.runtime.handle().clone()).unwrap();
    Some(Mounted { session: Some(session), fs: files, folder })
}

fn runs(folder: &Path, line: &str) -> String {
    let done = Command::new("sh").args(["-ec", line]).current_dir(folder).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{line}: {out}{err}");
    out.into_owned()
}

#[test]
fn programs_work_on_the_mount() {
    let world = World::new();
    let Some(mounted) = mounted(&world) else { return };
    let dir = &mounted.folder;
    let bytes = contents(1, 5_000_000);
    let outside = world.folder().join("run1.raw");
    fs::write(&outside, &bytes).unwrap();
    runs(dir, "mkdir lab lab/2026");
    runs(dir, &format!("cp {} lab/2026/", outside.display()));
    assert_eq!(fs::read(dir.join("lab/2026/run1.raw")).unwrap(), bytes);
    runs(dir, "cmp lab/2026/run1.raw ../run1.raw");
    assert_eq!(runs(dir, "ls lab/2026"), "run1.raw\n");
    let found = fs::metadata(dir.join("lab/2026/run1.raw")).unwrap();
    assert_eq!(found.len(), bytes.len() as u64);
    runs(dir, "mv lab/2026/run1.raw lab/first.raw && test ! -e lab/2026/run1.raw");
    assert_eq!(fs::metadata(dir.join("lab/first.raw")).unwrap().ino(), found.ino());
    // A file that is replaced by the rename of another one, as editors do it.
    runs(dir, "echo one > lab/notes && echo two > lab/notes.new && mv lab/notes.new lab/notes");
    assert_eq!(runs(dir, "cat lab/notes"), "two\n");
    runs(dir, "echo three >> lab/notes");
    assert_eq!(runs(dir, "cat lab/notes; wc -c < lab/notes"), "two\nthree\n10\n");
    runs(dir, "tar cf ../lab.tar lab && mkdir copy && tar xf ../lab.tar -C copy --strip-components=1");
    runs(dir, "cmp copy/first.raw ../run1.raw && diff -r lab copy");
    runs(dir, "rm -r copy && rmdir lab/2026 && test ! -e copy");
    let refused = Command::new("rmdir").arg(dir.join("lab")).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("not empty"), "{refused:?}");
    let site = world.site();
    let stat = world.run(site.catalog_stat("/lab/first.raw")).unwrap();
    assert_eq!(stat.versions[0].blake3, blake3::hash(&bytes).to_hex().as_str());
    assert!(mounted.fs.unwritten().is_empty());
}

#[test]
fn metadata_are_extended_attributes() {
    let world = World::new();
    let Some(mounted) = mounted(&world) else { return };
    let file = mounted.folder.join("lab/run");
    fs::create_dir(mounted.folder.join("lab")).unwrap();
    fs::write(&file, "x").unwrap();
    let get = |name: &str| {
        let mut value = vec![0; 1000];
        let length = rustix::fs::getxattr(&file, name, &mut value)?;
        Ok::<_, rustix::io::Errno>(String::from_utf8(value[..length].to_vec()).unwrap())
    };
    let set = |name: &str, value: &str| {
        rustix::fs::setxattr(&file, name, value.as_bytes(), rustix::fs::XattrFlags::empty())
    };
    assert_eq!(get("user.target"), Err(rustix::io::Errno::NODATA));
    set("user.target", "m31").unwrap();
    set("user.exposure", "1.5[s]").unwrap();
    assert_eq!(get("user.target").unwrap(), "m31");
    assert_eq!(get("user.exposure").unwrap(), "1.5[s]");
    assert_eq!(get("user.holdfast.blake3").unwrap(), blake3::hash(b"x").to_hex().as_str());
    assert!(set("user.holdfast.blake3", "0").is_err());
    let stat = world.run(world.site().catalog_stat("/lab/run")).unwrap();
    let exposure = stat.attributes.iter().find(|attribute| attribute.name == "exposure").unwrap();
    assert_eq!(exposure.unit.as_deref(), Some("s"));
    rustix::fs::removexattr(&file, "user.target").unwrap();
    let mut names = vec![0; 1000];
    let length = rustix::fs::listxattr(&file, &mut names).unwrap();
    let names = String::from_utf8(names[..length].to_vec()).unwrap();
    assert!(names.contains("user.exposure\0") && !names.contains("user.target\0"), "{names:?}");
}

#[test]
fn random_reads_writes_and_truncations_agree_with_a_local_file() {
    let world = World::new();
    let Some(mounted) = mounted(&world) else { return };
    fs::create_dir(mounted.folder.join("lab")).unwrap();
    let (ours, local) = (mounted.folder.join("lab/f"), world.folder().join("f"));
    let open = |path: &PathBuf| {
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
    };
    let mut files = [open(&ours), open(&local)];
    let steps = contents(7, 16 * 400);
    for (step, words) in steps.chunks(16).enumerate() {
        let number = |at: usize| u32::from_le_bytes(words[at..at + 4].try_into().unwrap());
        let (offset, length) = (u64::from(number(4) % 300_000), u64::from(number(8) % 50_000));
        match number(0) % 6 {
            0 | 1 => {
                let bytes = contents(u64::from(number(12)), length as usize);
                for file in &files {
                    file.write_all_at(&bytes, offset).unwrap();
                }
            }
            2 => {
                for file in &files {
                    file.set_len(offset).unwrap();
                }
            }
            3 => files = [open(&ours), open(&local)],
            4 => {
                for file in &files {
                    file.sync_all().unwrap();
                }
            }
            _ => {}
        }
        let read = |file: &File| {
            let mut bytes = vec![0; length as usize];
            let got = file.read_at(&mut bytes, offset).unwrap();
            bytes.truncate(got);
            (bytes, file.metadata().unwrap().len())
        };
        assert!(read(&files[0]) == read(&files[1]), "step {step}");
    }
    drop(files);
    assert!(fs::read(&ours).unwrap() == fs::read(&local).unwrap());
}

#[test]
fn a_large_directory_lists_each_entry_once() {
    let world = World::new();
    let Some(mounted) = mounted(&world) else { return };
    fs::create_dir(mounted.folder.join("lab")).unwrap();
    let site = world.site();
    world.run(async {
        let make =
            async |at: usize| site.make_collection(&format!("/lab/{at:05}"), false, None).await.unwrap();
        for first in (0..2500).step_by(50) {
            futures::future::join_all((first..first + 50).map(make)).await;
        }
    });
    let mut names: Vec<String> = fs::read_dir(mounted.folder.join("lab"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, (0..2500).map(|at| format!("{at:05}")).collect::<Vec<_>>());
    assert_eq!(runs(&mounted.folder, "ls -l lab | wc -l"), "2501\n");
}

#[test]
fn many_files_are_open_and_two_writers_share_one() {
    let world = World::new();
    let Some(mounted) = mounted(&world) else { return };
    let dir = mounted.folder.join("lab");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("a"), contents(1, 100_000)).unwrap();
    let open: Vec<File> = (0..300).map(|_| File::open(dir.join("a")).unwrap()).collect();
    for (at, file) in open.iter().enumerate() {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at as u64 * 300).unwrap();
        assert_eq!(byte[0], contents(1, 100_000)[at * 300]);
    }
    // An open file keeps its version.
    fs::write(dir.join("a"), "new").unwrap();
    let mut bytes = vec![0; 100_000];
    open[0].read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, contents(1, 100_000));
    assert_eq!(fs::read(dir.join("a")).unwrap(), b"new");
    let writers = [(); 2].map(|()| OpenOptions::new().write(true).open(dir.join("a")).unwrap());
    writers[0].write_all_at(b"N", 0).unwrap();
    writers[1].write_all_at(b"W", 2).unwrap();
    drop(writers);
    assert_eq!(fs::read(dir.join("a")).unwrap(), b"NeW");
    // A deleted file lives while it is open, and is not stored.
    let mut gone = File::create(dir.join("gone")).unwrap();
    fs::remove_file(dir.join("gone")).unwrap();
    std::io::Write::write_all(&mut gone, b"x").unwrap();
    drop(gone);
    assert!(!dir.join("gone").exists());
    assert_eq!(runs(&mounted.folder, "ls lab"), "a\n");
}
