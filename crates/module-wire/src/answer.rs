//! Answers of a module process to a scan.

use crate::failure::{Failure, Step};
use crate::frame::{MAX_ANSWER_BYTES, MAX_LOG_BYTES, MAX_LOG_LINES, Reader, WireError, Writer};
use crate::{MAX_OUTPUT_BYTES, PART_OUTPUTS};

/// Result that a module emitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Position in the item; `None` where the result is about the whole item or the whole scan.
    pub offset: Option<u64>,
    /// Text or bytes, as the module made them.
    pub bytes: Vec<u8>,
}

/// Properties of a module that was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Bytes that a block repeats of the block before, if blocks may be processed independently of each other.
    pub overlap: Option<u32>,
    /// The kernel filters the system calls of the process.
    pub confined: bool,
}

/// Results of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// Results in the order in which the module emitted them.
    pub outputs: Vec<Output>,
    /// Log lines of the module, at most [`MAX_LOG_LINES`].
    pub log: Vec<String>,
    /// The module needs no further block of this item.
    pub enough: bool,
    /// Further results of the same request follow in the next frame.
    pub more: bool,
}

/// Answer of a module process to one request, or to its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The module is loaded: the answer to the start of the process.
    Ready(Ready),
    /// The request was carried out.
    Results(Results),
    /// The request failed; unless the failure is the module's own code, the process ends.
    Failed {
        /// Call that failed, which tells pipelined requests apart.
        step: Step,
        /// Cause of the failure.
        failure: Failure,
        /// Log lines that the module wrote before.
        log: Vec<String>,
    },
}

const READY: u8 = 1;
const RESULTS: u8 = 2;
const FAILED: u8 = 3;

/// Encoding of results without an offset, and of an overlap that is absent.
const NONE: u64 = u64::MAX;
/// Bytes of the shortest result: its offset and its length.
const LEAST_OUTPUT_BYTES: usize = 12;

impl Answer {
    /// Appends the frame of this answer to `into`.
    pub fn encode(&self, into: &mut Vec<u8>) {
        match self {
            Self::Ready(ready) => {
                let mut writer = Writer::begin(into, READY);
                writer.u64(ready.overlap.map_or(NONE, u64::from)).u8(ready.confined.into());
                writer.end();
            }
            Self::Results(results) => {
                let mut writer = Writer::begin(into, RESULTS);
                writer.u8(results.enough.into()).u8(results.more.into()).u32(results.outputs.len() as u32);
                for output in &results.outputs {
                    writer.u64(output.offset.unwrap_or(NONE)).bytes(&output.bytes);
                }
                encode_log(&mut writer, &results.log);
                writer.end();
            }
            Self::Failed { step, failure, log } => {
                let mut writer = Writer::begin(into, FAILED);
                writer.u8(step.code());
                failure.encode(&mut writer);
                encode_log(&mut writer, log);
                writer.end();
            }
        }
    }

    /// Decodes the payload of a frame; any bytes may be passed.
    pub fn decode(payload: &[u8]) -> Result<Self, WireError> {
        let limit = MAX_ANSWER_BYTES as u64;
        if payload.len() as u64 > limit {
            return Err(WireError::TooLong { field: "answer", length: payload.len() as u64, limit });
        }
        let mut reader = Reader::new(payload);
        let answer = match reader.u8("tag")? {
            READY => {
                let overlap = match reader.u64("overlap")? {
                    NONE => None,
                    value => Some(
                        u32::try_from(value).map_err(|_| WireError::Unknown { field: "overlap", value })?,
                    ),
                };
                Self::Ready(Ready { overlap, confined: reader.flag("confinement flag")? })
            }
            RESULTS => {
                let (enough, more) = (reader.flag("enough flag")?, reader.flag("flag of further results")?);
                let count = reader.count("number of results", PART_OUTPUTS as usize)?;
                // A short message cannot make us allocate for a large count.
                let mut outputs = Vec::with_capacity(count.min(reader.left() / LEAST_OUTPUT_BYTES));
                for _ in 0..count {
                    let offset = reader.u64("offset of a result")?;
                    let bytes = reader.bytes("result", MAX_OUTPUT_BYTES as usize)?.to_vec();
                    outputs.push(Output { offset: (offset != NONE).then_some(offset), bytes });
                }
                Self::Results(Results { outputs, log: decode_log(&mut reader)?, enough, more })
            }
            FAILED => {
                let step = Step::of_code(reader.u8("step")?)?;
                let failure = Failure::decode(&mut reader)?;
                Self::Failed { step, failure, log: decode_log(&mut reader)? }
            }
            tag => return Err(WireError::Unknown { field: "tag", value: tag.into() }),
        };
        reader.end().map(|()| answer)
    }
}

