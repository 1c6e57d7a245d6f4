//! What is generated is what it is meant to be, and the reference decoder agrees with libzstd.

use std::collections::BTreeMap;

use zstd_frames::generate::{Generator, MAX_CHUNK};
use zstd_frames::{Machine, Oracle, decode};

#[test]
fn the_reference_agrees_with_libzstd() {
    let (mut generator, mut oracle) = (Generator::default(), Oracle::default());
    let count = 6000;
    let (mut reached, mut good) = (0, 0);
    let mut statuses = BTreeMap::<String, usize>::new();
    for seed in 0..count {
        let chunk = generator.chunk(seed);
        assert!(chunk.bytes.len() <= MAX_CHUNK);
        let outcome = decode(&chunk.bytes, chunk.size, Machine::here());
        let told = oracle.decode(&chunk.bytes, chunk.size);
        assert_eq!(
            outcome.result.as_ref().ok(),
            told.as_ref().ok(),
            "seed {seed}: {:?}, libzstd: {:?}",
            outcome.result.as_ref().err(),
            told.as_ref().err()
        );
        reached += usize::from(outcome.seen.sequences > 0);
        match outcome.result {
            Ok(_) => good += 1,
            Err(status) => *statuses.entry(format!("{status:?}")).or_default() += 1,
        }
    }
    assert!(reached as u64 * 100 > 30 * count, "{reached} of {count} reach sequences");
    assert!(good as u64 * 100 > 40 * count, "{good} of {count} are good");
    // All there are.
    assert_eq!(statuses.len(), 39, "{statuses:?}");
}

#[test]
fn a_seed_gives_the_same_chunk_again() {
    let (mut first, mut second) = (Generator::default(), Generator::default());
    for seed in 100..300 {
        second.chunk(seed + 7);
        assert_eq!(first.chunk(seed), second.chunk(seed));
    }
}
