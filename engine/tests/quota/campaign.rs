//! A campaign against quotas: many tasks on several executors put, overwrite, delete, copy and complete uploads in buckets of
//! every state of versioning, on all slices, while another task raises and lowers the limits.
//!
//! At no time may a bucket hold more than its limits allow. After each round, while nothing changes, the counters must agree
//! with the lists of objects, versions and uploads, with the inspection, and with the usage that quotas are checked against.
//! The same is checked after the store is opened again. What each task does depends on the seed; how tasks interleave does not.

use cairn_engine::{
    Attributes, Bucket, BucketChange, BucketSettings, CompleteUpload, DeleteOptions, Engine, EngineError,
    ListObjects, ListUploads, ListVersions, NewUpload, ObjectLock, Origin, PutObject, PutPart, Quota,
    StagedPayload, Store, StoreOptions, Usage, Versioning, WriteCondition,
};
use cairn_fixtures::on_executor;
use cairn_model::{BucketName, ObjectKey, VersionName, usize_of};
use cairn_sync::Mutex;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;

/// One bucket for each state of versioning.
const BUCKETS: [(&str, Versioning); 3] = [
    ("unversioned", Versioning::Unversioned),
    ("enabled", Versioning::Enabled),
    ("suspended", Versioning::Suspended),
];
/// Keys of each bucket: few enough that overwrites are common, enough that every slice has some.
const KEYS: u64 = 128;
/// The limit on objects stays below this, so that there is always a key whose put would exceed it.
const OBJECTS_MAX: u64 = KEYS / 2;
/// Versions that a task keeps; it removes the oldest of more.
const VERSIONS_KEPT: usize = 3;
/// Size of most objects, exclusive.
const TINY_BYTES: u64 = 600;
/// Size of the few objects that are stored in volumes.
const VOLUME_BYTES: u64 = cairn_engine::limits::INLINE_BYTES_MAX + 1;
/// Entries of a page of a list.
const PAGE: usize = 100;

/// The options of a campaign.
#[derive(Clone, Debug)]
pub(crate) struct CampaignOptions {
    /// An empty folder for the store.
    pub(crate) folder: PathBuf,
    /// Number of changes: puts, deletes, copies and completions.
    pub(crate) operations: u64,
    /// After so many changes everything is compared, and the store is opened again.
    pub(crate) round: u64,
    /// The seed of what the tasks do.
    pub(crate) seed: u64,
    /// Slices of the store.
    pub(crate) slices: u16,
    /// Executors, each on its own thread.
    pub(crate) executors: u64,
    /// Tasks of each executor.
    pub(crate) tasks: u64,
}

/// The report of a campaign: its counts, and the first violation.
#[derive(Debug, Default)]
pub(crate) struct CampaignReport {
    /// Changes that were requested.
    pub(crate) operations: u64,
    /// Changes that were refused because of a limit.
    pub(crate) refused: u64,
    /// Removals of versions that were refused because the version below would exceed a limit.
    pub(crate) refused_removals: u64,
    /// Changes of limits.
    pub(crate) limits_set: u64,
    /// Changes of limits that were refused because the bucket holds more.
    pub(crate) limits_refused: u64,
    /// Comparisons of the usage of a bucket with its limits.
    pub(crate) limit_checks: u64,
    /// Comparisons of the counters of a bucket with its contents.
    pub(crate) comparisons: u64,
    /// Difference between the counters and the lists in objects, over all comparisons.
    pub(crate) drift_objects: u64,
    /// The same in bytes.
    pub(crate) drift_bytes: u64,
    /// The first violation.
    pub(crate) violation: Option<String>,
}

/// The state that all executors share.
#[derive(Default)]
struct Shared {
    /// Operations that have started, and the number at which the round ends.
    started: AtomicU64,
    end: AtomicU64,
    refused: AtomicU64,
    limits_set: AtomicU64,
    limits_refused: AtomicU64,
    refused_removals: AtomicU64,
    limit_checks: AtomicU64,
    drift_objects: AtomicU64,
    drift_bytes: AtomicU64,
    /// Tasks that still run. The limits change as long as there are any.
    working: AtomicU64,
    failed: AtomicBool,
    violation: Mutex<Option<String>>,
}

impl Shared {
    fn report(&self, violation: String) {
        self.failed.store(true, SeqCst);
        self.violation.lock().get_or_insert(violation);
    }

