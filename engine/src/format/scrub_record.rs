//! The record of the scrub's progress, in the bucket catalog.
//!
//! Key `scrub` of the table `control`:
//!
//! ```text
//! version 1 (little-endian)
//! 0    8   begin of the pass in ms since the Unix epoch; 0: no pass is in progress
//! 8    8   end of the last whole pass in ms; 0: there was none
//! 16   8   versions verified in this pass, or in the last one if no pass is in progress
//! 24   8   bytes verified in it
//! 32   8   versions found corrupt or missing in it
//! 40   2   slice that is being verified
//! 42   n   encoded key of the last version that was verified there; empty: none
//! ```
//!
//! The result of the last whole pass has a record of its own (key `scrub_last`), because the counts above start again with
//! each pass:
//!
//! ```text
//! version 1 (little-endian)
//! 0    8   end of that pass in ms; if it differs from the record above, this belongs to an earlier pass
//! 8    8   versions found corrupt or missing in it
//! ```

use crate::format::codec;
use cairn_model::Timestamp;
use std::time::Duration;

/// Bytes before the key of the last version.
const FIXED_BYTES: usize = 42;

/// A position between two versions in a walk over the store, slice by slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyPosition {
    /// The slice.
    pub slice: u16,
    /// The encoded key of the last version that was verified there; empty: none yet.
    pub after: Vec<u8>,
}

impl VerifyPosition {
    /// The position before all versions.
    pub const START: Self = Self { slice: 0, after: Vec::new() };
}

/// The progress of the scrub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubRecord {
    /// The start of the current pass. Zero if no pass is in progress.
    pub started: Timestamp,
    /// The end of the last whole pass. Zero if there was none.
    pub completed: Timestamp,
    /// Versions verified in the current pass, or in the last one.
    pub versions: u64,
    /// Bytes verified in that pass.
    pub bytes: u64,
    /// Versions found corrupt or missing in that pass.
    pub corrupt: u64,
    /// Versions found corrupt or missing in the last whole pass.
    pub last_corrupt: u64,
    /// The position after the last version that was verified.
    pub position: VerifyPosition,
}

impl Default for ScrubRecord {
    fn default() -> Self {
        let never = Timestamp(0);
        let position = VerifyPosition::START;
        Self {
            started: never,
            completed: never,
            versions: 0,
            bytes: 0,
            corrupt: 0,
            last_corrupt: 0,
            position,
        }
    }
}

impl ScrubRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(FIXED_BYTES + self.position.after.len());
        for number in [self.started.0, self.completed.0, self.versions, self.bytes, self.corrupt] {
            body.extend_from_slice(&number.to_le_bytes());
        }
        body.extend_from_slice(&self.position.slice.to_le_bytes());
        assert_eq!(body.len(), FIXED_BYTES, "the fields before the key have a fixed length");
        body.extend_from_slice(&self.position.after);
        body
    }

    /// Encodes the record under `scrub_last`.
    pub(crate) fn encode_last(&self) -> [u8; 16] {
        let mut body = [0; 16];
        body[..8].copy_from_slice(&self.completed.0.to_le_bytes());
        body[8..].copy_from_slice(&self.last_corrupt.to_le_bytes());
        body
    }

    /// Decodes the two records. Stores of earlier programs lack the one of the last pass.
    pub(crate) fn decode(body: &[u8], last: Option<&[u8]>) -> Option<Self> {
        let (numbers, rest) = body.split_at_checked(40)?;
        let (slice, after) = rest.split_first_chunk::<2>()?;
        let mut numbers = numbers.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let [started, completed] = [Timestamp(numbers.next()?), Timestamp(numbers.next()?)];
        let [versions, bytes, corrupt] = [numbers.next()?, numbers.next()?, numbers.next()?];
        let last =
            last.and_then(|last| last.strip_prefix(&completed.0.to_le_bytes())).and_then(codec::decode_u64);
        let last_corrupt = last.unwrap_or(if started.0 == 0 { corrupt } else { 0 });
        Some(Self {
            started,
            completed,
            versions,
            bytes,
            corrupt,
            last_corrupt,
            position: VerifyPosition { slice: u16::from_le_bytes(*slice), after: after.to_vec() },
        })
    }

    /// Returns whether a pass must begin or continue at `now`.
    pub(crate) fn is_due(&self, now: Timestamp, interval: Duration) -> bool {
        let interval = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        // A clock that was set back must not delay the next pass for long.
        self.started.0 != 0 || now.0 < self.completed.0 || now.0 - self.completed.0 >= interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> ScrubRecord {
        let position = VerifyPosition { slice: 3, after: vec![7, 8] };
        let (started, completed) = (Timestamp(1), Timestamp(2));
        ScrubRecord { started, completed, versions: 3, bytes: 4, corrupt: 5, last_corrupt: 6, position }
    }

    /// Golden bytes: a change here is a change of the on-disk format.
    #[test]
    fn encoded_bytes_do_not_change() {
        let body = record().encode();
        let mut expected = Vec::new();
        (1..=5u64).for_each(|number| expected.extend_from_slice(&number.to_le_bytes()));
        expected.extend_from_slice(&[3, 0, 7, 8]);
        assert_eq!(body, expected);
        let last = record().encode_last();
        assert_eq!(last, [2, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(ScrubRecord::decode(&body, Some(&last)), Some(record()));
        assert_eq!(ScrubRecord::decode(&body[..41], Some(&last)), None);
    }

    #[test]
    fn result_of_an_earlier_pass_is_ignored() {
        let ended = ScrubRecord { started: Timestamp(0), ..record() };
        let earlier = ScrubRecord { completed: Timestamp(1), ..record() }.encode_last();
        for last in [None, Some(&earlier[..]), Some(&[])] {
            let decoded = |record: ScrubRecord| ScrubRecord::decode(&record.encode(), last).unwrap();
            assert_eq!(decoded(ended.clone()).last_corrupt, 5, "the record is that of the last pass");
            assert_eq!(decoded(record()).last_corrupt, 0, "unknown until the current pass has ended");
        }
    }

    #[test]
    fn pass_is_due_after_the_interval_or_an_interruption() {
        let hour = Duration::from_secs(3600);
        let ended = ScrubRecord { started: Timestamp(0), completed: Timestamp(10_000_000), ..record() };
        assert!(!ended.is_due(Timestamp(10_000_000 + 3_599_999), hour));
        assert!(ended.is_due(Timestamp(10_000_000 + 3_600_000), hour));
        assert!(ended.is_due(Timestamp(9_000_000), hour), "the clock was set back");
        assert!(record().is_due(Timestamp(3), hour), "interrupted");
        assert!(ScrubRecord::default().is_due(Timestamp(1_795_000_000_000), hour), "never done");
    }
}
