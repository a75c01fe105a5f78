//! Classic BPF: a checked program and a small interpreter, for packets that the kernel does not filter.
//!
//! Here are instructions and how they run. Making them from text is `filter`'s.

/// Longest program, as in the kernel.
pub const MAX_PROGRAM: usize = 4096;

/// Cells of scratch memory.
const CELLS: usize = 16;

/// One instruction, as the kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What to do.
    pub code: u16,
    /// Instructions to skip when a comparison holds.
    pub if_true: u8,
    /// Instructions to skip when it does not.
    pub if_false: u8,
    /// Its number.
    pub k: u32,
}

/// Why instructions are no program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadProgram {
    /// No instruction, or too many.
    #[error("a filter program has {0} instructions; 1 to {MAX_PROGRAM} are allowed")]
    Length(usize),
    /// An instruction that does not exist, jumps out of the program, divides by zero or misses the memory.
    #[error("instruction {0} of the filter program is invalid")]
    Instruction(usize),
    /// The program would run past its end.
    #[error("the filter program does not end with a return")]
    NoReturn,
}

/// A program that always ends and never leaves its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    instructions: Vec<Instruction>,
}

// Instruction classes.
const LD: u16 = 0;
const LDX: u16 = 1;
const ST: u16 = 2;
const STX: u16 = 3;
const ALU: u16 = 4;
const JMP: u16 = 5;
const RET: u16 = 6;
const MISC: u16 = 7;
/// A jump that is always taken.
const JA: u16 = 5;

impl Program {
    /// Checks instructions: all known, jumps inside, memory inside, no division by a constant zero. Jumps go forward, but for
    /// those that go on with the next of a packet's headers (`protochain`): with that every program ends.
    pub fn new(instructions: Vec<Instruction>) -> Result<Self, BadProgram> {
        let count = instructions.len();
        if count == 0 || count > MAX_PROGRAM {
            return Err(BadProgram::Length(count));
        }
        for (at, instruction) in instructions.iter().enumerate() {
            if !valid(*instruction, at, count - at - 1) {
                return Err(BadProgram::Instruction(at));
            }
        }
        match instructions.last() {
            Some(last) if last.code & 7 == RET => Ok(Self { instructions }),
            _ => Err(BadProgram::NoReturn),
        }
    }

    /// Whether it goes back anywhere, which the kernel does not take.
    pub fn has_loops(&self) -> bool {
        self.instructions.iter().any(|one| one.code == JA && one.k.cast_signed() < 0)
    }

    /// The instructions.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// The same program that keeps `bytes` of what it accepts: in the kernel a filter's answer is the number of
    /// bytes to keep.
    #[must_use]
    pub fn keeping(mut self, bytes: u32) -> Self {
        for instruction in &mut self.instructions {
            if instruction.code == RET && instruction.k != 0 {
                instruction.k = bytes;
            }
        }
        self
    }

    /// Runs over a packet of `original_len` bytes of which `data` was captured: the number of bytes to keep, 0 to
    /// reject. A load outside `data` rejects, as everywhere, and so does going back more often than there are bytes.
    pub fn run(&self, data: &[u8], original_len: u32) -> u32 {
        let mut machine = Machine { data, original_len, a: 0, x: 0, cells: [0; CELLS] };
        let (mut at, mut turns) = (0usize, 0);
        while let Some(instruction) = self.instructions.get(at) {
            at += 1;
            match machine.step(*instruction) {
                Some(ControlFlow::Skip(count)) => at += count,
                // Each header has a byte at least.
                Some(ControlFlow::Back(_)) if turns >= data.len() => return 0,
                Some(ControlFlow::Back(count)) => (at, turns) = (at.saturating_sub(count), turns + 1),
                Some(ControlFlow::Return(bytes)) => return bytes,
                None => return 0,
            }
        }
        0
    }
}

/// Whether an instruction exists and is safe, with so many instructions before and behind it.
fn valid(instruction: Instruction, before: usize, after: usize) -> bool {
    let Instruction { code, if_true, if_false, k } = instruction;
    match code & 7 {
        LD => match code {
            0x60 => (k as usize) < CELLS,
            _ => matches!(code, 0x00 | 0x20 | 0x28 | 0x30 | 0x40 | 0x48 | 0x50 | 0x80),
        },
        LDX => match code {
            0x61 => (k as usize) < CELLS,
            _ => matches!(code, 0x01 | 0x81 | 0xb1),
        },
        ST | STX => code <= 7 && (k as usize) < CELLS,
        ALU => match code {
            0x34 | 0x94 => k != 0,
            0x64 | 0x74 => k < 32,
            _ => code >> 4 <= 0xa && code & 0xff00 == 0,
        },
        JMP => match code {
            JA if k.cast_signed() < 0 => k.cast_signed().unsigned_abs() as usize <= before + 1,
            JA => (k as usize) < after,
            _ => {
                matches!(code & 0xf0, 0x10 | 0x20 | 0x30 | 0x40)
                    && code & 0xff00 == 0
                    && usize::from(if_true.max(if_false)) < after
            }
        },
        RET => matches!(code, 0x06 | 0x16),
        _ => matches!(code, 0x07 | 0x87),
    }
}

enum ControlFlow {
    Skip(usize),
    Back(usize),
    Return(u32),
}

struct Machine<'a> {
    data: &'a [u8],
    original_len: u32,
    a: u32,
    x: u32,
    cells: [u32; CELLS],
}

