//! Runner: one attempt of a task.

use super::command::{self, Output};
use super::local_file::LocalFile;
use super::options::{CommandOptions, DriverAction, DriverOptions, ExtractOptions};
use super::placeholder::Values;
use super::tasks::NewTask;
use crate::extract::{Extractors, MOST_HEADER, prefix_of, read_json};
use crate::site::{NamedStore, SiteArchive, Source, found, tag_of};
use crate::store_error::blocking;
use holdfast_catalog::{CatalogPath, ReplicaPlace, ReplicaState, Stat, Version};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of a command's output that become its message.
const MOST_MESSAGE: usize = 4 << 10;

/// Surroundings of all runs.
pub(crate) struct Runner {
    pub(crate) site: Arc<SiteArchive>,
    pub(crate) extractors: Arc<Extractors>,
    /// Folder of temporary copies.
    pub(crate) folder: PathBuf,
}

/// Version that a task works on.
#[derive(Clone)]
struct Subject {
    path: CatalogPath,
    stat: Arc<Stat>,
    version: Version,
}

/// Result of an attempt, with the path of the object if it was found.
pub(crate) struct Attempt {
    pub(crate) path: Option<String>,
    /// Text of the driver, or the reason of the failure.
    pub(crate) result: Result<String, String>,
}

impl Runner {
    /// Runs a driver once on the version of a task.
    pub(crate) async fn attempt(&self, driver: &DriverOptions, task: &NewTask) -> Attempt {
        let (site, object) = (Arc::clone(&self.site), task.object);
        let Some(tag) = tag_of(&task.version) else {
            return Attempt { path: None, result: Ok("the version is not one of the catalog".to_owned()) };
        };
        let subject = in_background(move || {
            let find = |catalog: &mut _| find(catalog, object, tag);
            site.catalog.with(find).map_err(|error| error.to_string())
        });
        let subject = match subject.await {
            Err(reason) => return Attempt { path: None, result: Err(reason) },
            Ok(None) => return Attempt { path: None, result: Ok("the object was deleted".to_owned()) },
            Ok(Some(subject)) => subject,
        };
        let path = Some(subject.path.to_string());
        let result = match &driver.action {
            DriverAction::Copy { vault } => self.copy(vault, subject).await,
            DriverAction::Extract(extract) => self.extract(extract, &driver.name, task, subject).await,
            DriverAction::Command(command) => {
                let output = self.command(command, task, &subject, MOST_MESSAGE).await;
                output.map(|output| String::from_utf8_lossy(&output.bytes).trim().to_owned())
            }
        };
        Attempt { path, result }
    }

    async fn copy(&self, vault: &str, subject: Subject) -> Result<String, String> {
        let Some(NamedStore { name, store }) = self.site.store(vault).cloned() else {
            return Err(format!("cannot copy the version: there is no vault '{vault}'; configure it"));
        };
        let (site, folder) = (Arc::clone(&self.site), self.folder.clone());
        in_background(move || {
            let Subject { path, stat, version } = subject;
            let first = site.replicas(&stat, version.tag).next();
            let Some(key) = first.map(|(_, key)| key.to_owned()) else {
                return Err("cannot copy the version: no vault of this site has it; restore it".to_owned());
            };
            if site.replicas(&stat, version.tag).any(|(here, _)| here.name == name) {
                return Ok(format!("the vault {name} has it"));
            }
            let text = |error: crate::archive::ArchiveError| error.to_string();
            let file = LocalFile::open(&site, &stat, &version, &folder).map_err(text)?;
            let source = Source {
                file: file.path(),
                size: version.size,
                blake3: blake3::Hash::from_bytes(version.hash.0),
                is_temporary: file.is_temporary(),
            };
            store.put(&key, &source).map_err(text)?;
            let place = ReplicaPlace { site: site.catalog.site(), vault: name.clone(), key };
            let set = site
                .catalog
                .with(|catalog| catalog.set_replica(&path, version.tag, place, ReplicaState::Verified));
            set.map(|()| format!("copied to the vault {name}")).map_err(|error| error.to_string())
        })
        .await
    }

    async fn extract(
        &self,
        options: &ExtractOptions,
        driver: &str,
        task: &NewTask,
        subject: Subject,
    ) -> Result<String, String> {
        let mut prefixes: Vec<String> = options.extractors.iter().map(|name| prefix_of(name)).collect();
        let mut attributes = Vec::new();
        if let Some(command) = &options.command {
            let output = self.command(command, task, &subject, MOST_HEADER).await?;
            if output.is_cut {
                return Err(
                    "cannot read the attributes: the program prints more than 1 MiB; print less".to_owned()
                );
            }
            attributes.extend(read_json(driver, &output.bytes)?);
            prefixes.push(prefix_of(driver));
        }
        let (site, extractors) = (Arc::clone(&self.site), Arc::clone(&self.extractors));
        let names = options.extractors.clone();
        in_background(move || {
            let Subject { path, stat, version } = subject;
            if !names.is_empty() {
                let contents = site.open_replica(&stat, &version).map_err(|error| error.to_string())?;
                for name in &names {
                    attributes.extend(extractors.extract(name, contents.as_ref(), version.size)?);
                }
            }
            attributes.sort();
            attributes.dedup();
            let is_replaced = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
            let number = attributes.len();
            let set = site
                .catalog
                .with(|catalog| catalog.set_attributes(&path, Some(version.tag), &is_replaced, &attributes));
            let is_set = set.map_err(|error| error.to_string())?;
            Ok(if is_set { format!("{number} attributes") } else { "another version is current".to_owned() })
        })
        .await
    }

    async fn command(
        &self,
        command: &CommandOptions,
        task: &NewTask,
        subject: &Subject,
        most_output: usize,
    ) -> Result<Output, String> {
        let (site, folder, wanted) = (Arc::clone(&self.site), self.folder.clone(), subject.clone());
        let file = if command.arguments.iter().any(|argument| argument.contains("{file}")) {
            let open = move || {
                let file = LocalFile::open(&site, &wanted.stat, &wanted.version, &folder);
                file.map(Some).map_err(|error| error.to_string())
            };
            in_background(open).await?
        } else {
            None
        };
        let project = subject.path.components().first().map_or("", String::as_str);
        let path = subject.path.components().get(1..).unwrap_or_default().join("/");
        let values = Values {
            project,
            path: &path,
            version: task.version.as_str(),
            file: file.as_ref().map_or(OsStr::new(""), |file| file.path().as_os_str()),
            blake3: &subject.version.hash.to_string(),
            size: &subject.version.size.to_string(),
        };
        command::run(command, &values, most_output).await
    }
}

/// Object and version of a task; nothing if it was deleted.
fn find(
    catalog: &mut holdfast_catalog::Catalog<crate::site::AnyStore>,
    object: holdfast_catalog::ObjectId,
    tag: holdfast_catalog::Tag,
) -> Result<Option<Subject>, holdfast_catalog::CatalogError> {
    let Some(path) = catalog.path_of(object)? else { return Ok(None) };
    let Some(stat) = found(catalog.stat(&path))? else { return Ok(None) };
    let version = stat.versions.iter().find(|version| version.tag == tag).cloned();
    Ok(version.map(|version| Subject { path, stat: Arc::new(stat), version }))
}

/// Runs blocking work on a thread for it. A panic becomes an error.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    match blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(format!("cannot complete the work: {error:?}; try again")),
    }
}
