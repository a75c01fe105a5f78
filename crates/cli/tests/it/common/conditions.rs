//! Elements of which nothing is the same for long, and conditions on them in both languages: SQL, and a naive look at one. Some are made
//! by chance.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

use std::cmp::Ordering;

pub const BYTES: usize = 64;
/// A mark is an element's head; some elements have no more either.
pub const HEAD: usize = 16;
/// Conditions that are made by chance, beside the others.
pub const MADE: usize = 6;

/// An element of a run of the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Element {
    pub run: u32,
    pub number: u64,
}

impl Element {
    pub fn key(self) -> u32 {
        (self.number.wrapping_mul(0x9e37_79b9) >> 7) as u32 % 1000
    }

    pub fn is_short(self) -> bool {
        self.number % 13 == 5
    }

    /// Null in those that are short.
    pub fn word(self) -> Option<String> {
        let word = self.number % 11;
        (!self.is_short()).then(|| if word > 0 { format!("w{word}") } else { String::new() })
    }

    /// Null in those that are short.
    pub fn float(self) -> Option<f64> {
        let float =
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, -2.25, 1e300, 0.5][(self.number % 7) as usize];
        (!self.is_short()).then_some(float)
    }

    /// What it has in one of the columns, by a number that says which of two is greater. To the engine NaN is greater than all.
    pub fn rank(self, column: usize) -> Option<u64> {
        match column {
            0 => Some(self.run.into()),
            1 => Some(self.number),
            2 => Some(self.key().into()),
            3 => self.word().as_deref().map(rank_of_word),
            _ => self.float().map(rank_of_float),
        }
    }

    /// Whether there is a mark beside it, in a stream of its own.
    pub fn is_marked(self) -> bool {
        self.number % 100 == 31
    }

    pub fn bytes(self) -> Vec<u8> {
        let mut bytes =
            [self.run.to_le_bytes().as_slice(), &self.number.to_le_bytes(), &self.key().to_le_bytes()]
                .concat();
        if let (Some(word), Some(float)) = (self.word(), self.float()) {
            bytes.resize(BYTES, 0);
            bytes[16..16 + word.len()].copy_from_slice(word.as_bytes());
            bytes[24..32].copy_from_slice(&float.to_le_bytes());
        }
        bytes
    }

    /// As it is sent, behind its length.
    pub fn sent(self) -> Vec<u8> {
        let bytes = self.bytes();
        [&(bytes.len() as u32).to_le_bytes(), bytes.as_slice()].concat()
    }

    pub fn mark(self) -> Vec<u8> {
        self.bytes()[..HEAD].to_vec()
    }

    pub fn head(bytes: &[u8]) -> Self {
        let run = u32::from_le_bytes(bytes[..4].try_into().unwrap());
        Self { run, number: u64::from_le_bytes(bytes[4..12].try_into().unwrap()) }
    }

    pub fn of(bytes: &[u8]) -> Self {
        let element = Self::head(bytes);
        assert_eq!(element.bytes(), bytes, "{element:?}");
        element
    }

    /// Elements as they were sent, one after the other.
    pub fn all(mut bytes: &[u8]) -> Vec<Self> {
        let mut all = Vec::new();
        while let Some((length, others)) = bytes.split_first_chunk::<4>() {
            let (one, others) = others.split_at(u32::from_le_bytes(*length) as usize);
            all.push(Self::of(one));
            bytes = others;
        }
        all
    }
}

/// A condition, in both languages.
pub struct Condition {
    pub sql: String,
    pub is: Box<dyn Fn(Element) -> bool>,
}

/// What one is and the other is too, or is not: that looks at the stream twice.
pub fn twice(one: Condition, other: Condition, not: bool) -> Condition {
    let word = if not { "not in" } else { "in" };
    Condition {
        sql: format!("({}) and ordinal {word} (select ordinal from log where {})", one.sql, other.sql),
        is: Box::new(move |e| (one.is)(e) && (other.is)(e) != not),
    }
}

