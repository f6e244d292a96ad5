//! The records of lifecycle rules and of what they did (`control`).
//!
//! ```text
//! table             key                            body (integers little-endian)
//! lifecycle         u64 bucket id, big-endian      version 2: the rules, one after the other
//! lifecycle_counts  16 bytes id of the rule        version 1: 8 u64 counters in the order of `RuleCounts`
//!
//! rule, version 2
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
//! 40+p    2     length i of the id in S3; 0: it has none
//! 42+p    i     id in S3, UTF-8
//! 42+p+i  2     length t of the tags
//! 44+p+i  t     tags (`codec.rs`)
//! ```
//! A rule of version 1 ended with the prefix: it had neither an id in S3 nor tags.

use crate::format::codec::{Cursor, InvalidRecord, decode_tags, encode_tags};
use crate::limits::LIFECYCLE_RULES_MAX;
use crate::types::lifecycle::{LifecycleRule, LifecycleRules, RuleId};
use crate::types::lifecycle_status::RuleCounts;
use crate::types::tags::Tags;
use cairn_model::Timestamp;

/// Version byte of the rules of a bucket.
pub(crate) const LIFECYCLE_RECORD_VERSION: u8 = 2;
/// Version byte of the counts of a rule.
pub(crate) const LIFECYCLE_COUNTS_VERSION: u8 = 1;

const ENABLED: u8 = 1;
const EXPIRED_DELETE_MARKERS: u8 = 1 << 1;
const FLAGS: u8 = ENABLED | EXPIRED_DELETE_MARKERS;

/// Encodes the rules of a bucket.
///
/// # Errors
/// If a text is longer than its length field can express. The limits of the upper layers prevent this.
pub(crate) fn encode(rules: &LifecycleRules) -> Result<Vec<u8>, InvalidRecord> {
    let mut out = Vec::new();
    for rule in rules.iter() {
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let flags =
            flag(rule.is_enabled, ENABLED) | flag(rule.expired_delete_markers, EXPIRED_DELETE_MARKERS);
        out.extend_from_slice(&rule.id.0);
        out.extend_from_slice(&[flags, 0]);
        out.extend_from_slice(&rule.expiration_days.unwrap_or_default().to_le_bytes());
        out.extend_from_slice(&rule.noncurrent_days.unwrap_or_default().to_le_bytes());
        out.extend_from_slice(&rule.newer_noncurrent_versions.to_le_bytes());
        out.extend_from_slice(&rule.created_at.0.to_le_bytes());
        let s3_id = rule.s3_id.as_deref().unwrap_or_default();
        for bytes in [rule.prefix.as_bytes(), s3_id.as_bytes(), &encode_tags(&rule.tags)] {
            let length = u16::try_from(bytes.len()).map_err(|_| InvalidRecord("a text is too long"))?;
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(bytes);
        }
    }
    Ok(out)
}

/// Decodes the rules of a bucket. There must be at least one.
pub(crate) fn decode(version: u8, body: &[u8]) -> Result<LifecycleRules, InvalidRecord> {
    if !(1..=LIFECYCLE_RECORD_VERSION).contains(&version) {
        return Err(InvalidRecord("its version is unknown"));
    }
    let mut from = Cursor(body);
    let mut rules = Vec::new();
    while !from.0.is_empty() && rules.len() < LIFECYCLE_RULES_MAX {
        rules.push(decode_rule(version, &mut from)?);
    }
    if rules.is_empty() || !from.0.is_empty() {
        return Err(InvalidRecord("the number of rules is wrong"));
    }
    Ok(LifecycleRules(rules))
}

fn decode_rule(version: u8, from: &mut Cursor<'_>) -> Result<LifecycleRule, InvalidRecord> {
    let id = RuleId(from.array()?);
    let [flags, zero] = from.array()?;
    if flags & !FLAGS != 0 || zero != 0 {
        return Err(InvalidRecord("some of its flags are unknown"));
    }
    let days = |number: u32| (number > 0).then_some(number);
    let (expiration_days, noncurrent_days) = (days(from.u32()?), days(from.u32()?));
    let newer_noncurrent_versions = from.u32()?;
    let created_at = Timestamp(from.u64()?);
    let prefix = decode_text(from)?;
    let (s3_id, tags) = if version == 1 {
        (String::new(), Tags::default())
    } else {
        let s3_id = decode_text(from)?;
        let length = from.u16()?;
        (s3_id, decode_tags(from.bytes(length.into())?)?)
    };
    Ok(LifecycleRule {
        id,
        s3_id: Some(s3_id).filter(|id| !id.is_empty()),
        prefix,
        tags,
        expiration_days,
        noncurrent_days,
        newer_noncurrent_versions,
        expired_delete_markers: flags & EXPIRED_DELETE_MARKERS != 0,
        is_enabled: flags & ENABLED != 0,
        created_at,
    })
}

fn decode_text(from: &mut Cursor<'_>) -> Result<String, InvalidRecord> {
    let length = from.u16()?;
    let text = std::str::from_utf8(from.bytes(length.into())?);
    text.map(str::to_owned).map_err(|_| InvalidRecord("a text is not UTF-8"))
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
    use crate::types::tags::Tags;
    use cairn_model::Timestamp;
    use proptest::prelude::*;

    fn rules() -> LifecycleRules {
        let full = LifecycleRule {
            id: RuleId([7; 16]),
            s3_id: Some("id".to_owned()),
            prefix: "a/".to_owned(),
            tags: Tags::of_record(vec![("k".into(), "va".into())]),
            expiration_days: Some(1),
            noncurrent_days: Some(2),
            newer_noncurrent_versions: 3,
            expired_delete_markers: true,
            is_enabled: true,
            created_at: Timestamp(4),
        };
        let least = LifecycleRule {
            prefix: String::new(),
            s3_id: None,
            tags: Tags::default(),
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
        expected.extend(b"\x02\0id\x07\0\x01\0\x02\0kva");
        assert_eq!(body[..55], expected);
        assert_eq!(body[55 + 38..], [0; 6]);
        assert_eq!(decode(2, &body), Ok(rules()));
        let counts = RuleCounts { examined: 1, bytes_freed: 9, ..RuleCounts::default() };
        let body = encode_counts(&counts);
        assert_eq!((body.len(), body[0], body[56]), (64, 1, 9));
        assert_eq!(decode_counts(1, &body), Some(counts));
        assert_eq!(decode_counts(1, &body[8..]), None);
        assert_eq!(decode_counts(2, &body), None);
    }

    /// The golden bytes of version 1: rules had neither an id in S3 nor tags.
    #[test]
    fn rules_of_version_1_are_read() {
        let mut body = vec![7; 16];
        body.extend([3, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
        body.extend(b"a/");
        let two = [&body[..], &body].concat();
        let [full, _] = rules().0.try_into().expect("two rules");
        let rule = LifecycleRule { s3_id: None, tags: Tags::default(), ..full };
        assert_eq!(decode(1, &two), Ok(LifecycleRules(vec![rule.clone(), rule])));
        assert!(decode(2, &two).is_err());
    }

    #[test]
    fn incomplete_records_and_unknown_forms_are_refused() {
        let body = encode(&rules()).expect("encodes");
        assert!(decode(3, &body).is_err());
        assert!(decode(0, &body).is_err());
        for length in (0..body.len()).filter(|length| *length != 55) {
            assert!(decode(2, &body[..length]).is_err(), "{length}");
        }
        let mut unknown = body;
        unknown[16] = 4;
        assert!(decode(2, &unknown).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(body in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = decode(1, &body);
            let _ = decode(2, &body);
        }
    }
}
