//! `holdfast record`: becomes the recorder, which is a small program of its own and knows its own options. Here names
//! of the configuration file are looked up, and the process that serves metrics is started.

use holdfast_base::failure::{Failure, Result, reason};
use holdfast_client::config;
use holdfast_client::programs;
use holdfast_client::schema_file;
use std::ffi::{OsStr, OsString};
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Options of the recorder that take no value; all others take one.
const BARE: [&str; 7] = ["--promisc", "--loop", "--realtime", "--json", "--quiet", "--help", "--version"];

/// Options of the recorder that belong to the whole run and are said once; the others belong to a source.
const RUN: [&str; 11] = [
    "--size",
    "--slot",
    "--flush",
    "--memory",
    "--birds-eye",
    "--patience",
    "--cpu",
    "--realtime",
    "--json",
    "--quiet",
    "--metrics",
];

/// Record streams into a ring (runs holdfast-recorder)
#[derive(clap::Args, Debug)]
#[command(
    disable_help_flag = true,
    override_usage = "holdfast record RING --source SPEC --name STREAM [OPTIONS]",
    after_help = "`holdfast record --help` lists all options.\n\n\
    Example:\n  holdfast record lab.hf --size 10GiB --source iface:eth0 --name eth0"
)]
pub(crate) struct Args {
    /// The ring, its sources, and options of the recorder
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "RING AND OPTIONS")]
    rest: Vec<OsString>,
}

impl Args {
    /// Whether `--json` is among the options.
    pub(crate) fn says_json(&self) -> bool {
        let mut words = self.rest.iter().map(|word| word.to_str().unwrap_or_default());
        while let Some(word) = words.next().filter(|word| *word != "--") {
            if word == "--json" {
                return true;
            }
            if word.starts_with("--") && !word.contains('=') && !BARE.contains(&word) {
                words.next();
            }
        }
        false
    }
}

/// The recorder's command line.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    args: Vec<OsString>,
    /// Where the ring stands in it.
    ring: Option<usize>,
    metrics: Option<String>,
}

/// Does it; comes back only when it could not be done.
pub(crate) fn run(args: &Args, json: bool) -> Result<()> {
    let mut line = split(&with_schemas(&args.rest)?)?;
    let mut ring = None;
    if let Some(at) = line.ring {
        let place = config::ring(Path::new(&line.args[at]))?;
        line.args[at] = place.path.clone().into();
        let rest = line.args.split_off(at + 1);
        let typed: Vec<&OsString> = line.args[..at].iter().chain(&rest).collect();
        let added: Vec<OsString> = place.record.iter().map(OsString::from).collect();
        let added: Vec<String> =
            with_schemas(&added)?.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let added = not_typed(&added, &typed);
        line.args.extend(added.into_iter().map(OsString::from));
        line.args.extend(rest);
        ring = Some(place.path);
        // What the configuration file added may ask for metrics too.
        let again = split(&line.args)?;
        line = Line { metrics: line.metrics.or(again.metrics), ..again };
    }
    if json && !line.args.iter().any(|arg| arg == "--json") {
        line.args.push("--json".into());
    }
    if let Some(address) = &line.metrics {
        let ring = ring.ok_or_else(|| {
            Failure::usage("--metrics needs the ring to be named").advice("see `holdfast record --help`")
        })?;
        serve_metrics(address, &ring)?;
    }
    let program = programs::recorder();
    // Under the name that the user knows: that is how it complains.
    let error = Command::new(&program).arg0("holdfast record").args(&line.args).exec();
    let failure =
        Failure::failed(format_args!("cannot run the recorder: {}", reason(&error))).at_path(&program);
    Err(failure.advice("install holdfast-recorder beside holdfast"))
}

/// The same with `--attr`s for every `--schema`: the recorder reads no such files.
fn with_schemas(words: &[OsString]) -> Result<Vec<OsString>> {
    let mut all = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        let file = match text.strip_prefix("--schema=") {
            Some(file) => Some(OsStr::new(file)),
            None if text == "--schema" => Some(words.next().map(OsString::as_os_str).ok_or_else(|| {
                Failure::usage("--schema needs a file").advice("such as --schema telescope.toml")
            })?),
            None => None,
        };
        if let Some(file) = file {
            for attribute in schema_file::attributes(Path::new(file))? {
                all.extend(["--attr".into(), attribute.into()]);
            }
            continue;
        }
        all.push(word.clone());
        if text == "--" {
            // From here on nothing is an option.
            all.extend(words.by_ref().cloned());
        } else if text.starts_with("--") && !text.contains('=') && !BARE.contains(&text) {
            all.extend(words.next().cloned());
        }
    }
    Ok(all)
}

