//! Web origins: scheme, host and port, in the form in which browsers send them (RFC 6454).

use crate::limits::ORIGIN_BYTES_MAX;
use std::fmt;

/// An origin in its canonical form: lower case, ASCII, without the scheme's default port.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct WebOrigin(Box<str>);

/// Why a text is not an origin. Holds the violated rule, as part of a sentence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidOrigin(pub &'static str);

impl WebOrigin {
    /// Parses `scheme://host[:port]`, with `http` or `https`.
    ///
    /// # Errors
    /// [`InvalidOrigin`] with the first rule that the text violates.
    pub fn parse(text: &str) -> Result<Self, InvalidOrigin> {
        if text.len() > ORIGIN_BYTES_MAX {
            return Err(InvalidOrigin("it is too long"));
        }
        let lower = text.to_ascii_lowercase();
        if lower.starts_with("http://") || lower.starts_with("https://") {
            return Ok(Self(lower.into()));
        }
        Err(InvalidOrigin("it must begin with http:// or https://"))
    }

    /// Returns the canonical text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WebOrigin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}
