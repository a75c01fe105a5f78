//! Extractor: operations of the log that a peer lacks, packed for the wire.
//!
//! ```text
//! batch    operation*
//! operation  u32  length in bytes, little-endian
//!            ...  operation in the form of the catalog's log
//! ```

use crate::site::AnyStore;
use bytes::Bytes;
use holdfast_catalog::{Catalog, Operation, Result, VersionVector, encode};

/// Most operations of one batch: bounds the transaction at the receiver.
const MOST_OPERATIONS: usize = 1000;

/// Bytes after which no operation is added to a batch.
const MOST_BYTES: usize = 4 << 20;

/// Choice of operations that are taken from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Operations that this site has made.
    Own,
    /// Operations of all sites.
    All,
}

/// Operations for the wire, in causal order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Operations in their frames.
    pub(crate) bytes: Bytes,
    /// Number of operations in the batch.
    pub(crate) operations: u64,
}

/// Takes the next operations beyond a vector from the log.
pub(crate) fn extract(
    catalog: &mut Catalog<AnyStore>,
    known: &VersionVector,
    extent: Extent,
) -> Result<Batch> {
    let operations = match extent {
        Extent::Own => {
            let own = catalog.site();
            catalog.log_since(own, known.get(own), MOST_OPERATIONS)?
        }
        Extent::All => catalog.operations_beyond(known, MOST_OPERATIONS)?,
    };
    pack(&operations)
}

fn pack(operations: &[Operation]) -> Result<Batch> {
    let (mut bytes, mut number) = (Vec::new(), 0);
    for operation in operations {
        let body = encode(operation)?;
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&body);
        number += 1;
        if bytes.len() >= MOST_BYTES {
            break;
        }
    }
    Ok(Batch { bytes: bytes.into(), operations: number })
}

#[cfg(test)]
pub(super) fn packed(operations: &[Operation]) -> Bytes {
    pack(operations).unwrap().bytes
}
