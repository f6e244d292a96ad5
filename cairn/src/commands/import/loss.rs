//! What does not come along in a move, by name.

use serde::Serialize;

/// Something that the source has and that is not taken over.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub(super) struct Loss {
    /// `account`, `policy`, `group`, `mapping`, `bucket`, or the name of a setting such as `lifecycle`.
    pub(super) kind: &'static str,
    /// Its name at the source.
    pub(super) name: String,
    /// Why, and what takes its place.
    pub(super) reason: String,
}

impl Loss {
    pub(super) fn new(kind: &'static str, name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { kind, name: name.into(), reason: reason.into() }
    }
}
