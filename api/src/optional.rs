//! Deserializes optional members of requests: null counts as absent, except in changes (PATCH).
//!
//! An `Option` is read so by serde itself; a test of the routes looks for members that are not. In a PATCH, an absent member
//! stays as it is, and null removes its value.

use serde::{Deserialize, Deserializer};

/// Reads a member that has its default if it is null; with `#[serde(default)]`, also if it is absent.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    value: D,
) -> Result<T, D::Error> {
    Option::deserialize(value).map(Option::unwrap_or_default)
}

/// The default of a member that is true unless it is given.
pub(crate) const fn yes() -> bool {
    true
}

/// Reads a member that is true if it is null; with `#[serde(default = "yes")]`, also if it is absent.
pub(crate) fn or_yes<'de, D: Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    Option::deserialize(value).map(|given| given.unwrap_or_else(yes))
}

/// Reads a member of a change that has a value in any case: it may be absent, but not null.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    value: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

/// Reads a member of a change that may be absent, or null to remove the value.
pub(crate) fn removable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    value: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(value).map(Some)
}
