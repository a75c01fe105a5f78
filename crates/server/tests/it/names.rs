//! Names: path traversal, odd but allowed names, and the layout of the archive.

use crate::client::{contents, metadata};
use crate::world::World;

/// Path for an address, with every byte outside of letters and digits encoded.
pub(crate) fn encoded(path: &str) -> String {
    let byte = |byte: u8| {
        if byte.is_ascii_alphanumeric() || byte == b'/' {
            (byte as char).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    path.bytes().map(byte).collect()
}

#[test]
fn uploads_without_a_name_are_named_by_their_identity() {
    let world = World::new();
    let client = world.client();
    let empty = metadata(&[("filename", "")]);
    for named in [None, Some("filetype aW1hZ2UvcG5n"), Some(empty.as_str())] {
        let named = named.map(|named| ("Upload-Metadata", named));
        let body = ("Content-Type", "application/offset+octet-stream");
        let headers: Vec<_> = [("Upload-Length", "5"), body].into_iter().chain(named).collect();
        let created = client.tus("POST", "/files/", &headers, b"bytes").expect(201);
        let id = created.header("location").unwrap().rsplit_once('/').unwrap().1.to_owned();
        world.until_stored(&id);
        assert_eq!(client.get(&format!("/projects/default/unnamed/{id}")).expect(200).body, b"bytes");
    }
    // As some clients call it.
    let named = metadata(&[("name", "photo.png")]);
    let headers = [("Upload-Length", "0"), ("Upload-Metadata", named.as_str())];
    let created = client.tus("POST", "/files/", &headers, &[]).expect(201);
    world.until_stored(created.header("location").unwrap());
    client.get("/catalog/stat?path=/default/photo.png").expect(200);
}

#[test]
fn unsafe_names_are_refused_everywhere() {
    let world = World::new();
    let client = world.client();
    let longer = "n".repeat(256);
    for bad in [
        "..",
        "../x",
        "a/../../x",
        "/etc/passwd",
        "a//b",
        "a/",
        "./a",
        "a\0b",
        "a\nb",
        "a\u{7f}",
        "\u{9b}1m",
        ".holdfast/x",
        "a/.holdfast",
        &longer,
    ] {
        for key in ["path", "filename"] {
            let named = metadata(&[(key, bad)]);
            let headers = [("Upload-Length", "1"), ("Upload-Metadata", named.as_str())];
            let refused = client.tus("POST", "/files/", &headers, &[]).expect(400);
            assert_eq!(refused.problem(), "bad-name", "{bad:?}");
        }
        let address = format!("/projects/default/{}", encoded(bad));
        assert!(matches!(client.get(&address).status, 400 | 404), "{bad:?}");
    }
    for bad in ["..", "a/b", "", "-", "ä", "a b"] {
        let named = metadata(&[("path", "x"), ("project", bad)]);
        let headers = [("Upload-Length", "1"), ("Upload-Metadata", named.as_str())];
        client.tus("POST", "/files/", &headers, &[]).expect(400).problem();
    }
    for address in [
        "/projects/../etc/passwd",
        "/projects/default/../../../etc/passwd",
        "/projects/default/%2e%2e/%2e%2e/x",
        "/projects/default/..%2f..%2fx",
        "/projects/%2e%2e/x",
        "/projects/default/a%00b",
        "/projects/default/%ff",
        "/projects/default//etc/passwd",
        "/projects/default?after=../x",
    ] {
        let refused = client.get(address);
        assert!(matches!(refused.status, 400 | 404), "{address} {}", refused.status);
        refused.problem();
    }
    let invalid = "path /w==".to_owned();
    client.tus("POST", "/files/", &[("Upload-Length", "1"), ("Upload-Metadata", &invalid)], &[]).expect(400);
    assert!(!world.folder().join("x").exists());
    assert_eq!(std::fs::read_dir(world.folder()).unwrap().count(), 1);
}

#[test]
fn odd_names_are_stored_and_read_back() {
    let world = World::new();
    let client = world.client();
    let long = "ü".repeat(127) + "x";
    let names = [
        "a",
        "b/a",
        "b/c/d",
        "b/c0",
        "Größe in µm/日本語.bin",
        "with space",
        "%2e%2e",
        "..a",
        "a..",
        "back\\slash",
        "quote\"'",
        "-rf",
        "semi;colon",
        "que?ry#x",
        "*",
        ".hidden",
        "\u{202e}txt",
        &long,
    ];
    for (seed, name) in names.iter().enumerate() {
        let upload = client.upload(name, &contents(seed as u64, 100));
        world.until_stored(&upload);
    }
    for (seed, name) in names.iter().enumerate() {
        let address = format!("/projects/default/{}", encoded(name));
        assert_eq!(client.get(&address).expect(200).body, contents(seed as u64, 100), "{name}");
    }
    let mut listed = Vec::new();
    let mut after = String::new();
    loop {
        let page = client.get(&format!("/projects/default?count=4{after}")).expect(200).json();
        let objects = page["objects"].as_array().unwrap();
        listed.extend(objects.iter().map(|object| object["path"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={}", encoded(next)),
            None => break,
        }
    }
    let mut expected: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    expected.sort_by(|a, b| a.split('/').cmp(b.split('/')));
    assert_eq!(listed, expected);
}

#[test]
fn other_contents_become_a_new_version() {
    let mut world = World::new();
    let client = world.client();
    let mut versions = Vec::new();
    for text in ["one", "two", "two", "one"] {
        let upload = client.upload("a/b", text.as_bytes());
        versions.push(world.until_stored(&upload));
    }
    // The same contents as the newest version are that version; older contents come back as a newer version.
    assert_eq!(versions[1], versions[2]);
    versions.dedup();
    let client = world.restart();
    let listing = client.get("/projects/default?versions=a/b").expect(200).json();
    let listed: Vec<_> = listing["objects"].as_array().unwrap().iter().collect();
    let names: Vec<_> = listed.iter().map(|object| object["version"].as_str().unwrap()).collect();
    assert_eq!(names, versions);
    for (object, text) in listed.iter().zip(["one", "two", "one"]) {
        assert_eq!(object["blake3"], blake3::hash(text.as_bytes()).to_hex().as_str());
        let address = format!("/projects/default/a/b?version={}", object["version"].as_str().unwrap());
        assert_eq!(client.get(&address).expect(200).body, text.as_bytes());
    }
    // People find all versions in one folder by project and path.
    let files = crate::site::files(&world.data().join("archive"));
    let mut kept: Vec<_> = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    kept.sort();
    assert_eq!(kept, ["one", "one", "two"]);
    assert!(files.iter().all(|file| file.to_str().unwrap().contains("/archive/default/a/b/.holdfast/")));
    assert_eq!(client.get("/projects/default/a/b").expect(200).body, b"one");
    client.get("/projects/default/a/b?version=9").expect(404);
    client.get("/projects/default/a/b?version=../x").expect(400);
    client.get("/projects/default/a").expect(404);
}
