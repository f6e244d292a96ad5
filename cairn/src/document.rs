//! Reads JSON documents of users, from a file or from standard input.

use std::fs::File;
use std::io::Read;

use serde_json::Value;

/// Maximum length of a request body of the management plane.
const DOCUMENT_BYTES_MAX: u64 = 1 << 20;

/// A kind of document.
pub(crate) struct DocumentKind {
    /// What it describes, in messages.
    pub(crate) noun: &'static str,
    /// The command whose help shows an example.
    pub(crate) command: &'static str,
}

impl DocumentKind {
    /// Reads a document from a file; `-` means standard input. It is sent unchanged, so that the server can report duplicate
    /// and unknown members.
    ///
    /// # Errors
    /// What is wrong with the file or its content.
    pub(crate) fn read(&self, file: &str) -> Result<String, String> {
        let Self { noun, command } = self;
        let named = if file == "-" { "standard input" } else { file };
        let failed = |error: String| format!("the {noun} could not be read from {named}: {error}");
        let source: Box<dyn Read> = match file {
            "-" => Box::new(std::io::stdin()),
            file => Box::new(File::open(file).map_err(|error| failed(error.to_string()))?),
        };
        let mut document = String::new();
        let read = source.take(DOCUMENT_BYTES_MAX + 1).read_to_string(&mut document);
        read.map_err(|error| failed(error.to_string()))?;
        if document.len() as u64 > DOCUMENT_BYTES_MAX {
            return Err(failed(format!("it is longer than {DOCUMENT_BYTES_MAX} bytes")));
        }
        let checked = serde_json::from_str::<Value>(&document);
        checked.map_err(|error| {
            failed(format!("it is not JSON: {error}\n  `cairn {command} --help` shows an example"))
        })?;
        Ok(document)
    }
}
