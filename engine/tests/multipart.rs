//! Multipart uploads, copies and quotas.

use crate::support::{
    content, copy, fill, folder, get, key, name, options, put, with_engine, with_engine_on,
};
use cairn_engine::{
    Attributes, Bucket, BucketChange, BucketSettings, CompleteUpload, DeleteOptions, Engine, EngineError,
    ListUploads, NewUpload, ObjectLock, Origin, PartInfo, Precondition, PutObject, PutPart, Quota, Store,
    StoreOptions, UploadPosition, Usage, WriteCondition, composite_etag,
};
use cairn_fixtures::ManualClock;
use cairn_md5::md5_digest;
use cairn_model::{ObjectKey, UploadId};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const MIB: usize = 1 << 20;

async fn bucket(engine: &Rc<Engine>) -> Arc<Bucket> {
    engine
        .store()
        .create_bucket(&name("uploads"), BucketSettings::default(), Origin::default())
        .await
        .expect("made")
}

async fn create_upload(engine: &Rc<Engine>, bucket: &Arc<Bucket>, object: &ObjectKey) -> UploadId {
    engine.create_upload(bucket, object, NewUpload::default()).await.expect("created").id
}

async fn part(
    engine: &Rc<Engine>,
    bucket: &Arc<Bucket>,
    object: &ObjectKey,
    upload: UploadId,
    (number, bytes): (u16, &[u8]),
) -> Result<PartInfo, EngineError> {
    let mut writer = engine.write_payload(bucket, object, bytes.len() as u64).await?;
    fill(&mut writer, bytes).await?;
    let payload = writer.finish().await?;
    let (bucket, key) = (Arc::clone(bucket), object.clone());
    engine.put_part(PutPart { bucket, key, upload, number, payload, checksum: None }).await
}

fn completion(
    bucket: &Arc<Bucket>,
    object: &ObjectKey,
    upload: UploadId,
    parts: &[(u16, &[u8])],
) -> CompleteUpload {
    CompleteUpload {
        bucket: Arc::clone(bucket),
        key: object.clone(),
        upload,
        parts: parts.iter().map(|(number, bytes)| (*number, md5_digest(bytes))).collect(),
        checksums: Vec::new(),
        condition: WriteCondition::default(),
        origin: Origin::default(),
    }
}

fn inspect(store: &Store) {
    let found = store.inspect(u64::MAX).expect("inspects");
    assert!(found.complete && found.is_clean(), "{found:?}");
}

