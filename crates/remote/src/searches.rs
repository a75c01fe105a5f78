//! Searches that run at a site, and the frames in which their output comes.
//!
//! ```text
//! answer   frame*; the last one is an end, and an answer without it is cut
//! frame    u8   kind: 0 output, 1 message, 2 end, 3 silence
//!          u32  length of the body in bytes, little-endian, at most `MOST_BODY`
//!          ...  body: bytes of standard output or standard error; of an end the exit code, one byte (`LOSSY`: 1 with a complete result)
//! ```

use crate::error::RemoteError;
use crate::send::Call;
use crate::site::Site;
use bytes::{BufMut as _, Bytes, BytesMut};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, Response, Url};
use serde::Serialize;
use std::time::Duration;
use tokio::time::timeout;

/// Exit code of a search that has failed because data is damaged or gone, with a result that is complete otherwise.
pub const LOSSY: u8 = 4;

/// Longest body of a frame in bytes.
const MOST_BODY: usize = 1 << 20;

/// Bytes of a frame before its body.
const HEAD: usize = 5;

/// Verb and object of error messages.
const ACTION: &str = "search the rings of";

/// Search over rings of one site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NewSearch {
    /// Name or identity of the rings' site; the asked one without it.
    pub site: Option<String>,
    /// Command that searches: `query`, `grep`, `hash` or `scan`.
    pub command: String,
    /// Names of rings in the configuration of their site.
    pub rings: Vec<String>,
    /// Options of the command, `--NAME` or `--NAME=VALUE`.
    pub options: Vec<String>,
    /// Query in SQL, of the command `query`.
    pub sql: Option<String>,
}

/// Part of the answer to a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchPart {
    /// Bytes of the result.
    Output(Bytes),
    /// Bytes of messages for people.
    Message(Bytes),
    /// End of the search, with the exit code of its command.
    End(u8),
    /// Sign of a search that has nothing to tell.
    Silence,
}

impl SearchPart {
    /// Frame of this part, whose body has at most 1 MiB.
    pub fn frame(&self) -> Bytes {
        let code;
        let (kind, body) = match self {
            Self::Output(bytes) => (0, &bytes[..]),
            Self::Message(bytes) => (1, &bytes[..]),
            Self::End(number) => {
                code = [*number];
                (2, &code[..])
            }
            Self::Silence => (3, &[][..]),
        };
        let mut frame = BytesMut::with_capacity(HEAD + body.len());
        frame.put_u8(kind);
        frame.put_u32_le(body.len() as u32);
        frame.put_slice(body);
        frame.freeze()
    }
}

/// Takes the next part out of received bytes, if all of it is there; the error tells what is wrong with them.
fn next(received: &mut BytesMut) -> Result<Option<SearchPart>, &'static str> {
    let Some((&[kind, a, b, c, d], rest)) = received.split_first_chunk::<HEAD>() else { return Ok(None) };
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if length > MOST_BODY {
        return Err("a part of the answer is too long");
    }
    if rest.len() < length {
        return Ok(None);
    }
    let body = received.split_to(HEAD + length).split_off(HEAD).freeze();
    match (kind, &body[..]) {
        (0, _) => Ok(Some(SearchPart::Output(body))),
        (1, _) => Ok(Some(SearchPart::Message(body))),
        (2, &[code]) => Ok(Some(SearchPart::End(code))),
        (3, []) => Ok(Some(SearchPart::Silence)),
        _ => Err("a part of the answer is unreadable"),
    }
}

/// Answer to a search, part by part.
#[derive(Debug)]
pub struct RunningSearch {
    response: Response,
    received: BytesMut,
    url: Url,
    idle: Duration,
    is_ended: bool,
}

impl RunningSearch {
    /// Next part of the answer; nothing behind its end. An answer that is cut is an error.
    pub async fn part(&mut self) -> Result<Option<SearchPart>, RemoteError> {
        let url = &self.url;
        let nonsense = |reason: &str| RemoteError::nonsense(ACTION, url, reason);
        while !self.is_ended {
            if let Some(part) = next(&mut self.received).map_err(nonsense)? {
                self.is_ended = matches!(part, SearchPart::End(_));
                return Ok(Some(part));
            }
            let piece = timeout(self.idle, self.response.chunk()).await;
            let piece = piece.map_err(|_| RemoteError::timed_out(ACTION, url, self.idle))?;
            let piece = piece.map_err(|error| RemoteError::transport(ACTION, url, &error))?;
            self.received
                .extend_from_slice(&piece.ok_or_else(|| nonsense("the answer ends before the search"))?);
        }
        Ok(None)
    }
}

impl Site {
    /// Begins a search over rings of any site that the asked one knows.
    pub async fn search(&self, search: &NewSearch) -> Result<RunningSearch, RemoteError> {
        let url = self.address(["searches"])?;
        let body = serde_json::to_vec(search);
        let body = body.map_err(|error| RemoteError::nonsense(ACTION, &url, error))?.into();
        let request = self.request(Method::POST, &url).header(CONTENT_TYPE, "application/json");
        let call = Call { action: ACTION, url: &url, request, body, patience: Duration::ZERO };
        let response = self.send(call).await?;
        Ok(RunningSearch { response, received: BytesMut::new(), url, idle: self.idle(), is_ended: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part() -> impl Strategy<Value = SearchPart> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..50).prop_map(Bytes::from);
        prop_oneof![
            bytes().prop_map(SearchPart::Output),
            bytes().prop_map(SearchPart::Message),
            any::<u8>().prop_map(SearchPart::End),
            Just(SearchPart::Silence),
        ]
    }

    #[test]
    fn frames_are_these_bytes() {
        let frame = |part: SearchPart| part.frame().to_vec();
        assert_eq!(frame(SearchPart::Output("ab".into())), b"\x00\x02\x00\x00\x00ab");
        assert_eq!(frame(SearchPart::Message("c".into())), b"\x01\x01\x00\x00\x00c");
        assert_eq!(frame(SearchPart::End(3)), b"\x02\x01\x00\x00\x00\x03");
        assert_eq!(frame(SearchPart::Silence), b"\x03\x00\x00\x00\x00");
    }

    proptest! {
        #[test]
        fn parts_are_read_back_however_they_are_cut(parts in prop::collection::vec(part(), 0..8), piece in 1..20_usize) {
            let all: Vec<u8> = parts.iter().flat_map(SearchPart::frame).collect();
            let (mut received, mut read) = (BytesMut::new(), Vec::new());
            for bytes in all.chunks(piece) {
                received.extend_from_slice(bytes);
                while let Some(part) = next(&mut received).unwrap() {
                    read.push(part);
                }
            }
            prop_assert_eq!(read, parts);
            prop_assert!(received.is_empty());
        }

        #[test]
        fn any_bytes_are_parts_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut received = BytesMut::from(&bytes[..]);
            while let Ok(Some(_)) = next(&mut received) {}
        }
    }
}
