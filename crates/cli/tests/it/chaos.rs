//! Chaos: three sites as processes over different databases, random commands, cut links and kills; then equal catalogs.
//!
//! `scripts/chaos SECONDS [SEED]` runs it for longer. A failing seed is printed.

use crate::common::site::Site;
use crate::common::{Said, folder};
use serde_json::Value;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const NAMES: [&str; 3] = ["ams", "gva", "nyc"];

/// Steps of a run without a given time.
const STEPS: usize = 60;

/// Bound for the exchange after all links are whole again.
const PATIENCE: Duration = Duration::from_mins(5);

/// Generator of Knuth's MMIX, good enough to choose steps.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len())]
    }

    fn path(&mut self) -> String {
        let folders = ["/lab", "/lab/a", "/lab/b", "/lab/a/c", "/sky"];
        format!("{}/{}", self.pick(&folders), self.pick(&["x", "y", "z", "a", "c"]))
    }
}

/// Link to a site, through which the others reach it and which can be cut.
struct Link {
    address: SocketAddr,
    is_cut: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Link {
    fn new(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (is_cut, streams) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let link = Self { address, is_cut: Arc::clone(&is_cut), streams: Arc::clone(&streams) };
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if is_cut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(target) else { continue };
                let mut kept = streams.lock().unwrap();
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    kept.push(from.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        link
    }

    fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::SeqCst);
        for stream in self.streams.lock().unwrap().drain(..).filter(|_| is_cut) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Database server that ends with its standard input; nothing where it is not installed.
fn postgres() -> Option<(Child, String)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../catalog/scripts/postgres-server");
    let mut command = Command::new(script);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let Some(folder) = line.trim().strip_prefix("ready ") else {
        assert_eq!(child.wait().unwrap().code(), Some(3), "PostgreSQL does not start");
        eprintln!("PostgreSQL is not installed: all sites use SQLite");
        return None;
    };
    Some((child, format!("host={folder} user=holdfast dbname=postgres")))
}

/// Number of operations that a site has made itself.
fn own(digest: &Value) -> u64 {
    let site = digest["site"].as_str().unwrap();
    let entries = digest["vector"].as_str().unwrap().split(' ').filter_map(|entry| entry.split_once(':'));
    entries.filter(|(of, _)| *of == site).map(|(_, number)| number.parse::<u64>().unwrap()).sum()
}

struct World {
    random: Random,
    folders: Vec<PathBuf>,
    addresses: Vec<String>,
    sites: Vec<Option<Site>>,
    /// Links from a site to another one.
    links: Vec<Vec<Option<Link>>>,
    /// Own operations of each site that were told before a kill.
    kept: Vec<u64>,
}

impl World {
    fn new(dir: &Path, seed: u64, database: Option<&str>) -> Self {
        let folders: Vec<_> = NAMES.iter().map(|name| dir.join(name)).collect();
        for (place, folder) in folders.iter().enumerate() {
            fs::create_dir(folder).unwrap();
            let postgres = database.filter(|_| place == 1);
            let catalog = postgres.map_or(String::new(), |to| format!("[catalog]\npostgres = \"{to}\"\n"));
            fs::write(folder.join("site.toml"), catalog).unwrap();
        }
        let mut world = Self {
            random: Random(seed),
            addresses: vec!["127.0.0.1:0".to_owned(); 3],
            folders,
            sites: vec![None, None, None],
            links: Vec::new(),
            kept: vec![0; 3],
        };
        for place in 0..3 {
            world.start(place);
            let url = world.sites[place].as_ref().unwrap().url();
            url.strip_prefix("http://").unwrap().clone_into(&mut world.addresses[place]);
        }
        for from in 0..3 {
            let link = |to: usize| (to != from).then(|| Link::new(world.addresses[to].parse().unwrap()));
            let links: Vec<_> = (0..3).map(link).collect();
            for (to, link) in links.iter().enumerate() {
                let Some(link) = link else { continue };
                let url = format!("http://{}", link.address);
                world.must(from, &["site", "add", NAMES[to], &url, "--interval", "300ms"]);
            }
            world.links.push(links);
        }
        world
    }

    fn start(&mut self, place: usize) {
        let arguments = ["--name", NAMES[place], "--config", "site.toml"];
        self.sites[place] = Some(Site::at(&self.folders[place], &self.addresses[place], &arguments));
    }

    fn run(&self, place: usize, words: &[&str]) -> Said {
        let said: Said = self.sites[place].as_ref().unwrap().command().args(words).output().unwrap().into();
        assert!(
            !said.err.contains("panicked") && !said.err.contains("this is a bug"),
            "{words:?} {}",
            said.err
        );
        assert!(matches!(said.code, Some(0 | 1 | 3)), "{words:?} {:?} {}", said.code, said.err);
        said
    }

