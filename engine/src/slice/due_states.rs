//! The states of a slice's due indexes, by bucket, in memory. Only the committer changes them, after it has committed.

use crate::error::EngineError;
use crate::format::due_record::DueState;
use crate::slice::tables::Tables;
use cairn_lmdb::ReadTxn;
use cairn_sync::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The state of each bucket's index, by the bucket's id. Buckets without an index are not in it.
pub(crate) type DueStateMap = Arc<BTreeMap<u64, DueState>>;

/// The states as of the last commit.
#[derive(Debug, Default)]
pub(crate) struct DueStates(Mutex<DueStateMap>);

impl DueStates {
    pub(crate) fn get(&self) -> DueStateMap {
        Arc::clone(&self.0.lock())
    }

    pub(crate) fn set(&self, states: DueStateMap) {
        *self.0.lock() = states;
    }
}

/// Reads the states of a snapshot.
///
/// # Errors
/// [`EngineError::Corrupt`] if a record has an unknown form.
pub(crate) fn read_due_states(txn: &ReadTxn<'_>, tables: &Tables) -> Result<DueStateMap, EngineError> {
    let mut states = BTreeMap::new();
    for item in txn.scan(tables.due_state, &[])? {
        let (key, record) = item?;
        let bucket = key.try_into().ok().map(u64::from_be_bytes);
        let state = bucket.zip(DueState::decode(record.version, record.body));
        let (bucket, state) =
            state.ok_or_else(|| EngineError::Corrupt("the state of a due index is invalid".to_owned()))?;
        states.insert(bucket, state);
    }
    Ok(Arc::new(states))
}
