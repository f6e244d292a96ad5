//! A temporary store and an executor for the benchmarks.
//!
//! `cargo bench -p cairn-benches` runs all of them; `-- <filter>` some. The store is inside the crate's folder and not in a
//! memory file system, where commits would cost nothing.

use cairn_engine::{
    Attributes, Bucket, BucketSettings, Engine, EngineError, ObjectLock, Origin, PutObject, StagedPayload,
    Store, StoreOptions, WriteCondition, block_check,
};
use cairn_model::{BucketName, Clock, Etag, ObjectKey, SystemClock};
use glommio::{LocalExecutor, LocalExecutorBuilder, Placement};
use std::future::Future;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// A store, its engine, a bucket, and the executor that they run on.
pub struct Bench {
    executor: LocalExecutor,
    engine: Rc<Engine>,
    bucket: Arc<Bucket>,
    _folder: tempfile::TempDir,
}

impl Bench {
    /// Opens a new store with two slices and a cache of `cache_bytes`.
    ///
    /// # Panics
    /// If the machine cannot run the engine.
    #[must_use]
    pub fn new(cache_bytes: u64) -> Self {
        Self::with_clock(cache_bytes, Arc::new(SystemClock))
    }

    /// Does the same as [`Bench::new`], with another clock.
    ///
    /// # Panics
    /// If the machine cannot run the engine.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a benchmark that cannot start has nothing to report")]
    pub fn with_clock(cache_bytes: u64, clock: Arc<dyn Clock>) -> Self {
        let folder = tempfile::tempdir_in(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("a folder");
        let options = StoreOptions {
            slices: Some(2),
            cache_bytes,
            clock,
            ..StoreOptions::new(folder.path().to_owned(), b"the master key of the benchmarks".to_vec().into())
        };
        let store = Store::open(options).expect("the store opens");
        let executor =
            LocalExecutorBuilder::new(Placement::Unbound).io_memory(1 << 20).make().expect("io_uring");
        let name = BucketName::parse("bench").expect("a name");
        let (engine, bucket) = executor.run(async {
            let engine = Engine::open(Arc::clone(&store)).await.expect("the engine opens");
            let bucket = store
                .create_bucket(&name, BucketSettings::default(), Origin::default())
                .await
                .expect("a bucket");
            (engine, bucket)
        });
        Self { executor, engine, bucket, _folder: folder }
    }

    /// Returns the key with this number.
    ///
    /// # Panics
    /// Never: the text is a valid key.
    #[must_use]
    #[expect(clippy::expect_used, reason = "the text is a key")]
    pub fn key(number: u64) -> ObjectKey {
        ObjectKey::parse(&format!("folder-{:03}/object-{number:08}", number % 100)).expect("a key")
    }

    /// Returns the engine.
    #[must_use]
    pub fn engine(&self) -> &Rc<Engine> {
        &self.engine
    }

    /// Returns the bucket.
    #[must_use]
    pub fn bucket(&self) -> &Arc<Bucket> {
        &self.bucket
    }

    /// Puts the objects with these numbers concurrently and waits for all.
    ///
    /// # Panics
    /// If a put fails.
    pub fn put_all(&self, numbers: std::ops::Range<u64>, bytes: &Rc<Vec<u8>>) {
        self.put_each(numbers, bytes);
    }

    #[expect(clippy::expect_used, reason = "a benchmark whose puts fail has nothing to report")]
    fn put_each(&self, numbers: impl Iterator<Item = u64>, bytes: &Rc<Vec<u8>>) {
        self.executor.run(async {
            let tasks: Vec<_> = numbers
                .map(|number| {
                    let (engine, bucket, bytes) = (self.engine.clone(), self.bucket.clone(), bytes.clone());
                    glommio::spawn_local(async move { put(&engine, &bucket, number, &bytes).await })
                })
                .collect();
            for task in tasks {
                task.await.expect("put");
            }
        });
    }

    /// Puts one object several times concurrently and waits for all.
    ///
    /// # Panics
    /// If a put fails.
    pub fn put_again(&self, number: u64, times: u64, bytes: &Rc<Vec<u8>>) {
        self.put_each((0..times).map(|_| number), bytes);
    }

    /// Runs a future on the executor.
    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.executor.run(future)
    }

    /// Reads an object to its end. Returns the number of bytes.
    ///
    /// # Panics
    /// If the read fails.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a benchmark whose reads fail has nothing to report")]
    pub fn get(&self, number: u64) -> usize {
        self.executor.run(async {
            let open = self.engine.open_whole(&self.bucket, &Self::key(number), None).expect("opens");
            let mut reader = open.read();
            let mut bytes = 0;
            while let Some(chunk) = reader.next().await.expect("reads") {
                bytes += chunk.as_ref().len();
            }
            bytes
        })
    }
}

/// Puts the object with this number.
///
/// # Errors
/// Those of [`Engine::put_object`].
pub async fn put(
    engine: &Rc<Engine>,
    bucket: &Arc<Bucket>,
    number: u64,
    bytes: &[u8],
) -> Result<(), EngineError> {
    let key = Bench::key(number);
    let payload = stage(engine, bucket, &key, bytes).await?;
    let mut md5 = [0; 16];
    md5[..8].copy_from_slice(&block_check(&key.as_bytes()[..8]).to_le_bytes());
    let put = PutObject {
        bucket: bucket.clone(),
        key,
        payload,
        etag: Etag::single(md5),
        attributes: Attributes::default(),
        condition: WriteCondition::default(),
        lock: ObjectLock::default(),
        origin: Origin::default(),
    };
    engine.put_object(put).await.map(|_| ())
}

/// Writes a payload for a key.
///
/// # Errors
/// As those of [`Engine::write_payload`].
pub async fn stage(
    engine: &Rc<Engine>,
    bucket: &Arc<Bucket>,
    key: &ObjectKey,
    bytes: &[u8],
) -> Result<StagedPayload, EngineError> {
    let mut writer = engine.write_payload(bucket, key, bytes.len() as u64).await?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let room = writer.buffer().await?;
        let (now, later) = rest.split_at(room.len().min(rest.len()));
        room[..now.len()].copy_from_slice(now);
        writer.advance(now.len())?;
        rest = later;
    }
    writer.finish().await
}
