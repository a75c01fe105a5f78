//! Buffers for direct I/O: aligned, allocated once, owned by one party at a time.
