//! Failing volumes: what the device fails to do is never acknowledged, never served, and never retried. A volume recovers
//! when the device works again.

use crate::support::{content, etag, get, key, name, on_executor, options, put, stage, until};
use cairn_engine::simulation::{Effect, Fault, Kept, Operation, SimulatedDisk, Simulation};
use cairn_engine::{
    Attributes, Bucket, BucketSettings, DeleteOptions, Engine, EngineError, FaultObserver, ObjectLock,
    Origin, PutObject, Store, StoreFault, WriteCondition,
};
use cairn_model::usize_of;
use cairn_sync::Mutex;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(5);
const EIO: Effect = Effect::Error(5);
const ENOSPC: Effect = Effect::Error(28);
/// Bytes of a payload that is too large for a record, so it is stored in a volume.
const SIZE: usize = 150_000;

/// A fault that the store reported, by the object or file that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reported {
    ReadFailed(String),
    VolumeReadOnly(String),
    Other(String),
}

/// The faults that the store reported to its observer.
#[derive(Clone, Default)]
struct Reports(Arc<Mutex<Vec<Reported>>>);

impl FaultObserver for Reports {
    fn observe(&self, event: &StoreFault<'_>) {
        self.0.lock().push(match event {
            StoreFault::ReadFailed { object, .. } => Reported::ReadFailed((*object).to_owned()),
            StoreFault::VolumeReadOnly { path } => Reported::VolumeReadOnly((*path).to_owned()),
            other => Reported::Other(format!("{other:?}")),
        });
    }
}

impl Reports {
    fn of(engine: &Rc<Engine>) -> Self {
        let reports = Self::default();
        engine.store().set_fault_observer(Box::new(reports.clone()));
        reports
    }

    fn all(&self) -> Vec<Reported> {
        self.0.lock().clone()
    }
}

fn once(operation: Operation, effect: Effect) -> Fault {
    Fault { operation, skip: 0, times: 1, effect }
}

fn always(operation: Operation, effect: Effect) -> Fault {
    Fault { operation, skip: 0, times: u64::MAX, effect }
}

fn anything() -> WriteCondition {
    WriteCondition::default()
}

/// Runs `body` on a store with one slice and no cache, on a simulated disk. A new store gets a bucket with the object `old`.
fn with_store<F: Future<Output = ()> + 'static>(
    simulation: &Arc<Simulation>,
    folder: &Path,
    body: impl FnOnce(Rc<Engine>, Arc<Bucket>) -> F + Send + 'static,
) {
    let mut options = options(folder);
    options.slices = Some(1);
    options.cache_bytes = 0;
    let store = Store::open_simulated(simulation, options).expect("the store opens");
    let opened = Arc::clone(&store);
    on_executor(move || async move {
        let engine = Engine::open(opened).await.expect("the engine opens");
        let bucket = match engine.store().bucket(&name("bucket")) {
            Some(bucket) => bucket,
            None => {
                let bucket = engine
                    .store()
                    .create_bucket(&name("bucket"), BucketSettings::default(), Origin::default())
                    .await
                    .expect("made");
                put(&engine, &bucket, &key("old"), &content(1, SIZE), anything()).await.expect("put");
                bucket
            }
        };
        body(engine, bucket).await;
    });
    store.close();
}

fn simulated(folder: &Path) -> Arc<Simulation> {
    Simulation::new(SimulatedDisk::new(folder, 1))
}

/// Returns the free bytes in the volumes once the maintainer has stopped preallocating, which reserves some of them.
async fn settled_free_bytes(engine: &Rc<Engine>) -> u64 {
    /// So many polls in a row must give the same. The maintainer's writes in memory take far less time than one poll.
    const SAME_POLLS: usize = 40;
    let (mut free, mut same) = (engine.store().usage().free_volume_bytes, 0);
    while same < SAME_POLLS {
        glommio::timer::sleep(POLL_INTERVAL).await;
        let now = engine.store().usage().free_volume_bytes;
        same = if now == free { same + 1 } else { 0 };
        free = now;
    }
    free
}

/// Waits until so many bytes are free. Writes that were in flight when their upload failed keep their space until they end.
async fn until_free(engine: &Rc<Engine>, free: u64) {
    until("the space is free again", || engine.store().usage().free_volume_bytes == free).await;
}

async fn check_old(engine: &Rc<Engine>, bucket: &Arc<Bucket>) {
    let (_, bytes) = get(engine, bucket, &key("old"), 0..u64::MAX).await.expect("reads");
    assert!(bytes == content(1, SIZE));
}

