//! Reads what is due in one role: a page from a snapshot.

use crate::error::EngineError;
use crate::format::due_record::DueKey;
use crate::format::keys;
use crate::format::object_record::{ObjectRecord, decode_tags_of};
use crate::limits::DUE_PAGE_ENTRIES;
use crate::slice::Slice;
use crate::slice::command::DueVersion;
use crate::slice::version_chain::{ChainedVersion, VersionChain};
use crate::types::bucket::Bucket;
use crate::types::lifecycle::{DayLength, LifecycleRules, RuleId, VersionRole};
use crate::types::lifecycle_status::RuleCounts;
use crate::types::tags::Tags;
use cairn_lmdb::ReadTxn;
use cairn_model::{ObjectKey, Timestamp};

/// A query for due versions.
#[derive(Clone, Copy)]
pub(super) struct DueQuery<'q> {
    pub(super) bucket: &'q Bucket,
    pub(super) rules: &'q LifecycleRules,
    pub(super) role: VersionRole,
    pub(super) day: DayLength,
    pub(super) now: Timestamp,
}

/// One page.
#[derive(Default)]
pub(super) struct DuePage {
    /// Versions that some rule considers due.
    pub(super) candidates: Vec<DueVersion>,
    /// Versions that were skipped because they are locked.
    pub(super) skipped: Vec<(RuleId, RuleCounts)>,
    /// Key of the last entry that was read. `None` at the end.
    pub(super) next: Option<Vec<u8>>,
}

/// Reads the entries after the key `after`, until `candidates_max` versions are found.
pub(super) fn read_due_page(
    slice: &Slice,
    query: &DueQuery<'_>,
    after: Option<&[u8]>,
    candidates_max: usize,
) -> Result<DuePage, EngineError> {
    let mut page = DuePage::default();
    let DueQuery { bucket, rules, role, day, now } = *query;
    let Some(latest) = rules.latest_due(role, now, day) else { return Ok(page) };
    let first = DueKey::before_all(bucket.id, role, Timestamp(0)).encode();
    let txn = slice.environment.read()?;
    let after = after.unwrap_or(&first);
    for (read, entry) in txn.entries(slice.tables.due, Some(after))?.enumerate() {
        let entry = entry?;
        let decoded = DueKey::decode(entry.key).filter(|key| (key.bucket, key.role) == (bucket.id, role));
        let Some(key) = decoded.filter(|key| key.since <= latest) else { return Ok(page) };
        if read >= DUE_PAGE_ENTRIES || page.candidates.len() >= candidates_max {
            return Ok(page);
        }
        page.next = Some(entry.key.to_vec());
        // Damaged entries are reported by an inspection.
        let Ok(record) = entry.record else { continue };
        let mut due = rules.due(record.body, (role, key.since), day, now).peekable();
        if due.peek().is_none() {
            continue;
        }
        // Only the record of the version has its tags.
        let depends_on_tags = due.all(|(_, rule)| !rule.tags.is_empty());
        let object = std::str::from_utf8(record.body).ok().and_then(|key| ObjectKey::parse(key).ok());
        let Some(object) = object else { continue };
        let judged = match role {
            VersionRole::Current if depends_on_tags => judge(&txn, slice, query, &object, key)?,
            VersionRole::Noncurrent => judge(&txn, slice, query, &object, key)?,
            VersionRole::Current | VersionRole::LoneMarker | VersionRole::UnfinishedUpload => Judgement::Due,
        };
        match judged {
            Judgement::Due => {
                page.candidates.push(DueVersion { role, since: key.since, version: key.version, key: object })
            }
            Judgement::Locked(rule) => {
                let counts = RuleCounts { examined: 1, skipped_locked: 1, ..RuleCounts::default() };
                page.skipped.push((rule, counts));
            }
            Judgement::Kept => {}
        }
    }
    page.next = None;
    Ok(page)
}

enum Judgement {
    Due,
    /// A rule considers it due, but it is locked.
    Locked(RuleId),
    /// It is one of the newest non-current versions that all rules keep, lacks tags, or is gone.
    Kept,
}

/// Judges a version by its record, so that versions that stay for long do not occupy the committer in every run.
fn judge(
    txn: &ReadTxn<'_>,
    slice: &Slice,
    query: &DueQuery<'_>,
    object: &ObjectKey,
    entry: DueKey,
) -> Result<Judgement, EngineError> {
    let Some(versions) = keys::versions_of(entry.bucket, object.as_bytes()) else {
        return Ok(Judgement::Kept);
    };
    let key = keys::with_sequence(&versions, entry.version.0);
    let Some(stored) = txn.get(slice.tables.objects, &key)? else { return Ok(Judgement::Kept) };
    let version = ChainedVersion::decode(&key, stored)?;
    let chain = VersionChain { records: txn, objects: slice.tables.objects, versions: &versions };
    let role = (entry.role, entry.since);
    let tags = match query.rules.have_tags() {
        true => decode_tags_of(stored.version, stored.body)?,
        false => Tags::default(),
    };
    let moment = (query.day, query.now);
    let Some(rule) = chain.acting_rule(query.rules, &version, &tags, role, moment)? else {
        return Ok(Judgement::Kept);
    };
    if entry.role == VersionRole::Current {
        return Ok(Judgement::Due);
    }
    let lock = ObjectRecord::decode(stored.version, stored.body)?.info.lock;
    Ok(if lock.forbids_removal(query.now, false) { Judgement::Locked(rule) } else { Judgement::Due })
}