    fn begin_operation(&self) -> bool {
        !self.failed.load(SeqCst) && self.started.fetch_add(1, SeqCst) < self.end.load(SeqCst)
    }
}

/// A pseudo-random generator (xorshift) for what a task does.
struct Random(u64);

impl Random {
    fn new(seed: u64, stream: u64) -> Self {
        Self((seed ^ stream.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_mul(0xBF58_476D_1CE4_E5B9) | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn size(&mut self) -> u64 {
        if self.below(200) == 0 { VOLUME_BYTES } else { self.below(TINY_BYTES) }
    }
}

/// Runs a campaign.
///
/// # Panics
/// Panics when a store cannot be opened, or an executor cannot be started.
pub(crate) fn run(options: &CampaignOptions) -> CampaignReport {
    let shared = Arc::new(Shared::default());
    let mut comparisons = 0;
    let mut end = 0;
    while end < options.operations && !shared.failed.load(SeqCst) {
        end = options.operations.min(end + options.round);
        shared.end.store(end, SeqCst);
        let store = Store::open(store_options(options)).expect("the store opens");
        run_round(options, &store, &shared);
        comparisons += compare(&store, &shared);
        store.close();
        drop(store);
        let again = Store::open(store_options(options)).expect("the store opens again");
        comparisons += compare(&again, &shared);
        again.close();
        shared.started.store(end, SeqCst);
    }
    let counted = |counter: &AtomicU64| counter.load(SeqCst);
    CampaignReport {
        operations: counted(&shared.started),
        refused: counted(&shared.refused),
        refused_removals: counted(&shared.refused_removals),
        limits_set: counted(&shared.limits_set),
        limits_refused: counted(&shared.limits_refused),
        limit_checks: counted(&shared.limit_checks),
        comparisons,
        drift_objects: counted(&shared.drift_objects),
        drift_bytes: counted(&shared.drift_bytes),
        violation: shared.violation.lock().clone(),
    }
}

fn store_options(options: &CampaignOptions) -> StoreOptions {
    let master_key = b"a master key of the campaign, long enough".to_vec().into();
    StoreOptions {
        slices: Some(options.slices),
        cache_bytes: 4 << 20,
        ..StoreOptions::new(options.folder.clone(), master_key)
    }
}

/// Runs one round: tasks on all executors, until the operations of the round have been requested.
fn run_round(options: &CampaignOptions, store: &Arc<Store>, shared: &Arc<Shared>) {
    shared.working.store(options.executors * options.tasks, SeqCst);
    thread::scope(|scope| {
        for executor in 0..options.executors {
            let (options, store, shared) = (options.clone(), Arc::clone(store), Arc::clone(shared));
            scope.spawn(move || {
                on_executor(move || async move { run_executor(&options, executor, store, shared).await });
            });
        }
    });
}

async fn run_executor(options: &CampaignOptions, executor: u64, store: Arc<Store>, shared: Arc<Shared>) {
    let engine = Engine::open(store).await.expect("the engine opens");
    let mut buckets = Vec::new();
    for (name, versioning) in BUCKETS {
        buckets.push(bucket(&engine, name, versioning).await);
    }
    let started = shared.started.load(SeqCst);
    let mut tasks = Vec::new();
    if executor == 0 {
        let mut random = Random::new(options.seed, started.wrapping_mul(31).wrapping_add(7));
        let (engine, shared, buckets) = (Rc::clone(&engine), Arc::clone(&shared), buckets.clone());
        tasks.push(glommio::spawn_local(async move {
            while shared.working.load(SeqCst) > 0 {
                let bucket = pick(&mut random, &buckets);
                change_limits(&engine, &bucket, &mut random, &shared).await;
            }
        }));
    }
    for task in 0..options.tasks {
        let stream = (started << 16) + executor * options.tasks + task + 1;
        let worker = Worker {
            engine: Rc::clone(&engine),
            shared: Arc::clone(&shared),
            buckets: buckets.clone(),
            random: RefCell::new(Random::new(options.seed, stream)),
            versions: RefCell::default(),
        };
        tasks.push(glommio::spawn_local(async move { worker.work().await }));
    }
    for task in tasks {
        task.await;
    }
}

fn pick(random: &mut Random, from: &[Arc<Bucket>]) -> Arc<Bucket> {
    let at = usize_of(random.below(from.len() as u64));
    Arc::clone(&from[at])
}

/// Returns the bucket with this name. The first executor creates it.
async fn bucket(engine: &Rc<Engine>, name: &str, versioning: Versioning) -> Arc<Bucket> {
    let name = BucketName::parse(name).expect("a bucket name");
    let quota = Quota { bytes: Some(OBJECTS_MAX * TINY_BYTES / 4), objects: Some(OBJECTS_MAX / 2) };
    let settings = BucketSettings { versioning, quota, ..BucketSettings::default() };
    match engine.store().create_bucket(&name, settings, Origin::default()).await {
        Ok(bucket) => bucket,
        Err(EngineError::BucketAlreadyExists) => engine.store().bucket(&name).expect("it is there"),
        Err(error) => panic!("a bucket could not be made: {error}"),
    }
}

/// Compares the usage of a bucket with its limits, unless they change meanwhile.
fn check_limits(bucket: &Bucket, shared: &Shared) {
    let before = bucket.settings();
    let usage = bucket.usage();
    let after = bucket.settings();
    if !Arc::ptr_eq(&before, &after) {
        return;
    }
    shared.limit_checks.fetch_add(1, SeqCst);
    let Quota { bytes, objects } = after.quota;
    let passes = |held: u64, limit: Option<u64>| limit.is_some_and(|limit| held > limit);
    if passes(usage.bytes, bytes) || passes(usage.objects, objects) {
        shared.report(format!("{} holds {usage:?}, more than {:?}", bucket.name, after.quota));
    }
}

/// Sets limits close to the usage of the bucket: a little more, exactly that, or a little less.
async fn change_limits(engine: &Rc<Engine>, bucket: &Arc<Bucket>, random: &mut Random, shared: &Shared) {
    let usage = bucket.usage();
    let mut around = |held: u64, step: u64, most: u64| match random.below(8) {
        0 => held,
        1 => held.saturating_sub(random.below(step)),
        _ => (held + random.below(step)).min(most.max(held)),
    };
    let quota = Quota {
        bytes: Some(around(usage.bytes, 4 * TINY_BYTES, OBJECTS_MAX * TINY_BYTES)),
        objects: Some(around(usage.objects, 8, OBJECTS_MAX)),
    };
    shared.limits_set.fetch_add(1, SeqCst);
    match engine.store().change_bucket(bucket, BucketChange::Quota(quota)).await {
        Ok(()) => {}
        Err(EngineError::QuotaBelowUsage) => {
            shared.limits_refused.fetch_add(1, SeqCst);
        }
        Err(error) => shared.report(format!("limits could not be set: {error}")),
    }
    check_limits(bucket, shared);
}

/// A task that changes objects.
struct Worker {
    engine: Rc<Engine>,
    shared: Arc<Shared>,
    buckets: Vec<Arc<Bucket>>,
    random: RefCell<Random>,
    /// Versions and delete markers that the task created, the newest last.
    versions: RefCell<VecDeque<(Arc<Bucket>, ObjectKey, VersionName)>>,
}

impl Worker {
    async fn work(&self) {
        while self.shared.begin_operation() {
            let bucket = self.bucket();
            check_limits(&bucket, &self.shared);
            match self.change(&bucket).await {
                Ok(()) => {}
                Err(EngineError::QuotaExceeded) => {
                    self.shared.refused.fetch_add(1, SeqCst);
                }
                Err(error) => self.shared.report(format!("a change failed: {error}")),
            }
            check_limits(&bucket, &self.shared);
            // Two removals for each change, so that versions whose removal the quota refuses do not accumulate.
            for _ in 0..2 {
                if let Err(error) = self.remove_oldest().await {
                    self.shared.report(format!("a version could not be removed: {error}"));
                }
            }
        }
        self.shared.working.fetch_sub(1, SeqCst);
    }

    fn below(&self, bound: u64) -> u64 {
        self.random.borrow_mut().below(bound)
    }

    fn bucket(&self) -> Arc<Bucket> {
        pick(&mut self.random.borrow_mut(), &self.buckets)
    }

    fn size(&self) -> u64 {
        self.random.borrow_mut().size()
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::parse(&format!("key/{}", self.below(KEYS))).expect("a key")
    }

    async fn change(&self, bucket: &Arc<Bucket>) -> Result<(), EngineError> {
        let key = self.key();
        match self.below(100) {
            0..=44 => self.put(bucket, &key).await,
            45..=69 => self.delete(bucket, &key).await,
            70..=84 => self.copy(bucket, &key).await,
            _ => self.upload(bucket, &key).await,
        }
    }

    async fn put(&self, bucket: &Arc<Bucket>, key: &ObjectKey) -> Result<(), EngineError> {
        let size = self.size();
        let payload = self.stage(bucket, key, size).await?;
        self.commit(bucket, key, payload).await
    }

    async fn stage(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        size: u64,
    ) -> Result<StagedPayload, EngineError> {
        let mut writer = self.engine.write_payload(bucket, key, size).await?;
        let mut rest = usize_of(size);
        while rest > 0 {
            let count = rest.min(writer.buffer().await?.len());
            writer.advance(count)?;
            rest -= count;
        }
        writer.finish().await
    }

    async fn commit(
        &self,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        payload: StagedPayload,
    ) -> Result<(), EngineError> {
        let put = PutObject {
            bucket: Arc::clone(bucket),
            key: key.clone(),
            etag: payload.etag(),
            payload,
            attributes: Attributes::default(),
            condition: WriteCondition::default(),
            lock: ObjectLock::default(),
            origin: Origin::default(),
        };
        let put = self.engine.put_object(put).await?;
        if !put.is_null {
            self.remember(bucket, key, VersionName::Id(put.version));
        }
        Ok(())
    }

    async fn delete(&self, bucket: &Arc<Bucket>, key: &ObjectKey) -> Result<(), EngineError> {
        let deleted = self.engine.delete_object(bucket, key, DeleteOptions::default()).await?;
        if let Some(version) = deleted.version {
            self.remember(bucket, key, version);
        }
        Ok(())
    }

    /// Copies an object; puts one when the source does not exist.
    async fn copy(&self, bucket: &Arc<Bucket>, key: &ObjectKey) -> Result<(), EngineError> {
        let source = (self.bucket(), self.key());
        let whole = |info: &cairn_engine::ObjectInfo| (0..info.size, ());
        match self.engine.open_object(&source.0, &source.1, None, whole) {
            Ok((object, ())) => {
                // Every key counts as a client of its own, so that no queue is full.
                let mut permit = self.engine.admit_copy(key.as_str(), bucket, key, object.info.size).await?;
                let payload = self.engine.copy_payload(&mut permit, object, bucket, key).await?;
                drop(permit);
                self.commit(bucket, key, payload).await
            }
            Err(EngineError::NoSuchKey | EngineError::DeleteMarker { .. }) => self.put(bucket, key).await,
            Err(error) => Err(error),
        }
    }

    /// Completes an upload of two parts. When the completion is refused, aborts the upload.
    async fn upload(&self, bucket: &Arc<Bucket>, key: &ObjectKey) -> Result<(), EngineError> {
        let upload = self.engine.create_upload(bucket, key, NewUpload::default()).await?.id;
        let mut parts = Vec::new();
        for number in 1..=2 {
            let size = self.size();
            let payload = self.stage(bucket, key, size).await?;
            let (bucket, key) = (Arc::clone(bucket), key.clone());
            let part = PutPart { bucket, key, upload, number, payload, checksum: None };
            parts.push((number, self.engine.put_part(part).await?.md5));
        }
        let complete = CompleteUpload {
            bucket: Arc::clone(bucket),
            key: key.clone(),
            upload,
            parts,
            checksums: Vec::new(),
            condition: WriteCondition::default(),
            origin: Origin::default(),
        };
        match self.engine.complete_upload(complete).await {
            Ok(done) if done.put.is_null => Ok(()),
            Ok(done) => {
                self.remember(bucket, key, VersionName::Id(done.put.version));
                Ok(())
            }
            Err(error) => {
                self.engine.abort_upload(bucket, key, upload, Origin::default()).await?;
                Err(error)
            }
        }
    }

    fn remember(&self, bucket: &Arc<Bucket>, key: &ObjectKey, version: VersionName) {
        self.versions.borrow_mut().push_back((Arc::clone(bucket), key.clone(), version));
    }

    /// Permanently removes the oldest version that the task created. The version below becomes current, unless the quota
    /// refuses that: then the removal is tried again later.
    async fn remove_oldest(&self) -> Result<(), EngineError> {
        let oldest = {
            let mut versions = self.versions.borrow_mut();
            if versions.len() > VERSIONS_KEPT { versions.pop_front() } else { None }
        };
        let Some((bucket, key, version)) = oldest else { return Ok(()) };
        let options = DeleteOptions { version: Some(version), ..DeleteOptions::default() };
        let removed = self.engine.delete_object(&bucket, &key, options).await;
        if removed == Err(EngineError::QuotaExceeded) {
            self.shared.refused_removals.fetch_add(1, SeqCst);
            self.remember(&bucket, &key, version);
            return Ok(());
        }
        removed.map(drop)
    }
}

/// Compares the counters of a store without traffic with its contents. Returns the number of buckets compared.
fn compare(store: &Arc<Store>, shared: &Arc<Shared>) -> u64 {
    let opened = Arc::clone(store);
    let shared = Arc::clone(shared);
    on_executor(move || async move {
        let engine = Engine::open(opened).await.expect("the engine opens");
        let mut total = Usage::default();
        for bucket in engine.store().buckets() {
            let usage = bucket.usage();
            let listed = listed(&engine, &bucket);
            shared.drift_objects.fetch_add(usage.objects.abs_diff(listed.objects), SeqCst);
            shared.drift_bytes.fetch_add(usage.bytes.abs_diff(listed.bytes), SeqCst);
            if usage != listed {
                shared.report(format!("{}: counted {usage:?}, listed {listed:?}", bucket.name));
            }
            if let Err(what) = check_quota_usage(&engine, &bucket, usage).await {
                shared.report(format!("{}: {what}", bucket.name));
            }
            total = sum(total, usage);
        }
        match engine.store().inspect(u64::MAX) {
            Ok(found) if found.complete && found.is_clean() && found.usage == total => {}
            Ok(found) => shared.report(format!("counted {total:?}, inspected {found:?}")),
            Err(error) => shared.report(format!("inspection failed: {error}")),
        }
        if engine.store().usage().reserved_bytes > 0 {
            shared.report("space stays reserved without any request in flight".to_owned());
        }
    });
    BUCKETS.len() as u64
}

fn sum(one: Usage, other: Usage) -> Usage {
    Usage {
        objects: one.objects + other.objects,
        bytes: one.bytes + other.bytes,
        versions: one.versions + other.versions,
        version_bytes: one.version_bytes + other.version_bytes,
        delete_markers: one.delete_markers + other.delete_markers,
        uploads: one.uploads + other.uploads,
        part_bytes: one.part_bytes + other.part_bytes,
    }
}

/// Returns the usage of a bucket according to its lists.
fn listed(engine: &Rc<Engine>, bucket: &Arc<Bucket>) -> Usage {
    let mut usage = Usage::default();
    let mut after = None;
    loop {
        let list = ListObjects { prefix: b"", delimiter: None, after, max: PAGE };
        let page = engine.list_objects(bucket, &list).expect("a page");
        usage.objects += page.objects.len() as u64;
        usage.bytes += page.objects.iter().map(|object| object.size).sum::<u64>();
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let mut after = None;
    loop {
        let list = ListVersions { prefix: b"", delimiter: None, after, max: PAGE };
        let page = engine.list_versions(bucket, &list).expect("a page");
        for version in &page.versions {
            let counts = u64::from(!version.is_delete_marker);
            usage.versions += counts;
            usage.version_bytes += counts * version.object.size;
            usage.delete_markers += 1 - counts;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let list = ListUploads { prefix: b"", delimiter: None, after: None, max: PAGE };
    usage.uploads = engine.list_uploads(bucket, &list).expect("a page").uploads.len() as u64;
    usage
}

/// Checks the usage that quotas are compared with: limits of exactly the usage must be accepted, lower ones refused.
async fn check_quota_usage(engine: &Rc<Engine>, bucket: &Arc<Bucket>, usage: Usage) -> Result<(), String> {
    let exact = Quota { bytes: Some(usage.bytes), objects: Some(usage.objects) };
    let change = |quota| engine.store().change_bucket(bucket, BucketChange::Quota(quota));
    change(exact).await.map_err(|error| format!("limits of exactly the usage, {exact:?}: {error}"))?;
    let less = [
        usage.bytes.checked_sub(1).map(|bytes| Quota { bytes: Some(bytes), ..exact }),
        usage.objects.checked_sub(1).map(|objects| Quota { objects: Some(objects), ..exact }),
    ];
    for quota in less.into_iter().flatten() {
        if change(quota).await != Err(EngineError::QuotaBelowUsage) {
            return Err(format!("limits below the usage, {quota:?}, were not refused"));
        }
    }
    if bucket.settings().quota != exact {
        return Err("a refused limit was set".to_owned());
    }
    Ok(())
}
