//! Round trips of all messages, and arbitrary bytes to every decoder (promises 1 and 8).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::statuses;
use holdfast_base::{Age, ByteSize, HoldId, OrderId, Ordinal, RingId, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{ConditionHold, Counters, FormatError, OpenOutline, StreamKind};
use holdfast_protocol::wire::{
    FrameHead, HEAD_BYTES, LaneFile, MAX_FRAME, MAX_REQUEST, OpenSlot, OpenSlotProjection, Purpose, Reply,
    Request, Status, Welcome, WireError,
};
use holdfast_ring::{
    ActKind, ActNumbers, ActStatus, DistilRequest, ExportRequest, ExtendRequest, HoldRequest, HoldStatus,
    Order, Original, Outcome, PurgeRequest, Range, Refusal, ReleaseRequest, SlotLook, SlotStatus,
    StreamStatus,
};
use proptest::prelude::*;
use statuses::{is_older, recorder, ring, text, time};

fn streams() -> impl Strategy<Value = Vec<StreamId>> {
    prop::collection::vec(any::<u32>().prop_map(StreamId), 0..5)
}

fn ranges() -> impl Strategy<Value = Vec<(Sequence, Sequence)>> {
    prop::collection::vec((any::<u64>(), any::<u64>()).prop_map(|(a, b)| (Sequence(a), Sequence(b))), 0..5)
}

fn range() -> impl Strategy<Value = Range> {
    let ordinals = prop::option::of((any::<u64>(), any::<u64>()));
    (time(), time(), any::<bool>(), ordinals).prop_map(|(from, to, by_event, ordinals)| Range {
        from,
        to,
        by_event,
        ordinals: ordinals.map(|(first, end)| (Ordinal(first), Ordinal(end))),
    })
}

fn watermarks() -> impl Strategy<Value = Vec<(StreamId, Ordinal)>> {
    let watermark = any::<(u32, u64)>().prop_map(|(stream, ordinal)| (StreamId(stream), Ordinal(ordinal)));
    prop::collection::vec(watermark, 0..5)
}

fn condition_hold() -> impl Strategy<Value = ConditionHold> {
    let when = prop::option::of((text(), any::<u64>()));
    (text(), any::<(u64, u64, bool, bool, Option<(u64, u64)>, u32)>(), when, watermarks()).prop_map(
        |(condition, (before, after, standing, distil, sample, quota), when, watermarks)| ConditionHold {
            condition,
            before,
            after,
            standing,
            distil,
            sample,
            when,
            quota,
            watermarks,
        },
    )
}

fn numbers() -> impl Strategy<Value = ActNumbers> {
    (any::<u64>(), any::<u64>()).prop_map(|(purges, others)| ActNumbers { purges, others })
}

fn act() -> impl Strategy<Value = ActStatus> {
    let kinds = vec![
        ActKind::Unknown,
        ActKind::Hold,
        ActKind::Release,
        ActKind::End,
        ActKind::Export,
        ActKind::Purge,
    ];
    let of = (prop::option::of(any::<u64>()), prop::option::of(any::<u32>()), range());
    (prop::sample::select(kinds), time(), of, any::<[u64; 3]>(), any::<u32>(), text(), text()).prop_map(
        |(kind, at, (hold, stream, range), [number, elements, bytes], slots, reason, owner)| ActStatus {
            number,
            kind,
            at,
            hold: hold.map(HoldId),
            stream: stream.map(StreamId),
            range,
            slots,
            elements,
            bytes,
            reason,
            owner,
        },
    )
}

/// The UUID of an order, or none.
fn order_id() -> impl Strategy<Value = Option<OrderId>> {
    prop::option::of(any::<[u8; 16]>().prop_map(OrderId))
}

fn order() -> impl Strategy<Value = Order> {
    let optional = (prop::option::of(condition_hold()), order_id());
    let hold = (streams(), range(), prop::option::of(ranges()), text(), text(), time(), optional);
    let hold = hold.prop_map(|(streams, range, sequences, reason, owner, until, (condition_hold, order))| {
        Order::Hold(HoldRequest { streams, range, sequences, reason, owner, until, condition_hold, order })
    });
    let extend = (any::<u64>(), ranges(), watermarks(), any::<bool>());
    let extend = extend.prop_map(|(hold, sequences, watermarks, durable)| {
        Order::Extend(ExtendRequest { hold: HoldId(hold), sequences, watermarks, durable })
    });
    let purge = (streams(), range(), any::<bool>(), text(), text());
    let purge = purge.prop_map(|(streams, range, held, reason, owner)| {
        Order::Purge(PurgeRequest { streams, range, held, reason, owner })
    });
    let keep = (any::<u32>(), any::<u64>(), any::<u64>());
    let keep = keep.prop_map(|(stream, first, end)| (StreamId(stream), Ordinal(first), Ordinal(end)));
    let holds = prop::collection::vec(any::<u64>().prop_map(HoldId), 0..3);
    let original = (any::<u64>().prop_map(Sequence), holds, prop::collection::vec(keep, 0..5));
    let original = original.prop_map(|(sequence, holds, keep)| Original { sequence, holds, keep });
    let distil = (any::<u64>(), prop::collection::vec(original, 0..5));
    let distil =
        distil.prop_map(|(hold, originals)| Order::Distil(DistilRequest { hold: HoldId(hold), originals }));
    prop_oneof![
        hold,
        extend,
        purge,
        distil,
        (any::<u64>(), text(), text(), order_id()).prop_map(|(hold, reason, owner, order)| {
            Order::Release(ReleaseRequest { hold: HoldId(hold), reason, owner, order })
        }),
        (streams(), range(), text(), text()).prop_map(|(streams, range, reason, owner)| {
            Order::Export(ExportRequest { streams, range, reason, owner })
        }),
        any::<u64>().prop_map(|bytes| Order::Grow(ByteSize(bytes))),
    ]
}

fn wanted() -> impl Strategy<Value = OpenSlotProjection> {
    let stream = prop::option::of(any::<u32>().prop_map(StreamId));
    (stream, any::<bool>(), prop::collection::vec(any::<u16>(), 0..5))
        .prop_map(|(stream, rows, columns)| OpenSlotProjection { stream, rows, columns })
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        any::<u16>().prop_map(|version| Request::Hello { version }),
        Just(Request::Status),
        (any::<u32>(), any::<u32>()).prop_map(|(from, count)| Request::Slots { from, count }),
        Just(Request::Streams),
        (any::<u32>(), any::<u32>(), any::<u32>()).prop_map(|(stream, version, offset)| Request::Preamble {
            stream: StreamId(stream),
            version,
            offset,
        }),
        any::<u32>().prop_map(|stream| Request::Schema { stream: StreamId(stream) }),
        any::<u64>().prop_map(|id| Request::Holds { after: HoldId(id) }),
        numbers().prop_map(|after| Request::Acts { after }),
        order().prop_map(Request::Order),
        (any::<u64>(), any::<u32>(), any::<u32>(), purpose()).prop_map(|(sequence, offset, len, purpose)| {
            Request::Read { sequence: Sequence(sequence), offset, len, purpose }
        }),
        any::<u64>().prop_map(|offset| Request::Done { offset }),
        Just(Request::OpenSlots),
        (any::<u64>().prop_map(Sequence), any::<u64>(), wanted())
            .prop_map(|(sequence, cursor, wanted)| Request::OpenIndex { sequence, cursor, wanted }),
        (any::<u64>(), any::<u32>(), any::<u16>(), prop::collection::vec(any::<u64>(), 0..9)).prop_map(
            |(sequence, stream, attribute, values)| Request::OpenOutline {
                sequence: Sequence(sequence),
                stream: StreamId(stream),
                attribute,
                values,
            }
        ),
        sequences().prop_map(|sequences| Request::Pin { sequences }),
    ]
}

