//! Modules `encrypt` and `decrypt`: each item becomes a file or object that gets its name when it is complete.

use crate::cipher::{Cipher, DecryptStream, Decryptor, EncryptStream, Encryptor, Iv, Key};
use crate::item::{Item, ItemId};
use crate::module::{Block, Division, Flow, Module, ModuleError, Outputs};
use crate::source::Sources;
use holdfast_base::failure::{Failure, Result, reason};
use holdfast_dataset::{SourceAccess, Target, make_folder_like, note_complete};
use holdfast_vault::Place;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Ending of the names of encrypted files.
const ENDING: &str = "enc";

/// Ending of the name of a decrypted file whose own has no ending to take away.
const OTHER_ENDING: &str = "dec";

/// Direction of a transformation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From contents to cipher text.
    Encrypt,
    /// From cipher text to contents.
    Decrypt,
}

impl Direction {
    fn verb(self) -> &'static str {
        match self {
            Self::Encrypt => "encrypt",
            Self::Decrypt => "decrypt",
        }
    }
}

/// Module that encrypts or decrypts items.
#[derive(Debug)]
pub struct Crypt<'a> {
    /// Direction of the transformation.
    pub direction: Direction,
    /// Key, and the cipher that it is for.
    pub key: Key,
    /// Initialisation vector that is not stored; Triple DES alone has one.
    pub iv: Option<Iv>,
    /// Sources of the scan, below which names of files begin.
    pub sources: &'a Sources,
    /// Folder or prefix that the outputs go to.
    pub place: Place,
}

/// Item that was encrypted or decrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CryptOutput {
    /// Item that was read.
    pub item: ItemId,
    /// Place of the output.
    pub place: String,
    /// Bytes of the output.
    pub bytes: u64,
}

/// State of an item.
pub struct State {
    stream: Stream,
    target: Box<dyn Target>,
    bytes: u64,
}

enum Stream {
    Encrypt(Box<EncryptStream>),
    Decrypt(Box<DecryptStream>),
}

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by value")]
fn wrong(error: impl ToString) -> ModuleError {
    ModuleError(error.to_string())
}

impl Crypt<'_> {
    /// Cipher of the key.
    pub fn cipher(&self) -> Cipher {
        self.key.cipher()
    }

    /// Checks that the initialisation vector fits the cipher, and that no two sources have outputs of one name.
    pub fn check(&self) -> Result<()> {
        self.stream().map(drop).map_err(|error| Failure::usage(error).at("--iv"))?;
        if let Some((inside, folder)) = self.sources.nested() {
            let (inside, folder, verb) = (inside.display(), folder.display(), self.direction.verb());
            return Err(Failure::usage(format_args!("cannot {verb} {inside} twice: it lies in {folder}"))
                .advice("name one of them"));
        }
        let mut sources = HashMap::new();
        for (source, name, is_folder) in self.sources.output_names() {
            let output = if is_folder { name } else { renamed(&name, self.direction) };
            if let Some(other) = sources.insert(output.clone(), source.clone()) {
                let (verb, name) = (self.direction.verb(), output.display());
                return Err(Failure::usage(format_args!(
                    "cannot {verb} {other} and {source} to one place: both outputs are named `{name}`"
                ))
                .advice(format_args!("{verb} them by two commands, to two places")));
            }
        }
        Ok(())
    }

    fn stream(&self) -> Result<Stream, ModuleError> {
        Ok(match self.direction {
            Direction::Encrypt => {
                let encryptor = match self.iv {
                    Some(iv) => Encryptor::with_iv(&self.key, iv),
                    None => Encryptor::new(&self.key),
                };
                Stream::Encrypt(Box::new(EncryptStream::new(encryptor.map_err(wrong)?)))
            }
            Direction::Decrypt => Stream::Decrypt(Box::new(match self.iv {
                Some(iv) => DecryptStream::with_decryptor(Decryptor::with_iv(&self.key, iv).map_err(wrong)?),
                None => DecryptStream::new(&self.key).map_err(wrong)?,
            })),
        })
    }

    /// Place of an item's output.
    fn output(&self, item: &Item<'_>) -> Result<Place, ModuleError> {
        let relative = self.sources.relative(item.container);
        let relative = renamed(&relative, self.direction);
        match &self.place {
            Place::Local(folder) => Ok(Place::Local(folder.join(relative))),
            Place::Vault(vault, prefix) => {
                let name = relative.to_str().ok_or_else(|| wrong("its name is not UTF-8"))?;
                let prefix = prefix.trim_end_matches('/');
                let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
                Ok(Place::Vault(vault.clone(), path))
            }
        }
    }

    fn begun(&self, item: &Item<'_>) -> Result<Box<dyn Target>, ModuleError> {
        let place = self.output(item)?;
        if let Place::Local(path) = &place
            && let Some(folder) = path.parent()
        {
            if path.exists() {
                let text = format!("there is a file of that name, {}: name another folder", path.display());
                return Err(ModuleError(text));
            }
            make_folders(folder, item.container.path.as_deref().and_then(Path::parent))
                .map_err(|error| wrong(Failure::io("cannot make the folder", folder, &error)))?;
        }
        let access = self.sources.access(item.container);
        // Nothing tells who may read the plain text: nobody else does.
        let is_unknown = self.direction == Direction::Decrypt && access.is_unbounded();
        let access = if is_unknown { SourceAccess::owner_alone() } else { access };
        place.target(access).map_err(wrong)
    }
}

