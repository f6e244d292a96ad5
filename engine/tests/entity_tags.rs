//! Opaque entity tags: random, in the form of an upload of one part, and without an MD5 unless somebody needs it.

use crate::support::{content, copy, fill, folder, get, key, name, options, with_engine, with_engine_on};
use cairn_engine::{
    Attributes, Bucket, BucketSettings, CompleteUpload, Engine, EtagKind, NewUpload, ObjectLock, Origin,
    PayloadWriter, PutObject, PutPart, StagedPayload, StoreOptions, WriteCondition, composite_etag,
};
use cairn_md5::md5_digest;
use cairn_model::Etag;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// An inline payload, and one in volumes.
const SIZES: [usize; 2] = [1000, 300_000];

fn opaque(folder: &Path) -> StoreOptions {
    StoreOptions { etags: EtagKind::Opaque, ..options(folder) }
}

async fn bucket(engine: &Rc<Engine>) -> Arc<Bucket> {
    let settings = BucketSettings::default();
    engine.store().create_bucket(&name("tags"), settings, Origin::default()).await.expect("made")
}

async fn filled(mut writer: PayloadWriter, bytes: &[u8]) -> StagedPayload {
    fill(&mut writer, bytes).await.expect("taken");
    writer.finish().await.expect("written")
}

async fn stage(engine: &Rc<Engine>, bucket: &Arc<Bucket>, object: &str, bytes: &[u8]) -> StagedPayload {
    let writer = engine.write_payload(bucket, &key(object), bytes.len() as u64).await.expect("begins");
    filled(writer, bytes).await
}

async fn put(engine: &Rc<Engine>, bucket: &Arc<Bucket>, object: &str, payload: StagedPayload) -> Etag {
    let etag = payload.etag();
    let put = PutObject {
        bucket: Arc::clone(bucket),
        key: key(object),
        payload,
        etag,
        attributes: Attributes::default(),
        condition: WriteCondition::default(),
        lock: ObjectLock::default(),
        origin: Origin::default(),
    };
    engine.put_object(put).await.expect("put");
    etag
}

/// Returns the entity tag of a copy.
async fn copied(engine: &Rc<Engine>, bucket: &Arc<Bucket>, from: &str) -> Etag {
    let source = engine.open_whole(bucket, &key(from), None).expect("opens");
    copy(engine, source, bucket, &key("copy")).await.etag()
}

#[test]
fn tags_of_equal_bytes_differ_and_are_no_md5() {
    let folder = folder();
    with_engine_on(opaque(folder.path()), |engine| async move {
        let bucket = bucket(&engine).await;
        for size in SIZES {
            let bytes = content(1, size);
            let [first, second] =
                [stage(&engine, &bucket, "a", &bytes).await, stage(&engine, &bucket, "a", &bytes).await];
            assert_eq!((first.md5(), first.etag().parts), (None, 1));
            assert_ne!(first.etag(), second.etag());
            let etag = put(&engine, &bucket, "a", first).await;
            let (info, read) = get(&engine, &bucket, &key("a"), 0..u64::MAX).await.expect("there");
            assert!(read == bytes && info.etag == etag && info.parts.is_empty());
        }
    });
}

#[test]
fn a_declared_md5_is_computed() {
    let folder = folder();
    with_engine_on(opaque(folder.path()), |engine| async move {
        let bucket = bucket(&engine).await;
        for size in SIZES {
            let bytes = content(2, size);
            let writer = engine.write_hashed_payload(&bucket, &key("a"), size as u64).await.expect("begins");
            let payload = filled(writer, &bytes).await;
            assert_eq!(payload.md5(), Some(md5_digest(&bytes)));
            assert_eq!(payload.etag().parts, 1, "the tag is opaque all the same");
        }
    });
}

/// Tags stay what they were when the setting changes. A copy that is made with the setting `md5` has an MD5.
#[test]
fn tags_survive_a_change_of_the_setting() {
    let folder = folder();
    let bytes = content(3, 300_000);
    let (written, expected) = (bytes.clone(), bytes);
    let (sender, receiver) = std::sync::mpsc::channel();
    with_engine_on(opaque(folder.path()), move |engine| async move {
        let bucket = bucket(&engine).await;
        let payload = stage(&engine, &bucket, "a", &written).await;
        let etag = put(&engine, &bucket, "a", payload).await;

        let upload = engine.create_upload(&bucket, &key("b"), NewUpload::default()).await.expect("begun").id;
        let payload = stage(&engine, &bucket, "b", &written).await;
        let part = PutPart {
            bucket: Arc::clone(&bucket),
            key: key("b"),
            upload,
            number: 1,
            payload,
            checksum: None,
        };
        let part = engine.put_part(part).await.expect("put");
        assert_eq!(part.etag(), Etag::opaque(part.md5));
        sender.send((etag, upload, part)).expect("the test waits");
    });
    let (etag, upload, part) = receiver.recv().expect("sent");
    with_engine(folder.path(), move |engine| async move {
        let bucket = engine.store().bucket(&name("tags")).expect("there");
        let (info, _) = get(&engine, &bucket, &key("a"), 0..u64::MAX).await.expect("there");
        assert_eq!(info.etag, etag);
        let page = engine.list_parts(&bucket, &key("b"), upload, 0, 10).expect("listed");
        assert_eq!(page.parts, std::slice::from_ref(&part));
        let complete = CompleteUpload {
            bucket: Arc::clone(&bucket),
            key: key("b"),
            upload,
            parts: vec![(1, part.md5)],
            checksums: Vec::new(),
            condition: WriteCondition::default(),
            origin: Origin::default(),
        };
        let done = engine.complete_upload(complete).await.expect("completed");
        assert_eq!(done.etag, composite_etag([part.md5].into_iter()));

        assert_eq!(copied(&engine, &bucket, "a").await, Etag::single(md5_digest(&expected)));
    });
}

#[test]
fn copies_keep_an_md5_and_hash_nothing() {
    let folder = folder();
    let bytes = content(4, 300_000);
    let md5 = Etag::single(md5_digest(&bytes));
    with_engine(folder.path(), move |engine| async move {
        let bucket = bucket(&engine).await;
        let payload = stage(&engine, &bucket, "a", &bytes).await;
        assert_eq!(put(&engine, &bucket, "a", payload).await, md5);
    });
    with_engine_on(opaque(folder.path()), move |engine| async move {
        let bucket = engine.store().bucket(&name("tags")).expect("there");
        assert_eq!(copied(&engine, &bucket, "a").await, md5);
        let random = stage(&engine, &bucket, "b", b"bytes").await;
        let random = put(&engine, &bucket, "b", random).await;
        let tag = copied(&engine, &bucket, "b").await;
        assert!(tag.parts == 1 && tag != random);
    });
}
