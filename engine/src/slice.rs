//! A slice: the keys whose hash falls on it, with their metadata, volumes, space and writer.
//!
//! All versions of one key live in one slice, and one thread, the committer, decides every change of it. Readers on
//! any executor read its metadata from LMDB snapshots without locks.
//!
//! # Tables of a slice's metadata (`slices/NN/meta`)
//! | table | key | value |
//! |---|---|---|
//! | `objects` | `keys.rs` | `record.rs` |
//! | `uploads` | `keys.rs` | `upload_record.rs` |
//! | `parts` | `keys.rs` | `part_record.rs` |
//! | `assembled` | as the upload's in `uploads`, once it is completed | u64, the sequence of the version made of its parts |
//! | `null_versions` | beginning of the keys of a key's versions | u64, the sequence of its null version when that is not the newest |
//! | `free_map` | `free_map.rs` | `free_map.rs` |
//! | `usage` | bucket id (u64, big-endian) | version 2: u64 each: objects, their bytes, versions, their bytes, delete markers, uploads, bytes of their parts; version 1: the first two |
//! | `slice` | `identity` | 16 bytes store id, u16 number of the slice |
//! | `slice` | `sequence` | u64, the last sequence given to a version or an upload |
//!
//! Sequences of slice n are n more than a multiple of 256, so that no two slices give out the same one.

use crate::bucket::Usage;
use crate::changes::{ChangeLog, FollowedTable};
use crate::codec;
use crate::error::{EngineError, OpenContext, OpenError};
use crate::events::{Events, FoundWhile, StoreEvent};
use crate::figures::CommitterFigures;
use crate::files::Files;
use crate::free_map;
use crate::limits::{GROWTH_BYTES_MIN, SLICE_MAP_BYTES, UNIT_BYTES};
use crate::part_record::PART_RECORD_VERSION;
use crate::queue::Queue;
use crate::record::OBJECT_RECORD_VERSION;
use crate::space::{Pieces, Reservation, Space};
use crate::superblock::{Superblock, sync_folder};
use crate::upload_record::UPLOAD_RECORD_VERSION;
use crate::volume::{Volume, volume_numbers, volume_path};
use cairn_lmdb::{Environment, EnvironmentOptions, Record, Table};
use futures_channel::oneshot;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, RwLock};

/// Version byte of records that hold a number or two.
pub(crate) const SMALL_RECORD_VERSION: u8 = 1;
/// Version byte of the records of `usage`.
pub(crate) const USAGE_RECORD_VERSION: u8 = 2;
/// Distance of two sequences of one slice; more than there can be slices.
const SEQUENCE_STEP: u64 = 256;
pub(crate) const IDENTITY_KEY: &[u8] = b"identity";
pub(crate) const SEQUENCE_KEY: &[u8] = b"sequence";

/// The tables of a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tables {
    pub(crate) objects: Table,
    pub(crate) uploads: Table,
    pub(crate) parts: Table,
    pub(crate) assembled: Table,
    pub(crate) null_versions: Table,
    pub(crate) free_map: Table,
    pub(crate) usage: Table,
    pub(crate) slice: Table,
}

impl Tables {
    /// The table of followed records, and the version byte that new ones get.
    pub(crate) const fn followed(&self, table: FollowedTable) -> (Table, u8) {
        match table {
            FollowedTable::Objects => (self.objects, OBJECT_RECORD_VERSION),
            FollowedTable::Uploads => (self.uploads, UPLOAD_RECORD_VERSION),
            FollowedTable::Parts => (self.parts, PART_RECORD_VERSION),
            FollowedTable::Assembled => (self.assembled, SMALL_RECORD_VERSION),
            FollowedTable::NullVersions => (self.null_versions, SMALL_RECORD_VERSION),
        }
    }
}

/// What the keeper is asked to do.
#[derive(Default)]
pub(crate) struct KeeperRequests {
    pub(crate) growth: Vec<(u64, oneshot::Sender<Result<(), EngineError>>)>,
    pub(crate) woken: bool,
    pub(crate) stop: bool,
}

