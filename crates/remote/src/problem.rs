//! Answers that refuse a request: status, problem body (RFC 9457) and headers become an error.

use crate::error::{RemoteError, RemoteErrorKind};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Response, Url};
use serde::Deserialize;
use std::time::Duration;

/// Bytes of a refusal's body that are read.
const MOST_BODY: usize = 64 << 10;

/// Characters of a refusal's text that become part of a message.
const MOST_SHOWN: usize = 400;

/// Problem body of a site. Foreign servers send other texts.
#[derive(Debug, Default, Deserialize)]
struct ProblemBody {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    entry: Option<usize>,
}

/// Number in a header; `None` if it is absent or no number.
pub(crate) fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

/// Error of an answer whose status is not a success.
pub(crate) async fn refusal(action: &str, url: &Url, mut response: Response, idle: Duration) -> RemoteError {
    let status = response.status().as_u16();
    let headers = std::mem::take(response.headers_mut());
    let mut body = Vec::new();
    while body.len() < MOST_BODY
        && let Ok(Ok(Some(piece))) = tokio::time::timeout(idle, response.chunk()).await
    {
        body.extend_from_slice(&piece);
    }
    let problem: Option<ProblemBody> = serde_json::from_slice(&body).ok();
    let name = problem.as_ref().and_then(|problem| problem.r#type.strip_prefix("urn:holdfast:problem:"));
    let mut error = RemoteError::new(kind(status, name), String::new());
    error.retry_after = number(&headers, RETRY_AFTER.as_str()).map(Duration::from_secs);
    error.offset = number(&headers, "upload-offset");
    error.entry = problem.as_ref().and_then(|problem| problem.entry);
    let reason = match &problem {
        Some(problem) if !problem.detail.is_empty() => problem.detail.clone(),
        _ => {
            let text = String::from_utf8_lossy(&body);
            let text = text.trim();
            let separator = if text.is_empty() { "" } else { ": " };
            format!("the server answered with status {status}{separator}{text}")
        }
    };
    // Details of sites have the form "cannot VERB OBJECT: REASON; REMEDY", whose first part this message has already.
    let reason = match reason.split_once(": ") {
        Some((start, reason)) if start.starts_with("cannot ") => reason,
        _ => &reason,
    };
    let shown: String = reason.chars().filter(|c| !c.is_control()).take(MOST_SHOWN).collect();
    let remedy = if shown.contains("; ") { "" } else { remedy(error.kind) };
    error.message = format!("cannot {action} {url}: {shown}{remedy}");
    error
}

/// Kind of an answer by its status, and by its problem's name where a status has several meanings.
fn kind(status: u16, problem: Option<&str>) -> RemoteErrorKind {
    match (status, problem) {
        (401, _) => RemoteErrorKind::Unauthorized,
        (403, Some("final-upload")) => RemoteErrorKind::Refused,
        (403, _) => RemoteErrorKind::Forbidden,
        (404, _) => RemoteErrorKind::NotFound,
        (408, _) => RemoteErrorKind::TimedOut,
        (409, Some("name-taken" | "account-exists")) => RemoteErrorKind::Taken,
        (409, None | Some("offset-mismatch")) => RemoteErrorKind::OffsetMismatch,
        (410, _) => RemoteErrorKind::Gone,
        (413, _) => RemoteErrorKind::TooLarge,
        (405 | 412 | 415 | 501, _) | (400, Some("unknown-checksum")) => RemoteErrorKind::Unsupported,
        (423, _) => RemoteErrorKind::Locked,
        (429 | 503, _) => RemoteErrorKind::Busy,
        (460, _) => RemoteErrorKind::ChecksumMismatch,
        (507, _) => RemoteErrorKind::Full,
        (500.., _) => RemoteErrorKind::ServerFailed,
        _ => RemoteErrorKind::Refused,
    }
}

/// Remedy for servers that tell none.
fn remedy(kind: RemoteErrorKind) -> &'static str {
    match kind {
        RemoteErrorKind::Unauthorized | RemoteErrorKind::Forbidden => "; check the token",
        RemoteErrorKind::NotFound | RemoteErrorKind::Refused => "; check the address",
        RemoteErrorKind::Gone => "; start a new upload",
        RemoteErrorKind::OffsetMismatch => "; resume from the upload's offset",
        RemoteErrorKind::TooLarge => "; send less",
        RemoteErrorKind::Unsupported => "; use a server that has the feature",
        _ => "; try again later",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_kinds() {
        assert_eq!(kind(409, None), RemoteErrorKind::OffsetMismatch);
        assert_eq!(kind(409, Some("not-complete")), RemoteErrorKind::Refused);
        assert_eq!(kind(409, Some("name-taken")), RemoteErrorKind::Taken);
        assert_eq!(kind(507, None), RemoteErrorKind::Full);
        assert_eq!(kind(502, None), RemoteErrorKind::ServerFailed);
        assert_eq!(kind(302, None), RemoteErrorKind::Refused);
        assert_eq!(kind(400, Some("unknown-checksum")), RemoteErrorKind::Unsupported);
    }
}
