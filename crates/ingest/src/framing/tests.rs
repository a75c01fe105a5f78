//! Tests of framings against naive splitters.

use super::*;
use proptest::prelude::*;

/// An element as it is kept: header, data and tag.
type Kept = (Option<Vec<u8>>, Vec<u8>, u16);

/// Cuts `stream`, given in pieces, and returns the elements and what is left.
fn cut(framing: Framing, stream: &[u8], pieces: &[usize]) -> (Vec<Kept>, Tail) {
    let mut cutter = Cutter::new(framing);
    let (mut elements, mut open, mut header) = (Vec::new(), None::<Vec<u8>>, None);
    let kept = |mut bytes: Vec<u8>, header: Option<usize>, tag| match header {
        Some(header) => {
            let data = bytes.split_off(header);
            (Some(bytes), data, tag)
        }
        None => (None, bytes, tag),
    };
    let mut pieces = pieces.iter().copied().cycle();
    let mut rest = stream;
    while !rest.is_empty() {
        let (mut piece, after) = rest.split_at(pieces.next().unwrap_or(7).clamp(1, rest.len()));
        rest = after;
        while !piece.is_empty() {
            let step = cutter.step(piece);
            assert!(step.lead + step.take + step.trail > 0, "progress");
            assert_eq!(step.begins, step.begins && open.is_none());
            if step.begins {
                open = Some(Vec::new());
                header = step.header;
            }
            if step.take > 0 || step.ends {
                open.as_mut().unwrap().extend_from_slice(&piece[step.lead..step.lead + step.take]);
            }
            if step.ends {
                let bytes = open.take().unwrap();
                elements.extend((!step.malformed).then(|| kept(bytes, header, step.tag)));
            }
            piece = &piece[step.lead + step.take + step.trail..];
        }
    }
    assert_eq!(cutter.position(), stream.len() as u64);
    let tail = cutter.finish();
    if let Tail::Ends(tag) = tail {
        elements.push(kept(open.take().unwrap(), None, tag));
    }
    (elements, tail)
}

fn framing() -> impl Strategy<Value = Framing> {
    prop_oneof![
        (1u64..50).prop_map(Framing::Fixed),
        (1u64..50).prop_map(Framing::Blocks),
        Just(Framing::Lines),
        Just(Framing::Len32),
        Just(Framing::Len32Be),
        Just(Framing::Attr32),
        Just(Framing::Syslog),
    ]
}

proptest! {
    // Promises 2 and 5: whatever the pieces, the same elements, and the stream comes back byte for byte.
    #[test]
    fn elements_do_not_depend_on_how_the_bytes_arrive_and_restore_to_the_stream(
        framing in framing(),
        payloads in prop::collection::vec(
            (prop::option::of(prop::collection::vec(any::<u8>(), 0..9)), prop::collection::vec(any::<u8>(), 0..60), 0..3u16),
            0..20,
        ),
        pieces in prop::collection::vec(1usize..40, 1..8),
        cut_off in 0usize..30,
    ) {
        let mut stream = Vec::new();
        let mut wanted = Vec::new();
        for (header, payload, tag) in &payloads {
            let mut data: Vec<u8> = match framing {
                Framing::Lines => payload.iter().map(|b| if *b == b'\n' { b' ' } else { *b }).collect(),
                _ => payload.clone(),
            };
            let header = header.clone().filter(|_| framing.has_header());
            // Without a header: one that is longer than its frame, or a frame that is too short for any.
            let tag = match header {
                // With a count, where there is something to count; with a newline, or a NUL.
                None if framing == Framing::Syslog && *tag == 0 && !data.is_empty() => 0,
                None if framing == Framing::Syslog => {
                    data.retain(|byte| !matches!(byte, b'\n' | 0));
                    data.insert(0, b'<');
                    tag.max(&1) + 1
                }
                None if framing.has_header() && *tag > 0 => data.len() as u16 + tag,
                None if framing.has_header() => {
                    data.truncate(1);
                    0
                }
                _ => 0,
            };
            framing.restore(&mut stream, header.as_deref(), &data, tag);
            wanted.push((header, data, tag));
        }
        stream.truncate(stream.len().saturating_sub(cut_off));
        let (elements, tail) = cut(framing, &stream, &pieces);
        prop_assert_eq!(&cut(framing, &stream, &[usize::MAX]).0, &elements);
        let mut back = Vec::new();
        for (header, payload, tag) in &elements {
            framing.restore(&mut back, header.as_deref(), payload, *tag);
        }
        if framing.has_header() {
            prop_assert_eq!(&elements[..], &wanted[..elements.len()]);
        }
        if let Tail::Cut { have, .. } = tail {
            prop_assert!(stream.starts_with(&back));
            let lead = stream.len() - back.len() - have as usize;
            prop_assert!(lead <= LEAD, "{} bytes are nobody's", lead);
        } else {
            prop_assert_eq!(&stream, &back);
        }
    }
}

