//! Generator of `src/cipher/des/sboxes.rs`: a randomised search for small circuits of the DES substitution boxes.
//!
//! Usage: `cargo run --release --example circuit_search SECONDS [SEED] > src/cipher/des/sboxes.rs`. SECONDS is the search
//! time of each box. A circuit is a list of two-input gates over truth tables of 64 bits, shared by value (hash-consing).
//! An output is realised on the positions that matter (the care set). An existing gate serves first, then one or two new
//! gates. Otherwise a selector decomposes the output, by Davio expansions or by AND and OR forms with don't-cares.
//! The search restarts with another order of outputs and selectors and keeps the cheapest circuit.

#[path = "../src/cipher/des/tables.rs"]
#[allow(dead_code)]
mod tables;

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Two-input gates that SSE2, AVX2 and AVX-512 all have.
#[derive(Clone, Copy, PartialEq)]
enum Op {
    Input,
    And,
    Or,
    Xor,
    /// First operand and not the second.
    AndNot,
    /// Complement of the first operand.
    Not,
}

const PAIRS: [(Op, bool); 5] =
    [(Op::And, false), (Op::Or, false), (Op::Xor, false), (Op::AndNot, false), (Op::AndNot, true)];

impl Op {
    fn table(self, a: u64, b: u64) -> u64 {
        match self {
            Op::Input => a,
            Op::And => a & b,
            Op::Or => a | b,
            Op::Xor => a ^ b,
            Op::AndNot => a & !b,
            Op::Not => !a,
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * end as u128) >> 64) as usize
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            let other = self.below(at + 1);
            items.swap(at, other);
        }
    }
}

#[derive(Clone)]
struct Circuit {
    tables: Vec<u64>,
    gates: Vec<(Op, usize, usize)>,
}

impl Circuit {
    /// Six input variables: input bit 1 is the most significant bit of the position.
    fn new() -> Self {
        let tables = (0..6)
            .map(|input| (0..64).filter(|x| x >> (5 - input) & 1 == 1).fold(0, |table, x| table | 1 << x))
            .collect();
        Self { tables, gates: vec![(Op::Input, 0, 0); 6] }
    }

    fn len(&self) -> usize {
        self.tables.len()
    }

    fn add(&mut self, op: Op, a: usize, b: usize) -> usize {
        let table = op.table(self.tables[a], self.tables[b]);
        if let Some(at) = self.tables.iter().position(|&other| other == table) {
            return at;
        }
        self.tables.push(table);
        self.gates.push((op, a, b));
        self.len() - 1
    }

    fn pair(&mut self, op: (Op, bool), a: usize, b: usize) -> usize {
        if op.1 { self.add(op.0, b, a) } else { self.add(op.0, a, b) }
    }

    /// Removes gates that no output needs.
    fn prune(&self, outputs: &[usize]) -> (Self, Vec<usize>) {
        let mut used = vec![false; self.len()];
        for &at in outputs {
            used[at] = true;
        }
        for at in (6..self.len()).rev().collect::<Vec<_>>() {
            if used[at] {
                used[self.gates[at].1] = true;
                used[self.gates[at].2] = true;
            }
        }
        let mut kept = Self::new();
        let mut place: Vec<usize> = (0..6).collect();
        for (&(op, a, b), used) in self.gates.iter().zip(used).skip(6) {
            let new = if used { kept.add(op, place[a], place[b]) } else { usize::MAX };
            place.push(new);
        }
        let outputs = outputs.iter().map(|&at| place[at]).collect();
        (kept, outputs)
    }

    /// Estimated number of three-input instructions after a compiler merges gates with one reader.
    fn merged(&self, outputs: &[usize]) -> usize {
        let mut readers = vec![0; self.len()];
        for &at in outputs {
            readers[at] += 2;
        }
        for (op, a, b) in &self.gates[6..] {
            readers[*a] += 1;
            if *op != Op::Not {
                readers[*b] += 1;
            }
        }
        let mut absorbed = vec![false; self.len()];
        for at in (6..self.len()).rev() {
            if absorbed[at] {
                continue;
            }
            let (op, a, b) = self.gates[at];
            let fits = |at: usize| at >= 6 && readers[at] == 1;
            if fits(a) {
                absorbed[a] = true;
            } else if op != Op::Not && fits(b) {
                absorbed[b] = true;
            }
        }
        (6..self.len()).filter(|&at| !absorbed[at]).count()
    }
}