fn check_assembled_object(encryption_at_rest: bool) {
    let folder = folder();
    let options = StoreOptions { encryption_at_rest, ..options(folder.path()) };
    with_engine_on(options, move |engine| async move {
        let (bucket, object) = (bucket(&engine).await, key("a"));
        let upload = create_upload(&engine, &bucket, &object).await;
        // Parts of several blocks, of different sizes, with gaps between the numbers; the last part is inline.
        let sizes = [3 * MIB, 3 * MIB, 200_001, 2 * MIB, 10_000];
        let bytes: Vec<_> = (0..).zip(sizes).map(|(seed, size)| content(seed, size)).collect();
        let numbers = [1, 2, 4, 9, 10_000];
        for at in [4, 2, 0, 3, 1] {
            part(&engine, &bucket, &object, upload, (numbers[at], &bytes[at])).await.expect("uploaded");
        }
        part(&engine, &bucket, &object, upload, (7, b"not used")).await.expect("uploaded");
        let total: usize = bytes.iter().map(Vec::len).sum();
        let held = Usage { uploads: 1, part_bytes: total as u64 + 8, ..Usage::default() };
        assert_eq!(bucket.usage(), held);
        inspect(engine.store());

        let named: Vec<_> = numbers.iter().zip(&bytes).map(|(n, bytes)| (*n, bytes.as_slice())).collect();
        let done =
            engine.complete_upload(completion(&bucket, &object, upload, &named)).await.expect("completed");
        assert_eq!(done.etag, composite_etag(bytes.iter().map(|bytes| md5_digest(bytes))));
        let again =
            engine.complete_upload(completion(&bucket, &object, upload, &named)).await.expect("again");
        assert_eq!((again.put.version, again.etag), (done.put.version, done.etag));
        let size = total as u64;
        let held = Usage { objects: 1, bytes: size, versions: 1, version_bytes: size, ..Usage::default() };
        assert_eq!(bucket.usage(), held);
        inspect(engine.store());

        let whole = bytes.concat();
        let (info, read) = get(&engine, &bucket, &object, 0..u64::MAX).await.expect("read");
        assert!(read == whole && info.size == size && info.encrypted == encryption_at_rest);
        assert_eq!(info.part_range(2), Some(3 * MIB as u64..6 * MIB as u64));
        assert_eq!((info.part_range(3), info.part_range(10_000)), (None, Some(size - 10_000..size)));
        let edge = 6 * MIB as u64;
        for range in [0..1, edge - 1..edge + 1, edge..edge + 200_001, 100_000..size - 3, size - 1..size, 5..5]
        {
            let (_, read) = get(&engine, &bucket, &object, range.clone()).await.expect("read");
            assert_eq!(
                read,
                whole[usize::try_from(range.start).expect("small")
                    ..usize::try_from(range.end).expect("small")],
                "{range:?}"
            );
        }

        let mut open = engine.open_whole(&bucket, &object, None).expect("opens").read();
        open.next().await.expect("reads").expect("a piece");
        engine.delete_object(&bucket, &object, DeleteOptions::default()).await.expect("deleted");
        put(&engine, &bucket, &key("b"), &content(9, 12 * MIB), WriteCondition::default())
            .await
            .expect("put");
        let mut read = content(0, 3 * MIB)[..65_536].to_vec();
        while let Some(piece) = open.next().await.expect("a reader keeps what it reads") {
            read.extend_from_slice(piece.as_ref());
        }
        assert!(read == whole, "a read was torn by an overwrite");
        drop(open);
        inspect(engine.store());
        let gone = engine.complete_upload(completion(&bucket, &object, upload, &named)).await;
        assert_eq!(gone.map(|_| ()), Err(EngineError::NoSuchUpload));
    });
}

#[test]
fn parts_make_one_object() {
    check_assembled_object(false);
}

#[test]
fn encrypted_parts_make_one_object() {
    check_assembled_object(true);
}

#[test]
fn replaced_and_aborted_parts_free_their_space() {
    with_engine(folder().path(), |engine| async move {
        let (bucket, object) = (bucket(&engine).await, key("a"));
        let before = engine.store().usage().free_volume_bytes;
        let upload = create_upload(&engine, &bucket, &object).await;
        for seed in 0..3 {
            let bytes = content(seed, MIB);
            part(&engine, &bucket, &object, upload, (1, &bytes)).await.expect("uploaded");
            assert_eq!(bucket.usage().part_bytes, MIB as u64);
        }
        let page = engine.list_parts(&bucket, &object, upload, 0, 10).expect("lists");
        assert_eq!(
            page.parts.iter().map(|part| part.md5).collect::<Vec<_>>(),
            [md5_digest(&content(2, MIB))]
        );
        engine.abort_upload(&bucket, &object, upload, Origin::default()).await.expect("aborted");
        assert_eq!(bucket.usage(), Usage::default());
        assert!(engine.store().usage().free_volume_bytes >= before);
        inspect(engine.store());
        let refused = Err(EngineError::NoSuchUpload);
        assert_eq!(engine.abort_upload(&bucket, &object, upload, Origin::default()).await, refused);
        assert_eq!(
            part(&engine, &bucket, &object, upload, (1, b"x")).await.map(|_| ()),
            Err(EngineError::NoSuchUpload)
        );
        assert_eq!(engine.store().usage().reserved_bytes, 0);
        engine.store().delete_bucket(&bucket.name, Origin::default()).await.expect("empty");
    });
}

