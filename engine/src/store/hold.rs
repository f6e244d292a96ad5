//! A hold: keeps one moment of the store on the disk for a copy.
//!
//! A tool copies the store while clients write.
//!
//! A hold copies all metadata of one moment into `<data-dir>/backup`. Nothing that these metadata refer to is overwritten until
//! it ends: extents of removed payloads are kept (`space/held.rs`), and writes go to other space. So a backup consists of the
//! volumes, copied in any order while the hold lasts, and of the copied metadata.
//!
//! # Order
//! 1. All slices begin to keep removed extents.
//! 2. Snapshots of the metadata are pinned. What a snapshot refers to was not removed before step 1, so it is kept.
//! 3. The snapshots are copied, one after the other.
//!
//! The buckets cannot change while the snapshots of the catalog and of the slices are pinned, so a slice never has objects of a
//! bucket that the catalog does not have. Webhooks come before the slices: an event may be delivered again, but is not lost.
//! The audit trail comes last, so it names everything that the others contain.
//!
//! # End
//! A client ends a hold. It ends by itself at its timeout, when its client has not renewed it for as long as it asked for, when
//! the store is closed, and before it takes space that clients need. Then it is *lost*: what was copied meanwhile is no backup.
//! A restart ends it, because extents are kept in memory only.

use crate::error::{EngineError, OpenError};
use crate::format::superblock;
use crate::limits::{HOLD_LOOK_INTERVAL, HOLD_ROOM_MIN, HOLD_TIME_MAX, UNIT_BYTES};
use crate::store::Store;
use crate::store::bucket_catalog::CatalogCommand;
use crate::store::compaction::{OtherEnvironment, rest};
use crate::store::hold_copy::{
    CopiedFile, HoldFile, backup_folder, copy_small_file, crc64_text, remove_folder_gradually,
};
use crate::store::hold_status::{HoldId, HoldRequest, HoldState, HoldStatus, Lease};
use crate::store::runtime::spawn_background;
use cairn_lmdb::{Environment, Snapshot};
use cairn_model::{Timestamp, time_id};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Instant;

/// Environment of the other crates that is pinned last.
const AUDIT: &str = "audit";

/// A pinned environment: its folder in the data folder, and its snapshot.
type Pinned = (String, Snapshot);

impl Store {
    /// Begins to hold the store, with the metadata in `others`. Returns at once; [`Store::hold`] shows when the copy of the
    /// metadata is complete.
    ///
    /// # Errors
    /// [`EngineError::AlreadyRunning`] when the store is held already, [`EngineError::StorageFull`] when the copy does not fit
    /// above the reserve, [`EngineError::ShuttingDown`], and failures of the device.
    ///
    /// # Panics
    /// If the timeout is longer than [`HOLD_TIME_MAX`].
    pub fn begin_hold(
        self: &Arc<Self>,
        others: Vec<OtherEnvironment>,
        HoldRequest { timeout, lease, principal }: HoldRequest,
    ) -> Result<HoldStatus, EngineError> {
        assert!(timeout <= HOLD_TIME_MAX, "the caller checks the timeout");
        if self.runtime.is_closing() {
            return Err(EngineError::ShuttingDown);
        }
        let own = self.slices.iter().map(|slice| &slice.environment);
        let all =
            own.chain([&self.control.catalog.environment]).chain(others.iter().map(|(_, other)| &**other));
        let expected_bytes = all.map(Environment::used).sum();
        if expected_bytes + HOLD_ROOM_MIN > self.disk.measure() {
            return Err(EngineError::StorageFull);
        }
        let now = self.clocks.system.now();
        let id = time_id::random(now).map_err(|error| EngineError::Io(error.to_string()))?;
        let milliseconds = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let status = HoldStatus {
            state: HoldState::Copying,
            id: HoldId(id).to_string(),
            principal,
            begun_at: Some(now),
            expires_at: Some(Timestamp(now.0.saturating_add(milliseconds))),
            expected_bytes,
            data_dir: self.disk.path().to_owned(),
            backup_dir: backup_folder(self.disk.path()),
            lease: lease.map(|duration| Lease { duration, renewed_at: Instant::now() }),
            ..HoldStatus::default()
        };
        let mut last = self.background.holds.lock();
        if last.state.is_active() {
            return Err(EngineError::AlreadyRunning("a backup"));
        }
        let (own, id, until) = (Arc::clone(self), status.id.clone(), Instant::now() + timeout);
        let body = move || own.run_hold(&id, &others, until);
        let thread = spawn_background("hold".to_owned(), self.disk.path(), body);
        self.runtime.add(thread.map_err(|error| EngineError::Io(error.to_string()))?);
        *last = status.clone();
        Ok(status)
    }

