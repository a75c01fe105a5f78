//! Property: whatever way bodies are cut, refused and repeated, and the server restarted, the final bytes are those sent.

use crate::checksums::checksum;
use crate::client::{Client, contents};
use crate::world::World;
use proptest::prelude::*;

/// Uploads that run at the same time.
const UPLOADS: usize = 3;

#[derive(Clone, Debug)]
enum Action {
    /// Body of this length, whole.
    Send(usize),
    /// Body of this length, cut after this share of it in percent.
    Cut(usize, usize),
    /// Body with a right or a wrong checksum.
    Checked(usize, bool),
    /// Body that begins at a wrong offset.
    Misplaced(u64),
    /// Body with a checksum, cut after this share of it in percent.
    CheckedCut(usize, usize),
}

#[derive(Clone, Debug)]
struct Round {
    actions: Vec<Action>,
    restart: bool,
}

fn action() -> impl Strategy<Value = Action> {
    let length = prop_oneof![0_usize..3000, 0_usize..1_500_000];
    prop_oneof![
        3 => length.clone().prop_map(Action::Send),
        4 => (length.clone(), 0_usize..100).prop_map(|(length, share)| Action::Cut(length, share)),
        2 => (length.clone(), any::<bool>()).prop_map(|(length, right)| Action::Checked(length, right)),
        1 => (1_u64..100).prop_map(Action::Misplaced),
        1 => (length, 0_usize..100).prop_map(|(length, share)| Action::CheckedCut(length, share)),
    ]
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let round = (prop::collection::vec(action(), UPLOADS), any::<bool>());
    prop::collection::vec(round.prop_map(|(actions, restart)| Round { actions, restart }), 1..8)
}

/// Does one action at a known offset, and returns the new one.
fn act(client: &Client, upload: &str, bytes: &[u8], offset: u64, action: &Action) -> u64 {
    let rest = &bytes[offset as usize..];
    let body = |length: usize| &rest[..length.min(rest.len())];
    match action {
        Action::Send(length) => {
            let body = body(*length);
            let reached = client.patch(upload, offset, &[], body).expect(204).offset();
            assert_eq!(reached, offset + body.len() as u64);
            reached
        }
        Action::Cut(length, share) => {
            let body = body(*length);
            let cut = body.len() * share / 100;
            client.cut_patch(upload, offset, &[], body, cut);
            let reached = client.settled_offset(upload);
            // The connection ended in order, so that everything that was sent has arrived.
            assert!((offset..=offset + cut as u64).contains(&reached), "{offset} {cut} {reached}");
            reached
        }
        Action::Checked(length, right) => {
            let body = body(*length);
            let sum = checksum("blake3", if *right { body } else { b"another body" });
            let status = if *right { 204 } else { 460 };
            client.patch(upload, offset, &[("Upload-Checksum", &sum)], body).expect(status).offset()
        }
        Action::Misplaced(gap) => {
            client.patch(upload, offset + gap, &[], &bytes[..1]).expect(409);
            offset
        }
        Action::CheckedCut(length, share) => {
            let body = body(*length);
            let cut = body.len() * share / 100;
            client.cut_patch(upload, offset, &[("Upload-Checksum", &checksum("sha1", body))], body, cut);
            let reached = client.settled_offset(upload);
            assert_eq!(reached, if cut == body.len() { reached } else { offset });
            reached
        }
    }
}

fn run(seed: u64, sizes: &[usize], rounds: &[Round]) {
    let mut world = World::with(|options| options.limits.sync_bytes = 100_000);
    let mut client = world.client();
    let bytes: Vec<_> =
        sizes.iter().enumerate().map(|(at, size)| contents(seed + at as u64, *size)).collect();
    let uploads: Vec<_> = bytes
        .iter()
        .enumerate()
        .map(|(at, bytes)| client.create(&format!("f{at}"), Some(bytes.len() as u64)))
        .collect();
    let mut offsets = vec![0; UPLOADS];
    for round in rounds {
        std::thread::scope(|scope| {
            let running: Vec<_> =
                (0..UPLOADS)
                    .map(|at| {
                        let (client, upload, bytes) = (&client, &uploads[at], &bytes[at]);
                        let (offset, action) = (offsets[at], &round.actions[at]);
                        // A complete upload takes no more bytes.
                        let is_complete = offset == bytes.len() as u64;
                        scope.spawn(move || {
                            if is_complete { offset } else { act(client, upload, bytes, offset, action) }
                        })
                    })
                    .collect();
            offsets = running.into_iter().map(|thread| thread.join().unwrap()).collect();
        });
        if round.restart {
            client = world.restart();
            for (upload, offset) in uploads.iter().zip(&offsets) {
                assert_eq!(client.head(upload).expect(200).offset(), *offset);
            }
        }
    }
    for ((upload, bytes), offset) in uploads.iter().zip(&bytes).zip(&offsets) {
        let json = client.get(&format!("{upload}/blocks")).expect(200).json();
        let known: Vec<_> = bytes[..*offset as usize]
            .chunks_exact(1 << 20)
            .map(|block| blake3::hash(block).to_hex().to_string())
            .collect();
        assert_eq!(json["blocks"], serde_json::json!(known));
        if *offset < bytes.len() as u64 {
            client.patch(upload, *offset, &[], &bytes[*offset as usize..]).expect(204);
        }
    }
    for (at, bytes) in bytes.iter().enumerate() {
        assert!(client.get(&format!("/projects/default/f{at}")).expect(200).body == *bytes, "file {at}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn final_bytes_are_equal_whatever_happens_on_the_way(
        seed in 0_u64..1000,
        sizes in prop::collection::vec(0_usize..3_000_000, UPLOADS),
        rounds in rounds(),
    ) {
        run(seed, &sizes, &rounds);
    }
}
