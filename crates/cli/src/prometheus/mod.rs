//! Metrics for Prometheus: the page (`text`) and the little server that gives it (`http`). Served by a process of its
//! own, so that nobody who asks for metrics asks the recorder.

pub(crate) mod http;
pub(crate) mod text;
