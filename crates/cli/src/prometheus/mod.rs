//! Metrics for Prometheus: which there are (`figures`), the page of them (`page`) and the little server that gives it (`http`). Served by a process of its
//! own, so that nobody who asks for metrics asks the recorder.

pub(crate) mod figures;
pub(crate) mod http;
pub(crate) mod page;