fn encode_log(writer: &mut Writer<'_>, log: &[String]) {
    let lines = &log[..log.len().min(MAX_LOG_LINES)];
    writer.u32(lines.len() as u32);
    for line in lines {
        writer.bytes(crate::frame::cut(line, MAX_LOG_BYTES).as_bytes());
    }
}

fn decode_log(reader: &mut Reader<'_>) -> Result<Vec<String>, WireError> {
    let count = reader.count("number of log lines", MAX_LOG_LINES)?;
    (0..count).map(|_| reader.text("log line", MAX_LOG_BYTES)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::tests::failures;
    use crate::frame::{HEAD_BYTES, payload_bytes};
    use proptest::prelude::*;

    fn answers() -> impl Strategy<Value = Answer> {
        let output = (proptest::option::of(0..u64::MAX), any::<Vec<u8>>())
            .prop_map(|(offset, bytes)| Output { offset, bytes });
        let log = || proptest::collection::vec(".{0,20}", 0..4);
        prop_oneof![
            (proptest::option::of(any::<u32>()), any::<bool>())
                .prop_map(|(overlap, confined)| Answer::Ready(Ready { overlap, confined })),
            (proptest::collection::vec(output, 0..8), log(), any::<(bool, bool)>()).prop_map(
                |(outputs, log, (enough, more))| Answer::Results(Results { outputs, log, enough, more })
            ),
            (0..Step::ALL.len(), failures(), log()).prop_map(|(step, failure, log)| Answer::Failed {
                step: Step::ALL[step],
                failure,
                log
            }),
        ]
    }

    proptest! {
        #[test]
        fn an_answer_survives_the_wire(answer in answers(), keep in 0..400usize) {
            let mut frame = Vec::new();
            answer.encode(&mut frame);
            let (head, payload) = frame.split_first_chunk::<HEAD_BYTES>().unwrap();
            prop_assert_eq!(payload_bytes(*head, MAX_ANSWER_BYTES), Ok(payload.len()));
            prop_assert_eq!(Answer::decode(payload), Ok(answer));
            if keep < payload.len() {
                prop_assert!(Answer::decode(&payload[..keep]).is_err());
            }
        }

        #[test]
        fn any_bytes_decode_or_are_refused(tag in 0..5u8, bytes: Vec<u8>) {
            let payload = [&[tag], bytes.as_slice()].concat();
            if let Ok(answer) = Answer::decode(&payload) {
                let mut frame = Vec::new();
                answer.encode(&mut frame);
                prop_assert_eq!(&frame[HEAD_BYTES..], payload);
            }
        }

        #[test]
        fn a_damaged_answer_decodes_or_is_refused(answer in answers(), at: usize, value: u8) {
            let mut frame = Vec::new();
            answer.encode(&mut frame);
            let mut payload = frame.split_off(HEAD_BYTES);
            let at = at % payload.len();
            payload[at] = value;
            let _ = Answer::decode(&payload);
        }
    }

    #[test]
    fn a_large_count_in_a_short_answer_is_refused() {
        let payload = [&[RESULTS, 0, 0], PART_OUTPUTS.to_le_bytes().as_slice()].concat();
        assert_eq!(Answer::decode(&payload), Err(WireError::Short("offset of a result")));
        let payload = [&[RESULTS, 0, 0], (PART_OUTPUTS + 1).to_le_bytes().as_slice()].concat();
        assert!(matches!(Answer::decode(&payload), Err(WireError::TooLong { .. })));
    }
}