#[test]
fn refused_completion_changes_nothing() {
    with_engine(folder().path(), |engine| async move {
        let (bucket, object) = (bucket(&engine).await, key("a"));
        let upload = create_upload(&engine, &bucket, &object).await;
        part(&engine, &bucket, &object, upload, (1, b"one")).await.expect("uploaded");
        put(&engine, &bucket, &object, b"there", WriteCondition::default()).await.expect("put");
        let before = bucket.usage();
        for (parts, expected) in [
            (&[(2, &b"one"[..])][..], EngineError::InvalidPart(2)),
            (&[(1, b"two")], EngineError::InvalidPart(1)),
            (&[(1, b"one"), (3, b"x")], EngineError::InvalidPart(3)),
            (&[], EngineError::InvalidPart(0)),
        ] {
            let refused = engine.complete_upload(completion(&bucket, &object, upload, parts)).await;
            assert_eq!(refused.map(|_| ()), Err(expected));
        }
        let absent = WriteCondition::if_absent();
        let named = completion(&bucket, &object, upload, &[(1, b"one")]);
        let refused = engine.complete_upload(CompleteUpload { condition: absent, ..named }).await;
        assert_eq!(refused.map(|_| ()), Err(EngineError::PreconditionFailed(Precondition::IfNoneMatch)));
        let other = completion(&bucket, &key("b"), upload, &[(1, b"one")]);
        assert_eq!(engine.complete_upload(other).await.map(|_| ()), Err(EngineError::NoSuchUpload));
        let not_empty = engine.store().delete_bucket(&bucket.name, Origin::default()).await;
        assert_eq!(not_empty, Err(EngineError::BucketNotEmpty));
        assert_eq!(bucket.usage(), before);
        inspect(engine.store());
    });
}

/// Only uploads remained of many buckets, and nobody who wanted to delete one could see them.
#[test]
fn deletion_of_a_bucket_aborts_its_uploads() {
    with_engine(folder().path(), |engine| async move {
        let bucket = bucket(&engine).await;
        let before = engine.store().usage().free_volume_bytes;
        // More than are aborted in one commit.
        for number in 0..70 {
            let object = key(&format!("upload {number}"));
            let upload = create_upload(&engine, &bucket, &object).await;
            part(&engine, &bucket, &object, upload, (1, &[7; 100_000])).await.expect("uploaded");
        }
        assert_eq!(bucket.usage().uploads, 70);
        engine.store().delete_bucket(&bucket.name, Origin::default()).await.expect("only uploads");
        assert_eq!(bucket.usage(), Usage::default());
        assert!(engine.store().usage().free_volume_bytes >= before);
        inspect(engine.store());
    });
}

#[test]
fn completion_can_require_that_nothing_was_written_since_the_upload_began() {
    with_engine(folder().path(), |engine| async move {
        let (bucket, object) = (bucket(&engine).await, key("a"));
        put(&engine, &bucket, &object, b"before", WriteCondition::default()).await.expect("put");
        let first = create_upload(&engine, &bucket, &object).await;
        let second = create_upload(&engine, &bucket, &object).await;
        for upload in [first, second] {
            part(&engine, &bucket, &object, upload, (1, b"one")).await.expect("uploaded");
        }
        let complete = |upload| {
            let condition = WriteCondition { unchanged_since: Some(upload), ..WriteCondition::default() };
            let named = completion(&bucket, &object, upload, &[(1, b"one")]);
            engine.complete_upload(CompleteUpload { condition, ..named })
        };
        complete(first).await.expect("only the upload's own writes");
        assert_eq!(complete(second).await.map(|_| ()), Err(EngineError::Conflict));
        inspect(engine.store());
    });
}

