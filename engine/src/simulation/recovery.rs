//! Recovery after a simulated power cut, checked against the history.
//!
//! The store is opened by the ordinary recovery. Every version is read byte for byte (`bucket_contents.rs`). The usage of the
//! buckets, the storage events (`event_replay.rs`), the store's own inspection and the sum of its space must agree with what
//! was read.

use crate::api::engine::Engine;
use crate::fault::{DiskSnapshot, Kept, Simulation};
use crate::limits::UNIT_BYTES;
use crate::simulation::bucket_contents::{BucketReader, Contents};
use crate::simulation::buckets;
use crate::simulation::event_replay::check_events;
use crate::simulation::history::History;
use crate::simulation::key_state::KeyState;
use crate::simulation::violation::{Violation, ViolationKind};
use crate::store::Store;
use crate::store::options::StoreOptions;
use crate::types::bucket::Usage;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The remains of a store after a power cut at one moment, and what must be found in them.
pub(crate) struct CutPoint {
    pub(crate) disk: DiskSnapshot,
    /// The metadata of each slice, as of its last commit.
    pub(crate) metadata: Vec<Arc<MetadataFiles>>,
    pub(crate) static_files: Arc<StaticFiles>,
    pub(crate) history: Arc<History>,
    /// Describes the moment; for people.
    pub(crate) moment: String,
}

/// The files of a store that are durable at every stop point of its threads.
pub(crate) struct StaticFiles(Vec<(PathBuf, Vec<u8>)>);

impl StaticFiles {
    /// Reads the files from a data folder.
    pub(crate) fn read(data_dir: &Path) -> io::Result<Self> {
        let paths = ["superblock.json", "control/data.mdb"].map(PathBuf::from);
        let read = paths.map(|path| fs::read(data_dir.join(&path)).map(|bytes| (path, bytes)));
        read.into_iter().collect::<io::Result<_>>().map(Self)
    }
}

/// The files of a slice's metadata.
pub(crate) struct MetadataFiles {
    data: Vec<u8>,
    /// The commit log, if the store has one.
    log: Option<Vec<u8>>,
}

/// Reads the files of a slice's metadata, the data file up to its last used page. No commit may be in progress.
///
/// A checkpoint may be written meanwhile. It changes the data file alone, and the log is read after it. So what the data file
/// needs of the log is still there.
pub(crate) fn read_metadata(store: &Store, slice: usize) -> io::Result<Arc<MetadataFiles>> {
    use std::os::unix::fs::FileExt as _;
    let slice = store.slices.get(slice).ok_or(io::ErrorKind::NotFound)?;
    let mut data = vec![0; cairn_model::usize_of(slice.environment.used())];
    fs::File::open(slice.folder.join("meta/data.mdb"))?.read_exact_at(&mut data, 0)?;
    let log = match fs::read(slice.folder.join("meta/commit.log")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        read => Some(read?),
    };
    Ok(Arc::new(MetadataFiles { data, log }))
}

impl CutPoint {
    /// Writes the files that the cut left into an empty folder.
    pub(crate) fn restore(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder.join("control"))?;
        for (path, bytes) in &self.static_files.0 {
            fs::write(folder.join(path), bytes)?;
        }
        for (slice, files) in self.metadata.iter().enumerate() {
            let folder = folder.join(format!("slices/{slice:02}"));
            fs::create_dir_all(folder.join("meta"))?;
            fs::create_dir_all(folder.join("volumes"))?;
            fs::write(folder.join("meta/data.mdb"), &files.data)?;
            if let Some(log) = &files.log {
                fs::write(folder.join("meta/commit.log"), log)?;
            }
        }
        Ok(())
    }

    /// Opens the store as a cut left it and checks all of it. Returns what the store holds, or what is wrong with it.
    ///
    /// # Errors
    /// An error when the campaign itself cannot continue, because the folder of the cut cannot be written or removed.
    pub(crate) async fn check(
        &self,
        kept: Kept,
        options: StoreOptions,
    ) -> io::Result<Result<Contents, Violation>> {
        let folder = options.data_dir.clone();
        self.restore(&folder)?;
        let simulation = Simulation::stepped(self.disk.cut(&folder, kept), None);
        let store = match Store::open_simulated(&simulation, options) {
            Ok(store) => store,
            Err(error) => {
                return Ok(Err(Violation::new(ViolationKind::StoreDoesNotOpen, error.to_string())));
            }
        };
        let checked = self.check_store(&store).await;
        store.close();
        drop(store);
        fs::remove_dir_all(&folder)?;
        Ok(checked)
    }

    async fn check_store(&self, store: &Arc<Store>) -> Result<Contents, Violation> {
        let engine = Engine::open(Arc::clone(store))
            .await
            .map_err(|error| Violation::new(ViolationKind::StoreDoesNotOpen, error.to_string()))?;
        let mut contents = Contents::new();
        let mut usage = Usage::default();
        for (number, bucket) in buckets::existing(store)?.iter().enumerate() {
            if bucket.versioning() != self.history.versioning(number) {
                let detail = format!("the versioning of {} is {:?}", bucket.name, bucket.versioning());
                return Err(Violation::new(ViolationKind::BucketMismatch, detail));
            }
            let reader = BucketReader { engine: &engine, bucket, number, history: &self.history };
            let states = reader.read_all().await?;
            let mut held = Usage::default();
            states.values().for_each(|state| held.add(&state.usage()));
            if bucket.usage() != held {
                let detail = format!("usage of {} is {:?}, it holds {held:?}", bucket.name, bucket.usage());
                return Err(Violation::new(ViolationKind::UsageMismatch, detail));
            }
            usage.add(&held);
            contents.extend(states);
        }
        let empty = KeyState::default();
        for (key, history) in &self.history.keys {
            let state = contents.get(key).unwrap_or(&empty);
            history.check_after_cut(state).map_err(|violation| violation.found_at(&key.to_string()))?;
        }
        check_events(store, &contents)?;
        check_inspection(store, &usage)?;
        Ok(contents)
    }
}

/// Checks that the store's own inspection finds nothing and counts this usage, and that no space has leaked.
fn check_inspection(store: &Store, usage: &Usage) -> Result<(), Violation> {
    let mismatch = |detail| Violation::new(ViolationKind::InspectionMismatch, detail);
    let inspection = store.inspect(u64::MAX).map_err(|error| mismatch(format!("it fails: {error}")))?;
    if !inspection.complete || !inspection.is_clean() || inspection.usage != *usage {
        let (findings, counted) = (&inspection.findings, &inspection.usage);
        return Err(mismatch(format!("it finds {findings:?}, {counted:?}; the store holds {usage:?}")));
    }
    check_space(store, inspection.owned_bytes / UNIT_BYTES)
}

/// Checks that every unit of every volume is free, owned, or a header.
fn check_space(store: &Store, owned_units: u64) -> Result<(), Violation> {
    let (mut units, mut free) = (0, 0);
    for slice in &store.slices {
        let volumes = slice.space.volumes.read();
        units += volumes.iter().map(|volume| u64::from(volume.units() - 1)).sum::<u64>();
        let state = slice.space.allocator.free_space();
        free += state.free_units + state.hole_units;
    }
    if units == free + owned_units {
        return Ok(());
    }
    let detail = format!("{units} units, {free} free, {owned_units} owned ({UNIT_BYTES} bytes each)");
    Err(Violation::new(ViolationKind::SpaceMismatch, detail))
}
