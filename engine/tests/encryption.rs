//! Encryption at rest through the engine's public surface: what the disk holds, what comes back, what damage does.

mod support;

use cairn_engine::{BucketSettings, EngineError, StoreOptions, WriteCondition};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use support::{content, etag, folder, get, key, name, options, put, with_engine, with_engine_on};

/// Inline, one block, many, checks in the record's list up to its edge, and in a table of several pages.
const SIZES: [usize; 10] =
    [0, 1, 16_384, 16_385, 65_537, (1 << 20) + 3, 8 << 20, (8 << 20) + 1, 17 << 20, (40 << 20) + 5];

fn sealing(folder: &Path) -> StoreOptions {
    StoreOptions { encryption_at_rest: true, ..options(folder) }
}

/// Puts an object of each size under `prefix`.
fn put_sizes(options: StoreOptions, prefix: &'static str) {
    with_engine_on(options, move |engine| async move {
        let bucket = match engine.store().bucket(&name("sizes")) {
            Some(bucket) => bucket,
            None => {
                engine.store().create_bucket(&name("sizes"), BucketSettings::default()).await.expect("made")
            }
        };
        for size in SIZES {
            let (object, bytes) = (key(&format!("{prefix} {size}")), content(size as u64, size));
            put(&engine, &bucket, &object, &bytes, WriteCondition::default()).await.expect("put");
        }
    });
}

