//! Reads documents and values of users, from files or standard input.

use std::fmt::Display;
use std::fs::File;
use std::io::Read;

use serde_json::Value;

/// Maximum length of a request body of the management plane.
const DOCUMENT_BYTES_MAX: u64 = 1 << 20;

/// A kind of JSON document.
pub(crate) struct DocumentKind {
    /// The name of the thing that it describes, in messages.
    pub(crate) noun: &'static str,
    /// The command whose help shows an example.
    pub(crate) command: &'static str,
}

impl DocumentKind {
    /// Reads a document from a file; `-` means standard input. It is sent unchanged, so that the server can report duplicate
    /// and unknown members.
    ///
    /// # Errors
    /// The problem with the file or its content.
    pub(crate) fn read(&self, file: &str) -> Result<String, String> {
        let Self { noun, command } = self;
        let document = read_text(file, noun, DOCUMENT_BYTES_MAX)?;
        let checked = serde_json::from_str::<Value>(&document);
        checked.map_err(|error| {
            failed(
                file,
                noun,
                &format!("it is not JSON: {error}\n  `cairn {command} --help` shows an example"),
            )
        })?;
        Ok(document)
    }
}

/// Returns how messages name a file.
pub(crate) fn named(file: &str) -> &str {
    if file == "-" { "standard input" } else { file }
}

fn failed(file: &str, noun: &str, error: &str) -> String {
    format!("the {noun} could not be read from {}: {error}", named(file))
}

/// Reads text from a file; `-` means standard input. `noun` says in messages what it is.
///
/// # Errors
/// It cannot be read, is not UTF-8, or has more than `bytes_max` bytes.
pub(crate) fn read_text(file: &str, noun: &str, bytes_max: u64) -> Result<String, String> {
    let failed = |error: &dyn Display| failed(file, noun, &error.to_string());
    let source: Box<dyn Read> = match file {
        "-" => Box::new(std::io::stdin()),
        file => Box::new(File::open(file).map_err(|error| failed(&error))?),
    };
    let mut text = String::new();
    source.take(bytes_max + 1).read_to_string(&mut text).map_err(|error| failed(&error))?;
    if text.len() as u64 > bytes_max {
        return Err(failed(&format_args!("it is longer than {bytes_max} bytes")));
    }
    Ok(text)
}

/// Reads a value from a file, without the end of its line. Messages do not repeat it, because it may be a secret.
///
/// # Errors
/// Those of [`read_text`], and that it is empty.
pub(crate) fn read_line(file: &str, noun: &str, bytes_max: u64) -> Result<String, String> {
    let text = read_text(file, noun, bytes_max)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_empty() {
        return Err(failed(file, noun, "it is empty"));
    }
    Ok(line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_ends_before_the_end_of_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        let read = |content: &str| {
            std::fs::write(&file, content).unwrap();
            read_line(file.to_str().unwrap(), "secret", 1024)
        };
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
}
