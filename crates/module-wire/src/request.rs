//! Requests of a scan to a module process.

use crate::frame::{MAX_NAME_BYTES, Reader, WireError, Writer};

/// Request of a scan; a module process answers every one, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Begins an item; blocks follow.
    Item {
        /// Name of the item, at most [`MAX_NAME_BYTES`] long.
        name: String,
        /// Length in bytes, where it is known.
        size: Option<u64>,
    },
    /// Hands over a block of the item, which stands in the shared memory until the answer.
    Block {
        /// Position of its first byte in the shared memory.
        at: u64,
        /// Length of the block in bytes.
        length: u32,
        /// Position of its first byte in the item.
        offset: u64,
        /// Ends the item behind this block.
        last: bool,
    },
    /// Ends the item without a further block.
    End,
    /// Asks for the totals of the module, once, as the last request.
    Finish,
}

const ITEM: u8 = 1;
const BLOCK: u8 = 2;
const END: u8 = 3;
const FINISH: u8 = 4;

/// Encoding of an unknown size; a known size is below, for it fits an `i64` of the module.
const NO_SIZE: u64 = u64::MAX;

impl Request {
    /// Appends the frame of this request to `into`.
    pub fn encode(&self, into: &mut Vec<u8>) {
        match self {
            Self::Item { name, size } => {
                let mut writer = Writer::begin(into, ITEM);
                writer.u64(size.unwrap_or(NO_SIZE)).bytes(name.as_bytes());
                writer.end();
            }
            Self::Block { at, length, offset, last } => {
                let mut writer = Writer::begin(into, BLOCK);
                writer.u64(*at).u32(*length).u64(*offset).u8((*last).into());
                writer.end();
            }
            Self::End => Writer::begin(into, END).end(),
            Self::Finish => Writer::begin(into, FINISH).end(),
        }
    }

    /// Decodes the payload of a frame; any bytes may be passed.
    pub fn decode(payload: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(payload);
        let request = match reader.u8("tag")? {
            ITEM => {
                let size = reader.u64("size")?;
                let name = reader.text("name", MAX_NAME_BYTES)?;
                Self::Item { name, size: (size != NO_SIZE).then_some(size) }
            }
            BLOCK => Self::Block {
                at: reader.u64("place")?,
                length: reader.u32("length")?,
                offset: reader.u64("offset")?,
                last: reader.flag("end flag")?,
            },
            END => Self::End,
            FINISH => Self::Finish,
            tag => return Err(WireError::Unknown { field: "tag", value: tag.into() }),
        };
        reader.end().map(|()| request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{HEAD_BYTES, payload_bytes};
    use proptest::prelude::*;

    fn requests() -> impl Strategy<Value = Request> {
        prop_oneof![
            (".{0,40}", proptest::option::of(0..u64::MAX))
                .prop_map(|(name, size)| Request::Item { name, size }),
            (any::<u64>(), any::<u32>(), any::<u64>(), any::<bool>())
                .prop_map(|(at, length, offset, last)| Request::Block { at, length, offset, last }),
            Just(Request::End),
            Just(Request::Finish),
        ]
    }

    proptest! {
        #[test]
        fn a_request_survives_the_wire(request in requests(), keep in 0..100usize) {
            let mut frame = Vec::new();
            request.encode(&mut frame);
            let (head, payload) = frame.split_first_chunk::<HEAD_BYTES>().unwrap();
            prop_assert_eq!(payload_bytes(*head, crate::MAX_REQUEST_BYTES), Ok(payload.len()));
            prop_assert_eq!(Request::decode(payload), Ok(request));
            if keep < payload.len() {
                prop_assert!(Request::decode(&payload[..keep]).is_err());
            }
            let longer = [payload, &[0]].concat();
            prop_assert_eq!(Request::decode(&longer), Err(WireError::Trailing(1)));
        }

        #[test]
        fn any_bytes_decode_or_are_refused(tag in 0..6u8, bytes: Vec<u8>) {
            let payload = [&[tag], bytes.as_slice()].concat();
            if let Ok(request) = Request::decode(&payload) {
                let mut frame = Vec::new();
                request.encode(&mut frame);
                prop_assert_eq!(&frame[HEAD_BYTES..], payload);
            }
        }
    }
}
