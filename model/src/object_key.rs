//! Object keys: 1 to 1024 bytes of UTF-8, compared as bytes.

use std::fmt;

/// The longest key, in bytes of UTF-8 (AWS: "Naming Amazon S3 objects").
pub const OBJECT_KEY_BYTES_MAX: usize = 1024;

/// A valid object key in its canonical, decoded form. `//`, `.` and `..` have no special meaning.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey(Box<str>);

/// The error of an invalid object key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidObjectKey {
    /// The key is empty.
    Empty,
    /// The key has more than [`OBJECT_KEY_BYTES_MAX`] bytes. Contains its length.
    TooLong(usize),
}

impl ObjectKey {
    /// Parses a decoded key.
    ///
    /// # Errors
    /// An error when the key is empty or too long.
    pub fn parse(key: &str) -> Result<Self, InvalidObjectKey> {
        match key.len() {
            0 => Err(InvalidObjectKey::Empty),
            n if n > OBJECT_KEY_BYTES_MAX => Err(InvalidObjectKey::TooLong(n)),
            _ => Ok(Self(key.into())),
        }
    }

    /// Returns the key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the key as bytes, in whose order keys are sorted.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::{InvalidObjectKey, ObjectKey};

    #[test]
    fn lengths_are_counted_in_bytes() {
        assert_eq!(ObjectKey::parse(""), Err(InvalidObjectKey::Empty));
        assert!(ObjectKey::parse(&"a".repeat(1024)).is_ok());
        assert_eq!(ObjectKey::parse(&"\u{e4}".repeat(513)), Err(InvalidObjectKey::TooLong(1026)));
    }
}
