//! Verification and scrubbing: a flipped bit on the device is found wherever it is, and nothing else is reported as damaged.

use crate::support::{content, folder, get, key, name, put, with_engine};
use cairn_engine::{
    BucketSettings, BucketVerification, DeleteOptions, Engine, EngineError, Origin, ScrubOptions,
    VerificationStatus, VerifiedVersion, VerifyPosition, VerifyProgress, WriteCondition,
};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

const BLOCK_BYTES: usize = 65_536;
/// Bytes of a payload whose checks fill more than one page of a check table.
const TABLED_BYTES: usize = 600 * BLOCK_BYTES + 77;
const SIZES: [usize; 7] = [0, 10, 16_384, 16_385, 200_000, 1 << 20, TABLED_BYTES];

async fn put_all(engine: &Rc<Engine>) {
    let bucket = engine
        .store()
        .create_bucket(&name("verified"), BucketSettings::default(), Origin::default())
        .await
        .expect("made");
    for size in SIZES {
        let bytes = content(size as u64 + 1, size);
        let object = key(&format!("object {size}"));
        put(engine, &bucket, &object, &bytes, WriteCondition::default()).await.expect("put");
    }
}

async fn verify_all(engine: &Rc<Engine>) -> BucketVerification {
    let bucket = engine.store().bucket(&name("verified")).expect("still there");
    let progress = Arc::default();
    let verified = engine.verify_bucket(&bucket, VerifyPosition::START, u64::MAX, &progress).await;
    verified.expect("verifies")
}

async fn verify_one(engine: &Rc<Engine>, size: usize) -> Result<VerifiedVersion, EngineError> {
    let bucket = engine.store().bucket(&name("verified")).expect("still there");
    engine.verify_object(&bucket, &key(&format!("object {size}")), None, &Arc::default()).await
}

/// Returns the volumes and offsets of the units that begin with these bytes.
fn find_unit(store: &Path, wanted: &[u8]) -> Vec<(PathBuf, u64)> {
    let mut places = Vec::new();
    for slice in std::fs::read_dir(store.join("slices")).expect("slices") {
        for volume in std::fs::read_dir(slice.expect("a slice").path().join("volumes")).expect("volumes") {
            let path = volume.expect("a volume").path();
            let bytes = std::fs::read(&path).expect("reads");
            let units = (0..).step_by(4096).zip(bytes.chunks(4096));
            let found = units.filter(|(_, unit)| unit.starts_with(wanted));
            places.extend(found.map(|(at, _)| (path.clone(), at)));
        }
    }
    places
}

/// Returns where the metadata contains these bytes. LMDB keeps earlier copies of its pages, so there may be several places.
fn find_in_metadata(store: &Path, wanted: &[u8]) -> Vec<(PathBuf, u64)> {
    let mut places = Vec::new();
    for slice in std::fs::read_dir(store.join("slices")).expect("slices") {
        let path = slice.expect("a slice").path().join("meta").join("data.mdb");
        let bytes = std::fs::read(&path).expect("reads");
        for (page, start) in bytes.chunks(4096).zip((0..).step_by(4096)) {
            // Most of the file is preallocated and still zero.
            if page.iter().any(|byte| *byte != 0) {
                let found = (0..).zip(page.windows(wanted.len())).filter(|(_, window)| *window == wanted);
                places.extend(found.map(|(at, _): (u64, _)| (path.clone(), start + at)));
            }
        }
    }
    assert!(!places.is_empty());
    places
}

fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).expect("opens")
}

fn flip(path: &Path, at: u64, bit: u32) {
    let (file, mut byte) = (open(path), [0]);
    file.read_exact_at(&mut byte, at).expect("reads");
    file.write_all_at(&[byte[0] ^ (1 << bit)], at).expect("writes");
    file.sync_all().expect("flushes");
}

/// Each verification began with a throttle of its own, which took all earlier requests for old ones. So verifications of a
/// small bucket, one after the other, never rested, and took the device from the clients' requests: their latency grew from
/// 0.15 to 6 ms. The throttle now remembers requests and rests from one run to the next.
#[test]
fn repeated_verifications_of_a_small_bucket_rest_while_requests_arrive() {
    const RUNS: u32 = 20;
    /// Rests of the run itself and of its only block.
    const REST_MIN: Duration = Duration::from_millis(2 * 2);
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        let settings = BucketSettings::default();
        let made = engine.store().create_bucket(&name("verified"), settings, Origin::default()).await;
        let (bucket, object) = (made.expect("made"), key("object"));
        put(&engine, &bucket, &object, &content(1, 20_000), WriteCondition::default()).await.expect("put");
        let begun = Instant::now();
        for _ in 0..RUNS {
            get(&engine, &bucket, &object, 0..u64::MAX).await.expect("read");
            assert_eq!(verify_all(&engine).await.versions_verified, 1);
        }
        let took = begun.elapsed();
        assert!(took >= REST_MIN * RUNS, "{took:?}");
    });
}

