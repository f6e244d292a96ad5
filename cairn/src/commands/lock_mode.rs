//! The modes of object lock: governance and compliance.

use std::str::FromStr;

use cairn_api::RetentionMode;

/// The mode of a retention.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LockMode(pub(crate) RetentionMode);

impl FromStr for LockMode {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().as_str() {
            "governance" => Ok(Self(RetentionMode::Governance)),
            "compliance" => Ok(Self(RetentionMode::Compliance)),
            _ => Err("expected governance or compliance"),
        }
    }
}
