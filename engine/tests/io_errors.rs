//! Failing volumes: what the device cannot do is never acknowledged, never served, and never tried again until it pretends to
//! work. Needs the feature `simulation`.

mod support;

use cairn_engine::simulation::Simulation;
use cairn_engine::simulation::disk::{Effect, Fault, Kept, Operation, SimulatedDisk};
use cairn_engine::{
    Bucket, BucketSettings, DeleteOptions, Engine, EngineError, StoreEvent, StoreObserver, WriteCondition,
};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use support::{content, get, key, name, on_executor, options, put};

const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(5);
const EIO: Effect = Effect::Error(5);
const ENOSPC: Effect = Effect::Error(28);
/// Too large for a record: it goes to a volume.
const SIZE: usize = 150_000;

/// What the store told its observer.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl StoreObserver for Told {
    fn happened(&self, event: &StoreEvent<'_>) {
        self.0.lock().expect("unpoisoned").push(format!("{event:?}"));
    }
}

impl Told {
    fn by(engine: &Rc<Engine>) -> Self {
        let told = Self::default();
        engine.store().set_observer(Box::new(told.clone()));
        told
    }

    fn events(&self) -> Vec<String> {
        self.0.lock().expect("unpoisoned").clone()
    }
}

fn once(operation: Operation, effect: Effect) -> Fault {
    Fault { operation, skip: 0, times: 1, effect }
}

fn anything() -> WriteCondition {
    WriteCondition::default()
}