/// One slice of the store.
pub(crate) struct Slice {
    pub(crate) number: u16,
    pub(crate) folder: PathBuf,
    pub(crate) superblock: Superblock,
    pub(crate) files: Files,
    pub(crate) environment: Environment,
    pub(crate) tables: Tables,
    pub(crate) space: Arc<Space>,
    pub(crate) volumes: RwLock<Vec<Arc<Volume>>>,
    pub(crate) queue: Queue,
    pub(crate) figures: CommitterFigures,
    pub(crate) changes: ChangeLog,
    pub(crate) keeper: Mutex<KeeperRequests>,
    pub(crate) keeper_wake: Condvar,
    /// Set once, when a commit failed in a way after which nothing may be written: the reason.
    pub(crate) stopped: OnceLock<String>,
    pub(crate) events: Arc<Events>,
}

impl Slice {
    /// Folder of slice `number`.
    pub(crate) fn folder_of(data_dir: &Path, number: u16) -> PathBuf {
        data_dir.join("slices").join(format!("{number:02}"))
    }

    /// Makes the folders, the metadata and the first volume of a slice of a new store.
    pub(crate) fn create(
        files: &Files,
        data_dir: &Path,
        superblock: Superblock,
        number: u16,
    ) -> Result<(), OpenError> {
        let folder = Self::folder_of(data_dir, number);
        for part in ["meta", "volumes"] {
            let path = folder.join(part);
            std::fs::create_dir_all(&path).doing("creating", &path)?;
        }
        let (environment, tables) = open_environment(&folder)?;
        let meta = folder.join("meta");
        let mut identity = superblock.store.0.to_vec();
        identity.extend_from_slice(&number.to_le_bytes());
        let mut txn = environment.write().doing("writing", &meta)?;
        txn.put(tables.slice, IDENTITY_KEY, SMALL_RECORD_VERSION, &identity, &[]).doing("writing", &meta)?;
        txn.put(tables.slice, SEQUENCE_KEY, SMALL_RECORD_VERSION, &0u64.to_le_bytes(), &[])
            .doing("writing", &meta)?;
        txn.commit().doing("writing", &meta)?;
        let path = volume_path(&folder, 0);
        Volume::create(files, &folder, superblock.store, number, 0, GROWTH_BYTES_MIN)
            .doing("creating with direct I/O", &path)?;
        [folder.join("meta"), folder].iter().try_for_each(|path| sync_folder(path))
    }

    /// Refuses a folder of a slice that the superblock does not count: with fewer slices keys would be looked for where
    /// they are not.
    pub(crate) fn refuse_uncounted(data_dir: &Path, slices: u16) -> Result<(), OpenError> {
        let path = Self::folder_of(data_dir, slices);
        if path.exists() {
            let what = format!("the superblock says that there are {slices} slices, from 00 on");
            return Err(OpenError::Damaged { path, what });
        }
        Ok(())
    }

    /// Opens a slice, checks that it belongs here, and reads its free map.
    pub(crate) fn open(
        files: &Files,
        data_dir: &Path,
        superblock: Superblock,
        number: u16,
        events: &Arc<Events>,
    ) -> Result<Arc<Self>, OpenError> {
        let folder = Self::folder_of(data_dir, number);
        let meta = folder.join("meta");
        Environment::require(&meta).doing("opening", &meta)?;
        let (environment, tables) = open_environment(&folder)?;
        check_identity(&environment, tables, superblock, number, &folder)?;
        let mut volumes = Vec::new();
        for volume in volume_numbers(files, &folder)? {
            volumes.push(Arc::new(Volume::open(files, &folder, superblock.store, number, volume)?));
        }
        let slice = Self {
            number,
            superblock,
            files: files.clone(),
            environment,
            tables,
            space: Arc::new(Space::default()),
            volumes: RwLock::new(volumes),
            queue: Queue::default(),
            figures: CommitterFigures::default(),
            changes: ChangeLog::default(),
            keeper: Mutex::default(),
            keeper_wake: Condvar::new(),
            stopped: OnceLock::new(),
            events: Arc::clone(events),
            folder,
        };
        slice.load_free_map()?;
        Ok(Arc::new(slice))
    }

