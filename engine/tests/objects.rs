//! Puts, gets and deletes of objects in buckets without versioning.

use crate::support::{
    content, etag, folder, get, key, name, options, put, put_shorter, until, with_engine, with_engine_on,
};
use cairn_engine::{
    BucketSettings, DeleteOptions, EngineError, EtagMatch, Origin, Precondition, Store, StoreOptions, Usage,
    WriteCondition,
};

const SIZES: [usize; 12] =
    [0, 1, 4096, 16_384, 16_385, 65_536, 65_537, 262_144, 1 << 20, (1 << 20) + 3, 17 << 20, (70 << 20) + 1];

#[test]
fn payloads_read_whole_and_in_ranges_after_restarts() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        let bucket = engine
            .store()
            .create_bucket(&name("sizes"), BucketSettings::default(), Origin::default())
            .await
            .expect("made");
        for size in SIZES {
            let object = key(&format!("object {size}"));
            put(&engine, &bucket, &object, &content(size as u64, size), WriteCondition::default())
                .await
                .expect("put");
        }
    });
    for _ in 0..2 {
        with_engine(folder.path(), |engine| async move {
            let bucket = engine.store().bucket(&name("sizes")).expect("still there");
            let total = SIZES.iter().sum::<usize>() as u64;
            let usage = bucket.usage();
            assert_eq!((usage.objects, usage.bytes), (SIZES.len() as u64, total));
            for size in SIZES {
                let object = key(&format!("object {size}"));
                let expected = content(size as u64, size);
                let (info, bytes) = get(&engine, &bucket, &object, 0..u64::MAX).await.expect("read");
                assert!(bytes == expected, "size {size}");
                assert_eq!((info.size, info.etag), (size as u64, etag(&expected)));
                assert_eq!(info.attributes.headers, [("x-amz-meta-a".to_owned(), b"b".to_vec())]);
                for (start, end) in
                    [(0, 1), (size / 2, size / 2 + 70_000), (size.saturating_sub(5), size), (size, size + 9)]
                {
                    let (_, bytes) =
                        get(&engine, &bucket, &object, start as u64..end as u64).await.expect("read");
                    assert!(bytes == expected[start.min(size)..end.min(size)], "size {size}, {start}..{end}");
                }
            }
        });
    }
}

/// Returns the bytes in the volumes that are owned or reserved.
fn used(engine: &cairn_engine::Engine) -> u64 {
    let usage = engine.store().usage();
    usage.volume_bytes - usage.free_volume_bytes
}

#[test]
fn overwrites_deletes_and_dropped_writers_free_their_space() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        let bucket = engine
            .store()
            .create_bucket(&name("space"), BucketSettings::default(), Origin::default())
            .await
            .expect("made");
        let object = key("x");
        put(&engine, &bucket, &object, &content(1, 30 << 20), WriteCondition::default()).await.expect("put");
        let with_one = used(&engine);
        for round in 0..12 {
            put(&engine, &bucket, &object, &content(round, 30 << 20), WriteCondition::default())
                .await
                .expect("put");
        }
        // The maintainer reserves a little space while it preallocates.
        until("twelve overwrites take no more than one object", || used(&engine) <= with_one).await;
        let mut writer = engine.write_payload(&bucket, &object, 40 << 20).await.expect("begins");
        for _ in 0..5 {
            let room = writer.buffer().await.expect("room").len();
            writer.advance(room).expect("fits");
        }
        drop(writer);
        let gone = engine.delete_object(&bucket, &object, DeleteOptions::default()).await.expect("deleted");
        assert!(gone.existed);
        until("all space is free", || used(&engine) <= with_one - (30 << 20) - 4096).await;
        assert_eq!(bucket.usage(), Usage::default());
    });
    with_engine(folder.path(), |engine| async move {
        until("only the headers of the volumes are in use", || used(&engine) == 3 * 4096).await;
    });
}

