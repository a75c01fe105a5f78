//! Evaluation of a predicate over the cells of index columns: one loop per column, no dispatch per element.

use super::{IntervalSet, Predicate, ValueSet};
use holdfast_format::{Cells, Packed};
use std::ops::Bound::{Excluded, Included, Unbounded};

/// Cells of one column, decoded or packed.
#[derive(Clone, Copy, Debug)]
pub enum ColumnCells<'a> {
    /// As they are, and which of them are null (none: not any).
    Cells(Cells<'a>, Option<&'a [bool]>),
    /// As a block keeps them, none of them null.
    Packed(&'a Packed<'a>),
}

impl Predicate {
    /// Takes out of `picked` the elements that do not fulfil it. `cells` gives the cells of a column; `None` where all of them
    /// are null.
    pub fn pick<'a, F>(&self, picked: &mut [bool], cells: &F)
    where
        F: Fn(usize) -> Option<ColumnCells<'a>>,
    {
        match self {
            Self::Constant(true) => {}
            Self::Constant(false) => picked.fill(false),
            Self::Null(column, wanted) => match cells(*column) {
                None if *wanted => {}
                None => picked.fill(false),
                Some(ColumnCells::Packed(_) | ColumnCells::Cells(_, None)) if *wanted => picked.fill(false),
                Some(ColumnCells::Packed(_) | ColumnCells::Cells(_, None)) => {}
                Some(ColumnCells::Cells(_, Some(nulls))) => {
                    picked.iter_mut().zip(nulls).for_each(|(picked, null)| *picked &= null == wanted);
                }
            },
            Self::Among(column, wanted) => match cells(*column) {
                None => picked.fill(false),
                Some(ColumnCells::Packed(numbers)) => match wanted {
                    ValueSet::Words(spans) => {
                        let closed = closed_words(spans).into_iter();
                        let closed: Vec<_> = closed.map(|(low, high)| (low.into(), high.into())).collect();
                        pick_packed(picked, numbers, &closed);
                    }
                    ValueSet::Wide(spans) => pick_packed(picked, numbers, &closed_wide(spans)),
                    // A column has one class: this is another's.
                    ValueSet::Bytes(_) => picked.fill(false),
                },
                Some(ColumnCells::Cells(cells, nulls)) => {
                    wanted.pick(picked, cells);
                    if let Some(nulls) = nulls {
                        picked.iter_mut().zip(nulls).for_each(|(picked, null)| *picked &= !null);
                    }
                }
            },
            Self::All(parts) => parts.iter().for_each(|part| part.pick(picked, cells)),
            Self::Any(parts) => {
                let mut any = vec![false; picked.len()];
                for part in parts {
                    let mut its = picked.to_vec();
                    part.pick(&mut its, cells);
                    any.iter_mut().zip(its).for_each(|(any, its)| *any |= its);
                }
                picked.copy_from_slice(&any);
            }
        }
    }
}

/// Closed intervals of a set of numbers, for loops over cells.
macro_rules! closed {
    ($name:ident, $cell:ty) => {
        fn $name(spans: &IntervalSet<$cell>) -> Vec<($cell, $cell)> {
            let closed = spans.iter().filter_map(|(low, high)| {
                let low = match low {
                    Included(low) => *low,
                    Excluded(low) => low.checked_add(1)?,
                    Unbounded => <$cell>::MIN,
                };
                let high = match high {
                    Included(high) => *high,
                    Excluded(high) => high.checked_sub(1)?,
                    Unbounded => <$cell>::MAX,
                };
                (low <= high).then_some((low, high))
            });
            closed.collect()
        }
    };
}
closed!(closed_words, u64);
closed!(closed_wide, u128);

/// One span at a time is a loop that the compiler makes vectors of; many are searched.
const FEW: usize = 4;

