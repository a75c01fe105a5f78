//! Questions with small results: conditions about one, two and three attributes of which some object has all.

use super::objects::{self, LEAST_SIZE, Random};
use holdfast_catalog::{Condition, Operator, Value};

/// Objects of a share of all that were created last: one in so many.
const RECENT: u64 = 100;

fn compare(attribute: &str, operator: Operator, literal: Value) -> Condition {
    Condition::Compare { attribute: attribute.to_owned(), operator, literal }
}

/// Makes different questions about a number of objects, each with one, two or three conditions.
pub fn questions(conditions: usize, count: usize, objects: u64) -> Vec<Condition> {
    let mut random = Random::new(conditions as u64);
    (0..count).map(|turn| question(conditions, turn, objects, &mut random)).collect()
}

fn question(conditions: usize, turn: usize, objects: u64, random: &mut Random) -> Condition {
    let number = random.below(objects);
    let triples = objects::triples(number);
    let equal = |name: &str| {
        let value = triples.iter().find(|triple| triple.name == name).map(|triple| triple.value.clone());
        compare(name, Operator::Equal, value.unwrap_or(Value::Integer(0)))
    };
    // Jitter makes questions of one shape differ.
    let jitter = random.below(20);
    let newest = |number: u64| {
        compare("dateOfCreation", Operator::AtLeast, objects::date(objects - number.min(objects)))
    };
    let larger_than_all_but = |share: u64| {
        let size = LEAST_SIZE * share * (90 + jitter) / 100;
        compare("size", Operator::Greater, Value::Integer(size as i64))
    };
    let finer = compare("resolution", Operator::Less, objects::resolution(20 + jitter));
    let recent = || newest(objects / RECENT + jitter);
    let mut parts = match (conditions, turn % 4) {
        (1, 0) => vec![newest(1 + jitter)],
        (1, 1) => vec![larger_than_all_but((objects / 20).max(1))],
        (1, _) => vec![equal("name")],
        (2, 0) => vec![equal("creator"), recent()],
        (2, 1) => vec![equal("project"), larger_than_all_but(100)],
        (2, 2) => vec![equal("filetype"), larger_than_all_but(10_000)],
        (2, _) => vec![equal("creator"), equal("resolution")],
        (_, 0) => vec![equal("project"), equal("filetype"), recent()],
        (_, 1) => vec![equal("institution"), finer, larger_than_all_but(100)],
        (_, 2) => vec![equal("location"), equal("creator"), recent()],
        // No condition of these is selective by itself.
        (_, _) => vec![equal("department"), equal("filetype"), larger_than_all_but(30)],
    };
    match (parts.len(), parts.pop()) {
        (1, Some(only)) => only,
        (_, last) => Condition::All(parts.into_iter().chain(last).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_differ_and_read_back() {
        for conditions in 1..=3 {
            let mut all: Vec<String> =
                questions(conditions, 40, 100_000).iter().map(ToString::to_string).collect();
            for text in &all {
                assert!(text.parse::<Condition>().is_ok(), "{text}");
            }
            all.sort();
            all.dedup();
            assert!(all.len() > 30, "{all:?}");
        }
    }
}
