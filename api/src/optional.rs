//! How optional members of requests are read: serde's default takes null for absent.

use serde::{Deserialize, Deserializer};

/// Reads a member that may be absent but not null.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    value: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

/// Reads a member that may be absent, or null to remove the value.
pub(crate) fn removable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    value: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(value).map(Some)
}