/// Finds the ring among the options, and takes --metrics out: the recorder serves none.
fn split(rest: &[OsString]) -> Result<Line> {
    let mut line = Line { args: Vec::new(), ring: None, metrics: None };
    let mut args = rest.iter();
    while let Some(arg) = args.next() {
        let text = arg.to_str().unwrap_or_default();
        if text == "--" {
            // From here on nothing is an option.
            line.args.push(arg.clone());
            line.args.extend(args.next().cloned());
            line.ring.get_or_insert(line.args.len() - 1);
        } else if let Some(address) = text.strip_prefix("--metrics=") {
            line.metrics = Some(address.to_owned());
        } else if text == "--metrics" {
            let address = args.next().and_then(|address| address.to_str());
            let missing =
                || Failure::usage("--metrics needs an address").advice("such as --metrics 127.0.0.1:9477");
            line.metrics = Some(address.ok_or_else(missing)?.to_owned());
        } else {
            line.args.push(arg.clone());
            if !text.starts_with('-') || text == "-" {
                line.ring.get_or_insert(line.args.len() - 1);
            } else if text.starts_with("--") && !text.contains('=') && !BARE.contains(&text) {
                line.args.extend(args.next().cloned());
            }
        }
    }
    Ok(line)
}

/// An option and its value, of words that only have a meaning together.
fn option(words: &[String]) -> (&str, usize) {
    let word = words[0].as_str();
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    let alone = !word.starts_with("--") || word.contains('=') || BARE.contains(&word);
    (name, if alone { 1 } else { words.len().min(2) })
}

/// What the configuration file adds, without what was typed otherwise: options of the whole run, and in front of any
/// --source that was typed also those of the file's last source, to which they belong.
fn not_typed(added: &[String], typed: &[&OsString]) -> Vec<String> {
    let typed: Vec<String> = typed.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (mut whole, mut last_source) = (Vec::new(), Vec::new());
    let mut at = 0;
    let mut of_file = true;
    while at < typed.len() {
        let (name, words) = option(&typed[at..]);
        of_file &= name != "--source";
        if RUN.contains(&name) {
            whole.push(name);
        } else if of_file && name.starts_with("--") {
            last_source.push(name);
        }
        at += words;
    }
    let last = added.iter().rposition(|word| word == "--source" || word.starts_with("--source="));
    let mut kept = Vec::new();
    let mut at = 0;
    while at < added.len() {
        let (name, words) = option(&added[at..]);
        let overridden =
            whole.contains(&name) || last.is_some_and(|last| at > last) && last_source.contains(&name);
        if !overridden {
            kept.extend_from_slice(&added[at..at + words]);
        }
        at += words;
    }
    kept
}

/// Starts the process that serves metrics. The address is taken here, so that one in use is told before anything is
/// recorded; the socket goes to the process as its standard input.
fn serve_metrics(address: &str, ring: &Path) -> Result<()> {
    let listener = listen(address)?;
    let at = listener.local_addr().map_or_else(|_| address.to_owned(), |address| address.to_string());
    crate::out::say(&format!("serving metrics at http://{at}/metrics"));
    let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("holdfast"));
    let pid = std::process::id().to_string();
    let ring = if ring.is_absolute() { ring.to_owned() } else { Path::new(".").join(ring) };
    let started = Command::new(own)
        .args([OsStr::new("metrics"), ring.as_os_str(), OsStr::new("--of"), OsStr::new(&pid)])
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(Stdio::null())
        // Signals of the terminal are the recorder's: this one ends when the recorder has ended.
        .process_group(0)
        .spawn();
    started.map(drop).map_err(|error| {
        Failure::failed(format_args!("cannot start the process for metrics: {}", reason(&error)))
    })
}