#[test]
fn undamaged_bucket_is_verified_block_by_block() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        put_all(&engine).await;
        let progress = Arc::<VerifyProgress>::default();
        let bucket = engine.store().bucket(&name("verified")).expect("made");
        let all = engine
            .verify_bucket(&bucket, VerifyPosition::START, u64::MAX, &progress)
            .await
            .expect("verifies");
        let bytes = SIZES.iter().sum::<usize>() as u64;
        assert_eq!((all.versions_verified, all.bytes_verified, all.next.is_none()), (7, bytes, true));
        assert_eq!((all.corrupt_versions, all.corrupt.len()), (0, 0));
        assert_eq!((progress.versions(), progress.bytes(), progress.corrupt()), (7, bytes, 0));
        for size in SIZES {
            let one = verify_one(&engine, size).await.expect("verifies");
            assert_eq!((one.size, one.status), (size as u64, VerificationStatus::Ok));
            assert_eq!(one.blocks_checked, size.div_ceil(BLOCK_BYTES) as u64);
            assert_eq!(one.detail, None);
        }
        let missing = engine.verify_object(&bucket, &key("none"), None, &progress).await;
        assert_eq!(missing, Err(EngineError::NoSuchKey));
        assert_eq!(engine.store().corruptions(), 0);
    });
}

/// Verification from the cache would miss damage to blocks that were cached before. Verification that fills the cache would
/// evict the blocks that clients read.
#[test]
fn verification_bypasses_the_cache() {
    let folder = folder();
    let store = folder.path().to_owned();
    with_engine(folder.path(), |engine| async move {
        put_all(&engine).await;
        let bucket = engine.store().bucket(&name("verified")).expect("made");
        let cached = engine.store().usage().cached_bytes;
        assert_eq!(verify_all(&engine).await.corrupt_versions, 0);
        assert_eq!(engine.store().usage().cached_bytes, cached, "verification filled the cache");
        get(&engine, &bucket, &key("object 200000"), 0..u64::MAX).await.expect("read into the cache");
        let bytes = content(200_001, 200_000);
        let places = find_unit(&store, &bytes[BLOCK_BYTES..BLOCK_BYTES + 64]);
        assert_eq!(places.len(), 1);
        flip(&places[0].0, places[0].1, 3);
        let one = verify_one(&engine, 200_000).await.expect("verifies");
        assert_eq!((one.status, one.detail.as_deref()), (VerificationStatus::Corrupt, Some("block 1")));
        assert_eq!(one.blocks_checked, 4, "the blocks after the damage are checked too");
    });
}

#[test]
fn flipped_bit_in_any_block_is_found() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move { put_all(&engine).await });
    for (size, at, detail) in [
        (10, 3, "the inline payload"),
        (16_384, 16_383, "the inline payload"),
        (16_385, 0, "block 0"),
        (200_000, 199_999, "block 3"),
        (1 << 20, 7 * BLOCK_BYTES + 9, "block 7"),
        (TABLED_BYTES, 599 * BLOCK_BYTES, "block 599"),
    ] {
        let bytes = content(size as u64 + 1, size);
        let (start, places) = if size <= 16_384 {
            (0, find_in_metadata(folder.path(), &bytes[..10]))
        } else {
            let unit = at / 4096 * 4096;
            (unit, find_unit(folder.path(), &bytes[unit..size.min(unit + 4096)]))
        };
        assert!(!places.is_empty(), "size {size}");
        let flip_all = |places: &[(PathBuf, u64)]| {
            places.iter().for_each(|(path, offset)| flip(path, offset + (at - start) as u64, 5));
        };
        flip_all(&places);
        with_engine(folder.path(), move |engine| async move {
            let all = verify_all(&engine).await;
            assert_eq!((all.versions_verified, all.corrupt_versions), (7, 1), "{all:?}");
            assert_eq!(all.corrupt[0].key, format!("object {size}"));
            assert_eq!(all.corrupt[0].status, VerificationStatus::Corrupt);
            assert_eq!(all.corrupt[0].detail.as_deref(), Some(detail));
            assert_eq!(engine.store().corruptions(), 1, "one finding counts once");
            let bucket = engine.store().bucket(&name("verified")).expect("still there");
            let served = get(&engine, &bucket, &key(&format!("object {size}")), 0..u64::MAX).await;
            assert!(matches!(served, Err(EngineError::Corrupt(_))), "the damage must not be served");
        });
        flip_all(&places);
    }
    with_engine(folder.path(), |engine| async move {
        assert_eq!(verify_all(&engine).await.corrupt_versions, 0, "the bits were flipped back");
    });
}

