//! Places as commands take them: a path of this machine, or `VAULT:PATH`; and the datasets that they stand for.

use crate::vault::{Vault, has_glob, split};
use holdfast_base::failure::{Failure, Result};
use holdfast_dataset::{Dataset, PackedTree, SourceAccess, is_mcap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Place of a dataset.
#[derive(Clone, Debug)]
pub enum Place {
    /// Path of this machine.
    Local(PathBuf),
    /// Path in a vault.
    Vault(Arc<Vault>, String),
}

/// Sources that a place stands for.
#[derive(Clone, Debug)]
pub enum Source {
    /// Ring, by its path or name.
    Ring(PathBuf),
    /// Dataset, and where it lies.
    Dataset(Place),
}

impl Place {
    /// Parses a place. `VAULT:PATH` with a slash before the colon, or beginning with `./`, is a path.
    pub fn parse(place: &Path) -> Result<Self> {
        match split(place) {
            // A file that is there is meant.
            Some(_) if place.exists() => Ok(Self::Local(place.to_owned())),
            Some((vault, path)) => Ok(Self::Vault(Vault::named(vault)?, path.to_owned())),
            None => Ok(Self::Local(place.to_owned())),
        }
    }

    /// Vault and prefix at this place; a folder of this machine, which is made, is a vault of its own.
    pub fn prefix(&self) -> Result<(Arc<Vault>, String)> {
        match self {
            Self::Local(path) => {
                let made = std::fs::create_dir_all(path);
                made.map_err(|error| Failure::io("cannot make the folder", path, &error))?;
                Ok((Vault::open(&folder_entry(path)?)?, String::new()))
            }
            Self::Vault(vault, prefix) => Ok((Arc::clone(vault), prefix.clone())),
        }
    }

    /// Access to what lies at this place, by which exports of it are bounded.
    pub fn access(&self) -> SourceAccess {
        match self {
            Self::Local(path) => SourceAccess::of(path),
            Self::Vault(vault, path) => vault.access(path),
        }
    }

    /// Opens the dataset at this place.
    pub fn dataset(&self) -> Result<Dataset> {
        match self {
            Self::Local(path) => Dataset::open_file(path),
            Self::Vault(vault, path) => vault.dataset(path),
        }
    }

    /// Opens the packed folder at this place.
    pub fn packed_tree(&self) -> Result<PackedTree> {
        match self {
            Self::Local(path) => PackedTree::open_file(path),
            Self::Vault(vault, path) => {
                let object = Arc::new(vault.object(path)?);
                PackedTree::open(object).map_err(|error| vault.dataset_failure(&error, path))
            }
        }
    }

    /// Failure of the dataset at this place.
    pub fn failure(&self, error: &holdfast_dataset::DatasetError) -> Failure {
        match self {
            Self::Local(path) => holdfast_dataset::failure(error, path),
            Self::Vault(vault, path) => vault.dataset_failure(error, path),
        }
    }

    /// Sources at this place: all datasets below a prefix or folder, or a ring.
    pub fn sources(&self) -> Result<Vec<Source>> {
        match self {
            Self::Local(path) if path.is_dir() => {
                let folder = Vault::open(&folder_entry(path)?)?;
                let found = folder.list("")?.into_iter().map(|entry| path.join(entry.path));
                let found = found.filter(|path| is_mcap(path)).map(|path| Source::Dataset(Self::Local(path)));
                let found: Vec<_> = found.collect();
                if found.is_empty() {
                    return Err(Failure::nothing("there is no dataset in this folder").at_path(path));
                }
                Ok(found)
            }
            Self::Local(path) if is_mcap(path) => Ok(vec![Source::Dataset(self.clone())]),
            Self::Local(path) => Ok(vec![Source::Ring(path.clone())]),
            // Listing would cost requests.
            Self::Vault(_, path) if is_named_mcap(path) && !has_glob(path) => {
                Ok(vec![Source::Dataset(self.clone())])
            }
            Self::Vault(vault, prefix) => {
                let found = vault.list(prefix)?.into_iter().filter(|entry| is_named_mcap(&entry.path));
                let found = found.map(|entry| Source::Dataset(Self::Vault(Arc::clone(vault), entry.path)));
                let found: Vec<_> = found.collect();
                if found.is_empty() {
                    return Err(Failure::nothing("there is no dataset at this place")
                        .at(self)
                        .advice(format_args!("`holdfast vault ls {}:` lists all objects", vault.name())));
                }
                Ok(found)
            }
        }
    }
}

/// Datasets of vaults are told by the ending of their name: looking into each would cost a request.
pub(crate) fn is_named_mcap(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("mcap"))
}

fn folder_entry(path: &Path) -> Result<holdfast_client::config::VaultEntry> {
    let path =
        std::path::absolute(path).map_err(|error| Failure::io("cannot open the folder", path, &error))?;
    let url =
        path.to_str().ok_or_else(|| Failure::usage("the name of the folder is not UTF-8").at_path(&path))?;
    Ok(holdfast_client::config::VaultEntry::folder(url))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => write!(f, "{}", path.display()),
            Self::Vault(vault, path) => f.write_str(&vault.place(path)),
        }
    }
}
