//! Generated commands, run against a store and against the naive model.

use super::databases::{Databases, SqliteDatabases, catalog, path};
use super::model::Model;
use super::objects::put;
use holdfast_catalog::{Attribute, Catalog, CatalogStore, Find, ObjectId, Value};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;

#[derive(Clone, Debug)]
enum Command {
    MakeCollection(String, bool),
    Put(String, u8),
    Rename(String, String),
    Trash(String),
    Restore(prop::sample::Index),
    AddAttribute(String, i64),
    RemoveAttribute(String),
}

fn any_path() -> impl Strategy<Value = String> {
    let name = prop::sample::select(&["a", "b", "a_1", "a_2"][..]);
    prop::collection::vec(name, 1..4).prop_map(|names| format!("/{}", names.join("/")))
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        4 => (any_path(), any::<bool>()).prop_map(|(path, parents)| Command::MakeCollection(path, parents)),
        4 => (any_path(), any::<u8>()).prop_map(|(path, content)| Command::Put(path, content)),
        4 => (any_path(), any_path()).prop_map(|(from, to)| Command::Rename(from, to)),
        3 => any_path().prop_map(Command::Trash),
        3 => any::<prop::sample::Index>().prop_map(Command::Restore),
        3 => (any_path(), 0_i64..3).prop_map(|(path, value)| Command::AddAttribute(path, value)),
        1 => any_path().prop_map(Command::RemoveAttribute),
    ]
}

/// Runs a command on both; `ids` holds the ids of the model's nodes. True if both do the same.
fn run<S: CatalogStore>(
    catalog: &mut Catalog<S>,
    model: &mut Model,
    ids: &mut Vec<ObjectId>,
    command: &Command,
) -> bool {
    let same = match command {
        Command::MakeCollection(at, parents) => {
            catalog.make_collection(&path(at), *parents).is_ok()
                == model.make_collection(at, *parents).is_some()
        }
        Command::Put(at, content) => {
            catalog.put(&put(at, *content)).is_ok() == model.put(at, *content).is_some()
        }
        Command::Rename(from, to) => {
            catalog.rename(&path(from), &path(to)).is_ok() == model.rename(from, to).is_some()
        }
        Command::Trash(at) => catalog.trash(&path(at)).is_ok() == model.trash(at).is_some(),
        Command::Restore(index) => {
            let trashed = model.trashed();
            if trashed.is_empty() {
                return true;
            }
            let at = *index.get(&trashed);
            catalog.restore(ids[at], None).is_ok() == model.restore(at).is_some()
        }
        Command::AddAttribute(at, value) => {
            let added = catalog.add_attributes(&path(at), &[Attribute::new("n", *value)]);
            added.is_ok() == model.add_attribute(at, "n", *value).is_some()
        }
        Command::RemoveAttribute(at) => {
            let removed = catalog.remove_attributes(&path(at), "n", None);
            removed.is_ok() == model.remove_attribute(at, "n").is_some()
        }
    };
    // New nodes are visible right after their command.
    ids.resize(model.nodes.len(), ObjectId::ROOT);
    for (at, node) in model.paths() {
        if ids[node].is_root() {
            ids[node] = catalog.stat(&path(&at)).unwrap().node.unwrap().id;
        }
    }
    same
}

/// All visible paths with contents and attributes, read through lists and stat.
fn tree<S: CatalogStore>(catalog: &mut Catalog<S>) -> Vec<(String, Vec<u8>, Vec<i64>)> {
    let (mut all, mut open) = (Vec::new(), vec![path("/")]);
    while let Some(above) = open.pop() {
        for entry in catalog.list(&above, None, 1000).unwrap().entries {
            let at = above.child(&entry.node.shown).unwrap();
            let stat = catalog.stat(&at).unwrap();
            let contents = stat.versions.iter().map(|version| version.hash.0[0]).collect();
            let number = |attribute: &Attribute| match attribute.value {
                Value::Integer(number) => number,
                _ => unreachable!(),
            };
            let attributes = catalog.attributes(&at).unwrap().iter().map(number).collect();
            all.push((at.to_string(), contents, attributes));
            if entry.version.is_none() {
                open.push(at);
            }
        }
    }
    all.sort();
    all
}

pub fn commands_agree_with_the_model<D: Databases>(databases: &D) {
    let number = Cell::new(0);
    let files = SqliteDatabases::new();
    let cases = (Config::default().cases / 8).max(4);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let commands = prop::collection::vec(command(), 1..40);
    let outcome = runner.run(&commands, |commands| {
        number.set(number.get() + 1);
        let name = format!("model_{}", number.get());
        let mut catalog = databases.catalog(&name, 1);
        let (mut model, mut ids) = (Model::new(), vec![ObjectId::ROOT]);
        for command in &commands {
            prop_assert!(run(&mut catalog, &mut model, &mut ids, command), "{command:?} differs");
        }
        let expected = model.paths().into_iter().map(|(path, at)| {
            let node = &model.nodes[at];
            (path, node.contents.clone(), node.attributes.iter().map(|(_, value)| *value).collect::<Vec<_>>())
        });
        let expected: Vec<_> = expected.collect();
        prop_assert_eq!(tree(&mut catalog), expected.clone());
        let find = Find { condition: Some("n >= 1".parse().unwrap()), ..Find::default() };
        let mut found: Vec<String> = catalog
            .find(&find, None, 1000)
            .unwrap()
            .found
            .iter()
            .map(|found| found.path.to_string())
            .collect();
        found.sort();
        let has = |(path, _, values): &(String, Vec<u8>, Vec<i64>)| {
            values.iter().any(|value| *value >= 1).then(|| path.clone())
        };
        prop_assert_eq!(found, expected.iter().filter_map(has).collect::<Vec<_>>());

        // The same commands on a fresh file of SQLite give the same state, byte by byte.
        let mut twin = self::catalog(files.open(&name), 1);
        let (mut model, mut ids) = (Model::new(), vec![ObjectId::ROOT]);
        for command in &commands {
            prop_assert!(run(&mut twin, &mut model, &mut ids, command));
        }
        prop_assert_eq!(twin.digest().unwrap(), catalog.digest().unwrap());
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}
