//! Administration of accounts and groups, for administrators of all projects. Passwords go in, and nothing of them comes out.

use super::catalog::with;
use crate::access::Access;
use crate::account::{Account, AccountKind, AccountName};
use crate::app::App;
use crate::directory::{self, Membership};
use crate::password::{FEWEST_CHARACTERS, MOST_BYTES, PasswordHash};
use crate::problem::{Problem, ProblemKind};
use crate::store_error::blocking;
use crate::token::Scope;
use axum::extract::{Path, Query, State};
use axum::{Extension, Json};
use holdfast_catalog::Catalog;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Most accounts of one answer.
const MOST_ACCOUNTS: usize = 1000;

/// Account without its password.
#[derive(Serialize, ToSchema)]
pub(crate) struct AccountBody {
    /// Name of the account.
    name: String,
    /// Kind of the account, null if a newer program wrote it.
    kind: Option<AccountKind>,
    /// True if the account has a password.
    has_password: bool,
    /// True while no token of the account is accepted.
    disabled: bool,
}

/// Accounts in the order of their names.
#[derive(Serialize, ToSchema)]
pub(crate) struct AccountPage {
    /// Accounts of this answer.
    accounts: Vec<AccountBody>,
    /// Value of `after` for the next answer, null if there is none.
    next: Option<String>,
}

/// Part of the list of accounts.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AccountChoice {
    /// Name of the account behind which the answer begins.
    after: Option<String>,
}

/// Account that is to be added.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewAccount {
    /// Name of the account.
    name: String,
    /// Kind of the account.
    kind: AccountKind,
    /// Password of at least 8 characters; without it nobody logs in by password.
    password: Option<String>,
}

/// Change of an account. A missing property stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccountChange {
    /// New password of at least 8 characters.
    password: Option<String>,
    /// True to accept no token of the account until it is false again.
    disabled: Option<bool>,
}

/// Group whose members are listed.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct GroupChoice {
    /// Name of the group; all groups without it.
    group: Option<String>,
}

impl AccountBody {
    fn new(name: String, account: Option<Account>) -> Self {
        Self {
            name,
            kind: account.as_ref().map(|account| account.kind),
            has_password: account.as_ref().is_some_and(|account| account.password.is_some()),
            // An account that cannot be read gives no access.
            disabled: account.is_none_or(|account| account.disabled),
        }
    }
}

/// Name of an account or a group in a request.
pub(super) fn account_name(text: &str) -> Result<AccountName, Problem> {
    let name = AccountName::parse(text);
    name.map_err(|error| Problem::new(ProblemKind::BadName, format_args!("cannot use the name: {error}")))
}

/// Hash of a new password, computed on a blocking thread.
pub(super) async fn hash(app: &App, password: String) -> Result<PasswordHash, Problem> {
    if password.chars().count() < FEWEST_CHARACTERS || password.len() > MOST_BYTES {
        let detail = format_args!(
            "cannot set the password: it has not {FEWEST_CHARACTERS} characters to {MOST_BYTES} bytes; choose another one"
        );
        return Err(Problem::new(ProblemKind::BadRequest, detail));
    }
    let _turn = app.log_ins.turn().await;
    let hash = blocking(move || PasswordHash::new(&password)).await;
    let hash = hash.map_err(|error| Problem::store("set the password", &error))?;
    hash.map_err(|_| Problem::internal("set the password", "no random bytes are available"))
}

fn missing(name: &AccountName) -> Problem {
    Problem::not_found(format_args!("the account {name}"))
}

/// Accounts in the order of their names, without passwords.
#[utoipa::path(get, path = "/accounts", tag = "accounts", params(AccountChoice),
    responses((status = 200, body = AccountPage)))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(choice): Query<AccountChoice>,
) -> Result<Json<AccountPage>, Problem> {
    access.require(&[Scope::Admin], None)?;
    let list =
        move |catalog: &mut Catalog<_>| directory::accounts(catalog, choice.after.as_deref(), MOST_ACCOUNTS);
    let found = with(&app, "list the accounts", list).await?;
    let next = found.last().filter(|_| found.len() == MOST_ACCOUNTS).map(|(name, _)| name.clone());
    let accounts = found.into_iter().map(|(name, account)| AccountBody::new(name, account)).collect();
    Ok(Json(AccountPage { accounts, next }))
}

/// Adds the account of a person or a project.
#[utoipa::path(post, path = "/accounts", tag = "accounts", request_body = NewAccount,
    responses((status = 201, body = AccountBody), (status = 400, description = "Name or password are not allowed"),
        (status = 409, description = "An account or a group has the name")))]
pub(crate) async fn add(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Json(new): Json<NewAccount>,
) -> Result<(StatusCode, Json<AccountBody>), Problem> {
    access.require(&[Scope::Admin], None)?;
    let name = account_name(&new.name)?;
    let password = match new.password {
        Some(password) => Some(hash(&app, password).await?),
        None => None,
    };
    let account = Account { kind: new.kind, password, disabled: false };
    let (wanted, body) = (name.clone(), account.clone());
    let add = move |catalog: &mut Catalog<_>| {
        let is_taken = directory::account(catalog, &wanted)?.is_some()
            // The members of a group would have the rights of the person.
            || body.kind == AccountKind::Person && !directory::memberships(catalog, Some(&wanted))?.is_empty();
        if !is_taken {
            directory::set_account(catalog, &wanted, &body)?;
        }
        Ok(is_taken)
    };
    if with(&app, "add the account", add).await? {
        return Err(taken(&name));
    }
    app.audit(&access, "account add", &name).await;
    Ok((StatusCode::CREATED, Json(AccountBody::new(new.name, Some(account)))))
}

