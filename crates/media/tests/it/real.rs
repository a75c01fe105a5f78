//! Tests of the real disks on real files and devices: what is reported done is there (promises 4 and 6), what
//! fails is reported by kind (promise 8).
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use crate::common;

use common::{LONG, Loop, Mount, bytes_at, fault, measure, read_into, run, tool, write};
use holdfast_base::BLOCK;
use holdfast_media::{
    Access, Buffer, BufferPool, CreateError, Device, Disk, Fault, Lock, Medium, Op, PlainDisk, Prefill,
    RealDisk, Request, UringDisk, create_file, extend_file,
};
use std::path::Path;
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// All that any disk of 8 MiB must do.
fn exercise(disk: &mut dyn Disk, pool: &mut BufferPool) {
    assert_eq!(disk.info().bytes, 8 * MIB);
    // Registered buffers and others, durable or not, many at once.
    let mut wanted = Vec::new();
    for number in 0..8u64 {
        let mut buffer = if number < 4 { pool.take().unwrap() } else { Buffer::aligned(1 << 20).unwrap() };
        buffer.fill(number as u8 + 1);
        let durable = number % 2 == 0;
        let op = Op::Write { offset: number * MIB, buffer, len: 1 << 20, durable };
        disk.submit(Request { tag: number, op }).unwrap();
        wanted.push(number);
    }
    let (mut seen, mut spare) = (Vec::new(), Vec::new());
    while seen.len() < 8 {
        let done = disk.complete(LONG).unwrap();
        assert_eq!(done.result, Ok(()));
        seen.push(done.tag);
        spare.extend(done.buffer);
    }
    seen.sort_unstable();
    assert_eq!(seen, wanted);
    assert_eq!(fault(disk, Request { tag: 9, op: Op::Flush }), None);
    // Read back into all kinds of buffers, in other pieces than written.
    for (number, mut buffer) in spare.into_iter().enumerate() {
        buffer.fill(0xff);
        let offset = number as u64 * MIB + MIB / 2 * u64::from(number < 7);
        let done = run(disk, read_into(number as u64, offset, buffer));
        assert_eq!(done.result, Ok(()));
        let buffer = done.buffer.unwrap();
        let (front, back) = buffer.split_at(1 << 19);
        let next = if number < 7 { 2 } else { 1 };
        assert!(
            front.iter().all(|b| *b == number as u8 + 1) && back.iter().all(|b| *b == number as u8 + next)
        );
        let _ = pool.give(buffer);
    }
    // Part of a buffer only.
    let mut buffer = Buffer::aligned(1 << 20).unwrap();
    buffer.fill(77);
    run(disk, Request { tag: 1, op: Op::Write { offset: 4096, buffer, len: BLOCK, durable: true } });
    let around = bytes_at(disk, 0, 3 * BLOCK);
    assert!(around.chunks(BLOCK).map(|block| block[0]).eq([1, 77, 1]));
    // Outside and unaligned.
    for offset in [8 * MIB, 100, u64::MAX - 4095] {
        assert_eq!(fault(disk, write(1, offset, BLOCK, 1, true)), Some(Fault::Misplaced));
    }
    assert!(disk.complete(LONG).is_none(), "nothing is under way, so nothing is waited for");
    // More than it takes at once.
    let depth = disk.info().depth as u64;
    for tag in 0..depth {
        disk.submit(Request { tag, op: Op::Flush }).unwrap();
    }
    assert_eq!(disk.submit(write(999, 0, BLOCK, 1, true)).unwrap_err().tag, 999);
    for _ in 0..depth {
        assert_eq!(disk.complete(LONG).unwrap().result, Ok(()));
    }
}

fn pool() -> BufferPool {
    BufferPool::new(4, 1 << 20, Lock::No).unwrap()
}

fn uring(device: Device, pool: &BufferPool) -> UringDisk {
    UringDisk::new(device, &[pool.region()], 16).map_err(|(_, cause)| cause).unwrap()
}

fn new_file(folder: &Path, bytes: u64) -> Device {
    create_file(&folder.join("ring"), bytes, Prefill::No).unwrap()
}

#[test]
fn a_file_under_io_uring() {
    let folder = tempfile::tempdir().unwrap();
    let mut pool = pool();
    let mut disk = uring(new_file(folder.path(), 8 * MIB), &pool);
    assert_eq!(disk.info().medium, Medium::File);
    exercise(&mut disk, &mut pool);
    assert!(disk.complete(Duration::ZERO).is_none());
    drop(disk);
    let device = Device::open(&folder.path().join("ring"), Access::Own).unwrap();
    assert_eq!(bytes_at(&mut uring(device, &pool), 7 * MIB, BLOCK), vec![8; BLOCK]);
}

