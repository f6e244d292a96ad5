//! The result of an inspection while it is being written: counts, findings up to their limit, names of buckets.

use super::{Cancel, Finding, FindingKind, Inspection};
use crate::changes::FollowedTable;
use crate::error::EngineError;
use crate::keys;
use crate::limits::{FINDINGS_MAX, INSPECTION_SEGMENT_RECORDS};
use crate::store::Store;
use cairn_model::VersionId;
use std::collections::HashMap;
use std::fmt::Write as _;

/// Bytes of a key that does not decode which are shown.
const SHOWN_KEY_BYTES: usize = 64;

/// See the file's first lines.
pub(crate) struct Report<'s> {
    pub(super) store: &'s Store,
    cancel: &'s Cancel,
    inspection: Inspection,
    /// Records that may still be examined.
    entries_left: u64,
    /// Records that are read from one snapshot.
    pub(super) segment_records: u64,
    /// Names of all buckets that were seen on disk, by id.
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

    /// Whether the work should go on.
    ///
    /// # Errors
    /// [`EngineError::ShuttingDown`].
    pub(super) fn go_on(&self) -> Result<(), EngineError> {
        self.cancel.check()
    }

    /// Takes one record out of what may be examined.
    pub(super) fn may_examine(&mut self) -> bool {
        let may = self.entries_left > 0;
        self.entries_left -= u64::from(may);
        self.inspection.entries_examined += u64::from(may);
        may
    }

    /// Something was not compared.
    pub(super) fn leave_out(&mut self) {
        self.inspection.complete = false;
    }

    pub(super) fn inspection(&mut self) -> &mut Inspection {
        &mut self.inspection
    }

    /// Notes a finding about the store or a slice.
    pub(super) fn find(&mut self, kind: FindingKind, detail: String) {
        self.add(Finding { kind, bucket: None, key: None, version: None, detail });
    }

    /// Notes a finding about a bucket.
    pub(super) fn find_bucket(&mut self, kind: FindingKind, bucket: u64, detail: String) {
        let bucket = self.buckets.get(&bucket).cloned();
        self.add(Finding { kind, bucket, key: None, version: None, detail });
    }

    /// Notes a finding about a record, given its key in its table.
    pub(super) fn find_record(
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
            // A version's key with any sequence behind it.
            FollowedTable::NullVersions => keys::decode(&keys::with_sequence(encoded, 0))
                .map(|(bucket, key, _)| (bucket, key, None, detail.to_owned())),
        };
        let Some((bucket, key, version, detail)) = place else {
            let mut shown = String::new();
            for byte in encoded.iter().take(SHOWN_KEY_BYTES) {
                // Writing to a string does not fail.
                let _ = write!(shown, "{byte:02x}");
            }
            return self.find(kind, format!("{detail}; key {shown}"));
        };
        let bucket = self.buckets.get(&bucket).cloned();
        let key = String::from_utf8_lossy(&key).into_owned();
        self.add(Finding { kind, bucket, key: Some(key), version, detail });
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

/// Bucket, key and text of a finding about an upload.
fn of_upload(encoded: &[u8], detail: &str) -> Option<(u64, Vec<u8>, Option<VersionId>, String)> {
    let (bucket, key, upload) = keys::decode_upload(encoded)?;
    Some((bucket, key, None, format!("upload {upload}: {detail}")))
}
