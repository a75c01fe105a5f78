//! Handle of one module process: the scan's end of the protocol.
//!
//! The handle owns the process: it kills it after a fatal error and when it is dropped, and it never waits for
//! an answer longer than the limits allow.

use crate::answer::{Answer, Ready, Results};
use crate::arguments::HostArguments;
use crate::channel::{Channel, ChannelError};
use crate::child::Child;
use crate::error::{Cause, ModuleError, Place, is_static, printable};
use crate::failure::Step;
use crate::frame::{MAX_ANSWER_BYTES, MAX_NAME_BYTES, cut};
use crate::limits::Limits;
use crate::memory::SharedMemory;
use crate::request::Request;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

/// Point that the conversation with a process has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No item is open.
    Between,
    /// An item is open and takes blocks.
    Item,
    /// The totals were taken; nothing else is possible.
    Finished,
    /// The process is gone after an error.
    Ended,
}

/// Process that runs one module, with the socket and the memory file that connect it to the scan.
#[derive(Debug)]
pub struct ModuleProcess {
    module: String,
    limits: Limits,
    child: Child,
    channel: Channel,
    memory: SharedMemory,
    ready: Ready,
    stage: Stage,
    place: Place,
    /// Frames of requests that are sent together with the next one, and their number.
    pending: (Vec<u8>, u32),
}

impl ModuleProcess {
    /// Starts `program` with the module in the file `wasm`, and waits until the module is loaded.
    pub fn start(
        program: &Path,
        wasm: &Path,
        arguments: &[String],
        limits: Limits,
    ) -> Result<Self, ModuleError> {
        let module = wasm.file_name().unwrap_or(wasm.as_os_str()).display().to_string();
        let error =
            |cause| ModuleError { module: module.clone(), cause, place: None, log: vec![], ended: false };
        let arguments = HostArguments {
            describe: false,
            wasm: wasm.to_owned(),
            limits: limits.clone(),
            arguments: arguments.to_vec(),
        };
        arguments.check().map_err(|refused| error(Cause::Misuse(refused.to_string())))?;
        let memory = SharedMemory::new(limits.block_bytes).map_err(|cause| error(Cause::System(cause)))?;
        let (child, socket) = Child::start(program, &arguments, &memory)
            .map_err(|cause| error(Cause::Program { program: program.to_owned(), error: cause }))?;
        let mut process = Self {
            module,
            limits,
            child,
            channel: Channel::new(socket),
            memory,
            ready: Ready { overlap: None, confined: false },
            stage: Stage::Between,
            place: Place { step: Step::Load, item: String::new(), offset: 0 },
            pending: (Vec::new(), 0),
        };
        let most = process.limits.block_bytes;
        let time = process.limits.load_time + process.limits.grace;
        match process.receive(time, Instant::now() + time)? {
            Answer::Ready(ready) if ready.overlap.is_none_or(|overlap| u64::from(overlap) < most) => {
                process.ready = ready;
            }
            _ => return Err(process.fail(Cause::WrongAnswer)),
        }
        Ok(process)
    }

    /// Bytes that a block repeats of the block before it; `None` means that this process takes whole items, in order.
    pub fn overlap(&self) -> Option<u32> {
        self.ready.overlap
    }

    /// The kernel filters the system calls of the process.
    pub fn is_confined(&self) -> bool {
        self.ready.confined
    }