pub const COLUMNS: [&str; 5] = ["run", "n", "key", "word", "f"];
/// Whether an order of two is one of those that an operator is about.
pub type Holds = fn(Ordering) -> bool;

pub const OPERATORS: [(&str, Holds); 6] = [
    ("=", Ordering::is_eq),
    ("<>", Ordering::is_ne),
    ("<", Ordering::is_lt),
    ("<=", Ordering::is_le),
    (">", Ordering::is_gt),
    (">=", Ordering::is_ge),
];
pub const FLOATS: [(&str, f64); 8] = [
    ("-1e300", -1e300),
    ("-3.0", -3.0),
    ("-2.25", -2.25),
    ("0.5", 0.5),
    ("1.5", 1.5),
    ("1e9", 1e9),
    ("1e300", 1e300),
    ("cast('NaN' as double)", f64::NAN),
];

pub fn rank_of_word(word: &str) -> u64 {
    let mut bytes = [0; 8];
    bytes[..word.len()].copy_from_slice(word.as_bytes());
    u64::from_be_bytes(bytes)
}

pub fn rank_of_float(float: f64) -> u64 {
    let bits = float.to_bits();
    if float.is_sign_negative() { !bits } else { bits | 1 << 63 }
}

/// Numbers by chance, the same ones for the same beginning.
pub struct Chance(u64);

impl Chance {
    pub fn below(&mut self, count: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) % count
    }

    /// A value that a column may have, as it is written, and its rank.
    pub fn value(&mut self, column: usize) -> (String, u64) {
        let number = match column {
            0 => self.below(5),
            1 => 100_000 + self.below(250_000),
            2 => self.below(1000),
            3 => {
                let word = self.below(13);
                let word = if word > 0 { format!("w{word}") } else { String::new() };
                return (format!("'{word}'"), rank_of_word(&word));
            }
            _ => {
                let (text, float) = FLOATS[self.below(8) as usize];
                return (text.into(), rank_of_float(float));
            }
        };
        (number.to_string(), number)
    }

    /// What is said of one column.
    pub fn comparison(&mut self) -> Made {
        let column = self.below(5) as usize;
        let name = COLUMNS[column];
        let not = self.below(2) == 1;
        match self.below(9) as usize {
            6 => {
                let mut ends = [self.value(column), self.value(column)];
                ends.sort_by_key(|(_, rank)| *rank);
                let [(low, from), (high, to)] = ends;
                let is = move |e: Element| e.rank(column).map(|rank| (from..=to).contains(&rank));
                (format!("{name} between {low} and {high}"), Box::new(is))
            }
            7 => {
                let (texts, ranks): (Vec<String>, Vec<u64>) = (0..3).map(|_| self.value(column)).unzip();
                let word = if not { "not in" } else { "in" };
                let is = move |e: Element| e.rank(column).map(|rank| ranks.contains(&rank) != not);
                (format!("{name} {word} ({})", texts.join(", ")), Box::new(is))
            }
            8 => {
                let word = if not { "is not null" } else { "is null" };
                let is = move |e: Element| Some(e.rank(column).is_none() != not);
                (format!("{name} {word}"), Box::new(is))
            }
            operator => {
                let ((sign, holds), (text, other)) = (OPERATORS[operator], self.value(column));
                let is = move |e: Element| e.rank(column).map(|rank| holds(rank.cmp(&other)));
                (format!("{name} {sign} {text}"), Box::new(is))
            }
        }
    }

    /// Several of them together, in so many steps at most.
    pub fn tree(&mut self, depth: u32) -> Made {
        let kind = if depth > 0 { self.below(4) } else { 0 };
        if kind == 0 {
            return self.comparison();
        }
        let (sql, one) = self.tree(depth - 1);
        if kind == 1 {
            return (format!("not ({sql})"), Box::new(move |e: Element| one(e).map(|is| !is)));
        }
        let (other_sql, other) = self.tree(depth - 1);
        // What each of them can decide alone.
        let (word, decides) = if kind == 2 { ("and", false) } else { ("or", true) };
        let is = move |e: Element| {
            let both @ [one, other] = [one(e), other(e)];
            if both.contains(&Some(decides)) { Some(decides) } else { one.and(other).map(|_| !decides) }
        };
        (format!("({sql} {word} {other_sql})"), Box::new(is))
    }
}

