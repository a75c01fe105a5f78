//! Lag of replication: the age of the oldest operation of one site that another one lacks.

use super::collaboration::{Collaboration, PROJECT, vector};
use super::scenario::{LOCAL, REMOTE};
use crate::BenchError;
use bytes::Bytes;
use holdfast_catalog::{SiteId, VersionVector};
use holdfast_remote::{AttributeChange, NewAttribute, RemoteError, Site};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{Instant as Tick, sleep_until};

/// Name of the object that is changed.
const OBJECT: &str = "changed";

/// Writers at the same time.
const WRITERS: u64 = 32;

/// Pause between two looks at the sites.
const LOOK: Duration = Duration::from_millis(20);

/// Lag of replication under load.
#[derive(Clone, Debug)]
pub struct LoadedLag {
    /// Changes per second that the first site has made.
    pub rate: f64,
    /// Ages in seconds, one for each look.
    pub ages: Vec<f64>,
    /// Seconds from the last change until the other site had all.
    pub rest: f64,
}

fn change(number: u64) -> AttributeChange {
    let value = serde_json::Value::from(number);
    let add = vec![NewAttribute { name: "number".to_owned(), value, unit: None }];
    AttributeChange { add, remove: vec!["number".to_owned()] }
}

/// Puts the objects that are changed: one for each writer.
fn prepare(sites: &Collaboration) -> Result<(), BenchError> {
    for writer in 0..WRITERS {
        sites.put(LOCAL, &format!("{OBJECT}{writer}"), &Bytes::from(format!("object {writer}")))?;
    }
    sites.until_all_know(LOCAL)
}

fn path(writer: u64) -> String {
    format!("/{PROJECT}/{OBJECT}{writer}")
}

/// Vector of a site, asked without a link between.
fn known(sites: &Collaboration, at: usize) -> Result<(SiteId, VersionVector), BenchError> {
    let state = sites.run(sites.observer(at).replication_state())?;
    let site = u64::from_str_radix(&state.site, 16).map_err(BenchError::during("reading a site"))?;
    let site = SiteId::new(site).map_err(BenchError::during("reading a site"))?;
    Ok((site, vector(&state.vector)?))
}

/// Makes single changes at the local site. Returns the milliseconds until the remote one had each.
pub fn idle(sites: &Collaboration, changes: u64) -> Result<Vec<f64>, BenchError> {
    prepare(sites)?;
    let mut lags = Vec::new();
    for number in 0..changes {
        sites.run(sites.client(LOCAL).catalog_attributes(&path(0), &change(number)))?;
        let made = Instant::now();
        let (_, wanted) = known(sites, LOCAL)?;
        while !known(sites, REMOTE)?.1.includes(&wanted) {}
        lags.push(made.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(lags)
}

/// Makes changes at the local site at a rate, as far as it can, and looks at the remote one meanwhile.
pub fn loaded(sites: &Collaboration, rate: u64, time: Duration) -> Result<LoadedLag, BenchError> {
    prepare(sites)?;
    let writer = sites.separate_client(LOCAL)?;
    let (is_over, made) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let (is_over, made) = (&is_over, &made);
        let writers = scope.spawn(move || {
            let written = write(&writer, rate, time, made);
            is_over.store(true, Ordering::Release);
            written
        });
        let lag = watch(sites, is_over);
        let took = writers.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let rate = made.load(Ordering::Relaxed) as f64 / took.as_secs_f64();
        lag.map(|(ages, rest)| LoadedLag { rate, ages, rest })
    })
}

/// Makes changes at a rate for a time. Returns the time that it took.
fn write(site: &Site, rate: u64, time: Duration, made: &AtomicU64) -> Result<Duration, BenchError> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(BenchError::during("starting the writers"))?;
    let total = (rate as f64 * time.as_secs_f64()) as u64;
    let began = Instant::now();
    let written: Result<u64, RemoteError> = runtime.block_on(async {
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let (site, began) = (site.clone(), Tick::from_std(began));
            writers.spawn(async move {
                let mut done = 0;
                for number in (writer..total).step_by(WRITERS as usize) {
                    let due = began + Duration::from_secs_f64(number as f64 / rate as f64);
                    sleep_until(due).await;
                    // A site that cannot keep up makes fewer changes in the time.
                    if began.elapsed() > time {
                        break;
                    }
                    site.catalog_attributes(&path(writer), &change(number)).await?;
                    done += 1;
                }
                Ok(done)
            });
        }
        let mut all = 0;
        while let Some(done) = writers.join_next().await {
            all += done.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?;
        }
        Ok(all)
    });
    made.store(written.map_err(BenchError::during("changing attributes"))?, Ordering::Relaxed);
    Ok(began.elapsed())
}

/// Looks at both sites until the changes are over and the remote site has all. Returns the ages and the rest of the time.
fn watch(sites: &Collaboration, is_over: &AtomicBool) -> Result<(Vec<f64>, f64), BenchError> {
    let mut made: Vec<(Instant, u64)> = Vec::new();
    let mut ages = Vec::new();
    let mut ended = None;
    loop {
        let over = is_over.load(Ordering::Acquire);
        let asked = Instant::now();
        let (site, local) = known(sites, LOCAL)?;
        made.push((asked, local.get(site)));
        let has = known(sites, REMOTE)?.1.get(site);
        // The oldest operation that is missing was made between two looks; the earlier one bounds its age.
        let next = made.partition_point(|(_, number)| *number <= has);
        let age = made.get(next.max(1) - 1).filter(|_| next < made.len());
        let age = age.map_or(0.0, |(since, _)| since.elapsed().as_secs_f64());
        if over {
            let ended = *ended.get_or_insert(asked);
            if next == made.len() {
                return Ok((ages, ended.elapsed().as_secs_f64()));
            }
        } else {
            ages.push(age);
        }
        thread::sleep(LOOK);
    }
}
