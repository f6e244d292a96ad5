//! The records of lifecycle rules and of what they did (`control`).
//!
//! ```text
//! table             key                            body, version 1 (integers little-endian)
//! lifecycle         u64 bucket id, big-endian      the rules, one after the other
//! lifecycle_counts  16 bytes id of the rule        8 u64 counters in the order of `RuleCounts`
//!
//! rule
//! offset  size  what
//! 0       16    id
//! 16      1     flags: bit 0 enabled, 1 lone delete markers are removed at once; the others zero
//! 17      1     zero
//! 18      4     expiration in days; 0: none
//! 22      4     expiration of non-current versions in days; 0: none
//! 26      4     number of newer non-current versions that are kept
//! 30      8     creation time, milliseconds since the Unix epoch
//! 38      2     length p of the prefix
//! 40      p     prefix, UTF-8
//! ```

use crate::format::codec::{Cursor, InvalidRecord};
use crate::limits::LIFECYCLE_RULES_MAX;
use crate::types::lifecycle::{LifecycleRule, LifecycleRules, RuleId};
use crate::types::lifecycle_status::RuleCounts;
use cairn_model::Timestamp;

/// Version byte of the rules of a bucket.
pub(crate) const LIFECYCLE_RECORD_VERSION: u8 = 1;
/// Version byte of the counts of a rule.
pub(crate) const LIFECYCLE_COUNTS_VERSION: u8 = 1;

const ENABLED: u8 = 1;
const EXPIRED_DELETE_MARKERS: u8 = 1 << 1;
const FLAGS: u8 = ENABLED | EXPIRED_DELETE_MARKERS;

/// Encodes the rules of a bucket.
///
/// # Errors
/// If a prefix is longer than its length field can express. The limits of the upper layers prevent this.
pub(crate) fn encode(rules: &LifecycleRules) -> Result<Vec<u8>, InvalidRecord> {
    let mut out = Vec::new();
    for rule in rules.iter() {
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let flags =
            flag(rule.is_enabled, ENABLED) | flag(rule.expired_delete_markers, EXPIRED_DELETE_MARKERS);
        let length = u16::try_from(rule.prefix.len()).map_err(|_| InvalidRecord("a prefix is too long"))?;
        out.extend_from_slice(&rule.id.0);
        out.extend_from_slice(&[flags, 0]);
        out.extend_from_slice(&rule.expiration_days.unwrap_or_default().to_le_bytes());
        out.extend_from_slice(&rule.noncurrent_days.unwrap_or_default().to_le_bytes());
        out.extend_from_slice(&rule.newer_noncurrent_versions.to_le_bytes());
        out.extend_from_slice(&rule.created_at.0.to_le_bytes());
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(rule.prefix.as_bytes());
    }
    Ok(out)
}

/// Decodes the rules of a bucket. There must be at least one.
pub(crate) fn decode(version: u8, body: &[u8]) -> Result<LifecycleRules, InvalidRecord> {
    if version != LIFECYCLE_RECORD_VERSION {
        return Err(InvalidRecord("its version is unknown"));
    }
    let mut from = Cursor(body);
    let mut rules = Vec::new();
    while !from.0.is_empty() && rules.len() < LIFECYCLE_RULES_MAX {
        rules.push(decode_rule(&mut from)?);
    }
    if rules.is_empty() || !from.0.is_empty() {
        return Err(InvalidRecord("the number of rules is wrong"));
    }
    Ok(LifecycleRules(rules))
}

fn decode_rule(from: &mut Cursor<'_>) -> Result<LifecycleRule, InvalidRecord> {
    let id = RuleId(from.array()?);
    let [flags, zero] = from.array()?;
    if flags & !FLAGS != 0 || zero != 0 {
        return Err(InvalidRecord("some of its flags are unknown"));
    }
    let days = |number: u32| (number > 0).then_some(number);
    let (expiration_days, noncurrent_days) = (days(from.u32()?), days(from.u32()?));
    let newer_noncurrent_versions = from.u32()?;
    let created_at = Timestamp(from.u64()?);
    let length = from.u16()?;
    let prefix = std::str::from_utf8(from.bytes(length.into())?)
        .map_err(|_| InvalidRecord("a prefix is not UTF-8"))?
        .to_owned();
    Ok(LifecycleRule {
        id,
        prefix,
        expiration_days,
        noncurrent_days,
        newer_noncurrent_versions,
        expired_delete_markers: flags & EXPIRED_DELETE_MARKERS != 0,
        is_enabled: flags & ENABLED != 0,
        created_at,
    })
}

/// Encodes what a rule has done.
pub(crate) fn encode_counts(counts: &RuleCounts) -> Vec<u8> {
    counts.counters().iter().flat_map(|counter| counter.to_le_bytes()).collect()
}

/// Decodes what a rule has done. Returns `None` if the form is unknown.
pub(crate) fn decode_counts(version: u8, body: &[u8]) -> Option<RuleCounts> {
    let (numbers, []) = body.as_chunks::<8>() else { return None };
    let numbers: Vec<u64> = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    (version == LIFECYCLE_COUNTS_VERSION).then_some(())?;
    Some(RuleCounts::of_counters(numbers.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{decode, decode_counts, encode, encode_counts};
    use crate::types::lifecycle::{LifecycleRule, LifecycleRules, RuleId};
    use crate::types::lifecycle_status::RuleCounts;
    use cairn_model::Timestamp;
    use proptest::prelude::*;

    fn rules() -> LifecycleRules {
        let full = LifecycleRule {
            id: RuleId([7; 16]),
            prefix: "a/".to_owned(),
            expiration_days: Some(1),
            noncurrent_days: Some(2),
            newer_noncurrent_versions: 3,
            expired_delete_markers: true,
            is_enabled: true,
            created_at: Timestamp(4),
        };
        let least = LifecycleRule {
            prefix: String::new(),
            expiration_days: None,
            newer_noncurrent_versions: 0,
            expired_delete_markers: false,
            is_enabled: false,
            ..full.clone()
        };
        LifecycleRules(vec![full, least])
    }

    /// Golden bytes: a change here is a change of the on-disk format.
    #[test]
    fn encoded_bytes_do_not_change() {
        let body = encode(&rules()).expect("encodes");
        let mut expected = vec![7; 16];
        expected.extend([3, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
        expected.extend(b"a/");
        assert_eq!(body[..42], expected);
        assert_eq!(body.len(), 42 + 40);
        assert_eq!(decode(1, &body), Ok(rules()));
        let counts = RuleCounts { examined: 1, bytes_freed: 9, ..RuleCounts::default() };
        let body = encode_counts(&counts);
        assert_eq!((body.len(), body[0], body[56]), (64, 1, 9));
        assert_eq!(decode_counts(1, &body), Some(counts));
        assert_eq!(decode_counts(1, &body[8..]), None);
        assert_eq!(decode_counts(2, &body), None);
    }

    #[test]
    fn incomplete_records_and_unknown_forms_are_refused() {
        let body = encode(&rules()).expect("encodes");
        assert!(decode(2, &body).is_err());
        for length in (0..body.len()).filter(|length| *length != 42) {
            assert!(decode(1, &body[..length]).is_err(), "{length}");
        }
        let mut unknown = body;
        unknown[16] = 4;
        assert!(decode(1, &unknown).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(body in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = decode(1, &body);
        }
    }
}
