//! Server without configuration, for trying out and for tests that kill a process.
//!
//! `serve FOLDER [--port PORT] [--tls] [--sync-bytes BYTES]` prints its address, and its fingerprint with `--tls`, then one JSON
//! line for every event. It serves until it is killed.

use holdfast_server::{Log, Server, ServerError, ServerOptions, Transport};
use std::process::ExitCode;

fn parse() -> Result<ServerOptions, ServerError> {
    let usage = |reason: String| {
        ServerError::usage(
            "start the server",
            reason,
            "call serve FOLDER [--port PORT] [--tls] [--sync-bytes BYTES]",
        )
    };
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or_else(|| usage("no folder is given".to_owned()))?;
    let mut options = ServerOptions::new(folder);
    while let Some(flag) = arguments.next() {
        let mut number = || {
            let value = arguments.next().unwrap_or_default();
            value.parse::<u64>().map_err(|_| usage(format!("{flag} '{value}' is not a number")))
        };
        match flag.as_str() {
            "--tls" => options.transport = Transport::SelfSigned,
            "--port" => {
                let port = number()?;
                let port =
                    u16::try_from(port).map_err(|_| usage(format!("the port {port} is above 65535")))?;
                options.listen.set_port(port);
            }
            "--sync-bytes" => options.limits.sync_bytes = number()?,
            _ => return Err(usage(format!("the flag '{flag}' is unknown"))),
        }
    }
    options.log = Log::new(|event| {
        if let Ok(line) = serde_json::to_string(event) {
            eprintln!("{line}");
        }
    });
    Ok(options)
}

fn main() -> ExitCode {
    match parse().and_then(Server::start) {
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        Ok(server) => {
            println!("listening {}", server.url());
            if let Some(fingerprint) = server.fingerprint() {
                println!("fingerprint {fingerprint}");
            }
            loop {
                std::thread::park();
            }
        }
    }
}
