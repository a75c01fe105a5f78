//! Layers of the workspace: a table of the crates that each crate may depend on, the packages that the recorder may
//! never depend on, and the number of test executables.
//!
//! Development dependencies are free: tests may look anywhere.

use crate::Finding;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Each crate of the workspace and the crates of the workspace that it may know. A new crate gets its row here.
const FLOORS: [(&str, &[&str]); 30] = [
    ("base", &[]),
    ("format", &["base"]),
    ("attributes", &["base", "format"]),
    ("media", &["base"]),
    ("ring", &["base", "format", "media"]),
    ("ingest", &["base", "format", "attributes", "media", "ring"]),
    ("protocol", &["base", "format", "attributes", "media", "ring"]),
    ("reader", &["base", "format", "attributes", "media", "ring", "protocol"]),
    ("query", &["base", "format", "attributes", "media", "ring", "protocol", "reader"]),
    ("export", &["base", "format", "attributes", "ring", "ingest", "reader"]),
    (
        "client",
        &["base", "format", "attributes", "media", "ring", "ingest", "protocol", "reader", "query", "export"],
    ),
    ("dataset", &["base", "format", "attributes", "ring", "ingest", "reader", "query", "export", "client"]),
    ("vault", &["base", "ring", "reader", "query", "client", "dataset"]),
    ("catalog", &[]),
    // A server gets its vaults from the program, so that it needs no engine.
    ("remote", &["base"]),
    ("server", &["base", "catalog", "remote"]),
    ("ship", &["base", "client", "dataset", "vault", "remote"]),
    ("fs", &["base", "ring", "reader", "query", "export", "client", "dataset", "catalog", "remote"]),
    // Processes of modules: they know nothing of rings.
    ("module-wire", &[]),
    ("module", &["module-wire"]),
    ("module-sdk", &[]),
    (
        "scan",
        &[
            "base",
            "format",
            "media",
            "ring",
            "protocol",
            "reader",
            "client",
            "dataset",
            "vault",
            "module-wire",
        ],
    ),
    ("standing", &["base", "format", "ring", "protocol", "reader", "query", "client"]),
    (
        "planning",
        &["base", "format", "attributes", "media", "ring", "ingest", "protocol", "reader", "client"],
    ),
    ("recorder", &["base", "format", "attributes", "media", "ring", "ingest", "protocol"]),
    (
        "cli",
        &[
            "base",
            "format",
            "attributes",
            "media",
            "ring",
            "ingest",
            "protocol",
            "reader",
            "query",
            "export",
            "client",
            "standing",
            "planning",
            "dataset",
            "vault",
            "scan",
            "catalog",
            "server",
            "remote",
            "ship",
            "fs",
        ],
    ),
    ("sim", &["base", "format", "attributes", "media", "ring", "ingest", "protocol", "reader"]),
    // The emulated drive as a file: beside the product, which never knows it.
    ("emulate", &["base", "media"]),
    ("fuzz", &["base", "format", "attributes", "media", "ring", "ingest", "protocol", "reader", "dataset"]),
    (
        "bench",
        &[
            "base",
            "format",
            "attributes",
            "media",
            "ring",
            "ingest",
            "protocol",
            "reader",
            "catalog",
            "remote",
        ],
    ),
];

/// Packages that would bring a runtime, a framework or a service into the recorder. A final `*` stands for any ending.
const NOT_IN_THE_RECORDER: [&str; 33] = [
    "tokio*",
    "async-std",
    "async-io",
    "smol",
    "mio",
    "futures*",
    "serde*",
    "toml*",
    "bincode",
    "prost*",
    "tonic*",
    "sqlx*",
    "rusqlite",
    "postgres",
    "libsqlite3-sys",
    "datafusion*",
    "arrow*",
    "parquet",
    "object_store",
    "hyper*",
    "axum*",
    "reqwest",
    "h2",
    "tower*",
    "http",
    "rustls*",
    "openssl*",
    "clap*",
    "ratatui*",
    "crossterm",
    "opentelemetry*",
    "tracing-subscriber",
    "wasmtime*",
];

