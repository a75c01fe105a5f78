//! Sites that are joined: policies, copies and conflicts.

use super::Deaf;
use crate::common::folder;
use crate::joined_sites::{json, put, run, start, until};

pub(super) const COMMANDS: &[&str] = &[
    "site add",
    "site pause",
    "site resume",
    "site remove",
    "policy set",
    "policy rm",
    "stage",
    "conflicts keep",
    "conflicts flip",
];

#[test]
fn sites_are_joined_and_conflicts_settled_though_nobody_reads_it() {
    let folder = folder();
    let dir = folder.path();
    let (a, b) = (start(dir, "ams"), start(dir, "gva"));
    let mut deaf = Deaf::new(&a);
    deaf.run(&format!("site add gva {} --interval 200ms", b.url()));
    assert!(run(&a, &["site", "ls"]).out.contains("gva"));
    put(&a, dir, "one", "/lab/one.txt");
    until(&b, &["ls", "/lab"], |out| out == "one.txt\n");
    deaf.run("stage /lab --near gva");
    until(&b, &["jobs", "--json"], |out| json(out)["reason"] == "stage");
    deaf.run("policy set /lab --copies 1 --sites ams");
    assert!(run(&a, &["policy", "ls"]).out.contains("/lab"));
    deaf.run("policy rm /lab");
    a.ends("policy ls", 3);

    deaf.run("site pause gva");
    for name in ["/lab/plan", "/lab/list"] {
        put(&a, dir, "of a", name);
        put(&b, dir, "of b", name);
    }
    deaf.run("site resume gva");
    let listed = until(&a, &["conflicts", "--json"], |out| out.lines().count() == 2);
    let ids: Vec<String> = listed.lines().map(|line| json(line)["id"].as_str().unwrap().to_owned()).collect();
    for (choice, id) in ["keep", "flip"].iter().zip(&ids) {
        let words = ["conflicts", choice, id].map(str::to_owned).to_vec();
        assert_eq!(deaf.start_words(words).wait().unwrap().code(), Some(0), "{choice} {id}");
    }
    a.ends("conflicts", 3);
    deaf.run("site remove gva");
    a.ends("site ls", 3);
    deaf.tried_all(COMMANDS);
}
