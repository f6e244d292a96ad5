//! The versions of a key in order, as a transaction sees them.

use crate::error::EngineError;
use crate::format::keys;
use crate::format::object_record::RecordHead;
use crate::types::lifecycle::{DayLength, LifecycleRule, LifecycleRules, RuleId, VersionRole};
use crate::types::tags::Tags;
use cairn_lmdb::{Error, ReadTxn, Record, Table, WriteTxn};
use cairn_model::{Timestamp, VersionId, usize_of};

/// A key with its record, if there is one.
type Neighbour<'t> = Result<Option<(&'t [u8], Record<'t>)>, Error>;

/// Records in order of their keys: of a snapshot, or of a transaction in progress.
pub(crate) trait Records {
    fn at_or_after(&self, table: Table, key: &[u8]) -> Neighbour<'_>;
    fn before(&self, table: Table, key: &[u8]) -> Neighbour<'_>;
}

impl Records for ReadTxn<'_> {
    fn at_or_after(&self, table: Table, key: &[u8]) -> Neighbour<'_> {
        self.first_at_or_after(table, key)
    }

    fn before(&self, table: Table, key: &[u8]) -> Neighbour<'_> {
        self.last_before(table, key)
    }
}

impl Records for WriteTxn<'_> {
    fn at_or_after(&self, table: Table, key: &[u8]) -> Neighbour<'_> {
        self.first_at_or_after(table, key)
    }

    fn before(&self, table: Table, key: &[u8]) -> Neighbour<'_> {
        self.last_before(table, key)
    }
}

/// One version of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ChainedVersion {
    /// Key in the table of objects.
    pub(crate) key: Vec<u8>,
    pub(crate) version: VersionId,
    pub(crate) last_modified: Timestamp,
    pub(crate) is_delete_marker: bool,
}

impl ChainedVersion {
    pub(crate) fn decode(key: &[u8], record: Record<'_>) -> Result<Self, EngineError> {
        let head = RecordHead::decode(record.version, record.body)?;
        Ok(Self {
            key: key.to_vec(),
            version: VersionId(head.sequence),
            last_modified: head.last_modified,
            is_delete_marker: head.is_delete_marker,
        })
    }
}

/// The versions of one key.
pub(crate) struct VersionChain<'t, R> {
    pub(crate) records: &'t R,
    pub(crate) objects: Table,
    /// Common prefix of the encoded keys of the key's versions.
    pub(crate) versions: &'t [u8],
}

impl<R: Records> VersionChain<'_, R> {
    fn of_key(&self, found: Neighbour<'_>) -> Result<Option<ChainedVersion>, EngineError> {
        let found = found?.filter(|(key, _)| key.starts_with(self.versions));
        found.map(|(key, record)| ChainedVersion::decode(key, record)).transpose()
    }

    /// Returns the newest version.
    pub(crate) fn newest(&self) -> Result<Option<ChainedVersion>, EngineError> {
        self.of_key(self.records.at_or_after(self.objects, self.versions))
    }

    /// Returns the next newer version than the one with this key in the table of objects.
    pub(crate) fn newer_than(&self, key: &[u8]) -> Result<Option<ChainedVersion>, EngineError> {
        self.of_key(self.records.before(self.objects, key))
    }

    /// Returns the next older version than the one with this key in the table of objects.
    pub(crate) fn older_than(&self, key: &[u8]) -> Result<Option<ChainedVersion>, EngineError> {
        self.of_key(self.records.at_or_after(self.objects, &[key, &[0]].concat()))
    }

    /// Returns a version's lifecycle role and its start time; `None` if no rule can apply.
    pub(crate) fn role_of(
        &self,
        version: &ChainedVersion,
    ) -> Result<Option<(VersionRole, Timestamp)>, EngineError> {
        let newer = self.newer_than(&version.key)?;
        self.role_below(newer.as_ref(), version)
    }

    /// Does the same as [`VersionChain::role_of`], given the next newer version.
    pub(crate) fn role_below(
        &self,
        newer: Option<&ChainedVersion>,
        version: &ChainedVersion,
    ) -> Result<Option<(VersionRole, Timestamp)>, EngineError> {
        if let Some(newer) = newer {
            return Ok(Some((VersionRole::Noncurrent, newer.last_modified)));
        }
        if !version.is_delete_marker {
            return Ok(Some((VersionRole::Current, version.last_modified)));
        }
        let is_alone = self.older_than(&version.key)?.is_none();
        Ok(is_alone.then_some((VersionRole::LoneMarker, version.last_modified)))
    }

    /// Counts the non-current versions that are newer than the one with this key, up to a limit.
    pub(crate) fn newer_noncurrent(&self, key: &[u8], limit: usize) -> Result<usize, EngineError> {
        let Some(mut newest) = self.newest()?.filter(|newest| newest.key != key) else { return Ok(0) };
        let mut count = 0;
        while count < limit {
            match self.older_than(&newest.key)? {
                Some(older) if older.key.as_slice() < key => newest = older,
                _ => break,
            }
            count += 1;
        }
        Ok(count)
    }

    /// Returns the rule that removes a version with this role and these tags at `now`: of those that are due, the one that
    /// was due first.
    pub(crate) fn acting_rule(
        &self,
        rules: &LifecycleRules,
        version: &ChainedVersion,
        tags: &Tags,
        role: (VersionRole, Timestamp),
        (day, now): (DayLength, Timestamp),
    ) -> Result<Option<RuleId>, EngineError> {
        let Some((_, key, _)) = keys::decode(&version.key) else { return Ok(None) };
        let mut due: Vec<_> =
            rules.due(&key, role, day, now).filter(|(_, rule)| rule.selects(tags)).collect();
        let kept = |rule: &LifecycleRule| usize_of(rule.newer_noncurrent_versions.into());
        let kept_max = due.iter().map(|(_, rule)| kept(rule)).max().unwrap_or_default();
        if role.0 == VersionRole::Noncurrent && kept_max > 0 {
            let newer = self.newer_noncurrent(&version.key, kept_max)?;
            due.retain(|(_, rule)| newer >= kept(rule));
        }
        // The first of several with the same time.
        Ok(due.iter().min_by_key(|(due, _)| *due).map(|(_, rule)| rule.id))
    }
}
