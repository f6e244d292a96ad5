//! The two keys of the Smart Object Storage API (SOSAPI).
//!
//! Backup software reads these objects of a bucket to learn what the store can do and how much room it has. The server itself
//! answers them, only with `s3.sosapi` and `s3.compatibility = "extended"`. Source: Veeam Smart Object Storage API 1.0.

use crate::errors::{S3Error, S3Result};
use cairn_observe::RefusingSetting;

const SYSTEM: &str = ".system-d26a9498-cb7c-4a87-a44a-8ae204f5ba6c/system.xml";
const CAPACITY: &str = ".system-d26a9498-cb7c-4a87-a44a-8ae204f5ba6c/capacity.xml";

/// An object that the server answers itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SystemObject {
    /// The capabilities of the store.
    System,
    /// The capacity of the store.
    Capacity,
}

impl SystemObject {
    /// Returns the object of this key.
    pub(crate) fn of_key(key: &str) -> Option<Self> {
        match key {
            SYSTEM => Some(Self::System),
            CAPACITY => Some(Self::Capacity),
            _ => None,
        }
    }
}

/// Refuses to change an object that the server answers itself. `is_on` is whether there are any.
///
/// # Errors
/// `InvalidRequest` that names the key and the setting.
pub(crate) fn check_change(is_on: bool, key: &str) -> S3Result<()> {
    match SystemObject::of_key(key).filter(|_| is_on) {
        None => Ok(()),
        Some(_) => Err(S3Error::invalid_request(format!(
            "The server itself answers {key} (s3.sosapi): it can neither be written nor deleted."
        ))
        .setting_at(RefusingSetting::Sosapi)),
    }
}

#[cfg(test)]
mod tests {
    use super::{CAPACITY, SYSTEM, SystemObject, check_change};
    use cairn_observe::RefusingSetting;

    #[test]
    fn only_the_two_keys_are_answered_by_the_server() {
        assert_eq!(SystemObject::of_key(SYSTEM), Some(SystemObject::System));
        assert_eq!(SystemObject::of_key(CAPACITY), Some(SystemObject::Capacity));
        for key in [
            "",
            "system.xml",
            &SYSTEM[1..],
            &format!("/{SYSTEM}"),
            &format!("{CAPACITY}/"),
            &SYSTEM.to_uppercase(),
        ] {
            assert_eq!(SystemObject::of_key(key), None, "{key}");
        }
    }

    #[test]
    fn changes_are_refused_only_while_the_setting_is_on() {
        let refused = check_change(true, CAPACITY).expect_err("refused");
        assert_eq!((refused.status(), refused.setting()), (400, Some(RefusingSetting::Sosapi)));
        assert!(refused.message().contains(CAPACITY), "{}", refused.message());
        check_change(false, CAPACITY).expect("an ordinary key");
        check_change(true, "k").expect("an ordinary key");
    }
}