    /// Identifier of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The process is gone, after an error or after the totals.
    pub fn is_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended | Stage::Finished)
    }

    /// Memory that blocks pass through, for callers that fill it themselves before [`Self::block_at`].
    pub fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    /// Begins an item. The request is sent together with the next one, which also reports its failure.
    pub fn item(&mut self, name: &str, size: Option<u64>) -> Result<(), ModuleError> {
        self.expect(Stage::Between, "the last item is not ended")?;
        let size = size.filter(|size| i64::try_from(*size).is_ok());
        let request = Request::Item { name: cut(name, MAX_NAME_BYTES).to_owned(), size };
        request.encode(&mut self.pending.0);
        self.pending.1 += 1;
        name.clone_into(&mut self.place.item);
        self.place.offset = 0;
        self.stage = Stage::Item;
        Ok(())
    }

    /// Copies a block into the shared memory and passes it to the module; `last` also ends the item.
    pub fn block(&mut self, offset: u64, bytes: &[u8], last: bool) -> Result<Results, ModuleError> {
        self.expect(Stage::Item, "no item is begun")?;
        let length = bytes.len() as u64;
        if length > self.memory.bytes() {
            let most = self.memory.bytes();
            return Err(self.misuse(&format!("a block of {length} bytes is longer than the limit of {most}")));
        }
        match self.memory.write(0, bytes) {
            Ok(()) => self.block_at(offset, 0..length, last),
            Err(error) => Err(self.fail(Cause::System(error))),
        }
    }

    /// Passes a block that stands in the shared memory to the module; `last` also ends the item.
    pub fn block_at(&mut self, offset: u64, range: Range<u64>, last: bool) -> Result<Results, ModuleError> {
        self.expect(Stage::Item, "no item is begun")?;
        let length = range.end.checked_sub(range.start).filter(|_| range.end <= self.memory.bytes());
        let Some(length) = length.and_then(|length| u32::try_from(length).ok()) else {
            return Err(self.misuse(&format!("the range {range:?} is outside of the shared memory")));
        };
        if offset.checked_add(length.into()).is_none_or(|end| i64::try_from(end).is_err()) {
            return Err(self.misuse(&format!("the offset {offset} is too large")));
        }
        self.place.offset = offset;
        let results = self.exchange(&Request::Block { at: range.start, length, offset, last });
        if results.is_ok() && last {
            self.stage = Stage::Between;
        }
        results
    }

    /// Ends the item where no block was the last one; does nothing where one was.
    pub fn end(&mut self) -> Result<Results, ModuleError> {
        if self.stage == Stage::Between {
            return Ok(Results::default());
        }
        self.expect(Stage::Item, "no item is begun")?;
        let results = self.exchange(&Request::End);
        if results.is_ok() {
            self.stage = Stage::Between;
        }
        results
    }

    /// Takes the totals of the module and ends the process.
    pub fn finish(&mut self) -> Result<Results, ModuleError> {
        self.expect(Stage::Between, "the last item is not ended")?;
        let results = self.exchange(&Request::Finish)?;
        self.child.stop();
        self.stage = Stage::Finished;
        Ok(results)
    }

    /// Sends a request with all pending ones, and joins the results of their answers.
    fn exchange(&mut self, request: &Request) -> Result<Results, ModuleError> {
        let (mut frames, count) = std::mem::take(&mut self.pending);
        request.encode(&mut frames);
        let calls = count + 1 + u32::from(matches!(request, Request::Block { last: true, .. }));
        let time = self.limits.call_time.saturating_mul(calls) + self.limits.grace;
        self.place.step = match request {
            Request::Item { .. } => Step::Start,
            Request::Block { .. } => Step::Block,
            Request::End => Step::End,
            Request::Finish => Step::Finish,
        };
        let deadline = Instant::now() + time;
        // A process that ended has perhaps told why: its answer is read in any case.
        match self.channel.send(&frames, Some(deadline)) {
            Ok(()) | Err(ChannelError::Closed) => {}
            Err(error) => return Err(self.lost(error, time)),
        }
        let mut joined = Results::default();
        let mut bytes = 0;
        let mut answers = 0;
        while answers <= count {
            let Answer::Results(results) = self.receive(time, deadline)? else {
                return Err(self.fail(Cause::WrongAnswer));
            };
            // The process keeps these limits for each request.
            bytes += results.outputs.iter().map(|output| output.bytes.len() as u64).sum::<u64>();
            let most = u64::from(calls);
            let outputs = (joined.outputs.len() + results.outputs.len()) as u64;
            if outputs > most * u64::from(self.limits.outputs)
                || bytes > most * u64::from(self.limits.output_bytes)
                || (results.more && results.outputs.is_empty())
            {
                return Err(self.fail(Cause::WrongAnswer));
            }
            joined.outputs.extend(results.outputs);
            joined.log.extend(results.log.iter().map(|line| printable(line)));
            joined.enough = results.enough;
            answers += u32::from(!results.more);
        }
        frames.clear();
        self.pending.0 = frames;
        Ok(joined)
    }

    /// Receives an answer other than a failure.
    fn receive(&mut self, time: Duration, deadline: Instant) -> Result<Answer, ModuleError> {
        let payload = match self.channel.receive(MAX_ANSWER_BYTES, Some(deadline)) {
            Ok(payload) => payload,
            Err(error) => return Err(self.lost(error, time)),
        };
        match Answer::decode(payload) {
            Ok(Answer::Failed { step, failure, log }) => {
                self.place.step = step;
                let fatal = failure.is_fatal();
                let place = (!is_static(&failure)).then(|| Box::new(self.place.clone()));
                if fatal {
                    self.child.stop();
                }
                self.stage = if fatal { Stage::Ended } else { Stage::Between };
                let cause = Cause::Failure(failure);
                Err(ModuleError { module: self.module.clone(), cause, place, log, ended: fatal })
            }
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.fail(Cause::Answer(error))),
        }
    }

    /// Error of a channel that is of no more use.
    fn lost(&mut self, error: ChannelError, time: Duration) -> ModuleError {
        let cause = match error {
            ChannelError::Late => Cause::Silent(time),
            ChannelError::Wire(error) => Cause::Answer(error),
            ChannelError::System(error) => Cause::System(error),
            ChannelError::Closed => {
                let status = self.child.exit_status(self.limits.grace);
                Cause::Ended { status, message: self.child.message() }
            }
        };
        self.fail(cause)
    }

    /// Kills the process and makes an error of `cause`.
    fn fail(&mut self, cause: Cause) -> ModuleError {
        self.child.stop();
        self.stage = Stage::Ended;
        let place = Some(Box::new(self.place.clone()));
        ModuleError { module: self.module.clone(), cause, place, log: vec![], ended: true }
    }

    fn expect(&self, stage: Stage, otherwise: &str) -> Result<(), ModuleError> {
        match self.stage {
            current if current == stage => Ok(()),
            Stage::Ended => Err(self.misuse("the process was ended")),
            Stage::Finished => Err(self.misuse("its totals were taken already")),
            Stage::Between | Stage::Item => Err(self.misuse(otherwise)),
        }
    }

    fn misuse(&self, reason: &str) -> ModuleError {
        let cause = Cause::Misuse(reason.to_owned());
        ModuleError { module: self.module.clone(), cause, place: None, log: vec![], ended: false }
    }
}
