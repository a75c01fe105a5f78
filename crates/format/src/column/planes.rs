//! Bit planes: numbers packed in no more bits than they take, in planes 32, 16, 8, 4, 2 and 1 bits wide, of
//! those widths that add up to that. The widest comes first and has the lowest bits of each number, the next
//! one those above. The loops are over one plane at a time, so that the compiler can use vector instructions.

use crate::FormatError;
use crate::bytes::{FieldReader, SliceWriter};

/// A number that takes more is kept as it is.
pub(super) const MAX_BITS: u8 = 63;

/// The planes of numbers of so many bits, as width and lowest bit.
fn planes(bits: u8) -> impl Iterator<Item = (u32, u32)> {
    let mut shift = 0;
    [32, 16, 8, 4, 2, 1].into_iter().filter(move |width| u32::from(bits) & width != 0).map(move |width| {
        shift += width;
        (width, shift - width)
    })
}

/// Bytes of one plane, padded to 8.
fn plane_bytes(width: u32, count: usize) -> usize {
    (width as usize * count).div_ceil(8).next_multiple_of(8)
}

/// Bytes of so many numbers.
pub(super) fn bytes_of(bits: u8, count: usize) -> usize {
    planes(bits).map(|(width, _)| plane_bytes(width, count)).sum()
}

/// Bits that numbers up to `most` take.
pub(super) fn bits_of(most: u128) -> u8 {
    (128 - most.leading_zeros()) as u8
}

/// Puts what `number` makes of each cell.
pub(super) fn put<T: Copy>(
    put: &mut SliceWriter<'_>,
    bits: u8,
    cells: &[T],
    number: impl Fn(T) -> u64 + Copy,
) {
    for (width, shift) in planes(bits) {
        let Some(space) = put.space(plane_bytes(width, cells.len())) else { return };
        let used = (width as usize * cells.len()).div_ceil(8);
        space[used..].fill(0);
        match width {
            32 => fill(space, cells, |cell| ((number(cell) >> shift) as u32).to_le_bytes()),
            16 => fill(space, cells, |cell| ((number(cell) >> shift) as u16).to_le_bytes()),
            8 => fill(space, cells, |cell| [(number(cell) >> shift) as u8]),
            4 => gather::<T, 4>(space, cells, |cell| number(cell) >> shift),
            2 => gather::<T, 2>(space, cells, |cell| number(cell) >> shift),
            _ => gather::<T, 1>(space, cells, |cell| number(cell) >> shift),
        }
    }
}

fn fill<T: Copy, const N: usize>(space: &mut [u8], cells: &[T], bytes: impl Fn(T) -> [u8; N]) {
    let (places, _) = space.as_chunks_mut::<N>();
    places.iter_mut().zip(cells).for_each(|(place, cell)| *place = bytes(*cell));
}

/// Several cells a byte, the first one in its lowest bits.
fn gather<T: Copy, const WIDTH: usize>(space: &mut [u8], cells: &[T], number: impl Fn(T) -> u64) {
    let mask = (1u8 << WIDTH) - 1;
    for (byte, cells) in space.iter_mut().zip(cells.chunks(8 / WIDTH)) {
        let each = cells.iter().enumerate();
        *byte = each.fold(0, |byte, (at, cell)| byte | (number(*cell) as u8 & mask) << (at * WIDTH));
    }
}

/// So many numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planes<'a> {
    bits: u8,
    count: usize,
    bytes: &'a [u8],
}

impl<'a> Planes<'a> {
    /// Takes them.
    pub(super) fn read(get: &mut FieldReader<'a>, count: usize, bits: u8) -> Result<Self, FormatError> {
        if !(1..=MAX_BITS).contains(&bits) {
            return Err(get.seek(22).malformed("a number of bits that numbers cannot have"));
        }
        Ok(Self { bits, count, bytes: get.take(bytes_of(bits, count))? })
    }

    pub(super) fn bits(&self) -> u8 {
        self.bits
    }