impl Machine<'_> {
    /// Runs one instruction; `None` rejects.
    fn step(&mut self, instruction: Instruction) -> Option<ControlFlow> {
        let Instruction { code, if_true, if_false, k } = instruction;
        let cell = k as usize % CELLS;
        match code & 7 {
            LD => self.a = self.value(code, k)?,
            LDX => {
                self.x = match code {
                    // The length of an IPv4 header.
                    0xb1 => u32::from(*self.data.get(k as usize)? & 0xf) * 4,
                    _ => self.value(code - 1, k)?,
                }
            }
            ST => self.cells[cell] = self.a,
            STX => self.cells[cell] = self.x,
            ALU => self.a = self.calculate(code, k)?,
            JMP if code == JA => {
                let distance = k.cast_signed();
                let count = distance.unsigned_abs() as usize;
                return Some(if distance < 0 { ControlFlow::Back(count) } else { ControlFlow::Skip(count) });
            }
            JMP => {
                let with = if code & 8 != 0 { self.x } else { k };
                let holds = match code & 0xf0 {
                    0x10 => self.a == with,
                    0x20 => self.a > with,
                    0x30 => self.a >= with,
                    _ => self.a & with != 0,
                };
                return Some(ControlFlow::Skip(usize::from(if holds { if_true } else { if_false })));
            }
            RET => return Some(ControlFlow::Return(if code & 0x10 != 0 { self.a } else { k })),
            MISC if code & 0x80 != 0 => self.a = self.x,
            _ => self.x = self.a,
        }
        Some(ControlFlow::Skip(0))
    }

    /// What a load gives: the mode is in the upper bits, the width in the middle.
    fn value(&self, code: u16, k: u32) -> Option<u32> {
        let at = match code & 0xe0 {
            0x00 => return Some(k),
            0x60 => return self.cells.get(k as usize).copied(),
            0x80 => return Some(self.original_len),
            0x40 => self.x.checked_add(k)?,
            _ => k,
        };
        let rest = self.data.get(at as usize..)?;
        Some(match code & 0x18 {
            0x08 => u32::from(u16::from_be_bytes(*rest.first_chunk()?)),
            0x10 => u32::from(*rest.first()?),
            _ => u32::from_be_bytes(*rest.first_chunk()?),
        })
    }

    fn calculate(&self, code: u16, k: u32) -> Option<u32> {
        let with = if code & 8 != 0 { self.x } else { k };
        Some(match code >> 4 {
            0 => self.a.wrapping_add(with),
            1 => self.a.wrapping_sub(with),
            2 => self.a.wrapping_mul(with),
            3 => self.a.checked_div(with)?,
            4 => self.a | with,
            5 => self.a & with,
            // libpcap's own interpreter shifts everything out where the distance is too large.
            6 => self.a.checked_shl(with).unwrap_or(0),
            7 => self.a.checked_shr(with).unwrap_or(0),
            8 => self.a.wrapping_neg(),
            9 => self.a.checked_rem(with)?,
            _ => self.a ^ with,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(code: u16, k: u32) -> Instruction {
        Instruction { code, if_true: 0, if_false: 0, k }
    }

    #[test]
    fn unsafe_programs_are_refused() {
        let ret = one(0x06, 1);
        assert_eq!(Program::new(vec![]), Err(BadProgram::Length(0)));
        assert_eq!(Program::new(vec![one(0x00, 0)]), Err(BadProgram::NoReturn));
        for bad in [one(0x05, 1), one(0x60, 16), one(0x02, 16), one(0x34, 0), one(0x64, 32), one(0xffff, 0)] {
            assert_eq!(Program::new(vec![bad, ret]), Err(BadProgram::Instruction(0)), "{bad:?}");
        }
        assert!(Program::new(vec![one(0x05, 0), ret]).is_ok());
        let back = |count: i32| Program::new(vec![one(0x00, 0), one(0x05, (-count).cast_unsigned()), ret]);
        assert_eq!(back(3), Err(BadProgram::Instruction(1)));
        assert!(back(2).unwrap().has_loops() && !Program::new(vec![ret]).unwrap().has_loops());
        assert_eq!(back(2).unwrap().run(&[0; 9], 9), 0, "it ends");
    }

    #[test]
    fn a_load_behind_the_packet_rejects_it() {
        let program = Program::new(vec![one(0x20, 2), one(0x06, 7)]).unwrap();
        assert_eq!(program.run(&[0; 6], 6), 7);
        assert_eq!(program.run(&[0; 5], 6), 0);
        let program = Program::new(vec![one(0x30, u32::MAX), one(0x06, 7)]).unwrap();
        assert_eq!(program.run(&[0; 5], 5), 0);
    }

    #[test]
    fn the_answer_becomes_the_bytes_to_keep() {
        let program = Program::new(vec![one(0x06, 65_535)]).unwrap().keeping(96);
        assert_eq!(program.run(&[], 0), 96);
        assert_eq!(Program::new(vec![one(0x06, 0)]).unwrap().keeping(96).run(&[], 0), 0);
    }

    proptest! {
        /// Whatever passes the check runs to an end.
        #[test]
        fn checked_programs_always_end(
            raw in prop::collection::vec((any::<u8>(), any::<u8>(), any::<u8>(), 0u32..40), 1..40),
            data in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let mut all: Vec<Instruction> = raw
                .into_iter()
                .map(|(code, t, f, k)| {
                    // Some go back.
                    let k = if code == 5 && k >= 20 { (20 - k.cast_signed()).cast_unsigned() } else { k };
                    Instruction { code: u16::from(code), if_true: t % 8, if_false: f % 8, k }
                })
                .collect();
            all.push(one(0x06, 1));
            // Keep what is valid where it stands, so that long programs come about.
            let count = all.len();
            for (at, instruction) in all.iter_mut().enumerate() {
                if !valid(*instruction, at, count - at - 1) {
                    *instruction = one(0x06, 2);
                }
            }
            let program = Program::new(all).unwrap();
            program.run(&data, 100);
        }
    }
}