    /// Units that no record owns are free; the file system knows what it has allocated of them.
    fn load_free_map(&self) -> Result<(), OpenError> {
        let meta = self.folder.join("meta");
        let volumes = self.volumes.read().unwrap_or_else(PoisonError::into_inner).clone();
        // Unit 0 of each volume is its header.
        let mut next_free: Vec<u32> = vec![1; volumes.len()];
        let mut allocations = Vec::with_capacity(volumes.len());
        for volume in &volumes {
            allocations.push(volume.allocation().doing("mapping", &volume.path)?);
        }
        let add = |volume: u32, start: u32, end: u64| {
            let Some(map) = allocations.get(volume as usize) else { return };
            let base = u64::from(volume) << 32;
            map.split(start.into(), end.saturating_sub(start.into()), |at, units, kind| {
                self.space.add(base | at, units, kind);
            });
        };
        let mut outside = None;
        let txn = self.environment.read().doing("reading", &meta)?;
        free_map::owned_runs(&txn, self.tables.free_map, |volume, start, units| {
            let known = volumes.get(volume as usize).zip(next_free.get_mut(volume as usize));
            let Some((_, next)) =
                known.filter(|(file, _)| u64::from(start) + u64::from(units) <= file.units())
            else {
                outside = Some((volume, start + units));
                return;
            };
            add(volume, *next, start.into());
            *next = start + units;
        })
        .map_err(|error| OpenError::Damaged { path: meta.clone(), what: error.to_string() })?;
        if let Some((volume, end)) = outside {
            let what = format!("missing or truncated: objects own its units up to {end}");
            return Err(OpenError::Damaged { path: volume_path(&self.folder, volume), what });
        }
        for (volume, next) in volumes.iter().zip(next_free) {
            add(volume.number, next, volume.units());
        }
        Ok(())
    }

    /// The last sequence that was given to a version.
    pub(crate) fn sequence(&self) -> Result<u64, EngineError> {
        let txn = self.environment.read()?;
        let record = txn.get(self.tables.slice, SEQUENCE_KEY)?;
        record
            .and_then(|record| codec::u64_of(record.body))
            .ok_or_else(|| EngineError::Corrupt(format!("slice {} has no sequence", self.number)))
    }

    /// The sequence that follows `last` in this slice.
    pub(crate) const fn sequence_after(&self, last: u64) -> u64 {
        (last / SEQUENCE_STEP + 1) * SEQUENCE_STEP + self.number as u64
    }

    /// Calls `found` with every bucket's id and usage in this slice.
    pub(crate) fn each_usage(&self, mut found: impl FnMut(u64, &Usage)) -> Result<(), EngineError> {
        let txn = self.environment.read()?;
        for item in txn.scan(self.tables.usage, &[])? {
            let (key, record) = item?;
            let bucket = key.try_into().ok().map(u64::from_be_bytes);
            let usage = bucket.zip(decode_usage(record));
            let (bucket, usage) =
                usage.ok_or_else(|| EngineError::Corrupt("a usage record of a wrong form".to_owned()))?;
            found(bucket, &usage);
        }
        Ok(())
    }

    /// Volume `number`, if there is one.
    pub(crate) fn volume(&self, number: u32) -> Option<Arc<Volume>> {
        let volumes = self.volumes.read().unwrap_or_else(PoisonError::into_inner);
        volumes.get(usize::try_from(number).ok()?).cloned()
    }

    /// After a failure of the device the metadata's state on it is unknown: nothing more is written. A lack of space and a
    /// record that fails its check are none: the transaction was dropped, and what was there before stands.
    pub(crate) fn stop_if_broken(&self, error: &EngineError) {
        let slice = self.number;
        match error {
            EngineError::Io(_) => {
                let reason = format!("slice {slice} was stopped after a failure: {error}");
                if self.stopped.set(reason.clone()).is_ok() {
                    self.events.report(&StoreEvent::ChangesStopped { reason: &reason });
                }
            }
            EngineError::Corrupt(what) => self.events.report(&StoreEvent::Damage {
                object: &format!("slice {slice}"),
                version: None,
                what,
                found_while: FoundWhile::Committing,
            }),
            _ => {}
        }
    }

