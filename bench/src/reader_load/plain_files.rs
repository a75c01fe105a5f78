//! Plain files, as people write them: one after the other, the oldest deleted; with or without making every element durable.

use super::{EndReport, Load, ReadLoop, RecorderUnderLoad, below};
use crate::BenchError;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Bytes of a file.
const FILE: u64 = 64 << 20;

/// A recorder that appends elements to plain files.
pub struct PlainFiles {
    folder: PathBuf,
    kept: usize,
    size: u64,
    all: VecDeque<PathBuf>,
    next: u64,
    file: Option<(File, u64)>,
    synced: bool,
}

impl PlainFiles {
    /// Begins in a folder; `synced` makes every element durable before the next.
    pub fn begin(folder: &Path, load: &Load, synced: bool) -> Result<Self, BenchError> {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).map_err(BenchError::file(folder, "make it"))?;
        let size = FILE.min(load.kept / 8);
        let kept = (load.kept / size).max(2) as usize;
        let folder = folder.to_owned();
        Ok(Self { folder, kept, size, all: VecDeque::new(), next: 0, file: None, synced })
    }
}

impl RecorderUnderLoad for PlainFiles {
    fn take(&mut self, _: u64, element: &[u8]) -> Result<(), BenchError> {
        if self.file.is_none() {
            while self.all.len() >= self.kept {
                if let Some(oldest) = self.all.pop_front() {
                    fs::remove_file(&oldest).map_err(BenchError::file(&oldest, "delete it"))?;
                }
            }
            let path = self.folder.join(format!("{:08}", self.next));
            self.next += 1;
            let file = File::create(&path).map_err(BenchError::file(&path, "make it"))?;
            self.all.push_back(path);
            self.file = Some((file, 0));
        }
        if let Some((file, written)) = &mut self.file {
            file.write_all(element).map_err(BenchError::file(&self.folder, "write there"))?;
            if self.synced {
                file.sync_data().map_err(BenchError::file(&self.folder, "write there"))?;
            }
            *written += element.len() as u64;
            if *written >= self.size {
                self.file = None;
            }
        }
        Ok(())
    }

    fn reader(&self, seed: u64) -> Result<ReadLoop, BenchError> {
        let (folder, mut random) = (self.folder.clone(), seed);
        let mut buffer = vec![0; 1 << 20];
        Ok(Box::new(move || {
            let names = files(&folder)?;
            let Some(path) = names.get(below(&mut random, names.len() as u64) as usize) else { return Ok(0) };
            whole(path, &mut buffer)
        }))
    }

    fn exporter(&self) -> Result<ReadLoop, BenchError> {
        let (folder, mut last) = (self.folder.clone(), None);
        let mut buffer = vec![0; 1 << 20];
        Ok(Box::new(move || {
            let mut names = files(&folder)?;
            names.sort_unstable();
            let next = names.iter().find(|name| Some(*name) > last.as_ref()).or(names.first());
            last = next.cloned();
            next.map_or(Ok(0), |path| whole(path, &mut buffer))
        }))
    }

    fn end(self: Box<Self>) -> Result<EndReport, BenchError> {
        // The next one is to find the disk at rest.
        for path in &self.all {
            let _ = File::open(path).and_then(|file| file.sync_all());
        }
        fs::remove_dir_all(&self.folder).map_err(BenchError::file(&self.folder, "delete it"))?;
        Ok(EndReport::default())
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, BenchError> {
    let found = fs::read_dir(folder).map_err(BenchError::file(folder, "read it"))?;
    Ok(found.flatten().map(|entry| entry.path()).collect())
}

/// Reads a file to its end; its bytes.
fn whole(path: &Path, buffer: &mut [u8]) -> Result<u64, BenchError> {
    let mut file = File::open(path).map_err(BenchError::file(path, "open it"))?;
    let mut bytes = 0;
    loop {
        match file.read(buffer).map_err(BenchError::file(path, "read it"))? {
            0 => return Ok(bytes),
            read => bytes += read as u64,
        }
    }
}