    /// Returns the last hold since the store was opened.
    #[must_use]
    pub fn hold(&self) -> HoldStatus {
        let mut status = self.background.holds.lock().clone();
        if status.state.is_active() {
            let units = self.slices.iter().map(|slice| slice.space.allocator.held_units());
            status.held_bytes = units.sum::<u64>() * UNIT_BYTES;
        }
        status
    }

    /// Renews the lease of the hold `id`, if it is in progress and has one.
    pub fn renew_hold(&self, id: &str) {
        if let Some(mut status) = self.background.holds.lock_active(id)
            && let Some(lease) = &mut status.lease
        {
            lease.renewed_at = Instant::now();
        }
    }

    /// Ends the hold. With `id`, only that one. Returns its status: released if everything was kept until now, lost otherwise.
    ///
    /// Returns `None` if there was none, or another one.
    pub fn end_hold(&self, id: Option<&str>) -> Option<HoldStatus> {
        let holds = &self.background.holds;
        let mut status = holds.lock();
        if status.state == HoldState::None || id.is_some_and(|id| id != status.id) {
            return None;
        }
        if status.state.is_active() {
            let reason = match (status.state, self.check_hold()) {
                (HoldState::Copying, _) => Some("it was ended before the metadata were copied".to_owned()),
                (_, kept) => kept.err(),
            };
            self.note_end(&mut status, reason);
            holds.wake();
        }
        Some(status.clone())
    }

    /// Returns why not everything is kept, if so.
    fn check_hold(&self) -> Result<(), String> {
        self.slices
            .iter()
            .try_for_each(|slice| slice.space.allocator.check_hold())
            .map_err(|loss| loss.to_string())
    }

    /// Notes the end of the hold. From now on nothing more is kept.
    fn note_end(&self, status: &mut HoldStatus, reason: Option<String>) {
        let units = self.slices.iter().map(|slice| slice.space.allocator.held_units());
        status.held_bytes = units.sum::<u64>() * UNIT_BYTES;
        status.state = if reason.is_some() { HoldState::Lost } else { HoldState::Released };
        status.ended_at = Some(self.clocks.system.now());
        match &reason {
            Some(reason) => {
                tracing::warn!(target: "service::engine", id = status.id, reason, "the store is no longer held: what was copied meanwhile is no backup");
            }
            None => {
                tracing::info!(target: "service::engine", id = status.id, held_bytes = status.held_bytes, "the store is no longer held");
            }
        }
        status.reason = reason;
        self.slices.iter().for_each(|slice| slice.space.allocator.end_hold());
    }

    fn run_hold(&self, id: &str, others: &[OtherEnvironment], until: Instant) {
        let holds = &self.background.holds;
        // The status is set before the lock that `begin_hold` holds is free.
        drop(holds.lock());
        let _turn = holds.turn.lock();
        {
            // It may have been ended while it waited for its turn. Its end takes this lock, so it comes before or after.
            let Some(_is_active) = holds.lock_active(id) else { return };
            self.slices.iter().for_each(|slice| slice.space.allocator.begin_hold());
        }
        let copied = self.copy_metadata(id, others, until);
        if let Some(mut status) = holds.lock_active(id) {
            match copied {
                Ok(held_at) => {
                    (status.state, status.held_at) = (HoldState::Held, Some(held_at));
                    tracing::info!(target: "service::engine", id, bytes = status.copied_bytes, "the store is held for a backup");
                }
                Err(reason) => self.note_end(&mut status, Some(reason)),
            }
        }
        while let Some(status) = holds.lock_active(id) {
            drop(holds.changed.wait_timeout(status, HOLD_LOOK_INTERVAL));
            // Without the lock, because executors read the status.
            if let Err(reason) = self.may_go_on(id, until)
                && let Some(mut status) = holds.lock_active(id)
            {
                self.note_end(&mut status, Some(reason));
            }
        }
        for slice in &self.slices {
            // The lock is free in between, so nobody waits for long.
            while slice.space.allocator.release_held() > 0 {}
            slice.space.wake_maintainer();
        }
        if let Err(error) = remove_folder_gradually(&backup_folder(self.disk.path())) {
            tracing::warn!(target: "service::engine", %error, "the metadata of a backup could not be removed: the next start does it");
        }
    }

