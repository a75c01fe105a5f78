//! Memory shared with other processes, which may write it too, and the socket through which it is handed to
//! them. The users of this module decide what the bytes mean, and who may connect.
#![allow(unsafe_code)]

mod common;
mod fd_listener;

pub use common::CommonMemory;
pub use fd_listener::{FdListener, FdListenerError};

/// Copies what stands at `from` now. Others may be writing there: what was copied may be a mixture of old and new, so
/// that it is to be checked afterwards, and is not looked at twice.
///
/// # Safety
///
/// As many bytes as `into` has are mapped for reading from `from` on.
pub unsafe fn copy_out(from: *const u8, into: &mut [u8]) {
    let (front, rest) = into.split_at_mut(from.align_offset(8).min(into.len()));
    let (words, back) = rest.as_chunks_mut::<8>();
    // SAFETY: all of it lies within what the caller says is mapped; volatile, because another process may write there
    // meanwhile.
    unsafe {
        for (at, to) in front.iter_mut().enumerate() {
            *to = from.add(at).read_volatile();
        }
        #[allow(
            clippy::cast_ptr_alignment,
            reason = "what is in front of the first whole word was split off"
        )]
        let word = from.add(front.len()).cast::<u64>();
        for (at, to) in words.iter_mut().enumerate() {
            *to = word.add(at).read_volatile().to_ne_bytes();
        }
        let last = word.add(words.len()).cast::<u8>();
        for (at, to) in back.iter_mut().enumerate() {
            *to = last.add(at).read_volatile();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_copied_wherever_it_stands() {
        let from: Vec<u8> = (0..64).collect();
        for start in 0..17 {
            for len in 0..40 {
                let mut to = vec![99; len];
                let all = &from[start..start + len];
                // SAFETY: the bytes are those of a slice.
                unsafe { copy_out(all.as_ptr(), &mut to) };
                assert_eq!(to, all, "{start} {len}");
            }
        }
    }
}
