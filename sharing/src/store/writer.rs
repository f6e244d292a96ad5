//! The writer thread: makes one change after the other, and writes counted downloads.
//!
//! On a full disk counts wait in memory.

use super::changes::Changes;
use super::environment::LinkStore;
use super::seal::TokenKey;
use super::state::LinkState;
use crate::limits::{CHANGES_WAITING_MAX, USAGE_INTERVAL};
use crate::policy::LinkPolicy;
use crate::schema::SCHEMA;
use crate::types::link::LinkKind;
use cairn_model::Clock;
use cairn_tables::{ChangeQueue, Next, StoreOpenError, Writer};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Opens the store and starts its writer thread. Blocks.
///
/// # Errors
/// [`StoreOpenError`]; nothing was changed.
pub(crate) fn open(
    folder: &Path,
    store: [u8; 16],
    master_key: &[u8],
    policy: LinkPolicy,
    clock: Arc<dyn Clock>,
) -> Result<(Arc<LinkState>, Writer<Changes>), StoreOpenError> {
    let key = TokenKey::derive(master_key, store);
    let opened = LinkStore::open(folder, store)?;
    let counts = opened.load()?;
    let shared = Arc::new(LinkState::new(opened, policy, key, clock, counts));
    let changes = Changes { shared: Arc::clone(&shared) };
    let writer =
        Writer::start("sharing-writer", &SCHEMA, CHANGES_WAITING_MAX, move |queue| run(changes, &queue))
            .map_err(|error| StoreOpenError::io(&SCHEMA, folder, error))?;
    Ok((shared, writer))
}

fn run(mut changes: Changes, queue: &ChangeQueue<Changes>) {
    let mut flushed = Instant::now();
    loop {
        match queue.next(USAGE_INTERVAL.saturating_sub(flushed.elapsed())) {
            Next::Change(change) => change(&mut changes),
            Next::TimedOut => {}
            Next::Closed => {
                while changes.flush_usage().unwrap_or(false) {}
                return;
            }
        }
        if flushed.elapsed() >= USAGE_INTERVAL {
            // After a failure, which was logged, the counts stay in memory.
            let has_more = changes.flush_usage().unwrap_or(false);
            flushed = if has_more { flushed } else { Instant::now() };
        }
        let shared = &changes.shared;
        if LinkKind::ALL.iter().any(|kind| shared.count(*kind) > 0) {
            shared.store.tables.restore_headroom();
        }
    }
}
