//! The records of lifecycle rules in the environment `control`: rules, what they have done, and the trusted time.

use crate::error::EngineError;
use crate::format::codec::{self, SMALL_RECORD_VERSION};
use crate::format::lifecycle_record::{
    self, LIFECYCLE_COUNTS_VERSION, LIFECYCLE_RECORD_VERSION, decode_counts, encode_counts,
};
use crate::store::bucket_catalog::{BucketCatalog, Buckets};
use crate::types::bucket::Bucket;
use crate::types::lifecycle::{LifecycleRules, RuleId};
use crate::types::lifecycle_status::{RuleCounts, SavedLifecycle};
use cairn_lmdb::{ReadTxn, WriteTxn};
use cairn_model::Timestamp;
use std::collections::HashMap;

/// The time up to which the clock was trusted, in table `control`: u64 milliseconds since the Unix epoch.
const TRUSTED_TIME_KEY: &[u8] = b"lifecycle_trusted_time";

impl BucketCatalog {
    /// Reads the rules of a bucket while the store is being opened.
    pub(super) fn load_rules(&self, txn: &ReadTxn<'_>, bucket: &Bucket) -> Result<(), EngineError> {
        let Some(record) = txn.get(self.lifecycle_table, &bucket.id.to_be_bytes())? else { return Ok(()) };
        let rules = lifecycle_record::decode(record.version, record.body)?;
        let mut settings = (*bucket.settings()).clone();
        settings.lifecycle = Some(rules.into());
        bucket.set_settings(settings);
        Ok(())
    }

    /// Writes or removes the rules of a bucket. Counts of rules that end with this are removed.
    pub(super) fn put_rules(
        &self,
        txn: &mut WriteTxn<'_>,
        bucket: &Bucket,
        rules: Option<&LifecycleRules>,
    ) -> Result<(), EngineError> {
        let key = bucket.id.to_be_bytes();
        let before = bucket.settings();
        for ended in before.lifecycle.iter().flat_map(|before| before.iter()) {
            if rules.is_none_or(|rules| rules.get(ended.id).is_none()) {
                txn.remove(self.lifecycle_counts_table, &ended.id.0)?;
            }
        }
        match rules {
            Some(rules) => {
                let body = lifecycle_record::encode(rules)?;
                txn.put(self.lifecycle_table, &key, LIFECYCLE_RECORD_VERSION, &body, &[])?;
            }
            None => drop(txn.remove(self.lifecycle_table, &key)?),
        }
        Ok(())
    }

    /// Reads what the rules have done. A record that cannot be read is left out: counts are not worth a refusal to start.
    pub(crate) fn lifecycle_counts(&self) -> HashMap<RuleId, RuleCounts> {
        let read = || -> Result<HashMap<RuleId, RuleCounts>, EngineError> {
            let txn = self.environment.read()?;
            let mut counts = HashMap::new();
            for entry in txn.entries(self.lifecycle_counts_table, None)? {
                let entry = entry?;
                let found = entry.record.ok().and_then(|record| decode_counts(record.version, record.body));
                if let Some((id, found)) = entry.key.try_into().ok().map(RuleId).zip(found) {
                    counts.insert(id, found);
                }
            }
            Ok(counts)
        };
        read().unwrap_or_default()
    }

    /// Reads the time up to which the clock was trusted before the store was opened.
    pub(crate) fn lifecycle_trusted_time(&self) -> Option<Timestamp> {
        let txn = self.environment.read().ok()?;
        let record = txn.get(self.control_table, TRUSTED_TIME_KEY).ok()??;
        codec::decode_u64(record.body).map(Timestamp)
    }

    pub(super) fn save_lifecycle(
        &self,
        saved: &SavedLifecycle,
        buckets: &Buckets,
    ) -> Result<(), EngineError> {
        // A rule may have been removed in the meantime.
        let rules: Vec<_> = {
            let buckets = buckets.read();
            buckets.values().filter_map(|bucket| bucket.settings().lifecycle.clone()).collect()
        };
        let exists = |rule: RuleId| rules.iter().any(|rules| rules.get(rule).is_some());
        let mut txn = self.environment.write()?;
        if let Some(time) = saved.trusted_time {
            let body = time.0.to_le_bytes();
            txn.put(self.control_table, TRUSTED_TIME_KEY, SMALL_RECORD_VERSION, &body, &[])?;
        }
        for (rule, counts) in saved.counts.iter().filter(|(rule, _)| exists(*rule)) {
            let body = encode_counts(counts);
            txn.put(self.lifecycle_counts_table, &rule.0, LIFECYCLE_COUNTS_VERSION, &body, &[])?;
        }
        self.commit(txn)
    }
}
