//! What a store must be after a power cut: opened by the same recovery as ever, and held against what was acknowledged.
//!
//! Every version is read through the reader, byte for byte (`look.rs`); the usage, the store's own inspection and the
//! arithmetic of its space must agree with what was read.

use crate::bucket::Usage;
use crate::engine::Engine;
use crate::limits::UNIT_BYTES;
use crate::simulation::disk::{DiskSnapshot, Kept};
use crate::simulation::history::History;
use crate::simulation::look::{Found, Look};
use crate::simulation::state::KeyState;
use crate::simulation::{Simulation, buckets};
use crate::store::{Store, StoreOptions};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

/// Everything of a store at one moment that a cut would find, and what must be found in it.
pub(crate) struct CutPoint {
    pub(crate) disk: DiskSnapshot,
    /// The data file of each slice's metadata, as of its last commit.
    pub(crate) metadata: Vec<Arc<Vec<u8>>>,
    pub(crate) fixed: Arc<FixedFiles>,
    pub(crate) history: Arc<History>,
    /// When it was, for people.
    pub(crate) moment: String,
}

/// The files of a store that are durable whenever its threads are on the stage.
pub(crate) struct FixedFiles(Vec<(PathBuf, Vec<u8>)>);

impl FixedFiles {
    /// Reads them out of a data folder.
    pub(crate) fn of(data_dir: &Path) -> io::Result<Self> {
        let paths = ["superblock.json", "control/data.mdb"].map(PathBuf::from);
        let read = paths.map(|path| fs::read(data_dir.join(&path)).map(|bytes| (path, bytes)));
        read.into_iter().collect::<io::Result<_>>().map(Self)
    }
}

/// The data file of each slice's metadata up to its last used page. Nobody may be in the middle of a commit.
pub(crate) fn metadata_of(store: &Store, slice: usize) -> io::Result<Arc<Vec<u8>>> {
    use std::os::unix::fs::FileExt as _;
    let slice = store.slices.get(slice).ok_or(io::ErrorKind::NotFound)?;
    let used = usize::try_from(slice.environment.used()).map_err(io::Error::other)?;
    let mut bytes = vec![0; used];
    fs::File::open(slice.folder.join("meta/data.mdb"))?.read_exact_at(&mut bytes, 0)?;
    Ok(Arc::new(bytes))
}

impl CutPoint {
    /// Writes the files of the store as the cut left them into an empty folder.
    pub(crate) fn restore(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder.join("control"))?;
        for (path, bytes) in &self.fixed.0 {
            fs::write(folder.join(path), bytes)?;
        }
        for (slice, bytes) in self.metadata.iter().enumerate() {
            let folder = folder.join(format!("slices/{slice:02}"));
            fs::create_dir_all(folder.join("meta"))?;
            fs::create_dir_all(folder.join("volumes"))?;
            fs::write(folder.join("meta/data.mdb"), bytes.as_slice())?;
        }
        Ok(())
    }

    /// Opens the store as a cut left it and looks at all of it. `Err`: what a user would have lost.
    pub(crate) async fn examine(&self, kept: Kept, options: StoreOptions) -> Result<Found, String> {
        let folder = options.data_dir.clone();
        self.restore(&folder).map_err(|error| format!("the cut cannot be restored: {error}"))?;
        let simulation = Simulation::staged(self.disk.cut(&folder, kept), None);
        let store = simulation.open_store(options).map_err(|error| format!("does not open: {error}"))?;
        let found = self.look(&store).await;
        store.close();
        drop(store);
        fs::remove_dir_all(&folder).map_err(|error| format!("the cut cannot be removed: {error}"))?;
        found
    }

    async fn look(&self, store: &Arc<Store>) -> Result<Found, String> {
        let engine = Engine::open(Arc::clone(store)).await.map_err(|error| error.to_string())?;
        let buckets = buckets::of(store)?;
        let mut found = Found::new();
        let mut usage = Usage::default();
        for (number, bucket) in buckets.iter().enumerate() {
            if bucket.versioning() != self.history.versioning(number) {
                return Err(format!("the versioning of {} is {:?}", bucket.name, bucket.versioning()));
            }
            let look = Look { engine: &engine, bucket, number, history: &self.history };
            let states = look.everything().await?;
            let mut held = Usage::default();
            states.values().for_each(|state| held.add(&state.usage()));
            if bucket.usage() != held {
                return Err(format!("usage of {} is {:?}, it holds {held:?}", bucket.name, bucket.usage()));
            }
            usage.add(&held);
            found.extend(states);
        }
        let nothing = KeyState::default();
        for (place, history) in &self.history.keys {
            let state = found.get(place).unwrap_or(&nothing);
            history.admits(state).map_err(|what| format!("{place} {what}"))?;
        }
        let inspection = store.inspect(u64::MAX).map_err(|error| format!("cannot be inspected: {error}"))?;
        if !inspection.complete || !inspection.is_clean() || inspection.usage != usage {
            let (findings, counted) = (&inspection.findings, &inspection.usage);
            return Err(format!("the inspection finds {findings:?}, {counted:?}; there is {usage:?}"));
        }
        space_adds_up(store, inspection.owned_bytes / UNIT_BYTES)?;
        Ok(found)
    }
}

/// All units of all volumes are free, owned, or headers: none has leaked.
fn space_adds_up(store: &Store, owned_units: u64) -> Result<(), String> {
    let (mut units, mut free) = (0, 0);
    for slice in &store.slices {
        let volumes = slice.volumes.read().unwrap_or_else(PoisonError::into_inner);
        units += volumes.iter().map(|volume| volume.units() - 1).sum::<u64>();
        let state = slice.space.state();
        free += state.free_units + state.hole_units;
    }
    if units != free + owned_units {
        return Err(format!("{units} units, {free} free, {owned_units} owned ({UNIT_BYTES} bytes each)"));
    }
    Ok(())
}
