//! Content whose length is not known before it is read: standard input, pipes and devices.
//!
//! An upload announces its length first. So such content goes into a temporary file, which has no name: it vanishes with the
//! command, however that ends.

use std::fs::File;
use std::io::{Error, Read, Seek, copy};

/// Reads content to its end into a temporary file. Returns the file, at its beginning, and the length, which is more than
/// `bytes_max` if there is more content.
pub(super) fn spooled(content: impl Read, bytes_max: u64) -> Result<(File, u64), Error> {
    let mut file = temporary()?;
    let size = copy(&mut content.take(bytes_max.saturating_add(1)), &mut file)?;
    file.rewind()?;
    Ok((file, size))
}

/// Creates a file without a name, which only this user can read.
fn temporary() -> Result<File, Error> {
    tempfile::tempfile().map_err(|error| {
        let text = format!("a temporary file in {} (TMPDIR): {error}", std::env::temp_dir().display());
        Error::new(error.kind(), text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_comes_back_whole_or_too_long() {
        for (content, bytes_max, length) in [("", 3, 0), ("abc", 3, 3), ("abcdef", 3, 4)] {
            let (mut file, size) = spooled(content.as_bytes(), bytes_max).expect("a temporary file");
            let mut read = String::new();
            file.read_to_string(&mut read).expect("text");
            assert_eq!((read.as_str(), size), (&content[..length], length as u64));
        }
    }
}
