//! Drivers: retries, restarts, commands without a shell, timeouts, extraction and copies.

use crate::client::contents;
use crate::world::World;
use holdfast_catalog::Attribute;
use holdfast_server::{
    ArchiveError, CommandOptions, DriverAction, DriverOptions, Event, ExtractOptions, Extractor, FolderStore,
    NamedStore, ObjectStore, OpenObject, Server, ServerOptions, Source,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn driver(name: &str, action: DriverAction) -> DriverOptions {
    DriverOptions { name: name.to_owned(), projects: Vec::new(), action }
}

fn command(program: &str, arguments: &[&str]) -> CommandOptions {
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    CommandOptions { program: program.to_owned(), arguments, timeout_seconds: 60 }
}

/// Command that runs a script with arguments. The script is an argument of `sh`, not a program: a file that was just written
/// cannot be executed while another thread starts a process.
fn script(folder: &Path, text: &str, arguments: &[&str]) -> CommandOptions {
    let path = folder.join("script");
    std::fs::write(&path, text).unwrap();
    command("sh", &[&[path.to_str().unwrap()], arguments].concat())
}

fn until_success(world: &World) -> (u32, String) {
    world.until(|event| match event {
        Event::DriverSucceeded { attempt, message, .. } => Some((attempt, message)),
        _ => None,
    })
}

fn until_failure(world: &World) -> String {
    world.until(|event| match event {
        Event::DriverFailed { reason, .. } => Some(reason),
        _ => None,
    })
}

#[test]
fn a_driver_that_fails_is_tried_again_until_it_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let counter = folder.path().join("counter");
    let text = "echo x >> \"$1\"; [ \"$(wc -l < \"$1\")\" -gt 3 ] || { echo no >&2; exit 3; }";
    let command = script(folder.path(), text, &[counter.to_str().unwrap()]);
    let world =
        World::with(|options| options.drivers = vec![driver("count", DriverAction::Command(command))]);
    let client = world.client();
    client.upload("a", b"1");
    let reason = until_failure(&world);
    assert!(reason.contains("exit status: 3; see its errors: no"), "{reason}");
    assert_eq!(until_success(&world).0, 4);
    let runs = client.get("/drivers/runs?project=default").expect(200).json();
    let outcomes: Vec<_> =
        runs["runs"].as_array().unwrap().iter().map(|run| run["outcome"].clone()).collect();
    assert_eq!(outcomes, ["succeeded", "failed", "failed", "failed"]);
    assert_eq!((&runs["runs"][0]["path"], &runs["runs"][0]["attempt"]), (&json!("/default/a"), &json!(4)));
    let failed = client.get("/drivers/runs?failed=true&count=2").expect(200).json();
    assert_eq!(failed["runs"].as_array().unwrap().len(), 2);
    let next = failed["next"].as_i64().unwrap();
    let failed = client.get(&format!("/drivers/runs?failed=true&before={next}")).expect(200).json();
    assert_eq!((failed["runs"].as_array().unwrap().len(), &failed["next"]), (1, &json!(null)));
    assert_eq!(client.get("/drivers/runs?project=other").expect(200).json()["runs"], json!([]));
}

#[test]
fn a_task_outlives_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let command = command("test", &["-e", go.to_str().unwrap()]);
    let drivers = vec![driver("wait", DriverAction::Command(command))];
    let mut world = World::with(|options| options.drivers = drivers.clone());
    let client = world.client();
    client.upload("a", b"1");
    until_failure(&world);
    // A driver that is not configured keeps its tasks.
    world.options.drivers.clear();
    world.restart();
    std::fs::write(&go, "").unwrap();
    world.options.drivers = drivers;
    world.restart();
    assert!(until_success(&world).0 > 1);
}

#[test]
fn commands_get_their_arguments_without_a_shell() {
    let arguments = ["%s|", "{path}", "a; rm -rf x", "$(id)", "{project}={size}", "{blake3}", "*"];
    let world = World::with(|options| {
        options.drivers = vec![driver("print", DriverAction::Command(command("printf", &arguments)))];
    });
    let client = world.client();
    client.upload("x; rm {file} `id`", b"12345");
    let hash = blake3::hash(b"12345").to_hex();
    let expected = format!("x; rm {{file}} `id`|a; rm -rf x|$(id)|default=5|{hash}|*|");
    assert_eq!(until_success(&world), (1, expected));
}

#[test]
fn a_command_that_hangs_is_killed_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let write = "{ echo $! > \"$1.new\"; mv \"$1.new\" \"$1\"; }";
    let text = format!("sleep 1000 & [ -e \"$1\" ] || {write}; wait");
    let file = folder.path().join("child");
    let command = script(folder.path(), &text, &[file.to_str().unwrap()]);
    let command = CommandOptions { timeout_seconds: 1, ..command };
    let world = World::with(|options| options.drivers = vec![driver("hang", DriverAction::Command(command))]);
    let client = world.client();
    client.upload("a", b"1");
    let reason = until_failure(&world);
    assert!(reason.contains("it took more than 1 s; raise timeout_seconds"), "{reason}");
    // A busy machine may kill the first program before it has written the number of its child.
    while !file.exists() {
        until_failure(&world);
    }
    // The attempt that has written it may be the one that follows the last failure.
    until_failure(&world);
    let child = std::fs::read_to_string(&file).unwrap();
    let state = format!("/proc/{}/stat", child.trim());
    crate::status::until(&client, || {
        std::fs::read_to_string(&state)
            .map_or(true, |state| state.contains(") Z ") || !state.contains("(sleep)"))
    });
    // Uploads go on meanwhile.
    world.until_stored(&client.upload("b", b"2"));
}