#[test]
fn only_old_uploads_expire() {
    let (folder, clock) = (folder(), ManualClock::at(0));
    let options = StoreOptions { clock: Arc::<ManualClock>::clone(&clock), ..options(folder.path()) };
    with_engine_on(options, move |engine| async move {
        let bucket = bucket(&engine).await;
        let day = Duration::from_secs(86_400);
        for n in 0..300 {
            // More than a page of the expiry in each slice, all on the first day.
            create_upload(&engine, &bucket, &key(&format!("old {n}"))).await;
        }
        let upload = create_upload(&engine, &bucket, &key("old 1")).await;
        part(&engine, &bucket, &key("old 1"), upload, (1, &content(1, MIB))).await.expect("uploaded");
        clock.set(4 * 86_400_000);
        let young = create_upload(&engine, &bucket, &key("young")).await;
        clock.set(8 * 86_400_000);
        assert_eq!(engine.expire_uploads_now(7 * day, &|| false).await, Ok(0), "the clock has jumped");
        engine.store().resume_lifecycle();
        assert_eq!(engine.expire_uploads_now(8 * day, &|| false).await, Ok(0));
        assert_eq!(engine.expire_uploads_now(7 * day, &|| false).await, Ok(301));
        assert_eq!(bucket.usage(), Usage { uploads: 1, ..Usage::default() });
        assert!(engine.upload(&bucket, &key("young"), young).is_ok());
        inspect(engine.store());
    });
}

#[test]
fn uploads_are_listed_by_key_and_creation() {
    with_engine(folder().path(), |engine| async move {
        let bucket = bucket(&engine).await;
        let mut created = Vec::new();
        for object in ["b/1", "a", "a", "b/2", "c"] {
            created.push((object, create_upload(&engine, &bucket, &key(object)).await));
        }
        created.sort_unstable();
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let list = ListUploads { prefix: b"", delimiter: None, after, max: 2 };
            let page = engine.list_uploads(&bucket, &list).expect("lists");
            listed.extend(page.uploads.into_iter().map(|upload| (upload.key, upload.id)));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let expected: Vec<_> = created.iter().map(|(object, id)| ((*object).to_owned(), *id)).collect();
        assert_eq!(listed, expected);
        let after = Some(UploadPosition::AfterKey(b"a".to_vec()));
        let list = ListUploads { prefix: b"", delimiter: Some(b"/"), after, max: 10 };
        let page = engine.list_uploads(&bucket, &list).expect("lists");
        assert_eq!((page.common_prefixes, page.uploads.len()), (vec![b"b/".to_vec()], 1));
    });
}

#[test]
fn copy_is_independent_of_its_source() {
    with_engine(folder().path(), |engine| async move {
        let bucket = bucket(&engine).await;
        for size in [0, 100, 100_000, 20 * MIB] {
            let bytes = content(7, size);
            put(&engine, &bucket, &key("from"), &bytes, WriteCondition::default()).await.expect("put");
            let source = engine.open_whole(&bucket, &key("from"), None).expect("opens");
            let etag = source.info.etag;
            let payload = copy(&engine, source, &bucket, &key("to")).await;
            assert_eq!(payload.etag(), etag, "the MD5 of the source is reused");
            put_copy(&engine, &bucket, payload).await;
            engine.delete_object(&bucket, &key("from"), DeleteOptions::default()).await.expect("deleted");
            assert!(get(&engine, &bucket, &key("to"), 0..u64::MAX).await.expect("read").1 == bytes);
        }
        let upload = create_upload(&engine, &bucket, &key("from")).await;
        let bytes = [content(1, 5 * MIB), content(2, 300)];
        let named = [(1, bytes[0].as_slice()), (2, &bytes[1])];
        for part_bytes in named {
            part(&engine, &bucket, &key("from"), upload, part_bytes).await.expect("uploaded");
        }
        engine.complete_upload(completion(&bucket, &key("from"), upload, &named)).await.expect("completed");
        let source = engine.open_whole(&bucket, &key("from"), None).expect("opens");
        let payload = copy(&engine, source, &bucket, &key("to")).await;
        assert_eq!(
            payload.md5(),
            Some(md5_digest(&bytes.concat())),
            "the MD5 of a source in parts is computed"
        );
        put_copy(&engine, &bucket, payload).await;
        assert!(get(&engine, &bucket, &key("to"), 0..u64::MAX).await.expect("read").1 == bytes.concat());
        inspect(engine.store());
    });
}

async fn put_copy(engine: &Rc<Engine>, bucket: &Arc<Bucket>, payload: cairn_engine::StagedPayload) {
    let put = PutObject {
        bucket: Arc::clone(bucket),
        key: key("to"),
        etag: payload.etag(),
        payload,
        attributes: Attributes::default(),
        condition: WriteCondition::default(),
        lock: ObjectLock::default(),
        origin: Origin::default(),
    };
    engine.put_object(put).await.expect("put");
}

