//! The result of an inspection in progress: counts, findings up to a limit, bucket names.

use super::finding::{Finding, FindingKind};
use super::inspection::Inspection;
use crate::error::EngineError;
use crate::format::due_record::DueKey;
use crate::format::keys;
use crate::limits::{FINDINGS_MAX, INSPECTION_SEGMENT_RECORDS};
use crate::slice::change_log::FollowedTable;
use crate::store::Store;
use crate::store::background::Cancel;
use cairn_model::VersionId;
use std::collections::HashMap;

/// Most bytes shown of a key that cannot be decoded.
const SHOWN_KEY_BYTES: usize = 64;

/// Collects the result of an inspection.
pub(crate) struct Report<'s> {
    pub(super) store: &'s Store,
    cancel: &'s Cancel,
    inspection: Inspection,
    /// Number of records that may still be read.
    entries_left: u64,
    /// Number of records to read from one snapshot.
    pub(super) segment_records: u64,
    /// Names of all buckets on the disk, by id.
    pub(super) buckets: HashMap<u64, String>,
}

impl<'s> Report<'s> {
    pub(crate) fn new(store: &'s Store, entries_max: u64, cancel: &'s Cancel) -> Self {
        let inspection = Inspection { complete: true, ..Inspection::default() };
        Self {
            store,
            cancel,
            inspection,
            entries_left: entries_max,
            segment_records: INSPECTION_SEGMENT_RECORDS,
            buckets: HashMap::new(),
        }
    }

    /// Checks whether the inspection was cancelled.
    ///
    /// # Errors
    /// [`EngineError::ShuttingDown`] if it was.
    pub(super) fn check_cancelled(&self) -> Result<(), EngineError> {
        self.cancel.check()
    }

    /// Counts one record against the limit; returns false when the limit is reached.
    pub(super) fn may_examine(&mut self) -> bool {
        let may = self.entries_left > 0;
        self.entries_left -= u64::from(may);
        self.inspection.entries_examined += u64::from(may);
        may
    }

    /// Marks the result as incomplete.
    pub(super) fn leave_out(&mut self) {
        self.inspection.complete = false;
    }

    pub(super) fn inspection(&mut self) -> &mut Inspection {
        &mut self.inspection
    }

    /// Adds a finding about the store or a slice.
    pub(super) fn report(&mut self, kind: FindingKind, detail: String) {
        self.add(Finding { kind, bucket: None, key: None, version: None, detail });
    }

    /// Adds a finding about a bucket.
    pub(super) fn report_bucket(&mut self, kind: FindingKind, bucket: u64, detail: String) {
        let bucket = self.buckets.get(&bucket).cloned();
        self.add(Finding { kind, bucket, key: None, version: None, detail });
    }

    /// Adds a finding about a record, given its encoded key.
    pub(super) fn report_record(
        &mut self,
        kind: FindingKind,
        table: FollowedTable,
        encoded: &[u8],
        detail: &str,
    ) {
        let place = match table {
            FollowedTable::Objects => keys::decode(encoded)
                .map(|(bucket, key, sequence)| (bucket, key, Some(VersionId(sequence)), detail.to_owned())),
            FollowedTable::Uploads | FollowedTable::Assembled => of_upload(encoded, detail),
            FollowedTable::Parts => keys::decode_part(encoded)
                .and_then(|(upload, number)| of_upload(upload, &format!("part {number}: {detail}"))),
            FollowedTable::Due => DueKey::decode(encoded)
                .map(|entry| (entry.bucket, Vec::new(), Some(entry.version), detail.to_owned())),
            FollowedTable::ImportedIds => keys::decode_imported_id(encoded).map(|(bucket, key, id)| {
                (bucket, key, None, format!("imported version {}: {detail}", id.as_str()))
            }),
            FollowedTable::NullVersions => {
                keys::decode_versions(encoded).map(|(bucket, key)| (bucket, key, None, detail.to_owned()))
            }
            FollowedTable::Events => None,
        };
        let Some((bucket, key, version, detail)) = place else {
            let shown = hex::encode(encoded.get(..SHOWN_KEY_BYTES).unwrap_or(encoded));
            return self.report(kind, format!("{detail}; key {shown}"));
        };
        let bucket = self.buckets.get(&bucket).cloned();
        let key = Some(String::from_utf8_lossy(&key).into_owned()).filter(|key| !key.is_empty());
        self.add(Finding { kind, bucket, key, version, detail });
    }

    fn add(&mut self, finding: Finding) {
        if self.inspection.findings.len() < FINDINGS_MAX {
            self.inspection.findings.push(finding);
        } else {
            self.inspection.findings_omitted += 1;
        }
    }

    /// The result.
    pub(crate) fn finish(self) -> Inspection {
        self.inspection
    }
}

/// Decodes the key of an upload: bucket, key and text of the finding.
fn of_upload(encoded: &[u8], detail: &str) -> Option<(u64, Vec<u8>, Option<VersionId>, String)> {
    let (bucket, key, upload) = keys::decode_upload(encoded)?;
    Some((bucket, key, None, format!("upload {upload}: {detail}")))
}
