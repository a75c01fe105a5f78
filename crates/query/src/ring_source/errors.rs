//! Conversion of errors of the reader into those of a scan.

use crate::stream::ScanStop;
use datafusion::error::DataFusionError;
use holdfast_format::FormatError;
use holdfast_reader::{ReaderError, SlotError};

/// Wraps an error of the reader, which ends the query.
pub(super) fn external(error: ReaderError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl From<SlotError> for ScanStop {
    fn from(error: SlotError) -> Self {
        match error {
            SlotError::Expired => Self::Expired,
            SlotError::Damaged(place) => Self::Damaged(place),
            SlotError::Failed(error) => Self::Failed(external(error)),
        }
    }
}

impl From<FormatError> for ScanStop {
    fn from(error: FormatError) -> Self {
        Self::Damaged(error.to_string())
    }
}