    fn must(&self, place: usize, words: &[&str]) -> String {
        let said = self.run(place, words);
        assert_eq!(said.code, Some(0), "{words:?} {}{}", said.out, said.err);
        said.out
    }

    /// Identity from a list of JSON objects, by chance.
    fn identity(&mut self, place: usize, words: &[&str]) -> Option<String> {
        let said = self.run(place, words).out;
        let lines: Vec<_> = said.lines().collect();
        let line = (!lines.is_empty()).then(|| lines[self.random.below(lines.len())])?;
        let value: Value = serde_json::from_str(line).unwrap();
        Some(value["id"].as_str()?.to_owned())
    }

    fn command(&mut self, place: usize) {
        let (path, other) = (self.random.path(), self.random.path());
        let said = match self.random.below(16) {
            0..5 => {
                let file = self.folders[place].join("file");
                fs::write(&file, self.random.below(1000).to_string()).unwrap();
                self.run(place, &["put", file.to_str().unwrap(), &path])
            }
            5 => self.run(place, &["mkdir", "-p", &path]),
            6 | 7 => self.run(place, &["mv", &path, &other]),
            8 => self.run(place, &["rm", "-r", &path]),
            9 => self.run(place, &["cp", "-r", &path, &other]),
            10 => self.run(place, &["meta", "add", &path, "a=1", "b=two"]),
            11 => self.run(place, &["meta", "rm", &path, "a"]),
            12 => match self.identity(place, &["trash", "ls", "--json"]) {
                Some(id) => self.run(place, &["trash", "restore", &id]),
                None => return,
            },
            13 => match self.identity(place, &["trash", "ls", "--json"]) {
                Some(id) => self.run(place, &["trash", "purge", &id]),
                None => return,
            },
            14 => match self.identity(place, &["conflicts", "--all", "--json"]) {
                Some(id) => {
                    let choice = self.random.pick(&["keep", "flip"]);
                    self.run(place, &["conflicts", choice, &id])
                }
                None => return,
            },
            _ => self.run(place, &["policy", "set", "/lab", "--copies", "2", "--sites", "ams,nyc"]),
        };
        drop(said);
    }

    fn digest(&self, place: usize) -> Value {
        serde_json::from_str(&self.must(place, &["site", "digest", "--json"])).unwrap()
    }

    fn step(&mut self) {
        let place = self.random.below(3);
        match self.random.below(20) {
            0 => {
                if self.sites[place].is_some() {
                    self.kept[place] = own(&self.digest(place));
                    // Dropping kills the process with SIGKILL.
                    self.sites[place] = None;
                }
            }
            1 | 2 => {
                let to = (place + 1 + self.random.below(2)) % 3;
                let is_cut = self.random.below(2) == 0;
                self.links[place][to].as_ref().unwrap().cut(is_cut);
            }
            _ if self.sites[place].is_none() => self.start(place),
            _ => self.command(place),
        }
    }

    /// Makes all links whole, starts all sites, and waits for equal catalogs.
    fn heal(&mut self) -> Vec<Value> {
        for link in self.links.iter().flatten().flatten() {
            link.cut(false);
        }
        for place in 0..3 {
            if self.sites[place].is_none() {
                self.start(place);
            }
        }
        let end = Instant::now() + PATIENCE;
        loop {
            let digests: Vec<_> = (0..3).map(|place| self.digest(place)).collect();
            if digests.iter().all(|digest| digest["digest"] == digests[0]["digest"]) {
                return digests;
            }
            assert!(Instant::now() < end, "the sites do not agree: {digests:#?}");
        }
    }
}

#[test]
fn sites_agree_after_random_commands_cuts_and_kills() {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seed = number("HOLDFAST_SEED").unwrap_or(1);
    let time = number("HOLDFAST_CHAOS_SECONDS").map(Duration::from_secs);
    println!("seed {seed}: repeat it with HOLDFAST_SEED={seed}");
    let (folder, started) = (folder(), Instant::now());
    let database = postgres();
    let mut world =
        World::new(folder.path(), seed, database.as_ref().map(|(_, connection)| connection.as_str()));
    let mut steps = 0;
    while time.map_or(steps < STEPS, |time| started.elapsed() < time) {
        world.step();
        steps += 1;
    }
    let digests = world.heal();
    for (place, digest) in digests.iter().enumerate() {
        // No operation that was acknowledged before a kill is lost.
        assert!(own(digest) >= world.kept[place], "{digest}");
        println!("{} {} {}", NAMES[place], digest["digest"], digest["vector"]);
    }
    println!("{steps} steps in {:.0?}, equal digests", started.elapsed());
    let listing = |place: usize| world.run(place, &["ls", "-R", "/", "--json"]).out;
    assert!(listing(0) == listing(1) && listing(1) == listing(2), "the listings differ");
}