macro_rules! pick_numbers {
    ($picked:expr, $cells:expr, $closed:expr) => {{
        let (picked, cells, closed) = ($picked, $cells, $closed);
        match closed.as_slice() {
            [] => picked.fill(false),
            [(low, high)] => {
                let span = high - low;
                picked
                    .iter_mut()
                    .zip(cells)
                    .for_each(|(picked, cell)| *picked &= cell.wrapping_sub(*low) <= span);
            }
            few if few.len() <= FEW => picked.iter_mut().zip(cells).for_each(|(picked, cell)| {
                *picked &= few.iter().any(|(low, high)| low <= cell && cell <= high);
            }),
            many => picked.iter_mut().zip(cells).for_each(|(picked, cell)| {
                let at = many.partition_point(|(_, high)| high < cell);
                *picked &= many.get(at).is_some_and(|(low, _)| low <= cell);
            }),
        }
    }};
}

/// The spans as far as `least` and so many more lie in them, counted from `least`.
fn beyond(closed: &[(u128, u128)], least: u128, most: u128) -> Vec<(u128, u128)> {
    let beyond = closed.iter().filter_map(|(low, high)| {
        let (low, high) = (low.saturating_sub(least), high.checked_sub(least)?);
        (low <= most).then_some((low, high.min(most)))
    });
    beyond.collect()
}

/// The numbers of a block one by one, as narrow as they are kept: many of them fit a vector.
macro_rules! pick_narrow {
    ($picked:expr, $least:expr, $over:expr, $closed:expr, $number:ty, $of:expr) => {{
        let closed = beyond($closed, *$least, <$number>::MAX.into());
        let closed: Vec<($number, $number)> =
            closed.iter().map(|(low, high)| (*low as $number, *high as $number)).collect();
        match closed.as_slice() {
            [] => $picked.fill(false),
            [(low, high)] => {
                let (low, span) = (*low, high - low);
                $picked.iter_mut().zip($over.iter()).for_each(|(picked, over)| {
                    *picked &= $of(*over).wrapping_sub(low) <= span;
                });
            }
            many => $picked.iter_mut().zip($over.iter()).for_each(|(picked, over)| {
                let over: $number = $of(*over);
                let at = many.partition_point(|(_, high)| *high < over);
                *picked &= many.get(at).is_some_and(|(low, _)| *low <= over);
            }),
        }
    }};
}

fn pick_packed(picked: &mut [bool], numbers: &Packed<'_>, closed: &[(u128, u128)]) {
    match numbers {
        Packed::Bytes { least, over } => pick_narrow!(picked, least, over, closed, u8, u8::from),
        Packed::Pairs { least, over } => pick_narrow!(picked, least, over, closed, u16, u16::from_le_bytes),
        Packed::Fours { least, over } => pick_narrow!(picked, least, over, closed, u32, u32::from_le_bytes),
        Packed::Planes { least, over } => {
            // Of single values the widest plane tells most times that they are not there.
            let near = beyond(closed, *least, u32::MAX.into());
            let points: Vec<u64> = near.iter().map(|(low, _)| *low as u64).collect();
            let single = points.len() <= FEW && near.iter().all(|(low, high)| low == high);
            if single && !over.may_have(&points) {
                picked.fill(false);
                return;
            }
            let numbers = over.numbers();
            pick_narrow!(picked, least, numbers, closed, u32, u32::from);
        }
        Packed::Listed { values, codes } => {
            let among = |value: &u128| closed.iter().any(|(low, high)| (low..=high).contains(&value));
            // A place for every code there can be.
            let mut wanted = [false; 256];
            wanted.iter_mut().zip(values).for_each(|(wanted, value)| *wanted = among(value));
            picked.iter_mut().zip(*codes).for_each(|(picked, code)| *picked &= wanted[usize::from(*code)]);
        }
    }
}

