//! Searches: SQL of both dialects against evaluation in memory.

use super::databases::{Databases, path};
use super::objects::put;
use holdfast_catalog::{Attribute, Condition, Find, Nanos, Operator, Pattern, Put, Value};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

const NAMES: [&str; 3] = ["a", "b", "size"];
const TEXTS: [&str; 9] = ["", "m", "m3", "m31", "M31", "m*1", "50%_[x]\\", "é", "m\u{10ffff}"];

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![-2_i64..4, Just(1000), Just(1024), Just(i64::MAX), Just(i64::MIN)]
}

fn value() -> impl Strategy<Value = Value> {
    let float = prop_oneof![
        (-4_i32..8).prop_map(|half| f64::from(half) / 2.0),
        Just(1e19),
        Just(-9_223_372_036_854_775_808.0),
        Just(9_223_372_036_854_775_808.0),
    ];
    prop_oneof![
        prop::sample::select(&TEXTS[..]).prop_map(Value::from),
        number().prop_map(Value::Integer),
        float.prop_map(|number| Value::float(number).unwrap()),
        (-2_i64..3).prop_map(|nanos| Value::Time(Nanos(nanos))),
    ]
}

fn attribute() -> impl Strategy<Value = Attribute> {
    let unit = prop::option::weighted(0.3, prop::sample::select(&["kB", "KiB", "s"][..]));
    (prop::sample::select(&NAMES[..]), value(), unit).prop_map(|(name, value, unit)| {
        let unit = unit.map(str::to_owned);
        Attribute { name: name.to_owned(), value, unit }
    })
}

fn condition() -> impl Strategy<Value = Condition> {
    use Operator::{AtLeast, AtMost, Different, Equal, Greater, Less};
    let operator = prop::sample::select(&[Equal, Different, Less, AtMost, Greater, AtLeast][..]);
    let name = || prop::sample::select(&NAMES[..]).prop_map(str::to_owned);
    let compare = (name(), operator, value()).prop_map(|(attribute, operator, literal)| Condition::Compare {
        attribute,
        operator,
        literal,
    });
    let piece = prop::sample::select(&["", "m", "3", "1", "%", "_", "[", "*", "\\", "\u{10ffff}"][..]);
    let pieces = prop::collection::vec(piece.prop_map(str::to_owned), 1..4);
    let like = (name(), pieces)
        .prop_map(|(attribute, pieces)| Condition::Like { attribute, pattern: Pattern { pieces } });
    prop_oneof![3 => compare, 1 => like].prop_recursive(3, 10, 3, |inner| {
        let parts = prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            parts.clone().prop_map(Condition::All),
            parts.prop_map(Condition::Any),
            inner.prop_map(|inner| Condition::Not(Box::new(inner))),
        ]
    })
}

/// Objects are put once; then many conditions are tried on them.
pub fn searches_agree_with_evaluation<D: Databases>(databases: &D) {
    let mut catalog = databases.catalog("conditions", 1);
    let mut runner = TestRunner::deterministic();
    let mut objects = Vec::new();
    for number in 0..120 {
        let attributes = prop::collection::vec(attribute(), 0..6).new_tree(&mut runner).unwrap().current();
        let put = Put { attributes: attributes.clone(), ..put(&format!("/{number:03}"), 1) };
        objects.push((put, attributes));
    }
    let puts: Vec<Put> = objects.iter().map(|(put, _)| put.clone()).collect();
    catalog.put_all(&puts).unwrap();
    let catalog = std::cell::RefCell::new(catalog);
    let mut runner = TestRunner::new(Config { cases: 800, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&condition(), |condition| {
        let text = condition.to_string();
        let read: Condition =
            text.parse().map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        prop_assert_eq!(&read, &condition, "{}", text);
        let matching = objects.iter().filter(|(_, attributes)| condition.matches(attributes));
        let expected: Vec<String> = matching.map(|(put, _)| put.path.to_string()).collect();
        let find = Find { condition: Some(condition), ..Find::default() };
        let page = catalog.borrow_mut().find(&find, None, 1000).unwrap();
        let mut found: Vec<String> = page.found.iter().map(|found| found.path.to_string()).collect();
        found.sort();
        prop_assert_eq!(found, expected, "{}", text);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

pub fn searches_respect_place_name_and_pages<D: Databases>(databases: &D) {
    let mut catalog = databases.catalog("places", 1);
    for at in ["/s/m31/raw", "/s/m33", "/t"] {
        catalog.make_collection(&path(at), true).unwrap();
    }
    for (at, size) in [("/s/m31/raw/x.fits", 5), ("/s/m31/y.fits", 6), ("/s/m33/x.fits", 7), ("/t/x.txt", 8)]
    {
        let attributes = vec![Attribute::new("size", size).with_unit("MB")];
        catalog.put(&Put { attributes, ..put(at, 1) }).unwrap();
    }
    catalog.add_attributes(&path("/s/m31"), &[Attribute::new("project", "m31")]).unwrap();
    let mut find = |under: &str, condition: Option<&str>, name: Option<&str>| {
        let condition = condition.map(|text| text.parse().unwrap());
        let find = Find { under: path(under), condition, name: name.map(str::to_owned) };
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            // Pages of one entry each.
            let page = catalog.find(&find, after, 1)?;
            all.extend(page.found.into_iter().map(|found| found.path.to_string()));
            after = page.next;
            if after.is_none() {
                all.sort();
                return Ok::<_, holdfast_catalog::CatalogError>(all);
            }
        }
    };
    assert_eq!(find("/s", Some("size >= 6MB"), None).unwrap(), ["/s/m31/y.fits", "/s/m33/x.fits"]);
    assert_eq!(find("/", None, Some("x.*")).unwrap(), ["/s/m31/raw/x.fits", "/s/m33/x.fits", "/t/x.txt"]);
    assert_eq!(find("/s/m31", None, Some("*.fits")).unwrap(), ["/s/m31/raw/x.fits", "/s/m31/y.fits"]);
    assert_eq!(find("/s", Some("size > 1 and size < 7MB"), Some("[xz]*")).unwrap(), ["/s/m31/raw/x.fits"]);
    assert_eq!(find("/", Some("project like \"m*\""), None).unwrap(), ["/s/m31"]);
    assert_eq!(find("/t", Some("not size = 8MB"), None).unwrap(), [""; 0]);
    assert_eq!(
        find("/s", Some("not size = 5MB"), Some("*.fits")).unwrap(),
        ["/s/m31/y.fits", "/s/m33/x.fits"]
    );
    assert_eq!(find("/", Some("size = 5MB or size = 8MB"), None).unwrap(), ["/s/m31/raw/x.fits", "/t/x.txt"]);
    assert_eq!(find("/s/m31", None, None).unwrap().len(), 3);
    assert!(find("/s/m31/y.fits", None, None).is_err());
    let error = find("/", None, Some("[")).unwrap_err().to_string();
    assert!(error.starts_with("cannot read the name pattern `[`: "), "{error}");
    // Entries below a trashed collection are in the trash too.
    catalog.trash(&path("/s/m31")).unwrap();
    let all = Find { condition: Some("size > 0".parse().unwrap()), ..Find::default() };
    assert_eq!(catalog.find(&all, None, 10).unwrap().found.len(), 2);
    assert_eq!(catalog.find(&Find::default(), None, 10).unwrap().found.len(), 5);
}
