//! Text that must not be shown.

use std::fmt;

/// What is shown in place of a secret, everywhere (specification, "Secrets and keys").
pub(crate) const REDACTED: &str = "<redacted>";

/// A secret: formatting it, for people or for debugging, gives `<redacted>`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes the text over.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself. Callers hand it to what needs it and to nothing that prints.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(REDACTED)
    }
}
