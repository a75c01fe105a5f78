//! Files of an instrument: contents, inodes, and writers that grow, rewrite, truncate, replace, rename and delete them.

use super::random::Random;
use holdfast_ship::transfer::{FileIdentity, Observation};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Inode with its contents; stays readable through a handle after its deletion.
pub(super) struct Inode {
    pub(super) number: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) modified: i64,
}

impl Inode {
    pub(super) fn observe(&self) -> Observation {
        Observation {
            identity: FileIdentity { device: 1, inode: self.number },
            size: self.bytes.len() as u64,
            modified: self.modified,
            changed: self.modified,
        }
    }
}

pub(super) type Handle = Rc<RefCell<Inode>>;

/// Change that a watcher may report.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Changed(String),
    Closed(String),
    Removed(String),
    Renamed(String, String),
}

#[derive(Default)]
pub(super) struct Files {
    pub(super) names: BTreeMap<String, Handle>,
    open: BTreeMap<String, bool>,
    inodes: u64,
    clock: i64,
    /// Bytes that were ever appended.
    pub(super) appended: u64,
}

impl Files {
    pub(super) fn observe(&self, name: &str) -> Option<Observation> {
        self.names.get(name).map(|inode| inode.borrow().observe())
    }

    fn tick(&mut self) -> i64 {
        self.clock += 1;
        self.clock
    }

    fn create(&mut self, name: &str) {
        self.inodes += 1;
        let modified = self.tick();
        let inode = Inode { number: self.inodes, bytes: Vec::new(), modified };
        self.names.insert(name.to_owned(), Rc::new(RefCell::new(inode)));
        self.open.insert(name.to_owned(), true);
    }

    fn append(&mut self, name: &str, random: &mut Random) {
        let modified = self.tick();
        let length = random.below(40);
        self.appended += length;
        let mut inode = self.names[name].borrow_mut();
        inode.bytes.extend((0..length).map(|_| random.next() as u8));
        inode.modified = modified;
    }

    /// Step of the instrument with one of its files.
    pub(super) fn step(&mut self, random: &mut Random, is_rewriting: bool) -> Vec<Change> {
        let name = format!("f{}", random.below(3));
        if !self.names.contains_key(&name) {
            self.create(&name);
            return vec![Change::Changed(name)];
        }
        let is_open = self.open.get(&name).copied().unwrap_or(false);
        if !is_open {
            if is_rewriting && random.once_in(4) {
                self.open.insert(name.clone(), true);
            }
            return Vec::new();
        }
        let action = if is_rewriting { random.below(20) } else { random.below(10) };
        match action {
            0 => {
                self.open.insert(name.clone(), false);
                vec![Change::Closed(name)]
            }
            10 | 11 => {
                let modified = self.tick();
                {
                    let mut inode = self.names[&name].borrow_mut();
                    let at = random.below(inode.bytes.len() as u64 + 1) as usize;
                    if let Some(byte) = inode.bytes.get_mut(at) {
                        *byte = byte.wrapping_add(1);
                    }
                    inode.modified = modified;
                }
                vec![Change::Changed(name)]
            }
            12 => {
                let modified = self.tick();
                {
                    let mut inode = self.names[&name].borrow_mut();
                    let length = random.below(inode.bytes.len() as u64 + 1) as usize;
                    inode.bytes.truncate(length);
                    inode.modified = modified;
                }
                vec![Change::Changed(name)]
            }
            13 => {
                self.create(&name);
                self.append(&name, random);
                vec![Change::Changed(name)]
            }
            14 => {
                self.names.remove(&name);
                self.open.remove(&name);
                vec![Change::Removed(name)]
            }
            15 => {
                let to = format!("r{}", random.below(2));
                let Some(inode) = self.names.remove(&name) else { return Vec::new() };
                self.names.insert(to.clone(), inode);
                self.open.remove(&name);
                vec![Change::Renamed(name, to)]
            }
            _ => {
                self.append(&name, random);
                vec![Change::Changed(name)]
            }
        }
    }

    /// Closes all files of the instrument.
    pub(super) fn close_all(&mut self) -> Vec<Change> {
        self.open.clear();
        self.names.keys().cloned().map(Change::Closed).collect()
    }
}