impl ValueSet {
    fn pick(&self, picked: &mut [bool], cells: Cells<'_>) {
        match (self, cells) {
            (Self::Words(spans), Cells::Words(cells)) => pick_numbers!(picked, cells, closed_words(spans)),
            (Self::Wide(spans), Cells::Wide(cells)) => pick_numbers!(picked, cells, closed_wide(spans)),
            (Self::Bytes(spans), Cells::Bytes(ends, bytes)) => {
                let mut start = 0;
                for (picked, end) in picked.iter_mut().zip(ends) {
                    let end = *end as usize;
                    if *picked {
                        let text = bytes.get(start..end).unwrap_or_default();
                        let at = spans.position(|high| match high {
                            Included(high) => high.as_slice() < text,
                            Excluded(high) => high.as_slice() <= text,
                            Unbounded => false,
                        });
                        *picked = spans.nth(at).is_some_and(|(low, _)| match low {
                            Included(low) => low.as_slice() <= text,
                            Excluded(low) => low.as_slice() < text,
                            Unbounded => true,
                        });
                    }
                    start = end;
                }
            }
            // A column has one class: this is another's.
            _ => picked.fill(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predicate::{ColumnStatistics, PruningStatistics, SearchedValues, prefix};
    use holdfast_format::{CellBuffer, Class};
    use proptest::prelude::*;
    use std::ops::Bound;

    const CLASSES: [Class; 3] = [Class::Word, Class::Wide, Class::Bytes];

    /// A value of a small world: each class writes it in its own way, in the same order.
    type SmallValue = Option<u8>;

    fn text(value: u8) -> Vec<u8> {
        // Longer than what bounds keep, and alike in that.
        let mut text = vec![b'a' + value / 4; 18];
        text.truncate(if value.is_multiple_of(4) { 1 } else { 18 });
        if value % 4 > 1 {
            text.push(value);
        }
        text
    }

    #[derive(Clone, Debug)]
    struct World {
        elements: Vec<[SmallValue; 3]>,
    }

    struct KnownCells<'a> {
        buffers: &'a [CellBuffer],
        elements: &'a [[SmallValue; 3]],
        filtered: bool,
    }

    fn number_of(column: usize, cells: Cells<'_>, at: usize) -> u128 {
        match cells {
            Cells::Words(cells) => u128::from(cells[at]),
            Cells::Wide(cells) => cells[at],
            Cells::Bytes(ends, bytes) => {
                let start = if at == 0 { 0 } else { ends[at - 1] as usize };
                assert_eq!(column, 2);
                prefix(&bytes[start..ends[at] as usize])
            }
        }
    }

    impl PruningStatistics for KnownCells<'_> {
        fn statistics(&self, column: usize) -> Option<ColumnStatistics> {
            let buffer = &self.buffers[column];
            let numbers = (0..buffer.len()).filter(|at| buffer.valid()[*at]);
            let numbers: Vec<u128> = numbers.map(|at| number_of(column, buffer.cells(), at)).collect();
            Some(ColumnStatistics {
                bounds: numbers.iter().min().copied().zip(numbers.iter().max().copied()),
                nulls: Some(buffer.nulls() as u64),
                cells: buffer.len() as u64,
            })
        }

        fn may_have(&self, column: usize, values: &SearchedValues<'_>) -> bool {
            let is = |value: &u8| match values {
                SearchedValues::Words(points) => points.contains(&&word(*value)),
                SearchedValues::Wide(points) => points.contains(&&wide(*value)),
                SearchedValues::Bytes(points) => points.contains(&&text(*value)),
            };
            !self.filtered || self.elements.iter().any(|element| element[column].as_ref().is_some_and(is))
        }
    }

    fn word(value: u8) -> u64 {
        u64::MAX - 23 + u64::from(value)
    }

    fn wide(value: u8) -> u128 {
        u128::from(value) << 70
    }

    fn wanted(column: usize, spans: &IntervalSet<u8>) -> ValueSet {
        fn of<K: Ord + Clone>(spans: &IntervalSet<u8>, make: impl Fn(u8) -> K) -> IntervalSet<K> {
            let edge = |bound: &Bound<u8>| bound.map(&make);
            spans.iter().fold(IntervalSet::none(), |all, (low, high)| {
                all.or(&IntervalSet::between(edge(low), edge(high)))
            })
        }
        match column {
            0 => ValueSet::Words(of(spans, word)),
            1 => ValueSet::Wide(of(spans, wide)),
            _ => ValueSet::Bytes(of(spans, text)),
        }
    }

    fn spans() -> impl Strategy<Value = IntervalSet<u8>> {
        let bound = prop_oneof![
            1 => Just(Unbounded),
            3 => (0..24u8).prop_map(Included),
            3 => (0..24u8).prop_map(Excluded),
        ];
        let span = prop_oneof![
            2 => (0..24u8).prop_map(IntervalSet::point),
            1 => (bound.clone(), bound).prop_map(|(low, high)| IntervalSet::between(low, high)),
        ];
        proptest::collection::vec(span, 0..7)
            .prop_map(|spans| spans.iter().fold(IntervalSet::none(), |all, span| all.or(span)))
    }

    /// A condition, as a tree of what is asked of single columns, and what it is made of.
    #[derive(Clone, Debug)]
    enum NaiveCondition {
        Constant(bool),
        Among(usize, IntervalSet<u8>),
        Null(usize, bool),
        All(Vec<NaiveCondition>),
        Any(Vec<NaiveCondition>),
    }

    impl NaiveCondition {
        fn holds(&self, element: [SmallValue; 3]) -> bool {
            match self {
                Self::Constant(is) => *is,
                Self::Among(column, spans) => element[*column].is_some_and(|value| spans.contains(&value)),
                Self::Null(column, null) => element[*column].is_none() == *null,
                Self::All(parts) => parts.iter().all(|part| part.holds(element)),
                Self::Any(parts) => parts.iter().any(|part| part.holds(element)),
            }
        }

        fn real(&self) -> Predicate {
            match self {
                Self::Constant(is) => Predicate::Constant(*is),
                Self::Among(column, spans) => Predicate::Among(*column, wanted(*column, spans)),
                Self::Null(column, null) => Predicate::Null(*column, *null),
                Self::All(parts) => Predicate::all(parts.iter().map(Self::real)),
                Self::Any(parts) => Predicate::any(parts.iter().map(Self::real)),
            }
        }
    }

    fn condition() -> impl Strategy<Value = NaiveCondition> {
        let leaf = prop_oneof![
            1 => any::<bool>().prop_map(NaiveCondition::Constant),
            8 => (0..3usize, spans()).prop_map(|(column, spans)| NaiveCondition::Among(column, spans)),
            2 => (0..3usize, any::<bool>()).prop_map(|(column, null)| NaiveCondition::Null(column, null)),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            let parts = proptest::collection::vec(inner, 0..4);
            prop_oneof![parts.clone().prop_map(NaiveCondition::All), parts.prop_map(NaiveCondition::Any)]
        })
    }

