//! Small tus client over raw HTTP/1.1, which can also cut a request at any byte.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) token: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn offset(&self) -> u64 {
        self.header("upload-offset").unwrap_or_else(|| panic!("no offset in {self:?}")).parse().unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Name of the problem in the body, which must be one of RFC 9457.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let json = self.json();
        assert_eq!(json["status"], self.status, "{json}");
        let detail = json["detail"].as_str().unwrap();
        assert!(detail.starts_with("cannot ") && detail.contains(": ") && detail.contains("; "), "{detail}");
        assert!(!json["title"].as_str().unwrap().is_empty());
        json["type"].as_str().unwrap().strip_prefix("urn:holdfast:problem:").unwrap().to_owned()
    }

    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{:?} {}", self.headers, String::from_utf8_lossy(&self.body));
        self
    }

    /// Parses all bytes that a server sent until it closed the connection; `None` if there is no whole head.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(':').unwrap())
            .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
            .collect();
        let mut response = Self { status, headers, body: bytes[end + 4..].to_vec() };
        if response.header("transfer-encoding") == Some("chunked") {
            response.body = dechunk(&response.body);
        }
        Some(response)
    }
}

/// Contents of a chunked body up to its end or its last whole chunk.
fn dechunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        if size == 0 || bytes.len() < end + 4 + size {
            break;
        }
        body.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        bytes = &bytes[end + 4 + size..];
    }
    body
}

impl Client {
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// Connection on which the head of a request was sent.
    pub(crate) fn start(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        length: Option<usize>,
    ) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let _ = stream.write_all(self.request_head(method, path, headers, length).as_bytes());
        stream
    }

    fn request_head(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        length: Option<usize>,
    ) -> String {
        let is_given = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        let mut lines = vec![format!("{method} {path} HTTP/1.1")];
        if !is_given("host") {
            lines.push(format!("Host: {}", self.address));
        }
        if !is_given("connection") {
            lines.push("Connection: close".to_owned());
        }
        lines.extend(self.token.iter().map(|token| format!("Authorization: Bearer {token}")));
        let length = length.filter(|_| !is_given("content-length"));
        lines.extend(length.map(|length| format!("Content-Length: {length}")));
        lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
        lines.join("\r\n") + "\r\n\r\n"
    }

    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let mut stream = TcpStream::connect(self.address).unwrap();
        // Head and body go out together. The server may answer and close before it has read everything.
        let head = self.request_head(method, path, headers, Some(body.len()));
        let _ = stream.write_all(&[head.as_bytes(), body].concat());
        finish(stream).unwrap_or_else(|| panic!("no answer to {method} {path}"))
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.send("GET", path, &[], &[])
    }

    /// Request of the tus protocol.
    pub(crate) fn tus(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let mut all = vec![("Tus-Resumable", "1.0.0")];
        all.extend_from_slice(headers);
        self.send(method, path, &all, body)
    }

    /// Creates an upload and returns its address; `None` defers the length.
    pub(crate) fn create(&self, path: &str, length: Option<u64>) -> String {
        let length = length.map(|length| length.to_string());
        let length =
            length.as_deref().map_or(("Upload-Defer-Length", "1"), |length| ("Upload-Length", length));
        let metadata = metadata(&[("path", path)]);
        let created = self.tus("POST", "/files/", &[length, ("Upload-Metadata", &metadata)], &[]).expect(201);
        created.header("location").unwrap().to_owned()
    }

    /// Creates a partial upload with its contents.
    pub(crate) fn partial(&self, contents: &[u8]) -> String {
        let length = contents.len().to_string();
        let headers = [
            ("Upload-Length", length.as_str()),
            ("Upload-Concat", "partial"),
            ("Content-Type", "application/offset+octet-stream"),
        ];
        let created = self.tus("POST", "/files/", &headers, contents).expect(201);
        created.header("location").unwrap().to_owned()
    }

    pub(crate) fn patch(&self, upload: &str, offset: u64, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let offset = offset.to_string();
        let mut all =
            vec![("Content-Type", "application/offset+octet-stream"), ("Upload-Offset", offset.as_str())];
        all.extend_from_slice(headers);
        self.tus("PATCH", upload, &all, body)
    }

    /// PATCH that announces the whole body, and ends the connection after `cut` bytes of it.
    pub(crate) fn cut_patch(
        &self,
        upload: &str,
        offset: u64,
        headers: &[(&str, &str)],
        body: &[u8],
        cut: usize,
    ) {
        let mut stream = self.start_patch(upload, offset, headers, body.len());
        let _ = stream.write_all(&body[..cut]);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = finish(stream);
    }

    pub(crate) fn start_patch(
        &self,
        upload: &str,
        offset: u64,
        headers: &[(&str, &str)],
        length: usize,
    ) -> TcpStream {
        let offset = offset.to_string();
        let mut all = vec![
            ("Tus-Resumable", "1.0.0"),
            ("Content-Type", "application/offset+octet-stream"),
            ("Upload-Offset", offset.as_str()),
        ];
        all.extend_from_slice(headers);
        self.start("PATCH", upload, &all, Some(length))
    }

    pub(crate) fn head(&self, upload: &str) -> Response {
        self.tus("HEAD", upload, &[], &[])
    }

    /// Offset of an upload that no other request changes any more: an empty PATCH at it succeeds.
    pub(crate) fn settled_offset(&self, upload: &str) -> u64 {
        let mut offset = 0;
        crate::status::until(self, || {
            offset = self.head(upload).expect(200).offset();
            match self.patch(upload, offset, &[], &[]).status {
                204 => true,
                409 | 423 => false,
                status => panic!("status {status}"),
            }
        });
        offset
    }

    /// PATCH of a segment that may lie above the upload's offset.
    pub(crate) fn patch_ahead(&self, upload: &str, offset: u64, body: &[u8]) -> Response {
        let sum = crate::checksums::checksum("blake3", body);
        self.patch(upload, offset, &[("Holdfast-Ahead", "1"), ("Upload-Checksum", &sum)], body)
    }

    /// Uploads a whole file in one request.
    pub(crate) fn upload(&self, path: &str, contents: &[u8]) -> String {
        let upload = self.create(path, Some(contents.len() as u64));
        if !contents.is_empty() {
            let offset = self.patch(&upload, 0, &[], contents).expect(204).offset();
            assert_eq!(offset, contents.len() as u64);
        }
        upload
    }
}

/// Answer on a connection that the server closes; `None` if it closes without a head.
pub(crate) fn finish(mut stream: TcpStream) -> Option<Response> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    Response::parse(&bytes)
}

/// Value of the header `Upload-Metadata`.
pub(crate) fn metadata(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<_> =
        pairs.iter().map(|(key, value)| format!("{key} {}", STANDARD.encode(value))).collect();
    pairs.join(",")
}

/// Reproducible bytes without repetitions.
pub(crate) fn contents(seed: u64, length: usize) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    let mut bytes = vec![0; length];
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}
