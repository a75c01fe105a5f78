//! Tests of refused system limits: each is worked around, and reported (promise 8).
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use crate::common;

use common::{bytes_at, fault};
use holdfast_base::BLOCK;
use holdfast_media::{BufferPool, Lock, Op, Prefill, RealDisk, Request, create_file};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

const MIB: u64 = 1 << 20;

fn writes_and_reads(disk: &mut RealDisk, pool: &mut BufferPool) {
    let mut buffer = pool.take().unwrap();
    buffer.fill(3);
    let op = Op::Write { offset: MIB, buffer, len: BLOCK, durable: true };
    assert_eq!(fault(disk, Request { tag: 1, op }), None);
    assert_eq!(bytes_at(disk, MIB, BLOCK), vec![3; BLOCK]);
}

#[test]
fn a_tight_system_makes_it_slower_not_wrong() {
    // As an ordinary user: without the right to lock what one likes.
    let held = capabilities(None).unwrap();
    let effective = held.effective - CapabilitySet::IPC_LOCK;
    set_capabilities(None, CapabilitySets { effective, ..held }).unwrap();
    let files = getrlimit(Resource::Nofile);
    let locked = getrlimit(Resource::Memlock);
    setrlimit(Resource::Memlock, Rlimit { current: Some(MIB), ..locked }).unwrap();

    let mut pool = BufferPool::new(4, 1 << 20, Lock::Wanted).unwrap();
    let warning = pool.warning().unwrap();
    assert!(warning.starts_with("4 MiB of buffers are not locked in memory"), "{warning}");

    let folder = tempfile::tempdir().unwrap();
    let device = create_file(&folder.path().join("ring"), 4 * MIB, Prefill::No).unwrap();
    let mut disk = RealDisk::new(device, &[pool.region()], 4);
    assert!(matches!(disk, RealDisk::File(_)));
    let warnings = disk.warnings().join("\n");
    assert!(warnings.contains("buffers are not registered with the kernel"), "{warnings}");
    writes_and_reads(&mut disk, &mut pool);

    // No more descriptors: none for an io_uring either.
    let device = create_file(&folder.path().join("other"), 4 * MIB, Prefill::No).unwrap();
    setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..files }).unwrap();
    let mut disk = RealDisk::new(device, &[pool.region()], 4);
    setrlimit(Resource::Nofile, files).unwrap();
    assert!(matches!(disk, RealDisk::Plain(_)));
    let warnings = disk.warnings().join("\n");
    assert!(warnings.contains("io_uring cannot be used"), "{warnings}");
    writes_and_reads(&mut disk, &mut pool);
    assert!(disk.ready().is_none());
}
