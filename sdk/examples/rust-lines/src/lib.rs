//! Module that counts the lines of each item and emits every line longer than its argument, in bytes.
//!
//! Results: each long line at its offset, cut at 200 bytes; the number of lines of each item; in the end, the
//! number of all lines. Build: `cargo build --release --target wasm32-unknown-unknown`.

use holdfast_module_sdk::{Arguments, ErrorCode, Flow, Module, emit, export, log};

/// Bytes of a line that are emitted.
const SHOWN: usize = 200;
/// Argument that is missing, or no number.
const NO_NUMBER: ErrorCode = ErrorCode(1);

struct Lines {
    longest: u64,
    /// Start, length and first bytes of the line that the last block did not end.
    start: u64,
    length: u64,
    shown: Vec<u8>,
    lines: u64,
    total: u64,
}

impl Lines {
    fn add(&mut self, part: &[u8]) {
        self.length += part.len() as u64;
        let room = SHOWN - self.shown.len().min(SHOWN);
        self.shown.extend_from_slice(&part[..part.len().min(room)]);
    }

    fn end_line(&mut self) {
        if self.length > self.longest {
            emit(Some(self.start), &self.shown);
        }
        self.lines += 1;
        self.start += self.length + 1;
        self.length = 0;
        self.shown.clear();
    }
}

impl Module for Lines {
    fn new(mut arguments: Arguments<'_>) -> Result<Self, ErrorCode> {
        let Some(longest) = arguments.next().and_then(|number| number.parse().ok()) else {
            log("give the length above which a line is emitted");
            return Err(NO_NUMBER);
        };
        Ok(Self { longest, start: 0, length: 0, shown: Vec::new(), lines: 0, total: 0 })
    }

    fn overlap(&self) -> Option<u32> {
        // Lines continue from block to block.
        None
    }

    fn start(&mut self, _name: &str, _size: Option<u64>) {
        (self.start, self.length, self.lines) = (0, 0, 0);
        self.shown.clear();
    }

    fn block(&mut self, bytes: &[u8], _offset: u64) -> Result<Flow, ErrorCode> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(line) => {
                    self.add(line);
                    self.end_line();
                }
                None => self.add(piece),
            }
        }
        Ok(Flow::Continue)
    }

    fn end(&mut self) -> Result<(), ErrorCode> {
        if self.length > 0 {
            self.end_line();
        }
        self.total += self.lines;
        emit(None, format!("{} lines", self.lines).as_bytes());
        Ok(())
    }

    fn finish(&mut self) {
        emit(None, format!("{} lines in all", self.total).as_bytes());
    }
}

export!(Lines);