struct Search {
    random: Random,
    width: [usize; 8],
}

impl Search {
    /// Adds gates until one equals `target` on `care`; `limit` is the largest length of the circuit.
    fn realise(
        &mut self,
        c: &mut Circuit,
        target: u64,
        care: u64,
        limit: usize,
        depth: usize,
    ) -> Option<usize> {
        let n = c.len();
        let start = self.random.below(n);
        let order: Vec<usize> = (0..n).map(|at| (at + start) % n).collect();
        if let Some(&at) = order.iter().find(|&&at| (c.tables[at] ^ target) & care == 0) {
            return Some(at);
        }
        if n + 1 > limit {
            return None;
        }
        let wanted = target & care;
        let opposite = !target & care;
        if let Some(&at) = order.iter().find(|&&at| c.tables[at] & care == opposite) {
            return Some(c.add(Op::Not, at, at));
        }
        let mut pairs: Vec<(u64, usize, usize, usize)> = Vec::with_capacity(n * n * 3);
        let mut complement = None;
        for (i, &a) in order.iter().enumerate() {
            for &b in &order[..i] {
                for (kind, op) in PAIRS.iter().enumerate() {
                    let (x, y) = if op.1 { (b, a) } else { (a, b) };
                    let table = op.0.table(c.tables[x], c.tables[y]) & care;
                    if table == wanted {
                        return Some(c.add(op.0, x, y));
                    }
                    if table == opposite {
                        complement = Some((op.0, x, y));
                    }
                    pairs.push((table, kind, a, b));
                }
            }
        }
        if n + 2 > limit {
            return None;
        }
        if let Some((op, x, y)) = complement {
            let at = c.add(op, x, y);
            return Some(c.add(Op::Not, at, at));
        }
        if let Some(found) = self.triple(c, &pairs, wanted, care, &order) {
            return Some(found);
        }
        if n + 3 > limit {
            return None;
        }
        self.decompose(c, target, care, limit, depth)
    }

    /// Realises the target by a gate on a pair and a third gate, or on the complement of such a pair.
    fn triple(
        &mut self,
        c: &mut Circuit,
        pairs: &[(u64, usize, usize, usize)],
        wanted: u64,
        care: u64,
        order: &[usize],
    ) -> Option<usize> {
        let by_table: HashMap<u64, usize, Mix> =
            pairs.iter().enumerate().map(|(at, pair)| (pair.0, at)).collect();
        for &third in order {
            let table = c.tables[third] & care;
            if let Some(&at) = by_table.get(&(table ^ wanted)) {
                let (_, kind, a, b) = pairs[at];
                let first = c.pair(PAIRS[kind], a, b);
                return Some(c.add(Op::Xor, first, third));
            }
            let and = wanted & !table == 0;
            let or = table & !wanted == 0;
            let not = wanted & table == 0;
            let from = (care & !table) & !wanted == 0;
            if !(and || or || not || from) {
                continue;
            }
            let skip = self.random.below(pairs.len());
            for at in 0..pairs.len() {
                let at = if at + skip < pairs.len() { at + skip } else { at + skip - pairs.len() };
                let (value, kind, a, b) = pairs[at];
                let op = if and && value & table == wanted {
                    Op::And
                } else if or && value | table == wanted {
                    Op::Or
                } else if (not && value & !table == wanted) || (from && table & !value == wanted) {
                    Op::AndNot
                } else {
                    continue;
                };
                let first = c.pair(PAIRS[kind], a, b);
                let forward = value & !table == wanted;
                return Some(match op {
                    Op::AndNot if !forward => c.add(op, third, first),
                    _ => c.add(op, first, third),
                });
            }
        }
        None
    }