    /// Each plane: its width, its lowest bit, its bytes.
    fn each(&self) -> impl Iterator<Item = (u32, u32, &'a [u8])> {
        let (mut rest, count) = (self.bytes, self.count);
        planes(self.bits).map(move |(width, shift)| {
            let (plane, behind) = rest.split_at(plane_bytes(width, count));
            rest = behind;
            (width, shift, plane)
        })
    }

    /// Whether one of these numbers may be among them: its lowest bits are.
    pub(super) fn may_have(&self, numbers: &[u64]) -> bool {
        let Some((width, _, plane)) = self.each().next() else { return true };
        let among = |is: &dyn Fn(u64) -> u8| numbers.iter().fold(0, |found, number| found | is(*number)) != 0;
        match width {
            32 => among(&|number| {
                let wanted = (number as u32).to_le_bytes();
                any(plane.as_chunks::<4>().0[..self.count].iter().map(|one| *one == wanted))
            }),
            16 => among(&|number| {
                let wanted = (number as u16).to_le_bytes();
                any(plane.as_chunks::<2>().0[..self.count].iter().map(|one| *one == wanted))
            }),
            8 => among(&|number| any(plane[..self.count].iter().map(|one| *one == number as u8))),
            _ => !numbers.is_empty(),
        }
    }

    /// What `cell` makes of each.
    pub(super) fn each_as<T>(&self, cell: impl Fn(u64) -> T) -> Vec<T> {
        if self.bits <= 32 {
            self.numbers::<u32>().into_iter().map(|number| cell(number.into())).collect()
        } else {
            self.numbers::<u64>().into_iter().map(cell).collect()
        }
    }

    /// All of them.
    pub(super) fn numbers<T>(&self) -> Vec<T>
    where
        T: Copy + Default + From<u8> + std::ops::Shl<u32, Output = T> + std::ops::BitOrAssign + Narrow,
    {
        let mut numbers = vec![T::default(); self.count];
        for (width, shift, plane) in self.each() {
            match width {
                32 => spread(&mut numbers, plane.as_chunks::<4>().0, shift, |four| {
                    T::narrow(u32::from_le_bytes(four).into())
                }),
                16 => spread(&mut numbers, plane.as_chunks::<2>().0, shift, |two| {
                    T::narrow(u16::from_le_bytes(two).into())
                }),
                8 => spread(&mut numbers, plane.as_chunks::<1>().0, shift, |[one]| T::from(one)),
                4 => scatter::<T, 4>(&mut numbers, plane, shift),
                2 => scatter::<T, 2>(&mut numbers, plane, shift),
                _ => scatter::<T, 1>(&mut numbers, plane, shift),
            }
        }
        numbers
    }
}

/// 1 if any is true; all are looked at, so that many are at once.
fn any(are: impl Iterator<Item = bool>) -> u8 {
    are.fold(0, |found, is| found | u8::from(is))
}

/// A number that has room for what is made of planes.
pub(super) trait Narrow {
    /// The lower bits of a number, which are all of it.
    fn narrow(number: u64) -> Self;
}

macro_rules! narrow {
    ($($number:ty),*) => {$(
        impl Narrow for $number {
            fn narrow(number: u64) -> Self {
                number as Self
            }
        }
    )*};
}
narrow!(u8, u16, u32, u64);

fn spread<T, const N: usize>(numbers: &mut [T], plane: &[[u8; N]], shift: u32, number: impl Fn([u8; N]) -> T)
where
    T: Copy + std::ops::Shl<u32, Output = T> + std::ops::BitOrAssign,
{
    numbers.iter_mut().zip(plane).for_each(|(to, bytes)| *to |= number(*bytes) << shift);
}

fn scatter<T, const WIDTH: usize>(numbers: &mut [T], plane: &[u8], shift: u32)
where
    T: Copy + From<u8> + std::ops::Shl<u32, Output = T> + std::ops::BitOrAssign,
{
    let mask = (1u8 << WIDTH) - 1;
    for (numbers, byte) in numbers.chunks_mut(8 / WIDTH).zip(plane) {
        let each = numbers.iter_mut().enumerate();
        each.for_each(|(at, to)| *to |= T::from(byte >> (at * WIDTH) & mask) << shift);
    }
}