fn sequences() -> impl Strategy<Value = Vec<Sequence>> {
    prop::collection::vec(any::<u64>().prop_map(Sequence), 0..9)
}

fn purpose() -> impl Strategy<Value = Purpose> {
    prop_oneof![Just(Purpose::Export), Just(Purpose::Search), Just(Purpose::Evacuation), Just(Purpose::Scrub),]
}

fn slot() -> impl Strategy<Value = SlotStatus> {
    let looks = [
        SlotLook::Free,
        SlotLook::Runway,
        SlotLook::Writing,
        SlotLook::Live,
        SlotLook::Held,
        SlotLook::Damaged,
        SlotLook::Bad,
    ];
    let times = (prop::option::of(time()), prop::option::of(time()));
    (any::<u32>(), prop::sample::select(looks.to_vec()), any::<u64>(), any::<u64>(), times).prop_map(
        |(slot, look, sequence, age, (first, last))| SlotStatus {
            slot: SlotNo(slot),
            look,
            sequence: Sequence(sequence),
            age: Age(age),
            first,
            last,
        },
    )
}

fn stream() -> impl Strategy<Value = StreamStatus> {
    let counters = any::<[u64; 7]>().prop_map(|[a, b, c, d, e, f, g]| Counters {
        received: a,
        received_bytes: b,
        lost: c,
        lost_bytes: d,
        next_ordinal: Ordinal(e),
        gaps: f,
        unknown_gaps: g,
    });
    (any::<[u32; 4]>(), any::<bool>(), text(), text(), time(), counters).prop_map(
        |([id, preamble, preamble_bytes, schema], packets, name, framing, created, counters)| StreamStatus {
            id: StreamId(id),
            name,
            kind: if packets { StreamKind::Packets } else { StreamKind::Bytes },
            framing,
            created,
            counters,
            preamble,
            preamble_bytes,
            schema,
        },
    )
}

