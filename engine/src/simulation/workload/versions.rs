//! What is done to versions: deletes by version, suspended versioning, retention, legal holds, and removals that must be refused.

use super::{Workload, bytes, parsed, whole};
use crate::bucket::{BucketChange, Versioning};
use crate::error::EngineError;
use crate::lock::{ObjectLock, Retention, RetentionMode};
use crate::object::{DeleteOptions, WriteCondition};
use crate::simulation::Random;
use crate::simulation::buckets::StoppedClock;
use crate::simulation::examine::FixedFiles;
use crate::simulation::history::Place;
use crate::simulation::state::{Change, Version};
use cairn_model::{Timestamp, VersionId, VersionName};
use std::rc::Rc;
use std::sync::Arc;

/// A key that has so many versions loses some.
const VERSIONS_MAX: usize = 4;
/// One retention in so many is in compliance mode: its version stays for good.
const COMPLIANCE_IN: u64 = 8;

impl Workload {
    /// An operation on the versions of a key that the task owns.
    pub(super) async fn change_versions(self: &Rc<Self>, own: &Place, random: &mut Random) {
        let Some(state) = self.history.borrow().certain(own) else { return };
        match random.below(8) {
            _ if state.versions.len() >= VERSIONS_MAX => self.delete_some_version(own, random).await,
            0 | 1 => self.change_versioning(own, random),
            2 => self.delete_some_version(own, random).await,
            3 => self.delete(own).await,
            4 => self.read(own, random).await,
            _ => {
                let content = whole(bytes(random, Self::sizes(own)));
                drop(self.put(own, content, WriteCondition::default(), ObjectLock::default()).await);
            }
        }
    }

    /// An operation on a key in a bucket with object lock.
    pub(super) async fn change_locked(self: &Rc<Self>, own: &Place, random: &mut Random) {
        let Some(state) = self.history.borrow().certain(own) else { return };
        match random.below(12) {
            _ if state.versions.len() >= VERSIONS_MAX => self.delete_some_version(own, random).await,
            0..=2 => {
                let legal_hold = (random.below(3) == 0).then_some(true);
                let lock = ObjectLock { retention: some_retention(random), legal_hold };
                let content = whole(bytes(random, Self::sizes(own)));
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

    fn some_version(&self, place: &Place, random: &mut Random) -> Option<(u64, Version)> {
        let state = self.history.borrow().certain(place)?;
        let chosen = random.index(state.versions.len());
        state.versions.into_iter().nth(chosen)
    }

    /// Removes a version for good, or finds that its lock keeps it.
    async fn delete_some_version(&self, place: &Place, random: &mut Random) {
        let Ok(key) = parsed(place) else { return };
        let Some((sequence, version)) = self.some_version(place, random) else { return };
        let bypass_governance = random.below(2) == 0;
        let options = DeleteOptions {
            version: Some(name_of(sequence, &version)),
            bypass_governance,
            ..DeleteOptions::default()
        };
        let deleted = self.engine.delete_object(self.bucket(place), &key, options);
        if is_locked(version.lock, bypass_governance) {
            let outcome = deleted.await;
            self.expect_refusal(
                "the removal of a locked version",
                place,
                &outcome,
                &EngineError::ObjectLocked,
            );
            if version.lock.legal_hold == Some(true) {
                self.set_hold(place, sequence, &version, false).await;
            }
            return;
        }
        let outcome = self.change(place, Change::DeleteVersion(sequence), deleted, |_| (0, true)).await;
        if outcome.is_ok_and(|outcome| !outcome.existed) {
            self.find(format!("version {sequence} of {place} was put and was not there to be removed"));
        }
    }

    /// Suspends versioning, or enables it again. Done when it returns: no thread that is on the stage takes part.
    fn change_versioning(&self, place: &Place, random: &mut Random) {
        let versioning = if random.below(2) == 0 { Versioning::Enabled } else { Versioning::Suspended };
        let (store, bucket) = (self.engine.store(), self.bucket(place));
        let change = store.change_bucket(bucket, BucketChange::Versioning(versioning));
        let changed = futures_lite::future::block_on(change).map_err(|error| error.to_string());
        let fixed = FixedFiles::of(store.disk.path()).map_err(|error| error.to_string());
        match changed.and(fixed) {
            Ok(fixed) => {
                *self.fixed.borrow_mut() = Arc::new(fixed);
                self.history.borrow_mut().set_versioning(place.bucket, versioning);
            }
            Err(error) => self.find(format!("the versioning of {} cannot be changed: {error}", bucket.name)),
        }
    }

    async fn lock_some_version(&self, place: &Place, random: &mut Random) {
        let Some((sequence, version)) = self.some_version(place, random) else { return };
        if version.content.is_none() {
            return;
        }
        if random.below(2) == 0 {
            return self.set_hold(place, sequence, &version, random.below(2) == 0).await;
        }
        let Ok(key) = parsed(place) else { return };
        let (name, new) = (name_of(sequence, &version), some_retention(random));
        let set = self.engine.set_retention(self.bucket(place), &key, Some(name), new, true);
        let is_kept = version.lock.retention.is_some_and(|old| {
            // Retentions that last end at one time.
            old.mode == RetentionMode::Compliance && old.until > StoppedClock::NOW && new != Some(old)
        });
        if is_kept {
            let outcome = set.await;
            self.expect_refusal("a weaker retention", place, &outcome, &EngineError::ObjectLocked);
            return;
        }
        let lock = ObjectLock { retention: new, ..version.lock };
        drop(self.change(place, Change::Lock(sequence, lock), set, |()| (0, true)).await);
    }

    async fn set_hold(&self, place: &Place, sequence: u64, version: &Version, legal_hold: bool) {
        let Ok(key) = parsed(place) else { return };
        let name = name_of(sequence, version);
        let set = self.engine.set_legal_hold(self.bucket(place), &key, Some(name), legal_hold);
        let lock = ObjectLock { legal_hold: Some(legal_hold), ..version.lock };
        drop(self.change(place, Change::Lock(sequence, lock), set, |()| (0, true)).await);
    }
}

const fn name_of(sequence: u64, version: &Version) -> VersionName {
    if version.is_null { VersionName::Null } else { VersionName::Id(VersionId(sequence)) }
}

/// A retention that lasts, one that has ended, or none.
fn some_retention(random: &mut Random) -> Option<Retention> {
    let is_over = random.below(2) == 0;
    let until = if is_over { Timestamp(StoppedClock::NOW.0 - 1) } else { StoppedClock::TOMORROW };
    let is_compliant = random.below(COMPLIANCE_IN) == 0;
    let mode = if is_compliant { RetentionMode::Compliance } else { RetentionMode::Governance };
    (random.below(3) > 0).then_some(Retention { mode, until })
}

/// Whether a lock keeps its version, by the rules as the checker has them.
fn is_locked(lock: ObjectLock, bypass_governance: bool) -> bool {
    let lasting = lock.retention.filter(|retention| retention.until > StoppedClock::NOW);
    lock.legal_hold == Some(true)
        || match lasting.map(|retention| retention.mode) {
            None => false,
            Some(RetentionMode::Governance) => !bypass_governance,
            Some(RetentionMode::Compliance) => true,
        }
}
