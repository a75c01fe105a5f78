//! Recorded rows, the input of all statistics.

/// Counters of one minute of shipping. Several rows of one minute add up.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MinuteRow {
    /// Minutes since 1970-01-01 00:00 UTC.
    pub minute: i64,
    /// Number of blocks sent.
    pub blocks: u64,
    /// Bytes of the blocks sent.
    pub bytes: u64,
    /// Sum of the transfer rates of the blocks, in bits per second.
    pub rate_sum: f64,
    /// Sum of the squared transfer rates of the blocks.
    pub rate_square_sum: f64,
    /// Microseconds spent on reading files.
    pub read_us: u64,
    /// Microseconds spent on the network.
    pub network_us: u64,
    /// Microseconds spent in the archive.
    pub archive_us: u64,
    /// Bytes that the instrument produced.
    pub produced_bytes: u64,
    /// Bytes sent again after a failed verification.
    pub resent_bytes: u64,
    /// Blocks that arrived damaged.
    pub damaged_blocks: u64,
}

/// Number of blocks of one hour whose rate fell into one bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistogramRow {
    /// Hours since 1970-01-01 00:00 UTC.
    pub hour: i64,
    /// Bin as `rate_bin` numbers it.
    pub bin: u16,
    /// Number of blocks in the bin.
    pub count: u64,
}