    fn world() -> impl Strategy<Value = World> {
        let value = proptest::option::weighted(0.8, 0..24u8);
        let element = [value.clone(), value.clone(), value];
        proptest::collection::vec(element, 0..40).prop_map(|elements| World { elements })
    }

    fn buffers(elements: &[[SmallValue; 3]]) -> Vec<CellBuffer> {
        let fill = |(column, class)| {
            let mut buffer = CellBuffer::new(class, 40, 40 * 20);
            for element in elements {
                match (element[column], column) {
                    (None, _) => buffer.null(),
                    (Some(value), 0) => buffer.word(word(value)),
                    (Some(value), 1) => buffer.wide(wide(value)),
                    (Some(value), _) => buffer.bytes(&text(value)),
                }
            }
            buffer
        };
        CLASSES.into_iter().enumerate().map(fill).collect()
    }

    proptest! {
        // What is picked is what a naive look at every element finds, and nothing that would be found is passed over.
        #[test]
        fn conditions_pick_what_a_naive_look_finds(world in world(), naive in condition()) {
            let buffers = buffers(&world.elements);
            let nulls: Vec<Vec<bool>> =
                buffers.iter().map(|buffer| buffer.valid().iter().map(|valid| !valid).collect()).collect();
            let cells = |column: usize| {
                let buffer = &buffers[column];
                let some = (buffer.nulls() > 0).then(|| nulls[column].as_slice());
                (buffer.is_empty() || buffer.nulls() < buffer.len()).then(|| ColumnCells::Cells(buffer.cells(), some))
            };
            let condition = naive.real();
            let mut picked = vec![true; world.elements.len()];
            condition.pick(&mut picked, &cells);
            let expected: Vec<bool> = world.elements.iter().map(|element| naive.holds(*element)).collect();
            prop_assert_eq!(&picked, &expected, "{:?}", condition);
            for filtered in [false, true] {
                let known = KnownCells { buffers: &buffers, elements: &world.elements, filtered };
                prop_assert!(condition.may_hold(&known) || !expected.contains(&true), "{:?}", condition);
            }
        }
    }