fn hold() -> impl Strategy<Value = HoldStatus> {
    let (numbers, optional) = (any::<(u64, u32)>(), (prop::option::of(condition_hold()), order_id()));
    (numbers, time(), time(), text(), text(), streams(), range(), ranges(), optional).prop_map(
        |((id, slots), created, until, reason, owner, streams, range, sequences, (condition_hold, order))| {
            HoldStatus {
                id: HoldId(id),
                created,
                until,
                reason,
                owner,
                streams,
                range,
                slots,
                sequences,
                condition_hold,
                order,
            }
        },
    )
}

fn refusal() -> impl Strategy<Value = Refusal> {
    prop_oneof![
        prop::option::of(time()).prop_map(|oldest| Refusal::Nothing { oldest }),
        (any::<u32>(), any::<u32>()).prop_map(|(wanted, free)| Refusal::NoRoom { wanted, free }),
        (any::<u64>(), any::<u64>()).prop_map(|(bytes, budget)| Refusal::JournalFull { bytes, budget }),
        any::<u64>().prop_map(|id| Refusal::NoSuchHold(HoldId(id))),
        any::<u64>().prop_map(|id| Refusal::Held(HoldId(id))),
        text().prop_map(Refusal::Geometry),
        text().prop_map(Refusal::Wrong),
        Just(Refusal::NoDevice),
        prop::sample::select(vec!["purge", "distilling", "order"]).prop_map(Refusal::Busy),
        (any::<u64>(), any::<u64>()).prop_map(|(runs, most)| Refusal::Scattered { runs, most }),
        (any::<u32>(), any::<u32>()).prop_map(|(quota, wanted)| Refusal::Quota { quota, wanted }),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        (any::<u64>(), any::<u32>(), any::<u64>(), prop::option::of(time())).prop_map(
            |(id, slots, bytes, expired_before)| Outcome::Held {
                id: HoldId(id),
                slots,
                bytes: ByteSize(bytes),
                expired_before,
            }
        ),
        any::<[u32; 4]>().prop_map(|[added, slots, left, missed]| Outcome::Extended {
            added,
            slots,
            left,
            missed
        }),
        any::<u32>().prop_map(|slots| Outcome::Released { slots }),
        (any::<u64>(), any::<u64>(), any::<u32>()).prop_map(|(elements, bytes, slots)| Outcome::Purged {
            elements,
            bytes,
            slots
        }),
        any::<u32>().prop_map(|slots| Outcome::Grown { slots }),
        (any::<(u32, u32)>(), any::<u32>(), any::<u64>(), any::<u64>()).prop_map(
            |((originals, due), copies, elements, bytes)| Outcome::Distilled {
                originals,
                copies,
                elements,
                bytes,
                due
            }
        ),
        Just(Outcome::Noted),
        refusal().prop_map(Outcome::Refused),
    ]
}

