//! Operations on versions: removal, suspended versioning, retention, legal holds, and removals that locks forbid.

use super::{Workload, object_key, random_bytes, single_put};
use crate::error::EngineError;
use crate::fault::Random;
use crate::simulation::buckets::StoppedClock;
use crate::simulation::history::BucketKey;
use crate::simulation::key_state::{Change, Version, imported_id, name_of};
use crate::simulation::recovery::StaticFiles;
use crate::simulation::violation::{Violation, ViolationKind};
use crate::slice::command::{ImportVersion, ImportedContent};
use crate::types::bucket::{BucketChange, Versioning};
use crate::types::event::Origin;
use crate::types::import::{ImportOutcome, ImportedIdentity};
use crate::types::object::{Attributes, DeleteOptions, WriteCondition};
use crate::types::object_lock::{ObjectLock, Retention, RetentionMode};
use cairn_model::{Timestamp, VersionId};
use std::rc::Rc;
use std::sync::Arc;

/// A version of a key is removed when it has so many.
const VERSIONS_MAX: usize = 4;
/// One in so many retentions is in compliance mode: its version cannot be removed.
const COMPLIANCE_ONE_IN: u64 = 8;

impl Workload {
    /// Runs an operation on the versions of the task's own key.
    pub(super) async fn change_versions(self: &Rc<Self>, own: &BucketKey, random: &mut Random) {
        let Some(state) = self.history.borrow().known_state(own) else { return };
        match random.below(8) {
            _ if state.versions.len() >= VERSIONS_MAX => self.delete_some_version(own, random).await,
            0 | 1 => self.change_versioning(own, random),
            2 => self.delete_some_version(own, random).await,
            3 => self.delete(own).await,
            4 => self.read(own, random).await,
            5 => self.import(own, random).await,
            _ => {
                let content = single_put(random_bytes(random, Self::sizes(own)));
                drop(self.put(own, content, WriteCondition::default(), ObjectLock::default()).await);
            }
        }
    }

    /// Runs an operation on the task's own key in the bucket with object lock.
    pub(super) async fn change_locked(self: &Rc<Self>, own: &BucketKey, random: &mut Random) {
        let Some(state) = self.history.borrow().known_state(own) else { return };
        match random.below(12) {
            _ if state.versions.len() >= VERSIONS_MAX => self.delete_some_version(own, random).await,
            0..=2 => {
                let legal_hold = (random.below(3) == 0).then_some(true);
                let lock = ObjectLock { retention: some_retention(random), legal_hold };
                let content = single_put(random_bytes(random, Self::sizes(own)));
                drop(self.put(own, content, WriteCondition::default(), lock).await);
            }
            3 => self.delete(own).await,
            4 | 5 => self.delete_some_version(own, random).await,
            6 => self.read(own, random).await,
            7 => self.copy(own, own, random).await,
            8 | 9 => self.upload(own, random).await,
            _ => self.lock_some_version(own, random).await,
        }
    }

    /// Imports a version. Its number is unique within its key, as its date is.
    async fn import(self: &Rc<Self>, key: &BucketKey, random: &mut Random) {
        let content = single_put(random_bytes(random, Self::sizes(key)));
        // Not after the present, so that lifecycle rules find it due.
        let last_modified = Timestamp(random.below(StoppedClock::NOW.0));
        let number = VersionId::imported_at(last_modified.0).expect("an early date");
        let identity = ImportedIdentity {
            id: Some(imported_id(number)),
            last_modified,
            etag: Some(content.etag),
            is_etag_opaque: true,
        };
        let import = async {
            let payload = self.stage_all(key, &content.bytes).await?;
            let (bucket, key, origin) = (Arc::clone(self.bucket(key)), object_key(key), Origin::default());
            let (attributes, lock) = (Attributes::default(), ObjectLock::default());
            let content = ImportedContent::Payload { payload: Box::new(payload), attributes, lock };
            let import = ImportVersion { bucket, key, identity, content, emits_events: true, origin };
            self.engine.import_version(import).await
        };
        let change = Change::Import(number, content.clone());
        let outcome = self.change(key, change, import, |_| (0, false)).await;
        if outcome.is_ok_and(|outcome| outcome != ImportOutcome::Created) {
            self.report_mismatch(format!("version {number} of {key} was imported before"));
        }
    }

    fn some_version(&self, key: &BucketKey, random: &mut Random) -> Option<(VersionId, Version)> {
        let state = self.history.borrow().known_state(key)?;
        let chosen = random.index(state.versions.len());
        state.versions.into_iter().nth(chosen)
    }