fn taken(name: &AccountName) -> Problem {
    let detail =
        format_args!("cannot use the name {name}: an account or a group has it already; choose another name");
    Problem::new(ProblemKind::AccountExists, detail)
}

/// Changes the password of an account, or disables or enables it.
#[utoipa::path(patch, path = "/accounts/{name}", tag = "accounts", request_body = AccountChange,
    params(("name" = String, Path, description = "Name of the account")),
    responses((status = 200, body = AccountBody), (status = 404, description = "There is none")))]
pub(crate) async fn change(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(name): Path<String>,
    Json(change): Json<AccountChange>,
) -> Result<Json<AccountBody>, Problem> {
    access.require(&[Scope::Admin], None)?;
    let name = account_name(&name)?;
    let password = match change.password {
        Some(password) => Some(hash(&app, password).await?),
        None => None,
    };
    let acts = [
        change.disabled.map(|disabled| if disabled { "account disable" } else { "account enable" }),
        password.as_ref().map(|_| "passwd"),
    ];
    let wanted = name.clone();
    let set = move |catalog: &mut Catalog<_>| {
        let Some(mut account) = directory::account(catalog, &wanted)? else { return Ok(None) };
        account.password = password.or(account.password);
        account.disabled = change.disabled.unwrap_or(account.disabled);
        directory::set_account(catalog, &wanted, &account)?;
        Ok(Some(account))
    };
    let changed = with(&app, "change the account", set).await?.ok_or_else(|| missing(&name))?;
    for act in acts.into_iter().flatten() {
        app.audit(&access, act, &name).await;
    }
    Ok(Json(AccountBody::new(name.to_string(), Some(changed))))
}

/// Removes an account with its memberships and the grants to it. Its tokens are refused from then on.
#[utoipa::path(delete, path = "/accounts/{name}", tag = "accounts",
    params(("name" = String, Path, description = "Name of the account")),
    responses((status = 204, description = "The account is removed"), (status = 404, description = "There is none")))]
pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    access.require(&[Scope::Admin], None)?;
    let name = account_name(&name)?;
    let wanted = name.clone();
    let removed =
        with(&app, "remove the account", move |catalog| directory::remove_account(catalog, &wanted)).await?;
    if !removed {
        return Err(missing(&name));
    }
    app.audit(&access, "account rm", &name).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Members of one group or of all, in the order of groups and accounts.
#[utoipa::path(get, path = "/groups", tag = "accounts", params(GroupChoice),
    responses((status = 200, body = Vec<Membership>)))]
pub(crate) async fn groups(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(choice): Query<GroupChoice>,
) -> Result<Json<Vec<Membership>>, Problem> {
    access.require(&[Scope::Admin], None)?;
    let group = choice.group.as_deref().map(account_name).transpose()?;
    let list = move |catalog: &mut Catalog<_>| directory::memberships(catalog, group.as_ref());
    Ok(Json(with(&app, "list the groups", list).await?))
}

/// Adds an account to a group. A group exists while it has members.
#[utoipa::path(put, path = "/groups/{group}/{account}", tag = "accounts",
    params(("group" = String, Path, description = "Name of the group"),
        ("account" = String, Path, description = "Name of the account")),
    responses((status = 204, description = "The account is a member"), (status = 404, description = "There is no account"),
        (status = 409, description = "A person has the name of the group")))]
pub(crate) async fn join(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path((group, account)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    access.require(&[Scope::Admin], None)?;
    let (group, account) = (account_name(&group)?, account_name(&account)?);
    let (to, name) = (group.clone(), account.clone());
    let add = move |catalog: &mut Catalog<_>| {
        if directory::account(catalog, &name)?.is_none() {
            return Ok(Err(missing(&name)));
        }
        if directory::account(catalog, &to)?.is_some_and(|account| account.kind == AccountKind::Person) {
            return Ok(Err(taken(&to)));
        }
        directory::set_member(catalog, &to, &name, true).map(Ok)
    };
    with(&app, "change the group", add).await??;
    app.audit(&access, "group add", format!("{group}/{account}")).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes an account from a group.
#[utoipa::path(delete, path = "/groups/{group}/{account}", tag = "accounts",
    params(("group" = String, Path, description = "Name of the group"),
        ("account" = String, Path, description = "Name of the account")),
    responses((status = 204, description = "The account is no member"), (status = 404, description = "It was none")))]
pub(crate) async fn leave(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path((group, account)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    access.require(&[Scope::Admin], None)?;
    let (group, account) = (account_name(&group)?, account_name(&account)?);
    let (from, name) = (group.clone(), account.clone());
    let remove = move |catalog: &mut Catalog<_>| {
        if !directory::is_member(catalog, &from, &name)? {
            return Ok(false);
        }
        directory::set_member(catalog, &from, &name, false).map(|()| true)
    };
    if with(&app, "change the group", remove).await? {
        app.audit(&access, "group rm", format!("{group}/{account}")).await;
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::not_found(format_args!("the member {account} of the group {group}")))
    }
}
