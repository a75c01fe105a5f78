//! `ReductStore`: its server, and a client that speaks HTTP as its own do.

use crate::program::Program;
use crate::work_folder::WorkFolder;
use crate::{BenchError, tools};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;

/// Times of records are their numbers, from here on, in microseconds.
pub const FIRST: u64 = 1_700_000_000_000_000;

/// How often it is asked whether it is ready.
const TRIES: u32 = 600;

/// An answer without a body.
pub const NO_CONTENT: u16 = 204;

/// Bytes of an answer at most.
const ANSWER: u64 = 64 << 20;

/// A server with an empty bucket, `bench`.
pub struct ReductServer {
    program: Program,
    /// Where it listens.
    pub port: u16,
}

impl ReductServer {
    /// Begins, with these settings of the bucket; left out where it is not installed.
    pub fn begin(place: &WorkFolder, settings: &str) -> Result<(Self, ReductClient), BenchError> {
        let path = tools::need("reductstore")?;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.map_err(BenchError::during("finding a port"))?.port();
        let folder = place.file("reduct");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(BenchError::file(&folder, "make it"))?;
        let arguments = [
            format!("RS_DATA_PATH={}", folder.display()),
            "RS_HOST=127.0.0.1".to_owned(),
            format!("RS_PORT={port}"),
            "RS_API_TOKEN=bench".to_owned(),
            "RS_LOG_LEVEL=WARN".to_owned(),
            path.display().to_string(),
        ];
        let env = tools::need("env")?;
        let mut program = Program::start(&env, &arguments, Stdio::null(), &place.file("reduct.said"))?;
        program.until("ReductStore's port", |_| TcpStream::connect(("127.0.0.1", port)).is_ok())?;
        let mut client = ReductClient::connect(port)?;
        let mut status = 0;
        // It answers before it is ready.
        for _ in 0..TRIES {
            match client.ask("POST", "/b/bench", settings.as_bytes()) {
                Ok((answer, _)) if answer != 503 => {
                    status = answer;
                    break;
                }
                Ok((answer, _)) => status = answer,
                // It may end a connection that came too early.
                Err(_) => client = ReductClient::connect(port)?,
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        if status != 200 {
            return Err(BenchError::Accounting(format!(
                "ReductStore makes no bucket: {status}; {}",
                program.said()
            )));
        }
        Ok((Self { program, port }, client))
    }

    /// Ends it. How it does is of no interest.
    pub fn end(self) {
        self.program.interrupt();
    }
}

/// A connection that stays.
pub struct ReductClient {
    stream: BufReader<TcpStream>,
    host: String,
}

impl ReductClient {
    /// To a server on this machine.
    pub fn connect(port: u16) -> Result<Self, BenchError> {
        let host = format!("127.0.0.1:{port}");
        let stream = TcpStream::connect(&host).map_err(BenchError::during("connecting to ReductStore"))?;
        stream.set_nodelay(true).map_err(BenchError::during("connecting to ReductStore"))?;
        Ok(Self { stream: BufReader::with_capacity(256 << 10, stream), host })
    }

    /// The status, and how many bytes came.
    pub fn ask(&mut self, method: &str, path: &str, body: &[u8]) -> Result<(u16, u64), BenchError> {
        self.exchange(method, path, "", body, &mut std::io::sink())
            .map_err(BenchError::during("talking to ReductStore"))
    }

    /// The status, and what came. Each of `headers` ends with a line's end.
    pub fn answer(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> Result<(u16, Vec<u8>), BenchError> {
        let mut answer = Vec::new();
        let done = self.exchange(method, path, headers, body, &mut answer);
        done.map(|(status, _)| (status, answer)).map_err(BenchError::during("talking to ReductStore"))
    }

    fn exchange(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
        to: &mut dyn Write,
    ) -> std::io::Result<(u16, u64)> {
        let head = format!(
            "{method} /api/v1{path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer bench\r\n\
             Content-Type: application/octet-stream\r\nContent-Length: {}\r\n{headers}\r\n",
            self.host,
            body.len()
        );
        let stream = self.stream.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        let (mut status, mut length) = (0, 0);
        for number in 0.. {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let line = line.trim_end();
            if number == 0 {
                status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
            } else if line.is_empty() {
                break;
            } else if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        // It gives the length of a body that it does not send.
        let length = if status == NO_CONTENT { 0 } else { length.min(ANSWER) };
        let read = std::io::copy(&mut (&mut self.stream).take(length), to)?;
        if read == length { Ok((status, read)) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
    }
}
