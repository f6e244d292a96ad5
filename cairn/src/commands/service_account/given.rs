//! Keys that an application already has. Their secret comes from a file, never from the command line.

use std::fs::File;
use std::io::Read;

use cairn_api::GivenCredential;

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
                secret_key: secret(file)?.into(),
            })),
            _ => Err(Failure::WrongUsage("--access-key and --secret-file belong together".to_owned())),
        }
    }
}

/// Reads a secret without the end of its line.
fn secret(file: &str) -> Result<String, Failure> {
    let named = if file == "-" { "standard input" } else { file };
    let failed = |error: String| Failure::from(format!("the secret could not be read from {named}: {error}"));
    let source: Box<dyn Read> = match file {
        "-" => Box::new(std::io::stdin()),
        file => Box::new(File::open(file).map_err(|error| failed(error.to_string()))?),
    };
    let mut text = String::new();
    let read = source.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| failed(error.to_string()))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(failed(format!("it is longer than {FILE_BYTES_MAX} bytes")));
    }
    let secret = text.strip_suffix('\n').unwrap_or(&text);
    let secret = secret.strip_suffix('\r').unwrap_or(secret);
    if secret.is_empty() {
        return Err(failed("it is empty".to_owned()));
    }
    Ok(secret.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &str) -> Result<String, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, content).unwrap();
        secret(file.to_str().unwrap())
    }

    #[test]
    fn a_secret_ends_before_the_end_of_its_line() {
        for (content, secret) in
            [("a=b/c", "a=b/c"), ("s\n", "s"), ("s\r\n", "s"), ("s\n\n", "s\n"), (" s ", " s ")]
        {
            assert_eq!(read(content).unwrap(), secret, "{content:?}");
        }
        let long = "x".repeat(2000);
        for wrong in ["", "\n", &long] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn both_options_are_required() {
        let given = |access_key, secret_file| GivenKeys { access_key, secret_file }.read();
        assert!(matches!(given(None, None), Ok(None)));
        for wrong in [given(Some("abc"), None), given(None, Some("-"))] {
            assert!(matches!(wrong, Err(Failure::WrongUsage(_))));
        }
    }
}
