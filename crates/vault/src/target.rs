//! Object of a vault as the target of a dataset.

use crate::place::Place;
use crate::upload::Upload;
use crate::vault::Vault;
use holdfast_base::failure::Result;
use holdfast_dataset::{LocalTarget, RangeRead, Target};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Upload as a target.
pub struct VaultTarget {
    name: String,
    upload: Upload,
}

impl VaultTarget {
    /// Begins an upload to a free name.
    pub fn begin(vault: &Arc<Vault>, path: &str) -> Result<Self> {
        Ok(Self { name: vault.place(path), upload: vault.upload(path)? })
    }

    /// Begins an upload to a free name that a folder keeps if its process is killed. The flag keeps it also if it is dropped.
    pub(crate) fn begin_kept(vault: &Arc<Vault>, path: &str) -> Result<(Self, Arc<AtomicBool>)> {
        let upload = vault.kept_upload(path)?;
        let keeps = upload.keeps();
        Ok((Self { name: vault.place(path), upload }, keeps))
    }
}

impl Write for VaultTarget {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.upload.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.upload.flush()
    }
}

impl Target for VaultTarget {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn inode(&self) -> Option<(u64, u64)> {
        None
    }

    fn verify(&mut self) -> Result<Arc<dyn RangeRead>> {
        let (object, _) = self.upload.verify()?;
        Ok(Arc::new(object))
    }

    fn publish(self: Box<Self>) -> Result<()> {
        self.upload.publish()
    }
}

impl Place {
    /// Begins to write a dataset to this place, which must be free.
    pub fn target(&self) -> Result<Box<dyn Target>> {
        match self {
            Self::Local(path) => Ok(Box::new(LocalTarget::make(path)?)),
            Self::Vault(vault, path) => Ok(Box::new(VaultTarget::begin(vault, path)?)),
        }
    }
}
