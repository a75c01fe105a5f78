//! `holdfast metrics`: serves what a recorder says of itself to Prometheus, in a process of its own, or prints it once.

use crate::args::RingArg;
use crate::commands::record::listen;
use crate::interruption::ignore_hang_ups;
use crate::out::Out;
use crate::prometheus::page::Page;
use crate::prometheus::{figures, http};
use holdfast_base::failure::{Failure, Result, reason};
use holdfast_client::orders;
use holdfast_client::rates;
use holdfast_client::session::protocol_failure;
use holdfast_planning::guarantee;
use holdfast_protocol::locate;
use rustix::process::{Pid, getppid};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Serve metrics of a ring's recorder to Prometheus
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The page is at /metrics. `holdfast record --metrics ADDR` starts this command beside the recorder.\n\n\
    Examples:\n  holdfast metrics lab.hf --listen 127.0.0.1:9477\n  holdfast metrics lab.hf\n  holdfast metrics lab.hf --json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    /// Address to listen on (default: print the page once)
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Ends with this recorder, its parent; standard input is the socket to listen on
    #[arg(long, value_name = "PID", hide = true, conflicts_with = "listen")]
    of: Option<i32>,
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let path = args.ring.path()?;
    if out.is_json() && (args.listen.is_some() || args.of.is_some()) {
        return Err(Failure::usage("the page that is served has a form of its own")
            .at("--json")
            .advice("leave it out, or leave out --listen: then all is printed once, in JSON"));
    }
    if let Some(recorder) = args.of {
        return beside(recorder, &path);
    }
    let Some(address) = &args.listen else {
        let page = page(&path)?;
        return if out.is_json() { out.object(&page) } else { out.line(page.to_string().trim_end()) };
    };
    // A ring that is not there is told now, not to the first who asks.
    locate(&path).map_err(|error| protocol_failure(&error))?;
    let listener = listen(address)?;
    let at = listener.local_addr().map_or_else(|_| address.clone(), |address| address.to_string());
    // Whoever reads the line may end it at once.
    let end = signals()?;
    out.line(format_args!("serving metrics at http://{at}/metrics"))?;
    out.flush()?;
    serve(&listener, &path, &|| end.load(Ordering::Relaxed))
}

fn beside(recorder: i32, path: &Path) -> Result<()> {
    let inherited = std::io::stdin().as_fd().try_clone_to_owned();
    let listener =
        TcpListener::from(inherited.map_err(|error| Failure::failed(reason(&error)).at("standard input"))?);
    // Whoever stops the recorder's group stops the recorder; this one follows.
    let _ignored = signals()?;
    serve(&listener, path, &|| getppid().map(Pid::as_raw_pid) != Some(recorder))
}

/// A flag that signals raise, instead of ending the process at once.
fn signals() -> Result<Arc<AtomicBool>> {
    ignore_hang_ups()?;
    let end = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&end))
            .map_err(|error| Failure::failed(format_args!("cannot catch signals: {}", reason(&error))))?;
    }
    Ok(end)
}

fn serve(listener: &TcpListener, path: &Path, ended: &dyn Fn() -> bool) -> Result<()> {
    let give = || page(path).map(|page| page.to_string()).map_err(|failure| failure.to_string());
    http::serve(listener, &give, ended)
        .map_err(|error| Failure::failed(format_args!("cannot serve metrics any longer: {}", reason(&error))))
}

/// The page as of now. Without a recorder it says just that: the ring itself is left alone.
fn page(path: &Path) -> Result<Page> {
    match orders::recorder(path)? {
        Some(mut recorder) => {
            let status = recorder.status().map_err(|error| protocol_failure(&error))?;
            // Without holds the oldest of all is what is asked for: no need to look at every slot.
            let slots = match status.ring.slots.held {
                0 => Vec::new(),
                _ => recorder.slots().map_err(|error| protocol_failure(&error))?,
            };
            let oldest_live = rates::oldest_live(&status, &slots);
            let lacks = guarantee::lacks(path, status.ring.slots.unwritten);
            Ok(figures::page(&status, oldest_live, lacks.is_empty()))
        }
        None => locate(path)
            .map(|place| figures::absent(&place.superblock))
            .map_err(|error| protocol_failure(&error)),
    }
}
