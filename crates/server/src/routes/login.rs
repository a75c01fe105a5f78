//! Logging in: a token for some hours, by a password or by membership; and a change of the own password.

use super::accounts::{account_name, hash};
use super::catalog::with;
use crate::access::{Access, Peer, too_many, unauthorized};
use crate::account::{Account, AccountKind, AccountName};
use crate::app::App;
use crate::clock::Timestamp;
use crate::directory;
use crate::password::{MOST_BYTES, PasswordHash};
use crate::problem::{Problem, ProblemKind};
use crate::store_error::blocking;
use crate::token::{NewToken, Scope, Scopes, TokenInfo};
use axum::extract::State;
use axum::{Extension, Json};
use holdfast_catalog::Catalog;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

/// Validity of the token of a log-in.
const VALIDITY: Duration = Duration::from_hours(12);

/// Name of the tokens of log-ins.
const TOKEN_NAME: &str = "login";

/// Account that wants a token.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogIn {
    /// Name of the account.
    account: String,
    /// Password of the account. Without it the token of the request must be that of a member of the project account.
    password: Option<String>,
}

/// Token of a log-in.
#[derive(Serialize, ToSchema)]
pub(crate) struct LoggedIn {
    /// Text of the token for the header Authorization.
    secret: String,
    /// Name of the account.
    account: String,
    /// Public identity of the token.
    id: String,
    /// End of validity, in milliseconds since 1970.
    expires: i64,
}

/// Change of the own password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PasswordChange {
    /// Password that the account has so far.
    current: String,
    /// New password of at least 8 characters.
    new: String,
}

/// Logs in: makes a token for 12 hours with the scopes read and write and the rights of the account.
///
/// Members of the group of the name of a project account switch to it by their own token, without a password.
#[utoipa::path(post, path = "/login", tag = "accounts", request_body = LogIn, security((), ("token" = [])),
    responses((status = 201, body = LoggedIn), (status = 401, description = "Account or password are wrong"),
        (status = 403, description = "The account of the token is no member"),
        (status = 429, description = "Too many attempts came from this address")))]
pub(crate) async fn log_in(
    State(app): State<Arc<App>>,
    peer: Option<Extension<Peer>>,
    access: Option<Extension<Access>>,
    Json(wanted): Json<LogIn>,
) -> Result<(StatusCode, Json<LoggedIn>), Problem> {
    let (peer, access) = (peer.map(|peer| peer.0), access.map(|access| access.0));
    let account = AccountName::parse(&wanted.account).ok();
    let made = make_token(&app, peer, access.as_ref(), wanted).await;
    match &made {
        Ok(_) => {
            let known = access.unwrap_or(Access { token: None, principal: None, peer });
            app.audit(&known, "login", account.as_ref().map_or("-", AccountName::as_str)).await;
        }
        Err(problem) if matches!(problem.kind(), ProblemKind::Unauthorized | ProblemKind::Forbidden) => {
            let object = account.as_ref().map_or("-", AccountName::as_str);
            app.audit_denied(access.as_ref(), peer, "login", object);
        }
        Err(_) => {}
    }
    Ok((StatusCode::CREATED, Json(made?)))
}

async fn make_token(
    app: &App,
    peer: Option<Peer>,
    access: Option<&Access>,
    wanted: LogIn,
) -> Result<LoggedIn, Problem> {
    admit(app, peer)?;
    let now = app.clock.now();
    let new = |account, scopes, project, expires| {
        let name = TOKEN_NAME.to_owned();
        NewToken { name, scopes, project, account: Some(account), expires: Some(expires) }
    };
    let end = now.plus(VALIDITY);
    let new = if let Some(password) = wanted.password {
        let name = AccountName::parse(&wanted.account).ok();
        let name = check(app, name, password).await?.ok_or_else(wrong)?;
        new(name, Scopes::of(&[Scope::Read, Scope::Write]), None, end)
    } else {
        let own = access.and_then(|access| access.token.clone()).filter(|token| token.account.is_some());
        let own = own.ok_or_else(|| unauthorized("it has no password", "Bearer realm=\"holdfast\""))?;
        let account = switch(app, &own, &wanted.account).await?;
        // The new token can do nothing that the own one cannot.
        let scopes = [Scope::Read, Scope::Write].into_iter().filter(|scope| own.scopes.grants(*scope));
        let end = own.expires.map_or(end, |own: Timestamp| own.min(end));
        new(account, Scopes::of(&scopes.collect::<Vec<_>>()), own.project.clone(), end)
    };
    let made = app.tokens.create_async(new).await;
    let (info, secret) = made.map_err(|error| Problem::internal("make the token", error))?;
    let account = info.account.map(|account| account.to_string()).unwrap_or_default();
    let expires = info.expires.unwrap_or(end).milliseconds();
    Ok(LoggedIn { secret, account, id: info.id.to_string(), expires })
}