#[test]
fn a_file_that_threads_write() {
    let folder = tempfile::tempdir().unwrap();
    let mut pool = pool();
    let mut disk = RealDisk::new(new_file(folder.path(), 8 * MIB), &[pool.region()], 16);
    assert!(matches!(disk, RealDisk::File(_)), "{disk:?}");
    exercise(&mut disk, &mut pool);
    assert!(disk.complete(Duration::ZERO).is_none());
}

#[test]
fn what_threads_write_durably_reaches_the_device_as_flushes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::File::create(folder.path().join("image")).unwrap().set_len(64 * MIB).unwrap();
    let Some(device) = Loop::over(&folder.path().join("image")) else { return };
    let path = device.0.to_str().unwrap();
    let Some(mount) = tool("mkfs.ext4", &["-q", path]).and_then(|_| Mount::of(path)) else { return };
    let mut disk = RealDisk::new(new_file(mount.path(), 8 * MIB), &[], 16);
    assert_eq!(fault(&mut disk, Request { tag: 1, op: Op::Flush }), None);
    for at in 0..8 {
        let before = flushes(&device.0);
        assert_eq!(fault(&mut disk, write(1, at * MIB, 1 << 20, 1, true)), None);
        assert!(flushes(&device.0) > before);
    }
}

#[test]
fn a_file_by_plain_calls() {
    let folder = tempfile::tempdir().unwrap();
    exercise(&mut PlainDisk::new(new_file(folder.path(), 8 * MIB), 16), &mut pool());
}

#[test]
fn a_loop_device_under_io_uring() {
    let folder = tempfile::tempdir().unwrap();
    drop(new_file(folder.path(), 8 * MIB));
    let Some(device) = Loop::over(&folder.path().join("ring")) else { return };
    let mut pool = pool();
    let mut disk = RealDisk::new(Device::open(&device.0, Access::Own).unwrap(), &[pool.region()], 16);
    assert_eq!((disk.info().medium, disk.info().direct), (Medium::Device, true));
    assert_eq!(disk.warnings(), &[] as &[String]);
    exercise(&mut disk, &mut pool);
    // It does not become longer because somebody wishes so.
    extend_file(&device.0, 9 * MIB, Prefill::No).unwrap();
    assert_eq!((fault(&mut disk, measure()), disk.info().bytes), (None, 8 * MIB));
    // The backing file shrinks: reads fail, and say so.
    let backing = std::fs::OpenOptions::new().write(true).open(folder.path().join("ring")).unwrap();
    backing.set_len(MIB).unwrap();
    assert_eq!(fault(&mut disk, read_into(1, 4 * MIB, Buffer::aligned(BLOCK).unwrap())), Some(Fault::Io));
}

/// Flushes that a block device was asked for, by the kernel's count.
fn flushes(device: &Path) -> u64 {
    let name = device.file_name().unwrap().to_str().unwrap();
    let stat = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    stat.split_whitespace().nth(15).unwrap().parse().unwrap()
}

#[test]
fn durable_writes_and_flushes_reach_the_device_as_flushes_and_other_writes_do_not() {
    let folder = tempfile::tempdir().unwrap();
    drop(new_file(folder.path(), 8 * MIB));
    let Some(device) = Loop::over(&folder.path().join("ring")) else { return };
    let mut pool = pool();
    let mut disk = uring(Device::open(&device.0, Access::Own).unwrap(), &pool);
    let mut count = |op: Op| {
        let before = flushes(&device.0);
        assert_eq!(fault(&mut disk, Request { tag: 1, op }), None);
        flushes(&device.0) - before
    };
    let buffer = pool.take().unwrap();
    assert_eq!(count(Op::Write { offset: 0, buffer, len: 1 << 20, durable: false }), 0);
    let buffer = pool.take().unwrap();
    assert!(count(Op::Write { offset: 0, buffer, len: 1 << 20, durable: true }) > 0);
    let buffer = Buffer::aligned(1 << 20).unwrap();
    assert!(count(Op::Write { offset: 0, buffer, len: 1 << 20, durable: true }) > 0);
    assert!(count(Op::Flush) > 0);
}

#[test]
fn without_direct_io_writes_are_buffered_synced_and_warned_of() {
    // ramfs has neither direct I/O nor a way to reserve space.
    let Some(mount) = Mount::new("ramfs", "mode=700") else { return };
    let mut pool = pool();
    let device = new_file(mount.path(), 8 * MIB);
    assert!(!device.info().direct);
    let mut disk = uring(device, &pool);
    let warnings = disk.warnings().join("\n");
    assert!(warnings.contains("no direct I/O") && warnings.contains("no guarantee on ramfs"), "{warnings}");
    exercise(&mut disk, &mut pool);
}

