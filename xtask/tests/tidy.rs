//! The repository keeps its house rules; what each rule finds is tested beside it.

#[test]
fn the_house_is_tidy() {
    let findings = xtask::tidy(&xtask::root()).unwrap();
    let list: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(list.is_empty(), "\n{}\n", list.join("\n"));
}