fn forbidden(name: &str) -> bool {
    NOT_IN_THE_RECORDER.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *pattern,
    })
}

/// Test executables of the workspace at most: linking each takes seconds, and every build links all.
const MOST_TEST_PROGRAMS: usize = 54;

/// The packages of `cargo metadata` and what each needs at run time.
struct Graph<'a> {
    /// Name by package id.
    names: BTreeMap<&'a str, &'a str>,
    /// Run-time dependencies by package id.
    needs: BTreeMap<&'a str, BTreeSet<&'a str>>,
    members: Vec<&'a str>,
}

impl<'a> Graph<'a> {
    fn of(metadata: &'a Value) -> Self {
        let text = |value: &'a Value| value.as_str().unwrap_or_default();
        let list = |value: &'a Value| value.as_array().map(Vec::as_slice).unwrap_or_default();
        let names = list(&metadata["packages"]).iter().map(|p| (text(&p["id"]), text(&p["name"]))).collect();
        let normal = |dep: &'a Value| list(&dep["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
        let needs = list(&metadata["resolve"]["nodes"])
            .iter()
            .map(|node| {
                let deps = list(&node["deps"]).iter().filter(|dep| normal(dep)).map(|dep| text(&dep["pkg"]));
                (text(&node["id"]), deps.collect())
            })
            .collect();
        Self { names, needs, members: list(&metadata["workspace_members"]).iter().map(text).collect() }
    }

    fn name(&self, id: &str) -> &'a str {
        self.names.get(id).copied().unwrap_or_default()
    }
}

fn room(name: &str) -> Option<&str> {
    name.strip_prefix("holdfast-")
}

fn manifest(room: &str) -> String {
    match room {
        "fuzz" | "bench" => format!("{room}/Cargo.toml"),
        _ => format!("crates/{room}/Cargo.toml"),
    }
}

/// No crate of the workspace depends on one above it or beside it.
pub(crate) fn edges(metadata: &Value) -> Vec<Finding> {
    let graph = Graph::of(metadata);
    let mut findings = Vec::new();
    for member in &graph.members {
        let Some(name) = room(graph.name(member)) else { continue };
        let Some((_, allowed)) = FLOORS.iter().find(|(room, _)| *room == name) else {
            findings.push(Finding::new(
                &manifest(name),
                0,
                "has no row in FLOORS of xtask/src/layers.rs: give it one",
            ));
            continue;
        };
        for need in graph.needs.get(member).into_iter().flatten() {
            if let Some(other) = room(graph.name(need)).filter(|other| !allowed.contains(other)) {
                findings.push(Finding::new(&manifest(name), 0, format!("{name} must not know {other}")));
            }
        }
    }
    findings
}

/// The recorder's whole run-time tree is free of what it must never hold.
pub(crate) fn recorder_tree(metadata: &Value) -> Vec<Finding> {
    let graph = Graph::of(metadata);
    let Some(start) = graph.members.iter().find(|id| graph.name(id) == "holdfast-recorder") else {
        return vec![Finding::new("Cargo.toml", 0, "the workspace has no holdfast-recorder")];
    };
    let mut findings = Vec::new();
    let mut seen = BTreeSet::from([*start]);
    let mut paths = vec![vec![*start]];
    while let Some(path) = paths.pop() {
        for need in path.last().and_then(|id| graph.needs.get(id)).into_iter().flatten() {
            if !seen.insert(need) {
                continue;
            }
            let mut path = path.clone();
            path.push(need);
            if forbidden(graph.name(need)) {
                let way: Vec<&str> = path.iter().map(|id| graph.name(id)).collect();
                findings.push(Finding::new(
                    &manifest("recorder"),
                    0,
                    format!("must not hold: {}", way.join(" → ")),
                ));
            } else {
                paths.push(path);
            }
        }
    }
    findings
}

