//! Which group a value belongs to: numbers that lie close together are found by their place in a table, others by their hash. An
//! IPv4 address counts as a number.

use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, FixedSizeBinaryArray, FixedSizeBinaryBuilder,
    PrimitiveArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Int64Type, TimeUnit, TimestampNanosecondType, UInt64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::common::hash_utils::RandomState;
use std::collections::HashMap;
use std::sync::Arc;

/// Numbers that the table has a place for, around the first that comes. A processor's own cache has room for those of them that are
/// there.
const TABLE: usize = 1 << 18;

/// What stands before an IPv4 address that is written as one of IPv6 (RFC 4291, section 2.5.5.2).
const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// What values are, as far as they are understood here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Uint,
    Time(DataType),
    /// Of so many bytes.
    Address(usize),
}

impl Kind {
    /// That of a type.
    pub(super) fn of(kind: &DataType) -> Option<Self> {
        match kind {
            DataType::Int64 => Some(Self::Int),
            DataType::UInt64 => Some(Self::Uint),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => Some(Self::Time(kind.clone())),
            DataType::FixedSizeBinary(bytes @ (4 | 6 | 16)) => Some(Self::Address(*bytes as usize)),
            _ => None,
        }
    }
}

/// Groups, by their values.
#[derive(Debug)]
pub(super) struct Places {
    kind: Kind,
    /// The number that the table begins with.
    first: u64,
    /// One more than the group; 0: none. Empty until the first number comes.
    table: Vec<u32>,
    numbers: HashMap<u64, u32, RandomState>,
    wide: HashMap<u128, u32, RandomState>,
    null: Option<u32>,
    /// Of each group.
    values: Vec<u128>,
}

impl Places {
    pub(super) fn new(kind: Kind) -> Self {
        let (numbers, wide) = (HashMap::default(), HashMap::default());
        Self { kind, first: 0, table: Vec::new(), numbers, wide, null: None, values: Vec::new() }
    }

    /// Groups there are.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Bytes of memory.
    pub(super) fn size(&self) -> usize {
        let hashed = self.numbers.capacity() * size_of::<(u64, u32)>()
            + self.wide.capacity() * size_of::<(u128, u32)>();
        self.table.len() * size_of::<u32>() + hashed + self.values.capacity() * size_of::<u128>()
    }

    /// The group of each value, in `groups`.
    pub(super) fn assign(&mut self, values: &ArrayRef, groups: &mut Vec<usize>) {
        groups.clear();
        match self.kind {
            Kind::Int => self.primitives(values.as_primitive::<Int64Type>(), groups, |value| value as u64),
            Kind::Uint => self.primitives(values.as_primitive::<UInt64Type>(), groups, |value| value),
            Kind::Time(_) => {
                self.primitives(values.as_primitive::<TimestampNanosecondType>(), groups, |value| {
                    value as u64
                });
            }
            Kind::Address(_) => self.addresses(values.as_fixed_size_binary(), groups),
        }
    }

    fn primitives<T: ArrowPrimitiveType>(
        &mut self,
        values: &PrimitiveArray<T>,
        groups: &mut Vec<usize>,
        number: impl Fn(T::Native) -> u64,
    ) {
        let begin = values.iter().flatten().next().map(&number);
        self.begin(begin);
        if values.null_count() == 0 {
            groups.extend(values.values().iter().map(|value| {
                let number = number(*value);
                self.number(number, number.into())
            }));
            return;
        }
        groups.extend(values.iter().map(|value| match value.map(&number) {
            Some(number) => self.number(number, number.into()),
            None => self.null(),
        }));
    }

    fn addresses(&mut self, values: &FixedSizeBinaryArray, groups: &mut Vec<usize>) {
        let begin = values.iter().flatten().find_map(|bytes| as_number(bytes).0);
        self.begin(begin);
        groups.extend(values.iter().map(|value| {
            let Some(bytes) = value else { return self.null() };
            match as_number(bytes) {
                (Some(number), value) => self.number(number, value),
                (None, value) => self.other(value),
            }
        }));
    }

    /// Makes the table for the first number that comes.
    fn begin(&mut self, first: Option<u64>) {
        if let Some(first) = first.filter(|_| self.table.is_empty()) {
            self.table = vec![0; TABLE];
            self.first = first.saturating_sub(TABLE as u64 / 2);
        }
    }

    #[inline]
    fn number(&mut self, number: u64, value: u128) -> usize {
        let next = self.values.len() as u32;
        let place = usize::try_from(number.wrapping_sub(self.first)).unwrap_or(usize::MAX);
        if let Some(group) = self.table.get_mut(place) {
            if *group == 0 {
                *group = next + 1;
                self.values.push(value);
            }
            return *group as usize - 1;
        }
        let group = *self.numbers.entry(number).or_insert(next);
        if group == next {
            self.values.push(value);
        }
        group as usize
    }

    fn other(&mut self, value: u128) -> usize {
        let next = self.values.len() as u32;
        let group = *self.wide.entry(value).or_insert(next);
        if group == next {
            self.values.push(value);
        }
        group as usize
    }

    fn null(&mut self) -> usize {
        let next = self.values.len() as u32;
        let group = *self.null.get_or_insert(next);
        if group == next {
            self.values.push(0);
        }
        group as usize
    }

    /// The values of all groups. None is left.
    pub(super) fn take(&mut self) -> Result<ArrayRef, ArrowError> {
        let old = std::mem::replace(self, Self::new(self.kind.clone()));
        let valid = old
            .null
            .map(|null| (0..old.values.len() as u32).map(|group| group != null).collect::<NullBuffer>());
        let numbers = || old.values.iter().map(|value| *value as i64).collect::<Vec<_>>();
        Ok(match old.kind {
            Kind::Int => Arc::new(PrimitiveArray::<Int64Type>::new(numbers().into(), valid)),
            Kind::Uint => {
                let numbers: Vec<u64> = old.values.iter().map(|value| *value as u64).collect();
                Arc::new(PrimitiveArray::<UInt64Type>::new(numbers.into(), valid))
            }
            Kind::Time(kind) => {
                let times = PrimitiveArray::<TimestampNanosecondType>::new(numbers().into(), valid);
                Arc::new(times.with_data_type(kind))
            }
            Kind::Address(bytes) => {
                let mut addresses = FixedSizeBinaryBuilder::with_capacity(old.values.len(), bytes as i32);
                for (group, value) in old.values.iter().enumerate() {
                    if old.null == Some(group as u32) {
                        addresses.append_null();
                    } else {
                        addresses.append_value(&value.to_be_bytes()[16 - bytes..])?;
                    }
                }
                Arc::new(addresses.finish())
            }
        })
    }
}

/// An address as a number, where it is a short one, and all of it.
fn as_number(bytes: &[u8]) -> (Option<u64>, u128) {
    let value = bytes.iter().fold(0, |value, byte| value << 8 | u128::from(*byte));
    match bytes {
        [front @ .., a, b, c, d] if front == MAPPED => {
            (Some(u32::from_be_bytes([*a, *b, *c, *d]).into()), value)
        }
        bytes if bytes.len() <= 8 => (Some(value as u64), value),
        _ => (None, value),
    }
}
