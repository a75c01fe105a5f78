//! Grants of rights on entries to accounts and groups.

use super::catalog::{allowed, with};
use crate::access::Access;
use crate::app::App;
use crate::authorization::Verb;
use crate::directory::{is_subject, right_name};
use crate::problem::{Problem, ProblemKind};
use axum::extract::{Query, State};
use axum::{Extension, Json};
use holdfast_catalog::{Catalog, CatalogPath, Right};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Entry whose grants are meant.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct GrantPlace {
    /// Path of the entry: `/PROJECT/PATH`, or `/`.
    path: String,
}

/// Grant on an entry that is revoked.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct GrantChoice {
    /// Path of the entry: `/PROJECT/PATH`, or `/`.
    path: String,
    /// Account or group that has the right.
    subject: String,
}

/// Right of an account, a group, or everyone.
#[derive(Serialize, ToSchema)]
pub(crate) struct GrantBody {
    /// Account or group, or `everyone`.
    subject: String,
    /// Right: read, write or own.
    right: &'static str,
    /// Entry that has the grant: the entry itself, or one above it.
    path: String,
}

/// Right that an account, a group, or everyone gets.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewGrant {
    /// Account or group, or `everyone`.
    subject: String,
    /// Right that the subject has on the entry then.
    right: RightBody,
}

/// Right on an entry and all below it; each one includes those before it.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RightBody {
    /// Listing, searching and reading entries.
    Read,
    /// Uploading, making, changing and deleting entries.
    Write,
    /// Granting of rights, and settling of conflicts.
    Own,
}

impl From<RightBody> for Right {
    fn from(right: RightBody) -> Self {
        match right {
            RightBody::Read => Self::Read,
            RightBody::Write => Self::Write,
            RightBody::Own => Self::Own,
        }
    }
}

/// Grants that apply to an entry, from the root down to it.
#[utoipa::path(get, path = "/grants", tag = "accounts", params(GrantPlace),
    responses((status = 200, body = Vec<GrantBody>), (status = 404, description = "The entry does not exist")))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(place): Query<GrantPlace>,
) -> Result<Json<Vec<GrantBody>>, Problem> {
    let path = allowed(&app, &access, Some(&place.path), Verb::Read).await?;
    let list = move |catalog: &mut Catalog<_>| {
        let (mut at, mut found) = (CatalogPath::root(), Vec::new());
        let mut below = path.components().iter();
        loop {
            let grants = catalog.grants(&at)?.into_iter();
            let of_entry = grants.filter_map(|grant| Some((grant.subject, grant.right?)));
            found.extend(of_entry.map(|(subject, right)| {
                let (right, path) = (right_name(right), at.to_string());
                GrantBody { subject, right, path }
            }));
            match below.next() {
                Some(name) => at = at.child(name)?,
                None => return Ok(found),
            }
        }
    };
    Ok(Json(with(&app, "list the grants", list).await?))
}

/// Grants a right on an entry, in the place of the right that the subject has there.
#[utoipa::path(put, path = "/grants", tag = "accounts", params(GrantPlace), request_body = NewGrant,
    responses((status = 204, description = "The subject has the right"),
        (status = 404, description = "The entry or the subject does not exist")))]
pub(crate) async fn grant(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(place): Query<GrantPlace>,
    Json(new): Json<NewGrant>,
) -> Result<StatusCode, Problem> {
    let path = allowed(&app, &access, Some(&place.path), Verb::Grant).await?;
    check_subject(&app, &new.subject).await?;
    let right = Right::from(new.right);
    let object = format!("{} on {path} to {}", right_name(right), new.subject);
    let grant = move |catalog: &mut Catalog<_>| catalog.grant(&path, &new.subject, right);
    with(&app, "grant the right", grant).await?;
    app.audit(&access, "grant", object).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Refuses a subject that is neither an account nor a group.
pub(in crate::routes) async fn check_subject(app: &App, subject: &str) -> Result<(), Problem> {
    let name = subject.to_owned();
    if with(app, "read the account", move |catalog| is_subject(catalog, &name)).await? {
        return Ok(());
    }
    let subject = subject.escape_debug();
    let detail =
        format_args!("cannot use the subject '{subject}': no account or group has this name; add it first");
    Err(Problem::new(ProblemKind::NotFound, detail))
}

/// Revokes the right that a subject has by a grant on this entry; inherited rights stay.
#[utoipa::path(delete, path = "/grants", tag = "accounts", params(GrantChoice),
    responses((status = 204, description = "The grant is gone"), (status = 400, description = "There is no such grant"),
        (status = 404, description = "The entry does not exist")))]
pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(grant): Query<GrantChoice>,
) -> Result<StatusCode, Problem> {
    let path = allowed(&app, &access, Some(&grant.path), Verb::Grant).await?;
    let object = format!("{path} of {}", grant.subject);
    with(&app, "revoke the right", move |catalog| catalog.revoke(&path, &grant.subject)).await?;
    app.audit(&access, "revoke", object).await;
    Ok(StatusCode::NO_CONTENT)
}
