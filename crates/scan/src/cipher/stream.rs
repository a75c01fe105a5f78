//! Streams: encryption and decryption of one file in order, in pieces of any length.

use super::decryptor::Decryptor;
use super::division::{Division, Piece};
use super::encryptor::{Encryptor, SerialEncryptor};
use super::{Key, Result};

/// Least number of bytes that a stream gathers before it transforms them: several tiles of Triple DES.
const BATCH: usize = 32 << 10;

/// Ordered pieces of any length, joined to ranges of whole chunks.
///
/// The end of the input is held back, since its range is transformed differently.
struct Gatherer {
    unit: usize,
    before_len: usize,
    offset: u64,
    before: Vec<u8>,
    pending: Vec<u8>,
}

impl Gatherer {
    /// Gatherer of ranges of several chunks. A serial division has one range, which the end of the input completes.
    fn new(division: Division) -> Self {
        let (chunk, before_len) = match division {
            Division::Independent { chunk, before } => (chunk, before),
            Division::Serial => (usize::MAX, 0),
        };
        let unit = BATCH.div_ceil(chunk).saturating_mul(chunk);
        Self { unit, before_len, offset: 0, before: Vec::new(), pending: Vec::new() }
    }

    fn push(&mut self, bytes: &[u8], mut transform: impl FnMut(&Piece<'_>) -> Result<()>) -> Result<()> {
        self.pending.extend_from_slice(bytes);
        let ready = self.pending.len().saturating_sub(1) / self.unit * self.unit;
        if ready == 0 {
            return Ok(());
        }
        transform(&Piece::new(self.offset, &self.pending[..ready], false).after(&self.before))?;
        self.before = self.pending[ready - self.before_len..ready].to_vec();
        self.pending.drain(..ready);
        self.offset += ready as u64;
        Ok(())
    }

    fn finish(self, transform: impl FnOnce(&Piece<'_>) -> Result<()>) -> Result<()> {
        transform(&Piece::new(self.offset, &self.pending, true).after(&self.before))
    }
}

/// Encryption of one file in order, with its header.
pub struct EncryptStream {
    path: EncryptPath,
    header: Vec<u8>,
}

enum EncryptPath {
    Ranges(Box<Encryptor>, Gatherer),
    Serial(SerialEncryptor),
}

impl EncryptStream {
    /// Stream of the file of an encryptor.
    pub fn new(encryptor: Encryptor) -> Self {
        let header = encryptor.header().to_vec();
        let division = encryptor.division();
        let path = match encryptor.serial() {
            Some(serial) => EncryptPath::Serial(serial),
            None => EncryptPath::Ranges(Box::new(encryptor), Gatherer::new(division)),
        };
        Self { path, header }
    }

    /// Takes the next content and appends the parts of the file that are ready.
    pub fn push(&mut self, content: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.append(&mut self.header);
        match &mut self.path {
            EncryptPath::Ranges(encryptor, gatherer) => {
                gatherer.push(content, |piece| encryptor.transform_into(piece, out))
            }
            EncryptPath::Serial(serial) => {
                serial.update(content, out);
                Ok(())
            }
        }
    }

    /// Appends the end of the file.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<()> {
        out.append(&mut self.header);
        match self.path {
            EncryptPath::Ranges(encryptor, gatherer) => {
                gatherer.finish(|piece| encryptor.transform_into(piece, out))
            }
            EncryptPath::Serial(serial) => {
                serial.finish(out);
                Ok(())
            }
        }
    }
}

/// Decryption of one file in order, with its header.
pub struct DecryptStream(State);

enum State {
    /// The header is not complete yet.
    Header(Key, Vec<u8>),
    Body(Box<Decryptor>, Gatherer),
}

impl DecryptStream {
    /// Stream of a file that begins with a header.
    pub fn new(key: &Key) -> Result<Self> {
        let mut stream = Self(State::Header(key.clone(), Vec::new()));
        // ECB has no header: its decryptor exists at once.
        stream.open(0)?;
        Ok(stream)
    }

    /// Stream of the body of a file, whose decryptor the caller made.
    pub fn with_decryptor(decryptor: Decryptor) -> Self {
        Self(body(decryptor))
    }

    /// Takes the next bytes of the file and appends the content that is ready and, where there are tags, authentic.
    pub fn push(&mut self, mut file: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if let State::Header(key, header) = &mut self.0 {
            let wanted = Decryptor::header_len(key.cipher()) - header.len();
            let (head, rest) = file.split_at(wanted.min(file.len()));
            header.extend_from_slice(head);
            file = rest;
            self.open(0)?;
        }
        match &mut self.0 {
            State::Body(decryptor, gatherer) => {
                gatherer.push(file, |piece| decryptor.transform_into(piece, out))
            }
            State::Header(..) => Ok(()),
        }
    }

    /// Appends the end of the content, after it has checked that the file is complete.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<()> {
        self.open(usize::MAX)?;
        match self.0 {
            State::Body(decryptor, gatherer) => gatherer.finish(|piece| decryptor.transform_into(piece, out)),
            State::Header(..) => Ok(()),
        }
    }

    /// Reads the header when at most `missing` bytes of it are absent.
    fn open(&mut self, missing: usize) -> Result<()> {
        if let State::Header(key, header) = &self.0
            && Decryptor::header_len(key.cipher()) - header.len() <= missing
        {
            self.0 = body(Decryptor::new(key, header)?);
        }
        Ok(())
    }
}

/// State after the header.
fn body(decryptor: Decryptor) -> State {
    let gatherer = Gatherer::new(decryptor.division());
    State::Body(Box::new(decryptor), gatherer)
}