#[test]
fn a_full_file_system_is_told_from_a_damaged_medium() {
    let Some(mount) = Mount::new("tmpfs", "size=1m") else { return };
    let path = mount.path().join("sparse");
    std::fs::File::create(&path).unwrap().set_len(4 * MIB).unwrap();
    let check = |disk: &mut dyn Disk| {
        let results: Vec<Option<Fault>> =
            (0..4).map(|at| fault(disk, write(at, at * MIB, 1 << 20, 1, true))).collect();
        assert_eq!(results.last(), Some(&Some(Fault::NoSpace)), "{results:?}");
    };
    check(&mut uring(Device::open(&path, Access::Own).unwrap(), &pool()));
    check(&mut RealDisk::new(Device::open(&path, Access::Own).unwrap(), &[], 4));
    let full = extend_file(&path, 64 * MIB, Prefill::No);
    assert!(matches!(full, Err(CreateError::NoSpace { .. })), "{full:?}");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 4 * MIB, "what was not to be had is given back");
}

#[test]
fn a_file_grows_and_keeps_what_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = RealDisk::new(new_file(folder.path(), MIB), &[], 4);
    run(&mut disk, write(1, 0, BLOCK, 7, true));
    let path = folder.path().join("ring");
    for wanted in [4 * MIB, 2 * MIB] {
        extend_file(&path, wanted, Prefill::No).unwrap();
        assert_eq!((fault(&mut disk, measure()), disk.info().bytes), (None, 4 * MIB), "never shrinks");
    }
    assert_eq!(fault(&mut disk, write(2, 3 * MIB, BLOCK, 8, true)), None);
    assert_eq!(bytes_at(&mut disk, 0, BLOCK)[0], 7);
    assert_eq!(std::fs::metadata(path).unwrap().len(), 4 * MIB);
}

#[test]
fn what_is_added_is_written_in_advance_and_the_file_is_never_longer_than_that_has_come() {
    let folder = tempfile::tempdir().unwrap();
    drop(new_file(folder.path(), MIB));
    let path = folder.path().join("ring");
    let mut told = Vec::new();
    let mut progress = |done| {
        told.push(done);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), MIB + done);
        // Whoever came now would write over what the ring has taken into use.
        let other = std::process::Command::new("python3")
            .args([
                "-c",
                "import fcntl,sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)",
            ])
            .arg(&path)
            .stderr(std::process::Stdio::null())
            .status();
        assert!(!other.is_ok_and(|status| status.success()), "it is not locked");
    };
    extend_file(&path, 20 * MIB, Prefill::Yes(&mut progress)).unwrap();
    assert_eq!(told, [8 * MIB, 16 * MIB, 19 * MIB]);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 20 * MIB);
}

#[test]
fn a_file_that_somebody_cut_short_gives_errors_and_no_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = RealDisk::new(new_file(folder.path(), MIB), &[], 4);
    let file = std::fs::OpenOptions::new().write(true).open(folder.path().join("ring")).unwrap();
    file.set_len(6 * BLOCK as u64).unwrap();
    for offset in [4 * BLOCK as u64, 8 * BLOCK as u64] {
        let request = read_into(1, offset, Buffer::aligned(4 * BLOCK).unwrap());
        assert_eq!(fault(&mut disk, request), Some(Fault::Io));
    }
}

#[test]
fn a_disk_that_is_dropped_in_the_midst_finishes_what_it_was_given() {
    let pool = pool();
    let kinds: [&dyn Fn(Device) -> Box<dyn Disk>; 2] =
        [&|device| Box::new(uring(device, &pool)), &|device| {
            Box::new(RealDisk::new(device, &[pool.region()], 16))
        }];
    for kind in kinds {
        let folder = tempfile::tempdir().unwrap();
        let mut disk = kind(new_file(folder.path(), 8 * MIB));
        for at in 0..8 {
            disk.submit(write(at, at * MIB, 1 << 20, 9, true)).unwrap();
        }
        drop(disk);
        let device = Device::open(&folder.path().join("ring"), Access::Own).unwrap();
        let mut disk = uring(device, &pool);
        assert!((0..8).all(|at| bytes_at(&mut disk, at * MIB, 1 << 20).iter().all(|b| *b == 9)));
    }
}

#[test]
fn one_who_only_looks_reads_beside_the_owner_and_cannot_write() {
    let folder = tempfile::tempdir().unwrap();
    let mut owner = RealDisk::new(new_file(folder.path(), MIB), &[], 4);
    run(&mut owner, write(1, 0, BLOCK, 5, true));
    let device = Device::open(&folder.path().join("ring"), Access::Look).unwrap();
    let mut looking = RealDisk::new(device, &[], 4);
    assert_eq!(bytes_at(&mut looking, 0, BLOCK), vec![5; BLOCK]);
    assert!(fault(&mut looking, write(1, 0, BLOCK, 6, true)).is_some());
}
