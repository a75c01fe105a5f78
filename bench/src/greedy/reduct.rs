//! `ReductStore`, over HTTP as its clients do it: a record an element, the oldest given up by its quota.

use super::{Ended, Load, Reading, Recorder, below};
use crate::place::Place;
use crate::program::Program;
use crate::{Trouble, tool};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Times of records are their numbers, from here on, in microseconds.
const FIRST: u64 = 1_700_000_000_000_000;

/// How often it is asked whether it is ready.
const TRIES: u32 = 600;

/// Bytes of an answer at most.
const ANSWER: usize = 64 << 20;

/// A connection that stays.
struct Client {
    stream: BufReader<TcpStream>,
    host: String,
}

impl Client {
    fn connect(port: u16) -> Result<Self, Trouble> {
        let host = format!("127.0.0.1:{port}");
        let stream = TcpStream::connect(&host).map_err(Trouble::of("connecting to ReductStore"))?;
        stream.set_nodelay(true).map_err(Trouble::of("connecting to ReductStore"))?;
        Ok(Self { stream: BufReader::with_capacity(256 << 10, stream), host })
    }

    /// The status, and how many bytes came.
    fn ask(&mut self, method: &str, path: &str, body: &[u8]) -> Result<(u16, u64), Trouble> {
        let wrong = Trouble::of("talking to ReductStore");
        self.exchange(method, path, body).map_err(wrong)
    }

    fn exchange(&mut self, method: &str, path: &str, body: &[u8]) -> std::io::Result<(u16, u64)> {
        let head = format!(
            "{method} /api/v1{path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer bench\r\n\
             Content-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
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
        let length = u64::min(length, ANSWER as u64);
        let read = std::io::copy(&mut (&mut self.stream).take(length), &mut std::io::sink())?;
        if read == length { Ok((status, read)) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
    }
}

/// `ReductStore` at work.
pub struct Reduct {
    program: Program,
    port: u16,
    client: Client,
    kept: u64,
    last: Arc<AtomicU64>,
}

impl Reduct {
    /// Begins; left out where it is not installed.
    pub fn begin(place: &Place, load: &Load) -> Result<Self, Trouble> {
        let path = tool::need("reductstore")?;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.map_err(Trouble::of("finding a port"))?.port();
        let folder = place.file("reduct");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(Trouble::file(&folder, "make it"))?;
        let arguments = [
            format!("RS_DATA_PATH={}", folder.display()),
            "RS_HOST=127.0.0.1".to_owned(),
            format!("RS_PORT={port}"),
            "RS_API_TOKEN=bench".to_owned(),
            "RS_LOG_LEVEL=WARN".to_owned(),
            path.display().to_string(),
        ];
        let env = tool::need("env")?;
        let mut program = Program::start(&env, &arguments, Stdio::null(), &place.file("reduct.said"))?;
        program.until("ReductStore's port", |_| TcpStream::connect(("127.0.0.1", port)).is_ok())?;
        let mut client = Client::connect(port)?;
        let quota = format!("{{\"quota_type\":\"FIFO\",\"quota_size\":{}}}", load.kept);
        let mut status = 0;
        // It answers before it is ready.
        for _ in 0..TRIES {
            match client.ask("POST", "/b/bench", quota.as_bytes()) {
                Ok((answer, _)) if answer != 503 => {
                    status = answer;
                    break;
                }
                Ok((answer, _)) => status = answer,
                // It may end a connection that came too early.
                Err(_) => client = Client::connect(port)?,
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        if status != 200 {
            return Err(Trouble::Accounting(format!(
                "ReductStore makes no bucket: {status}; {}",
                program.said()
            )));
        }
        let kept = load.kept / super::ELEMENT as u64;
        Ok(Self { program, port, client, kept, last: Arc::new(AtomicU64::new(0)) })
    }
}

impl Reduct {
    /// A record after the other over one connection: which of those that are there, `pick` says.
    fn reading(&self, mut pick: impl FnMut(u64, u64) -> u64 + Send + 'static) -> Reading {
        let (port, kept, last) = (self.port, self.kept, Arc::clone(&self.last));
        let mut client = None;
        Box::new(move || {
            let end = last.load(Ordering::Relaxed);
            // The newest three quarters of what is kept are there for sure.
            let from = end.saturating_sub(kept * 3 / 4);
            if end == from {
                return Ok(0);
            }
            let mut at = match client.take() {
                Some(client) => client,
                None => Client::connect(port)?,
            };
            let number = pick(from, end);
            let (status, bytes) = at.ask("GET", &format!("/b/bench/elements?ts={}", FIRST + number), &[])?;
            client = Some(at);
            Ok(if status == 200 { bytes } else { 0 })
        })
    }
}

impl Recorder for Reduct {
    fn take(&mut self, number: u64, element: &[u8]) -> Result<(), Trouble> {
        let path = format!("/b/bench/elements?ts={}", FIRST + number);
        let (status, _) = self.client.ask("POST", &path, element)?;
        if status != 200 {
            return Err(Trouble::Accounting(format!("ReductStore does not take a record: {status}")));
        }
        self.last.store(number + 1, Ordering::Relaxed);
        Ok(())
    }

    fn reader(&self, seed: u64) -> Result<Reading, Trouble> {
        let mut random = seed;
        Ok(self.reading(move |from, end| from + below(&mut random, end - from)))
    }

    fn exporter(&self) -> Result<Reading, Trouble> {
        let mut next = 0;
        Ok(self.reading(move |from, end| {
            let number = if (from..end).contains(&next) { next } else { from };
            next = number + 1;
            number
        }))
    }

    fn end(self: Box<Self>) -> Result<Ended, Trouble> {
        self.program.interrupt();
        // It is of no interest how it ends; what it took was acknowledged.
        drop(self.program);
        Ok(Ended::default())
    }
}
