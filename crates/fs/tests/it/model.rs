//! Generated operations on the core, compared with a naive tree in memory.

use crate::world::{World, contents};
use holdfast_fs::{FileKind, FileSystem, FsError, FsOptions, OpenMode, ROOT};
use std::collections::BTreeMap;
use std::time::Duration;

/// Random numbers from a seed.
struct Random(blake3::OutputReader);

impl Random {
    fn new(seed: u64) -> Self {
        Self(blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof())
    }

    fn below(&mut self, limit: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_le_bytes(bytes) % limit
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Entries by path: the bytes of a file, or nothing for a directory.
#[derive(Default)]
struct Model(BTreeMap<String, Option<Vec<u8>>>);

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

impl Model {
    fn is_directory(&self, path: &str) -> bool {
        path.is_empty() || matches!(self.0.get(path), Some(None))
    }

    fn children(&self, path: &str) -> Vec<(String, bool, u64)> {
        let child = |(at, entry): (&String, &Option<Vec<u8>>)| {
            let name = (parent(at) == path).then(|| at.rsplit('/').next().unwrap().to_owned())?;
            Some((name, entry.is_none(), entry.as_ref().map_or(0, |bytes| bytes.len() as u64)))
        };
        self.0.iter().filter_map(child).collect()
    }

    fn write(&mut self, path: &str, truncate: bool, offset: usize, bytes: &[u8]) -> bool {
        if !self.is_directory(parent(path)) || self.is_directory(path) || parent(path).is_empty() {
            return false;
        }
        let file = self.0.entry(path.to_owned()).or_insert_with(|| Some(Vec::new())).as_mut().unwrap();
        if truncate {
            file.clear();
        }
        file.resize(file.len().max(offset + bytes.len()), 0);
        file[offset..offset + bytes.len()].copy_from_slice(bytes);
        true
    }

    fn rename(&mut self, from: &str, to: &str) -> bool {
        let Some(entry) = self.0.get(from).cloned() else { return false };
        if !self.is_directory(parent(to)) || (entry.is_some() && parent(to).is_empty()) {
            return false;
        }
        if from == to {
            return true;
        }
        let below = format!("{from}/");
        if to.starts_with(&below) || self.0.get(to).is_some_and(|found| entry.is_none() || found.is_none()) {
            return false;
        }
        let moved: Vec<String> = self.0.keys().filter(|path| path.starts_with(&below)).cloned().collect();
        for path in moved {
            let entry = self.0.remove(&path).unwrap();
            self.0.insert(format!("{to}/{}", &path[below.len()..]), entry);
        }
        self.0.remove(from);
        self.0.insert(to.to_owned(), entry);
        true
    }
}

async fn find(fs: &FileSystem, path: &str) -> Result<u64, FsError> {
    let mut at = ROOT;
    for name in path.split('/').filter(|name| !name.is_empty()) {
        at = fs.lookup(at, name).await?.ino;
    }
    Ok(at)
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

async fn write(
    fs: &FileSystem,
    path: &str,
    truncate: bool,
    offset: u64,
    bytes: &[u8],
) -> Result<(), FsError> {
    let above = find(fs, parent(path)).await?;
    // As the kernel does: an open of what is there, else a creation.
    let handle = match fs.lookup(above, name(path)).await {
        Ok(found) if found.kind == FileKind::Directory => {
            return fs.open(found.ino, OpenMode::default()).await.map(drop);
        }
        Ok(found) => fs.open(found.ino, OpenMode { write: true, truncate }).await?,
        Err(_) => fs.create(above, name(path)).await?.1,
    };
    fs.write(handle, offset, bytes)?;
    let stored = fs.sync(handle).await;
    fs.release(handle);
    stored
}

async fn read(fs: &FileSystem, path: &str) -> Result<Vec<u8>, FsError> {
    let ino = find(fs, path).await?;
    let handle = fs.open(ino, OpenMode::default()).await?;
    let mut all = Vec::new();
    loop {
        let some = fs.read(handle, all.len() as u64, 10_000).await?;
        if some.is_empty() {
            fs.release(handle);
            return Ok(all);
        }
        all.extend_from_slice(&some);
    }
}

async fn children(fs: &FileSystem, path: &str) -> Result<Vec<(String, bool, u64)>, FsError> {
    let ino = find(fs, path).await?;
    let handle = fs.open_directory(ino)?;
    let mut all = Vec::new();
    loop {
        let some = fs.list(ino, handle, all.len()).await?;
        if some.is_empty() {
            break;
        }
        all.extend(some);
    }
    fs.release_directory(handle);
    let mut all: Vec<_> = all
        .into_iter()
        .map(|entry| {
            let is_directory = entry.attributes.kind == FileKind::Directory;
            (entry.name, is_directory, entry.attributes.size)
        })
        .collect();
    all.sort();
    Ok(all)
}

fn history(seed: u64, cache: Duration) {
    let world = World::new();
    let fs = world.fs(FsOptions { cache, ..world.options() });
    let mut random = Random::new(seed);
    let mut model = Model::default();
    let names = ["lab", "lab/a", "lab/b", "lab/d", "lab/d/a", "lab/d/e", "lab/d/e/a", "sky", "sky/a"];
    world.run(async {
        for step in 0..150 {
            let (path, other) = (random.pick(&names), random.pick(&names));
            let context = format!("seed {seed}, step {step}: {path} {other}");
            let above = find(&fs, parent(path)).await;
            let action = random.below(8);
            let context = format!("{context}, action {action}");
            let (done, wanted) = match action {
                0 | 1 => {
                    let made = match above {
                        Ok(above) => fs.make_directory(above, name(path)).await.map(drop),
                        Err(error) => Err(error),
                    };
                    let can = model.is_directory(parent(path)) && !model.0.contains_key(path);
                    if can {
                        model.0.insert(path.to_owned(), None);
                    }
                    (made, can)
                }
                2 | 3 => {
                    let (truncate, offset) = (random.below(2) == 0, random.below(5000));
                    let bytes = contents(random.below(100), random.below(20_000) as usize);
                    let done = write(&fs, path, truncate, offset, &bytes).await;
                    let wanted = model.write(path, truncate, offset as usize, &bytes);
                    (done, wanted)
                }
                4 => {
                    let done = match above {
                        Ok(above) => fs.unlink(above, name(path)).await,
                        Err(error) => Err(error),
                    };
                    let wanted = matches!(model.0.get(path), Some(Some(_)));
                    if wanted {
                        model.0.remove(path);
                    }
                    (done, wanted)
                }
                5 => {
                    let done = match above {
                        Ok(above) => fs.remove_directory(above, name(path)).await,
                        Err(error) => Err(error),
                    };
                    let wanted = model.0.get(path) == Some(&None) && model.children(path).is_empty();
                    if wanted {
                        model.0.remove(path);
                    }
                    (done, wanted)
                }
                6 => {
                    let done = match (above, find(&fs, parent(other)).await) {
                        (Ok(above), Ok(below)) => {
                            fs.rename((above, name(path)), (below, name(other)), false).await
                        }
                        (Err(error), _) | (_, Err(error)) => Err(error),
                    };
                    (done, model.rename(path, other))
                }
                _ => {
                    let size = random.below(30_000);
                    let done = match find(&fs, path).await {
                        Ok(ino) => fs.set_size(ino, size).await.map(drop),
                        Err(error) => Err(error),
                    };
                    let file = model.0.get_mut(path).and_then(Option::as_mut);
                    let wanted = file.map(|file| file.resize(size as usize, 0)).is_some();
                    (done, wanted)
                }
            };
            assert_eq!(done.is_ok(), wanted, "{context}: {done:?}");
            for path in ["", "lab", "lab/d"].into_iter().filter(|path| model.is_directory(path)) {
                assert_eq!(children(&fs, path).await.unwrap(), model.children(path), "{context}");
            }
            match model.0.get(other) {
                Some(Some(bytes)) => assert_eq!(read(&fs, other).await.unwrap(), *bytes, "{context}"),
                held => {
                    let read = read(&fs, other).await;
                    assert!(read.is_err(), "{context}: {}", held.is_some());
                }
            }
        }
    });
}

#[test]
fn the_tree_behaves_like_one_in_memory() {
    for seed in 0..4 {
        history(seed, Duration::from_secs(1));
    }
}

#[test]
fn the_tree_behaves_like_one_in_memory_without_caches() {
    for seed in 4..6 {
        history(seed, Duration::ZERO);
    }
}