    /// Returns why the hold must end now, if so.
    fn may_go_on(&self, id: &str, until: Instant) -> Result<(), String> {
        if self.runtime.is_closing() {
            return Err("the service was stopped".to_owned());
        }
        if Instant::now() >= until {
            return Err("its time was over".to_owned());
        }
        let lease = self.background.holds.lock_active(id).and_then(|status| status.lease);
        if let Some(Lease { duration, .. }) =
            lease.filter(|lease| lease.renewed_at.elapsed() >= lease.duration)
        {
            return Err(format!("its client did not ask for it for {} s", duration.as_secs()));
        }
        if self.disk.measure() < HOLD_ROOM_MIN {
            return Err("the disk became full".to_owned());
        }
        self.check_hold()
    }

    /// Copies all metadata of one moment into the backup folder. Returns the time of the copy.
    fn copy_metadata(
        &self,
        id: &str,
        others: &[OtherEnvironment],
        until: Instant,
    ) -> Result<Timestamp, String> {
        let data_dir = self.disk.path();
        let folder = backup_folder(data_dir);
        let text = |error: OpenError| error.to_string();
        remove_folder_gradually(&folder).map_err(text)?;
        make_folder(&folder)?;
        let snapshots = self.pin_all(others)?;
        let held_at = self.clocks.system.now();
        if let Some(mut status) = self.background.holds.lock_active(id) {
            status.expected_bytes = snapshots.iter().map(|(_, snapshot)| snapshot.bytes()).sum();
        }
        let mut files = vec![copy_small_file(data_dir, &folder, "superblock.json").map_err(text)?];
        for (name, snapshot) in snapshots {
            files.push(self.copy_environment(id, &folder, name, &snapshot, until)?);
        }
        let held = HoldFile::new(data_dir, id, (self.id(), self.format_version()), files, held_at);
        held.and_then(|held| held.write(&folder)).map_err(text)?;
        superblock::sync_folder(data_dir).map_err(text)?;
        Ok(held_at)
    }

    /// Pins a snapshot of each environment, in the order that [`self`] argues.
    fn pin_all(&self, others: &[OtherEnvironment]) -> Result<Vec<Pinned>, String> {
        let pin = |name: &str, environment: &Environment| match environment.snapshot() {
            Ok(snapshot) => Ok((name.to_owned(), snapshot)),
            Err(error) => Err(format!("{name}: {error}")),
        };
        let (last, first): (Vec<_>, Vec<_>) = others.iter().partition(|(name, _)| *name == AUDIT);
        let mut pinned = Vec::new();
        for (name, environment) in first {
            pinned.push(pin(name, environment)?);
        }
        let (paused, is_paused) = mpsc::channel();
        let (resume, resumed) = mpsc::channel();
        let ended = |_| "the service was stopped".to_owned();
        self.control.send(CatalogCommand::Pause { paused, resumed }).map_err(|error| error.to_string())?;
        is_paused.recv().map_err(ended)?;
        pinned.push(pin("control", &self.control.catalog.environment)?);
        for slice in &self.slices {
            if let Some(reason) = slice.commits.stopped.get() {
                return Err(reason);
            }
            pinned.push(pin(&format!("slices/{:02}/meta", slice.number), &slice.environment)?);
        }
        drop::<mpsc::Sender<()>>(resume);
        for (name, environment) in last {
            pinned.push(pin(name, environment)?);
        }
        Ok(pinned)
    }

    fn copy_environment(
        &self,
        id: &str,
        folder: &Path,
        name: String,
        snapshot: &Snapshot,
        until: Instant,
    ) -> Result<CopiedFile, String> {
        make_folder(&folder.join(&name))?;
        let path = format!("{name}/data.mdb");
        let mut stop = None;
        let mut begun = Instant::now();
        let copied = snapshot.copy_to(&folder.join(&path), |bytes| {
            let status = self.background.holds.lock_active(id);
            let is_active = status.map(|mut status| status.copied_bytes += bytes).is_some();
            rest(begun.elapsed());
            begun = Instant::now();
            stop = self.may_go_on(id, until).err();
            is_active && stop.is_none()
        });
        let copied = copied.map_err(|error| stop.unwrap_or_else(|| format!("{name}: {error}")))?;
        superblock::sync_folder(&folder.join(&name)).map_err(|error| error.to_string())?;
        Ok(CopiedFile { path, bytes: copied.bytes, crc64: crc64_text(copied.crc64) })
    }
}

/// Creates a folder, with those above it, for nobody else's eyes.
fn make_folder(folder: &Path) -> Result<(), String> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| format!("creating {}: {error}", folder.display()))
}
