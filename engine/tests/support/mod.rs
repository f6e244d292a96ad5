//! Helpers of the engine's tests: temporary stores, an executor to use them on, and simple puts and gets.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use cairn_engine::{
    Attributes, Bucket, Engine, EngineError, ObjectInfo, ObjectLock, OpenObject, Origin, PayloadWriter,
    PutObject, PutOutcome, StagedPayload, Store, StoreOptions, WriteCondition,
};
pub use cairn_fixtures::on_executor;
use cairn_model::{BucketName, Etag, ObjectKey, VersionName};
use std::future::Future;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// Returns a temporary folder on a real disk. Direct I/O on a file system in memory would prove nothing.
pub fn folder() -> tempfile::TempDir {
    let base = std::env::var_os("CARGO_TARGET_TMPDIR")
        .map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), std::path::PathBuf::from);
    tempfile::tempdir_in(base).expect("a folder")
}

/// Returns options for a store with three slices and a small cache, without encryption and without reclaiming.
pub fn options(folder: &Path) -> StoreOptions {
    let master_key = b"a master key of the tests, long enough".to_vec().into();
    StoreOptions { slices: Some(3), cache_bytes: 4 << 20, ..StoreOptions::new(folder.to_owned(), master_key) }
}

/// Opens the store, runs `body` with an engine on it, closes the store.
pub fn with_engine<F: Future<Output = ()> + 'static>(
    folder: &Path,
    body: impl FnOnce(Rc<Engine>) -> F + Send + 'static,
) {
    with_engine_on(options(folder), body);
}

/// As [`with_engine`], with other options.
pub fn with_engine_on<F: Future<Output = ()> + 'static>(
    options: StoreOptions,
    body: impl FnOnce(Rc<Engine>) -> F + Send + 'static,
) {
    let store = Store::open(options).expect("the store opens");
    let opened = Arc::clone(&store);
    on_executor(move || async move {
        let engine = Engine::open(opened).await.expect("the engine opens");
        body(engine).await;
    });
    store.close();
}

pub fn name(text: &str) -> BucketName {
    BucketName::parse(text).expect("a bucket name")
}

pub fn key(text: &str) -> ObjectKey {
    ObjectKey::parse(text).expect("an object key")
}

/// Returns pseudo-random bytes that depend on the seed alone.
pub fn content(seed: u64, size: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}

/// Returns an entity tag that is unique to the content. The engine does not check how it was computed.
pub fn etag(bytes: &[u8]) -> Etag {
    let mut md5 = [0; 16];
    md5[..8].copy_from_slice(&cairn_engine::block_check(bytes).to_le_bytes());
    Etag::single(md5)
}

/// Writes bytes in pieces of an odd size, as sockets give them.
pub async fn fill(writer: &mut PayloadWriter, mut bytes: &[u8]) -> Result<(), EngineError> {
    while !bytes.is_empty() {
        let room = writer.buffer().await?;
        let count = bytes.len().min(room.len()).min(40_001);
        room[..count].copy_from_slice(&bytes[..count]);
        writer.advance(count)?;
        bytes = &bytes[count..];
    }
    Ok(())
}

/// Writes a payload for a key.
pub async fn stage(
    engine: &Rc<Engine>,
    bucket: &Arc<Bucket>,
    object: &ObjectKey,
    bytes: &[u8],
) -> Result<StagedPayload, EngineError> {
    stage_shorter(engine, bucket, object, bytes, 0).await
}

/// Writes a payload that ends `beyond` bytes before its declared size.
pub async fn stage_shorter(
    engine: &Rc<Engine>,
    bucket: &Arc<Bucket>,
    object: &ObjectKey,
    bytes: &[u8],
    beyond: u64,
) -> Result<StagedPayload, EngineError> {
    let mut writer = engine.write_payload(bucket, object, bytes.len() as u64 + beyond).await?;
    fill(&mut writer, bytes).await?;
    let payload = if beyond == 0 { writer.finish().await? } else { writer.finish_shorter().await? };
    assert_eq!(payload.md5(), Some(cairn_md5::md5_digest(bytes)), "the interleaved MD5 differs");
    Ok(payload)
}

/// Puts an object with a user-defined metadata header.
pub async fn put(
    engine: &Rc<Engine>,
    bucket: &Arc<Bucket>,
    object: &ObjectKey,
    bytes: &[u8],
    condition: WriteCondition,
) -> Result<PutOutcome, EngineError> {
    put_payload(engine, bucket, object, stage(engine, bucket, object, bytes).await?, bytes, condition).await
}

/// Puts an object whose payload ends `beyond` bytes before its declared size.
pub async fn put_shorter(
    engine: &Rc<Engine>,
    bucket: &Arc<Bucket>,
    object: &ObjectKey,
    bytes: &[u8],
    beyond: u64,
) -> Result<PutOutcome, EngineError> {
    let payload = stage_shorter(engine, bucket, object, bytes, beyond).await?;
    put_payload(engine, bucket, object, payload, bytes, WriteCondition::default()).await
}

async fn put_payload(
    engine: &Rc<Engine>,
    bucket: &Arc<Bucket>,
    object: &ObjectKey,
    payload: StagedPayload,
    bytes: &[u8],
    condition: WriteCondition,
) -> Result<PutOutcome, EngineError> {
    let headers = vec![("x-amz-meta-a".into(), b"b".to_vec())];
    let attributes = Attributes { headers, ..Attributes::default() };
    let put = PutObject {
        bucket: bucket.clone(),
        key: object.clone(),
        payload,
        etag: etag(bytes),
        attributes,
        condition,
        lock: ObjectLock::default(),
        origin: Origin::default(),
    };
    engine.put_object(put).await
}

/// Copies an open object to a payload for a key, as a client of its own.
pub async fn copy(
    engine: &Rc<Engine>,
    source: OpenObject,
    bucket: &Arc<Bucket>,
    object: &ObjectKey,
) -> StagedPayload {
    let mut permit = engine.admit_copy("test", bucket, object, source.info.size).await.expect("is admitted");
    engine.copy_payload(&mut permit, source, bucket, object).await.expect("copies")
}

/// Reads a range of the current version of an object.
pub async fn get(
    engine: &Rc<Engine>,
    bucket: &Arc<Bucket>,
    object: &ObjectKey,
    range: std::ops::Range<u64>,
) -> Result<(ObjectInfo, Vec<u8>), EngineError> {
    get_version(engine, bucket, object, None, range).await
}

/// Reads a range of a version of an object, by default the current one.
pub async fn get_version(
    engine: &Rc<Engine>,
    bucket: &Arc<Bucket>,
    object: &ObjectKey,
    version: Option<VersionName>,
    range: std::ops::Range<u64>,
) -> Result<(ObjectInfo, Vec<u8>), EngineError> {
    let (open, info) = engine.open_object(bucket, object, version, |info| (range.clone(), info.clone()))?;
    let mut reader = open.read();
    let mut bytes = Vec::new();
    while let Some(chunk) = reader.next().await? {
        bytes.extend_from_slice(chunk.as_ref());
    }
    Ok((info, bytes))
}

/// Waits until a condition holds that other threads bring about.
///
/// # Panics
/// With `what`, when it does not hold within five minutes: a busy machine takes long, above all to flush.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let give_up = std::time::Instant::now() + std::time::Duration::from_secs(300);
    while !holds() {
        assert!(std::time::Instant::now() < give_up, "{what}");
        glommio::timer::sleep(std::time::Duration::from_millis(5)).await;
    }
}