    /// Reserves space for `bytes` bytes, waiting for the volume to grow when it must.
    pub(crate) async fn reserve(&self, bytes: u64) -> Result<Reservation, EngineError> {
        /// Others may take what was grown for this request; after so many rounds the store is full in effect.
        const ROUNDS_MAX: usize = 16;
        let mut pieces = Pieces::Long;
        for _ in 0..ROUNDS_MAX {
            if let Some(reservation) = self.space.reserve(bytes, pieces) {
                if self.space.wants_keeper() {
                    self.wake_keeper();
                }
                return Ok(reservation);
            }
            match self.ask_for_growth(bytes)?.await.map_err(|_| EngineError::ShuttingDown)? {
                Ok(()) => {}
                // What is left may still do, in short pieces.
                Err(EngineError::StorageFull) if pieces == Pieces::Long => pieces = Pieces::Any,
                Err(error) => return Err(error),
            }
        }
        Err(EngineError::StorageFull)
    }

    fn ask_for_growth(&self, bytes: u64) -> Result<oneshot::Receiver<Result<(), EngineError>>, EngineError> {
        let (send, grown) = oneshot::channel();
        let mut requests = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.stop {
            return Err(EngineError::ShuttingDown);
        }
        requests.growth.push((bytes, send));
        self.keeper_wake.notify_one();
        Ok(grown)
    }

    /// Makes the keeper look.
    pub(crate) fn wake_keeper(&self) {
        let mut requests = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if !requests.woken {
            requests.woken = true;
            self.keeper_wake.notify_one();
        }
    }

    /// Units of the volumes that are allocated on the disk.
    pub(crate) fn allocated_units(&self) -> u64 {
        (self.volume_bytes() / UNIT_BYTES).saturating_sub(self.space.state().hole_units)
    }

    /// Bytes that the volumes' files are long, holes included.
    pub(crate) fn volume_bytes(&self) -> u64 {
        let volumes = self.volumes.read().unwrap_or_else(PoisonError::into_inner);
        volumes.iter().map(|volume| volume.units() * UNIT_BYTES).sum()
    }
}

/// The usage of a record. One of version 1 is of a store that had no versions and no uploads.
pub(crate) fn decode_usage(record: Record<'_>) -> Option<Usage> {
    let (numbers, rest) = record.body.as_chunks::<8>();
    let mut numbers = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes));
    let mut next = || numbers.next();
    let usage = match record.version {
        SMALL_RECORD_VERSION => {
            let (objects, bytes) = (next()?, next()?);
            Usage { objects, bytes, versions: objects, version_bytes: bytes, ..Usage::default() }
        }
        USAGE_RECORD_VERSION => {
            let mut counters = [0; Usage::COUNTERS];
            for counter in &mut counters {
                *counter = next()?;
            }
            Usage::of_counters(counters)
        }
        _ => return None,
    };
    (next().is_none() && rest.is_empty()).then_some(usage)
}

/// The body of a usage record.
pub(crate) fn encode_usage(usage: &Usage) -> Vec<u8> {
    usage.counters().iter().flat_map(|counter| counter.to_le_bytes()).collect()
}

fn open_environment(folder: &Path) -> Result<(Environment, Tables), OpenError> {
    let meta = folder.join("meta");
    if !meta.is_dir() {
        return Err(OpenError::Damaged { path: meta, what: "the slice's metadata is missing".to_owned() });
    }
    let options = EnvironmentOptions { map_bytes: SLICE_MAP_BYTES, tables_max: 16 };
    let environment = Environment::open(&meta, options).doing("opening", &meta)?;
    let table = |name| environment.table(name).doing("opening", &meta);
    let tables = Tables {
        objects: table("objects")?,
        uploads: table("uploads")?,
        parts: table("parts")?,
        assembled: table("assembled")?,
        null_versions: table("null_versions")?,
        free_map: table("free_map")?,
        usage: table("usage")?,
        slice: table("slice")?,
    };
    Ok((environment, tables))
}

fn check_identity(
    environment: &Environment,
    tables: Tables,
    superblock: Superblock,
    number: u16,
    folder: &Path,
) -> Result<(), OpenError> {
    let path = folder.join("meta");
    let txn = environment.read().doing("reading", &path)?;
    let record = txn.get(tables.slice, IDENTITY_KEY).doing("reading", &path)?;
    let mut expected = superblock.store.0.to_vec();
    expected.extend_from_slice(&number.to_le_bytes());
    if record.is_some_and(|record| record.body == expected) {
        return Ok(());
    }
    let what = "the metadata is empty, or belongs to another store or slice".to_owned();
    Err(OpenError::Damaged { path, what })
}
