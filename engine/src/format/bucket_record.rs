//! The record of a bucket in the bucket catalog: its fixed facts and its settings.
//!
//! ```text
//! body, version 2 (integers little-endian)
//! offset  size  what
//! 0       8     id
//! 8       8     creation, milliseconds since the Unix epoch
//! 16      1     versioning: 0 never, 1 enabled, 2 suspended
//! 17      1     flags: bit 0 object lock, 1 default retention, 2 quota of bytes, 3 quota of objects, 4 CORS rules, 5 tags,
//!               6 location, 7 further flags
//! 18      1     mode of the default retention: 0 governance, 1 compliance
//! 19      1     its unit: 0 days, 1 years
//! 20      4     its number of units
//! 24      8     quota of bytes
//! 32      8     quota of objects
//! 40      2     only with tags: their length t
//! 42      t     only with tags: the tags (`codec.rs`)
//! ...     1     only with a location: its length l
//! ...     l     only with a location: the location, ASCII
//! ...     1     only with further flags: bit 0 encryption, 1 its bucket key, 2 it blocks keys of clients, 3 public access
//! ...           only with public access:
//!         1     bit 0: the block was set, then 1 ACLs, 2 ignored ACLs, 3 policies, 4 rules; 5 a policy document
//!         2     number of rules, each:
//!         8       its creation, milliseconds since the Unix epoch
//!         1       whether the prefix may be listed
//!         2       length p of the prefix, 1 length c of the name of who made it
//!         p+c     prefix and name, UTF-8
//!         2     only with a policy document: its length d
//!         d     only with a policy document: the document, UTF-8
//! ...           the CORS rules
//! ```
//! Fields whose flag is not set are zero; tags, location and further flags are absent then. Version 1 had the first 16 bytes
//! and a zero.

use crate::format::codec::{Cursor, decode_tags, encode_tags, mode_number, mode_of};
use crate::types::bucket::{Bucket, BucketEncryption, BucketSettings, Quota, Versioning};
use crate::types::object_lock::{DefaultRetention, RetentionPeriod};
use crate::types::public_access::{PublicAccess, PublicAccessBlock, PublicRule};
use crate::types::tags::Tags;
use cairn_lmdb::Record;
use cairn_model::{BucketName, Timestamp};
use std::sync::Arc;

/// Version byte of the current form.
pub(crate) const BUCKET_RECORD_VERSION: u8 = 2;
/// Bytes before the tags and the CORS rules.
const FIXED_BYTES: usize = 40;

const OBJECT_LOCK: u8 = 1;
const DEFAULT_RETENTION: u8 = 1 << 1;
const QUOTA_BYTES: u8 = 1 << 2;
const QUOTA_OBJECTS: u8 = 1 << 3;
const CORS: u8 = 1 << 4;
const TAGS: u8 = 1 << 5;
const LOCATION: u8 = 1 << 6;
const FURTHER: u8 = 1 << 7;
/// Of the further flags.
const ENCRYPTION: u8 = 1;
const BUCKET_KEY: u8 = 1 << 1;
const BLOCKS_CLIENT_KEYS: u8 = 1 << 2;
const PUBLIC_ACCESS: u8 = 1 << 3;
/// The bit of the policy document, in the flags of public access.
const POLICY_BIT: u8 = 5;

