//! The modes of object lock: governance and compliance.

use std::str::FromStr;

/// The mode of a retention.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LockMode {
    Governance,
    Compliance,
}

impl LockMode {
    /// Returns the name that the API uses.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Governance => "GOVERNANCE",
            Self::Compliance => "COMPLIANCE",
        }
    }
}

impl FromStr for LockMode {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Governance, Self::Compliance]
            .into_iter()
            .find(|mode| mode.name().eq_ignore_ascii_case(text))
            .ok_or("expected governance or compliance")
    }
}
