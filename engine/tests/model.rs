//! Random operations on the engine beside a model in memory: contents, lists, usage and restarts agree. Encryption at rest is
//! turned on and off from restart to restart.
//!
//! The seed is printed on failure; `CAIRN_MODEL_SEED` repeats it, `CAIRN_MODEL_STEPS` sets the length.

mod support;

use cairn_engine::{
    BucketSettings, DeleteOptions, Engine, EngineError, ListObjects, ListPosition, StoreOptions, Usage,
    WriteCondition,
};
use cairn_model::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use support::{content, folder, get, key, name, options, put, with_engine, with_engine_on};

type Model = BTreeMap<String, (u64, usize)>;

/// A small generator: the test must repeat from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn key(&mut self) -> String {
        const PARTS: [&str; 8] = ["a", "b", "dir", "dir/", "/", "\u{e4}", "x\u{0}y", "zz"];
        let parts = 1 + self.below(3);
        let text: String =
            (0..parts).map(|_| PARTS[usize::try_from(self.below(8)).expect("small")]).collect();
        format!("{text}{}", self.below(4))
    }

    fn size(&mut self) -> usize {
        let sizes = [0, 10, 4_000, 16_384, 16_385, 70_000, 300_000, 1_500_000];
        sizes[usize::try_from(self.below(8)).expect("small")]
    }
}

/// All pages of a list, as the model would give them.
fn list_all(
    engine: &Rc<Engine>,
    prefix: &str,
    delimiter: Option<&str>,
    max: usize,
) -> (Vec<String>, Vec<String>) {
    let bucket = engine.store().bucket(&name("model")).expect("there");
    let (mut objects, mut prefixes, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let list = ListObjects {
            prefix: prefix.as_bytes(),
            delimiter: delimiter.map(str::as_bytes),
            after: after.take(),
            max,
        };
        let page = engine.list_objects(&bucket, &list).expect("lists");
        assert!(page.objects.len() + page.common_prefixes.len() <= max);
        objects.extend(page.objects.into_iter().map(|object| object.key));
        prefixes.extend(page.common_prefixes.into_iter().map(|p| String::from_utf8(p).expect("text")));
        match page.next {
            Some(next) => after = Some(next),
            None => return (objects, prefixes),
        }
    }
}

fn expected(model: &Model, prefix: &str, delimiter: Option<&str>) -> (Vec<String>, Vec<String>) {
    let (mut objects, mut prefixes) = (Vec::new(), BTreeSet::new());
    for key in model.keys().filter(|key| key.starts_with(prefix)) {
        match delimiter.and_then(|d| key[prefix.len()..].find(d).map(|at| prefix.len() + at + d.len())) {
            Some(end) => drop(prefixes.insert(key[..end].to_owned())),
            None => objects.push(key.clone()),
        }
    }
    (objects, prefixes.into_iter().collect())
}

async fn check(engine: &Rc<Engine>, model: &Model, random: &mut Random) {
    let bucket = engine.store().bucket(&name("model")).expect("there");
    let bytes = model.values().map(|(_, size)| *size as u64).sum();
    let (objects, versions, version_bytes) = (model.len() as u64, model.len() as u64, bytes);
    let held = Usage { objects, bytes, versions, version_bytes, ..Usage::default() };
    assert_eq!(bucket.usage(), held);
    for (object, (seed, size)) in model {
        let (_, bytes) = get(engine, &bucket, &key(object), 0..u64::MAX).await.expect("there");
        assert!(bytes == content(*seed, *size), "content of {object:?}");
    }
    for (prefix, delimiter) in
        [("", None), ("", Some("/")), ("dir", Some("/")), ("a", Some("dir/")), ("dir/", Some("/"))]
    {
        let max = usize::try_from(1 + random.below(7)).expect("small");
        assert_eq!(
            list_all(engine, prefix, delimiter, max),
            expected(model, prefix, delimiter),
            "{prefix} {delimiter:?}"
        );
    }
    let found = engine.store().inspect(u64::MAX).expect("reads");
    assert_eq!((found.findings, found.usage.objects), (vec![], model.len() as u64));
    let start = random.key();
    let list = ListObjects {
        prefix: b"",
        delimiter: None,
        after: Some(ListPosition::AfterKey(start.clone().into())),
        max: 1000,
    };
    let page = engine.list_objects(&bucket, &list).expect("lists");
    let listed: Vec<_> = page.objects.into_iter().map(|object| object.key).collect();
    let after: Vec<_> = model.keys().filter(|key| **key > start).cloned().collect();
    assert_eq!(listed, after);
}

async fn steps(engine: Rc<Engine>, model: &mut Model, random: &mut Random, count: u64) {
    let bucket = engine.store().bucket(&name("model")).expect("there");
    for _ in 0..count {
        let text = random.key();
        let object: ObjectKey = key(&text);
        match random.below(5) {
            0 => {
                let outcome =
                    engine.delete_object(&bucket, &object, DeleteOptions::default()).await.expect("deletes");
                assert_eq!(outcome.existed, model.remove(&text).is_some());
            }
            1 => {
                let read = get(&engine, &bucket, &object, 0..u64::MAX).await.map(|(_, bytes)| bytes);
                let wanted = model.get(&text).map(|(seed, size)| content(*seed, *size));
                assert!(read == wanted.ok_or(EngineError::NoSuchKey), "read of {text:?}");
            }
            _ => {
                let (seed, size) = (random.below(u64::MAX), random.size());
                let must_be_absent = random.below(4) == 0;
                let condition = WriteCondition { must_be_absent, ..WriteCondition::default() };
                let outcome = put(&engine, &bucket, &object, &content(seed, size), condition).await;
                if must_be_absent && model.contains_key(&text) {
                    assert_eq!(outcome, Err(EngineError::PreconditionFailed));
                } else {
                    assert_eq!(outcome.expect("puts").replaced, model.insert(text, (seed, size)).is_some());
                }
            }
        }
    }
    check(&engine, model, random).await;
}

#[test]
fn the_engine_agrees_with_a_model_across_restarts() {
    let from_environment = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let seed = from_environment("CAIRN_MODEL_SEED").unwrap_or_else(|| u64::from(clock.subsec_nanos()) + 1);
    let count = from_environment("CAIRN_MODEL_STEPS").unwrap_or(150);
    eprintln!("CAIRN_MODEL_SEED={seed}");
    let folder = folder();
    let shared = Arc::new(Mutex::new((Model::new(), Random(seed))));
    with_engine(folder.path(), |engine| async move {
        engine.store().create_bucket(&name("model"), BucketSettings::default()).await.expect("made");
    });
    for round in 0..4 {
        let shared = Arc::clone(&shared);
        let options = StoreOptions { encryption_at_rest: round % 2 == 1, ..options(folder.path()) };
        with_engine_on(options, move |engine| async move {
            let (mut model, mut random) = {
                let mut shared = shared.lock().expect("no panic before");
                (std::mem::take(&mut shared.0), Random(shared.1.0))
            };
            check(&engine, &model, &mut random).await;
            steps(engine, &mut model, &mut random, count).await;
            *shared.lock().expect("no panic before") = (model, random);
        });
    }
}
