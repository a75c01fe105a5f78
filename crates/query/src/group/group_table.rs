//! Map from values to group numbers: a direct table for numbers that lie close together, hash tables for
//! others. An IPv4 address counts as a number without a direct table.

use super::u32_hash_table::{AT_ONCE, U32HashTable, written};
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
const MAPPED: u128 = 0xffff;

/// What values are, as far as they are understood here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyType {
    Int,
    Uint,
    Time(DataType),
    /// Of so many bytes.
    Address(usize),
}

impl KeyType {
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
pub(super) struct GroupTable {
    kind: KeyType,
    /// The number that the table begins with.
    first: u64,
    /// One more than the group; 0: none. Empty until the first number comes.
    table: Vec<u32>,
    /// Others: those of 32 bits, and larger ones.
    short: U32HashTable,
    numbers: HashMap<u64, u32, RandomState>,
    wide: HashMap<u128, u32, RandomState>,
    null: Option<u32>,
    /// Of each group.
    values: Vec<u128>,
}

impl GroupTable {
    pub(super) fn new(kind: KeyType) -> Self {
        let (numbers, wide) = (HashMap::default(), HashMap::default());
        let (table, values) = (Vec::new(), Vec::new());
        Self { kind, first: 0, table, short: U32HashTable::new(), numbers, wide, null: None, values }
    }

    /// Groups there are.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Bytes of memory.
    pub(super) fn size(&self) -> usize {
        let hashed = self.numbers.capacity() * size_of::<(u64, u32)>()
            + self.wide.capacity() * size_of::<(u128, u32)>();
        self.table.len() * size_of::<u32>()
            + self.short.size()
            + hashed
            + self.values.capacity() * size_of::<u128>()
    }

    /// The group of each value, in `groups`.
    pub(super) fn assign(&mut self, values: &ArrayRef, groups: &mut Vec<usize>) {
        groups.clear();
        match self.kind {
            KeyType::Int => self.primitives(values.as_primitive::<Int64Type>(), groups, |value| value as u64),
            KeyType::Uint => self.primitives(values.as_primitive::<UInt64Type>(), groups, |value| value),
            KeyType::Time(_) => {
                self.primitives(values.as_primitive::<TimestampNanosecondType>(), groups, |value| {
                    value as u64
                });
            }
            KeyType::Address(4) => self.addresses::<4>(values.as_fixed_size_binary(), groups),
            KeyType::Address(6) => self.addresses::<6>(values.as_fixed_size_binary(), groups),
            KeyType::Address(_) => self.addresses::<16>(values.as_fixed_size_binary(), groups),
        }
    }

    fn primitives<T: ArrowPrimitiveType>(
        &mut self,
        values: &PrimitiveArray<T>,
        groups: &mut Vec<usize>,
        number: impl Fn(T::Native) -> u64 + Copy,
    ) {
        if let Some(first) = values.iter().flatten().next() {
            self.begin(number(first));
        }
        self.all(values.values(), values.nulls(), groups, |value| {
            let number = number(*value);
            (Some(number), number.into())
        });
    }

    fn addresses<const BYTES: usize>(&mut self, values: &FixedSizeBinaryArray, groups: &mut Vec<usize>) {
        let (all, _) = values.value_data().as_chunks::<BYTES>();
        self.all(&all[..values.len()], values.nulls(), groups, as_number);
    }

    /// The groups of all values, each of which is a number, where it is a short one, and something that tells it from all others.
    fn all<T>(
        &mut self,
        values: &[T],
        nulls: Option<&NullBuffer>,
        groups: &mut Vec<usize>,
        number: impl Fn(&T) -> (Option<u64>, u128) + Copy,
    ) {
        for (block, at) in values.chunks(AT_ONCE).zip((0..).step_by(AT_ONCE)) {
            let is_null = |number: usize| nulls.is_some_and(|nulls| nulls.is_null(at + number));
            let known = self.known(block, is_null, number);
            groups.extend(known.iter().take(block.len()).map(|known| (*known as usize).wrapping_sub(1)));
            for (number_of, known) in known.iter().enumerate().take(block.len()) {
                if is_null(number_of) {
                    groups[at + number_of] = self.null();
                } else if *known == 0 {
                    groups[at + number_of] = match number(&block[number_of]) {
                        (Some(number), value) => self.number(number, value),
                        (None, value) => self.other(value),
                    };
                }
            }
        }
    }

    /// One more than the groups of some values, as far as they are known and found at once.
    #[inline]
    fn known<T>(
        &self,
        block: &[T],
        is_null: impl Fn(usize) -> bool,
        number: impl Fn(&T) -> (Option<u64>, u128),
    ) -> [u32; AT_ONCE] {
        let mut short = [0; AT_ONCE];
        let (mut are_short, mut are_near) = (true, true);
        for (at, (short, value)) in short.iter_mut().zip(block).enumerate() {
            let number = number(value).0.unwrap_or(u64::MAX);
            *short = number as u32;
            are_short &= number <= u32::MAX.into() || is_null(at);
            are_near &= number.wrapping_sub(self.first) < self.table.len() as u64;
        }
        if are_short && !are_near { self.short.known(&short) } else { [0; AT_ONCE] }
    }

    /// Makes the table for the first number that comes.
    fn begin(&mut self, first: u64) {
        if self.table.is_empty() {
            self.table = written(TABLE);
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
        let group = match u32::try_from(number) {
            Ok(number) => self.short.group(number, next),
            Err(_) => *self.numbers.entry(number).or_insert(next),
        };
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
            KeyType::Int => Arc::new(PrimitiveArray::<Int64Type>::new(numbers().into(), valid)),
            KeyType::Uint => {
                let numbers: Vec<u64> = old.values.iter().map(|value| *value as u64).collect();
                Arc::new(PrimitiveArray::<UInt64Type>::new(numbers.into(), valid))
            }
            KeyType::Time(kind) => {
                let times = PrimitiveArray::<TimestampNanosecondType>::new(numbers().into(), valid);
                Arc::new(times.with_data_type(kind))
            }
            KeyType::Address(bytes) => {
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
#[inline]
fn as_number<const BYTES: usize>(bytes: &[u8; BYTES]) -> (Option<u64>, u128) {
    let mut all = [0; 16];
    all[16 - BYTES..].copy_from_slice(bytes);
    let value = u128::from_be_bytes(all);
    let short = BYTES <= 8 || value >> 32 == MAPPED;
    let number = if BYTES <= 8 { value as u64 } else { u64::from(value as u32) };
    (short.then_some(number), value)
}
