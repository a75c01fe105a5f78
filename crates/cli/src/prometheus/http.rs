//! As much HTTP/1.1 as a Prometheus server needs: one page, GET and HEAD, a limit on everything. What the page says
//! is not known here.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a request's head: what scrapers send is a tenth of it.
const MOST_HEAD: usize = 8 << 10;
/// A client has so long to ask, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Clients at once; a site has one or two Prometheus servers.
const MOST_CLIENTS: usize = 16;
/// How soon the end of the recorder is noticed.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// What can go wrong with the page: it is told to the client.
pub(crate) type Page = Result<String, String>;

/// Answers until `ended` says so.
pub(crate) fn serve(
    listener: &TcpListener,
    page: &(impl Fn() -> Page + Sync),
    ended: &dyn Fn() -> bool,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let clients = AtomicUsize::new(0);
    thread::scope(|scope| {
        while !ended() {
            let mut wait = [PollFd::new(listener, PollFlags::IN)];
            match poll(&mut wait, Some(&TICK)) {
                Ok(0) => continue,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            // A client that is gone again by now is its own problem.
            let Ok((stream, _)) = listener.accept() else { continue };
            if clients.fetch_add(1, Ordering::SeqCst) >= MOST_CLIENTS {
                clients.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            let clients = &clients;
            scope.spawn(move || {
                let _ = stream.set_nonblocking(false).and_then(|()| answer(stream, page));
                clients.fetch_sub(1, Ordering::SeqCst);
            });
        }
        Ok(())
    })
}

/// Reads one request and answers it.
fn answer(mut stream: TcpStream, page: &impl Fn() -> Page) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = read_head(&mut stream)?;
    let response = respond(&head, page);
    stream.write_all(response.as_bytes())?;
    stream.shutdown(std::net::Shutdown::Write)
}

/// The head of a request, or what came of it within the limits.
fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let until = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !ends(&head) && head.len() < MOST_HEAD {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let read = stream.read(&mut piece)?;
        if read == 0 {
            break;
        }
        head.extend_from_slice(&piece[..read]);
    }
    Ok(head)
}

fn ends(head: &[u8]) -> bool {
    head.windows(4).any(|four| four == b"\r\n\r\n")
}

/// The whole response to a request.
fn respond(head: &[u8], page: &impl Fn() -> Page) -> String {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = std::str::from_utf8(line).unwrap_or_default();
    let mut words = line.split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    if !ends(head) || !version.is_some_and(|version| version.starts_with("HTTP/1.")) {
        return text("400 Bad Request", "", "this is not an HTTP request\n", true);
    }
    let body = match method {
        Some("GET") => true,
        Some("HEAD") => false,
        _ => return text("405 Method Not Allowed", "Allow: GET, HEAD\r\n", "only GET and HEAD\n", true),
    };
    let path = target.unwrap_or_default().split('?').next().unwrap_or_default();
    if path != "/metrics" && path != "/" {
        return text("404 Not Found", "", "the metrics are at /metrics\n", body);
    }
    match page() {
        Ok(page) => text("200 OK", "", &page, body),
        Err(error) => text("503 Service Unavailable", "", &format!("{error}\n"), body),
    }
}

fn text(status: &str, more: &str, page: &str, body: bool) -> String {
    let shown = if body { page } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n{more}\r\n{shown}",
        page.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn said(request: &str) -> String {
        respond(request.as_bytes(), &|| Ok("up 1\n".to_owned()))
    }

    #[test]
    fn the_page_is_given_and_nothing_else() {
        let page = said("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\nup 1\n"), "{page}");
        assert!(page.contains("Content-Length: 5\r\n"));
        assert!(said("HEAD / HTTP/1.0\r\n\r\n").ends_with("\r\n\r\n"));
        for (request, status) in [
            ("GET /metrics?x=1 HTTP/1.1\r\n\r\n", "200"),
            ("GET /etc/passwd HTTP/1.1\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
            ("GET /metrics HTTP/1.1\r\n", "400"),
            ("GET /metrics\r\n\r\n", "400"),
            ("\u{1}\u{2}\r\n\r\n", "400"),
            ("", "400"),
        ] {
            assert!(said(request).starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}");
        }
        let failing = respond(b"GET / HTTP/1.1\r\n\r\n", &|| Err("no recorder".to_owned()));
        assert!(failing.starts_with("HTTP/1.1 503 ") && failing.ends_with("no recorder\n"));
    }

    #[test]
    fn a_server_answers_over_a_socket_and_ends_when_told_to() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let end = AtomicBool::new(false);
        thread::scope(|scope| {
            let server =
                scope.spawn(|| serve(&listener, &|| Ok("up 1\n".to_owned()), &|| end.load(Ordering::SeqCst)));
            let mut silent = TcpStream::connect(address).unwrap();
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            let mut page = String::new();
            stream.read_to_string(&mut page).unwrap();
            assert!(page.ends_with("up 1\n"), "{page}");
            silent.write_all(&[b'x'; MOST_HEAD]).unwrap();
            let mut page = String::new();
            silent.read_to_string(&mut page).unwrap();
            assert!(page.starts_with("HTTP/1.1 400 "), "{page}");
            end.store(true, Ordering::SeqCst);
            server.join().unwrap().unwrap();
        });
    }
}