/// The size of a browser form's file is known only at its end. Sizes around the limits of inline payloads, blocks, buffers and
/// reservations must read back as written, and what was reserved beyond them must be free.
#[test]
fn payload_may_end_before_its_declared_size() {
    for encryption_at_rest in [false, true] {
        let folder = folder();
        let options = StoreOptions { encryption_at_rest, ..options(folder.path()) };
        with_engine_on(options, |engine| async move {
            let bucket = engine
                .store()
                .create_bucket(&name("shorter"), BucketSettings::default(), Origin::default())
                .await
                .expect("made");
            let (object, free) = (key("x"), used(&engine));
            for size in
                [0, 1, 16_384, 16_385, 65_535, 65_536, 65_537, 300_000, 1 << 20, (1 << 20) + 1, 5_000_001]
            {
                let bytes = content(7, size);
                for beyond in [0, 1, 2, 4096, 20_000, 3_000_000] {
                    put_shorter(&engine, &bucket, &object, &bytes, beyond).await.expect("put");
                    let found = get(&engine, &bucket, &object, 0..bytes.len() as u64).await.expect("found");
                    assert!(
                        found.0.size == bytes.len() as u64 && found.1 == bytes,
                        "{size} bytes, {beyond} more declared"
                    );
                }
            }
            engine.delete_object(&bucket, &object, DeleteOptions::default()).await.expect("deleted");
            until("all space is free", || used(&engine) <= free).await;
        });
    }
}

/// An object is overwritten and deleted in the middle of a read, and other payloads need space.
#[test]
fn reader_sees_one_version_despite_overwrites() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        let bucket = engine
            .store()
            .create_bucket(&name("pins"), BucketSettings::default(), Origin::default())
            .await
            .expect("made");
        let (object, expected) = (key("x"), content(5, 20 << 20));
        put(&engine, &bucket, &object, &expected, WriteCondition::default()).await.expect("put");
        let mut reader = engine.open_whole(&bucket, &object, None).expect("opens").read();
        let mut bytes = reader.next().await.expect("reads").expect("a piece").as_ref().to_vec();
        for round in 0..6 {
            put(&engine, &bucket, &object, &content(round + 50, 20 << 20), WriteCondition::default())
                .await
                .expect("put");
        }
        engine.delete_object(&bucket, &object, DeleteOptions::default()).await.expect("deleted");
        for other in 0..4 {
            let other_key = key(&format!("other {other}"));
            put(&engine, &bucket, &other_key, &content(other, 20 << 20), WriteCondition::default())
                .await
                .expect("put");
        }
        while let Some(chunk) = reader.next().await.expect("reads") {
            bytes.extend_from_slice(chunk.as_ref());
        }
        assert!(bytes == expected);
        assert_eq!(get(&engine, &bucket, &object, 0..1).await.map(|_| ()), Err(EngineError::NoSuchKey));
    });
}

#[test]
fn exactly_one_of_many_conditional_creations_succeeds() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        let bucket = engine
            .store()
            .create_bucket(&name("conditions"), BucketSettings::default(), Origin::default())
            .await
            .expect("made");
        let object = key("once");
        let absent = WriteCondition::if_absent();
        let mut tasks = Vec::new();
        for writer in 0..40u64 {
            let (engine, bucket, object, absent) =
                (engine.clone(), bucket.clone(), object.clone(), absent.clone());
            let task = async move { put(&engine, &bucket, &object, &content(writer, 20_000), absent).await };
            tasks.push(glommio::spawn_local(task));
        }
        let mut won = 0;
        for task in tasks {
            match task.await {
                Ok(outcome) => {
                    assert!(!outcome.replaced);
                    won += 1;
                }
                Err(error) => assert_eq!(error, EngineError::PreconditionFailed(Precondition::IfNoneMatch)),
            }
        }
        assert_eq!(won, 1);
        let current = engine.head_object(&bucket, &object, None).expect("there").etag.to_string();
        let matching = |tag: &str| WriteCondition {
            if_match: Some(EtagMatch::OneOf(vec![tag.to_owned()])),
            ..WriteCondition::default()
        };
        let wrong = put(&engine, &bucket, &object, b"x", matching("0123")).await;
        assert_eq!(wrong, Err(EngineError::PreconditionFailed(Precondition::IfMatch)));
        assert_eq!(
            put(&engine, &bucket, &key("none"), b"x", matching("0123")).await,
            Err(EngineError::NoSuchKey)
        );
        assert!(put(&engine, &bucket, &object, b"new", matching(&current)).await.expect("put").replaced);
        let by_size = WriteCondition { if_size: Some(4), ..WriteCondition::default() };
        assert_eq!(
            engine
                .delete_object(
                    &bucket,
                    &object,
                    DeleteOptions { condition: by_size, ..DeleteOptions::default() }
                )
                .await,
            Err(EngineError::PreconditionFailed(Precondition::IfMatchSize))
        );
        let by_size = WriteCondition { if_size: Some(3), ..WriteCondition::default() };
        assert!(
            engine
                .delete_object(
                    &bucket,
                    &object,
                    DeleteOptions { condition: by_size, ..DeleteOptions::default() }
                )
                .await
                .expect("deleted")
                .existed
        );
        let again = engine.delete_object(&bucket, &object, DeleteOptions::default()).await.expect("deleted");
        assert!(!again.existed);
    });
}