/// The checks of a large payload are stored in pages of a check table. A flipped bit there affects up to 511 blocks.
#[test]
fn flipped_bit_in_a_check_table_is_one_finding() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move { put_all(&engine).await });
    let bytes = content(TABLED_BYTES as u64 + 1, TABLED_BYTES);
    let checks: Vec<u8> = (511..513)
        .flat_map(|block| {
            cairn_engine::block_check(&bytes[block * BLOCK_BYTES..(block + 1) * BLOCK_BYTES]).to_le_bytes()
        })
        .collect();
    let places = find_unit(folder.path(), &checks);
    assert_eq!(places.len(), 1, "the second page of the table");
    flip(&places[0].0, places[0].1 + 8, 0);
    with_engine(folder.path(), |engine| async move {
        let all = verify_all(&engine).await;
        assert_eq!(all.corrupt_versions, 1);
        assert_eq!(all.corrupt[0].detail.as_deref(), Some("page 1 of the check table"));
        assert_eq!(engine.store().corruptions(), 1);
    });
}

#[test]
fn verification_continues_after_a_damaged_record() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move { put_all(&engine).await });
    let etag = crate::support::etag(&content(200_001, 200_000));
    let places = find_in_metadata(folder.path(), &etag.md5);
    places.iter().for_each(|(path, offset)| flip(path, *offset, 1));
    with_engine(folder.path(), |engine| async move {
        let all = verify_all(&engine).await;
        assert_eq!((all.versions_verified, all.corrupt_versions), (7, 1));
        assert_eq!((all.corrupt[0].key.as_str(), all.corrupt[0].size), ("object 200000", 0));
        assert!(all.corrupt[0].detail.as_deref().is_some_and(|detail| detail.contains("check")));
    });
}

#[test]
fn truncated_volume_is_reported_as_missing_data() {
    let folder = folder();
    let store = folder.path().to_owned();
    with_engine(folder.path(), |engine| async move {
        put_all(&engine).await;
        let bytes = content(200_001, 200_000);
        let places = find_unit(&store, &bytes[2 * BLOCK_BYTES..2 * BLOCK_BYTES + 64]);
        assert_eq!(places.len(), 1);
        open(&places[0].0).set_len(places[0].1).expect("truncates");
        let one = verify_one(&engine, 200_000).await.expect("verifies");
        assert_eq!(one.status, VerificationStatus::Missing);
        assert_eq!(one.detail.as_deref(), Some("block 2 is missing, block 3 is missing"));
    });
}

#[test]
fn verification_in_pages_covers_every_version_once() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        let bucket = engine
            .store()
            .create_bucket(&name("verified"), BucketSettings::default(), Origin::default())
            .await
            .expect("made");
        let other = engine
            .store()
            .create_bucket(&name("other"), BucketSettings::default(), Origin::default())
            .await
            .expect("made");
        for number in 0..40 {
            for bucket in [&bucket, &other] {
                let object = key(&format!("k{number}"));
                put(&engine, bucket, &object, &content(number, 100), WriteCondition::default())
                    .await
                    .expect("put");
            }
        }
        let (mut verified, mut pages, mut at) = (0, 0, Some(VerifyPosition::START));
        while let Some(position) = at {
            let page = engine.verify_bucket(&bucket, position, 7, &Arc::default()).await.expect("verifies");
            assert!(page.versions_verified <= 7);
            verified += page.versions_verified;
            pages += 1;
            at = page.next;
        }
        assert_eq!(verified, 40);
        assert!(pages >= 6, "{pages} pages");
    });
}

