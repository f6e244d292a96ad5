//! Random operations on the engine and on a model in memory: contents, versions, uploads, lists and usage must agree, also
//! after restarts. Every restart turns encryption at rest on or off.
//!
//! The seed is printed on failure. `CAIRN_MODEL_SEED` repeats a run, `CAIRN_MODEL_STEPS` sets its length.

mod lists;
mod reference;
mod steps;

use self::reference::{Model, bytes};
use self::steps::Step;
use crate::support::{folder, get_version, key, name, options, with_engine, with_engine_on};
use cairn_engine::{Engine, EngineError, Origin, StoreOptions, Usage};
use cairn_model::usize_of;
use cairn_sync::Mutex;
use std::rc::Rc;
use std::sync::Arc;

/// A pseudo-random generator (xorshift), so that a run can be repeated from its seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    pub(crate) fn key(&mut self) -> String {
        const PARTS: [&str; 8] = ["a", "b", "dir", "dir/", "/", "\u{e4}", "x\u{0}y", "zz"];
        let parts = 1 + self.below(2);
        let text: String = (0..parts).map(|_| PARTS[usize_of(self.below(8))]).collect();
        format!("{text}{}", self.below(2))
    }

    pub(crate) fn size(&mut self) -> usize {
        let sizes = [0, 10, 4_000, 16_384, 16_385, 70_000, 300_000, 1_500_000];
        sizes[usize_of(self.below(8))]
    }
}

/// Compares all that a bucket holds with the model.
async fn check(engine: &Rc<Engine>, model: &Model, random: &mut Random) {
    let bucket = engine.store().bucket(&name(model.name)).expect("there");
    assert_eq!(bucket.usage(), model.usage(), "usage of {}", model.name);
    assert_eq!(bucket.versioning(), model.versioning);
    for (object, held) in &model.keys {
        for version in &held.versions {
            let read = get_version(engine, &bucket, &key(object), Some(version.name()), 0..u64::MAX).await;
            let Some(pieces) = &version.pieces else {
                assert!(matches!(read, Err(EngineError::DeleteMarker { .. })), "{object:?} {version:?}");
                continue;
            };
            let (info, read) = read.expect("there");
            assert!(read == bytes(pieces), "content of {object:?} {version:?}");
            assert_eq!((info.version, info.is_null, info.lock), (version.id, version.is_null, version.lock));
        }
    }
    lists::check(engine, model, random);
}

async fn check_all(engine: &Rc<Engine>, models: &[Model], random: &mut Random) {
    let mut held = Usage::default();
    for model in models {
        check(engine, model, random).await;
        let Usage { objects, bytes, versions, version_bytes, delete_markers, uploads, part_bytes } =
            model.usage();
        held.objects += objects;
        held.bytes += bytes;
        held.versions += versions;
        held.version_bytes += version_bytes;
        held.delete_markers += delete_markers;
        held.uploads += uploads;
        held.part_bytes += part_bytes;
    }
    let found = engine.store().inspect(u64::MAX).expect("reads");
    assert_eq!((found.findings, found.usage), (vec![], held));
}

#[test]
fn engine_agrees_with_the_model_across_restarts() {
    let from_environment = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let seed = from_environment("CAIRN_MODEL_SEED").unwrap_or_else(|| u64::from(clock.subsec_nanos()) + 1);
    let count = from_environment("CAIRN_MODEL_STEPS").unwrap_or(250);
    eprintln!("CAIRN_MODEL_SEED={seed}");
    let folder = folder();
    let shared = Arc::new(Mutex::new((Model::all(), Random(seed))));
    with_engine(folder.path(), |engine| async move {
        for model in Model::all() {
            engine
                .store()
                .create_bucket(&name(model.name), model.settings(), Origin::default())
                .await
                .expect("made");
        }
    });
    for round in 0..4 {
        let shared = Arc::clone(&shared);
        let options = StoreOptions { encryption_at_rest: round % 2 == 1, ..options(folder.path()) };
        with_engine_on(options, move |engine| async move {
            let (mut models, mut random) = {
                let mut shared = shared.lock();
                (std::mem::take(&mut shared.0), Random(shared.1.0))
            };
            check_all(&engine, &models, &mut random).await;
            for _ in 0..count {
                let chosen = usize_of(random.below(models.len() as u64));
                let model = &mut models[chosen];
                Step { engine: &engine, model, random: &mut random }.run().await;
            }
            check_all(&engine, &models, &mut random).await;
            *shared.lock() = (models, random);
        });
    }
}
