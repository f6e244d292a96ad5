//! A walk over the objects of a bucket in key order: the current ones, or those of a moment.
//!
//! It is made in steps. Each has snapshots of its own, and takes about a millisecond, so that requests are served in between.

use crate::error::EngineError;
use crate::format::keys;
use crate::format::object_record::RecordHead;
use crate::limits::{WALK_PAGE_RECORDS, WALK_STEP_TIME};
use crate::list::past::version_of_head;
use crate::list::{corrupt_key, merge, snapshots, start_at};
use crate::slice::Slice;
use crate::types::object::ListPosition;
use cairn_lmdb::Record;
use cairn_model::Timestamp;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

/// A walk, and where it stands.
pub(crate) struct ObjectWalk {
    pub(crate) bucket: u64,
    /// Keys must begin with this.
    pub(crate) prefix: Vec<u8>,
    /// The moment whose objects are visited.
    pub(crate) at: Option<Timestamp>,
    /// The last key that was examined.
    pub(crate) after: Option<ListPosition>,
    /// Keys that were examined, also those without an object.
    pub(crate) examined: u64,
}

impl ObjectWalk {
    /// Examines the next keys, until `examined_max` have been examined in all, and passes their objects to `visit`. Ends early
    /// if that breaks. Returns whether keys follow.
    pub(crate) fn step(
        &mut self,
        slices: &[Arc<Slice>],
        examined_max: u64,
        mut visit: impl FnMut(&str, &RecordHead, Record<'_>) -> Result<ControlFlow<()>, EngineError>,
    ) -> Result<bool, EngineError> {
        let prefix = keys::prefix_of(self.bucket, &self.prefix);
        let Some(start) = start_at(self.bucket, &prefix, self.after.as_ref()) else { return Ok(false) };
        let begun = Instant::now();
        let txns = snapshots(slices)?;
        let mut merge = merge(slices, &txns, |tables| tables.objects, &start, &prefix)?;
        let mut last = None;
        for number in 0.. {
            let Some((encoded, record)) = merge.head() else { return Ok(false) };
            let is_over = merge.steps() >= WALK_PAGE_RECORDS || begun.elapsed() >= WALK_STEP_TIME;
            if self.examined >= examined_max || (number > 0 && is_over) {
                break;
            }
            let (_, key, _) = keys::decode(encoded).ok_or_else(corrupt_key)?;
            let found = match self.at {
                None => Some((RecordHead::decode(record.version, record.body)?, record)),
                Some(at) => version_of_head(&mut merge, at)?,
            };
            merge.skip_versions(encoded.get(..keys::shared_length(encoded)).unwrap_or_default())?;
            self.examined += 1;
            let visited = match found.filter(|(head, _)| !head.is_delete_marker) {
                Some((head, record)) => {
                    visit(std::str::from_utf8(&key).map_err(|_| corrupt_key())?, &head, record)?
                }
                None => ControlFlow::Continue(()),
            };
            last = Some(ListPosition::AfterKey(key));
            if visited.is_break() {
                break;
            }
        }
        self.after = last.or(self.after.take());
        Ok(merge.head().is_some())
    }
}
