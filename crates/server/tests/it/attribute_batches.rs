//! Changes of attributes in batches: the same effect as single requests, all or none, and none when they come again.

use crate::client::Client;
use crate::world::World;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

const ENTRIES: usize = 5;

fn post(client: &Client, address: &str, body: &Value) -> crate::client::Response {
    client.send("POST", address, &[("Content-Type", "application/json")], body.to_string().as_bytes())
}

fn attributes(client: &Client, path: &str) -> Vec<String> {
    let stat = client.get(&format!("/catalog/stat?path={path}")).expect(200).json();
    let mut all: Vec<_> = stat["attributes"].as_array().unwrap().iter().map(Value::to_string).collect();
    all.sort();
    all
}

/// Entry, attributes that it gets, and names that it loses.
fn changes() -> impl Strategy<Value = Vec<(usize, Vec<Value>, Vec<&'static str>)>> {
    let names = || prop::sample::select(vec!["a", "b", "c \u{e9}"]);
    let value = prop_oneof![
        (0..3_i64).prop_map(Value::from),
        (0..3_u8).prop_map(|half| Value::from(f64::from(half) + 0.5)),
        "[a-c]{0,2}".prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::from("2026-11-20T10:05:00Z")),
    ];
    let unit = prop::option::of(prop::sample::select(vec!["s", "GiB"]));
    let added = (names(), value, unit)
        .prop_map(|(name, value, unit)| json!({"name": name, "value": value, "unit": unit}));
    // An attribute that one request adds twice would be there twice.
    let added = prop::collection::vec(added, 0..4).prop_map(|mut added| {
        let mut seen = Vec::new();
        added.retain(|new| {
            !seen.contains(new) && {
                seen.push(new.clone());
                true
            }
        });
        added
    });
    prop::collection::vec((0..ENTRIES, added, prop::collection::vec(names(), 0..3)), 1..20)
}

fn body(changes: &[(usize, Vec<Value>, Vec<&str>)], collection: &str) -> Value {
    let entry = |(number, added, removed): &(usize, Vec<Value>, Vec<&str>)| json!({"path": format!("{collection}/{number}"), "add": added, "remove": removed});
    json!({"entries": changes.iter().map(entry).collect::<Vec<_>>()})
}

#[test]
fn a_batch_has_the_effect_of_single_requests() {
    let world = World::new();
    let client = world.client();
    for collection in ["/lab/single", "/lab/batch"] {
        for number in 0..ENTRIES {
            let at = format!("/catalog/collections?path={collection}/{number}&parents=true");
            client.send("POST", &at, &[], &[]).expect(201);
        }
    }
    let mut runner = TestRunner::new(ProptestConfig { cases: 40, ..ProptestConfig::default() });
    let compare = |changes: Vec<(usize, Vec<Value>, Vec<&str>)>| {
        for (number, added, removed) in &changes {
            let at = format!("/catalog/attributes?path=/lab/single/{number}");
            post(&client, &at, &json!({"add": added, "remove": removed})).expect(200);
        }
        let batch = body(&changes, "/lab/batch");
        let done = post(&client, "/catalog/attributes/batch", &batch).expect(200).json();
        prop_assert_eq!(&done["entries"], changes.len());
        for number in 0..ENTRIES {
            let of = |collection: &str| attributes(&client, &format!("/lab/{collection}/{number}"));
            prop_assert_eq!(of("single"), of("batch"), "entry {}", number);
        }
        Ok(())
    };
    runner.run(&changes(), compare).unwrap();
}

#[test]
fn a_batch_is_made_wholly_or_not_at_all_and_once() {
    let world = World::new();
    let client = world.client();
    for number in 0..3 {
        let at = format!("/catalog/collections?path=/lab/{number}&parents=true");
        client.send("POST", &at, &[], &[]).expect(201);
    }
    let entry = |path: &str, name: &str, value: Value| json!({"path": path, "add": [{"name": name, "value": value}], "remove": [name]});
    let send = |entries: &[Value]| post(&client, "/catalog/attributes/batch", &json!({"entries": entries}));
    let good =
        [entry("/lab/0", "a", 1.into()), entry("/lab/1", "a", "x".into()), entry("/lab/0", "b", 2.into())];
    let done = send(&good).expect(200).json();
    assert_eq!(done, json!({"entries": 3, "changed": 3}));
    let before =
        [attributes(&client, "/lab/0"), attributes(&client, "/lab/1"), attributes(&client, "/lab/2")];
    // A repeated request changes nothing, and one with a new entry that alone.
    assert_eq!(send(&good).expect(200).json(), json!({"entries": 3, "changed": 0}));
    let more = [&good[..], &[entry("/lab/2", "a", 1.into())]].concat();
    assert_eq!(send(&more).expect(200).json(), json!({"entries": 4, "changed": 1}));
    let twice = json!({"path": "/lab/2", "add": [{"name": "a", "value": 1}, {"name": "a", "value": 1}], "remove": ["a"]});
    assert_eq!(send(&[twice]).expect(200).json(), json!({"entries": 1, "changed": 0}));
    let change = entry("/lab/0", "a", 9.into());
    for (bad, status, kind) in [
        (entry("/lab/none", "a", 1.into()), 404, "not-found"),
        (entry("/", "a", 1.into()), 400, "bad-request"),
        (entry("lab/0", "a", 1.into()), 400, "bad-name"),
        (entry("/l b/0", "a", 1.into()), 400, "bad-name"),
        (entry("/lab/1", "", 1.into()), 400, "bad-request"),
        (entry("/lab/1", "a", Value::Null), 400, "bad-request"),
        (entry("/lab/1", "a", "y".repeat(3000).into()), 400, "bad-request"),
    ] {
        for place in 0..2 {
            let mut entries = vec![change.clone(); 2];
            entries[place] = bad.clone();
            let refused = send(&entries).expect(status);
            assert_eq!(
                (refused.problem().as_str(), &refused.json()["entry"]),
                (kind, &json!(place)),
                "{bad}"
            );
        }
    }
    assert_eq!([attributes(&client, "/lab/0"), attributes(&client, "/lab/1")], before[..2]);
    // A request has bounds.
    let many = vec![change.clone(); 1001];
    let refused = send(&many).expect(400);
    assert!(refused.json()["detail"].as_str().unwrap().contains("1001 entries"), "{}", refused.json());
    let names: Vec<_> = (0..20_001).map(|number| number.to_string()).collect();
    send(&[json!({"path": "/lab/0", "remove": names})]).expect(400).problem();
    post(&client, "/catalog/attributes/batch", &json!({"entries": [{"path": "/lab/0", "set": []}]}))
        .expect(400);
    assert_eq!(attributes(&client, "/lab/0"), before[0]);
    send(&[]).expect(200);
}