#[test]
fn failed_read_fails_the_request_without_a_retry() {
    for (effect, expected) in [(EIO, "os error 5"), (Effect::Short, "bytes read")] {
        let folder = tempfile::tempdir().expect("a folder");
        let (simulation, disk) = {
            let simulation = simulated(folder.path());
            (Arc::clone(&simulation), Arc::clone(&simulation.disk))
        };
        with_store(&simulation, folder.path(), move |engine, bucket| async move {
            let (before, reports) = (disk.count(Operation::Read), Reports::of(&engine));
            disk.plan(once(Operation::Read, effect));
            let read = get(&engine, &bucket, &key("old"), 0..1000).await.map(|_| ());
            let Err(EngineError::Io(what)) = &read else { panic!("{read:?}") };
            assert!(what.contains(expected), "{what}");
            assert_eq!(disk.count(Operation::Read), before + 1, "the read is not retried");
            assert_eq!(reports.all(), [Reported::ReadFailed("bucket/old".to_owned())]);
            // The device works again. Nothing of the failed read was kept.
            check_old(&engine, &bucket).await;
        });
    }
}

#[test]
fn failed_write_is_refused_and_frees_its_space() {
    for effect in [EIO, Effect::Short, ENOSPC] {
        let folder = tempfile::tempdir().expect("a folder");
        let simulation = simulated(folder.path());
        let disk = Arc::clone(&simulation.disk);
        with_store(&simulation, folder.path(), move |engine, bucket| async move {
            let free = settled_free_bytes(&engine).await;
            disk.plan(once(Operation::Write, effect));
            let refused = put(&engine, &bucket, &key("new"), &content(2, SIZE), anything()).await;
            assert!(matches!(refused, Err(EngineError::Io(_))), "{refused:?}");
            assert_eq!(
                engine.head_object(&bucket, &key("new"), None).map(|_| ()),
                Err(EngineError::NoSuchKey)
            );
            until_free(&engine, free).await;
            put(&engine, &bucket, &key("new"), &content(3, SIZE), anything()).await.expect("put");
            assert_eq!(engine.store().check_storage(), Ok(()));
            check_old(&engine, &bucket).await;
        });
    }
}

/// The kernel reports a failed write-back once, and the next flush succeeds without having written anything. So a retry would
/// acknowledge what is lost.
#[test]
fn failed_flush_makes_the_volume_read_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let simulation = simulated(folder.path());
    let disk = Arc::clone(&simulation.disk);
    let reports = Reports::default();
    let observer = reports.clone();
    with_store(&simulation, folder.path(), move |engine, bucket| async move {
        engine.store().set_fault_observer(Box::new(observer));
        assert_eq!(engine.store().check_storage(), Ok(()));
        disk.plan(once(Operation::Flush, EIO));
        // The volume does not recover, however long this test takes.
        disk.plan(always(Operation::Touch, EIO));
        for attempt in 0..3 {
            let refused = put(&engine, &bucket, &key("new"), &content(2, SIZE), anything()).await;
            assert!(matches!(refused, Err(EngineError::Io(_))), "attempt {attempt}: {refused:?}");
        }
        let reason = engine.store().check_storage().expect_err("not ready");
        assert!(reason.contains("read-only"), "{reason}");
        // Reads still work. The device may have dropped metadata, too, so no change is made.
        check_old(&engine, &bucket).await;
        let refused = put(&engine, &bucket, &key("small"), b"in the record", anything()).await;
        assert!(matches!(refused, Err(EngineError::Io(_))), "{refused:?}");
        assert!(engine.store().check_metadata().is_err());
        assert_eq!(engine.head_object(&bucket, &key("new"), None).map(|_| ()), Err(EngineError::NoSuchKey));
    });
    let path = folder.path().join("slices/00/volumes/000000.vol").display().to_string();
    let (of_volumes, others): (Vec<_>, Vec<_>) =
        reports.all().into_iter().partition(|report| matches!(report, Reported::VolumeReadOnly(_)));
    assert_eq!(of_volumes, [Reported::VolumeReadOnly(path)], "it is reported once");
    assert!(
        matches!(&others[..], [Reported::Other(stopped)] if stopped.starts_with("ChangesStopped")),
        "{others:?}"
    );
    // Whatever part of the refused payloads reached the device, the next start finds a consistent store.
    for kept in [Kept::All, Kept::Nothing, Kept::Torn(7)] {
        let after = Simulation::new(simulation.disk.snapshot().cut(folder.path(), kept));
        with_store(&after, folder.path(), |engine, bucket| async move {
            assert_eq!(engine.store().check_storage(), Ok(()));
            assert_eq!(engine.store().inspect(u64::MAX).expect("reads").findings, []);
            check_old(&engine, &bucket).await;
            put(&engine, &bucket, &key("new"), &content(4, SIZE), anything()).await.expect("put");
            engine.delete_object(&bucket, &key("new"), DeleteOptions::default()).await.expect("deleted");
        });
    }
}