/// Reads what [`put_sizes`] put, whole and in ranges across blocks.
fn compare_sizes(options: StoreOptions, prefix: &'static str, encrypted: bool) {
    with_engine_on(options, move |engine| async move {
        let bucket = engine.store().bucket(&name("sizes")).expect("still there");
        for size in SIZES {
            let (object, expected) = (key(&format!("{prefix} {size}")), content(size as u64, size));
            let (info, bytes) = get(&engine, &bucket, &object, 0..u64::MAX).await.expect("read");
            assert!(bytes == expected, "{prefix} {size}");
            assert_eq!((info.encrypted, info.etag), (encrypted, etag(&expected)));
            for (start, end) in [(0, 1), (size / 2, size / 2 + 70_000), (size.saturating_sub(5), size)] {
                let (_, bytes) =
                    get(&engine, &bucket, &object, start as u64..end as u64).await.expect("read");
                assert!(bytes == expected[start..end.min(size)], "{prefix} {size}, {start}..{end}");
            }
        }
    });
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("reads") {
        let path = entry.expect("reads").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// How many files of the store hold these bytes.
fn files_with(folder: &Path, wanted: &[u8]) -> usize {
    let holds = |path: &PathBuf| {
        let bytes = std::fs::read(path).expect("reads");
        memchr::memmem::find(&bytes, wanted).is_some()
    };
    files(folder).iter().filter(|path| holds(path)).count()
}

#[test]
fn what_is_turned_on_seals_new_payloads_and_leaves_the_old_readable_and_back() {
    let folder = folder();
    put_sizes(options(folder.path()), "before");
    put_sizes(sealing(folder.path()), "sealed");
    put_sizes(options(folder.path()), "after");
    for options in [options(folder.path()), sealing(folder.path())] {
        for (prefix, encrypted) in [("before", false), ("sealed", true), ("after", false)] {
            let again =
                StoreOptions { encryption_at_rest: options.encryption_at_rest, ..sealing(folder.path()) };
            compare_sizes(again, prefix, encrypted);
        }
    }
}

#[test]
fn no_file_of_the_store_holds_what_was_sealed() {
    // The same search must find what was not sealed, or it shows nothing.
    for (options, expected) in [(options as fn(&Path) -> StoreOptions, true), (sealing, false)] {
        let folder = folder();
        with_engine_on(options(folder.path()), |engine| async move {
            let bucket =
                engine.store().create_bucket(&name("secret"), BucketSettings::default()).await.expect("made");
            for (object, size) in [("inline", 5_000), ("volume", 300_000)] {
                let bytes = content(7, size);
                put(&engine, &bucket, &key(object), &bytes, WriteCondition::default()).await.expect("put");
            }
        });
        for at in [16, 4_000, 70_000, 299_900] {
            let found = files_with(folder.path(), &content(7, 300_000)[at..at + 64]) > 0;
            assert_eq!(found, expected, "bytes {at}..");
        }
    }
}

/// Where these bytes, ciphertext of the caller's finding, lie in the store.
fn find(folder: &Path, wanted: &[u8]) -> (PathBuf, u64) {
    for path in files(folder) {
        let bytes = std::fs::read(&path).expect("reads");
        if let Some(at) = memchr::memmem::find(&bytes, wanted) {
            return (path, at as u64);
        }
    }
    panic!("not in the store");
}

/// The units of volumes that changed between two looks are where the payload was written.
fn volumes(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let volumes = files(folder).into_iter().filter(|path| path.extension().is_some_and(|e| e == "vol"));
    volumes.map(|path| (path.clone(), std::fs::read(&path).expect("reads"))).collect()
}

fn put_one(folder: &Path, object: &'static str, seed: u64) {
    with_engine_on(sealing(folder), move |engine| async move {
        let bucket = engine.store().bucket(&name("damage")).expect("made before");
        let bytes = content(seed, 200_000);
        put(&engine, &bucket, &key(object), &bytes, WriteCondition::default()).await.expect("put");
    });
}

/// First bytes of the units that a put changed.
fn written_by(folder: &Path, body: impl FnOnce()) -> Vec<Vec<u8>> {
    let before = volumes(folder);
    body();
    let mut units = Vec::new();
    for ((path, old), (_, new)) in before.iter().zip(volumes(folder)) {
        assert!(old.len() <= new.len(), "{}", path.display());
        let changed = old.chunks(4096).zip(new.chunks(4096)).filter(|(old, new)| old != new);
        units.extend(changed.map(|(_, new)| new.to_vec()));
    }
    units
}

#[test]
fn a_flipped_bit_of_a_sealed_payload_is_found_and_the_rest_still_read() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        engine.store().create_bucket(&name("damage"), BucketSettings::default()).await.expect("made");
    });
    let path = folder.path().to_owned();
    let units = written_by(folder.path(), || put_one(&path, "a", 1));
    // 200 000 bytes are 49 units; the last is not full.
    assert_eq!(units.len(), 49);
    let (volume, offset) = find(folder.path(), &units[20]);
    let mut byte = [0u8];
    let file = OpenOptions::new().read(true).write(true).open(volume).expect("opens");
    file.read_exact_at(&mut byte, offset + 77).expect("reads");
    file.write_all_at(&[byte[0] ^ 4], offset + 77).expect("writes");
    with_engine(folder.path(), |engine| async move {
        let bucket = engine.store().bucket(&name("damage")).expect("there");
        let expected = content(1, 200_000);
        let block = |n: u64| n * 65_536..(n + 1) * 65_536;
        for number in [0, 2] {
            let (_, bytes) = get(&engine, &bucket, &key("a"), block(number)).await.expect("read");
            let range = usize::try_from(number).expect("small") * 65_536;
            assert!(bytes == expected[range..range + 65_536]);
        }
        let damaged = get(&engine, &bucket, &key("a"), block(1)).await;
        assert!(matches!(damaged, Err(EngineError::Corrupt(_))), "{:?}", damaged.map(|(info, _)| info));
        assert_eq!(engine.store().corruptions(), 1);
    });
}

/// A CRC tells chance from intent only; a tag under a key of its own does both.
#[test]
fn a_sealed_block_is_not_taken_for_another_of_the_same_or_another_payload() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        engine.store().create_bucket(&name("damage"), BucketSettings::default()).await.expect("made");
    });
    let path = folder.path().to_owned();
    let first = written_by(folder.path(), || put_one(&path, "a", 1));
    let second = written_by(folder.path(), || put_one(&path, "b", 1));
    assert_ne!(first[..48], second[..48], "the same content is sealed under another key");
    let (volume, at) = find(folder.path(), &first[0]);
    let file = OpenOptions::new().read(true).write(true).open(volume).expect("opens");
    // Block 1 of the same payload over block 0.
    file.write_all_at(&first[16..32].concat(), at).expect("writes");
    with_engine(folder.path(), |engine| async move {
        let bucket = engine.store().bucket(&name("damage")).expect("there");
        let moved = get(&engine, &bucket, &key("a"), 0..10).await;
        assert!(matches!(moved, Err(EngineError::Corrupt(_))));
        let (_, whole) = get(&engine, &bucket, &key("b"), 0..u64::MAX).await.expect("read");
        assert!(whole == content(1, 200_000));
    });
}
