//! `holdfast serve`: a site, the server that takes uploads and keeps them, until a signal ends it.

use crate::interruption::server_interruption;
use crate::out::Out;
use crate::serving::{self, EventPrinter, OptionsFile, RecorderHolds, RingSearches, TransportChoice};
use holdfast_base::failure::{Failure, Result};
use holdfast_client::json::StartedServer;
use holdfast_server::{CatalogSource, RunningServer, Server, ServerOptions};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// Time that running requests have to end after a signal.
const GRACE: Duration = Duration::from_secs(10);

/// Interval at which a waiting server looks for a signal.
const LOOK: Duration = Duration::from_millis(50);

/// Schema of the catalog in `PostgreSQL`, unless the options file has another.
const SCHEMA: &str = "holdfast";

/// Serve a site: take uploads over HTTP, keep them in a vault, and find them by their attributes
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Without options all is in one folder, and only programs of this machine have access. On another\n\
    address the server encrypts, and clients need a token (`holdfast token`) and the fingerprint\n\
    that it prints. SIGTERM or SIGINT ends it; started again, it goes on where it was. Events go to\n\
    standard error.\n\n\
    An options file (--config) is TOML; docs/serve.md explains it:\n\n  \
    listen = \"0.0.0.0:7370\"\n  \
    tls = \"self-signed\"                 # or plain, or CERT.pem,KEY.pem\n  \
    [catalog]\n  postgres = \"host=db user=holdfast\"  # else a file in the data folder\n  \
    [store]\n  vault = \"s3\"                        # of the configuration file; else in the data folder\n  \
    [search]\n  rings = [\"lab\"]                   # that clients may search\n  \
    [limits]\n  upload = \"1TiB\"\n  \
    [[driver]]\n  name = \"headers\"\n  action = { extract = { extractors = [\"fits\", \"dataset\"] } }\n\n\
    Examples:\n  holdfast serve --listen 127.0.0.1:7370\n  \
    holdfast serve /data/site --listen [::]:7370 --config /etc/holdfast/site.toml"
)]
pub(crate) struct Args {
    /// Folder of uploads, catalog, tokens and objects (default: ~/.local/share/holdfast/site)
    #[arg(value_name = "DATA")]
    data: Option<PathBuf>,
    /// Name of this site at other sites [default: the name of this machine]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Address and port to listen on; port 0 takes a free one [default: 127.0.0.1:7370]
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// Encryption: plain, self-signed, or two PEM files [default: plain on this machine, else self-signed]
    #[arg(long, value_name = "plain|self-signed|CERT,KEY")]
    tls: Option<TransportChoice>,
    /// Options file of the server
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Runs the command `holdfast serve`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let data = serving::data_folder(args.data.as_ref());
    let data = std::path::absolute(&data)
        .map_err(|error| Failure::io("cannot find the data folder", &data, &error))?;
    let file = args.config.as_deref().map(OptionsFile::read).transpose()?.unwrap_or_default();
    let mut options = ServerOptions::new(&data);
    options.limits = file.limits();
    options.name = args.name.clone().or_else(|| file.name.clone()).unwrap_or_else(serving::machine_name);
    if let Some(listen) = args.listen.or(file.listen) {
        options.listen = listen;
    }
    if let Some(TransportChoice(transport)) = args.tls.clone().or(file.tls) {
        options.transport = transport;
    }
    options.catalog = file.catalog.postgres.as_deref().map(|postgres| {
        let schema = file.catalog.schema.as_deref().unwrap_or(SCHEMA);
        CatalogSource::postgres(postgres, schema)
    });
    options.stores = serving::stores(&data, file.store.vault.as_deref(), &file.store.copies)?;
    options.drivers = file.drivers;
    options.extractors = serving::extractors();
    options.holds = Some(Arc::new(RecorderHolds));
    options.searches = Some(Arc::new(RingSearches::of(&file.search.rings)));
    let vaults = options.stores.iter().map(|store| store.name.clone()).collect();
    let stop = server_interruption()?;
    let printer = EventPrinter::start(out.is_json())?;
    options.log = printer.log();
    let server = Server::start(options).map_err(|error| serving::failure(&error))?;
    told(&server, &data, vaults, args.data.is_some(), out)?;
    while !stop.load(Ordering::Relaxed) {
        thread::park_timeout(LOOK);
    }
    server.shutdown(GRACE);
    printer.end();
    Ok(())
}

fn told(
    server: &RunningServer,
    data: &Path,
    vaults: Vec<String>,
    is_given: bool,
    out: &mut Out,
) -> Result<()> {
    let tokens = server.tokens().list().map_err(|error| serving::failure(&error))?.len();
    let url = server.url();
    let fingerprint = server.fingerprint().map(|fingerprint| fingerprint.to_string());
    if out.is_json() {
        let event = "started";
        out.object(&StartedServer { event, url: &url, fingerprint, data, vaults, tokens })?;
        return out.flush();
    }
    out.line(format_args!("serving {url}"))?;
    out.line(format_args!("data in {}, objects in {}", data.display(), vaults.join(", ")))?;
    if let Some(fingerprint) = fingerprint {
        out.line(format_args!("fingerprint {fingerprint}"))?;
    }
    if tokens == 0 {
        let access =
            if server.address().ip().is_loopback() { "open to this machine" } else { "closed to all" };
        let data = if is_given { format!(" --data {}", data.display()) } else { String::new() };
        out.line(format_args!("no tokens: access is {access} until you create one:"))?;
        out.line(format_args!("  holdfast token create --name NAME --scope read,write{data}"))?;
    }
    out.flush()
}
