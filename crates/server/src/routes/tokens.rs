//! Administration of tokens. An administrator of one project manages the tokens of that project only.

use crate::access::Access;
use crate::app::App;
use crate::clock::Timestamp;
use crate::error::{ErrorKind, ServerError};
use crate::object_path::ProjectName;
use crate::problem::{Problem, ProblemKind};
use crate::token::{NewToken, Scope, Scopes, TokenId, TokenInfo};
use axum::extract::{Path, State};
use axum::{Extension, Json};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

/// Token without its secret.
#[derive(Serialize, ToSchema)]
pub(crate) struct Token {
    /// Public identity of the token.
    id: String,
    /// Name for people, not necessarily unique.
    name: String,
    /// Scopes that the token carries.
    scopes: Vec<Scope>,
    /// Project that the token is bound to, null for all projects.
    project: Option<String>,
    /// Account whose rights limit the token, null for no limit.
    account: Option<String>,
    /// Time of creation, in milliseconds since 1970.
    created: i64,
    /// End of validity, in milliseconds since 1970, null for no end.
    expires: Option<i64>,
    /// Time of revocation, in milliseconds since 1970, null for a token that is not revoked.
    revoked: Option<i64>,
    /// Time of the last use, exact to a minute, in milliseconds since 1970.
    last_use: Option<i64>,
}

impl From<TokenInfo> for Token {
    fn from(info: TokenInfo) -> Self {
        Self {
            id: info.id.to_string(),
            name: info.name,
            scopes: info.scopes.into(),
            project: info.project.map(|project| project.to_string()),
            account: info.account.map(|account| account.to_string()),
            created: info.created.milliseconds(),
            expires: info.expires.map(Timestamp::milliseconds),
            revoked: info.revoked.map(Timestamp::milliseconds),
            last_use: info.last_use.map(Timestamp::milliseconds),
        }
    }
}

/// Properties of a token that is to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// Name for people, not necessarily unique.
    name: String,
    /// Scopes of the token, at least one.
    scopes: Vec<Scope>,
    /// Project that the token is bound to; all projects without it.
    project: Option<String>,
    /// Account whose rights limit the token; no limit without it.
    account: Option<String>,
    /// Validity in seconds from now on; no end without it.
    valid_seconds: Option<u64>,
}

/// Created token with its secret, which is told only once.
#[derive(Serialize, ToSchema)]
pub(crate) struct Created {
    /// Text of the token for the header Authorization.
    secret: String,
    /// Stored properties of the token.
    token: Token,
}

fn problem(error: &ServerError) -> Problem {
    let kind = match error.kind() {
        ErrorKind::Usage => ProblemKind::BadRequest,
        ErrorKind::Failed => ProblemKind::Internal,
    };
    Problem::new(kind, error)
}

/// Tokens that the request may manage, also revoked and expired ones.
async fn managed(app: &App, access: &Access) -> Result<Vec<TokenInfo>, Problem> {
    let own = access.own_project();
    access.require(&[Scope::Admin], own)?;
    let mut tokens = app.tokens.list_async().await.map_err(|error| problem(&error))?;
    tokens.retain(|token| own.is_none() || token.project.as_ref() == own);
    Ok(tokens)
}

/// All tokens, without their secrets.
#[utoipa::path(get, path = "/tokens", tag = "tokens", responses((status = 200, body = Vec<Token>)))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
) -> Result<Json<Vec<Token>>, Problem> {
    let tokens = managed(&app, &access).await?;
    Ok(Json(tokens.into_iter().map(Token::from).collect()))
}

/// Creation of a token. The first one ends the open access.
#[utoipa::path(post, path = "/tokens", tag = "tokens", request_body = Wanted,
    responses((status = 201, body = Created), (status = 400, description = "A property is not allowed")))]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Json(wanted): Json<Wanted>,
) -> Result<(StatusCode, Json<Created>), Problem> {
    let project = wanted.project.as_deref().map(ProjectName::parse).transpose();
    let project = project.map_err(|error| Problem::name("create the token", &error))?;
    access.require(&[Scope::Admin], project.as_ref())?;
    let new = NewToken {
        name: wanted.name,
        scopes: Scopes::of(&wanted.scopes),
        project,
        account: wanted.account.as_deref().map(super::accounts::account_name).transpose()?,
        expires: wanted.valid_seconds.map(|seconds| app.clock.now().plus(Duration::from_secs(seconds))),
    };
    let (info, secret) = app.tokens.create_async(new).await.map_err(|error| problem(&error))?;
    app.audit(&access, "token create", info.id).await;
    Ok((StatusCode::CREATED, Json(Created { secret, token: info.into() })))
}

/// Revocation of a token, at once.
#[utoipa::path(delete, path = "/tokens/{id}", tag = "tokens",
    params(("id" = String, Path, description = "Public identity of the token, 16 hexadecimal digits")),
    responses((status = 204, description = "The token is revoked"), (status = 404, description = "There is none")))]
pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let tokens = managed(&app, &access).await?;
    let id: Option<TokenId> = id.parse().ok().filter(|id| tokens.iter().any(|token| token.id == *id));
    let id = id.ok_or_else(|| Problem::not_found("the token"))?;
    app.tokens.revoke_async(id).await.map_err(|error| problem(&error))?;
    app.audit(&access, "token revoke", id).await;
    Ok(StatusCode::NO_CONTENT)
}