/// A condition in the making, of which it may not be known whether it holds.
pub type Made = (String, Box<dyn Fn(Element) -> Option<bool>>);

/// Conditions that are made by chance: such as some of the elements are, and not most of them.
pub fn made(salt: u32) -> Vec<Condition> {
    let mut chance = Chance((u64::from(salt) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let some =
        (0..90_u32).map(|number| Element { run: number % 4, number: 120_000 + u64::from(number) * 2_003 });
    let mut all = Vec::new();
    while all.len() < MADE {
        let (sql, told) = chance.tree(3);
        let is = move |e: Element| told(e) == Some(true);
        if (1..=45).contains(&some.clone().filter(|element| is(*element)).count()) {
            all.push(Condition { sql, is: Box::new(is) });
        }
    }
    all
}

pub fn conditions(salt: u32) -> Vec<Condition> {
    let of = |sql: String, is: Box<dyn Fn(Element) -> bool>| Condition { sql, is };
    let (key, word) = (salt * 37 % 1000, format!("w{}", salt % 13));
    let (low, high, other) = (key / 2, key / 2 + 3, word.clone());
    let mut all = vec![
        of("1 = 1".into(), Box::new(|_| true)),
        of(format!("key = {key}"), Box::new(move |e| e.key() == key)),
        of(format!("key between {low} and {high}"), Box::new(move |e| (low..=high).contains(&e.key()))),
        of(
            format!("word = '{word}' and key < {key}"),
            Box::new(move |e| e.word().as_deref() == Some(&word) && e.key() < key),
        ),
        of(
            format!("not (key < 990) or n % 500 = {}", salt % 500),
            Box::new(move |e| e.key() >= 990 || e.number % 500 == u64::from(salt % 500)),
        ),
        of(
            format!("word = '' and key in ({low}, {high}, {key})"),
            Box::new(move |e| e.word().as_deref() == Some("") && [low, high, key].contains(&e.key())),
        ),
        of(format!("word is null and key > {key}"), Box::new(move |e| e.word().is_none() && e.key() > key)),
        // Of what is not known it is not known whether it is another.
        of(
            format!("word <> '{other}' and key <= {low}"),
            Box::new(move |e| e.word().is_some_and(|word| word != other) && e.key() <= low),
        ),
        of(
            format!("not (f < 1 and word = 'w3') and key < {high}"),
            Box::new(move |e| {
                let less = e.float().is_some_and(|float| float.total_cmp(&1.0).is_lt());
                let is = less && e.word().as_deref() == Some("w3");
                !(e.is_short() || is) && e.key() < high
            }),
        ),
        // To the engine NaN is greater than all.
        of(
            format!("f > 1e9 and key < {key}"),
            Box::new(move |e| e.float().is_some_and(|f| f.total_cmp(&1e9).is_gt()) && e.key() < key),
        ),
        of(
            format!("f = 'NaN' and key <> {key}"),
            Box::new(move |e| e.float().is_some_and(f64::is_nan) && e.key() != key),
        ),
        of(
            format!("not (f between -3 and 1.5) or key = {high}"),
            Box::new(move |e| {
                e.float().is_some_and(|float| !(-3.0..=1.5).contains(&float)) || e.key() == high
            }),
        ),
    ];
    all.extend(made(salt));
    all
}

/// One of them.
pub fn condition(salt: u32, number: u32) -> Condition {
    let mut all = conditions(salt);
    all.swap_remove(number as usize % all.len())
}
