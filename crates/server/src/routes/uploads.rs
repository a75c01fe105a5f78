//! Reads of single uploads by their identity: contents and block hashes.

use super::find_upload;
use crate::access::Access;
use crate::app::App;
use crate::archive::{ReadAt, VersionId};
use crate::contents::{Contents, respond, unreadable};
use crate::live_upload::LiveUpload;
use crate::object_path::{ObjectPath, ProjectName};
use crate::problem::Problem;
use crate::store_error::blocking;
use crate::token::Scope;
use crate::upload_record::{BLOCK_BYTES, UploadRecord, UploadState};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use axum::{Extension, Json};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Most block hashes of one answer: 65536 are those of 64 GiB, in 4.4 MB of JSON.
const MOST_BLOCKS: usize = 65_536;

/// Parameters of reads that can follow a growing upload.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Follow {
    /// Present to keep the answer open until the upload is complete.
    follow: Option<String>,
    /// Version of the object; without it the newest one.
    pub(crate) version: Option<String>,
}

impl Follow {
    /// True when the parameter is present and not `false`.
    pub(crate) fn is_wanted(&self) -> bool {
        self.follow.as_deref().is_some_and(|value| value != "false" && value != "0")
    }
}

/// Contents of an upload, also while it grows.
#[utoipa::path(get, path = "/files/{id}", tag = "uploads",
    params(("id" = String, Path, description = "Identity of the upload, 32 hexadecimal digits"), Follow,
        ("Range" = Option<String>, Header, description = "One range of bytes")),
    responses((status = 200, description = "The contents"), (status = 206, description = "The range of the contents"),
        (status = 404, description = "The upload does not exist"), (status = 416, description = "No byte is in the range")))]
pub(crate) async fn read(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    Query(follow): Query<Follow>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (upload, _) = find_upload(&app, &access, &id, &[Scope::Read]).await?;
    let contents = open_upload(&app, &upload).await?;
    let contents =
        contents.ok_or_else(|| Problem::not_found(format_args!("the contents of the upload {id}")))?;
    respond(contents, &headers, follow.is_wanted(), &app)
}

/// Contents of an upload, from its file or from the archive.
pub(crate) async fn open_upload(
    app: &Arc<App>,
    upload: &Arc<LiveUpload>,
) -> Result<Option<Contents>, Problem> {
    let updates = upload.subscribe();
    let record = upload.record();
    if !record.state.is_settled() {
        let path = app.uploads.file(record.id);
        let opened = blocking(move || File::open(path)).await;
        match opened.map_err(|error| Problem::store("read the upload", &error))? {
            Ok(file) => return Ok(Some(Contents::Upload { file: Box::new(file), updates })),
            // The archive has taken the upload meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(&error)),
        }
    }
    let record = upload.record();
    match (record.state, record.project, record.path) {
        (UploadState::Stored(version), Some(project), Some(path)) => {
            open_stored(app, project, path, Some(version)).await
        }
        _ => Ok(None),
    }
}

/// Version of an object in the archive.
pub(crate) async fn open_stored(
    app: &Arc<App>,
    project: ProjectName,
    path: ObjectPath,
    version: Option<VersionId>,
) -> Result<Option<Contents>, Problem> {
    let archive = Arc::clone(&app.archive);
    let of = project.clone();
    let opened = blocking(move || archive.open(&of, &path, version.as_ref())).await;
    let opened = opened.map_err(|error| Problem::store("open the object", &error))?;
    let opened = opened.map_err(|error| Problem::internal("open the object", error))?;
    Ok(opened.map(|version| Contents::Stored(project, version)))
}

/// Range of block numbers.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct BlockRange {
    /// Number of the first block, from 0.
    #[serde(default)]
    first: u64,
    /// Most blocks of the answer, up to 65536.
    count: Option<usize>,
}

/// Hashes of the complete blocks of an upload.
#[derive(Serialize, ToSchema)]
pub(crate) struct BlockHashes {
    /// Identity of the upload.
    upload: String,
    /// State: receiving, assembling, complete or stored.
    state: &'static str,
    /// Size of a block in bytes.
    block_bytes: u64,
    /// Number of durable bytes.
    offset: u64,
    /// Length of the upload in bytes, null while it is unknown.
    length: Option<u64>,
    /// Number of the first block in `blocks`.
    first: u64,
    /// BLAKE3 of complete blocks in hexadecimal digits, in their order.
    blocks: Vec<String>,
    /// Number of the first block of the next answer, null if there is none.
    next: Option<u64>,
    /// BLAKE3 of the durable bytes behind the last complete block in hexadecimal digits, null if there are none.
    tail_blake3: Option<String>,
}

/// Block hashes of an upload, for resuming and for detecting changed prefixes.
#[utoipa::path(get, path = "/files/{id}/blocks", tag = "uploads",
    params(("id" = String, Path, description = "Identity of the upload, 32 hexadecimal digits"), BlockRange),
    responses((status = 200, body = BlockHashes), (status = 404, description = "The upload does not exist")))]
pub(crate) async fn blocks(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    Query(range): Query<BlockRange>,
) -> Result<Json<BlockHashes>, Problem> {
    let (upload, record) = find_upload(&app, &access, &id, &[Scope::Read, Scope::Write]).await?;
    let count = range.count.unwrap_or(MOST_BLOCKS).min(MOST_BLOCKS);
    let first = range.first.min(i64::MAX as u64);
    let found = app.uploads.blocks(record.id, first, count).await;
    let found = found.map_err(|error| Problem::store("read the block hashes", &error))?;
    // Blocks behind the record's offset were added after it was read.
    let known = record.offset / BLOCK_BYTES;
    let blocks: Vec<String> = found
        .into_iter()
        .take_while(|(number, _)| *number < known)
        .map(|(_, hash)| hash.to_hex().to_string())
        .collect();
    let next = first + blocks.len() as u64;
    Ok(Json(BlockHashes {
        upload: record.id.to_string(),
        state: record.state.name(),
        block_bytes: BLOCK_BYTES,
        offset: record.offset,
        length: record.length,
        first,
        blocks,
        next: (next < known).then_some(next),
        tail_blake3: tail_hash(&app, &upload, &record).await?,
    }))
}

/// Hash of the durable bytes behind the last complete block; `None` if there are none, or if the archive has lost them.
async fn tail_hash(
    app: &Arc<App>,
    upload: &Arc<LiveUpload>,
    record: &UploadRecord,
) -> Result<Option<String>, Problem> {
    let length = record.offset % BLOCK_BYTES;
    if length == 0 {
        return Ok(None);
    }
    let file = match open_upload(app, upload).await? {
        Some(Contents::Upload { file, .. }) => file,
        Some(Contents::Stored(_, version)) => version.contents,
        None => return Ok(None),
    };
    let start = record.offset - length;
    let hashed = blocking(move || hash_range(file.as_ref(), start, length as usize)).await;
    let hash = hashed.map_err(|error| Problem::store("read the upload", &error))?;
    Ok(Some(hash.map_err(|error| unreadable(&error))?.to_hex().to_string()))
}

fn hash_range(file: &dyn ReadAt, start: u64, length: usize) -> io::Result<blake3::Hash> {
    let mut bytes = vec![0; length];
    let mut done = 0;
    while done < length {
        match file.read_at(&mut bytes[done..], start + done as u64)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            read => done += read,
        }
    }
    Ok(blake3::hash(&bytes))
}