    /// Splits the care set by a selector and realises both parts.
    fn decompose(
        &mut self,
        c: &mut Circuit,
        target: u64,
        care: u64,
        limit: usize,
        depth: usize,
    ) -> Option<usize> {
        let mut forms: Vec<(usize, usize)> = (0..36).map(|at| (at / 6, at % 6)).collect();
        if self.random.below(3) == 0 {
            for _ in 0..12 {
                forms.push((self.random.below(c.len()), self.random.below(6)));
            }
        }
        self.random.shuffle(&mut forms);
        forms.sort_by_key(|form| form.1 >= 2);
        let kept = self.width[depth.min(7)];
        let mut best: Option<(Circuit, usize)> = None;
        let mut limit = limit;
        let mut tried = 0;
        // Davio forms (0, 1) come first, since they halve the care sets; the other forms take a quarter of the tries.
        let davio = forms.iter().filter(|form| form.1 < 2).count();
        let mut mixed: Vec<(usize, usize)> = Vec::new();
        let (first, second) = forms.split_at(davio);
        let mut second = second.iter();
        for (at, form) in first.iter().enumerate() {
            mixed.push(*form);
            if at % 3 == 2 {
                mixed.extend(second.next());
            }
        }
        for (selector, form) in mixed {
            let select = c.tables[selector];
            if care & select == 0 || care & !select == 0 {
                continue;
            }
            tried += 1;
            if tried > kept {
                break;
            }
            let mut trial = c.clone();
            if let Some(at) = self.form(&mut trial, selector, form, target, care, limit, depth + 1)
                && trial.len() <= limit
            {
                limit = trial.len() - 1;
                best = Some((trial, at));
            }
        }
        let (circuit, at) = best?;
        *c = circuit;
        Some(at)
    }

    #[allow(clippy::too_many_arguments)]
    fn form(
        &mut self,
        c: &mut Circuit,
        selector: usize,
        form: usize,
        target: u64,
        care: u64,
        limit: usize,
        depth: usize,
    ) -> Option<usize> {
        let select = c.tables[selector];
        let (near, far) = if form.is_multiple_of(2) { (!select, select) } else { (select, !select) };
        let limit = limit - 1;
        // `near` is the half on which the first part alone is the target.
        let first_care = match form / 2 {
            0 => care & near,
            1 => care & (near | target),
            _ => care & (near | !target),
        };
        let first = self.realise(c, target, first_care, limit, depth)?;
        let table = c.tables[first];
        let (second_target, second_care) = match form / 2 {
            0 => (target ^ table, care & far),
            1 => (target, care & far & table),
            _ => (target, care & far & !table),
        };
        let second = self.realise(c, second_target, second_care, limit, depth)?;
        Some(match (form / 2, form % 2) {
            (0, 0) => {
                let gate = c.add(Op::And, second, selector);
                c.add(Op::Xor, first, gate)
            }
            (0, _) => {
                let gate = c.add(Op::AndNot, second, selector);
                c.add(Op::Xor, first, gate)
            }
            // Conjunctive: first & (second | near); disjunctive: first | (second & far).
            (1, 1) => {
                let gate = c.add(Op::Or, second, selector);
                c.add(Op::And, first, gate)
            }
            (1, _) => {
                let gate = c.add(Op::AndNot, selector, second);
                c.add(Op::AndNot, first, gate)
            }
            (_, 0) => {
                let gate = c.add(Op::And, second, selector);
                c.add(Op::Or, first, gate)
            }
            _ => {
                let gate = c.add(Op::AndNot, second, selector);
                c.add(Op::Or, first, gate)
            }
        })
    }
}

/// Multiplicative hash of one integer; the standard hash would take most of the search time.
#[derive(Clone, Copy, Default)]
struct Mix;

struct Mixed(u64);

impl std::hash::BuildHasher for Mix {
    type Hasher = Mixed;

    fn build_hasher(&self) -> Mixed {
        Mixed(0)
    }
}

impl std::hash::Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, value: u64) {
        self.0 = (value ^ value >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }
}

/// Truth table of output bit `bit` (0 is most significant) of a box.
fn target(number: usize, bit: usize) -> u64 {
    (0..64)
        .filter(|&x| tables::substitute(number, x) >> (3 - bit) & 1 == 1)
        .fold(0, |table, x| table | 1 << x)
}

