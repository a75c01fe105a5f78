//! Parser of FASTA, FASTQ and plain sequence text that arrives in pieces of any size.
//!
//! The first byte that is no blank tells the format: `>` or `;` FASTA, `@` FASTQ, anything else plain text, which is one record
//! without a name. Letters are passed on as they are, with blanks; their meaning belongs to `alphabet.rs`.

use crate::module::ModuleError;
use crate::module::biology::alphabet::is_blank;

/// Bytes of a record's name at most; longer names are cut.
const MOST_NAME: usize = 256;

/// Event of the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event<'a> {
    /// Begin of a record with this name, the first word of its header.
    Begin(&'a [u8]),
    /// Next letters of the record; they hold no line feed.
    Letters(&'a [u8]),
    /// End of the record's letters.
    End,
}

/// Format of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Fasta,
    Fastq,
    Plain,
}

/// Place in the text, between two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In front of the first byte that is no blank.
    Begin,
    /// In a header line, behind its mark.
    Header,
    /// In a comment line of FASTA.
    Comment,
    /// At the begin of a line of sequence.
    Line,
    /// Within a line of sequence.
    Sequence,
    /// In the line of FASTQ that separates sequence and quality.
    Separator,
    /// In the quality of FASTQ.
    Quality,
    /// Behind a complete quality.
    Between,
}

/// Streaming parser of one item.
#[derive(Debug)]
pub(super) struct Records {
    format: Format,
    place: Place,
    name: Vec<u8>,
    /// True behind the first word of a header.
    name_ended: bool,
    /// True between `Begin` and `End`.
    is_open: bool,
    /// Letters of the record.
    letters: u64,
    /// Letters of its quality.
    quality: u64,
    /// Offset of the next byte in the text.
    offset: u64,
    /// Offset of the record's header.
    header: u64,
}

impl Records {
    /// Makes a parser at the begin of a text.
    pub(super) fn new() -> Self {
        Self {
            format: Format::Plain,
            place: Place::Begin,
            name: Vec::new(),
            name_ended: false,
            is_open: false,
            letters: 0,
            quality: 0,
            offset: 0,
            header: 0,
        }
    }

    /// Parses the next bytes of the text.
    pub(super) fn push(&mut self, bytes: &[u8], sink: &mut impl FnMut(Event<'_>)) -> Result<(), ModuleError> {
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            let taken = match self.place {
                Place::Begin | Place::Line | Place::Between => self.line_start(*first, sink)?,
                _ => {
                    let end = memchr::memchr(b'\n', rest);
                    self.line_part(&rest[..end.unwrap_or(rest.len())], end.is_some(), sink)?;
                    end.map_or(rest.len(), |end| end + 1)
                }
            };
            self.offset += taken as u64;
            rest = &rest[taken..];
        }
        Ok(())
    }

    /// Ends the text of the file.
    pub(super) fn finish(&mut self, sink: &mut impl FnMut(Event<'_>)) -> Result<(), ModuleError> {
        match (self.format, self.place) {
            (Format::Fastq, Place::Header | Place::Line | Place::Sequence) => {
                Err(self.error("the text ends in front of its line `+`; the file is cut off or is no FASTQ"))
            }
            (Format::Fastq, Place::Separator | Place::Quality) if self.quality < self.letters => Err(self
                .error(&format!(
                    "its quality ends after {} of {} letters; the file is cut off or is no FASTQ",
                    self.quality, self.letters
                ))),
            (_, place) => {
                if place == Place::Header {
                    self.begin(sink);
                }
                self.end(sink);
                Ok(())
            }
        }
    }

    /// Decides on a line by its first byte, and returns the number of bytes that it takes.
    fn line_start(&mut self, first: u8, sink: &mut impl FnMut(Event<'_>)) -> Result<usize, ModuleError> {
        if self.place == Place::Begin {
            if is_blank(first) {
                return Ok(1);
            }
            self.format = match first {
                b'>' | b';' => Format::Fasta,
                b'@' => Format::Fastq,
                _ => Format::Plain,
            };
        }
        self.place = match (self.format, first) {
            (Format::Fasta, b'>') => self.header(sink),
            (Format::Fasta, b';') => Place::Comment,
            (Format::Fastq, b'@') if self.place != Place::Line => self.header(sink),
            (Format::Fastq, b'+') if self.place == Place::Line => {
                self.end(sink);
                Place::Separator
            }
            (Format::Fastq, b'@') => {
                return Err(self.error("the next record begins in front of its line `+`; add the quality"));
            }
            (Format::Fastq, _) if self.place == Place::Between => {
                if is_blank(first) {
                    return Ok(1);
                }
                return Err(self.error(&format!(
                    "`{}` follows its quality where `@` must begin a record; make quality and sequence equally long",
                    first.escape_ascii()
                )));
            }
            _ => {
                self.place = Place::Sequence;
                return Ok(0);
            }
        };
        Ok(1)
    }

    /// Takes a part of a line; `is_end` tells that the line ends behind it.
    fn line_part(
        &mut self,
        part: &[u8],
        is_end: bool,
        sink: &mut impl FnMut(Event<'_>),
    ) -> Result<(), ModuleError> {
        match self.place {
            Place::Header => {
                for byte in part {
                    if !is_blank(*byte) {
                        if !self.name_ended && self.name.len() < MOST_NAME {
                            self.name.push(*byte);
                        }
                    } else if !self.name.is_empty() {
                        self.name_ended = true;
                    }
                }
                if is_end {
                    self.begin(sink);
                }
            }
            Place::Sequence => {
                if !self.is_open {
                    self.begin(sink);
                }
                if self.format == Format::Fastq {
                    self.letters += part.iter().filter(|byte| !is_blank(**byte)).count() as u64;
                }
                if !part.is_empty() {
                    sink(Event::Letters(part));
                }
            }
            Place::Quality => {
                self.quality += part.iter().filter(|byte| !is_blank(**byte)).count() as u64;
                if self.quality > self.letters {
                    return Err(self.error(&format!(
                        "its quality is longer than its {} letters; make quality and sequence equally long",
                        self.letters
                    )));
                }
            }
            _ => {}
        }
        if is_end {
            self.place = match self.place {
                Place::Separator | Place::Quality if self.quality == self.letters => Place::Between,
                Place::Separator | Place::Quality => Place::Quality,
                _ => Place::Line,
            };
        }
        Ok(())
    }

    /// Ends the record and begins a header.
    fn header(&mut self, sink: &mut impl FnMut(Event<'_>)) -> Place {
        self.end(sink);
        self.name.clear();
        (self.name_ended, self.letters, self.quality) = (false, 0, 0);
        self.header = self.offset;
        Place::Header
    }

    fn begin(&mut self, sink: &mut impl FnMut(Event<'_>)) {
        self.is_open = true;
        sink(Event::Begin(&self.name));
    }

    fn end(&mut self, sink: &mut impl FnMut(Event<'_>)) {
        if std::mem::take(&mut self.is_open) {
            sink(Event::End);
        }
    }

    fn error(&self, reason: &str) -> ModuleError {
        ModuleError(format!(
            "cannot read FASTQ record `{}` at byte offset {} of the text: {reason}",
            self.name.escape_ascii(),
            self.header
        ))
    }
}
