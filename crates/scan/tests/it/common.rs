//! Helpers: scans of a folder whose results are collected, and ways of division to choose from.

use holdfast_client::range::RangeOptions;
use holdfast_scan::{Module, Options, Pick, Report, Sources, scan};
use proptest::prelude::*;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

/// Results, troubles and report of a scan.
pub(crate) struct Scanned<O> {
    pub(crate) outputs: Vec<O>,
    pub(crate) troubles: Vec<(String, String)>,
    pub(crate) report: Report,
}

/// Runs a module over one place.
pub(crate) fn scanned<M: Module>(module: &M, place: &Path, options: Options) -> Scanned<M::Output> {
    let places = [place.to_owned()];
    let sources = Sources::new(&places, Pick::Files, Vec::new(), RangeOptions::default()).unwrap();
    let (mut outputs, mut troubles) = (Vec::new(), Vec::new());
    let report = scan(
        module,
        &sources,
        options,
        &mut |more| {
            outputs.extend(more);
            ControlFlow::Continue(())
        },
        &mut |item, reason| troubles.push((item.id().to_string(), reason.to_owned())),
    );
    Scanned { outputs, troubles, report: report.unwrap() }
}

/// Blocks far smaller than files, read by few and many threads, as small or as large files.
pub(crate) fn options() -> impl Strategy<Value = Options> {
    (1_u64..5, 1_usize..4, prop::sample::select(vec![0, 5000, u64::MAX])).prop_map(
        |(pages, workers, small)| {
            let workers = NonZeroUsize::new(workers);
            Options { workers, small, block: pages * 4096, ..Options::default() }
        },
    )
}
