//! Full disk: a request is answered by 507, nothing is lost, and the upload goes on when there is room.

use crate::client::contents;
use crate::world::World;
use std::path::{Path, PathBuf};
use std::process::Command;

/// File system in memory of 24 MiB, unmounted at the end.
struct TinyDisk(PathBuf);

impl TinyDisk {
    /// Mounts it, unless that is not permitted here.
    fn mount(folder: &Path) -> Option<Self> {
        std::fs::create_dir(folder).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"]).arg(folder).output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(folder.to_owned())),
            other => {
                println!("skipped: cannot mount a tmpfs: {other:?}");
                None
            }
        }
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn fill_and_resume(reserve: u64, sum: bool) {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    let Some(_disk) = TinyDisk::mount(&disk) else { return };
    let mut world = World::with(|options| {
        options.data = disk.join("data");
        options.limits.reserved_space = reserve;
        options.limits.sync_bytes = 1 << 20;
    });
    let ballast = disk.join("ballast");
    std::fs::write(&ballast, vec![1; 12 << 20]).unwrap();
    let client = world.client();
    let bytes = contents(1, 14 << 20);
    let upload = client.create("big", Some(bytes.len() as u64));
    let header = crate::checksums::checksum("blake3", &bytes);
    let headers: &[_] = if sum { &[("Upload-Checksum", header.as_str())] } else { &[] };
    let refused = client.patch(&upload, 0, headers, &bytes).expect(507);
    assert_eq!(refused.problem(), "disk-full");
    assert!(refused.header("retry-after").is_some());
    let offset = client.settled_offset(&upload);
    assert_eq!(refused.offset(), offset);
    assert_eq!(offset == 0, sum, "{offset}");
    // The state is the same after a restart on the full disk.
    let client = world.restart();
    assert_eq!(client.head(&upload).expect(200).offset(), offset);
    std::fs::remove_file(&ballast).unwrap();
    client.patch(&upload, offset, &[], &bytes[offset as usize..]).expect(204);
    assert!(client.get(&upload).expect(200).body == bytes);
    world.until_stored(&upload);
    assert!(client.get("/projects/default/big").expect(200).body == bytes);
    world.stop();
}

#[test]
fn an_upload_survives_a_full_disk_with_reserved_space() {
    fill_and_resume(4 << 20, false);
}

#[test]
fn an_upload_survives_a_full_disk_without_reserved_space() {
    fill_and_resume(0, false);
}

#[test]
fn a_body_with_a_checksum_on_a_full_disk_keeps_nothing() {
    fill_and_resume(4 << 20, true);
}
