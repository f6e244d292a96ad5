//! Tests: records that the maintenance deletes or keeps when the clock moves.

use super::super::limits::{EXPIRED_KEPT_MILLIS, EXPIRED_PER_ACCOUNT_MAX};
use super::super::testing::{Fixture, NOW};
use super::Maintenance;
use crate::role::Role;
use cairn_model::{Clock, Timestamp};

const YEAR: u64 = 365 * 86_400_000;

/// A directory with its maintenance.
struct Maintained {
    directory: Fixture,
    maintenance: Maintenance,
}

impl Maintained {
    fn new() -> Self {
        let directory = Fixture::new();
        let maintenance = Maintenance::new(&directory.changes);
        Self { directory, maintenance }
    }

    /// Sets the clock and runs the maintenance. Returns the number of credentials and tokens that are left.
    fn run_at(&mut self, now: u64) -> (usize, usize) {
        self.directory.clock.set(now);
        self.maintenance.run(&mut self.directory.changes);
        let state = self.directory.changes.shared.state();
        (state.accounts[&self.directory.account].credentials.len(), state.tokens.len())
    }

    fn add_temporary(&mut self, seconds: u64) {
        self.directory.changes.add_credential(self.directory.account, Some(seconds), None).expect("made");
    }
}

/// Regression: everything that had expired by the clock of that minute was deleted. A clock that jumped ahead and was corrected
/// at once had permanently deleted every temporary credential and token.
#[test]
fn expired_entries_are_deleted_a_day_later_not_by_clock_jumps() {
    let mut fixture = Maintained::new();
    fixture.add_temporary(600);
    fixture.directory.changes.create_token("ops", Role::Auditor, Some(600)).expect("made");
    assert_eq!(fixture.run_at(NOW + YEAR), (2, 1));
    assert_eq!(fixture.run_at(NOW + 1000), (2, 1), "corrected");
    assert_eq!(fixture.run_at(NOW + 600_000), (2, 1), "expired");
    assert_eq!(fixture.run_at(NOW + YEAR), (1, 0), "seen as expired for more than a day");
    let mut fixture = Maintained::new();
    fixture.add_temporary(600);
    assert_eq!(fixture.run_at(NOW + 600_000), (2, 0));
    assert_eq!(fixture.run_at(NOW + 600_000 + EXPIRED_KEPT_MILLIS - 1), (2, 0));
    assert_eq!(fixture.run_at(NOW + 600_000 + EXPIRED_KEPT_MILLIS), (1, 0));
}

/// Expired credentials must not pile up where many with a short lifetime are created.
#[test]
fn surplus_expired_credentials_are_deleted_at_once() {
    let mut fixture = Maintained::new();
    for seconds in [60, 120] {
        for _ in 0..EXPIRED_PER_ACCOUNT_MAX / 2 + 10 {
            fixture.add_temporary(seconds);
        }
        let now = fixture.directory.clock.now().0;
        fixture.directory.clock.set(now + seconds * 1000);
    }
    let now = fixture.directory.clock.now().0;
    assert_eq!(fixture.run_at(now), (1 + EXPIRED_PER_ACCOUNT_MAX, 0));
    let state = fixture.directory.changes.shared.state();
    let left = state.accounts[&fixture.directory.account].credentials.values();
    let early = left.filter(|credential| credential.expires_at == Some(Timestamp(NOW + 60_000))).count();
    assert_eq!(early, EXPIRED_PER_ACCOUNT_MAX / 2 - 10, "those that expired first are deleted");
}

/// Regression: setting the clock back made expired entries valid again. When only the highest time decided, entries created
/// afterwards were expired from the start.
#[test]
fn setting_the_clock_back_revives_nothing_and_new_entries_are_valid() {
    let mut fixture = Maintained::new();
    let old = fixture.directory.changes.create_token("old", Role::Auditor, Some(600)).expect("made");
    fixture.run_at(NOW + 3_600_000);
    fixture.run_at(NOW);
    let new = fixture.directory.changes.create_token("new", Role::Auditor, Some(600)).expect("made");
    let state = fixture.directory.changes.shared.state();
    assert!(state.tokens[&old.info.id].marked_expired && !state.tokens[&new.info.id].marked_expired);
    let expiry_time = fixture.directory.changes.shared.expiry_time(Timestamp(NOW));
    assert!(!fixture.directory.changes.shared.has_expired(new.info.expires_at, expiry_time));
}
