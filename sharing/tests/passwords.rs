//! Passwords of shares: right and wrong ones, limits of attempts, and the end of unlocks.

use crate::support::{Fixture, new_share, share};
use cairn_sharing::{Links, NewShare, Share, ShareChange, Unlock, UnlockError};
use futures_lite::future::block_on;
use std::net::IpAddr;
use std::time::Duration;

const HALF_A_DAY: u64 = 12 * 3_600_000;

fn client(number: u8) -> IpAddr {
    [192, 0, 2, number].into()
}

fn protected(sharing: &Links) -> Share {
    share(sharing, NewShare { password: Some("open sesame".to_owned().into()), ..new_share("a") }).0
}

fn unlock(sharing: &Links, share: &Share, password: &str, from: u8) -> Result<Unlock, UnlockError> {
    block_on(sharing.unlock(share, password.to_owned().into(), client(from)))
}

#[test]
fn only_the_right_password_unlocks() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let (first, second) = (protected(&sharing), protected(&sharing));
    assert_eq!(unlock(&sharing, &first, "Open sesame", 1).unwrap_err(), UnlockError::Incorrect);
    assert_eq!(unlock(&sharing, &first, &"p".repeat(100_000), 1).unwrap_err(), UnlockError::Incorrect);
    let unlocked = unlock(&sharing, &first, "open sesame", 1).unwrap();
    assert_eq!(unlocked.expires_at.0, sharing.now().0 + HALF_A_DAY);
    assert!(sharing.check_unlock(&first, &unlocked.token).is_some());
    assert!(sharing.check_unlock(&second, &unlocked.token).is_none(), "the same password, another share");
    let open = share(&sharing, new_share("a")).0;
    assert_eq!(unlock(&sharing, &open, "open sesame", 1).unwrap_err(), UnlockError::NotProtected);
    drop(sharing);
    let sharing = fixture.open();
    let read = sharing.get::<Share>(first.link.id).unwrap().unwrap();
    assert!(sharing.check_unlock(&read, &unlocked.token).is_some(), "it survives a restart");
    fixture.set_time(unlocked.expires_at.0);
    assert!(sharing.check_unlock(&read, &unlocked.token).is_none(), "it ends");
}

#[test]
fn a_change_of_the_password_ends_unlocks() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let created = protected(&sharing);
    let unlocked = unlock(&sharing, &created, "open sesame", 1).unwrap();
    let same =
        ShareChange { password: Some(Some("open sesame".to_owned().into())), ..ShareChange::default() };
    let changed = block_on(sharing.update_share(created.link.id, same)).unwrap();
    assert!(sharing.check_unlock(&changed, &unlocked.token).is_none(), "even to the same password");
    let label = ShareChange { label: Some("l".to_owned()), ..ShareChange::default() };
    let again = unlock(&sharing, &changed, "open sesame", 1).unwrap();
    let labelled = block_on(sharing.update_share(created.link.id, label)).unwrap();
    assert!(sharing.check_unlock(&labelled, &again.token).is_some());
}

#[test]
fn guesses_are_refused_unchecked_and_right_passwords_never_count() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let created = protected(&sharing);
    for _ in 0..8 {
        unlock(&sharing, &created, "open sesame", 1).unwrap();
    }
    for _ in 0..5 {
        assert_eq!(unlock(&sharing, &created, "wrong", 1).unwrap_err(), UnlockError::Incorrect);
    }
    let refused = unlock(&sharing, &created, "open sesame", 1).unwrap_err();
    let UnlockError::TooManyAttempts { retry_after } = refused else { panic!("{refused:?}") };
    assert!(retry_after <= Duration::from_secs(60));
    unlock(&sharing, &created, "open sesame", 2).expect("another client");
    let metrics = sharing.metrics();
    assert_eq!((metrics.unlocked, metrics.wrong_passwords, metrics.refused_attempts), (9, 5, 1));
}

#[test]
fn many_guesses_at_once_are_not_all_checked() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let created = protected(&sharing);
    let guesses: Vec<_> = (0..40)
        .map(|_| {
            let (sharing, created) = (sharing.clone(), created.clone());
            std::thread::spawn(move || unlock(&sharing, &created, "wrong", 1).unwrap_err())
        })
        .collect();
    let results: Vec<_> = guesses.into_iter().map(|guess| guess.join().unwrap()).collect();
    let checked = results.iter().filter(|result| **result == UnlockError::Incorrect).count();
    assert_eq!(checked, 5, "{results:?}");
}