/// A refused deletion marked the bucket for a moment, in which the writes of others were refused.
#[test]
fn refused_deletion_of_a_bucket_disturbs_no_writer() {
    const ROUNDS: u32 = 100;
    with_engine(folder().path(), |engine| async move {
        let store = engine.store();
        let bucket = store.create_bucket(&name("kept"), BucketSettings::default(), Origin::default()).await;
        let bucket = bucket.expect("made");
        put(&engine, &bucket, &key("a"), b"kept", WriteCondition::default()).await.expect("put");
        for round in 0..ROUNDS {
            let deletion = store.delete_bucket(&bucket.name, Origin::default());
            let object = key(&format!("b {round}"));
            let write = put(&engine, &bucket, &object, b"written", WriteCondition::default());
            let (deleted, written) = futures_lite::future::zip(deletion, write).await;
            assert!(matches!(deleted, Err(EngineError::BucketNotEmpty)), "{deleted:?}");
            written.expect("the bucket stays");
        }
    });
}

#[test]
fn only_empty_buckets_are_deleted_and_names_are_reusable() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        let store = engine.store().clone();
        let bucket = store
            .create_bucket(&name("gone"), BucketSettings::default(), Origin::default())
            .await
            .expect("made");
        assert_eq!(
            store
                .create_bucket(&name("gone"), BucketSettings::default(), Origin::default())
                .await
                .map(|_| ()),
            Err(EngineError::BucketAlreadyExists)
        );
        put(&engine, &bucket, &key("k"), b"v", WriteCondition::default()).await.expect("put");
        assert_eq!(
            store.delete_bucket(&name("gone"), Origin::default()).await,
            Err(EngineError::BucketNotEmpty)
        );
        engine.delete_object(&bucket, &key("k"), DeleteOptions::default()).await.expect("deleted");
        store.delete_bucket(&name("gone"), Origin::default()).await.expect("deleted");
        let refused = put(&engine, &bucket, &key("k"), b"v", WriteCondition::default()).await;
        assert_eq!(refused, Err(EngineError::NoSuchBucket));
        assert_eq!(
            store.delete_bucket(&name("gone"), Origin::default()).await,
            Err(EngineError::NoSuchBucket)
        );
        let again = store
            .create_bucket(&name("gone"), BucketSettings::default(), Origin::default())
            .await
            .expect("made");
        assert_eq!(get(&engine, &again, &key("k"), 0..1).await.map(|_| ()), Err(EngineError::NoSuchKey));
    });
}

