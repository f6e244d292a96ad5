//! Lifecycle rules in a campaign: steps of the due index, and removals of what is due.
//!
//! The days of the campaign have no length, so that everything that a rule matches is due at once. The rule of each bucket
//! matches the keys of the tasks, and not the shared ones.

use super::{Workload, object_key};
use crate::error::EngineError;
use crate::fault::Random;
use crate::simulation::buckets::{PLAIN, StoppedClock};
use crate::simulation::history::BucketKey;
use crate::simulation::key_state::{Change, KeyState, last_modified};
use crate::simulation::violation::{Violation, ViolationKind};
use crate::slice::command::{Command, DueVersion, ExpireDue, ExpireOutcome, IndexDue};
use crate::types::event::Origin;
use crate::types::lifecycle::{DayLength, VersionRole};
use crate::types::object::ListVersions;
use cairn_model::{Timestamp, VersionId, VersionName};
use futures_channel::oneshot;
use std::sync::Arc;

impl Workload {
    /// Builds a part of the due index of a bucket in some slice.
    pub(super) async fn step_due_index(&self, own: &BucketKey, random: &mut Random) {
        let slices = &self.engine.store().slices;
        let slice = &slices[random.index(slices.len())];
        let bucket = self.bucket(own);
        let entries_max = 1 + random.index(4);
        let step = IndexDue { id: bucket.id, bucket: Some(Arc::clone(bucket)), entries_max };
        let (reply, answer) = oneshot::channel();
        let stepped = match slice.commits.queue.push(Command::IndexDue(step, reply)) {
            Ok(()) => answer.await.unwrap_or(Err(EngineError::ShuttingDown)).map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = stepped {
            self.check_refusal(own, &error);
        }
    }

    /// Expires some version of the task's own key, and a version of a shared key, which no rule matches.
    pub(super) async fn expire(&self, own: &BucketKey, shared: &BucketKey, random: &mut Random) {
        let Some(state) = self.history.borrow().known_state(own) else { return };
        if let Some(upload) = state.uploads.keys().next().copied().filter(|_| random.below(2) == 0) {
            return self.expire_upload(own, upload).await;
        }
        let Some((sequence, due @ (role, _))) = some_due(&state, random) else { return };
        let change = match role {
            VersionRole::Current => Change::Delete,
            VersionRole::Noncurrent | VersionRole::LoneMarker | VersionRole::UnfinishedUpload => {
                Change::DeleteVersion(sequence)
            }
        };
        let is_locked = state.versions.get(&sequence).is_some_and(|version| {
            role != VersionRole::Current && version.lock.forbids_removal(StoppedClock::NOW, false)
        });
        if is_locked {
            match self.send_expire(own, sequence, due).await {
                Ok(outcome) if outcome.counts.iter().all(|(_, counts)| counts.skipped_locked == 1) => {}
                Err(error) => self.check_refusal(own, &error),
                Ok(outcome) => {
                    let detail = format!("locked version {sequence} of {own} expired: {outcome:?}");
                    self.report(Violation::new(ViolationKind::LockIgnored, detail));
                }
            }
            return;
        }
        let created = |outcome: &ExpireOutcome| {
            if outcome.counts.len() != 1 {
                self.report_mismatch(format!(
                    "version {sequence} of {own} is due and did not expire: {outcome:?}"
                ));
            }
            self.marker_of(own, role)
        };
        drop(self.change(own, change, self.send_expire(own, sequence, due), created).await);
        self.expire_shared(shared).await;
    }

    /// Expires an unfinished upload of the task's own key.
    async fn expire_upload(&self, own: &BucketKey, upload: u64) {
        let send =
            || self.send_expire(own, VersionId(upload), (VersionRole::UnfinishedUpload, StoppedClock::NOW));
        let aborted = |outcome: &ExpireOutcome| {
            if !matches!(outcome.counts[..], [(_, counts)] if counts.multipart_uploads_aborted == 1) {
                self.report_mismatch(format!(
                    "upload {upload} of {own} is due and was not aborted: {outcome:?}"
                ));
            }
            (0, false)
        };
        if self.change(own, Change::AbortUpload(upload), send(), aborted).await.is_ok() {
            match send().await {
                Ok(outcome) if outcome.counts.is_empty() => {}
                Ok(outcome) => {
                    self.report_mismatch(format!("upload {upload} of {own} ended twice: {outcome:?}"))
                }
                Err(error) => self.check_refusal(own, &error),
            }
        }
    }

    /// Sends a version that no rule matches. Nothing may happen to it.
    async fn expire_shared(&self, shared: &BucketKey) {
        let Ok(info) = self.engine.head_object(self.bucket(shared), &object_key(shared), None) else {
            return;
        };
        match self.send_expire(shared, info.version, (VersionRole::Current, StoppedClock::NOW)).await {
            Ok(outcome) if outcome.counts.is_empty() => {}
            Ok(outcome) => self.report_mismatch(format!("{shared} is not due and expired: {outcome:?}")),
            Err(error) => self.check_refusal(shared, &error),
        }
    }

    /// Returns the sequence of the marker that an expiration wrote, and whether it is a null version.
    fn marker_of(&self, key: &BucketKey, role: VersionRole) -> (u64, bool) {
        if role != VersionRole::Current || key.bucket == PLAIN {
            return (0, true);
        }
        let list = ListVersions { prefix: key.key.as_bytes(), delimiter: None, after: None, max: 1 };
        let newest = self.engine.list_versions(self.bucket(key), &list).ok();
        newest
            .and_then(|page| page.versions.into_iter().next())
            .map_or((0, true), |version| (version.object.version.0, version.name == VersionName::Null))
    }

    async fn send_expire(
        &self,
        key: &BucketKey,
        version: VersionId,
        (role, since): (VersionRole, Timestamp),
    ) -> Result<ExpireOutcome, EngineError> {
        let (bucket, object) = (self.bucket(key), object_key(key));
        let command = ExpireDue {
            bucket: Arc::clone(bucket),
            now: StoppedClock::NOW,
            day: DayLength(0),
            origin: Origin::default(),
            candidates: vec![DueVersion { role, since, version, key: object.clone() }],
        };
        let outcome =
            self.engine.commit(bucket, &object, |reply| Command::Expire(Box::new(command), reply)).await?;
        outcome.failure.clone().map_or(Ok(outcome), Err)
    }
}

/// Returns a version with a role, and since when it has had it. All of them are due.
fn some_due(state: &KeyState, random: &mut Random) -> Option<(VersionId, (VersionRole, Timestamp))> {
    if state.versions.is_empty() {
        return None;
    }
    let mut from = state.versions.keys().skip(random.index(state.versions.len()));
    let sequence = *from.next()?;
    if let Some(newer) = from.next() {
        return Some((sequence, (VersionRole::Noncurrent, last_modified(*newer))));
    }
    let is_object = state.current().is_some();
    let is_alone = state.versions.len() == 1;
    let role = if is_object { VersionRole::Current } else { VersionRole::LoneMarker };
    (is_object || is_alone).then_some((sequence, (role, last_modified(sequence))))
}
