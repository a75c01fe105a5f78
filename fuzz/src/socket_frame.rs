//! Frames of the recorder's socket: what a client may send, and what a client must take.

use holdfast_base::{ByteSize, HoldId, Ordinal, Rate, RingId, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::ConditionHold;
use holdfast_protocol::wire::{
    AwayStatus, BufferStatus, DeviceStatus, FrameHead, HEAD_BYTES, LaneFile, LaneStatus, MAX_FRAME,
    MAX_REQUEST, MarginStatus, OpenSlot, OpenSlotProjection, Purpose, RecentSource, RecentStatus,
    RecorderStatus, Reply, Request, SourceStatus, Status, VERSION, ViewStatus, Welcome,
};
use holdfast_ring::{
    ActKind, ActNumbers, ActStatus, DistilRequest, ExportRequest, ExtendRequest, HoldRequest, HoldStatus,
    Order, Original, Outcome, PurgeRequest, Range, Refusal, RingStatus, SlotCounts, SlotLook, SlotStatus,
    StreamStatus,
};
use std::time::Duration;

/// Reads the input as a frame, as a request and as a reply. What is sound must come back when it is written again.
pub fn run(data: &[u8]) {
    let Ok(mut head) = FrameHead::decode(data, MAX_FRAME) else { return };
    let body = &data[HEAD_BYTES..];
    head.body = body.len() as u32;
    if data.len() <= MAX_REQUEST
        && let Ok(request) = Request::decode(head, body)
    {
        let again = request.encode(head.id);
        let head = FrameHead::decode(&again, MAX_REQUEST).unwrap_or(head);
        assert_eq!(Request::decode(head, &again[HEAD_BYTES..]), Ok(request));
    }
    if let Ok(reply) = Reply::decode(head, body) {
        let again = reply.encode(head.id);
        let head = FrameHead::decode(&again, MAX_FRAME).unwrap_or(head);
        assert_eq!(Reply::decode(head, &again[HEAD_BYTES..]), Ok(reply));
    }
}

const RANGE: Range =
    Range { from: Timestamp(5), to: Timestamp(99), by_event: true, ordinals: Some((Ordinal(3), Ordinal(8))) };

fn hold() -> HoldRequest {
    HoldRequest {
        streams: vec![StreamId(1), StreamId(2)],
        range: RANGE,
        sequences: Some(vec![(Sequence(3), Sequence(9))]),
        reason: "a fault".to_owned(),
        owner: "me".to_owned(),
        until: Timestamp::MAX,
        condition_hold: None,
        order: None,
    }
}

fn condition_hold() -> ConditionHold {
    ConditionHold {
        condition: "len > 9".to_owned(),
        before: 5,
        after: 7,
        standing: true,
        distil: true,
        sample: Some((3, 60)),
        when: Some(("count(*) > 3".to_owned(), 99)),
        quota: 4,
        watermarks: vec![(StreamId(1), Ordinal(5))],
    }
}

fn requests() -> Vec<Request> {
    let wanted = OpenSlotProjection { stream: Some(StreamId(1)), rows: true, columns: vec![0, 7] };
    let purge = PurgeRequest {
        streams: vec![],
        range: RANGE,
        held: true,
        reason: "the law".to_owned(),
        owner: "me".to_owned(),
    };
    let export = ExportRequest {
        streams: vec![StreamId(1)],
        range: RANGE,
        reason: "a fault".to_owned(),
        owner: "me".to_owned(),
    };
    let keep = vec![(StreamId(1), Ordinal(3), Ordinal(8)), (StreamId(2), Ordinal(0), Ordinal(1))];
    let originals = vec![
        Original { sequence: Sequence(3), holds: vec![HoldId(4)], keep },
        Original { sequence: Sequence(4), holds: vec![HoldId(4), HoldId(5)], keep: Vec::new() },
    ];
    vec![
        Request::Hello { version: VERSION },
        Request::Status,
        Request::Slots { from: 3, count: 100 },
        Request::Streams,
        Request::Preamble { stream: StreamId(2), version: 1, offset: 9 },
        Request::Schema { stream: StreamId(2) },
        Request::Holds { after: HoldId(4) },
        Request::Order(Order::Hold(hold())),
        Request::Order(Order::Hold(HoldRequest { condition_hold: Some(condition_hold()), ..hold() })),
        Request::Order(Order::Extend(ExtendRequest {
            hold: HoldId(4),
            sequences: vec![(Sequence(3), Sequence(9))],
            watermarks: vec![(StreamId(1), Ordinal(6))],
            durable: true,
        })),
        Request::Acts { after: ActNumbers { purges: 1, others: 2 } },
        Request::Order(Order::Release(HoldId(4).into())),
        Request::Order(Order::Export(export)),
        Request::Order(Order::Purge(purge)),
        Request::Order(Order::Grow(ByteSize::gib(2))),
        Request::Order(Order::Distil(DistilRequest { hold: HoldId(4), originals })),
        Request::Read { sequence: Sequence(7), offset: 4096, len: 8192, purpose: Purpose::Search },
        Request::Done { offset: 4096 },
        Request::OpenSlots,
        Request::OpenIndex { sequence: Sequence(8), cursor: 77, wanted },
        Request::Pin { sequences: vec![Sequence(8), Sequence(9)] },
    ]
}

fn status() -> Status {
    let ring = RingStatus {
        ring: RingId([7; 16]),
        name: "r".to_owned(),
        lane: "/dev/x".to_owned(),
        lane_bytes: ByteSize::gib(1),
        slot_bytes: ByteSize::mib(1),
        epoch: holdfast_base::Epoch(3),
        sequence: Sequence(55),
        slots: SlotCounts { total: 100, free: 3, ..SlotCounts::default() },
        oldest: Some(Timestamp(5)),
        newest: None,
        holds: 2,
        scanned: true,
        durable_after: Duration::from_millis(3005),
    };
    let recorder = RecorderStatus {
        pid: 77,
        since: Timestamp(1),
        now: Timestamp(2),
        uptime: Duration::from_secs(1),
        device: DeviceStatus { error: "gone".to_owned(), ..DeviceStatus::default() },
        sources: vec![SourceStatus {
            name: "s".to_owned(),
            spec: "stdin".to_owned(),
            ..SourceStatus::default()
        }],
        lanes: vec![LaneStatus { path: "/dev/x".to_owned(), ..LaneStatus::default() }],
        buffers: BufferStatus { count: 4, in_use: 1, most_in_use: 2, most_at: Timestamp(6) },
        away: AwayStatus { longest: Duration::from_millis(20), since: Timestamp(2) },
        warnings: vec!["memory is not locked".to_owned()],
        margin: Some(MarginStatus {
            rate: Rate(60 << 20),
            kept: Duration::from_secs(9),
            least: Duration::from_millis(4200),
            since: Timestamp(3),
            eldest: Duration::from_secs(8),
        }),
        view: Some(ViewStatus { bytes: ByteSize::mib(1), place: ByteSize(4096), slots: 3 }),
        recent: Some(RecentStatus {
            span: Duration::from_secs(61),
            sources: vec![RecentSource { last_lost: Some(Timestamp(2)), ..RecentSource::default() }],
            ..RecentStatus::default()
        }),
    };
    Status { ring, recorder: Some(recorder) }
}

fn replies() -> Vec<Reply> {
    let welcome = Welcome {
        version: VERSION,
        pid: 77,
        ring: RingId([7; 16]),
        quantum: 1 << 20,
        place: 4096,
        area: 8 << 20,
        superblock: vec![1; 64],
        file: LaneFile { device: 7, inode: 8 },
        lane: "/dev/x".to_owned(),
    };
    let slot = SlotStatus {
        slot: SlotNo(3),
        look: SlotLook::Held,
        sequence: Sequence(4),
        age: holdfast_base::Age(4),
        first: Some(Timestamp(1)),
        last: None,
    };
    let stream = StreamStatus {
        id: StreamId(1),
        name: "s".to_owned(),
        kind: holdfast_format::StreamKind::Packets,
        framing: "whole".to_owned(),
        created: Timestamp(1),
        counters: holdfast_format::Counters::default(),
        preamble: 1,
        preamble_bytes: 200,
        schema: 3,
    };
    let held = HoldStatus {
        id: HoldId(4),
        created: Timestamp(1),
        until: Timestamp::MAX,
        reason: "a fault".to_owned(),
        owner: "me".to_owned(),
        streams: vec![StreamId(1)],
        range: RANGE,
        slots: 3,
        sequences: vec![(Sequence(3), Sequence(5))],
        condition_hold: None,
        order: None,
    };
    let act = ActStatus {
        number: 9,
        kind: ActKind::Export,
        at: Timestamp(1),
        hold: Some(HoldId(4)),
        stream: Some(StreamId(1)),
        range: RANGE,
        slots: 3,
        elements: 4,
        bytes: 5,
        reason: "a fault".to_owned(),
        owner: "me".to_owned(),
    };
    let by_condition = HoldStatus { condition_hold: Some(condition_hold()), ..held.clone() };
    let outcome = Outcome::Held {
        id: HoldId(4),
        slots: 3,
        bytes: ByteSize::mib(3),
        expired_before: Some(Timestamp(4)),
    };
    vec![
        Reply::Hello(Box::new(welcome)),
        Reply::Status(Box::new(status())),
        Reply::Slots { total: 100, slots: vec![slot; 3] },
        Reply::Streams(vec![stream; 2]),
        Reply::Preamble { total: 9, bytes: vec![1; 9] },
        Reply::Schema { text: "src:ip=packet:src\n".to_owned() },
        Reply::Holds { more: true, holds: vec![held, by_condition] },
        Reply::Acts { more: true, dropped: ActNumbers { purges: 1, others: 2 }, acts: vec![act] },
        Reply::Outcome(Outcome::Noted),
        Reply::Outcome(outcome),
        Reply::Outcome(Outcome::Purged { elements: 5, bytes: 6, slots: 7 }),
        Reply::Outcome(Outcome::Distilled { originals: 9, copies: 1, elements: 5, bytes: 6, due: 9 }),
        Reply::Outcome(Outcome::Extended { added: 1, slots: 3, left: 1, missed: 2 }),
        Reply::Outcome(Outcome::Refused(Refusal::NoRoom { wanted: 5, free: 3 })),
        Reply::Outcome(Outcome::Refused(Refusal::Quota { quota: 3, wanted: 5 })),
        Reply::Outcome(Outcome::Refused(Refusal::Geometry("too small".to_owned()))),
        Reply::Ready { offset: 4096, len: 8192 },
        Reply::Done { kept: true },
        Reply::OpenSlots(vec![OpenSlot { sequence: Sequence(8), sealed: true }]),
        Reply::OpenIndex { cursor: 5, end: false, parts: vec![9; 40] },
        Reply::Pinned { granted: 1 },
        Reply::Expired,
        Reply::Pending,
        Reply::Ending,
        Reply::Error { text: "no".to_owned() },
    ]
}

/// Every request and every reply.
pub fn seeds() -> Vec<Vec<u8>> {
    let requests = requests().into_iter().map(|request| request.encode(1));
    requests.chain(replies().iter().map(|reply| reply.encode(2))).collect()
}
