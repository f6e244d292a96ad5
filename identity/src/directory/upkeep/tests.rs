//! What an upkeep removes, and what it must not, by a clock that is set.

use super::super::limits::{EXPIRED_KEPT_MILLIS, EXPIRED_PER_ACCOUNT_MAX};
use super::super::testing::{NOW, Place};
use super::Upkeep;
use crate::role::Role;
use cairn_model::{Clock, Timestamp};

const YEAR: u64 = 365 * 86_400_000;

/// A directory and its upkeep.
struct Kept {
    place: Place,
    upkeep: Upkeep,
}

impl Kept {
    fn new() -> Self {
        let place = Place::new();
        let upkeep = Upkeep::new(&place.changes);
        Self { place, upkeep }
    }

    /// Sets the clock and runs an upkeep; how many credentials and tokens are there then.
    fn at(&mut self, now: u64) -> (usize, usize) {
        self.place.clock.set(now);
        self.upkeep.run(&mut self.place.changes);
        let state = self.place.changes.shared.state();
        (state.accounts[&self.place.account].credentials.len(), state.tokens.len())
    }

    fn add_temporary(&mut self, seconds: u64) {
        self.place.changes.add_credential(self.place.account, Some(seconds)).expect("made");
    }
}

/// An upkeep removed what had expired by the clock of that minute: one that jumped ahead, and was put right at once, had
/// removed every temporary credential and token for good.
#[test]
fn what_expired_is_removed_a_day_later_and_not_by_a_jump_of_the_clock() {
    let mut kept = Kept::new();
    kept.add_temporary(600);
    kept.place.changes.create_token("ops", Role::Auditor, Some(600)).expect("made");
    assert_eq!(kept.at(NOW + YEAR), (2, 1));
    assert_eq!(kept.at(NOW + 1000), (2, 1), "put right");
    assert_eq!(kept.at(NOW + 600_000), (2, 1), "expired");
    assert_eq!(kept.at(NOW + YEAR), (1, 0), "seen as expired for more than a day");
    let mut kept = Kept::new();
    kept.add_temporary(600);
    assert_eq!(kept.at(NOW + 600_000), (2, 0));
    assert_eq!(kept.at(NOW + 600_000 + EXPIRED_KEPT_MILLIS - 1), (2, 0));
    assert_eq!(kept.at(NOW + 600_000 + EXPIRED_KEPT_MILLIS), (1, 0));
}

/// Those that are kept for a day must not pile up where many short ones are made.
#[test]
fn more_expired_credentials_than_are_kept_are_removed_at_once() {
    let mut kept = Kept::new();
    for seconds in [60, 120] {
        for _ in 0..EXPIRED_PER_ACCOUNT_MAX / 2 + 10 {
            kept.add_temporary(seconds);
        }
        let now = kept.place.clock.now().0;
        kept.place.clock.set(now + seconds * 1000);
    }
    let now = kept.place.clock.now().0;
    assert_eq!(kept.at(now), (1 + EXPIRED_PER_ACCOUNT_MAX, 0));
    let state = kept.place.changes.shared.state();
    let left = state.accounts[&kept.place.account].credentials.values();
    let early = left.filter(|credential| credential.expires_at == Some(Timestamp(NOW + 60_000))).count();
    assert_eq!(early, EXPIRED_PER_ACCOUNT_MAX / 2 - 10, "the longest dead went");
}

/// A set-back clock made alive again what had died; and when the highest time alone decided, whatever was made afterwards was
/// born dead.
#[test]
fn a_clock_that_is_set_back_revives_nothing_and_lets_new_ones_live() {
    let mut kept = Kept::new();
    let old = kept.place.changes.create_token("old", Role::Auditor, Some(600)).expect("made");
    kept.at(NOW + 3_600_000);
    kept.at(NOW);
    let new = kept.place.changes.create_token("new", Role::Auditor, Some(600)).expect("made");
    let state = kept.place.changes.shared.state();
    assert!(state.tokens[&old.info.id].has_died && !state.tokens[&new.info.id].has_died);
    let judged = kept.place.changes.shared.judged(Timestamp(NOW));
    assert!(!kept.place.changes.shared.has_expired(new.info.expires_at, judged));
}