/// Makes the folder of an output and those above it, each as private as the one of the source that it stands for.
fn make_folders(folder: &Path, source: Option<&Path>) -> io::Result<()> {
    // The folder above a name alone is the current one.
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let above = source.and_then(Path::parent);
    if let Some(parent) = folder.parent() {
        make_folders(parent, above)?;
    }
    match source {
        Some(source) => make_folder_like(folder, source),
        None => std::fs::create_dir_all(folder),
    }
}

/// Name of an output: an ending more for encrypted files, one less for decrypted ones.
fn renamed(path: &Path, direction: Direction) -> PathBuf {
    let with = |ending: &str| {
        let mut name = OsString::from(path);
        name.push(".");
        name.push(ending);
        PathBuf::from(name)
    };
    match direction {
        Direction::Encrypt => with(ENDING),
        Direction::Decrypt if path.extension().is_some_and(|found| found == ENDING) => {
            path.with_extension("")
        }
        Direction::Decrypt => with(OTHER_ENDING),
    }
}

impl Module for Crypt<'_> {
    type Worker = ();
    type Partial = ();
    type State = State;
    type Output = CryptOutput;

    fn division(&self) -> Division {
        Division::Serial
    }

    fn worker(&self) -> Result<(), ModuleError> {
        Ok(())
    }

    fn examine(&self, (): &mut (), _: &Block<'_>) -> Result<(), ModuleError> {
        Ok(())
    }

    fn start(&self, item: &Item<'_>) -> Result<State, ModuleError> {
        Ok(State { stream: self.stream()?, target: self.begun(item)?, bytes: 0 })
    }

    fn fold(
        &self,
        state: &mut State,
        block: &Block<'_>,
        (): (),
        out: &mut Outputs<'_, CryptOutput>,
    ) -> Result<Flow, ModuleError> {
        let mut bytes = Vec::with_capacity(block.own.len() + 4096);
        match &mut state.stream {
            Stream::Encrypt(stream) => stream.push(block.own_bytes(), &mut bytes),
            Stream::Decrypt(stream) => stream.push(block.own_bytes(), &mut bytes),
        }
        .map_err(wrong)?;
        state.bytes += bytes.len() as u64;
        out.writing(|| state.target.write_all(&bytes)).map_err(|error| wrong(reason(&error)))?;
        Ok(Flow::Continue)
    }

    fn end(
        &self,
        item: &Item<'_>,
        state: State,
        out: &mut Outputs<'_, CryptOutput>,
    ) -> Result<(), ModuleError> {
        let State { stream, mut target, bytes: before } = state;
        let mut bytes = Vec::new();
        match stream {
            Stream::Encrypt(stream) => stream.finish(&mut bytes),
            Stream::Decrypt(stream) => stream.finish(&mut bytes),
        }
        .map_err(wrong)?;
        let name = target.name();
        let published = out.writing(|| {
            target.write_all(&bytes).map_err(|error| wrong(reason(&error)))?;
            // Read back and compared before it gets its name.
            target.verify().map_err(wrong)?;
            target.publish().map_err(wrong)
        });
        published?;
        if let Place::Vault(..) = self.place {
            note_complete().map_err(wrong)?;
        }
        out.push(CryptOutput { item: item.id(), place: name, bytes: before + bytes.len() as u64 });
        Ok(())
    }
}
