//! Collector: batches of operations from peers, unpacked and checked. The form of a batch is told in `extractor`.

use holdfast_catalog::{MAX_OPERATION_BYTES, Operation, decode};

/// Longest batch in bytes that is accepted: one operation above the size at which a batch ends.
pub(crate) const MOST_BATCH: usize = (4 << 20) + MAX_OPERATION_BYTES + 8;

/// Reads the operations of a batch; the error tells the reason.
pub(crate) fn collect(batch: &[u8]) -> Result<Vec<Operation>, String> {
    let mut operations = Vec::new();
    let mut rest = batch;
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<4>().ok_or("the batch ends within a length")?;
        let length = u32::from_le_bytes(*length) as usize;
        let body = after.get(..length).ok_or("the batch ends within an operation")?;
        operations.push(decode(body).map_err(|error| error.to_string())?);
        rest = &after[length..];
    }
    Ok(operations)
}

#[cfg(test)]
mod tests {
    use super::super::extractor::packed;
    use super::*;
    use holdfast_catalog::{Change, HlcTime, Name, ObjectId, OpId, SiteId, VersionVector};
    use proptest::prelude::*;

    fn operation(seq: u64) -> Operation {
        let object = ObjectId::from_parts(seq, &[1; 10]);
        let name = Name::new(format!("n{seq}")).unwrap();
        let changes = vec![Change::MakeObject { object, parent: ObjectId::ROOT, name }];
        let id = OpId { site: SiteId::new(7).unwrap(), seq };
        let (after, under) = (VersionVector::default(), Vec::new());
        Operation { id, time: HlcTime::new(seq, 0), after, under, changes }
    }

    #[test]
    fn a_batch_is_read_back_and_a_cut_one_is_refused() {
        let operations: Vec<_> = (1..20).map(operation).collect();
        let batch = packed(&operations);
        assert_eq!(collect(&batch), Ok(operations));
        for end in [1, 3, 4, 10, batch.len() - 1] {
            assert!(collect(&batch[..end]).is_err(), "{end}");
        }
        assert_eq!(collect(&[]), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = collect(&bytes);
        }
    }
}
