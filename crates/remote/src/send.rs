//! Execution of one request: its body, its idle timeout, and the error of an answer that is no success.

use crate::error::RemoteError;
use crate::problem::refusal;
use crate::site::Site;
use bytes::Bytes;
use reqwest::header::CONTENT_LENGTH;
use reqwest::{Body, RequestBuilder, Response, Url};
use serde::de::DeserializeOwned;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Bytes that are handed to the connection together, and counted as progress.
const PIECE: usize = 16 << 10;

/// Rate in bytes per second of the slowest network that is not taken for a broken one. Bytes in the socket's buffer count as
/// taken already, and the answer comes after they have passed.
const SLOWEST: u64 = 8 << 10;

/// Bytes of an answer in JSON: above 65536 block hashes.
const MOST_JSON: usize = 16 << 20;

/// Request that is ready to be sent.
pub(crate) struct Call<'a> {
    /// Verb and object of error messages, before the address.
    pub(crate) action: &'a str,
    /// Address of the request.
    pub(crate) url: &'a Url,
    /// Request without its body.
    pub(crate) request: RequestBuilder,
    /// Body of the request.
    pub(crate) body: Bytes,
    /// Time that the server may take on purpose before it answers.
    pub(crate) patience: Duration,
}

impl Site {
    /// Sends a request; the answer has a status of success.
    pub(crate) async fn send(&self, call: Call<'_>) -> Result<Response, RemoteError> {
        let Call { action, url, request, body, patience } = call;
        let idle = self.idle() + patience;
        let passage = Duration::from_secs(body.len() as u64 / SLOWEST);
        let sent = Arc::new(AtomicUsize::new(0));
        let request = if body.is_empty() {
            request
        } else {
            request.header(CONTENT_LENGTH, body.len()).body(counted(body, Arc::clone(&sent)))
        };
        let response = tokio::select! {
            response = request.send() => response.map_err(|error| RemoteError::transport(action, url, &error))?,
            () = silence(&sent, idle + passage) => return Err(RemoteError::timed_out(action, url, idle + passage)),
        };
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(refusal(action, url, response, idle).await)
        }
    }

    /// Sends a request whose answer is a JSON value.
    pub(crate) async fn send_json<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, RemoteError> {
        let (action, url) = (call.action, call.url);
        let body = self.send_bytes(call, MOST_JSON).await?;
        let value = serde_json::from_slice(&body);
        value.map_err(|error| {
            RemoteError::nonsense(action, url, format!("the answer is unreadable ({error})"))
        })
    }

    /// Sends a request whose answer has at most `most` bytes.
    pub(crate) async fn send_bytes(&self, call: Call<'_>, most: usize) -> Result<Bytes, RemoteError> {
        let (action, url, idle) = (call.action, call.url, self.idle());
        let mut response = self.send(call).await?;
        let mut body = Vec::new();
        loop {
            let piece = timeout(idle, response.chunk()).await;
            let piece = piece.map_err(|_| RemoteError::timed_out(action, url, idle))?;
            match piece.map_err(|error| RemoteError::transport(action, url, &error))? {
                Some(piece) if body.len() + piece.len() > most => {
                    let reason = format!("the answer has more than {most} bytes");
                    return Err(RemoteError::nonsense(action, url, reason));
                }
                Some(piece) => body.extend_from_slice(&piece),
                None => return Ok(body.into()),
            }
        }
    }
}

/// Body that counts the bytes which the connection has taken.
fn counted(body: Bytes, sent: Arc<AtomicUsize>) -> Body {
    let pieces = futures::stream::unfold((body, sent), |(mut body, sent)| async move {
        if body.is_empty() {
            return None;
        }
        let piece = body.split_to(PIECE.min(body.len()));
        sent.fetch_add(piece.len(), Ordering::Relaxed);
        Some((Ok::<_, Infallible>(piece), (body, sent)))
    });
    Body::wrap_stream(pieces)
}

/// Ends when no byte was taken for the time `idle`.
async fn silence(sent: &AtomicUsize, idle: Duration) {
    let mut before = sent.load(Ordering::Relaxed);
    loop {
        sleep(idle).await;
        let now = sent.load(Ordering::Relaxed);
        if now == before {
            return;
        }
        before = now;
    }
}