/// The elements of a stream of syslog messages with their tags, how many were malformed, and its tail: told from the whole
/// stream.
fn split_syslog(mut rest: &[u8]) -> (Vec<(Vec<u8>, u16)>, Tail) {
    let mut elements = Vec::new();
    while !rest.is_empty() {
        let number = rest.iter().take(COUNT_DIGITS).take_while(|byte| byte.is_ascii_digit()).count();
        let digits = if rest[0] == b'0' { 0 } else { number };
        let behind = &rest[digits..];
        if digits > 0 && behind.is_empty() {
            return (elements, Tail::Cut { have: digits as u64, want: None });
        }
        if digits > 0 && behind[0] == b' ' {
            let count: u64 = std::str::from_utf8(&rest[..digits]).unwrap().parse().unwrap();
            let Some(message) = behind[1..].get(..count as usize) else {
                return (elements, Tail::Cut { have: behind.len() as u64 - 1, want: Some(count) });
            };
            elements.push((message.to_vec(), 0));
            rest = &behind[1 + count as usize..];
            continue;
        }
        let Some(end) = behind.iter().position(|byte| matches!(byte, b'\n' | 0)) else {
            let have = behind.len() as u64;
            if digits > 0 {
                return (elements, Tail::Cut { have, want: None });
            }
            elements.push((behind.to_vec(), UNTERMINATED));
            return (elements, Tail::Ends(UNTERMINATED));
        };
        if digits == 0 {
            let tag = if behind[end] == 0 { SYSLOG_NUL } else { SYSLOG_NEWLINE };
            elements.push((behind[..end].to_vec(), tag));
        }
        rest = &behind[end + 1..];
    }
    (elements, Tail::Clean)
}

/// A stream of syslog messages, in part good and in part anything.
fn syslog() -> impl Strategy<Value = Vec<u8>> {
    let anything = || prop::collection::vec(prop::sample::select(b"<0123456789 \n\0ab".to_vec()), 0..24);
    let message = prop_oneof![
        4 => anything().prop_map(|bytes| [format!("{} ", bytes.len()).as_bytes(), &bytes].concat()),
        2 => "<[0-9]{1,3}>[a-z 0-9]{0,12}[\n\0]".prop_map(String::into_bytes),
        1 => anything(),
    ];
    prop::collection::vec(message, 0..12).prop_map(|messages| messages.concat())
}

proptest! {
    #[test]
    fn syslog_messages_are_those_of_a_splitter_that_has_the_whole_stream(
        stream in syslog(), pieces in prop::collection::vec(1usize..9, 1..8),
    ) {
        let (wanted, tail) = split_syslog(&stream);
        let wanted: Vec<Kept> = wanted.into_iter().map(|(data, tag)| (None, data, tag)).collect();
        prop_assert_eq!(cut(Framing::Syslog, &stream, &pieces), (wanted, tail));
    }
}

