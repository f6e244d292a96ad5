//! Checks of a running store: inspection, repair, verification and scrubbing.

pub(crate) mod inspect;
pub(crate) mod repair;
pub(crate) mod scrub;
pub(crate) mod throttle;
pub(crate) mod upgrade;
pub(crate) mod verifier;
pub(crate) mod verify;
pub(crate) mod version_walk;
