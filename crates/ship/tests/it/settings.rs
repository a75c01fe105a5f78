//! Settings: defaults, the whole file, and errors that name the key.

use holdfast_ship::settings::{Compress, FolderEnd, FolderOrder, FolderSettings, RingSelect};
use holdfast_ship::{RateLimit, Settings};
use jiff::civil::{Weekday, date};
use std::time::Duration;

const LEAST: &str = "
[archive]
url = 'http://host'
project = 'p'
[[folder]]
path = '/data'
[state]
folder = '/state'
";

#[test]
fn the_least_file_has_the_defaults_of_the_programmatic_form() {
    let mut expected = Settings::new("http://host", "p", "/state");
    expected.folders.push(FolderSettings::new("/data"));
    assert_eq!(Settings::parse(LEAST, "x"), Ok(expected.clone()));
    assert_eq!((expected.network.connections, expected.network.block), (32, 1 << 20));
    assert_eq!(expected.archive.endpoint().unwrap().url.as_str(), "http://host/");
}

#[test]
fn every_key_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "hft_1_2\n").unwrap();
    let fingerprint = "AA:".repeat(31) + "AA";
    let text = format!(
        "[archive]
        url = 'https://host:7370/prefix'
        project = 'p'
        token_file = '{}'
        fingerprint = '{fingerprint}'
        [[folder]]
        path = '/data'
        into = 'a/b'
        include = ['*.fits']
        exclude = ['tmp']
        end = 'marker'
        marker = '.done'
        priority = 3
        order = 'newest'
        [[folder]]
        path = '/quiet'
        end = 'quiet'
        quiet = '2min'
        [[ring]]
        ring = '/ring'
        select = 'all'
        into = 'rings'
        [network]
        connections = 4
        block = '4MiB'
        rate = '10MB/s'
        compress = 'never'
        [[network.schedule]]
        from = '22:00'
        to = '06:30'
        days = ['fri', 'sat']
        rate = 'unlimited'
        [disk]
        reserve = '10GB'
        [alarm]
        command = ['notify', '--now']
        [state]
        folder = '/state'",
        token.display()
    );
    let settings = Settings::parse(&text, "x").unwrap();
    let endpoint = settings.archive.endpoint().unwrap();
    assert_eq!(endpoint.token.as_deref(), Some("hft_1_2"));
    assert_eq!(endpoint.fingerprint.unwrap().to_string(), fingerprint);
    let [marked, quiet] = &settings.folders[..] else { panic!("{settings:?}") };
    assert_eq!((marked.end, marked.priority, marked.order), (FolderEnd::Marker, 3, FolderOrder::Newest));
    assert_eq!(marked.filter().unwrap().marker_of("a.fits").as_deref(), Some("a.fits.done"));
    assert_eq!((quiet.end, quiet.quiet), (FolderEnd::Quiet, Duration::from_mins(2)));
    assert_eq!((settings.rings[0].select, settings.rings[0].into.as_str()), (RingSelect::All, "rings"));
    let network = &settings.network;
    assert_eq!((network.connections, network.block, network.compress), (4, 4 << 20, Compress::Never));
    let schedule = network.rate_schedule();
    assert_eq!(schedule.rules[0].days, [Weekday::Friday, Weekday::Saturday]);
    // 2026-01-04 is a Sunday.
    assert_eq!(schedule.limit_at(date(2026, 1, 4).at(6, 0, 0, 0)), RateLimit::Unlimited);
    assert_eq!(schedule.limit_at(date(2026, 1, 4).at(7, 0, 0, 0)), RateLimit::BytesPerSecond(10_000_000));
    assert_eq!((settings.disk.reserve, settings.alarm.command.len()), (10_000_000_000, 2));
}

#[test]
fn errors_name_the_file_the_line_and_the_key() {
    for (from, to, parts) in [
        ("project = 'p'", "projekt = 'p'", &["line 4", "projekt"][..]),
        ("project = 'p'", "project = 7", &["line 4", "project"]),
        ("project = 'p'", "project = ''", &["[archive] project is empty"]),
        ("[[folder]]\npath = '/data'", "", &["nothing is to be sent"]),
        ("path = '/data'", "path = '/data'\nquiet = '30'", &["line 7", "quiet", "'30' is no duration"]),
        ("path = '/data'", "path = '/data'\nend = 'later'", &["line 7", "later", "close"]),
        ("path = '/data'", "path = '/data'\nend = 'marker'", &["/data", "needs the key 'marker'"]),
        ("path = '/data'", "path = '/data'\nmarker = '.done'", &["/data", "needs end"]),
        ("path = '/data'", "path = '/data'\ninclude = ['[']", &["/data", "'['"]),
        ("path = '/data'", "path = '/data'\ninto = '../x'", &["into = '../x'"]),
        ("path = '/data'", "path = '/data'\n[[folder]]\npath = '/data'", &["/data occurs twice"]),
        ("'http://host'", "'host'", &["[archive] url", "'host'"]),
        ("[state]", "[network]\nrate = '10Mb/s'\n[state]", &["line 8", "rate", "'10Mb/s'"]),
        ("[state]", "[network]\nblock = '9MiB'\n[state]", &["[network] block"]),
        ("[state]", "[network]\nconnections = 0\n[state]", &["[network] connections = 0"]),
        (
            "[state]",
            "[[network.schedule]]\nfrom = '8'\nto = '9:00'\nrate = '1B/s'\n[state]",
            &["line 8", "'8'"],
        ),
        ("folder = '/state'", "", &["folder"]),
    ] {
        let error = Settings::parse(&LEAST.replace(from, to), "ship.toml").unwrap_err().to_string();
        assert!(error.starts_with("cannot use the settings ship.toml: "), "{error}");
        assert!(error.contains("; "), "{error}");
        for part in parts {
            assert!(error.contains(part), "{error} lacks {part}");
        }
    }
    let absent = Settings::read("/absent/ship.toml".as_ref()).unwrap_err().to_string();
    assert!(absent.starts_with("cannot read the settings /absent/ship.toml: "), "{absent}");
}
