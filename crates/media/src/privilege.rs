//! Process privileges, given up when everything that needs them is open. Privileges belong to threads: each
//! gives up its own, and threads that it starts afterwards have no more.

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities,
    set_no_new_privs,
};
use std::io;

/// What is kept where it is there: with memory locked for all that comes (`MCL_FUTURE`), a mapping beyond the limit of
/// locked memory fails without it, and such come later: the area of a producer of shared memory, stacks of threads, the
/// buffers of a search. Of files it lets nobody read or write any.
const KEPT: CapabilitySet = CapabilitySet::IPC_LOCK;

/// Lets the calling thread do from here on what any program of its user may, and lock memory; by no program that it
/// runs it gets more. Files, devices and sockets that are open stay as they are.
pub fn drop_privileges() -> io::Result<()> {
    set_no_new_privs(true)?;
    // Not known to kernels before 4.3: then there are none.
    let _ = clear_ambient_capability_set();
    let has = capabilities(None)?;
    let kept = CapabilitySets {
        effective: has.effective & KEPT,
        permitted: has.permitted & KEPT,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, kept)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::no_new_privs;

    #[test]
    fn a_thread_drops_all_but_locked_memory_and_so_do_those_it_starts() {
        // A thread of its own: the test's other threads go on as they are.
        let dropped_by = || {
            drop_privileges().unwrap();
            let within = std::thread::spawn(|| (capabilities(None).unwrap(), no_new_privs().unwrap()));
            (capabilities(None).unwrap(), within.join().unwrap())
        };
        let before = capabilities(None).unwrap();
        let (has, (inherited, closed)) = std::thread::spawn(dropped_by).join().unwrap();
        assert_eq!((has.permitted, has.effective), (before.permitted & KEPT, before.effective & KEPT));
        assert_eq!((has, has.inheritable, closed), (inherited, CapabilitySet::empty(), true));
        assert_eq!(capabilities(None).unwrap(), before);
        // Again, there is nothing more to drop.
        std::thread::spawn(|| drop_privileges().and_then(|()| drop_privileges()).unwrap()).join().unwrap();
    }
}
