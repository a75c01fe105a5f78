//! Capture files that are compressed as a whole: a copy of their contents in an unnamed file, which can be read twice.

use flate2::read::MultiGzDecoder;
use holdfast_base::FileKind;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, Write as _};

/// Bytes that are gathered before a read or a write.
const GATHER: usize = 1 << 20;

/// Decompresses a file into another, which is left at its begin; what failed before the end of the file, if anything.
pub fn unpack_whole(file: &File, kind: FileKind, into: &mut File) -> io::Result<Option<io::Error>> {
    let mut input = BufReader::with_capacity(GATHER, file);
    let mut decoder: Box<dyn Read + '_> = match kind {
        FileKind::Gzip => Box::new(MultiGzDecoder::new(&mut input)),
        FileKind::Zstd => Box::new(zstd::Decoder::with_buffer(&mut input)?),
        other => return Err(io::Error::other(format!("{} is not compressed as a whole", other.name()))),
    };
    let mut output = BufWriter::with_capacity(GATHER, &mut *into);
    let mut piece = vec![0; GATHER];
    let damage = loop {
        match decoder.read(&mut piece) {
            Ok(0) => break None,
            Ok(count) => output.write_all(&piece[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Some(error),
        }
    };
    output.flush()?;
    drop(output);
    into.rewind()?;
    Ok(damage)
}
