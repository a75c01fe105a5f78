//! Connections: accepts them within the limit, encrypts them, and serves HTTP/1.1 until the server stops.

use crate::access::Peer;
use crate::app::App;
use crate::overload::Overload;
use crate::problem::Problem;
use crate::routes::overload_router;
use crate::strangers::{Stranger, Strangers};
use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse as _;
use http::{HeaderName, Method, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

/// Pause after a failed accept, as when the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Time for the head of a request of a connection beyond the limit.
const OVERLOAD_TIME: Duration = Duration::from_secs(5);

/// Listener with its encryption.
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) tls: Option<TlsAcceptor>,
}

/// Serves connections until `stop` becomes true, then until all have ended.
pub(crate) async fn serve(
    listener: Listener,
    app: Arc<App>,
    router: Router,
    mut stop: watch::Receiver<bool>,
) {
    let strangers = Strangers::new(app.limits.connections, app.limits.strangers_of_address());
    let refusal = overload_router();
    let mut overload = Overload::default();
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.socket.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
            Some(ended) = connections.join_next(), if !connections.is_empty() => {
                report(&app, ended);
                continue;
            }
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                app.log.trouble("listener", error);
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let admitted = strangers.admit(peer.ip());
        let (app, stop, tls) = (Arc::clone(&app), stop.clone(), listener.tls.clone());
        if let Some(stranger) = admitted {
            let (router, time) = (router.clone(), app.limits.header_time);
            let client = Client { peer, stranger: Some(Arc::clone(&stranger)), time };
            connections.spawn(async move {
                tokio::select! {
                    () = serve_stream(stream, client, tls, &app, router, stop) => {}
                    () = stranger.place_taken() => {}
                }
            });
        } else {
            app.metrics.rejected_connections.add(1);
            let router = refusal.clone();
            let client = Client { peer, stranger: None, time: app.limits.header_time.min(OVERLOAD_TIME) };
            overload.make_room();
            let connection = connections.spawn(async move {
                serve_stream(stream, client, tls, &app, router, stop).await;
            });
            overload.add(peer.ip(), connection);
        }
    }
    drop(listener);
    while let Some(ended) = connections.join_next().await {
        report(&app, ended);
    }
}

fn report(app: &App, ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        app.log.trouble("connection", "a request handler panicked");
    }
}

/// Client of a connection.
struct Client {
    peer: SocketAddr,
    /// Place among the strangers of its address; nothing beyond the limit, where each connection has one request.
    stranger: Option<Arc<Stranger>>,
    /// Time for the head of a request, and for a TLS handshake.
    time: Duration,
}

async fn serve_stream(
    stream: TcpStream,
    client: Client,
    tls: Option<TlsAcceptor>,
    app: &App,
    router: Router,
    stop: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let served = match tls {
        None => serve_http(stream, client, router, stop).await,
        Some(tls) => match timeout(client.time, tls.accept(stream)).await {
            Ok(Ok(stream)) => serve_http(stream, client, router, stop).await,
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the TLS handshake took too long".to_owned()),
        },
    };
    if let Err(reason) = served {
        app.log.trouble("connection", reason);
    }
}

async fn serve_http<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    client: Client,
    router: Router,
    mut stop: watch::Receiver<bool>,
) -> Result<(), String> {
    let Client { peer, stranger, time } = client;
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(time).keep_alive(stranger.is_some());
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        override_method(&mut request);
        request.extensions_mut().insert(Peer(peer));
        if let Some(stranger) = &stranger {
            request.extensions_mut().insert(Arc::clone(stranger));
        }
        // A task of its own: a client that goes away must not end its request in the middle of a change.
        let handled = tokio::spawn(router.clone().oneshot(request));
        async move {
            handled.await.unwrap_or_else(|_| {
                Ok(Problem::internal("do the request", "its handler ended early").into_response())
            })
        }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut is_stopping = false;
    let served = loop {
        tokio::select! {
            served = connection.as_mut() => break served,
            _ = stop.wait_for(|stop| *stop), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    };
    match served {
        // A client that goes away in the middle of a message is no trouble of the server.
        Err(error)
            if !(error.is_incomplete_message()
                || error.is_timeout()
                || error.is_canceled()
                || is_io(&error)) =>
        {
            Err(error.to_string())
        }
        _ => Ok(()),
    }
}

fn is_io(error: &hyper::Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.downcast_ref::<io::Error>().is_some())
}

/// Replaces the method by that of the header `X-HTTP-Method-Override`, for clients that cannot send PATCH or DELETE.
fn override_method(request: &mut Request<Body>) {
    let name = HeaderName::from_static("x-http-method-override");
    let method = request.headers().get(name).and_then(|value| Method::from_bytes(value.as_bytes()).ok());
    if let Some(method) = method {
        *request.method_mut() = method;
    }
}
