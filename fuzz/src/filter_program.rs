//! Filter programs: whatever passes the check ends, and reads nothing outside of its packet.

use holdfast_ingest::packet::bpf::{Instruction, Program};

/// The input is a packet of 32 bytes, then instructions of 8.
pub fn run(data: &[u8]) {
    let (packet, rest) = data.split_at(data.len().min(32));
    let instruction = |bytes: &[u8]| Instruction {
        code: u16::from_le_bytes([bytes[0], bytes[1]]),
        if_true: bytes[2],
        if_false: bytes[3],
        k: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
    };
    let Ok(program) = Program::new(rest.chunks_exact(8).map(instruction).collect()) else { return };
    let kept = program.run(packet, 1500);
    if !returns_a_register(&program) {
        let shorter = program.keeping(96).run(packet, 1500);
        assert_eq!(shorter, if kept == 0 { 0 } else { 96 });
    }
}

/// What such a program keeps is not a constant.
fn returns_a_register(program: &Program) -> bool {
    program.instructions().iter().any(|instruction| instruction.code == 0x16)
}

/// `ip`, and one with memory, arithmetic and an indirect load.
pub fn seeds() -> Vec<Vec<u8>> {
    let program = |instructions: &[(u16, u8, u8, u32)]| {
        let bytes = instructions.iter().flat_map(|(code, yes, no, k)| {
            [&code.to_le_bytes()[..], &[*yes, *no], &k.to_le_bytes()].concat()
        });
        [8u8; 32].into_iter().chain(bytes).collect()
    };
    vec![
        program(&[(0x28, 0, 0, 12), (0x15, 0, 1, 0x800), (0x06, 0, 0, 65535), (0x06, 0, 0, 0)]),
        program(&[
            (0xb1, 0, 0, 14),
            (0x48, 0, 0, 16),
            (0x02, 0, 0, 3),
            (0x61, 0, 0, 3),
            (0x0c, 0, 0, 0),
            (0x3c, 0, 0, 0),
            (0x35, 1, 0, 9),
            (0x05, 0, 0, 1),
            (0x87, 0, 0, 0),
            (0x16, 0, 0, 0),
        ]),
    ]
}
