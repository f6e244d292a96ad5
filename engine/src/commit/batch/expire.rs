//! Removes what lifecycle rules consider due (AWS: "Expiring objects").
//!
//! Everything is decided here, with the rules and versions of this moment: a write that came first has changed the role of the
//! version, a change of tags may have made the rule be about others, and a locked version stays. An upload that was completed
//! or aborted first is no more.

use super::events::Author;
use super::lookup::{FoundVersion, TargetKey};
use super::{Batch, Failure};
use crate::error::EngineError;
use crate::fault::Flaw;
use crate::format::keys;
use crate::format::upload_record;
use crate::slice::command::{DueVersion, ExpireDue, ExpireOutcome};
use crate::slice::version_chain::{ChainedVersion, VersionChain};
use crate::types::bucket::Versioning;
use crate::types::lifecycle::{DayLength, LifecycleRules, RuleId, VersionRole};
use crate::types::lifecycle_status::RuleCounts;
use cairn_model::{Timestamp, UploadId};

/// The time and the day at which a version is judged.
#[derive(Clone, Copy)]
struct Moment {
    now: Timestamp,
    day: DayLength,
}

impl ExpireOutcome {
    fn count(&mut self, rule: RuleId, counts: &RuleCounts) {
        match self.counts.iter_mut().find(|(id, _)| *id == rule) {
            Some((_, total)) => total.add(counts),
            None => self.counts.push((rule, *counts)),
        }
    }
}

