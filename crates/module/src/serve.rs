//! Conversation with a scan: loads the module, then answers requests until the scan closes the socket.

use crate::budget::Clock;
use crate::confinement;
use crate::engine;
use crate::guest::{Block, Failed, Guest};
use holdfast_module_wire::{
    Answer, Channel, ChannelError, Failure, HostArguments, MAX_REQUEST_BYTES, Ready, Request, Step,
};
use rustix::fs::FileType;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Serves the scan at standard input; an error means that there is none.
pub(crate) fn serve(arguments: &HostArguments) -> Result<(), String> {
    let system = |error: std::io::Error| error.to_string();
    let socket = std::io::stdin().as_fd().try_clone_to_owned().map_err(system)?;
    let memory = File::from(std::io::stdout().as_fd().try_clone_to_owned().map_err(system)?);
    let kind = rustix::fs::fstat(&socket).map(|about| FileType::from_raw_mode(about.st_mode));
    if kind != Ok(FileType::Socket) {
        return Err("standard input is not the socket of a scan; see --describe".to_owned());
    }
    let watched = socket.try_clone().map_err(system)?;
    let parts = socket.try_clone().map_err(system)?;
    let mut channel = Channel::new(UnixStream::from(socket));
    let loaded = load(arguments, watched);
    let mut frame = Vec::new();
    let (mut guest, ready) = match loaded {
        Ok(loaded) => loaded,
        Err((step, failure, log)) => {
            Answer::Failed { step, failure, log }.encode(&mut frame);
            // A scan that is gone needs no answer.
            let _ = channel.send(&frame, None);
            return Ok(());
        }
    };
    guest.send_parts(Channel::new(UnixStream::from(parts)));
    Answer::Ready(ready).encode(&mut frame);
    let mut open = false;
    loop {
        if channel.send(&frame, None).is_err() {
            return Ok(());
        }
        let request = match channel.receive(MAX_REQUEST_BYTES, None) {
            Ok(payload) => Request::decode(payload),
            Err(ChannelError::Wire(error)) => Err(error),
            Err(_) => return Ok(()),
        };
        let answered = request
            .map_err(|error| (Step::Block, Failure::Request(error.to_string())))
            .and_then(|request| answer(&mut guest, &memory, &mut open, request));
        frame.clear();
        let mut results = guest.take();
        match answered {
            Ok(enough) => {
                results.enough = enough;
                Answer::Results(results).encode(&mut frame);
            }
            Err((step, failure)) => {
                let fatal = failure.is_fatal();
                open = false;
                Answer::Failed { step, failure, log: results.log }.encode(&mut frame);
                if fatal {
                    let _ = channel.send(&frame, None);
                    return Ok(());
                }
            }
        }
    }
}

type Unloaded = (Step, Failure, Vec<String>);

/// Loads the module and gives up all rights that are not needed any more.
fn load(arguments: &HostArguments, socket: OwnedFd) -> Result<(Guest, Ready), Unloaded> {
    let failed = |failure| (Step::Load, failure, Vec::new());
    let system = |error: std::io::Error| failed(Failure::System(error.to_string()));
    let limits = &arguments.limits;
    confinement::before_loading(limits).map_err(system)?;
    let engine = engine::engine(arguments).map_err(failed)?;
    let clock = Clock::for_time(limits.call_time.min(limits.load_time));
    // The clock runs during compilation, too: a scan that ends meanwhile ends the process.
    clock.run(engine.clone(), Some(socket)).map_err(system)?;
    let module = engine::load(&engine, &arguments.wasm).map_err(failed)?;
    let confined = confinement::before_running().map_err(system)?;
    let mut guest = Guest::new(&engine, &module, limits, clock).map_err(failed)?;
    match guest.configure(arguments) {
        Ok(overlap) => Ok((guest, Ready { overlap, confined })),
        Err(failure) => Err((Step::Arguments, failure, guest.take().log)),
    }
}

/// Carries out one request; returns whether the module has seen enough of the item.
fn answer(guest: &mut Guest, memory: &File, open: &mut bool, request: Request) -> Result<bool, Failed> {
    let wrong = |text: &str| Err((Step::Block, Failure::Request(text.to_owned())));
    match (request, *open) {
        (Request::Item { name, size }, false) => {
            *open = true;
            guest.start(&name, size).map(|()| false)
        }
        (Request::Block { at, length, offset, last }, true) => {
            let enough = length > 0 && guest.block(memory, Block { at, length, offset })?;
            if last {
                *open = false;
                guest.end()?;
            }
            Ok(enough)
        }
        (Request::End, true) => {
            *open = false;
            guest.end().map(|()| true)
        }
        (Request::Finish, false) => guest.finish().map(|()| true),
        (Request::Item { .. } | Request::Finish, true) => wrong("the last item is not ended"),
        (Request::Block { .. } | Request::End, false) => wrong("no item is begun"),
    }
}

/// Loads a module as a scan does, but without one.
pub(crate) fn load_alone(arguments: &HostArguments) -> Result<Guest, Failure> {
    confinement::before_loading(&arguments.limits).map_err(|error| Failure::System(error.to_string()))?;
    let engine = engine::engine(arguments)?;
    let clock = Clock::for_time(arguments.limits.call_time.max(Duration::from_secs(1)));
    clock.run(engine.clone(), None).map_err(|error| Failure::System(error.to_string()))?;
    let module = engine::load(&engine, &arguments.wasm)?;
    Guest::new(&engine, &module, &arguments.limits, clock)
}