#[test]
fn syslog_messages_of_both_kinds_may_be_mixed_and_a_false_count_costs_what_it_stands_in() {
    let stream = b"6 <1>one<2>two\n<3>three\x0012x lost 6 not\n05 zero\n99999999999 no\n4 \n\0<55 cut";
    let kept = |data: &[u8], tag| (None, data.to_vec(), tag);
    let wanted = [
        kept(b"<1>one", 0),
        kept(b"<2>two", SYSLOG_NEWLINE),
        kept(b"<3>three", SYSLOG_NUL),
        kept(b"05 zero", SYSLOG_NEWLINE),
        kept(b"\n\0<5", 0),
    ];
    let (elements, tail) = cut(Framing::Syslog, stream, &[1]);
    assert_eq!((&elements[..], tail), (&wanted[..], Tail::Cut { have: 3, want: Some(5) }));
}

#[test]
fn framings_are_read_and_shown_and_wrong_ones_say_what_to_give() {
    for text in ["fixed:5032", "blocks:65536", "lines", "len32", "len32be", "attr32", "syslog", "whole"] {
        assert_eq!(text.parse::<Framing>().unwrap().to_string(), text);
    }
    assert_eq!("blocks:64KiB".parse(), Ok(Framing::Blocks(65_536)));
    for text in ["", "fixed", "fixed:0", "fixed:2GiB", "lines:3", "len64"] {
        let said = text.parse::<Framing>().unwrap_err().to_string();
        assert!(said.contains("fixed:N, blocks:N, lines"), "{said}");
    }
}

#[test]
fn a_cut_element_says_what_it_has_and_what_it_lacks() {
    assert_eq!(cut(Framing::Fixed(5), b"helloab", &[3]).1, Tail::Cut { have: 2, want: Some(5) });
    assert_eq!(cut(Framing::Len32, &[9, 0, 0, 0, 1, 2], &[1]).1, Tail::Cut { have: 2, want: Some(9) });
    assert_eq!(cut(Framing::Len32Be, &[0, 0], &[1]).1, Tail::Cut { have: 2, want: None });
    let (lines, tail) = cut(Framing::Lines, b"a\n\nb", &[1]);
    assert_eq!(tail, Tail::Ends(UNTERMINATED));
    let line = |text: &[u8], tag| (None, text.to_vec(), tag);
    assert_eq!(lines, [line(b"a", 0), line(b"", 0), line(b"b", UNTERMINATED)]);
    assert_eq!(cut(Framing::Attr32, &[9, 0, 0, 0, 1], &[1]).1, Tail::Cut { have: 5, want: None });
    let begun = [9, 0, 0, 0, 3, 0, 7, 7, 7, 1];
    assert_eq!(cut(Framing::Attr32, &begun, &[4]).1, Tail::Cut { have: 4, want: Some(7) });
}

#[test]
fn a_frame_whose_header_cannot_be_is_an_element_without_one() {
    // Too long for its frame; too long for a row; no place for its length.
    let large = MAX_HEADER + 1;
    let mut stream = [&[4, 0, 0, 0, 3, 0, b'a', b'b'][..], &[1, 0, 0, 0, b'c', 0, 0, 0, 0]].concat();
    stream.extend([&(large as u32 + 2).to_le_bytes()[..], &(large as u16).to_le_bytes()].concat());
    stream.extend(vec![7; large]);
    let (elements, tail) = cut(Framing::Attr32, &stream, &[3, 900]);
    let kept = |data: &[u8], tag| (None, data.to_vec(), tag);
    let wanted = [kept(b"ab", 3), kept(b"c", 0), kept(b"", 0), kept(&vec![7; large], large as u16)];
    assert_eq!((&elements[..], tail), (&wanted[..], Tail::Clean));
    let mut back = Vec::new();
    for (_, data, tag) in &elements {
        Framing::Attr32.restore(&mut back, None, data, *tag);
    }
    assert!(back == stream);
}

#[test]
fn reads_are_sized_so_that_elements_stay_whole() {
    let mut cutter = Cutter::new(Framing::Fixed(5032));
    assert_eq!(cutter.most(20_000, 4000), 3 * 5032);
    cutter.step(&[0; 5000]);
    assert_eq!((cutter.least(), cutter.most(20_000, 4000)), (32, 32 + 3 * 5032));
    assert_eq!(Cutter::new(Framing::Fixed(20)).most(256 << 10, 1001), 20 * 1000);
}