/// A bit of a volume flips while the store is closed. The damaged block is not served; all others are.
#[test]
fn flipped_bit_in_a_volume_is_never_served() {
    use std::os::unix::fs::FileExt as _;
    let folder = folder();
    let expected = [content(1, 300_000), content(2, 300_000)];
    let contents = expected.clone();
    with_engine(folder.path(), |engine| async move {
        let bucket = engine
            .store()
            .create_bucket(&name("bits"), BucketSettings::default(), Origin::default())
            .await
            .expect("made");
        for (object, bytes) in ["a", "b"].iter().zip(&contents) {
            put(&engine, &bucket, &key(object), bytes, WriteCondition::default()).await.expect("put");
        }
    });
    // Find a block of the first object in the volumes.
    let mut planted = false;
    for slice in 0..3 {
        let path = folder.path().join(format!("slices/{slice:02}/volumes/000000.vol"));
        let bytes = std::fs::read(&path).expect("reads");
        if let Some(at) =
            bytes.windows(64).step_by(4096).position(|window| *window == expected[0][131_072..131_136])
        {
            let at = at as u64 * 4096 + 77;
            let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).expect("opens");
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).expect("reads");
            file.write_all_at(&[byte[0] ^ 4], at).expect("writes");
            planted = true;
        }
    }
    assert!(planted);
    with_engine(folder.path(), move |engine| async move {
        let bucket = engine.store().bucket(&name("bits")).expect("there");
        let damaged = get(&engine, &bucket, &key("a"), 0..300_000).await;
        assert!(matches!(damaged, Err(EngineError::Corrupt(_))), "{:?}", damaged.map(|_| ()));
        assert!(engine.store().corruptions() > 0);
        let (_, before) = get(&engine, &bucket, &key("a"), 0..131_072).await.expect("the blocks before it");
        assert!(before == expected[0][..131_072]);
        let (_, other) = get(&engine, &bucket, &key("b"), 0..300_000).await.expect("whole");
        assert!(other == expected[1]);
    });
}

#[test]
fn second_process_and_wrong_master_key_are_refused() {
    let folder = folder();
    let store = Store::open(options(folder.path())).expect("opens");
    let second = Store::open(options(folder.path())).map(|_| ()).expect_err("locked");
    assert!(second.to_string().contains("another process"), "{second}");
    store.close();
    drop(store);
    let mut wrong = options(folder.path());
    wrong.master_key = b"another key that is long enough too".to_vec().into();
    let refused = Store::open(wrong).map(|_| ()).expect_err("another key");
    assert!(refused.to_string().contains("master key"), "{refused}");
    Store::open(options(folder.path())).expect("opens with its own key").close();
}

/// Deletes of one request wait for one commit of each slice and not for one each.
#[test]
fn deletes_of_one_request_share_commits_and_keep_their_order() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        let bucket = engine
            .store()
            .create_bucket(&name("many"), BucketSettings::default(), Origin::default())
            .await
            .expect("made");
        let keys: Vec<_> = (0..200).map(|number| key(&format!("object {number}"))).collect();
        for object in &keys {
            put(&engine, &bucket, object, b"x", WriteCondition::default()).await.expect("put");
        }
        let batches = || engine.store().metrics().batches.count();
        let before = batches();
        let plain = || (keys[0].clone(), DeleteOptions::default());
        let conditional =
            DeleteOptions { condition: WriteCondition::if_absent(), ..DeleteOptions::default() };
        // The condition holds only after the first delete of the same key.
        let mut deletes =
            vec![plain(), (keys[0].clone(), conditional.clone()), (keys[1].clone(), conditional)];
        deletes.extend(keys.iter().map(|object| (object.clone(), DeleteOptions::default())));
        let outcomes = engine.delete_objects(&bucket, deletes).await;
        assert!(outcomes[0].as_ref().is_ok_and(|outcome| outcome.existed));
        assert!(outcomes[1].as_ref().is_ok_and(|outcome| !outcome.existed));
        assert!(matches!(outcomes[2], Err(EngineError::PreconditionFailed(_))));
        assert!(!outcomes[3].as_ref().expect("deleted").existed);
        assert!(outcomes[4..].iter().all(|outcome| outcome.as_ref().is_ok_and(|outcome| outcome.existed)));
        assert_eq!(bucket.usage().objects, 0);
        let slices = u64::try_from(engine.store().metrics().queue_lengths.len()).expect("few");
        assert!(batches() - before <= slices, "{} batches", batches() - before);
        assert!(engine.delete_objects(&bucket, Vec::new()).await.is_empty());
    });
}
