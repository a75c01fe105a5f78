//! Framing: rules as people type them, and streams cut by them.

use holdfast_ingest::{Cutter, Framing, Tail};

const RULES: [Framing; 8] = [
    Framing::Fixed(7),
    Framing::Blocks(7),
    Framing::Lines,
    Framing::Len32,
    Framing::Len32Be,
    Framing::Fixed(1 << 20),
    Framing::Attr32,
    Framing::Syslog,
];

/// The input is a rule as text; and a choice of rule, a size of pieces, and a stream. Whatever is cut, put together
/// again it is the stream, but for an element that is cut off at its end, and for what has a malformed count.
pub fn run(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(rule) = text.parse::<Framing>()
    {
        assert_eq!(rule.to_string().parse(), Ok(rule));
    }
    let Some((&[rule, piece], stream)) = data.split_first_chunk::<2>() else { return };
    cut(RULES[usize::from(rule) % RULES.len()], usize::from(piece).max(1), stream);
}

fn cut(rule: Framing, piece: usize, stream: &[u8]) {
    let mut cutter = Cutter::new(rule);
    let (mut again, mut element, mut ended) = (Vec::<u8>::new(), Vec::<u8>::new(), 0);
    let (mut header, mut raw) = (None, Vec::<u8>::new());
    for piece in stream.chunks(piece) {
        let mut rest = piece;
        while !rest.is_empty() {
            let step = cutter.step(rest);
            let whole = step.lead + step.take + step.trail;
            assert!(0 < whole && whole <= rest.len(), "{step:?}");
            if step.begins {
                header = step.header;
            }
            element.extend_from_slice(&rest[step.lead..step.lead + step.take]);
            raw.extend_from_slice(&rest[..whole]);
            rest = &rest[whole..];
            if step.ends && step.malformed {
                again.append(&mut raw);
                element.clear();
                ended = cutter.position();
            } else if step.ends {
                raw.clear();
                let (meta, data) = element.split_at(header.unwrap_or(0));
                rule.restore(&mut again, header.map(|_| meta), data, step.tag);
                element.clear();
                ended = cutter.position();
            }
            assert!(cutter.least() <= 64 << 10);
            assert!(cutter.most(1 << 20, 100) <= 1 << 20);
        }
    }
    assert_eq!(cutter.position(), stream.len() as u64);
    match cutter.finish() {
        Tail::Clean => assert_eq!(again, stream),
        Tail::Ends(tag) => {
            rule.restore(&mut again, None, &element, tag);
            assert_eq!(again, stream);
        }
        Tail::Cut { have, want } => {
            assert_eq!(again, stream[..ended as usize]);
            assert!(want.is_none_or(|want| have < want));
        }
    }
}

/// Rules, and a stream for each.
pub fn seeds() -> Vec<Vec<u8>> {
    let rules = ["fixed:5032", "blocks:64KiB", "lines", "len32", "len32be", "attr32", "syslog"]
        .map(|text| text.as_bytes().to_vec());
    let streams = [
        (0, b"abcdefgabcdefg".to_vec()),
        (1, b"abcdefgabc".to_vec()),
        (2, b"one\ntwo\n\nthree".to_vec()),
        (
            3,
            [&3u32.to_le_bytes()[..], b"abc", &0u32.to_le_bytes(), &300u32.to_le_bytes(), &[7; 300]].concat(),
        ),
        (4, [&3u32.to_be_bytes()[..], b"abc", &0u32.to_be_bytes(), &9u32.to_be_bytes(), b"cut"].concat()),
        (5, vec![1; 5000]),
        (
            6,
            [
                &[9, 0, 0, 0, 4, 0][..],
                b"\x02\0ab",
                b"abc",
                &[4, 0, 0, 0, 3, 0],
                b"no",
                &[1, 0, 0, 0, 7, 0, 0, 0, 0],
            ]
            .concat(),
        ),
    ];
    let syslog = (7, b"6 <1>one<2>two\n<3>three\x0012x lost\n05 zero\n4 four5 cut".to_vec());
    let streams =
        streams.into_iter().chain([syslog]).map(|(rule, stream)| [&[rule, 5][..], &stream].concat());
    rules.into_iter().chain(streams).collect()
}