/// A payload was written before the flush failed, but its put comes after the recovery. The flush then succeeds, although the
/// device may have dropped the payload. So it must be refused. Everything that begins after the recovery is durable.
#[test]
fn recovered_volume_accepts_only_what_was_written_after_the_failure() {
    let folder = tempfile::tempdir().expect("a folder");
    let simulation = simulated(folder.path());
    let disk = Arc::clone(&simulation.disk);
    let reports = Reports::default();
    let observer = reports.clone();
    with_store(&simulation, folder.path(), move |engine, bucket| async move {
        engine.store().set_fault_observer(Box::new(observer));
        let early = stage(&engine, &bucket, &key("early"), &content(2, SIZE)).await.expect("written");
        disk.plan(once(Operation::Flush, EIO));
        // The volume does not recover while the failure is looked at.
        disk.plan(always(Operation::Touch, EIO));
        let refused = put(&engine, &bucket, &key("new"), &content(3, SIZE), anything()).await;
        assert!(matches!(refused, Err(EngineError::Io(_))), "{refused:?}");
        assert!(engine.store().check_storage().is_err());
        disk.clear_faults();
        let is_recovered = || {
            let store = engine.store();
            store.check_storage().is_ok() && store.check_metadata().is_ok()
        };
        until("the volume and the metadata recover", is_recovered).await;
        let put_early = PutObject {
            bucket: Arc::clone(&bucket),
            key: key("early"),
            payload: early,
            etag: etag(&content(2, SIZE)),
            attributes: Attributes::default(),
            condition: anything(),
            lock: ObjectLock::default(),
            origin: Origin::default(),
        };
        let refused = engine.put_object(put_early).await;
        assert!(matches!(refused, Err(EngineError::Io(_))), "{refused:?}");
        put(&engine, &bucket, &key("late"), &content(4, SIZE), anything()).await.expect("put");
        check_old(&engine, &bucket).await;
    });
    let reported = reports.all();
    let of_volumes = reported.iter().filter(|report| matches!(report, Reported::VolumeReadOnly(_))).count();
    // The slice was stopped; the volume and the slice have resumed.
    assert_eq!((of_volumes, reported.len()), (1, 4), "{reported:?}");
    for kept in [Kept::All, Kept::Nothing, Kept::Torn(7)] {
        let after = Simulation::new(simulation.disk.snapshot().cut(folder.path(), kept));
        with_store(&after, folder.path(), |engine, bucket| async move {
            check_old(&engine, &bucket).await;
            let (_, bytes) = get(&engine, &bucket, &key("late"), 0..u64::MAX).await.expect("acknowledged");
            assert!(bytes == content(4, SIZE));
            for refused in ["early", "new"] {
                let found = engine.head_object(&bucket, &key(refused), None).map(|_| ());
                assert_eq!(found, Err(EngineError::NoSuchKey));
            }
            assert_eq!(engine.store().inspect(u64::MAX).expect("reads").findings, []);
        });
    }
}

/// While flushes keep failing, nothing is accepted.
#[test]
fn volume_on_a_device_that_still_fails_stays_read_only() {
    /// A device that passes so many is used again.
    const TESTS: u64 = 3;
    let folder = tempfile::tempdir().expect("a folder");
    let simulation = simulated(folder.path());
    let disk = Arc::clone(&simulation.disk);
    let reports = Reports::default();
    let observer = reports.clone();
    with_store(&simulation, folder.path(), move |engine, bucket| async move {
        engine.store().set_fault_observer(Box::new(observer));
        disk.plan(always(Operation::Flush, EIO));
        for touched in [0, TESTS] {
            until("the device is tested", || disk.count(Operation::Touch) >= touched).await;
            let refused = put(&engine, &bucket, &key("new"), &content(2, SIZE), anything()).await;
            assert!(matches!(refused, Err(EngineError::Io(_))), "{refused:?}");
            assert!(engine.store().check_storage().is_err());
        }
        check_old(&engine, &bucket).await;
    });
    let resumed =
        |report: &Reported| matches!(report, Reported::Other(what) if what.starts_with("ChangesResumed"));
    assert!(!reports.all().iter().any(resumed), "{:?}", reports.all());
}

#[test]
fn full_disk_refuses_only_payloads_that_do_not_fit() {
    let folder = tempfile::tempdir().expect("a folder");
    let simulation = simulated(folder.path());
    let disk = Arc::clone(&simulation.disk);
    with_store(&simulation, folder.path(), move |engine, bucket| async move {
        let free = settled_free_bytes(&engine).await;
        disk.plan(always(Operation::Grow, ENOSPC));
        let large = usize_of(free) + (1 << 20);
        let refused = put(&engine, &bucket, &key("large"), &content(2, large), anything()).await;
        assert_eq!(refused, Err(EngineError::StorageFull));
        until_free(&engine, free).await;
        put(&engine, &bucket, &key("fits"), &content(3, SIZE), anything()).await.expect("put");
        disk.clear_faults();
        put(&engine, &bucket, &key("large"), &content(2, large), anything()).await.expect("put");
        check_old(&engine, &bucket).await;
        assert_eq!(engine.store().inspect(u64::MAX).expect("reads").findings, []);
    });
    with_store(&simulation, folder.path(), |engine, bucket| async move {
        check_old(&engine, &bucket).await;
        assert_eq!(engine.store().inspect(u64::MAX).expect("reads").findings, []);
    });
}