fn welcome() -> impl Strategy<Value = Welcome> {
    (any::<u16>(), any::<u32>(), any::<[u8; 16]>(), any::<u32>(), any::<u64>(), any::<u8>(), text()).prop_map(
        |(version, pid, ring, quantum, area, byte, lane)| Welcome {
            version,
            pid,
            ring: RingId(ring),
            quantum,
            place: quantum.rotate_left(9),
            area,
            superblock: vec![byte; 4096],
            file: LaneFile { device: area.rotate_left(7), inode: u64::from(quantum) },
            lane,
        },
    )
}

fn reply() -> impl Strategy<Value = Reply> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..200);
    let open = (any::<u64>(), any::<bool>())
        .prop_map(|(sequence, sealed)| OpenSlot { sequence: Sequence(sequence), sealed });
    prop_oneof![
        welcome().prop_map(|welcome| Reply::Hello(Box::new(welcome))),
        (ring(), prop::option::of(recorder()))
            .prop_map(|(ring, recorder)| Reply::Status(Box::new(Status { ring, recorder }))),
        (any::<u32>(), prop::collection::vec(slot(), 0..9))
            .prop_map(|(total, slots)| Reply::Slots { total, slots }),
        prop::collection::vec(stream(), 0..4).prop_map(Reply::Streams),
        (any::<u32>(), bytes()).prop_map(|(total, bytes)| Reply::Preamble { total, bytes }),
        text().prop_map(|text| Reply::Schema { text }),
        (any::<bool>(), prop::collection::vec(hold(), 0..3))
            .prop_map(|(more, holds)| Reply::Holds { more, holds }),
        (any::<bool>(), numbers(), prop::collection::vec(act(), 0..4))
            .prop_map(|(more, dropped, acts)| Reply::Acts { more, dropped, acts }),
        outcome().prop_map(Reply::Outcome),
        (any::<u64>(), any::<u32>()).prop_map(|(offset, len)| Reply::Ready { offset, len }),
        any::<bool>().prop_map(|kept| Reply::Done { kept }),
        prop::collection::vec(open, 0..4).prop_map(Reply::OpenSlots),
        (any::<u64>(), any::<bool>(), bytes()).prop_map(|(cursor, end, parts)| Reply::OpenIndex {
            cursor,
            end,
            parts
        }),
        (any::<u32>(), any::<u32>(), prop::option::of(any::<(u128, u128)>()), any::<bool>()).prop_map(
            |(cells, nulls, bounds, may_have)| Reply::OpenOutline(OpenOutline {
                cells,
                nulls,
                bounds,
                may_have
            })
        ),
        any::<u32>().prop_map(|granted| Reply::Pinned { granted }),
        Just(Reply::Expired),
        Just(Reply::Pending),
        Just(Reply::Ending),
        text().prop_map(|text| Reply::Error { text }),
    ]
}

/// Whether a reply of this type ends with plain bytes, so that it has no end of its own.
fn is_open_ended(reply: &Reply) -> bool {
    matches!(reply, Reply::Preamble { .. } | Reply::OpenIndex { .. })
}

