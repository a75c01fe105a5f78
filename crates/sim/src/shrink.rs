//! Shrinker: runs a list of steps from a seed, and finds a shorter list that fails as well.

use crate::op::{Diet, Op, ops};
use crate::world::{Setup, World};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs that are made to find a shorter list.
const TRIES: usize = 300;

/// Carries out `steps` in a fresh world of `seed`.
pub fn run(seed: u64, steps: &[Op]) -> Result<World, String> {
    let go = || {
        let mut world = World::new(Setup::draw(seed))?;
        for (at, step) in steps.iter().enumerate() {
            world.run(step).map_err(|e| format!("step {at}, {step:?}, at {}: {e}", world.now().0))?;
        }
        world.finish().map_err(|e| format!("at the end: {e}"))?;
        Ok(world)
    };
    catch_unwind(AssertUnwindSafe(go)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

/// Draws `count` steps from `seed` and carries them out. An error tells the seed, the fewest steps found that fail, and
/// how to run it again.
pub fn check(test: &str, seed: u64, diet: Diet, count: usize) -> Result<World, String> {
    let all = ops(seed, diet, count);
    let first = match run(seed, &all) {
        Ok(world) => return Ok(world),
        Err(first) => first,
    };
    let (steps, error) = shrink(seed, all, first.clone());
    let mut report = format!("seed {seed}: {first}\nfewest steps found ({}): {error}\n", steps.len());
    let _ = writeln!(report, "setup: {:?}", Setup::draw(seed));
    for step in &steps {
        let _ = writeln!(report, "    {step:?},");
    }
    let _ = write!(report, "again: HOLDFAST_SEED={seed} cargo test -p holdfast-sim {test}");
    Err(report)
}

/// Leaves out pieces, large ones first, as long as what is left still fails.
fn shrink(seed: u64, mut steps: Vec<Op>, mut error: String) -> (Vec<Op>, String) {
    let mut piece = steps.len() / 2;
    let mut tries = 0;
    while piece > 0 && tries < TRIES {
        let mut at = 0;
        while at < steps.len() && tries < TRIES {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + piece).min(fewer.len()));
            tries += 1;
            match run(seed, &fewer) {
                Err(still) => (steps, error) = (fewer, still),
                Ok(_) => at += piece,
            }
        }
        piece /= 2;
    }
    (steps, error)
}

/// Says which seed it was, and how to run it again, where a test of it fails: its package and its own name.
#[derive(Debug)]
pub struct SeedReport(pub u64, pub &'static str, pub &'static str);

impl Drop for SeedReport {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(seed, package, test) = self;
            eprintln!("again: HOLDFAST_SEED={seed} cargo test -p {package} --test it {test}");
        }
    }
}

/// The seeds that a test runs: the one in `HOLDFAST_SEED`, or `count` from 1 on (times `HOLDFAST_SEEDS`, if that is set).
pub fn seeds(count: u64) -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("HOLDFAST_SEED") {
        Some(seed) => vec![seed],
        None => (1..=count * number("HOLDFAST_SEEDS").unwrap_or(1)).collect(),
    }
}