/// Verification pins what it reads, so concurrent overwrites and deletes must not appear as damage.
#[test]
fn concurrent_changes_are_not_damage() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        put_all(&engine).await;
        let bucket = engine.store().bucket(&name("verified")).expect("made");
        let changer = Rc::clone(&engine);
        let changes = glommio::spawn_local(async move {
            for round in 0..30 {
                let object = key(&format!("object {}", SIZES[4 + round % 2]));
                let bytes = content(round as u64, 300_000);
                put(&changer, &bucket, &object, &bytes, WriteCondition::default()).await.expect("put");
                if round % 3 == 0 {
                    changer.delete_object(&bucket, &object, DeleteOptions::default()).await.expect("deleted");
                }
            }
        })
        .detach();
        let mut rounds = 0;
        let mut changes = Some(changes);
        while let Some(task) = changes.take() {
            assert_eq!(verify_all(&engine).await.corrupt_versions, 0);
            rounds += 1;
            if rounds < 3 {
                changes = Some(task);
            } else {
                task.await.expect("changed");
            }
        }
        assert_eq!(engine.store().corruptions(), 0);
    });
}

const SCRUB: ScrubOptions =
    ScrubOptions { interval: std::time::Duration::from_secs(24 * 3600), bytes_per_second: u64::MAX };

/// Scrubs until a pass has completed or so many versions were verified.
async fn scrub_until(engine: &Rc<Engine>, versions: u64) {
    let store = Arc::clone(engine.store());
    engine
        .scrub(SCRUB, move || {
            store.scrub().total().versions() >= versions || store.scrub().record().completed.0 > 0
        })
        .await;
}

#[test]
fn scrub_continues_after_a_restart() {
    let folder = folder();
    let bytes = SIZES.iter().sum::<usize>() as u64;
    with_engine(folder.path(), |engine| async move {
        put_all(&engine).await;
        scrub_until(&engine, 3).await;
        let record = engine.store().scrub().record();
        assert_eq!((record.versions, record.completed.0), (3, 0), "the pass was interrupted");
        assert!(record.started.0 > 0 && !engine.store().scrub().is_running());
    });
    with_engine(folder.path(), move |engine| async move {
        assert_eq!(engine.store().scrub().record().versions, 3, "the record survives a restart");
        scrub_until(&engine, u64::MAX).await;
        let record = engine.store().scrub().record();
        assert_eq!((record.versions, record.bytes, record.corrupt), (7, bytes, 0));
        assert_eq!(engine.store().scrub().total().versions(), 4, "the rest");
        assert!(record.completed.0 > 0 && record.started.0 == 0);
    });
    with_engine(folder.path(), |engine| async move {
        let before = engine.store().scrub().record();
        assert!(before.completed.0 > 0);
        // A whole pass has completed. The next one is not due yet.
        let polls = std::cell::Cell::new(0);
        let stopping = move || polls.replace(polls.get() + 1) > 1;
        engine.scrub(SCRUB, stopping).await;
        assert_eq!(engine.store().scrub().record(), before);
        assert_eq!(engine.store().scrub().total().versions(), 0);
    });
}

#[test]
fn scrub_counts_damage_and_continues() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move { put_all(&engine).await });
    let bytes = content(200_001, 200_000);
    let places = find_unit(folder.path(), &bytes[..64]);
    flip(&places[0].0, places[0].1, 0);
    with_engine(folder.path(), |engine| async move {
        scrub_until(&engine, u64::MAX).await;
        let record = engine.store().scrub().record();
        assert_eq!((record.versions, record.corrupt), (7, 1));
        assert_eq!(engine.store().scrub().total().corrupt(), 1);
        assert_eq!(engine.store().corruptions(), 1);
        assert_eq!(record.last_corrupt, 1);
    });
    check_last_result_during_the_next_pass(folder.path());
}

/// The next pass reset the count to 0, so the alarm ended although the damage remained.
fn check_last_result_during_the_next_pass(folder: &Path) {
    with_engine(folder, |engine| async move {
        let at_once = ScrubOptions { interval: std::time::Duration::ZERO, ..SCRUB };
        let store = Arc::clone(engine.store());
        engine.scrub(at_once, move || store.scrub().total().versions() >= 1).await;
        let record = engine.store().scrub().record();
        assert_eq!((record.versions, record.last_corrupt), (1, 1), "the pass was interrupted");
        assert!(record.started.0 > 0);
    });
    with_engine(folder, |engine| async move {
        let record = engine.store().scrub().record();
        assert_eq!((record.versions, record.last_corrupt), (1, 1), "the record survives a restart");
    });
}
