//! Results and log lines of one request, within the limits of both.

use holdfast_module_wire::{
    Answer, Channel, Failure, Limits, MAX_LOG_BYTES, MAX_LOG_LINES, MAX_OUTPUT_BYTES, Output, PART_BYTES,
    PART_OUTPUTS, Results,
};

/// Collector of everything that a module emits and logs.
#[derive(Debug)]
pub(crate) struct Collector {
    /// Results and log lines that were not sent.
    results: Results,
    /// Bytes of these results.
    waiting: u32,
    /// Number of results of the request, and their bytes.
    outputs: u32,
    bytes: u32,
    /// Way of full frames to the scan; `None`: all results wait.
    parts: Option<Channel>,
    most_outputs: u32,
    most_bytes: u32,
    accepts: bool,
}

impl Collector {
    /// Makes an empty collector, which accepts log lines only.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            results: Results::default(),
            waiting: 0,
            outputs: 0,
            bytes: 0,
            parts: None,
            most_outputs: limits.outputs,
            most_bytes: limits.output_bytes,
            accepts: false,
        }
    }

    /// Sends results from here on as soon as they fill a frame.
    pub(crate) fn send_parts(&mut self, channel: Channel) {
        self.parts = Some(channel);
    }

    /// Accepts results from here on: an item begins, or the scan ends.
    pub(crate) fn accept(&mut self) {
        self.accepts = true;
    }

    /// Checks that a result of `length` bytes is within the limits.
    fn admit(&self, length: u32) -> Result<(), Failure> {
        if !self.accepts {
            return Err(Failure::Garbage("it called emit before its first item".to_owned()));
        }
        if self.outputs >= self.most_outputs {
            return Err(Failure::Outputs(self.most_outputs));
        }
        if length > MAX_OUTPUT_BYTES {
            return Err(Failure::OutputBytes(MAX_OUTPUT_BYTES.min(self.most_bytes)));
        }
        match self.bytes.checked_add(length) {
            Some(bytes) if bytes <= self.most_bytes => Ok(()),
            _ => Err(Failure::OutputBytes(self.most_bytes)),
        }
    }

    /// Adds a result; `offset` is -1 for the whole item.
    pub(crate) fn emit(&mut self, offset: i64, bytes: &[u8]) -> Result<(), Failure> {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.admit(length)?;
        let offset = match offset {
            -1 => None,
            offset => Some(
                u64::try_from(offset)
                    .map_err(|_| Failure::Garbage(format!("it called emit with the offset {offset}")))?,
            ),
        };
        let is_full =
            self.results.outputs.len() >= PART_OUTPUTS as usize || self.waiting + length > PART_BYTES;
        if is_full && !self.results.outputs.is_empty() {
            self.send()?;
        }
        self.outputs += 1;
        self.bytes += length;
        self.waiting += length;
        self.results.outputs.push(Output { offset, bytes: bytes.to_vec() });
        Ok(())
    }

    /// Sends the waiting results; the rest of the answer follows.
    fn send(&mut self) -> Result<(), Failure> {
        let Some(channel) = &mut self.parts else { return Ok(()) };
        self.waiting = 0;
        let outputs = std::mem::take(&mut self.results.outputs);
        let mut frame = Vec::new();
        Answer::Results(Results { outputs, more: true, ..Results::default() }).encode(&mut frame);
        channel.send(&frame, None).map_err(|error| Failure::System(error.to_string()))
    }

    /// Adds a log line; long lines are cut and lines above the limit are dropped.
    pub(crate) fn log(&mut self, bytes: &[u8]) {
        if self.results.log.len() < MAX_LOG_LINES {
            let bytes = bytes.get(..MAX_LOG_BYTES).unwrap_or(bytes);
            let mut line = String::from_utf8_lossy(bytes).into_owned();
            line.truncate(line.floor_char_boundary(MAX_LOG_BYTES));
            self.results.log.push(line);
        }
    }

    /// Takes the results and log lines that were not sent, and starts anew.
    pub(crate) fn take(&mut self) -> Results {
        (self.waiting, self.outputs, self.bytes) = (0, 0, 0);
        std::mem::take(&mut self.results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collector(outputs: u32, output_bytes: u32) -> Collector {
        let mut collector = Collector::new(&Limits { outputs, output_bytes, ..Limits::default() });
        collector.accept();
        collector
    }

    #[test]
    fn results_keep_their_order_and_their_limits() {
        let mut collector = collector(2, 5);
        collector.emit(7, b"abc").unwrap();
        assert_eq!(collector.emit(8, b"def"), Err(Failure::OutputBytes(5)));
        collector.emit(-1, b"de").unwrap();
        assert_eq!(collector.emit(9, b""), Err(Failure::Outputs(2)));
        let outputs = collector.take().outputs;
        let seen: Vec<_> = outputs.iter().map(|output| (output.offset, output.bytes.as_slice())).collect();
        assert_eq!(seen, [(Some(7), b"abc".as_slice()), (None, b"de")]);
        collector.emit(0, b"abcde").unwrap();
    }

    #[test]
    fn an_offset_below_minus_one_is_garbage() {
        assert!(matches!(collector(9, 9).emit(-2, b""), Err(Failure::Garbage(_))));
        let early = Collector::new(&Limits::default()).emit(0, b"");
        assert!(matches!(early, Err(Failure::Garbage(_))));
    }

    #[test]
    fn log_lines_are_cut_and_dropped() {
        let mut collector = collector(1, 1);
        (0..100).for_each(|_| collector.log(&[0xff; 2 * MAX_LOG_BYTES]));
        let log = collector.take().log;
        assert_eq!(log.len(), MAX_LOG_LINES);
        assert!(log.iter().all(|line| line.len() <= MAX_LOG_BYTES));
    }
}