/// A store of one slice without a cache on a simulated disk, with a bucket that holds `old`; then `body`.
fn with_store<F: Future<Output = ()> + 'static>(
    simulation: &Arc<Simulation>,
    folder: &Path,
    body: impl FnOnce(Rc<Engine>, Arc<Bucket>) -> F + Send + 'static,
) {
    let mut options = options(folder);
    options.slices = Some(1);
    options.cache_bytes = 0;
    let store = simulation.open_store(options).expect("the store opens");
    let on_it = Arc::clone(&store);
    on_executor(move || async move {
        let engine = Engine::open(on_it).await.expect("the engine opens");
        let bucket = match engine.store().bucket(&name("bucket")) {
            Some(bucket) => bucket,
            None => {
                let bucket = engine
                    .store()
                    .create_bucket(&name("bucket"), BucketSettings::default())
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

/// Free bytes in the volumes once the keeper, which holds some while it writes ahead, has come to rest.
async fn free_at_rest(engine: &Rc<Engine>) -> u64 {
    /// Looks in a row that find the same; the keeper's writes in memory take far less than one of them.
    const SAME_LOOKS: usize = 10;
    let (mut free, mut same) = (engine.store().usage().free_volume_bytes, 0);
    while same < SAME_LOOKS {
        glommio::timer::sleep(LOOK_INTERVAL).await;
        let now = engine.store().usage().free_volume_bytes;
        same = if now == free { same + 1 } else { 0 };
        free = now;
    }
    free
}

/// Writes that were under way when their upload failed keep their space until they have ended, a few turns later.
async fn all_is_free_again(engine: &Rc<Engine>, free: u64) {
    const LOOKS_MAX: usize = 2000;
    for _ in 0..LOOKS_MAX {
        if engine.store().usage().free_volume_bytes == free {
            return;
        }
        glommio::timer::sleep(LOOK_INTERVAL).await;
    }
    panic!("{} of {free} bytes are free", engine.store().usage().free_volume_bytes);
}

async fn old_is_whole(engine: &Rc<Engine>, bucket: &Arc<Bucket>) {
    let (_, bytes) = get(engine, bucket, &key("old"), 0..u64::MAX).await.expect("reads");
    assert!(bytes == content(1, SIZE));
}

#[test]
fn a_read_that_the_device_fails_fails_the_request_and_is_not_tried_again() {
    for (effect, expected) in [(EIO, "os error 5"), (Effect::Short, "bytes read")] {
        let folder = tempfile::tempdir().expect("a folder");
        let (simulation, disk) = {
            let simulation = simulated(folder.path());
            (Arc::clone(&simulation), Arc::clone(&simulation.disk))
        };
        with_store(&simulation, folder.path(), move |engine, bucket| async move {
            let (before, told) = (disk.count(Operation::Read), Told::by(&engine));
            disk.plan(once(Operation::Read, effect));
            let read = get(&engine, &bucket, &key("old"), 0..1000).await.map(|_| ());
            let Err(EngineError::Io(what)) = &read else { panic!("{read:?}") };
            assert!(what.contains(expected), "{what}");
            assert_eq!(disk.count(Operation::Read), before + 1, "one read, no second try");
            let events = told.events();
            assert_eq!(events.len(), 1, "{events:?}");
            assert!(events[0].starts_with("ReadFailed") && events[0].contains("bucket/old"), "{events:?}");
            // The device's bad moment is over: nothing that was read wrongly stayed anywhere.
            old_is_whole(&engine, &bucket).await;
        });
    }
}

#[test]
fn a_write_that_the_device_fails_is_not_acknowledged_and_gives_its_space_back() {
    for effect in [EIO, Effect::Short, ENOSPC] {
        let folder = tempfile::tempdir().expect("a folder");
        let simulation = simulated(folder.path());
        let disk = Arc::clone(&simulation.disk);
        with_store(&simulation, folder.path(), move |engine, bucket| async move {
            let free = free_at_rest(&engine).await;
            disk.plan(once(Operation::Write, effect));
            let refused = put(&engine, &bucket, &key("new"), &content(2, SIZE), anything()).await;
            assert!(matches!(refused, Err(EngineError::Io(_))), "{refused:?}");
            assert_eq!(
                engine.head_object(&bucket, &key("new"), None).map(|_| ()),
                Err(EngineError::NoSuchKey)
            );
            all_is_free_again(&engine, free).await;
            put(&engine, &bucket, &key("new"), &content(3, SIZE), anything()).await.expect("put");
            assert_eq!(engine.store().check_storage(), Ok(()));
            old_is_whole(&engine, &bucket).await;
        });
    }
}

/// The kernel reports a failed write-back once, and the flush after it succeeds without having saved anything: a second
/// try would acknowledge what is lost.
#[test]
fn a_failed_flush_is_never_followed_by_an_acknowledgement_that_rests_on_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let simulation = simulated(folder.path());
    let disk = Arc::clone(&simulation.disk);
    let all_told = Told::default();
    let told = all_told.clone();
    with_store(&simulation, folder.path(), move |engine, bucket| async move {
        engine.store().set_observer(Box::new(told));
        assert_eq!(engine.store().check_storage(), Ok(()));
        disk.plan(once(Operation::Flush, EIO));
        for attempt in 0..3 {
            let refused = put(&engine, &bucket, &key("new"), &content(2, SIZE), anything()).await;
            assert!(matches!(refused, Err(EngineError::Io(_))), "attempt {attempt}: {refused:?}");
        }
        let reason = engine.store().check_storage().expect_err("not ready");
        assert!(reason.contains("read-only"), "{reason}");
        // What needs no flush of the volume goes on.
        old_is_whole(&engine, &bucket).await;
        put(&engine, &bucket, &key("small"), b"in the record", anything()).await.expect("put");
        engine.delete_object(&bucket, &key("small"), DeleteOptions::default()).await.expect("deleted");
        assert_eq!(engine.head_object(&bucket, &key("new"), None).map(|_| ()), Err(EngineError::NoSuchKey));
    });
    let events = all_told.events();
    assert_eq!(events.len(), 1, "once, however many met it: {events:?}");
    assert!(events[0].starts_with("VolumeReadOnly") && events[0].contains("000000.vol"), "{events:?}");
    // Whatever of the refused payloads reached the device: the next start finds a store that agrees with itself.
    for kept in [Kept::All, Kept::Nothing, Kept::Torn(7)] {
        let after = Simulation::new(simulation.disk.snapshot().cut(folder.path(), kept));
        with_store(&after, folder.path(), |engine, bucket| async move {
            assert_eq!(engine.store().check_storage(), Ok(()));
            assert_eq!(engine.store().inspect(u64::MAX).expect("reads").findings, []);
            old_is_whole(&engine, &bucket).await;
            put(&engine, &bucket, &key("new"), &content(4, SIZE), anything()).await.expect("put");
            engine.delete_object(&bucket, &key("new"), DeleteOptions::default()).await.expect("deleted");
        });
    }
}

#[test]
fn a_volume_that_cannot_grow_refuses_what_does_not_fit_and_takes_it_when_there_is_space() {
    let folder = tempfile::tempdir().expect("a folder");
    let simulation = simulated(folder.path());
    let disk = Arc::clone(&simulation.disk);
    with_store(&simulation, folder.path(), move |engine, bucket| async move {
        let free = free_at_rest(&engine).await;
        disk.plan(Fault { operation: Operation::Grow, skip: 0, times: u64::MAX, effect: ENOSPC });
        let large = usize::try_from(free).expect("small") + (1 << 20);
        let refused = put(&engine, &bucket, &key("large"), &content(2, large), anything()).await;
        assert_eq!(refused, Err(EngineError::StorageFull));
        all_is_free_again(&engine, free).await;
        put(&engine, &bucket, &key("fits"), &content(3, SIZE), anything()).await.expect("put");
        disk.heal();
        put(&engine, &bucket, &key("large"), &content(2, large), anything()).await.expect("put");
        old_is_whole(&engine, &bucket).await;
        assert_eq!(engine.store().inspect(u64::MAX).expect("reads").findings, []);
    });
    with_store(&simulation, folder.path(), |engine, bucket| async move {
        old_is_whole(&engine, &bucket).await;
        assert_eq!(engine.store().inspect(u64::MAX).expect("reads").findings, []);
    });
}
