//! The records of lifecycle rules and of what they did (`control`).
//!
//! ```text
//! table             key                            body (integers little-endian)
//! lifecycle         u64 bucket id, big-endian      version 3: the rules, one after the other
//! lifecycle_counts  16 bytes id of the rule        version 2: 9 u64 counters in the order of `RuleCounts`
//!
//! rule, version 3
//! offset  size  what
//! 0       16    id
//! 16      1     flags: bit 0 enabled, 1 lone delete markers are removed at once; the others zero
//! 17      1     form in S3: 0 shortest, 1 empty, 2 prefix of the rule, 3 `And`, 4 `And` with an empty prefix
//! 18      4     expiration in days; 0: none
//! 22      4     expiration of non-current versions in days; 0: none
//! 26      4     number of newer non-current versions that are kept
//! 30      4     days after which unfinished uploads are aborted; 0: never
//! 34      8     creation time, milliseconds since the Unix epoch
//! 42      2     length p of the prefix
//! 44      p     prefix, UTF-8
//! 44+p    2     length i of the id in S3; 0: it has none
//! 46+p    i     id in S3, UTF-8
//! 46+p+i  2     length t of the tags
//! 48+p+i  t     tags (`codec.rs`)
//! ```
//! Rules of versions 1 and 2 had no form in S3, a zero in its place, and no days for uploads: everything that follows was four
//! bytes earlier. A rule of version 1 ended with the prefix: it had neither an id in S3 nor tags. Counts of version 1 lacked
//! the last counter.

use crate::format::codec::{Cursor, InvalidRecord, decode_tags, encode_tags};
use crate::limits::LIFECYCLE_RULES_MAX;
use crate::types::lifecycle::{FilterForm, LifecycleRule, LifecycleRules, RuleId};
use crate::types::lifecycle_status::RuleCounts;
use crate::types::tags::Tags;
use cairn_model::Timestamp;

/// Version byte of the rules of a bucket.
pub(crate) const LIFECYCLE_RECORD_VERSION: u8 = 3;
/// Version byte of the counts of a rule.
pub(crate) const LIFECYCLE_COUNTS_VERSION: u8 = 2;
/// Number of counters in version 1.
const COUNTERS_BEFORE: usize = 8;

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
        out.extend_from_slice(&[flags, rule.form.number()]);
        out.extend_from_slice(&rule.expiration_days.unwrap_or_default().to_le_bytes());
        out.extend_from_slice(&rule.noncurrent_days.unwrap_or_default().to_le_bytes());
        out.extend_from_slice(&rule.newer_noncurrent_versions.to_le_bytes());
        out.extend_from_slice(&rule.abort_uploads_days.unwrap_or_default().to_le_bytes());
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
    let [flags, form] = from.array()?;
    if flags & !FLAGS != 0 || (version <= 2 && form != 0) {
        return Err(InvalidRecord("some of its flags are unknown"));
    }
    let form = FilterForm::from_number(form).ok_or(InvalidRecord("its form in S3 is unknown"))?;
    let days = |number: u32| (number > 0).then_some(number);
    let (expiration_days, noncurrent_days) = (days(from.u32()?), days(from.u32()?));
    let newer_noncurrent_versions = from.u32()?;
    let abort_uploads_days = if version <= 2 { None } else { days(from.u32()?) };
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
        form,
        expiration_days,
        noncurrent_days,
        newer_noncurrent_versions,
        expired_delete_markers: flags & EXPIRED_DELETE_MARKERS != 0,
        abort_uploads_days,
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
    let mut numbers: Vec<u64> = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    match (version, numbers.len()) {
        (1, COUNTERS_BEFORE) => numbers.push(0),
        (LIFECYCLE_COUNTS_VERSION, _) => {}
        _ => return None,
    }
    Some(RuleCounts::of_counters(numbers.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{decode, decode_counts, encode, encode_counts};
    use crate::types::lifecycle::{FilterForm, LifecycleRule, LifecycleRules, RuleId};
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
            form: FilterForm::AndEmptyPrefix,
            expiration_days: Some(1),
            noncurrent_days: Some(2),
            newer_noncurrent_versions: 3,
            expired_delete_markers: true,
            abort_uploads_days: Some(5),
            is_enabled: true,
            created_at: Timestamp(4),
        };
        let least = LifecycleRule {
            prefix: String::new(),
            s3_id: None,
            tags: Tags::default(),
            form: FilterForm::Shortest,
            expiration_days: None,
            newer_noncurrent_versions: 0,
            expired_delete_markers: false,
            abort_uploads_days: None,
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
        expected.extend([3, 4, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
        expected.extend(b"a/");
        expected.extend(b"\x02\0id\x07\0\x01\0\x02\0kva");
        assert_eq!(body[..59], expected);
        assert_eq!(body[59 + 42..], [0; 6]);
        assert_eq!(decode(3, &body), Ok(rules()));
        let counts = RuleCounts {
            examined: 1,
            bytes_freed: 9,
            multipart_uploads_aborted: 10,
            ..RuleCounts::default()
        };
        let body = encode_counts(&counts);
        assert_eq!((body.len(), body[0], body[56], body[64]), (72, 1, 9, 10));
        assert_eq!(decode_counts(2, &body), Some(counts));
        assert_eq!(decode_counts(2, &body[8..]), None);
        assert_eq!(decode_counts(3, &body), None);
        let before = RuleCounts { multipart_uploads_aborted: 0, ..counts };
        assert_eq!(decode_counts(1, &body[..64]), Some(before), "version 1 had eight");
        assert_eq!(decode_counts(1, &body), None);
    }

    /// The golden bytes of version 2: rules did nothing to uploads, and had one form in S3.
    #[test]
    fn rules_of_version_2_are_read() {
        let mut body = vec![7; 16];
        body.extend([3, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
        body.extend(b"a/\x02\0id\x07\0\x01\0\x02\0kva");
        let [full, _] = rules().0.try_into().expect("two rules");
        let rule = LifecycleRule { form: FilterForm::Shortest, abort_uploads_days: None, ..full };
        assert_eq!(decode(2, &body), Ok(LifecycleRules(vec![rule])));
        assert!(decode(3, &body).is_err());
        body[17] = 1;
        assert!(decode(2, &body).is_err(), "it had no form");
    }

    /// The golden bytes of version 1: rules had neither an id in S3 nor tags.
    #[test]
    fn rules_of_version_1_are_read() {
        let mut body = vec![7; 16];
        body.extend([3, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
        body.extend(b"a/");
        let two = [&body[..], &body].concat();
        let [full, _] = rules().0.try_into().expect("two rules");
        let rule = LifecycleRule {
            s3_id: None,
            tags: Tags::default(),
            form: FilterForm::Shortest,
            abort_uploads_days: None,
            ..full
        };
        assert_eq!(decode(1, &two), Ok(LifecycleRules(vec![rule.clone(), rule])));
        assert!(decode(2, &two).is_err());
    }

    #[test]
    fn incomplete_records_and_unknown_forms_are_refused() {
        let body = encode(&rules()).expect("encodes");
        assert!(decode(4, &body).is_err());
        assert!(decode(0, &body).is_err());
        for length in (0..body.len()).filter(|length| *length != 59) {
            assert!(decode(3, &body[..length]).is_err(), "{length}");
        }
        for (at, value) in [(16, 4), (17, 5)] {
            let mut unknown = body.clone();
            unknown[at] = value;
            assert!(decode(3, &unknown).is_err(), "{at}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(body in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = decode(1, &body);
            let _ = decode(2, &body);
            let _ = decode(3, &body);
        }
    }
}
