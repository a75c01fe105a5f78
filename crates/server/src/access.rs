//! Access of a request: its token, and the scopes and projects that the token grants.
//!
//! Access is open while no token was ever created and the server listens on a loopback address only.

use crate::app::App;
use crate::object_path::ProjectName;
use crate::problem::{Problem, ProblemKind};
use crate::rate_limiter::Client;
use crate::receiver::drain;
use crate::token::{Scope, TokenInfo};
use crate::token_store::TokenRefusal;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::{AUTHORIZATION, HOST, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, Method};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError};

/// Address of the client of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Access that a request has.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Token of the request; `None` while access is open.
    pub(crate) token: Option<Arc<TokenInfo>>,
}

impl Access {
    /// Project that the token is bound to.
    pub(crate) fn own_project(&self) -> Option<&ProjectName> {
        self.token.as_ref()?.project.as_ref()
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
        format_args!("cannot do the request: {reason}; ask the server's administrator for another token"),
    )
}

/// Layer that finds the access of a request, limits its rate, and refuses requests without access.
pub(crate) async fn check_access(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    // Clients ask for the server's abilities before they have a token.
    let is_public = request.method() == Method::OPTIONS;
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
    match find_access(&app, request.headers(), peer).await {
        Ok(access) => {
            let id = access.token.as_ref().map(|token| token.id);
            request.extensions_mut().insert(access);
            let mut response = next.run(request).await;
            if let Some(id) = id {
                response.extensions_mut().insert(id);
            }
            response
        }
        Err(problem) if is_public && problem.kind() == ProblemKind::Unauthorized => next.run(request).await,
        Err(problem) => {
            // A client that still sends its body would see a broken connection instead of the answer.
            drain(&app.uploads, request.into_body()).await;
            problem.into_response()
        }
    }
}

async fn find_access(app: &App, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<Access, Problem> {
    let found = match bearer(headers)? {
        Some(text) => app.tokens.check_async(text).await.map(Some),
        None => Ok(None),
    };
    let client = match (&found, peer) {
        (Ok(Some(token)), _) => Client::Token(token.id),
        (_, Some(peer)) => Client::Peer(peer),
        (_, None) => Client::Others,
    };
    {
        let mut limiter = app.limiter.lock().unwrap_or_else(PoisonError::into_inner);
        limiter.admit(client, app.clock.now()).map_err(|wait| {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            let detail =
                format_args!("cannot do the request: too many came at once; try again in {seconds} s");
            Problem::new(ProblemKind::TooManyRequests, detail).with(RETRY_AFTER, seconds)
        })?;
    }
    match found {
        Ok(Some(token)) => Ok(Access { token: Some(Arc::new(token)) }),
        Ok(None) => open_access(app, headers).await,
        Err(TokenRefusal::Unavailable(reason)) => Err(Problem::internal("check the token", reason)),
        Err(refusal) => {
            Err(unauthorized(&refusal.to_string(), "Bearer realm=\"holdfast\", error=\"invalid_token\""))
        }
    }
}

/// Access without a token: only while no token was ever created, on a loopback address, under a loopback name.
async fn open_access(app: &App, headers: &HeaderMap) -> Result<Access, Problem> {
    let is_empty = app.tokens.is_empty().await;
    let is_empty = is_empty.map_err(|error| Problem::internal("read the tokens", error))?;
    // The name is checked because a web page may make its own name point to the loopback address.
    if app.is_loopback && is_empty && has_loopback_host(headers) {
        return Ok(Access { token: None });
    }
    let reason = match (app.is_loopback, is_empty) {
        (false, true) => "no token exists yet, and the server is open to the network",
        (true, true) => "without tokens only the names localhost, 127.0.0.1 and [::1] have access",
        _ => "it carries no token",
    };
    Err(unauthorized(reason, "Bearer realm=\"holdfast\""))
}

fn unauthorized(reason: &str, challenge: &str) -> Problem {
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