    proptest! {
        // What is picked of words as they are kept is what is picked of them as they are.
        #[test]
        fn narrow_words_are_picked_as_wide_ones(
            least in prop_oneof![Just(0u64), any::<u64>(), Just(u64::MAX - 70_000)], are_wide in any::<bool>(),
            overs in prop::collection::vec(any::<u16>(), 1..60), width in 0..4usize,
            ends in prop::collection::vec((any::<u64>(), -3i64..300, 0u64..90_000, 0u8..3), 0..6),
        ) {
            let least = least.min(u64::MAX - 70_000);
            let words: Vec<u64> =
                overs.iter().map(|over| least + u64::from(if width == 0 { over & 255 } else { *over })).collect();
            let bytes: Vec<u8> = overs.iter().map(|over| *over as u8).collect();
            let pairs: Vec<[u8; 2]> = overs.iter().map(|over| over.to_le_bytes()).collect();
            let fours: Vec<[u8; 4]> = overs.iter().map(|over| u32::from(*over).to_le_bytes()).collect();
            let codes: Vec<u8> = (0..words.len() as u8).collect();
            // Wide ones lie far above what a word can be.
            let of = |word: u64| if are_wide { u128::from(word) << 40 | 7 } else { word.into() };
            let wides: Vec<u128> = words.iter().map(|word| of(least) + u128::from(word - least)).collect();
            let packed = match width {
                0 => Packed::Bytes { least: of(least), over: &bytes },
                1 => Packed::Pairs { least: of(least), over: &pairs },
                2 => Packed::Fours { least: of(least), over: &fours },
                _ => Packed::Listed { values: wides.clone(), codes: &codes },
            };
            let spans = ends.iter().fold(IntervalSet::none(), |all, (any, from, len, kind)| {
                let low = match kind {
                    0 => *any,
                    1 => words[*any as usize % words.len()],
                    _ => least.saturating_add_signed(*from),
                };
                all.or(&IntervalSet::between(Included(low), Included(low.saturating_add(*len))))
            });
            let (mut narrow, mut wide) = (vec![true; words.len()], vec![true; words.len()]);
            let (condition, cells) = if are_wide {
                let spans = closed_words(&spans).into_iter().fold(IntervalSet::none(), |all, (low, high)| {
                    let low = of(least) + u128::from(low.saturating_sub(least));
                    all.or(&IntervalSet::between(Included(low), Included(low + u128::from(high & 0xffff))))
                });
                (Predicate::Among(0, ValueSet::Wide(spans)), Cells::Wide(&wides))
            } else {
                (Predicate::Among(0, ValueSet::Words(spans)), Cells::Words(&words))
            };
            condition.pick(&mut narrow, &|_| Some(ColumnCells::Packed(&packed)));
            condition.pick(&mut wide, &|_| Some(ColumnCells::Cells(cells, None)));
            prop_assert_eq!(narrow, wide, "{:?}", condition);
        }
    }

    #[test]
    fn what_cannot_be_is_passed_over() {
        let elements = [[Some(3), Some(4), Some(5)], [Some(9), None, Some(13)]];
        let buffers = buffers(&elements);
        let known = KnownCells { buffers: &buffers, elements: &elements, filtered: true };
        let may = |naive: NaiveCondition| naive.real().may_hold(&known);
        assert!(!may(NaiveCondition::Among(0, IntervalSet::between(Excluded(9), Unbounded))));
        assert!(!may(NaiveCondition::Among(2, IntervalSet::between(Unbounded, Included(3)))));
        // Between the bounds, but the filter knows better.
        assert!(
            !may(NaiveCondition::Among(0, IntervalSet::point(5)))
                && !may(NaiveCondition::Among(2, IntervalSet::point(9)))
        );
        assert!(!may(NaiveCondition::Null(0, true)) && may(NaiveCondition::Null(1, true)));
        assert!(!may(NaiveCondition::All(vec![
            NaiveCondition::Null(1, true),
            NaiveCondition::Among(1, IntervalSet::point(7))
        ])));
    }
}