fn search(number: usize, time: Duration, seed: u64) -> (Circuit, Vec<usize>) {
    let start = Instant::now();
    let mut search = Search { random: Random(seed), width: [0; 8] };
    let mut best: Option<(usize, Circuit, Vec<usize>)> = None;
    let mut least = 120;
    let mut tries = 0;
    while start.elapsed() < time || best.is_none() {
        tries += 1;
        let scale = 1 + search.random.below(3);
        search.width = [1 + 2 * scale, 1 + scale, scale, 1 + search.random.below(2), 1, 1, 1, 1];
        let mut outputs = [0, 1, 2, 3];
        search.random.shuffle(&mut outputs);
        let mut circuit = Circuit::new();
        let mut places = vec![0; 4];
        let all = outputs.iter().all(|&bit| {
            match search.realise(&mut circuit, target(number, bit), u64::MAX, least + 6, 0) {
                Some(at) => places[bit] = at,
                None => return false,
            }
            true
        });
        if !all {
            continue;
        }
        let (circuit, places) = circuit.prune(&places);
        let gates = circuit.len() - 6;
        let cost = gates * 2 + circuit.merged(&places) * 3;
        if best.as_ref().is_none_or(|best| cost < best.0) {
            eprintln!("S{}: {gates} gates, {} merged, try {tries}", number + 1, circuit.merged(&places));
            least = gates + 2;
            best = Some((cost, circuit, places));
        }
    }
    eprintln!("S{}: {tries} tries", number + 1);
    match best {
        Some((_, circuit, places)) => (circuit, places),
        None => unreachable!("the loop ends with a circuit"),
    }
}

fn print(number: usize, circuit: &Circuit, outputs: &[usize]) {
    let name = |at: usize| if at < 6 { format!("a{}", at + 1) } else { format!("g{}", at - 5) };
    println!(
        "\n/// Circuit of S{}: {} gates, the first input and output bit most significant.",
        number + 1,
        circuit.len() - 6
    );
    println!("#[inline(always)]");
    println!(
        "pub(super) fn s{}<S: Simd>(simd: S, [a1, a2, a3, a4, a5, a6]: Inputs<S>) -> Outputs<S> {{",
        number + 1
    );
    for at in 6..circuit.len() {
        let (op, a, b) = circuit.gates[at];
        let (a, b) = (name(a), name(b));
        let gate = match op {
            Op::And => format!("simd.and_u64s({a}, {b})"),
            Op::Or => format!("simd.or_u64s({a}, {b})"),
            Op::Xor => format!("simd.xor_u64s({a}, {b})"),
            Op::AndNot => format!("simd.and_u64s({a}, simd.not_u64s({b}))"),
            Op::Not | Op::Input => format!("simd.not_u64s({a})"),
        };
        println!("    let {} = {gate};", name(at));
    }
    let names: Vec<String> = outputs.iter().map(|&at| name(at)).collect();
    println!("    [{}]\n}}", names.join(", "));
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(60.0);
    let seed: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(0x5ca1_ab1e);
    println!("//! Circuits of the DES substitution boxes on bit slices.");
    println!("//!");
    println!(
        "//! Generated: do not edit. The command `cargo run --release --example circuit_search {seconds} {seed}` searched the"
    );
    println!(
        "//! circuits for {seconds} seconds a box, from nothing but the tables of FIPS 46-3. A search that is limited by time"
    );
    println!(
        "//! finds other circuits on another machine; the tests of `slices` check whichever are here on all inputs."
    );
    println!(
        "#![allow(clippy::inline_always, reason = \"the instruction set of the caller must reach every gate\")]"
    );
    println!(
        "#![allow(clippy::many_single_char_names, clippy::too_many_lines, reason = \"the file is generated\")]\n"
    );
    println!("use pulp::Simd;\n");
    println!("/// Six input slices of a box.");
    println!("type Inputs<S> = [<S as Simd>::u64s; 6];\n");
    println!("/// Four output slices of a box.");
    println!("type Outputs<S> = [<S as Simd>::u64s; 4];");
    for number in 0..8 {
        let (circuit, outputs) = search(number, Duration::from_secs_f64(seconds), seed + number as u64);
        print(number, &circuit, &outputs);
    }
}