/// The workspace builds no more test executables than a build has time for.
pub(crate) fn test_programs(metadata: &Value) -> Vec<Finding> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let members = list(&metadata["workspace_members"]);
    let own = list(&metadata["packages"]).into_iter().filter(|package| members.contains(&package["id"]));
    let targets = own.flat_map(|package| list(&package["targets"]));
    let built = |target: &Value| target["test"] == true && target["kind"][0] != "custom-build";
    let count = targets.filter(built).count();
    let what = || {
        format!(
            "{count} test executables, over {MOST_TEST_PROGRAMS}: make one of several, or set `test = false`"
        )
    };
    (count > MOST_TEST_PROGRAMS).then(|| Finding::new("Cargo.toml", 0, what())).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Metadata of a workspace with these dependencies: (who, on whom, kind).
    fn metadata(edges: &[(&str, &str, Option<&str>)]) -> Value {
        let names: BTreeSet<&str> =
            edges.iter().flat_map(|(a, b, _)| [*a, *b]).chain(["holdfast-recorder"]).collect();
        let nodes: Vec<Value> = names
            .iter()
            .map(|name| {
                let deps = edges.iter().filter(|(a, _, _)| a == name);
                let deps = deps.map(|(_, b, kind)| json!({ "pkg": b, "dep_kinds": [{ "kind": kind }] }));
                json!({ "id": name, "deps": deps.collect::<Vec<_>>() })
            })
            .collect();
        json!({
            "packages": names.iter().map(|name| json!({ "id": name, "name": name })).collect::<Vec<_>>(),
            "workspace_members": names.iter().filter(|name| room(name).is_some()).collect::<Vec<_>>(),
            "resolve": { "nodes": nodes },
        })
    }

    #[test]
    fn the_floors_may_be_used_downwards_only() {
        let down = metadata(&[
            ("holdfast-ring", "holdfast-media", None),
            ("holdfast-ring", "holdfast-sim", Some("dev")),
            ("holdfast-ring", "thiserror", None),
        ]);
        assert_eq!(edges(&down), []);
        let up = edges(&metadata(&[("holdfast-format", "holdfast-media", None)]));
        assert_eq!(up[0].to_string(), "crates/format/Cargo.toml: format must not know media");
        assert_eq!(edges(&metadata(&[("holdfast-cli", "holdfast-recorder", None)])).len(), 1);
        assert_eq!(edges(&metadata(&[("holdfast-ring", "holdfast-sim", None)])).len(), 1);
        assert_eq!(edges(&metadata(&[("holdfast-attic", "thiserror", None)])).len(), 1);
    }

    #[test]
    fn too_many_test_executables_are_found() {
        let package = |id: &str, count: usize| {
            let target = json!({ "kind": ["lib"], "test": true });
            let other = [
                json!({ "kind": ["bin"], "test": false }),
                json!({ "kind": ["custom-build"], "test": true }),
            ];
            let targets = [vec![target; count], other.to_vec()].concat();
            json!({ "id": id, "targets": targets })
        };
        let workspace = |count: usize| {
            let packages = [package("a", 1), package("b", count - 1), package("other", 9)];
            json!({ "workspace_members": ["a", "b"], "packages": packages })
        };
        assert_eq!(test_programs(&workspace(MOST_TEST_PROGRAMS)), []);
        assert_eq!(test_programs(&workspace(MOST_TEST_PROGRAMS + 1)).len(), 1);
    }

    #[test]
    fn the_recorder_holds_no_framework_however_deep() {
        let clean = metadata(&[
            ("holdfast-recorder", "holdfast-ring", None),
            ("holdfast-ring", "tokio", Some("dev")),
            ("holdfast-ring", "toml", Some("build")),
            ("holdfast-cli", "tokio", None),
        ]);
        assert_eq!(recorder_tree(&clean), []);
        for name in ["tokio", "tokio-util", "serde_json", "arrow-array", "h2", "clap"] {
            let edges = [
                ("holdfast-recorder", "holdfast-ring", None),
                ("holdfast-ring", "x", None),
                ("x", name, None),
            ];
            let found = recorder_tree(&metadata(&edges));
            assert!(found[0].what.ends_with(&format!("holdfast-ring → x → {name}")), "{found:?}");
        }
        assert_eq!(recorder_tree(&json!({})).len(), 1);
    }
}
