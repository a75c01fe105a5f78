//! Server of a test: its folder, its manual clock and its events.

use crate::client::Client;
use holdfast_server::{
    Clock, Event, Log, NewToken, ProjectName, RunningServer, Scope, Scopes, Server, ServerOptions, Timestamp,
    TokenInfo,
};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;

/// Bound for events and states that must come, so that a failing test ends.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

pub(crate) struct World {
    folder: TempDir,
    pub(crate) options: ServerOptions,
    pub(crate) clock: Clock,
    events: Receiver<Event>,
    server: Option<RunningServer>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut ServerOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = ServerOptions::new(folder.path().join("data"));
        let clock = Clock::manual(Timestamp::from_milliseconds(1_800_000_000_000));
        let (sender, events) = channel();
        options.listen.set_port(0);
        options.clock = clock.clone();
        options.limits.reserved_space = 0;
        options.limits.requests_per_second = u32::MAX;
        options.limits.request_burst = u32::MAX;
        options.limits.first_retry = Duration::from_millis(1);
        options.limits.longest_retry = Duration::from_millis(2);
        options.limits.longest_driver_retry = Duration::from_millis(2);
        options.log = Log::new(move |event| drop(sender.send(event.clone())));
        change(&mut options);
        let server = Some(Server::start(options.clone()).unwrap());
        Self { folder, options, clock, events, server }
    }

    pub(crate) fn server(&self) -> &RunningServer {
        self.server.as_ref().unwrap()
    }

    pub(crate) fn client(&self) -> Client {
        Client { address: self.server().address(), token: None }
    }

    pub(crate) fn data(&self) -> &Path {
        &self.options.data
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn stop(&mut self) {
        self.server = None;
    }

    /// Takes the running server out, to stop it in another way.
    pub(crate) fn take(&mut self) -> RunningServer {
        self.server.take().unwrap()
    }

    /// Stops the server and starts it again on the same folder.
    pub(crate) fn restart(&mut self) -> Client {
        self.stop();
        self.server = Some(Server::start(self.options.clone()).unwrap());
        self.client()
    }

    /// First event from now on for which `choose` has a value.
    pub(crate) fn until<T>(&self, mut choose: impl FnMut(Event) -> Option<T>) -> T {
        loop {
            let event = self.events.recv_timeout(PATIENCE).expect("the event did not come");
            if let Some(value) = choose(event) {
                return value;
            }
        }
    }

    /// Waits until the archive has stored an upload, and returns its version.
    pub(crate) fn until_stored(&self, upload: &str) -> String {
        let id = upload.trim_start_matches("/files/").to_owned();
        self.until(|event| match event {
            Event::Stored { upload, version, .. } if upload == id => Some(version),
            _ => None,
        })
    }

    pub(crate) fn token(&self, scopes: &[Scope], project: Option<&str>) -> (TokenInfo, String) {
        self.token_until(scopes, project, None)
    }

    pub(crate) fn token_until(
        &self,
        scopes: &[Scope],
        project: Option<&str>,
        expires: Option<Timestamp>,
    ) -> (TokenInfo, String) {
        let new = NewToken {
            account: None,
            name: "test".to_owned(),
            scopes: Scopes::of(scopes),
            project: project.map(|project| ProjectName::parse(project).unwrap()),
            expires,
        };
        self.server().tokens().create(new).unwrap()
    }
}