/// Encodes the body of the record of a bucket with these settings.
pub(crate) fn encode(bucket: &Bucket, settings: &BucketSettings) -> Vec<u8> {
    let BucketSettings {
        versioning,
        object_lock,
        default_retention,
        cors,
        tags,
        quota,
        location,
        encryption,
        public_access,
        lifecycle: _,
    } = settings;
    let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    let versioning = match versioning {
        Versioning::Unversioned => 0,
        Versioning::Enabled => 1,
        Versioning::Suspended => 2,
    };
    let flags = flag(*object_lock, OBJECT_LOCK)
        | flag(default_retention.is_some(), DEFAULT_RETENTION)
        | flag(quota.bytes.is_some(), QUOTA_BYTES)
        | flag(quota.objects.is_some(), QUOTA_OBJECTS)
        | flag(cors.is_some(), CORS)
        | flag(!tags.is_empty(), TAGS)
        | flag(location.is_some(), LOCATION)
        | flag(encryption.is_some() || public_access.is_some(), FURTHER);
    let (mode, unit, amount) = default_retention.map_or((0, 0, 0), |retention| {
        let (unit, amount) = match retention.period {
            RetentionPeriod::Days(days) => (0, days),
            RetentionPeriod::Years(years) => (1, years),
        };
        (mode_number(retention.mode), unit, amount)
    });
    let cors = cors.as_deref().unwrap_or_default();
    let mut body = Vec::with_capacity(FIXED_BYTES + cors.len());
    body.extend_from_slice(&bucket.id.to_le_bytes());
    body.extend_from_slice(&bucket.created_at.0.to_le_bytes());
    body.extend_from_slice(&[versioning, flags, mode, unit]);
    body.extend_from_slice(&amount.to_le_bytes());
    body.extend_from_slice(&quota.bytes.unwrap_or(0).to_le_bytes());
    body.extend_from_slice(&quota.objects.unwrap_or(0).to_le_bytes());
    assert_eq!(body.len(), FIXED_BYTES, "the fields before the tags have a fixed length");
    if !tags.is_empty() {
        let tags = encode_tags(tags);
        let length = u16::try_from(tags.len()).expect("the limits of tags keep them short");
        body.extend_from_slice(&length.to_le_bytes());
        body.extend_from_slice(&tags);
    }
    if let Some(location) = location {
        body.push(u8::try_from(location.len()).expect("a location is short"));
        body.extend_from_slice(location.as_bytes());
    }
    if flags & FURTHER != 0 {
        let encryption = encryption.map_or(0, |BucketEncryption { bucket_key, blocks_client_keys }| {
            ENCRYPTION | flag(bucket_key, BUCKET_KEY) | flag(blocks_client_keys, BLOCKS_CLIENT_KEYS)
        });
        body.push(encryption | flag(public_access.is_some(), PUBLIC_ACCESS));
    }
    if let Some(access) = public_access {
        encode_public_access(&mut body, access);
    }
    body.extend_from_slice(cors);
    body
}

fn encode_public_access(body: &mut Vec<u8>, access: &PublicAccess) {
    let PublicAccess { rules, block, policy } = access;
    let block = block.map_or([false; 5], |block| {
        let PublicAccessBlock {
            block_public_acls,
            ignore_public_acls,
            block_public_policy,
            restrict_public_buckets,
        } = block;
        [true, block_public_acls, ignore_public_acls, block_public_policy, restrict_public_buckets]
    });
    let block = block.iter().rev().fold(0, |bits, bit| bits << 1 | u8::from(*bit));
    body.push(block | u8::from(policy.is_some()) << POLICY_BIT);
    body.extend_from_slice(&u16::try_from(rules.len()).expect("rules are limited").to_le_bytes());
    for PublicRule { prefix, list, created_at, created_by } in rules {
        body.extend_from_slice(&created_at.0.to_le_bytes());
        body.push(u8::from(*list));
        body.extend_from_slice(&u16::try_from(prefix.len()).expect("a prefix is short").to_le_bytes());
        body.push(u8::try_from(created_by.len()).expect("names are cut"));
        body.extend_from_slice(prefix.as_bytes());
        body.extend_from_slice(created_by.as_bytes());
    }
    if let Some(policy) = policy {
        let length = u16::try_from(policy.len()).expect("the limit of policies keeps them short");
        body.extend_from_slice(&length.to_le_bytes());
        body.extend_from_slice(policy.as_bytes());
    }
}

fn decode_public_access(rest: &mut Cursor<'_>) -> Option<PublicAccess> {
    let bits = rest.u8().ok()?;
    let has = |bit: u8| bits >> bit & 1 == 1;
    let of_block = bits & !(1 << POLICY_BIT);
    if bits >> (POLICY_BIT + 1) != 0 || (!has(0) && of_block != 0) {
        return None;
    }
    let block = has(0).then_some(PublicAccessBlock {
        block_public_acls: has(1),
        ignore_public_acls: has(2),
        block_public_policy: has(3),
        restrict_public_buckets: has(4),
    });
    let mut rules = Vec::new();
    for _ in 0..rest.u16().ok()? {
        let created_at = Timestamp(rest.u64().ok()?);
        let list = match rest.u8().ok()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let (prefix, name) = (rest.u16().ok()?, rest.u8().ok()?);
        let mut text = |length| std::str::from_utf8(rest.bytes(length).ok()?).ok().map(Box::from);
        rules.push(PublicRule {
            prefix: text(prefix.into())?,
            list,
            created_at,
            created_by: text(name.into())?,
        });
    }
    let policy = if has(POLICY_BIT) {
        let length = rest.u16().ok()?;
        Some(std::str::from_utf8(rest.bytes(length.into()).ok()?).ok()?.into())
    } else {
        None
    };
    Some(PublicAccess { rules, block, policy }).filter(|access| *access != PublicAccess::default())
}

