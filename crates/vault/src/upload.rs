//! Upload of an object: written in one go, read back and compared, and only then visible.

use crate::object::VaultObject;
use crate::store::Writing;
use crate::vault::Vault;
use holdfast_base::failure::{Failure, Result};
use holdfast_dataset::{Passed, SourceAccess};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Upload of an object. Dropped before it is published, it leaves nothing, unless it is to be kept.
pub struct Upload {
    vault: Arc<Vault>,
    path: String,
    writing: Writing,
    passed: Passed,
    is_published: bool,
    /// True if a flush has to keep the bytes.
    keeps: Arc<AtomicBool>,
    /// True if the bytes outlive this process.
    is_kept: bool,
}

/// Object that an upload has stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Size of the object in bytes.
    pub bytes: u64,
    /// BLAKE3 of the bytes, in hexadecimal digits.
    pub blake3: String,
}

impl Upload {
    pub(crate) fn new(vault: Arc<Vault>, path: &str, writing: Writing) -> Self {
        Self {
            vault,
            path: path.to_owned(),
            writing,
            passed: Passed::default(),
            is_published: false,
            keeps: Arc::default(),
            is_kept: false,
        }
    }

    /// Flag that makes each flush durable, and keeps the bytes of an upload that is dropped before it is published.
    pub(crate) fn keeps(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.keeps)
    }

    /// Notes access to a source of the bytes: in a folder the object becomes no wider than it.
    pub fn narrow(&mut self, access: SourceAccess) {
        self.writing.narrow(access);
    }

    /// Ends writing, makes the bytes durable, reads them back and compares them with what was written.
    pub fn verify(&mut self) -> Result<(VaultObject, Stored)> {
        let place = self.vault.place(&self.path);
        let failed = |error: &io::Error| self.vault.failure("cannot store the object", &self.path, error);
        let staged = self.writing.complete().map_err(|error| failed(&error))?;
        let object = VaultObject::open(&self.vault, &staged, &place).map_err(|error| failed(&error))?;
        if !self.passed.are_in(&object).map_err(|error| failed(&error))? {
            return Err(Failure::failed("the bytes read back are not those that were written")
                .at(place)
                .advice(format_args!(
                    "try again; `holdfast vault check {}` tries the vault",
                    self.vault.name()
                )));
        }
        Ok((object, Stored { bytes: self.passed.bytes(), blake3: self.passed.blake3() }))
    }

    /// Makes the object visible under its name. Call [`verify`](Self::verify) before.
    pub fn publish(mut self) -> Result<()> {
        let published = self.writing.publish();
        published.map_err(|error| self.vault.failure("cannot store the object", &self.path, &error))?;
        self.is_published = true;
        Ok(())
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writing.write(bytes)?;
        self.passed.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.keeps.load(Ordering::Relaxed) {
            self.is_kept = self.writing.keep()?;
        }
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if !self.is_published && !self.is_kept {
            self.writing.abort();
        }
    }
}
