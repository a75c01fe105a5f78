//! Replication over HTTP: the state of the catalog, batches of operations in, and batches out.

use crate::access::Access;
use crate::app::App;
use crate::archive::VersionId;
use crate::object_path::ProjectName;
use crate::problem::{Problem, ProblemKind};
use crate::replication::{Extent, Injected, collect, extract, inject};
use crate::routes::catalog::versions::respond_version;
use crate::site::SiteArchive;
use crate::store_error::blocking;
use crate::token::Scope;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use axum::{Extension, Json};
use holdfast_catalog::{Catalog, CatalogError, ObjectId, VersionVector};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::mpsc;
use utoipa::{IntoParams, ToSchema};

/// Bytes of a snapshot that are sent together.
const PIECE: usize = 256 << 10;

/// Pieces of a snapshot that wait for the network.
const MOST_PIECES: usize = 8;

/// State of the catalog of this site.
#[derive(Serialize, ToSchema)]
pub(crate) struct SiteState {
    /// Identity of the site in hexadecimal digits.
    site: String,
    /// Name that the site gives itself.
    name: String,
    /// Number of operations of each site that are applied, `SITE:NUMBER` with spaces between.
    vector: String,
}

/// Digest of the catalog of this site.
#[derive(Serialize, ToSchema)]
pub(crate) struct CatalogDigest {
    /// Identity of the site in hexadecimal digits.
    site: String,
    /// Name that the site gives itself.
    name: String,
    /// Digest of all records, 64 hexadecimal digits.
    digest: String,
    /// Number of operations of each site that are applied, `SITE:NUMBER` with spaces between.
    vector: String,
}

/// Effect of pushed operations.
#[derive(Serialize, ToSchema)]
pub(crate) struct Pushed {
    /// Number of operations that were applied.
    applied: u64,
    /// Number of operations that need earlier ones, and were not kept.
    waiting: u64,
    /// Number of operations whose stamps are too far ahead of this clock.
    quarantined: u64,
    /// Number of operations of each site that are applied now.
    vector: String,
}

/// Operations that are wanted.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Beyond {
    /// Number of operations of each site that the client has, `SITE:NUMBER` with spaces between.
    #[serde(default)]
    beyond: String,
}

/// Identity, name and vector of this site.
#[utoipa::path(get, path = "/replication", tag = "replication", responses((status = 200, body = SiteState)))]
pub(crate) async fn state(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
) -> Result<Json<SiteState>, Problem> {
    access.require(&[Scope::Replicate], None)?;
    let vector = super::catalog::with(&app, "read the state", Catalog::vector).await?.to_string();
    let (site, name) = (app.site.catalog.site().to_string(), app.name.clone());
    Ok(Json(SiteState { site, name, vector }))
}

/// Digest of the whole catalog, equal at all sites that have applied the same operations. It reads every record.
#[utoipa::path(get, path = "/replication/digest", tag = "replication", responses((status = 200, body = CatalogDigest)))]
pub(crate) async fn digest(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
) -> Result<Json<CatalogDigest>, Problem> {
    if access.require(&[Scope::Replicate], None).is_err() {
        access.require_site(Scope::Read)?;
    }
    let read = |catalog: &mut Catalog<_>| Ok((catalog.digest()?, catalog.vector()?));
    let (digest, vector) = super::catalog::with(&app, "read the catalog", read).await?;
    let (site, name) = (app.site.catalog.site().to_string(), app.name.clone());
    Ok(Json(CatalogDigest { site, name, digest: digest.to_string(), vector: vector.to_string() }))
}

/// Operations of other sites: applied in causal order, all or none, known ones again without effect.
#[utoipa::path(post, path = "/replication/operations", tag = "replication",
    request_body(content = Vec<u8>, content_type = "application/octet-stream",
        description = "Operations, each behind its length in 4 bytes, little-endian"),
    responses((status = 200, body = Pushed), (status = 400, description = "An operation cannot be read or applied")))]
