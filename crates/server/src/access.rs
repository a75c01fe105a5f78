//! Access of a request: its token, and the scopes and projects that the token grants.
//!
//! Access is open while no token was ever created and the server listens on a loopback address only.

use crate::app::App;
use crate::authorization::{Verb, decide, decide_right};
use crate::cross_site;
use crate::object_path::ProjectName;
use crate::principal::Principal;
use crate::problem::{Problem, ProblemKind};
use crate::rate_limiter::Client;
use crate::receiver::drain;
use crate::strangers::Stranger;
use crate::token::{Scope, TokenInfo};
use crate::token_store::TokenRefusal;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use holdfast_catalog::{Catalog, CatalogPath};
use http::header::{AUTHORIZATION, HOST, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, Method};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

/// Address of logging in, the only one with `POST` that needs no token.
const LOG_IN: &str = "/login";

/// Bytes of the body of a request that needs no token: a log-in.
const MOST_PUBLIC_BODY: usize = 64 << 10;

/// Challenge of the answer to a token that is not accepted.
const INVALID_TOKEN: &str = "Bearer realm=\"holdfast\", error=\"invalid_token\"";

/// Address of the client of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Access that a request has.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Token of the request; `None` while access is open.
    pub(crate) token: Option<Arc<TokenInfo>>,
    /// Account of the token with its rights.
    pub(crate) principal: Option<Arc<Principal>>,
    /// Address of the client.
    pub(crate) peer: Option<Peer>,
}

impl Access {
    /// Project that the token is bound to.
    pub(crate) fn own_project(&self) -> Option<&ProjectName> {
        self.token.as_ref()?.project.as_ref()
    }

    /// Name of whoever asks: the account, or else the token; without a token it is somebody of this machine.
    pub(crate) fn user(&self) -> String {
        self.token.as_ref().map_or_else(
            || "this machine".to_owned(),
            |token| token.account.as_ref().map_or_else(|| format!("token {}", token.id), ToString::to_string),
        )
    }

    /// Account whose rights limit the request: none for the scope `admin`, which stands for all rights.
    pub(crate) fn limits(&self) -> Option<&Arc<Principal>> {
        let is_admin = self.token.as_ref().is_some_and(|token| token.scopes.grants(Scope::Admin));
        self.principal.as_ref().filter(|_| !is_admin)
    }

    /// True if the request may read the entry at a path.
    pub(crate) fn can_read(&self, path: &CatalogPath) -> bool {
        self.limits().is_none_or(|principal| principal.right_on(path).is_some())
    }

    /// Requires scope and rights for a verb on a path; a link has a target.
    pub(crate) fn require_on(
        &self,
        verb: Verb,
        path: &CatalogPath,
        link_target: Option<&CatalogPath>,
    ) -> Result<(), Problem> {
        let Some(token) = &self.token else { return Ok(()) };
        let decision = decide(token, self.principal.as_deref(), verb, path, link_target);
        decision.map_err(|denial| forbidden(format_args!("{denial}")))
    }

    /// Requires the right of the account for a verb on a path, without the scope.
    pub(crate) fn require_rights(
        &self,
        verb: Verb,
        path: &CatalogPath,
        link_target: Option<&CatalogPath>,
    ) -> Result<(), Problem> {
        let Some(principal) = self.limits() else { return Ok(()) };
        let decision = decide_right(principal, verb, path, link_target);
        decision.map_err(|denial| forbidden(format_args!("{denial}")))
    }

    /// Requires a scope for the whole site, and for an account the right to read all of it.
    pub(crate) fn require_site(&self, scope: Scope) -> Result<(), Problem> {
        self.require(&[scope], None)?;
        if self.can_read(&CatalogPath::root()) {
            return Ok(());
        }
        Err(forbidden(format_args!("the account needs the right read on `/`")))
    }

    /// Requires one of the scopes for a project; `None` stands for all projects.
    pub(crate) fn require(&self, scopes: &[Scope], project: Option<&ProjectName>) -> Result<(), Problem> {
        let Some(token) = &self.token else { return Ok(()) };
        if !scopes.iter().any(|scope| token.scopes.grants(*scope)) {
            let names: Vec<_> = scopes.iter().map(|scope| scope.name()).collect();
            return Err(forbidden(format_args!("it needs the scope {}", names.join(" or "))));
        }
        match &token.project {
            Some(own) if project != Some(own) => {
                Err(forbidden(format_args!("the token is bound to the project {own}")))
            }
            _ => Ok(()),
        }
    }
}

fn forbidden(reason: std::fmt::Arguments<'_>) -> Problem {
    Problem::new(
        ProblemKind::Forbidden,
        format_args!("cannot do the request: {reason}; ask the server's administrator for it"),
    )
}

