//! A short fuzzing run for `cargo test`: every body on every file of its corpus and on some thousand mutations.
//!
//! The module `fuzz` of each crate includes this file. It is deterministic, so a failure can be repeated.

use std::path::Path;

/// Mutated inputs for each body. All bodies together take a few seconds without optimisation.
const MUTATIONS: u64 = 3000;
/// Most changes of one mutation, less one.
const CHANGES_MAX: u64 = 4;

/// A linear congruential generator, seeded with the number of the mutation.
struct Random(u64);

impl Random {
    /// Returns a number below `bound`, or 0 when that is 0.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }

    fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).expect("an index below a length")
    }
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("readable").path())
        .collect();
    files.sort();
    files.iter().map(|path| std::fs::read(path).expect("readable")).collect()
}

/// Returns a seed with a few bytes changed, inserted or removed, or a piece of another seed inserted.
fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.index(seeds.len())].clone();
    for _ in 0..=random.below(CHANGES_MAX) {
        let at = random.index(bytes.len() + 1);
        let byte = u8::try_from(random.below(256)).expect("a byte");
        match random.below(5) {
            0 => bytes.insert(at, byte),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            3 => {
                let other = &seeds[random.index(seeds.len())];
                let from = random.index(other.len() + 1);
                let end = from + random.index(other.len() - from + 1);
                bytes.splice(at..at, other[from..end].iter().copied());
            }
            _ if at < bytes.len() => bytes[at] = byte,
            _ => bytes.truncate(at),
        }
    }
    bytes
}

#[test]
fn bodies_hold_on_corpora_and_mutations() {
    for (target, body) in super::BODIES {
        let seeds = corpus(target);
        assert!(seeds.len() >= 3, "{target} needs a corpus");
        seeds.iter().for_each(|seed| body(seed));
        for number in 0..MUTATIONS {
            let input = mutated(&seeds, &mut Random(number));
            if std::panic::catch_unwind(|| body(&input)).is_err() {
                panic!("{target} fails on mutation {number}: {}", input.escape_ascii());
            }
        }
    }
}
