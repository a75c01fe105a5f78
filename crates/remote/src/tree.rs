//! Tree of a site's catalog: new collections, moves, copies, the trash, and lists of replicas.

use crate::catalog::{CatalogKind, CatalogPage};
use crate::error::RemoteError;
use crate::send::Call;
use crate::site::Site;
use bytes::Bytes;
use reqwest::Method;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Entry by its path and its identity.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct EntryId {
    /// Path of the entry; for a deleted one its former path.
    pub path: String,
    /// Identity of the entry.
    pub id: String,
}

/// Part of a copy that is done.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CopiedEntries {
    /// Number of objects that were made.
    pub objects: u64,
    /// Number of collections that were made.
    pub collections: u64,
    /// Bytes of the contents of these objects, which are not stored a second time.
    pub bytes: u64,
    /// Value of `after` with which the copy goes on; `None` at its end.
    pub next: Option<String>,
}

/// Entry of the trash.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TrashedEntry {
    /// Former path of the entry.
    pub path: String,
    /// Identity of the entry.
    pub id: String,
    /// Kind of the entry.
    pub kind: CatalogKind,
    /// Time of the deletion, in milliseconds since 1970.
    pub deleted: i64,
}

/// Replica with the object that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PlacedReplica {
    /// Path of the object; `None` if it lies in the trash.
    pub path: Option<String>,
    /// Identity of the object.
    pub id: String,
    /// Identity of the version.
    pub version: String,
    /// Site of the vault, in hexadecimal digits.
    pub site: String,
    /// Name of the site; empty from a server that tells none.
    #[serde(default)]
    pub site_name: String,
    /// Name of the vault at its site.
    pub vault: String,
    /// Key of the bytes in the vault.
    pub key: String,
    /// State: pending, verified, damaged or missing.
    pub state: String,
}

impl Site {
    /// Makes a collection; with `parents` also those above it, and an existing one is no error. An owner gets the right own.
    pub async fn make_collection(
        &self,
        path: &str,
        parents: bool,
        owner: Option<&str>,
    ) -> Result<EntryId, RemoteError> {
        let action = format!("make the collection `{path}` by");
        let query = (("path", path), ("parents", parents), ("owner", owner));
        self.ask_tree(Method::POST, &["collections"], &action, &query).await
    }

    /// Moves or renames an entry; the new path must be free.
    pub async fn move_entry(&self, from: &str, to: &str) -> Result<(), RemoteError> {
        self.replace_entry(from, to, false).await
    }

    /// Moves or renames an object. With `replace` an object at the new path goes to the trash in the same step.
    pub async fn replace_entry(&self, from: &str, to: &str, replace: bool) -> Result<(), RemoteError> {
        let url = &self.address(["catalog", "moves"])?;
        let action = &format!("move `{from}` to `{to}` by");
        let request = self
            .request(Method::POST, url)
            .query(&[("from", from), ("to", to)])
            .query(&[("replace", replace)]);
        let (body, patience) = (Bytes::new(), Duration::ZERO);
        self.send(Call { action, url, request, body, patience }).await.map(drop)
    }

    /// Gives an object a second name; the new path must be free.
    pub async fn link_entry(&self, from: &str, to: &str) -> Result<EntryId, RemoteError> {
        let action = format!("link `{from}` to `{to}` by");
        self.ask_tree(Method::POST, &["links"], &action, &[("from", from), ("to", to)]).await
    }

    /// Copies an object; with `recursive` also the first part of a collection, and with `after` a further one.
    pub async fn copy_entry(
        &self,
        from: &str,
        to: &str,
        recursive: bool,
        after: Option<&str>,
    ) -> Result<CopiedEntries, RemoteError> {
        let action = format!("copy `{from}` to `{to}` by");
        let query = (("from", from), ("to", to), ("recursive", recursive), ("after", after));
        self.ask_tree(Method::POST, &["copies"], &action, &query).await
    }

    /// Moves an object to the trash, with `recursive` also a collection with all below it.
    pub async fn delete_entry(&self, path: &str, recursive: bool) -> Result<EntryId, RemoteError> {
        let action = format!("delete `{path}` by");
        let query = (("path", path), ("recursive", recursive));
        self.ask_tree(Method::DELETE, &["entries"], &action, &query).await
    }

    /// Lists the trash of the entries that were at or below a path, one page behind the identity `after`.
    pub async fn list_trash(
        &self,
        path: Option<&str>,
        after: Option<&str>,
    ) -> Result<CatalogPage<TrashedEntry>, RemoteError> {
        let query = (("path", path), ("after", after));
        self.ask_tree(Method::GET, &["trash"], "list the trash by", &query).await
    }

    /// Takes an entry out of the trash, to its former path or to a new one.
    pub async fn restore_entry(&self, id: &str, to: Option<&str>) -> Result<EntryId, RemoteError> {
        let action = format!("restore {id} by");
        self.ask_tree(Method::POST, &["trash", id], &action, &[("to", to)]).await
    }

    /// Removes an entry of the trash for ever, once all sites know that it was deleted.
    pub async fn purge_entry(&self, id: &str) -> Result<(), RemoteError> {
        let url = &self.address(["catalog", "trash", id])?;
        let request = self.request(Method::DELETE, url);
        let (action, body) = ("purge by", Bytes::new());
        self.send(Call { action, url, request, body, patience: Duration::ZERO }).await.map(drop)
    }

    /// Lists the replicas of the objects at or below a path, one page behind the identity `after`.
    ///
    /// With `only_here` it lists the verified ones whose version no other site has verified.
    pub async fn list_replicas(
        &self,
        path: Option<&str>,
        only_here: bool,
        after: Option<&str>,
    ) -> Result<CatalogPage<PlacedReplica>, RemoteError> {
        let query = (("path", path), ("only_here", only_here), ("after", after));
        self.ask_tree(Method::GET, &["replicas"], "list the replicas by", &query).await
    }

    /// Sends a request without a body to an address below that of the catalog.
    async fn ask_tree<T: DeserializeOwned>(
        &self,
        method: Method,
        names: &[&str],
        action: &str,
        query: &(impl Serialize + ?Sized),
    ) -> Result<T, RemoteError> {
        let url = &self.address(["catalog"].into_iter().chain(names.iter().copied()))?;
        let request = self.request(method, url).query(query);
        let (body, patience) = (Bytes::new(), Duration::ZERO);
        self.send_json(Call { action, url, request, body, patience }).await
    }
}