/// Takes an address.
pub(crate) fn listen(address: &str) -> Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| {
        let what = format_args!("cannot serve metrics: {}", reason(&error));
        // What is no address is known to be none before anything is asked of the system.
        let wrong = error.kind() == io::ErrorKind::InvalidInput;
        let failure = if wrong { Failure::usage(what) } else { Failure::failed(what) };
        failure.at(address).advice("give a free address of this machine, such as 127.0.0.1:9477")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        split(&text.split_whitespace().map(OsString::from).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn the_ring_is_found_and_metrics_are_taken_out() {
        for (text, ring, rest, metrics) in [
            ("r.hf --source stdin --name a", Some(0), "r.hf --source stdin --name a", None),
            ("--size 1GiB --promisc r.hf --name a", Some(3), "--size 1GiB --promisc r.hf --name a", None),
            ("--size=1GiB r.hf", Some(1), "--size=1GiB r.hf", None),
            ("r.hf --metrics [::1]:9 --loop", Some(0), "r.hf --loop", Some("[::1]:9")),
            ("--metrics=:9 r.hf", Some(0), "r.hf", Some(":9")),
            ("--help", None, "--help", None),
            ("--name a -- --odd", Some(3), "--name a -- --odd", None),
            ("", None, "", None),
        ] {
            let rest = rest.split_whitespace().map(OsString::from).collect();
            assert_eq!(line(text), Line { args: rest, ring, metrics: metrics.map(str::to_owned) }, "{text}");
        }
        assert!(split(&["r.hf".into(), "--metrics".into()]).is_err());
    }

    #[test]
    fn json_is_found_where_it_is_an_option() {
        for (text, wanted) in [
            ("r.hf --source stdin --json --name a", true),
            ("--json", true),
            ("r.hf --promisc --json", true),
            ("r.hf --name --json", false),
            ("r.hf --name=a -- --json", false),
            ("", false),
        ] {
            let rest = text.split_whitespace().map(OsString::from).collect();
            assert_eq!(Args { rest }.says_json(), wanted, "{text}");
        }
    }

    #[test]
    fn schemas_are_read_here_and_are_attributes_to_the_recorder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.toml");
        std::fs::write(&file, "[[attribute]]\nname = 'a'\ntype = 'uint'\nfrom = 'at:0:u8'\n").unwrap();
        let file = file.to_str().unwrap();
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        for (typed, wanted) in [
            (
                format!("r --source stdin --schema {file} --name s"),
                "r --source stdin --attr a:uint=at:0:u8 --name s",
            ),
            (format!("r --schema={file}"), "r --attr a:uint=at:0:u8"),
            ("r --filter --schema --loop -- --schema".to_owned(), "r --filter --schema --loop -- --schema"),
        ] {
            assert_eq!(with_schemas(&words(&typed)).unwrap(), words(wanted), "{typed}");
        }
        assert!(with_schemas(&words("r --schema")).unwrap_err().to_string().contains("needs a file"));
        assert!(with_schemas(&words("r --schema absent.toml")).is_err());
    }

    #[test]
    fn what_is_typed_goes_before_what_the_configuration_file_adds() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let two =
            "--size 1GiB --source a --name one --frame lines --source=b --name two --frame lines --loop";
        for (added, typed, left) in [
            (two, "r", two),
            ("--size 1GiB --realtime --quiet", "--size=2GiB r --quiet", "--realtime"),
            ("--size=1GiB --flush 1s", "r --size 2GiB", "--flush 1s"),
            ("--metrics :9 --cpu 1,2", "r --metrics=:8 --cpu 3", ""),
            // Options of a source belong to the last one before them.
            (two, "r --frame fixed:4", &two.replace("--name two --frame lines", "--name two")),
            (two, "r --name three --loop", &two.replace(" --name two", "").replace(" --loop", "")),
            (two, "r --source c --name three --frame fixed:4", two),
            // A value that looks like an option is one all the same.
            ("--filter --size --slot 1MiB", "r --size 1GiB", "--filter --size --slot 1MiB"),
        ] {
            let typed: Vec<OsString> = words(typed).into_iter().map(OsString::from).collect();
            let typed: Vec<&OsString> = typed.iter().collect();
            assert_eq!(not_typed(&words(added), &typed), words(left), "{added} | {typed:?}");
        }
    }
}
