//! What a store must be after a power cut: opened by the same recovery as ever, and held against what was acknowledged.
//!
//! Every key is read through the reader, byte for byte; the list, the usage, the store's own inspection and the arithmetic
//! of its space must agree with what was read.

use crate::engine::Engine;
use crate::error::EngineError;
use crate::limits::UNIT_BYTES;
use crate::object::ListObjects;
use crate::simulation::Simulation;
use crate::simulation::disk::{DiskSnapshot, Kept};
use crate::simulation::history::{Content, History};
use crate::store::{Store, StoreOptions};
use cairn_model::{BucketName, Etag, ObjectKey};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
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

/// The files of a store that its workload does not change.
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

/// What was found: for each key its payload and version.
pub(crate) type Found = BTreeMap<String, Option<(Content, u64)>>;

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
    pub(crate) async fn examine(
        &self,
        kept: Kept,
        options: StoreOptions,
        bucket: &BucketName,
    ) -> Result<Found, String> {
        let folder = options.data_dir.clone();
        self.restore(&folder).map_err(|error| format!("the cut cannot be restored: {error}"))?;
        let simulation = Simulation::staged(self.disk.cut(&folder, kept), None);
        let store = simulation.open_store(options).map_err(|error| format!("does not open: {error}"))?;
        let found = self.look(&store, bucket).await;
        store.close();
        drop(store);
        fs::remove_dir_all(&folder).map_err(|error| format!("the cut cannot be removed: {error}"))?;
        found
    }

    async fn look(&self, store: &Arc<Store>, bucket: &BucketName) -> Result<Found, String> {
        let engine = Engine::open(Arc::clone(store)).await.map_err(|error| error.to_string())?;
        let found = self.read_all(&engine, bucket).await?;
        let sizes = found.values().flatten().map(|(content, _)| content.bytes.len() as u64);
        let (objects, bytes) = (found.values().flatten().count() as u64, sizes.sum::<u64>());
        let bucket = store.bucket(bucket).ok_or("the bucket is gone")?;
        let list = ListObjects { prefix: b"", delimiter: None, after: None, max: 1000 };
        let page = engine.list_objects(&bucket, &list).map_err(|error| format!("no list: {error}"))?;
        let listed: Vec<_> = page.objects.iter().map(|object| object.key.as_str()).collect();
        let present = found.iter().filter(|(_, state)| state.is_some()).map(|(key, _)| key.as_str());
        if !listed.iter().copied().eq(present) {
            return Err(format!("the list disagrees with what can be read: {listed:?}"));
        }
        let usage = bucket.usage();
        if (usage.objects, usage.bytes) != (objects, bytes) {
            return Err(format!("usage is {usage:?}, there are {objects} objects of {bytes} bytes"));
        }
        let inspection = store.inspect(u64::MAX).map_err(|error| format!("cannot be inspected: {error}"))?;
        if !inspection.complete || !inspection.is_clean() || inspection.usage.objects != objects {
            return Err(format!("the inspection finds {:?}", inspection.findings));
        }
        space_adds_up(store, inspection.owned_bytes / UNIT_BYTES)?;
        Ok(found)
    }

    async fn read_all(&self, engine: &Rc<Engine>, bucket: &BucketName) -> Result<Found, String> {
        let bucket = engine.store().bucket(bucket).ok_or("the bucket is gone")?;
        let mut found = Found::new();
        for (name, history) in &self.history.keys {
            let key = ObjectKey::parse(name).map_err(|_| "not a key")?;
            let read = match engine.open_whole(&bucket, &key, None) {
                Ok(open) => {
                    let (etag, version) = (open.info.etag, open.info.version.0);
                    let mut reader = open.read();
                    let mut bytes = Vec::new();
                    while let Some(chunk) =
                        reader.next().await.map_err(|error| format!("{name} cannot be read: {error}"))?
                    {
                        bytes.extend_from_slice(chunk.as_ref());
                    }
                    Some((etag, version, bytes))
                }
                Err(EngineError::NoSuchKey) => None,
                Err(error) => return Err(format!("{name} cannot be opened: {error}")),
            };
            let bytes = read.as_ref().map(|(_, _, bytes)| bytes.as_slice());
            let content = history.admits(bytes).map_err(|what| format!("{name} {what}"))?;
            let tag = |(etag, version, _): (Etag, u64, Vec<u8>)| (etag, version);
            let state = match (content, read.map(tag)) {
                (Some(content), Some((etag, version))) if content.etag == etag => Some((content, version)),
                (None, None) => None,
                _ => return Err(format!("{name} has another entity tag than its payload")),
            };
            found.insert(name.clone(), state);
        }
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