#[test]
fn a_missing_program_and_endless_output_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let endless = script(folder.path(), "yes \"{}\" | head -c 3000000", &[]);
    let extract = ExtractOptions { extractors: Vec::new(), command: Some(endless) };
    let world = World::with(|options| {
        options.drivers = vec![driver("endless", DriverAction::Extract(extract))];
    });
    world.client().upload("a", b"1");
    let reason = until_failure(&world);
    assert!(reason.contains("the program prints more than 1 MiB; print less"), "{reason}");
    let missing = DriverAction::Command(command("/nonexistent/program", &[]));
    let world = World::with(|options| options.drivers = vec![driver("missing", missing)]);
    world.client().upload("a", b"1");
    let reason = until_failure(&world);
    assert!(reason.contains("cannot start the program '/nonexistent/program'"), "{reason}");
}

fn card(text: &str) -> String {
    format!("{text:<80}")
}

#[test]
fn extracted_attributes_are_those_of_the_current_version() {
    let folder = tempfile::tempdir().unwrap();
    let text = "printf '{\"bytes\": {\"value\": %s, \"unit\": \"B\"}}' \"$(wc -c < \"$1\")\"";
    let command = script(folder.path(), text, &["{file}"]);
    let extract =
        ExtractOptions { extractors: vec!["fits".to_owned(), "first".to_owned()], command: Some(command) };
    let world = World::with(|options| {
        options.drivers = vec![driver("own", DriverAction::Extract(extract))];
        options.extractors = vec![Extractor::new("first", |contents, _| {
            let mut byte = [0];
            contents.read_at(&mut byte, 0)?;
            Ok(vec![Attribute::new("byte", i64::from(byte[0]))])
        })];
    });
    let client = world.client();
    let mut names = Vec::new();
    for cards in [["EXPTIME = 10.5 / [s] time", "OLD     = 1"], ["EXPTIME = 20", "NEW     = 'x'"]] {
        let cards: Vec<_> =
            ["SIMPLE  = T"].iter().chain(&cards).chain(&["END"]).map(|text| card(text)).collect();
        client.upload("a.fits", cards.concat().as_bytes());
        assert_eq!(until_success(&world).0, 1);
        let stat = client.get("/catalog/stat?path=/default/a.fits").expect(200).json();
        names = stat["attributes"].as_array().unwrap().clone();
    }
    let expected = json!([
        {"name": "first.byte", "type": "integer", "value": 83, "unit": null},
        {"name": "fits.exptime", "type": "integer", "value": 20, "unit": null},
        {"name": "fits.new", "type": "text", "value": "x", "unit": null},
        {"name": "fits.simple", "type": "text", "value": "true", "unit": null},
        {"name": "own.bytes", "type": "integer", "value": 320, "unit": "B"},
    ]);
    assert_eq!(json!(names), expected);
    let found = client.get("/catalog/find?condition=fits.exptime%3E15").expect(200).json();
    assert_eq!(found["entries"][0]["path"], "/default/a.fits");
}

#[test]
fn a_copy_is_a_replica_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let store = |name: &str| {
        let store = Arc::new(FolderStore::new(folder.path().join(name)));
        NamedStore { name: name.to_owned(), store }
    };
    let world = World::with(|options| {
        options.stores = vec![store("disk"), store("tape")];
        options.drivers = vec![driver("copy", DriverAction::Copy { vault: "tape".to_owned() })];
    });
    let client = world.client();
    let bytes = contents(1, 2_500_000);
    client.upload("d/a", &bytes);
    assert_eq!(until_success(&world), (1, "copied to the vault tape".to_owned()));
    let stat = client.get("/catalog/stat?path=/default/d/a").expect(200).json();
    let vaults: Vec<_> =
        stat["replicas"].as_array().unwrap().iter().map(|replica| replica["vault"].clone()).collect();
    assert_eq!(vaults, ["disk", "tape"]);
    // The copy shares no blocks with the first replica, and is read when that is lost.
    let first = crate::site::files(&folder.path().join("disk")).pop().unwrap();
    std::fs::File::options().write(true).truncate(true).open(&first).unwrap();
    assert!(client.get("/projects/default/d/a").expect(200).body == bytes);
    std::fs::remove_file(first).unwrap();
    assert!(client.get("/projects/default/d/a").expect(200).body == bytes);
}

/// Store without local files, as one over a network is.
struct Remote(FolderStore);

impl ObjectStore for Remote {
    fn put(&self, key: &str, source: &Source<'_>) -> Result<(), ArchiveError> {
        self.0.put(key, source)
    }

    fn open(&self, key: &str) -> Result<OpenObject, ArchiveError> {
        self.0.open(key)
    }

    fn file(&self, _: &str) -> Option<PathBuf> {
        None
    }

    fn remove(&self, key: &str) -> Result<(), ArchiveError> {
        self.0.remove(key)
    }
}

#[test]
fn a_store_without_files_lends_temporary_copies() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Remote(FolderStore::new(folder.path().join("remote"))));
    let command = DriverAction::Command(command("cat", &["{file}"]));
    let world = World::with(|options| {
        options.stores = vec![NamedStore { name: "remote".to_owned(), store }];
        options.drivers = vec![driver("cat", command)];
    });
    world.client().upload("a", b"contents");
    assert_eq!(until_success(&world), (1, "contents".to_owned()));
    assert_eq!(std::fs::read_dir(world.data().join("temporary")).unwrap().count(), 0);
}

#[test]
fn wrong_drivers_are_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = ServerOptions::new(folder.path().join("data"));
    options.listen.set_port(0);
    options.drivers = vec![driver("copy", DriverAction::Copy { vault: "tape".to_owned() })];
    let error = Server::start(options).unwrap_err().to_string();
    assert_eq!(error, "cannot use the driver 'copy': there is no vault 'tape'; choose one of archive");
}
