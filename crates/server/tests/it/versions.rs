//! Versions by identity: whatever becomes of the path; and the rights of a token at a path.

use crate::client::Client;
use crate::world::World;
use holdfast_server::Scope;

/// Address of the current version of an entry by its identity.
fn address(client: &Client, path: &str) -> String {
    let stat = client.get(&format!("/catalog/stat?path={path}")).expect(200).json();
    format!("/catalog/versions/{}/{}", stat["id"].as_str().unwrap(), stat["current"].as_str().unwrap())
}

#[test]
fn a_version_is_read_by_its_identity_until_it_is_purged() {
    let world = World::new();
    let client = world.client();
    world.until_stored(&client.upload("a", b"first"));
    client.send("POST", "/catalog/links?from=/default/a&to=/default/link", &[], &[]).expect(201);
    let (object, link) = (address(&client, "/default/a"), address(&client, "/default/link"));
    let reads = |what: &str| {
        for by in [&object, &link] {
            assert_eq!(client.get(by).expect(200).body, b"first", "{what}");
            let part = client.send("GET", by, &[("Range", "bytes=1-2")], &[]).expect(206);
            assert_eq!(part.body, b"ir", "{what}");
        }
    };
    reads("stored");
    world.until_stored(&client.upload("a", b"second"));
    reads("a further version");
    client.send("POST", "/catalog/collections?path=/default/d", &[], &[]).expect(201);
    client.send("POST", "/catalog/moves?from=/default/a&to=/default/d/b", &[], &[]).expect(204);
    world.until_stored(&client.upload("a", b"another object"));
    reads("moved");
    client.send("DELETE", "/catalog/entries?path=/default/d&recursive=true", &[], &[]).expect(200);
    client.send("DELETE", "/catalog/entries?path=/default/link", &[], &[]).expect(200);
    reads("deleted");
    let trash = client.get("/catalog/trash").expect(200).json();
    for entry in trash["entries"].as_array().unwrap() {
        let id = entry["id"].as_str().unwrap();
        client.send("DELETE", &format!("/catalog/trash/{id}"), &[], &[]).expect(204);
    }
    client.get(&link).expect(404);
    client.get("/catalog/versions/x/1-1-0").expect(400);
    client.get(&object.replace("versions/0", "versions/1")).expect(404);
}

#[test]
fn a_version_is_read_by_its_identity_below_a_path_of_any_length() {
    let world = World::new();
    let client = world.client();
    let (deep, longer) = (format!("{}/", "e".repeat(200)).repeat(4) + "f", "d".repeat(250));
    world.until_stored(&client.upload(&format!("d/{deep}"), b"deep"));
    client
        .send("POST", &format!("/catalog/moves?from=/default/d&to=/default/{longer}"), &[], &[])
        .expect(204);
    let path = format!("/default/{longer}/{deep}");
    let object = address(&client, &path);
    assert_eq!(client.get(&object).expect(200).body, b"deep");
    client.send("DELETE", &format!("/catalog/entries?path={path}"), &[], &[]).expect(200);
    assert_eq!(client.get(&object).expect(200).body, b"deep");
}

#[test]
fn identities_open_nothing_that_the_path_does_not() {
    let world = World::new();
    let client = world.client();
    world.until_stored(&client.upload("a", b"private"));
    let object = address(&client, "/default/a");
    let (_, admin) = world.token(&[Scope::Admin], None);
    let admin = client.with_token(&admin);
    let with = |scopes: &[Scope], project| client.with_token(&world.token(scopes, project).1);
    let check = |path: &str| {
        client.get(&object).expect(401);
        with(&[Scope::Write], None).get(&object).expect(403);
        with(&[Scope::Read], Some("other")).get(&object).expect(403);
        assert_eq!(with(&[Scope::Read], Some("default")).get(&object).expect(200).body, b"private", "{path}");
    };
    check("there");
    admin.send("DELETE", "/catalog/entries?path=/default/a", &[], &[]).expect(200);
    check("in the trash");
}

#[test]
fn the_rights_of_a_token_are_told_before_it_sends_anything() {
    let world = World::new();
    let open = world.client().get("/catalog/rights?path=/own/a").expect(200).json();
    assert_eq!((&open["write"], &open["everywhere"]), (&true.into(), &true.into()));
    for (scopes, project, write, everywhere) in [
        (&[Scope::Read][..], None, false, true),
        (&[Scope::Read], Some("own"), false, true),
        (&[Scope::Read, Scope::Write], None, true, true),
        (&[Scope::Admin], None, true, true),
        (&[Scope::Write], Some("own"), true, false),
        (&[Scope::Write], Some("other"), false, false),
    ] {
        let client = world.client().with_token(&world.token(scopes, project).1);
        let rights = client.get("/catalog/rights?path=/own/a").expect(200).json();
        assert_eq!(
            (&rights["write"], &rights["everywhere"]),
            (&write.into(), &everywhere.into()),
            "{scopes:?} {project:?}"
        );
    }
    world.client().get("/catalog/rights?path=/own/a").expect(401);
}