pub(crate) async fn push(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    batch: Bytes,
) -> Result<Json<Pushed>, Problem> {
    access.require(&[Scope::Replicate], None)?;
    let shared = Arc::clone(&app);
    let done = blocking(move || {
        let operations = collect(&batch).map_err(|reason| {
            let detail =
                format_args!("cannot read the operations: {reason}; compare the versions of the software");
            Problem::new(ProblemKind::BadRequest, detail)
        })?;
        let injected = inject(&shared.site, &shared.log, &operations);
        injected.map_err(|error| super::catalog::problem("apply the operations", &error))
    });
    let done = done.await.map_err(|error| Problem::store("apply the operations", &error))?;
    let Injected { applied, waiting, quarantined, vector } = done?;
    Ok(Json(Pushed { applied, waiting, quarantined, vector: vector.to_string() }))
}

/// Operations beyond a vector, in causal order: a batch in the form of a push, empty if there are none.
#[utoipa::path(get, path = "/replication/operations", tag = "replication", params(Beyond),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 400, description = "The vector cannot be read")))]
pub(crate) async fn pull(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(choice): Query<Beyond>,
) -> Result<Bytes, Problem> {
    access.require(&[Scope::Replicate], None)?;
    let vector: VersionVector =
        choice.beyond.parse().map_err(|error| Problem::new(ProblemKind::BadRequest, error))?;
    let extract = move |catalog: &mut Catalog<_>| extract(catalog, &vector, Extent::All);
    Ok(super::catalog::with(&app, "read the log", extract).await?.bytes)
}

/// Contents of a version of an object, from a vault of this site only.
#[utoipa::path(get, path = "/replication/objects/{object}/{version}", tag = "replication",
    params(("object" = String, Path, description = "Identity of the object"),
        ("version" = String, Path, description = "Identity of the version"),
        ("Range" = Option<String>, Header, description = "One range of bytes")),
    responses((status = 200, description = "The contents"), (status = 206, description = "The range of the contents"),
        (status = 404, description = "This site has no replica of the version")))]
pub(crate) async fn read(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path((object, version)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    access.require(&[Scope::Replicate], None)?;
    let missing = || Problem::not_found("a replica of the version");
    let object: ObjectId = object.parse().map_err(|error| Problem::new(ProblemKind::BadRequest, error))?;
    let version = VersionId::parse(&version).ok_or_else(missing)?;
    // The project is for the log only.
    let project = ProjectName::parse("replication").map_err(|error| Problem::name("read", &error))?;
    let open = move |site: &SiteArchive| site.open_here(object, &version);
    respond_version(&app, &headers, project, open).await?.ok_or_else(missing)
}

/// Snapshot of the whole catalog, from which a new site or one that is far behind starts.
#[utoipa::path(get, path = "/replication/snapshot", tag = "replication",
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream")))]
pub(crate) async fn snapshot(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
) -> Result<Body, Problem> {
    access.require(&[Scope::Replicate], None)?;
    let (sender, receiver) = mpsc::channel::<Bytes>(MOST_PIECES);
    let opened = Arc::clone(&app);
    let catalog = blocking(move || opened.site.catalog.open_another()).await;
    let catalog = catalog.map_err(|error| Problem::store("open the catalog", &error))?;
    let mut catalog = catalog.map_err(|error| super::catalog::problem("open the catalog", &error))?;
    tokio::task::spawn_blocking(move || {
        let mut piece = Vec::with_capacity(PIECE);
        let done = catalog.export_snapshot(&mut |bytes| {
            piece.extend_from_slice(bytes);
            if piece.len() < PIECE {
                return Ok(());
            }
            let full = std::mem::replace(&mut piece, Vec::with_capacity(PIECE));
            sender
                .blocking_send(full.into())
                .map_err(|_| CatalogError::Damaged("nobody reads the snapshot".into()))
        });
        match done {
            Ok(()) => drop(sender.blocking_send(piece.into())),
            // The end of the snapshot is missing, which its reader sees.
            Err(error) => app.log.trouble("replication", error),
        }
    });
    let pieces = futures::stream::unfold(receiver, |mut receiver| async move {
        Some((Ok::<_, Infallible>(receiver.recv().await?), receiver))
    });
    Ok(Body::from_stream(pieces))
}