impl Batch<'_> {
    /// Removes the candidates that are still due, until the batch is full.
    pub(super) fn expire(&mut self, command: &ExpireDue) -> Result<ExpireOutcome, Failure> {
        let mut outcome = ExpireOutcome::default();
        let Some(rules) = command.bucket.settings().lifecycle.clone() else {
            return Ok(ExpireOutcome { decided: command.candidates.len(), ..outcome });
        };
        let moment = Moment { now: command.now.min(self.clock.now()), day: command.day };
        for candidate in &command.candidates {
            // One version may be made of ten thousand parts.
            if outcome.decided > 0 && self.is_full() {
                break;
            }
            outcome.decided += 1;
            if candidate.role == VersionRole::UnfinishedUpload {
                self.abort_if_due(command, candidate, &rules, moment, &mut outcome)?;
                continue;
            }
            let still_due = self.target(&command.bucket, &candidate.key).and_then(|target| {
                let due = self.still_due(&target, &rules, candidate, moment)?;
                Ok(due.map(|(rule, found)| (target, rule, found)))
            });
            let (target, rule, found) = match still_due {
                Ok(Some(due)) => due,
                Ok(None) => continue,
                Err(error) => {
                    outcome.failure = Some(error);
                    continue;
                }
            };
            let mut counts = RuleCounts { examined: 1, ..RuleCounts::default() };
            let lifecycle_rule = rule.to_string();
            let author =
                Author { key: &candidate.key, origin: &command.origin, lifecycle_rule: &lifecycle_rule };
            match self.remove_due_version(&target, author, candidate, found, &mut counts) {
                Ok(()) => {}
                Err(Failure::Refused(EngineError::ObjectLocked)) => counts.skipped_locked = 1,
                Err(Failure::Refused(error)) => {
                    counts.failed = 1;
                    outcome.failure = Some(error);
                }
                Err(broken @ Failure::Broken(_)) => return Err(broken),
            }
            outcome.count(rule, &counts);
        }
        Ok(outcome)
    }

    /// Aborts an upload that still exists and is due by some rule.
    fn abort_if_due(
        &mut self,
        command: &ExpireDue,
        candidate: &DueVersion,
        rules: &LifecycleRules,
        moment: Moment,
        outcome: &mut ExpireOutcome,
    ) -> Result<(), Failure> {
        let due = self.target(&command.bucket, &candidate.key).and_then(|target| {
            let upload = keys::with_upload(&target.versions, UploadId(candidate.version.0));
            let Some(stored) = self.txn.get(self.slice.tables.uploads, &upload)? else { return Ok(None) };
            if upload_record::decode_initiated(stored.version, stored.body)? != candidate.since {
                return Ok(None);
            }
            let rule = rules.abort_of(candidate.key.as_bytes(), candidate.since, moment.day);
            let rule = rule.filter(|(due, _)| *due <= moment.now).map(|(_, rule)| rule.id);
            Ok(rule.map(|rule| (target, upload, rule)))
        });
        let (target, upload, rule) = match due {
            Ok(Some(due)) => due,
            Ok(None) => return Ok(()),
            Err(error) => {
                outcome.failure = Some(error);
                return Ok(());
            }
        };
        let mut counts = RuleCounts { examined: 1, ..RuleCounts::default() };
        let lifecycle_rule = rule.to_string();
        let author = Author { key: &candidate.key, origin: &command.origin, lifecycle_rule: &lifecycle_rule };
        match self.abort_at(&target, &upload, author) {
            Ok(bytes) => (counts.multipart_uploads_aborted, counts.bytes_freed) = (1, bytes),
            Err(Failure::Refused(error)) => {
                counts.failed = 1;
                outcome.failure = Some(error);
            }
            Err(broken @ Failure::Broken(_)) => return Err(broken),
        }
        outcome.count(rule, &counts);
        Ok(())
    }

    /// Finds a candidate that still has its role and is due by some rule. Of several rules the one that was due first acts.
    fn still_due(
        &self,
        target: &TargetKey,
        rules: &LifecycleRules,
        candidate: &DueVersion,
        moment: Moment,
    ) -> Result<Option<(RuleId, FoundVersion)>, EngineError> {
        let Some(found) = self.version_with_id(target, candidate.version)? else { return Ok(None) };
        let chain = VersionChain {
            records: &self.txn,
            objects: self.slice.tables.objects,
            versions: &target.versions,
        };
        let version = ChainedVersion {
            key: keys::with_sequence(&target.versions, candidate.version.0),
            version: candidate.version,
            last_modified: found.record.info.last_modified,
            is_delete_marker: found.record.is_delete_marker(),
        };
        let role = (candidate.role, candidate.since);
        if chain.role_of(&version)? != Some(role) {
            return Ok(None);
        }
        let mut tags = &found.record.info.attributes.tags;
        let all_tags;
        if self.slice.faults.has(Flaw::IgnoreRuleTags) {
            all_tags = rules.all_tags();
            tags = &all_tags;
        }
        let rule = chain.acting_rule(rules, &version, tags, role, (moment.day, moment.now))?;
        Ok(rule.map(|rule| (rule, found)))
    }

    fn remove_due_version(
        &mut self,
        target: &TargetKey,
        author: Author<'_>,
        candidate: &DueVersion,
        found: FoundVersion,
        counts: &mut RuleCounts,
    ) -> Result<(), Failure> {
        let size = found.record.info.size;
        match candidate.role {
            VersionRole::Current => {
                let versioning = target.bucket.versioning();
                let is_replaced = versioning == Versioning::Suspended && found.record.info.is_null;
                let replaced = match versioning {
                    Versioning::Suspended if !is_replaced => self.older_null_version(target)?,
                    _ => None,
                };
                self.delete_current(target, author, Some(found))?;
                counts.expired_objects = 1;
                match versioning {
                    Versioning::Unversioned => counts.bytes_freed = size,
                    Versioning::Enabled => counts.delete_markers_written = 1,
                    Versioning::Suspended => {
                        counts.delete_markers_written = 1;
                        let replaced = replaced.map_or(0, |null| null.record.info.size);
                        counts.bytes_freed = if is_replaced { size } else { replaced };
                    }
                }
            }
            VersionRole::Noncurrent => {
                self.remove_older(target, author, found, false)?;
                (counts.noncurrent_versions_removed, counts.bytes_freed) = (1, size);
            }
            VersionRole::LoneMarker => {
                self.remove_newest(target, author, found, false)?;
                counts.delete_markers_removed = 1;
            }
            VersionRole::UnfinishedUpload => unreachable!("an upload is no version"),
        }
        Ok(())
    }
}