/// Layer that finds the access of a request, limits its rate, and refuses requests without access.
pub(crate) async fn check_access(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    // Clients ask for the server's abilities, and log in, before they have a token.
    let is_log_in = request.method() == Method::POST && request.uri().path() == LOG_IN;
    let is_public = request.method() == Method::OPTIONS || is_log_in;
    let peer = request.extensions().get::<Peer>().copied();
    let stranger = request.extensions_mut().remove::<Arc<Stranger>>();
    let (method, address) = (request.method().clone(), request.uri().to_string());
    if let Err(problem) = cross_site::check(&method, request.headers()) {
        app.audit_denied(None, peer, method.as_str(), address);
        drain(&app.uploads, request.into_body()).await;
        return problem.into_response();
    }
    match find_access(&app, request.headers(), peer).await {
        Ok(access) => {
            if let Some(stranger) = stranger {
                // Without a token the client may be any program of this machine.
                if access.token.is_some() {
                    stranger.is_known_now();
                } else {
                    stranger.is_active_now();
                }
            }
            let known = access.clone();
            let id = access.token.as_ref().map(|token| token.id);
            request.extensions_mut().insert(access);
            let mut response = next.run(request).await;
            // Refused log-ins are recorded with their accounts.
            if !is_log_in && matches!(response.status().as_u16(), 401 | 403) {
                app.audit_denied(Some(&known), peer, method.as_str(), address);
            }
            if let Some(id) = id {
                response.extensions_mut().insert(id);
            }
            response
        }
        Err(problem) if is_public && problem.kind() == ProblemKind::Unauthorized => {
            match public_body(request, app.limits.public_body_time).await {
                Ok(request) => next.run(request).await,
                Err(problem) => problem.into_response(),
            }
        }
        Err(problem) => {
            if problem.kind() == ProblemKind::Unauthorized {
                app.audit_denied(None, peer, method.as_str(), address);
            }
            // A client that still sends its body would see a broken connection instead of the answer.
            drain(&app.uploads, request.into_body()).await;
            problem.into_response()
        }
    }
}

/// Reads the body of a request that needs no token, within bounds of size and time.
async fn public_body(request: Request, time: Duration) -> Result<Request, Problem> {
    let (parts, body) = request.into_parts();
    let slow = |_| {
        let detail = "cannot read the request: its body comes too slowly; send it again";
        Problem::new(ProblemKind::BodyTimeout, detail)
    };
    let read = timeout(time, to_bytes(body, MOST_PUBLIC_BODY)).await.map_err(slow)?;
    let body = read.map_err(|error| {
        let detail = format_args!("cannot read the request: {error}; send at most {MOST_PUBLIC_BODY} bytes");
        Problem::new(ProblemKind::TooLarge, detail)
    })?;
    Ok(Request::from_parts(parts, Body::from(body)))
}

async fn find_access(app: &App, headers: &HeaderMap, peer: Option<Peer>) -> Result<Access, Problem> {
    let found = match bearer(headers)? {
        Some(text) => app.tokens.check_async(text).await.map(Some),
        None => Ok(None),
    };
    let client = match (&found, peer) {
        (Ok(Some(token)), _) => Client::Token(token.id),
        (_, Some(peer)) => Client::Peer(peer.0.ip()),
        (_, None) => Client::Others,
    };
    {
        let mut limiter = app.limiter.lock().unwrap_or_else(PoisonError::into_inner);
        limiter.admit(client, app.clock.now()).map_err(too_many)?;
    }
    match found {
        Ok(Some(token)) => {
            let principal = principal(app, &token).await?;
            Ok(Access { token: Some(Arc::new(token)), principal, peer })
        }
        Ok(None) => open_access(app, headers, peer).await,
        Err(TokenRefusal::Unavailable(reason)) => Err(Problem::internal("check the token", reason)),
        Err(refusal) => Err(unauthorized(&refusal.to_string(), INVALID_TOKEN)),
    }
}

/// Account of a token with its rights; a token whose account is disabled or removed is refused.
async fn principal(app: &App, token: &TokenInfo) -> Result<Option<Arc<Principal>>, Problem> {
    let Some(account) = token.account.clone() else { return Ok(None) };
    let load = move |catalog: &mut Catalog<_>| Principal::load(catalog, &account);
    match crate::routes::with_catalog(app, "read the account", load).await? {
        Some(principal) => Ok(Some(Arc::new(principal))),
        None => Err(unauthorized("the account of the token is disabled or removed", INVALID_TOKEN)),
    }
}

/// Problem of a client that must wait for its next request.
pub(crate) fn too_many(wait: Duration) -> Problem {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let detail = format_args!("cannot do the request: too many came at once; try again in {seconds} s");
    Problem::new(ProblemKind::TooManyRequests, detail).with(RETRY_AFTER, seconds)
}

/// Access without a token: only while no token was ever created, on a loopback address, under a loopback name.
async fn open_access(app: &App, headers: &HeaderMap, peer: Option<Peer>) -> Result<Access, Problem> {
    let is_empty = app.tokens.is_empty().await;
    let is_empty = is_empty.map_err(|error| Problem::internal("read the tokens", error))?;
    // The name is checked because a web page may make its own name point to the loopback address.
    if app.is_loopback && is_empty && has_loopback_host(headers) {
        return Ok(Access { token: None, principal: None, peer });
    }
    let reason = match (app.is_loopback, is_empty) {
        (false, true) => "no token exists yet, and the server is open to the network",
        (true, true) => "without tokens only the names localhost, 127.0.0.1 and [::1] have access",
        _ => "it carries no token",
    };
    Err(unauthorized(reason, "Bearer realm=\"holdfast\""))
}

pub(crate) fn unauthorized(reason: &str, challenge: &str) -> Problem {
    Problem::new(
        ProblemKind::Unauthorized,
        format_args!("cannot accept the request: {reason}; send the header 'Authorization: Bearer TOKEN'"),
    )
    .with(WWW_AUTHENTICATE, challenge)
}

fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(value) = headers.get(AUTHORIZATION) else { return Ok(None) };
    let text = value.to_str().ok().and_then(|text| text.split_once(' '));
    match text {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(Some(token.trim())),
        _ => {
            let challenge = "Bearer realm=\"holdfast\", error=\"invalid_request\"";
            Err(unauthorized("its authorization is not of the kind Bearer", challenge))
        }
    }
}

/// True when the header `Host` is missing or names the loopback interface.
fn has_loopback_host(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST) else { return true };
    let Ok(host) = host.to_str() else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
