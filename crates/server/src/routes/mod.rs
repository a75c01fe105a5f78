//! Routes of the HTTP interface, one file for each group. Each handler checks scopes, reads headers and calls the stores.

mod accounts;
mod audit;
mod catalog;
mod conflicts;
mod drivers;
mod grants;
mod holds;
mod jobs;
mod login;
mod objects;
mod policies;
mod rename;
mod replication;
mod searches;
mod sites;
mod status;
mod tokens;
mod tus;
mod tus_ahead;
mod tus_create;
mod tus_headers;
mod tus_patch;
mod uploads;

use crate::access::{Access, Peer, check_access};
use crate::app::App;
use crate::authorization::Verb;
use crate::contents::STATE;
use crate::cross_site::{RESOURCE_POLICY, SAME_ORIGIN};
use crate::live_upload::LiveUpload;
use crate::log::Event;
use crate::object_path::{ObjectPath, ProjectName};
use crate::problem::{Problem, ProblemKind};
use crate::replication::MOST_BATCH;
use crate::token::{Scope, TokenId};
use crate::upload_id::UploadId;
use crate::upload_record::{UploadRecord, UploadState};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use holdfast_catalog::{CatalogPath, Right};
use http::header::{CONTENT_LENGTH, RETRY_AFTER};
use std::sync::Arc;
use std::time::Instant;
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use catalog::with as with_catalog;

/// Bytes of an error's text that become the reason of a problem.
const MOST_REASON: usize = 1024;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Holdfast",
        description = "Resumable uploads (tus 1.0.0), reads of finished and growing objects, the catalog, and tokens.",
        license(name = "MIT OR Apache-2.0")
    ),
    components(schemas(crate::problem::ProblemBody)),
    security(("token" = []))
)]
struct Description;

/// Description of the HTTP interface in `OpenAPI`, as JSON.
pub fn openapi() -> utoipa::openapi::OpenApi {
    let mut description = public().merge(private()).into_openapi();
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("hft_ID_SECRET").build();
    let components = description.components.get_or_insert_default();
    components.add_security_scheme("token", SecurityScheme::Http(scheme));
    // The router's notation of a path with slashes is not that of OpenAPI.
    let paths = std::mem::take(&mut description.paths.paths);
    description.paths.paths = paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item)).collect();
    description
}

/// Routes that need no access, together with their description.
fn public() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(status::health))
        .routes(routes!(status::description))
}

/// Routes that need access, together with their description.
fn private() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(tus::options, tus_create::create))
        .routes(routes!(uploads::read, tus::head, tus_patch::patch, tus::terminate))
        .routes(routes!(uploads::blocks))
        .routes(routes!(rename::rename))
        .layer(from_fn(tus::mark_version))
        .routes(routes!(objects::list))
        .routes(routes!(objects::read))
        .routes(routes!(catalog::stat))
        .routes(routes!(catalog::list))
        .routes(routes!(catalog::find))
        .routes(routes!(catalog::change_attributes))
        .routes(routes!(catalog::attribute_batch::change_many))
        .routes(routes!(catalog::tree::make_collection))
        .routes(routes!(catalog::tree::move_entry))
        .routes(routes!(catalog::tree::link))
        .routes(routes!(catalog::tree::copy))
        .routes(routes!(catalog::tree::delete))
        .routes(routes!(catalog::trash::list))
        .routes(routes!(catalog::trash::restore, catalog::trash::purge))
        .routes(routes!(catalog::replicas::list))
        .routes(routes!(catalog::rights::read))
        .routes(routes!(catalog::versions::read))
        .routes(routes!(drivers::runs))
        .routes(routes!(replication::state))
        .routes(routes!(replication::push, replication::pull))
        .layer(DefaultBodyLimit::max(MOST_BATCH))
        .routes(routes!(replication::read))
        .routes(routes!(replication::snapshot))
        .routes(routes!(replication::digest))
        .routes(routes!(policies::list, policies::set, policies::remove))
        .routes(routes!(jobs::list, jobs::stage))
        .routes(routes!(holds::list, holds::order))
        .routes(routes!(searches::run))
        .routes(routes!(conflicts::list))
        .routes(routes!(conflicts::settle))
        .routes(routes!(sites::list))
        .routes(routes!(sites::change, sites::remove))
        .routes(routes!(accounts::list, accounts::add))
        .routes(routes!(accounts::change, accounts::remove))
        .routes(routes!(accounts::groups))
        .routes(routes!(accounts::join, accounts::leave))
        .routes(routes!(grants::list, grants::grant, grants::revoke))
        .routes(routes!(login::log_in, login::log_out))
        .routes(routes!(audit::list))
        .routes(routes!(login::change_password))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::revoke))
        .routes(routes!(status::metrics))
}

/// Router of all routes with their layers.
pub(crate) fn router(app: Arc<App>) -> Router {
    // Clients write the address of creation with and without its last slash.
    let short = Router::new()
        .route("/files", axum::routing::post(tus_create::create).options(tus::options))
        .layer(from_fn(tus::mark_version));
    let (public, _) = public().split_for_parts();
    let (private, _) = private().split_for_parts();
    let private = private.merge(short).layer(from_fn_with_state(Arc::clone(&app), check_access));
    Router::new()
        .merge(public)
        .merge(private)
        .fallback(|| std::future::ready(Problem::not_found("the address")))
        .layer(from_fn_with_state(Arc::clone(&app), observe))
        .with_state(app)
}