    /// Removes a version permanently, or expects a refusal because of its lock.
    async fn delete_some_version(&self, key: &BucketKey, random: &mut Random) {
        let Some((sequence, version)) = self.some_version(key, random) else { return };
        let bypass_governance = random.below(2) == 0;
        let options = DeleteOptions {
            version: Some(name_of(sequence, &version)),
            bypass_governance,
            ..DeleteOptions::default()
        };
        let object = object_key(key);
        let deleted = self.engine.delete_object(self.bucket(key), &object, options);
        if is_locked(version.lock, bypass_governance) {
            let outcome = deleted.await;
            self.expect_refusal("the removal of a locked version", key, &outcome, &EngineError::ObjectLocked);
            if version.lock.legal_hold == Some(true) {
                self.set_hold(key, sequence, &version, false).await;
            }
            return;
        }
        let outcome = self.change(key, Change::DeleteVersion(sequence), deleted, |_| (0, true)).await;
        if outcome.is_ok_and(|outcome| !outcome.existed) {
            self.report_mismatch(format!("version {sequence} of {key} was put and is missing"));
        }
    }

    /// Suspends versioning or enables it again. Completes before it returns: no thread under the scheduler takes part.
    fn change_versioning(&self, key: &BucketKey, random: &mut Random) {
        let versioning = if random.below(2) == 0 { Versioning::Enabled } else { Versioning::Suspended };
        let (store, bucket) = (self.engine.store(), self.bucket(key));
        let change = store.change_bucket(bucket, BucketChange::Versioning(versioning));
        let changed = futures_lite::future::block_on(change).map_err(|error| error.to_string());
        let static_files = StaticFiles::read(store.disk.path()).map_err(|error| error.to_string());
        match changed.and(static_files) {
            Ok(static_files) => {
                *self.static_files.borrow_mut() = Arc::new(static_files);
                self.history.borrow_mut().set_versioning(key.bucket, versioning);
            }
            Err(error) => {
                let detail = format!("the versioning of {} cannot be changed: {error}", bucket.name);
                self.report(Violation::new(ViolationKind::ChangeFailed, detail));
            }
        }
    }

    async fn lock_some_version(&self, key: &BucketKey, random: &mut Random) {
        let Some((sequence, version)) = self.some_version(key, random) else { return };
        if version.content.is_none() {
            return;
        }
        if random.below(2) == 0 {
            return self.set_hold(key, sequence, &version, random.below(2) == 0).await;
        }
        let (name, new) = (name_of(sequence, &version), some_retention(random));
        let object = object_key(key);
        let set = self.engine.set_retention(self.bucket(key), &object, Some(name), new, true);
        let is_kept = version.lock.retention.is_some_and(|old| {
            // All unexpired retentions end at the same time.
            old.mode == RetentionMode::Compliance && old.until > StoppedClock::NOW && new != Some(old)
        });
        if is_kept {
            let outcome = set.await;
            self.expect_refusal("a weaker retention", key, &outcome, &EngineError::ObjectLocked);
            return;
        }
        let lock = ObjectLock { retention: new, ..version.lock };
        drop(self.change(key, Change::Lock(sequence, lock), set, |()| (0, true)).await);
    }

    async fn set_hold(&self, key: &BucketKey, sequence: VersionId, version: &Version, legal_hold: bool) {
        let name = name_of(sequence, version);
        let object = object_key(key);
        let set = self.engine.set_legal_hold(self.bucket(key), &object, Some(name), legal_hold);
        let lock = ObjectLock { legal_hold: Some(legal_hold), ..version.lock };
        drop(self.change(key, Change::Lock(sequence, lock), set, |()| (0, true)).await);
    }
}

/// Returns an unexpired retention, an expired one, or none.
fn some_retention(random: &mut Random) -> Option<Retention> {
    let is_expired = random.below(2) == 0;
    let until = if is_expired { Timestamp(StoppedClock::NOW.0 - 1) } else { StoppedClock::TOMORROW };
    let is_compliant = random.below(COMPLIANCE_ONE_IN) == 0;
    let mode = if is_compliant { RetentionMode::Compliance } else { RetentionMode::Governance };
    (random.below(3) > 0).then_some(Retention { mode, until })
}

/// Returns whether a lock forbids the removal of its version.
fn is_locked(lock: ObjectLock, bypass_governance: bool) -> bool {
    let unexpired = lock.retention.filter(|retention| retention.until > StoppedClock::NOW);
    lock.legal_hold == Some(true)
        || match unexpired.map(|retention| retention.mode) {
            None => false,
            Some(RetentionMode::Governance) => !bypass_governance,
            Some(RetentionMode::Compliance) => true,
        }
}