fn admit(app: &App, peer: Option<Peer>) -> Result<(), Problem> {
    app.log_ins.admit(peer.map(|peer| peer.0.ip()), app.clock.now()).map_err(too_many)
}

/// Answer to an unknown account, a disabled one, one without password, and a wrong password.
fn wrong() -> Problem {
    let detail = "cannot log in: the account or the password is wrong; correct them, or ask an administrator";
    Problem::new(ProblemKind::Unauthorized, detail)
}

/// Account of a name if the password is right. A wrong name takes as long as a wrong password.
async fn check(
    app: &App,
    name: Option<AccountName>,
    password: String,
) -> Result<Option<AccountName>, Problem> {
    if password.len() > MOST_BYTES {
        return Ok(None);
    }
    let wanted = name.clone();
    let find = move |catalog: &mut Catalog<_>| match wanted {
        Some(name) => directory::account(catalog, &name),
        None => Ok(None),
    };
    let account: Option<Account> = with(app, "read the account", find).await?;
    let account = account.filter(|account| !account.disabled);
    let known = account.and_then(|account| account.password);
    let is_known = known.is_some();
    let stored = known.unwrap_or_else(PasswordHash::decoy);
    let _turn = app.log_ins.turn().await;
    let is_right = blocking(move || stored.is_of(&password)).await;
    let is_right = is_right.map_err(|error| Problem::store("check the password", &error))?;
    Ok(name.filter(|_| is_known && is_right))
}

/// Project account of a name, if the account of the token is a member.
async fn switch(app: &App, own: &TokenInfo, wanted: &str) -> Result<AccountName, Problem> {
    let name = account_name(wanted)?;
    let (target, member) = (name.clone(), own.account.clone());
    let may = move |catalog: &mut Catalog<_>| {
        let is_open = directory::account(catalog, &target)?
            .is_some_and(|account| account.kind == AccountKind::Project && !account.disabled);
        let Some(member) = member.filter(|_| is_open) else { return Ok(false) };
        directory::is_member(catalog, &target, &member)
    };
    if with(app, "read the account", may).await? {
        return Ok(name);
    }
    let detail = format_args!(
        "cannot log in as {name}: the account of the token is no member of such a project account; ask an \
         administrator to add it to the group {name}"
    );
    Err(Problem::new(ProblemKind::Forbidden, detail))
}

/// Ends the own token at once.
#[utoipa::path(delete, path = "/login", tag = "accounts",
    responses((status = 204, description = "The token is revoked"), (status = 400, description = "The request has none")))]
pub(crate) async fn log_out(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
) -> Result<StatusCode, Problem> {
    let Some(own) = access.token.clone().filter(|token| token.account.is_some()) else {
        let detail = "cannot log out: the token of the request is not that of an account; send such a token";
        return Err(Problem::new(ProblemKind::BadRequest, detail));
    };
    let revoked = app.tokens.revoke_async(own.id).await;
    revoked.map_err(|error| Problem::internal("revoke the token", error))?;
    app.audit(&access, "logout", own.id).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Changes the password of the account of the token.
#[utoipa::path(post, path = "/password", tag = "accounts", request_body = PasswordChange,
    responses((status = 204, description = "The password is changed"),
        (status = 401, description = "The password so far is wrong"), (status = 400, description = "The new one is not allowed")))]
pub(crate) async fn change_password(
    State(app): State<Arc<App>>,
    peer: Option<Extension<Peer>>,
    Extension(access): Extension<Access>,
    Json(change): Json<PasswordChange>,
) -> Result<StatusCode, Problem> {
    let Some(account) = access.token.as_ref().and_then(|token| token.account.clone()) else {
        let detail = "cannot change the password: the token of the request is not that of an account; name the account";
        return Err(Problem::new(ProblemKind::BadRequest, detail));
    };
    admit(&app, peer.map(|peer| peer.0))?;
    let object = account.clone();
    let name = check(&app, Some(account), change.current).await?.ok_or_else(wrong)?;
    let password = hash(&app, change.new).await?;
    let set = move |catalog: &mut Catalog<_>| {
        let Some(account) = directory::account(catalog, &name)? else { return Ok(false) };
        directory::set_account(catalog, &name, &Account { password: Some(password), ..account })?;
        Ok(true)
    };
    if !with(&app, "change the password", set).await? {
        return Err(wrong());
    }
    app.audit(&access, "passwd", &object).await;
    Ok(StatusCode::NO_CONTENT)
}
