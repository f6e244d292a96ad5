//! Keys that an application already has. Their secret comes from a file, never from the command line.

use cairn_api::GivenCredential;

use crate::document::read_line;
use crate::failure::Failure;

/// Longest file that is read, in bytes. Secrets are shorter; the server says how short.
const FILE_BYTES_MAX: u64 = 1024;

/// The options that give a credential its keys.
pub(super) struct GivenKeys<'o> {
    /// The value of `--access-key`.
    pub(super) access_key: Option<&'o str>,
    /// The value of `--secret-file`; `-` means standard input.
    pub(super) secret_file: Option<&'o str>,
}

impl GivenKeys<'_> {
    /// Returns the keys, if they are given.
    ///
    /// # Errors
    /// One option without the other, or a file that cannot be read.
    pub(super) fn read(&self) -> Result<Option<GivenCredential>, Failure> {
        match (self.access_key, self.secret_file) {
            (None, None) => Ok(None),
            (Some(access_key), Some(file)) => Ok(Some(GivenCredential {
                access_key: access_key.to_owned().into(),
                secret_key: read_line(file, "secret", FILE_BYTES_MAX)?.into(),
                expires_at: None,
            })),
            _ => Err(Failure::WrongUsage("--access-key and --secret-file belong together".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_options_are_required() {
        let given = |access_key, secret_file| GivenKeys { access_key, secret_file }.read();
        assert!(matches!(given(None, None), Ok(None)));
        for wrong in [given(Some("abc"), None), given(None, Some("-"))] {
            assert!(matches!(wrong, Err(Failure::WrongUsage(_))));
        }
    }
}
