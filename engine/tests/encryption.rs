//! Encryption at rest: what the disk holds, what is read, and what damage does.

use crate::support::{content, etag, folder, get, key, name, options, put, with_engine, with_engine_on};
use cairn_engine::{BucketSettings, EngineError, Origin, StoreOptions, WriteCondition};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Inline payloads, one block, many blocks, the largest list of checks in a record, check tables of several pages.
const SIZES: [usize; 10] =
    [0, 1, 16_384, 16_385, 65_537, (1 << 20) + 3, 8 << 20, (8 << 20) + 1, 17 << 20, (40 << 20) + 5];

fn encrypting(folder: &Path) -> StoreOptions {
    StoreOptions { encryption_at_rest: true, ..options(folder) }
}

/// Puts an object of each size; its key begins with `prefix`.
fn put_sizes(options: StoreOptions, prefix: &'static str) {
    with_engine_on(options, move |engine| async move {
        let bucket = match engine.store().bucket(&name("sizes")) {
            Some(bucket) => bucket,
            None => engine
                .store()
                .create_bucket(&name("sizes"), BucketSettings::default(), Origin::default())
                .await
                .expect("made"),
        };
        for size in SIZES {
            let (object, bytes) = (key(&format!("{prefix} {size}")), content(size as u64, size));
            put(&engine, &bucket, &object, &bytes, WriteCondition::default()).await.expect("put");
        }
    });
}

/// Reads the objects of [`put_sizes`], whole and in ranges across blocks.
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

/// Returns how many files of the store contain these bytes.
fn files_with(folder: &Path, wanted: &[u8]) -> usize {
    let holds = |path: &PathBuf| {
        let bytes = std::fs::read(path).expect("reads");
        memchr::memmem::find(&bytes, wanted).is_some()
    };
    files(folder).iter().filter(|path| holds(path)).count()
}

#[test]
fn encryption_can_be_turned_on_and_off() {
    let folder = folder();
    put_sizes(options(folder.path()), "before");
    put_sizes(encrypting(folder.path()), "sealed");
    put_sizes(options(folder.path()), "after");
    for options in [options(folder.path()), encrypting(folder.path())] {
        for (prefix, encrypted) in [("before", false), ("sealed", true), ("after", false)] {
            let again =
                StoreOptions { encryption_at_rest: options.encryption_at_rest, ..encrypting(folder.path()) };
            compare_sizes(again, prefix, encrypted);
        }
    }
}

#[test]
fn no_file_contains_encrypted_plaintext() {
    // The same search must find plaintext without encryption, or it proves nothing.
    for (options, expected) in [(options as fn(&Path) -> StoreOptions, true), (encrypting, false)] {
        let folder = folder();
        with_engine_on(options(folder.path()), |engine| async move {
            let bucket = engine
                .store()
                .create_bucket(&name("secret"), BucketSettings::default(), Origin::default())
                .await
                .expect("made");
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

/// Returns the file and offset of these bytes.
fn find(folder: &Path, wanted: &[u8]) -> (PathBuf, u64) {
    for path in files(folder) {
        let bytes = std::fs::read(&path).expect("reads");
        if let Some(at) = memchr::memmem::find(&bytes, wanted) {
            return (path, at as u64);
        }
    }
    panic!("not in the store");
}

/// Returns the contents of all volumes.
fn volumes(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let volumes = files(folder).into_iter().filter(|path| path.extension().is_some_and(|e| e == "vol"));
    volumes.map(|path| (path.clone(), std::fs::read(&path).expect("reads"))).collect()
}

fn put_one(folder: &Path, object: &'static str, seed: u64) {
    with_engine_on(encrypting(folder), move |engine| async move {
        let bucket = engine.store().bucket(&name("damage")).expect("made before");
        let bytes = content(seed, 200_000);
        put(&engine, &bucket, &key(object), &bytes, WriteCondition::default()).await.expect("put");
    });
}

/// Returns the contents of the units that `body` changed.
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
fn flipped_bit_damages_only_its_encrypted_block() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        engine
            .store()
            .create_bucket(&name("damage"), BucketSettings::default(), Origin::default())
            .await
            .expect("made");
    });
    let path = folder.path().to_owned();
    let units = written_by(folder.path(), || put_one(&path, "a", 1));
    // 200 000 bytes take 49 units; the last one is not full.
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

/// A CRC detects accidents only. The authentication tag under the payload's own key also detects blocks that were moved.
#[test]
fn moved_encrypted_block_is_detected() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        engine
            .store()
            .create_bucket(&name("damage"), BucketSettings::default(), Origin::default())
            .await
            .expect("made");
    });
    let path = folder.path().to_owned();
    let first = written_by(folder.path(), || put_one(&path, "a", 1));
    let second = written_by(folder.path(), || put_one(&path, "b", 1));
    assert_ne!(first[..48], second[..48], "the same content is encrypted with another key");
    let (volume, at) = find(folder.path(), &first[0]);
    let file = OpenOptions::new().read(true).write(true).open(volume).expect("opens");
    // Overwrite block 0 with block 1 of the same payload.
    file.write_all_at(&first[16..32].concat(), at).expect("writes");
    with_engine(folder.path(), |engine| async move {
        let bucket = engine.store().bucket(&name("damage")).expect("there");
        let moved = get(&engine, &bucket, &key("a"), 0..10).await;
        assert!(matches!(moved, Err(EngineError::Corrupt(_))));
        let (_, whole) = get(&engine, &bucket, &key("b"), 0..u64::MAX).await.expect("read");
        assert!(whole == content(1, 200_000));
    });
}
