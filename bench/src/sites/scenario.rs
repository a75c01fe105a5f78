//! Scenarios of replication: writing and reading files with one catalog, and with synchronous and asynchronous replicas of it.

use super::collaboration::Collaboration;
use crate::BenchError;
use bytes::Bytes;
use std::time::Instant;

/// Site of the only catalog in the scenario without replication.
const CENTRE: usize = 2;

/// Site at which the client sits; its resource is the local one.
pub const LOCAL: usize = 0;

/// Site with the remote resource.
pub const REMOTE: usize = 1;

/// Way to keep the catalogs of the sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// One catalog at a third site, which knows all files.
    None,
    /// Each write returns when all sites have its operations; a read makes none.
    Synchronous,
    /// Each request returns at once; sites exchange operations in the background.
    Asynchronous,
}

impl Scenario {
    /// Scenarios in the order of the paper's columns.
    pub const ALL: [Self; 3] = [Self::None, Self::Synchronous, Self::Asynchronous];

    /// Prepares new sites for the scenario.
    pub fn prepare(self, sites: &Collaboration) -> Result<(), BenchError> {
        if self == Self::None { Ok(()) } else { sites.join() }
    }

    /// Writes files, one after the other. Returns the seconds.
    pub fn write(self, sites: &Collaboration, at: usize, files: &[Bytes]) -> Result<f64, BenchError> {
        let began = Instant::now();
        for (number, contents) in files.iter().enumerate() {
            let name = name(at, number);
            sites.put(at, &name, contents)?;
            match self {
                Self::None => {
                    sites.run(sites.client(CENTRE).make_collection(&entry(&name), true, None))?;
                }
                Self::Synchronous => sites.until_all_know(at)?,
                Self::Asynchronous => {}
            }
        }
        Ok(began.elapsed().as_secs_f64())
    }

    /// Waits until written files can be read.
    pub fn settle(self, sites: &Collaboration) -> Result<(), BenchError> {
        if self == Self::None {
            return Ok(());
        }
        [LOCAL, REMOTE].into_iter().try_for_each(|at| sites.until_all_know(at))
    }

    /// Reads the files that were written, one after the other. Returns the seconds.
    pub fn read(self, sites: &Collaboration, at: usize, files: &[Bytes]) -> Result<f64, BenchError> {
        let began = Instant::now();
        for (number, contents) in files.iter().enumerate() {
            let name = name(at, number);
            let bytes = if self == Self::None {
                sites.run(sites.client(CENTRE).catalog_stat(&entry(&name)))?;
                sites.get(at, &name)?
            } else {
                sites.get(LOCAL, &name)?
            };
            if bytes != contents.len() as u64 {
                return Err(BenchError::accounting(format!("{name} has {bytes} bytes")));
            }
        }
        Ok(began.elapsed().as_secs_f64())
    }
}

fn name(at: usize, number: usize) -> String {
    format!("site{at}/file{number}")
}

/// Entry of a file in the only catalog.
fn entry(name: &str) -> String {
    format!("/{}/{name}", super::collaboration::PROJECT)
}
