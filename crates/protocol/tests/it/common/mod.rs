//! Statuses for tests: a plain one and generated ones.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test helper")]

pub mod statuses;
pub mod well;