proptest! {
    #[test]
    fn requests_arrive_as_they_were_sent(request in request(), id in any::<u64>()) {
        let frame = request.encode(id);
        let head = FrameHead::decode(&frame, MAX_REQUEST).unwrap();
        prop_assert_eq!((head.id, head.body as usize), (id, frame.len() - HEAD_BYTES));
        prop_assert_eq!(Request::decode(head, &frame[HEAD_BYTES..]), Ok(request.clone()));
        // A later version may append.
        let longer = [&frame[HEAD_BYTES..], b"more"].concat();
        prop_assert_eq!(Request::decode(head, &longer), Ok(request.clone()));
        let mut least = frame.len();
        if let Request::Read { sequence, offset, len, .. } = request {
            // A client from before there were purposes.
            least -= 1;
            let plain = Request::Read { sequence, offset, len, purpose: Purpose::Export };
            prop_assert_eq!(Request::decode(head, &frame[HEAD_BYTES..least]), Ok(plain));
        }
        for end in HEAD_BYTES..least {
            prop_assert!(Request::decode(head, &frame[HEAD_BYTES..end]).is_err(), "cut at {}", end);
        }
    }

    #[test]
    fn replies_arrive_as_they_were_sent(reply in reply(), id in any::<u64>()) {
        let frame = reply.encode(id);
        let head = FrameHead::decode(&frame, MAX_FRAME).unwrap();
        prop_assert_eq!((head.id, head.body as usize), (id, frame.len() - HEAD_BYTES));
        prop_assert_eq!(Reply::decode(head, &frame[HEAD_BYTES..]), Ok(reply.clone()));
        if !is_open_ended(&reply) {
            for end in HEAD_BYTES..frame.len() {
                let cut = Reply::decode(head, &frame[HEAD_BYTES..end]);
                prop_assert!(cut.is_err() || cut.is_ok_and(|cut| is_older(&cut, &reply)), "cut at {}", end);
            }
        }
    }

    #[test]
    fn hostile_bodies_end_in_a_value_or_an_error(
        kind in prop_oneof![0u16..15, 128u16..143, 190u16..196, any::<u16>()],
        body in prop::collection::vec(prop_oneof![Just(0xffu8), Just(0u8), any::<u8>()], 0..300),
    ) {
        let head = FrameHead { body: body.len() as u32, kind, id: 1 };
        let _ = Request::decode(head, &body);
        let _ = Reply::decode(head, &body);
    }

    #[test]
    fn a_changed_byte_ends_in_a_value_or_an_error(
        reply in reply(),
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let mut frame = reply.encode(7);
        let at = at.index(frame.len());
        frame[at] = value;
        if let Ok(head) = FrameHead::decode(&frame, MAX_FRAME) {
            let _ = Reply::decode(head, &frame[HEAD_BYTES..]);
        }
    }
}

#[test]
fn counts_that_no_body_can_hold_are_refused_before_anything_is_allocated() {
    let mut body = Vec::from(u32::MAX.to_le_bytes());
    body.extend(u32::MAX.to_le_bytes());
    let head = FrameHead { body: body.len() as u32, kind: 131, id: 0 };
    assert!(matches!(Reply::decode(head, &body), Err(WireError::Field(FormatError::OutOfBounds { .. }))));
    let whole = (MAX_REQUEST as u32).to_le_bytes();
    let frame = [&whole[..], &[0; 12]].concat();
    assert!(matches!(FrameHead::decode(&frame, MAX_REQUEST), Err(WireError::Large { .. })));
}

#[test]
fn the_largest_order_fits_in_a_request() {
    let hold = HoldRequest {
        streams: (0..256).map(StreamId).collect(),
        range: Range::ALL,
        sequences: Some(vec![(Sequence(1), Sequence(2)); holdfast_protocol::wire::MAX_RANGES]),
        reason: "r".repeat(holdfast_base::MAX_REASON),
        owner: "o".repeat(holdfast_base::MAX_REASON),
        until: Timestamp::MAX,
        order: Some(OrderId([4; 16])),
        condition_hold: Some(ConditionHold {
            condition: "c".repeat(holdfast_base::MAX_CONDITION),
            when: Some(("w".repeat(holdfast_base::MAX_CONDITION), 1)),
            sample: Some((1, 2)),
            watermarks: vec![(StreamId(1), Ordinal(1)); 256],
            ..ConditionHold::default()
        }),
    };
    assert!(Request::Order(Order::Hold(hold)).encode(1).len() <= MAX_REQUEST);
}

#[test]
fn a_reply_that_is_too_large_becomes_an_error_that_says_so() {
    let frame = Reply::Preamble { total: 0, bytes: vec![0; MAX_FRAME] }.encode(5);
    let head = FrameHead::decode(&frame, MAX_FRAME).unwrap();
    assert!(
        matches!(Reply::decode(head, &frame[HEAD_BYTES..]), Ok(Reply::Error { text }) if text.contains("ask for less"))
    );
    assert_eq!(head.id, 5);
}