#[test]
fn quota_limits_current_objects() {
    with_engine(folder().path(), |engine| async move {
        let bucket = bucket(&engine).await;
        let limit = |bytes, objects| BucketChange::Quota(Quota { bytes, objects });
        let write = |object: &'static str, size| {
            let (engine, bucket) = (Rc::clone(&engine), Arc::clone(&bucket));
            async move {
                put(&engine, &bucket, &key(object), &vec![1; size], WriteCondition::default())
                    .await
                    .map(|_| ())
            }
        };
        engine.store().change_bucket(&bucket, limit(Some(100), Some(2))).await.expect("set");
        write("a", 60).await.expect("fits");
        assert_eq!(write("b", 41).await, Err(EngineError::QuotaExceeded));
        write("b", 40).await.expect("fits exactly");
        assert_eq!(write("c", 0).await, Err(EngineError::QuotaExceeded), "a third object");
        write("a", 60).await.expect("an overwrite counts instead of what it replaces");
        let lower = engine.store().change_bucket(&bucket, limit(Some(99), None)).await;
        assert_eq!(lower, Err(EngineError::QuotaBelowUsage));

        let upload = create_upload(&engine, &bucket, &key("a")).await;
        part(&engine, &bucket, &key("a"), upload, (1, &[2; 61])).await.expect("parts do not count");
        let refused = engine.complete_upload(completion(&bucket, &key("a"), upload, &[(1, &[2; 61])])).await;
        assert_eq!(refused.map(|_| ()), Err(EngineError::QuotaExceeded));
        engine.delete_object(&bucket, &key("b"), DeleteOptions::default()).await.expect("deleted");
        engine
            .complete_upload(completion(&bucket, &key("a"), upload, &[(1, &[2; 61])]))
            .await
            .expect("fits now");
        assert_eq!((bucket.usage().objects, bucket.usage().bytes), (1, 61));
        inspect(engine.store());
    });
}

/// Removals of versions did not check the quota. The removal of a delete marker restored its object beyond any limit, and so
/// did the removal of a small version above a large one.
#[test]
fn removal_that_restores_more_than_the_quota_is_refused() {
    with_engine(folder().path(), |engine| async move {
        let bucket = bucket(&engine).await;
        let change = |change| engine.store().change_bucket(&bucket, change);
        change(BucketChange::Versioning(cairn_engine::Versioning::Enabled)).await.expect("set");
        let write = async |object: &str, size| {
            let bytes = vec![1; size];
            put(&engine, &bucket, &key(object), &bytes, WriteCondition::default()).await.expect("put").version
        };
        let remove = async |object: &str, version| {
            let options = DeleteOptions { version: Some(version), ..DeleteOptions::default() };
            engine.delete_object(&bucket, &key(object), options).await.map(|deleted| deleted.existed)
        };
        write("a", 60).await;
        let deleted =
            engine.delete_object(&bucket, &key("a"), DeleteOptions::default()).await.expect("deleted");
        let marker = deleted.version.expect("a marker");
        write("b", 30).await;
        let small = cairn_model::VersionName::Id(write("b", 20).await);
        change(BucketChange::Quota(Quota { bytes: Some(29), objects: Some(1) })).await.expect("set");
        let before = bucket.usage();
        assert_eq!(remove("a", marker).await, Err(EngineError::QuotaExceeded));
        assert_eq!(remove("b", small).await, Err(EngineError::QuotaExceeded));
        assert_eq!(bucket.usage(), before);
        inspect(engine.store());

        change(BucketChange::Quota(Quota { bytes: Some(90), objects: Some(2) })).await.expect("set");
        assert_eq!(remove("b", small).await, Ok(true));
        assert_eq!(remove("a", marker).await, Ok(true));
        assert_eq!((bucket.usage().objects, bucket.usage().bytes), (2, 90));
        inspect(engine.store());
    });
}
