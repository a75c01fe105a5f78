//! Predicates over index columns: a tree of value sets. `translate` builds them from SQL expressions,
//! `pruning` excludes slots and blocks by statistics, `evaluation` selects elements by their cells,
//! `display` prints them. Cells are those of `holdfast-format`.

mod display;
mod evaluation;
mod interval_set;
mod pruning;
mod translate;

pub use evaluation::ColumnCells;
pub use interval_set::IntervalSet;
pub use pruning::{ColumnStatistics, PruningStatistics, SearchedValues, prefix};
pub use translate::{ColumnLookup, translate};

use std::ops::Bound;

/// Which values of a column are wanted. Cells are in the order of their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueSet {
    /// Words.
    Words(IntervalSet<u64>),
    /// Wide words.
    Wide(IntervalSet<u128>),
    /// Texts.
    Bytes(IntervalSet<Vec<u8>>),
}

impl ValueSet {
    /// What is not wanted.
    #[must_use]
    pub fn complement(&self) -> Self {
        match self {
            Self::Words(spans) => Self::Words(spans.complement()),
            Self::Wide(spans) => Self::Wide(spans.complement()),
            Self::Bytes(spans) => Self::Bytes(spans.complement()),
        }
    }

    /// What is wanted by both or by either; `None` where they are of different classes.
    fn join(&self, other: &Self, and: bool) -> Option<Self> {
        macro_rules! join {
            ($($class:ident),*) => {
                match (self, other) {
                    $((Self::$class(a), Self::$class(b)) => {
                        Some(Self::$class(if and { a.and(b) } else { a.or(b) }))
                    })*
                    _ => None,
                }
            };
        }
        join!(Words, Wide, Bytes)
    }

    /// What is wanted by any of them; `None` of none, or where they are of different classes. Half with half, so that many are no
    /// trouble.
    fn any(mut all: Vec<Self>) -> Option<Self> {
        while all.len() > 1 {
            let join = |two: &[Self]| match two {
                [one, other] => one.join(other, false),
                one => one.first().cloned(),
            };
            all = all.chunks(2).map(join).collect::<Option<_>>()?;
        }
        all.pop()
    }

    fn is_none(&self) -> bool {
        match self {
            Self::Words(spans) => spans.is_none(),
            Self::Wide(spans) => spans.is_none(),
            Self::Bytes(spans) => spans.is_none(),
        }
    }
}

/// A condition. What is unknown because a cell is null counts as not fulfilled, which is what a query does with it;
/// so a condition cannot be negated afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predicate {
    /// Always, or never.
    Constant(bool),
    /// The cell of that column is among these.
    Among(usize, ValueSet),
    /// The cell of that column is null, or is not.
    Null(usize, bool),
    /// All of them.
    All(Vec<Predicate>),
    /// Any of them.
    Any(Vec<Predicate>),
}

impl Predicate {
    /// All of some conditions.
    pub fn all(conditions: impl IntoIterator<Item = Self>) -> Self {
        Self::fold(conditions, true)
    }

    /// Any of some conditions.
    pub fn any(conditions: impl IntoIterator<Item = Self>) -> Self {
        Self::fold(conditions, false)
    }

    /// Flattens, and joins what is said of one column.
    fn fold(conditions: impl IntoIterator<Item = Self>, and: bool) -> Self {
        let mut parts: Vec<Self> = Vec::new();
        for condition in conditions {
            match condition {
                Self::Constant(is) if is == and => {}
                Self::Constant(is) => return Self::Constant(is),
                Self::All(inner) if and => parts.extend(inner),
                Self::Any(inner) if !and => parts.extend(inner),
                other => parts.push(other),
            }
        }
        let mut joined: Vec<Self> = Vec::with_capacity(parts.len());
        for part in parts {
            let same = joined.iter_mut().find_map(|known| match (&*known, &part) {
                (Self::Among(a, wanted), Self::Among(b, more)) if a == b => {
                    wanted.join(more, and).map(|wanted| (known, wanted))
                }
                _ => None,
            });
            match same {
                Some((known, wanted)) => {
                    if let Self::Among(_, place) = known {
                        *place = wanted;
                    }
                }
                None => joined.push(part),
            }
        }
        let never = |part: &Self| matches!(part, Self::Among(_, wanted) if wanted.is_none());
        if and && joined.iter().any(never) {
            return Self::Constant(false);
        }
        if !and {
            joined.retain(|part| !never(part));
        }
        match joined.len() {
            0 => Self::Constant(and),
            1 => joined.remove(0),
            _ if and => Self::All(joined),
            _ => Self::Any(joined),
        }
    }

    /// The columns that it looks at.
    pub fn columns(&self) -> Vec<usize> {
        let mut all = Vec::new();
        self.visit(&mut |column| all.push(column));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Least and greatest word of a column that it may be fulfilled with; none: it does not say.
    pub fn bounds(&self, column: usize) -> (Option<u64>, Option<u64>) {
        match self {
            Self::Among(at, ValueSet::Words(spans)) if *at == column => {
                let edge = |bound: &Bound<u64>| match bound {
                    Bound::Included(word) | Bound::Excluded(word) => Some(*word),
                    Bound::Unbounded => None,
                };
                let (mut low, mut high) = (None, None);
                if let Some((first, _)) = spans.iter().next() {
                    low = edge(first);
                }
                if let Some((_, last)) = spans.iter().next_back() {
                    high = edge(last);
                }
                (low, high)
            }
            // What is said of one column stands together.
            Self::All(parts) => parts
                .iter()
                .map(|part| part.bounds(column))
                .fold((None, None), |(low, high), (l, h)| (low.or(l), high.or(h))),
            _ => (None, None),
        }
    }

    /// As much of it as some columns tell: whatever fulfils it fulfils that.
    #[must_use]
    pub fn told_by(&self, tells: &impl Fn(usize) -> bool) -> Self {
        match self {
            Self::Among(column, _) | Self::Null(column, _) if !tells(*column) => Self::Constant(true),
            Self::Constant(_) | Self::Among(..) | Self::Null(..) => self.clone(),
            Self::All(parts) => Self::all(parts.iter().map(|part| part.told_by(tells))),
            Self::Any(parts) => Self::any(parts.iter().map(|part| part.told_by(tells))),
        }
    }

    fn visit(&self, see: &mut impl FnMut(usize)) {
        match self {
            Self::Constant(_) => {}
            Self::Among(column, _) | Self::Null(column, _) => see(*column),
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.visit(see)),
        }
    }
}
