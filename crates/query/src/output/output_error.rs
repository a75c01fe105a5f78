//! Error of writing results.

use datafusion::arrow::error::ArrowError;
use parquet::errors::ParquetError;

/// Error of writing results.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// Something did not go where it should.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A value has no form there.
    #[error("{0}")]
    Arrow(ArrowError),
    /// The same, of Parquet.
    #[error("{0}")]
    Parquet(ParquetError),
}

impl From<ArrowError> for OutputError {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, error) => Self::Io(error),
            other => Self::Arrow(other),
        }
    }
}

impl From<ParquetError> for OutputError {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(error) => match error.downcast::<std::io::Error>() {
                Ok(error) => Self::Io(*error),
                Err(error) => Self::Parquet(ParquetError::External(error)),
            },
            other => Self::Parquet(other),
        }
    }
}
