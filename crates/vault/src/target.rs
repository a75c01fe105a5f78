//! Object of a vault as the target of a dataset.

use crate::place::Place;
use crate::upload::Upload;
use crate::vault::Vault;
use holdfast_base::failure::Result;
use holdfast_dataset::{LocalTarget, RangeRead, SourceAccess, Target};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Upload as a target.
pub struct VaultTarget {
    name: String,
    upload: Upload,
}

impl VaultTarget {
    /// Begins an upload to a free name. `access` is that to the sources of its bytes.
    pub fn begin(vault: &Arc<Vault>, path: &str, access: SourceAccess) -> Result<Self> {
        let mut upload = vault.upload(path)?;
        upload.narrow(access);
        Ok(Self { name: vault.place(path), upload })
    }

    /// Begins an upload to a free name. Once the flag is set, each flush makes the bytes durable, and a folder keeps them if
    /// the process is killed or the upload dropped.
    pub(crate) fn begin_kept(
        vault: &Arc<Vault>,
        path: &str,
        access: SourceAccess,
    ) -> Result<(Self, Arc<AtomicBool>)> {
        let mut upload = vault.kept_upload(path)?;
        upload.narrow(access);
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

    fn narrow(&mut self, access: SourceAccess) {
        self.upload.narrow(access);
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
    /// Begins to write a dataset to this place, which must be free. `access` is that to the sources of its bytes.
    pub fn target(&self, access: SourceAccess) -> Result<Box<dyn Target>> {
        match self {
            Self::Local(path) => Ok(Box::new(LocalTarget::make(path, access)?)),
            Self::Vault(vault, path) => Ok(Box::new(VaultTarget::begin(vault, path, access)?)),
        }
    }
}