/// Decodes the record of a bucket. Returns `None` if its form is unknown.
pub(crate) fn decode(key: &[u8], record: &Record<'_>) -> Option<Bucket> {
    let name = BucketName::parse(std::str::from_utf8(key).ok()?).ok()?;
    let (id, rest) = record.body.split_first_chunk::<8>()?;
    let (created_at, rest) = rest.split_first_chunk::<8>()?;
    let settings = match (record.version, rest) {
        (1, [0]) => BucketSettings::default(),
        (BUCKET_RECORD_VERSION, rest) => decode_settings(rest)?,
        _ => return None,
    };
    let created_at = Timestamp(u64::from_le_bytes(*created_at));
    Some(Bucket::new(u64::from_le_bytes(*id), name, created_at, settings))
}

fn decode_settings(rest: &[u8]) -> Option<BucketSettings> {
    let ([versioning, flags, mode, unit], rest) = rest.split_first_chunk::<4>()?;
    let (amount, rest) = rest.split_first_chunk::<4>()?;
    let (bytes, rest) = rest.split_first_chunk::<8>()?;
    let (objects, rest) = rest.split_first_chunk::<8>()?;
    let has = |flag: u8| flags & flag != 0;
    let mut rest = Cursor(rest);
    let tags = if has(TAGS) {
        let length = rest.u16().ok()?;
        decode_tags(rest.bytes(length.into()).ok()?).ok().filter(|tags| !tags.is_empty())?
    } else {
        Tags::default()
    };
    let location = if has(LOCATION) {
        let [length] = rest.bytes(1).ok()? else { return None };
        Some(std::str::from_utf8(rest.bytes((*length).into()).ok()?).ok()?.into())
    } else {
        None
    };
    let further = if has(FURTHER) { rest.u8().ok().filter(|further| *further != 0)? } else { 0 };
    let known = ENCRYPTION | BUCKET_KEY | BLOCKS_CLIENT_KEYS | PUBLIC_ACCESS;
    let needs_encryption = further & (BUCKET_KEY | BLOCKS_CLIENT_KEYS) != 0;
    if further & !known != 0 || (needs_encryption && further & ENCRYPTION == 0) {
        return None;
    }
    let encryption = (further & ENCRYPTION != 0).then_some(BucketEncryption {
        bucket_key: further & BUCKET_KEY != 0,
        blocks_client_keys: further & BLOCKS_CLIENT_KEYS != 0,
    });
    let public_access =
        if further & PUBLIC_ACCESS != 0 { Some(Arc::new(decode_public_access(&mut rest)?)) } else { None };
    let rules = rest.0;
    if !has(CORS) && !rules.is_empty() {
        return None;
    }
    let amount = u32::from_le_bytes(*amount);
    let retention = || {
        let period = match unit {
            0 => RetentionPeriod::Days(amount),
            1 => RetentionPeriod::Years(amount),
            _ => return None,
        };
        Some(DefaultRetention { mode: mode_of(*mode)?, period })
    };
    Some(BucketSettings {
        versioning: match versioning {
            0 => Versioning::Unversioned,
            1 => Versioning::Enabled,
            2 => Versioning::Suspended,
            _ => return None,
        },
        object_lock: has(OBJECT_LOCK),
        default_retention: if has(DEFAULT_RETENTION) { Some(retention()?) } else { None },
        cors: has(CORS).then(|| rules.into()),
        tags,
        location,
        encryption,
        public_access,
        quota: Quota {
            bytes: has(QUOTA_BYTES).then_some(u64::from_le_bytes(*bytes)),
            objects: has(QUOTA_OBJECTS).then_some(u64::from_le_bytes(*objects)),
        },
        lifecycle: None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Arc, BUCKET_RECORD_VERSION, PublicAccess, PublicAccessBlock, TAGS, decode, encode};
    use crate::types::bucket::{Bucket, BucketEncryption, BucketSettings, Quota, Versioning};
    use crate::types::object_lock::{DefaultRetention, RetentionMode, RetentionPeriod};
    use crate::types::public_access::NewPublicRules;
    use crate::types::tags::Tags;
    use cairn_lmdb::Record;
    use cairn_model::{BucketName, Timestamp};

    const KEY: &[u8] = b"photos";

    fn full() -> BucketSettings {
        let period = RetentionPeriod::Years(7);
        BucketSettings {
            versioning: Versioning::Suspended,
            object_lock: true,
            default_retention: Some(DefaultRetention { mode: RetentionMode::Compliance, period }),
            cors: Some((*b"rules").into()),
            tags: Tags::of_record(vec![("k".into(), "v".into())]),
            quota: Quota { bytes: Some(0), objects: Some(9) },
            location: Some("eu-west-1".into()),
            encryption: None,
            public_access: None,
            lifecycle: None,
        }
    }

    fn public_access() -> PublicAccess {
        let block = PublicAccessBlock { block_public_policy: true, ..PublicAccessBlock::default() };
        let prefixes = vec![("a/".into(), false), ("".into(), true)];
        let new =
            NewPublicRules { prefixes, created_at: Timestamp(5), created_by: "me".into(), policy: None };
        let rules = new.rules(&[]);
        PublicAccess { rules, block: Some(block), policy: Some("{}".into()) }
    }

    fn bucket(settings: BucketSettings) -> Bucket {
        Bucket::new(3, BucketName::parse("photos").expect("a name"), Timestamp(4), settings)
    }

    /// Golden bytes: a change here is a change of the on-disk format.
    #[test]
    fn encoded_bytes_do_not_change() {
        let body = encode(&bucket(full()), &full());
        let mut expected =
            vec![3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0b111_1111, 1, 1, 7, 0, 0, 0];
        expected.extend([0; 8]);
        expected.extend([9, 0, 0, 0, 0, 0, 0, 0]);
        expected.extend(b"\x06\0\x01\0\x01\0kv\x09eu-west-1rules");
        assert_eq!(body, expected);

        let encryption = BucketEncryption { bucket_key: true, blocks_client_keys: true };
        let body = encode(&bucket(full()), &BucketSettings { encryption: Some(encryption), ..full() });
        expected[17] = 0b1111_1111;
        let rules_at = expected.len() - b"rules".len();
        expected.insert(rules_at, 0b111);
        assert_eq!(body, expected);

        let public_access = Some(Arc::new(public_access()));
        let settings = BucketSettings { encryption: Some(encryption), public_access, ..full() };
        let rules_at = expected.len() - b"rules".len();
        expected[rules_at - 1] = 0b1111;
        expected.splice(
            rules_at..rules_at,
            *b"\x29\x02\0\x05\0\0\0\0\0\0\0\0\x02\0\x02a/me\x05\0\0\0\0\0\0\0\x01\0\0\x02me\x02\0{}",
        );
        assert_eq!(encode(&bucket(settings.clone()), &settings), expected);
    }

    #[test]
    fn records_decode_to_what_was_encoded() {
        let days = DefaultRetention { mode: RetentionMode::Governance, period: RetentionPeriod::Days(1) };
        let locked = BucketSettings { default_retention: Some(days), ..full() };
        let encrypted = |bucket_key, blocks_client_keys| {
            let encryption = Some(BucketEncryption { bucket_key, blocks_client_keys });
            BucketSettings { encryption, ..BucketSettings::default() }
        };
        let encrypted = [encrypted(false, false), encrypted(true, false), encrypted(false, true)];
        let public = |access| BucketSettings { public_access: Some(Arc::new(access)), ..full() };
        let blocked = PublicAccess { block: Some(PublicAccessBlock::default()), ..PublicAccess::default() };
        let others = [BucketSettings::default(), full(), locked, public(public_access()), public(blocked)];
        for settings in others.into_iter().chain(encrypted) {
            let body = encode(&bucket(settings.clone()), &settings);
            let record = Record { version: BUCKET_RECORD_VERSION, body: &body, tail: &[] };
            let decoded = decode(KEY, &record).expect("decodes");
            assert_eq!((decoded.id, decoded.created_at), (3, Timestamp(4)));
            assert_eq!(*decoded.settings(), settings);
        }
    }

    #[test]
    fn records_of_version_1_had_no_settings() {
        let mut body = [0; 17];
        body[0] = 3;
        let record = Record { version: 1, body: &body, tail: &[] };
        assert_eq!(*decode(KEY, &record).expect("decodes").settings(), BucketSettings::default());
    }

    #[test]
    fn unknown_values_flags_and_versions_are_refused() {
        let body = encode(&bucket(full()), &BucketSettings::default());
        for (at, value) in [(16, 3), (17, 1 << 6), (17, 1 << 7), (17, TAGS)] {
            let mut bad = body.clone();
            bad[at] = value;
            let record = Record { version: BUCKET_RECORD_VERSION, body: &bad, tail: &[] };
            assert!(decode(KEY, &record).is_none(), "{at}");
        }
        for further in [0, 0b110, 0b1000, 0b1_0001] {
            let mut bad = [&body[..], &[further]].concat();
            bad[17] = 1 << 7;
            let record = Record { version: BUCKET_RECORD_VERSION, body: &bad, tail: &[] };
            assert!(decode(KEY, &record).is_none(), "{further}");
        }
        assert!(decode(KEY, &Record { version: 3, body: &body, tail: &[] }).is_none());
        assert!(
            decode(KEY, &Record { version: BUCKET_RECORD_VERSION, body: &body[..39], tail: &[] }).is_none()
        );
    }
}
