//! Test fixture: a directory without its thread, and a clock that tests set.

use super::changes::Changes;
use super::rights_cache::RightsCache;
use super::seal::SecretKey;
use super::shared::Shared;
use super::state::State;
use super::store::DirectoryStore;
use crate::id::AccountId;
use cairn_fixtures::ManualClock;
use std::sync::Arc;

/// The initial time of the clock.
pub(super) const NOW: u64 = 1_795_237_200_000;

pub(super) struct Fixture {
    _folder: tempfile::TempDir,
    pub(super) clock: Arc<ManualClock>,
    pub(super) changes: Changes,
    pub(super) account: AccountId,
}

impl Fixture {
    /// Makes a directory with one account.
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("unmade"), b"").expect("a file");
        let clock = ManualClock::at(NOW);
        let store = DirectoryStore::open(folder.path(), [7; 16]).expect("opens");
        let sealing = SecretKey::derive(b"a master key", [7; 16]);
        let shared = Shared::new(store, State::default(), sealing, clock.clone(), "root".to_owned());
        let mut changes = Changes::new(Arc::new(shared), RightsCache::default());
        let (account, _) = changes.create_account("web", String::new(), None).expect("an account");
        Self { _folder: folder, clock, changes, account: account.id }
    }
}
