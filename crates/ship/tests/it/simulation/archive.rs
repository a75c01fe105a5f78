//! Model of an archive: durable uploads and versions; segments ahead of an upload's offset wait in memory.

use std::collections::BTreeMap;

/// Address of an upload.
pub(super) type Address = u64;

#[derive(Clone)]
pub(super) struct Upload {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    pub(super) length: Option<u64>,
    pub(super) is_stored: bool,
}

/// Request to the archive.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Create { name: String },
    Whole { name: String, bytes: Vec<u8> },
    Ask { address: Address },
    Append { address: Address, start: u64, bytes: Vec<u8>, is_damaged: bool },
    Seal { address: Address, length: u64 },
    Await { address: Address },
    Retire { address: Address },
    Rename { address: Address, name: String },
}

/// Answer of the archive.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Created(Address),
    State { bytes: Vec<u8>, length: Option<u64> },
    Appended,
    Sealed,
    Stored(blake3::Hash),
    Retired,
    Renamed,
    Offset(u64),
    Damaged,
    Lost,
    Locked,
    Full,
}

#[derive(Default)]
pub(super) struct Archive {
    uploads: BTreeMap<Address, Upload>,
    /// Contents of all versions by name, oldest first.
    pub(super) versions: BTreeMap<String, Vec<Vec<u8>>>,
    last: Address,
    pub(super) is_full: bool,
}

impl Archive {
    fn store(&mut self, name: &str, bytes: Vec<u8>) {
        let versions = self.versions.entry(name.to_owned()).or_default();
        if versions.last() != Some(&bytes) {
            versions.push(bytes);
        }
    }

    fn settle(&mut self, address: Address) {
        let Some(upload) = self.uploads.get_mut(&address) else { return };
        if upload.length == Some(upload.bytes.len() as u64) && !upload.is_stored {
            upload.is_stored = true;
            let (name, bytes) = (upload.name.clone(), upload.bytes.clone());
            self.store(&name, bytes);
        }
    }

    fn create(&mut self, name: String, length: Option<u64>) -> Address {
        self.last += 1;
        self.uploads.insert(self.last, Upload { name, bytes: Vec::new(), length, is_stored: false });
        self.last
    }

    /// Carries a request out; `None` when it must wait for segments before it.
    pub(super) fn take(&mut self, request: &Request) -> Option<Answer> {
        Some(match request {
            Request::Create { name } => Answer::Created(self.create(name.clone(), None)),
            Request::Whole { .. } | Request::Append { .. } if self.is_full => Answer::Full,
            Request::Whole { name, bytes } => {
                let address = self.create(name.clone(), Some(bytes.len() as u64));
                if let Some(upload) = self.uploads.get_mut(&address) {
                    upload.bytes.clone_from(bytes);
                }
                self.settle(address);
                Answer::Created(address)
            }
            Request::Append { address, start, bytes, is_damaged } => {
                let Some(upload) = self.uploads.get_mut(address) else { return Some(Answer::Lost) };
                let offset = upload.bytes.len() as u64;
                if upload.is_stored || *start < offset {
                    return Some(Answer::Offset(offset));
                }
                if *is_damaged {
                    return Some(Answer::Damaged);
                }
                if *start > offset {
                    return None;
                }
                upload.bytes.extend(bytes);
                self.settle(*address);
                Answer::Appended
            }
            Request::Ask { address } => match self.uploads.get(address) {
                Some(upload) => Answer::State { bytes: upload.bytes.clone(), length: upload.length },
                None => Answer::Lost,
            },
            Request::Seal { address, length } => {
                let Some(upload) = self.uploads.get_mut(address) else { return Some(Answer::Lost) };
                if upload.bytes.len() as u64 != *length {
                    return Some(Answer::Offset(upload.bytes.len() as u64));
                }
                upload.length = Some(*length);
                self.settle(*address);
                Answer::Sealed
            }
            Request::Await { address } => match self.uploads.get(address) {
                Some(upload) if upload.is_stored => Answer::Stored(blake3::hash(&upload.bytes)),
                Some(_) => Answer::Locked,
                None => Answer::Lost,
            },
            Request::Retire { address } => match self.uploads.remove(address) {
                Some(_) => Answer::Retired,
                None => Answer::Lost,
            },
            Request::Rename { address, name } => match self.uploads.get_mut(address) {
                Some(upload) if upload.is_stored => Answer::Locked,
                Some(upload) => {
                    upload.name.clone_from(name);
                    Answer::Renamed
                }
                None => Answer::Lost,
            },
        })
    }

    /// Bytes of an upload that is not stored.
    pub(super) fn bytes_of(&self, address: Address) -> Option<&[u8]> {
        self.uploads.get(&address).map(|upload| upload.bytes.as_slice())
    }
}