/// Router of the connections beyond the limit: a sign of life, and the reason of refusal.
pub(crate) fn overload_router() -> Router {
    let refuse = || async {
        let detail = "cannot serve the connection: too many are open; try again later";
        Problem::new(ProblemKind::TooManyConnections, detail).with(RETRY_AFTER, 5)
    };
    let health = axum::routing::get(status::health);
    Router::new().route("/healthz", health).fallback(refuse)
}

/// Outermost layer: logs and counts requests, and turns errors of the framework into problem bodies.
async fn observe(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().to_string();
    let path = request.uri().path().to_owned();
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0.to_string()).unwrap_or_default();
    let mut response = next.run(request).await;
    if response.status().as_u16() >= 400 && response.extensions().get::<ProblemKind>().is_none() {
        response = into_problem(response).await;
    }
    if let Some(kind) = response.extensions().get::<ProblemKind>() {
        app.metrics.reject(*kind);
    }
    response.headers_mut().insert(RESOURCE_POLICY, SAME_ORIGIN);
    app.metrics.requests.record(started.elapsed());
    app.log.event(&Event::Request {
        method,
        path,
        status: response.status().as_u16(),
        milliseconds: started.elapsed().as_millis() as u64,
        peer,
        token: response.extensions().get::<TokenId>().map(TokenId::to_string),
    });
    response
}

/// Problem in the place of an error that the framework has answered by a plain text.
async fn into_problem(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let text = axum::body::to_bytes(body, MOST_REASON).await.unwrap_or_default();
    let reason = String::from_utf8_lossy(&text).into_owned();
    let (kind, detail) = match parts.status.as_u16() {
        405 => {
            let detail = "cannot do the request: the address has no such method; see the header Allow";
            (ProblemKind::MethodNotAllowed, detail.to_owned())
        }
        413 => (ProblemKind::TooLarge, format!("cannot read the request: {reason}; send less")),
        415 => (ProblemKind::WrongMediaType, format!("cannot read the request: {reason}; correct its type")),
        status if status >= 500 => {
            (ProblemKind::Internal, format!("cannot do the request: {reason}; try again"))
        }
        _ => (ProblemKind::BadRequest, format!("cannot read the request: {reason}; correct it")),
    };
    let problem = Problem::new(kind, detail).into_response();
    // The headers stay, such as Allow; only those of the body change.
    parts.headers.remove(CONTENT_LENGTH);
    let (problem, body) = problem.into_parts();
    parts.headers.extend(problem.headers);
    parts.extensions.extend(problem.extensions);
    parts.status = problem.status;
    Response::from_parts(parts, body)
}

/// Upload of an address, if it exists and the request may use it.
async fn find_upload(
    app: &App,
    access: &Access,
    id: &str,
    scopes: &[Scope],
) -> Result<(Arc<LiveUpload>, UploadRecord), Problem> {
    let missing = || Problem::not_found(format_args!("the upload '{}'", id.escape_debug()));
    let id: UploadId = id.parse().map_err(|()| missing())?;
    let found = app.uploads.find(id).await;
    let upload = found.map_err(|error| Problem::store("find the upload", &error))?.ok_or_else(missing)?;
    let record = upload.record();
    access.require(scopes, record.project.as_ref())?;
    let verb = if scopes.contains(&Scope::Read) { Verb::Read } else { Verb::Upload };
    check_rights(app, access, verb, record.project.as_ref(), record.path.as_ref()).await?;
    check_usable(app, &record)?;
    Ok((upload, record))
}

/// Path in the catalog of a project, or of an object in it.
fn place(project: &ProjectName, path: Option<&ObjectPath>) -> Result<CatalogPath, Problem> {
    let text = path.map_or_else(|| format!("/{project}"), |path| format!("/{project}/{path}"));
    text.parse().map_err(|error| Problem::new(ProblemKind::BadName, error))
}

/// Requires the rights of an account for an upload. A part without a path needs the right anywhere in its project.
async fn check_rights(
    app: &App,
    access: &Access,
    verb: Verb,
    project: Option<&ProjectName>,
    path: Option<&ObjectPath>,
) -> Result<(), Problem> {
    let Some(principal) = access.limits() else { return Ok(()) };
    let above = project.map(|project| place(project, path)).transpose()?.unwrap_or_default();
    if path.is_none() && principal.reaches(&above, Right::Write) {
        return Ok(());
    }
    let target = with_catalog(app, "find the entry", {
        let above = above.clone();
        move |catalog| catalog.link_target(&above)
    });
    access.require_rights(verb, &above, target.await?.as_ref())
}

/// Refuses the use of an upload that is gone or has failed.
fn check_usable(app: &App, record: &UploadRecord) -> Result<(), Problem> {
    let id = record.id;
    if record.state == UploadState::Removed || record.is_abandoned(app.clock.now()) {
        let detail =
            format_args!("cannot use the upload {id}: it was terminated or has expired; start a new one");
        return Err(Problem::new(ProblemKind::Gone, detail));
    }
    if let UploadState::Failed(reason) = &record.state {
        let detail =
            format_args!("cannot use the upload {id}: {reason}; terminate it and send the file again");
        let problem = Problem::new(ProblemKind::NotComplete, detail);
        return Err(problem.with(STATE, record.state.name()).with(tus_headers::REASON, reason));
    }
    Ok(())
}
