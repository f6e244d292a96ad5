//! The content of a form's file, as the source of a payload.
//!
//! The size of the file is known only when the delimiter at its end arrives. Bytes go from the socket straight into the
//! buffer of the engine and are searched there. What may be the beginning of the delimiter is held back: fewer bytes than a
//! delimiter has, which the next read puts in front of its own.

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::forms::boundary::{Delimiter, PartEnd, malformed};
use crate::forms::parts::{PartReader, Progress, not_one_file, too_long_after_file};
use crate::forms::policy::FileSizes;
use crate::limits::FORM_TRAILING_BYTES_MAX;
use cairn_model::u64_of;
use cairn_net::RequestBody;
use cairn_transfer::BodyReader;

/// Bytes to read where the reader's buffer has no room behind the bytes that were held back, and after the file.
const SMALL_READ_BYTES: usize = 512;

/// The bounds of the file's size, known before the file arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SizeBounds {
    /// The file has at least as many bytes, or the form is refused.
    pub(crate) least: u64,
    /// The file has at most as many bytes.
    pub(crate) most: u64,
}

impl SizeBounds {
    /// Returns the bounds for a form of which `bytes` bytes follow the headers of the file.
    ///
    /// # Errors
    /// `MalformedPOSTRequest` if they have no room for the last delimiter.
    pub(crate) fn new(bytes: u64, delimiter: &Delimiter) -> S3Result<Self> {
        let after_file = bytes.checked_sub(u64_of(delimiter.len())).filter(|rest| *rest >= 2);
        let after_file = after_file.ok_or_else(ended_early)?;
        Ok(Self { least: after_file.saturating_sub(u64_of(FORM_TRAILING_BYTES_MAX)), most: after_file - 2 })
    }

    /// Refuses a file that certainly has another size than the policy allows.
    ///
    /// # Errors
    /// `EntityTooLarge`, `EntityTooSmall`.
    pub(crate) fn check(self, allowed: FileSizes) -> S3Result<()> {
        if self.least > allowed.max {
            return Err(too_large(self.most, allowed));
        }
        if self.most < allowed.min { Err(too_small(likely(self.most), allowed)) } else { Ok(()) }
    }
}

fn ended_early() -> S3Error {
    malformed("it ends before the last delimiter")
}

/// Returns the size of a file of at most `most` bytes if a line break ends the form, as in those of browsers.
fn likely(most: u64) -> u64 {
    most.saturating_sub(2)
}

/// Returns the error for a file of at most `most` bytes that is longer than the policy allows.
fn too_large(most: u64, allowed: FileSizes) -> S3Error {
    let proposed = likely(most).max(allowed.max.saturating_add(1));
    S3Error::with_message(ErrorCode::EntityTooLarge, "Your proposed upload exceeds the maximum allowed size")
        .element("ProposedSize", proposed.to_string())
        .element("MaxSizeAllowed", allowed.max.to_string())
}

/// Returns the error for a file that is shorter than the policy allows.
pub(crate) fn too_small(size: u64, allowed: FileSizes) -> S3Error {
    S3Error::with_message(
        ErrorCode::EntityTooSmall,
        "Your proposed upload is smaller than the minimum allowed size",
    )
    .element("ProposedSize", size.to_string())
    .element("MinSizeAllowed", allowed.min.to_string())
}

/// Separates the content of a file from the delimiter after it. It is pure: the caller reads the bytes.
struct Scanner {
    delimiter: Delimiter,
    /// Bytes that were read and not returned: those that came with the fields, or what may be the beginning of a delimiter.
    held: Vec<u8>,
    /// The bytes after the delimiter, once it was found.
    after: Option<Vec<u8>>,
}

impl Scanner {
    /// Moves content of the held bytes into `out`. Returns its length, which is 0 if there may be none.
    fn take_held(&mut self, out: &mut [u8]) -> S3Result<usize> {
        let end = self.delimiter.find(&self.held);
        let (PartEnd::Found(content) | PartEnd::NotBefore(content)) = end;
        let count = content.min(out.len());
        out[..count].copy_from_slice(&self.held[..count]);
        self.held.drain(..count);
        if count == content && matches!(end, PartEnd::Found(_)) {
            let held = std::mem::take(&mut self.held);
            self.end(&held[self.delimiter.len()..])?;
        }
        Ok(count)
    }

    /// Puts the held bytes in front of `out`. Returns the part of `out` after them.
    fn give_held<'o>(&self, out: &'o mut [u8]) -> &'o mut [u8] {
        let (front, rest) = out.split_at_mut(self.held.len());
        front.copy_from_slice(&self.held);
        rest
    }

    /// Looks at the bytes in a buffer that begins with the held ones. Returns how many of them are content.
    fn scan(&mut self, bytes: &[u8]) -> S3Result<usize> {
        self.held.clear();
        match self.delimiter.find(bytes) {
            PartEnd::Found(content) => {
                self.end(&bytes[content + self.delimiter.len()..])?;
                Ok(content)
            }
            PartEnd::NotBefore(content) => {
                self.held.extend_from_slice(&bytes[content..]);
                Ok(content)
            }
        }
    }

    fn end(&mut self, after: &[u8]) -> S3Result<()> {
        if after.len() > FORM_TRAILING_BYTES_MAX {
            return Err(too_long_after_file());
        }
        self.after = Some(after.to_vec());
        Ok(())
    }
}

/// The content of a file, as a payload whose size is not known.
pub(crate) struct FileSource<'b, 'c> {
    body: &'b mut RequestBody<'c>,
    scanner: Scanner,
    content: u64,
    /// The largest size that the file may turn out to have by the length of the form.
    most: u64,
    allowed: FileSizes,
}

impl<'b, 'c> FileSource<'b, 'c> {
    /// Makes the source of a file whose first bytes, `begun`, came with the fields.
    pub(crate) fn new(
        body: &'b mut RequestBody<'c>,
        delimiter: Delimiter,
        begun: &[u8],
        bounds: SizeBounds,
        allowed: FileSizes,
    ) -> Self {
        let scanner = Scanner { delimiter, held: begun.to_vec(), after: None };
        Self { body, scanner, content: 0, most: bounds.most, allowed }
    }

    /// Reads the form to its end, when all content has been read.
    ///
    /// # Errors
    /// `MalformedPOSTRequest`, `IncorrectNumberOfFilesInPostRequest`, `EntityTooSmall`, and errors of the connection.
    pub(crate) async fn finish(self) -> S3Result<()> {
        let Self { body, scanner: Scanner { delimiter, after, .. }, content, allowed, .. } = self;
        let after = after.expect("the content has been read to its end");
        if u64_of(after.len()) + body.remaining() > u64_of(FORM_TRAILING_BYTES_MAX) {
            return Err(too_long_after_file());
        }
        let mut reader = PartReader::after_file(delimiter);
        let mut progress = reader.push(&after)?;
        let mut bytes = [0; SMALL_READ_BYTES];
        loop {
            if let Progress::File { .. } = progress {
                return Err(not_one_file());
            }
            let count = body.read(&mut bytes).await?;
            if count == 0 {
                break;
            }
            progress = reader.push(&bytes[..count])?;
        }
        match progress {
            Progress::Ended if content < allowed.min => Err(too_small(content, allowed)),
            Progress::Ended => Ok(()),
            _ => Err(ended_early()),
        }
    }

    /// Counts content. The engine has no room for more than is allowed, and for more than the form can have.
    fn counted(&mut self, count: usize) -> S3Result<usize> {
        self.content += u64_of(count);
        if self.content > self.allowed.max {
            return Err(too_large(self.most, self.allowed));
        }
        // The rest of the form is too short for the last delimiter.
        if self.content > self.most { Err(ended_early()) } else { Ok(count) }
    }

    fn check_not_ended(count: usize) -> S3Result<()> {
        if count > 0 { Ok(()) } else { Err(ended_early()) }
    }
}

impl BodyReader for FileSource<'_, '_> {
    type Error = S3Error;

    async fn read(&mut self, out: &mut [u8]) -> S3Result<usize> {
        loop {
            if self.scanner.after.is_some() || out.is_empty() {
                return Ok(0);
            }
            let taken = self.scanner.take_held(out)?;
            if taken > 0 {
                return self.counted(taken);
            }
            if self.scanner.after.is_some() {
                continue;
            }
            let held = self.scanner.held.len();
            if out.len() <= held {
                let mut few = [0; SMALL_READ_BYTES];
                let count = self.body.read(&mut few).await?;
                Self::check_not_ended(count)?;
                self.scanner.held.extend_from_slice(&few[..count]);
                continue;
            }
            let count = self.body.read(self.scanner.give_held(out)).await?;
            Self::check_not_ended(count)?;
            let content = self.scanner.scan(&out[..held + count])?;
            if content > 0 {
                return self.counted(content);
            }
        }
    }

    fn abandon(&mut self) {
        self.body.abandon();
    }
}

/// Separates a file from what follows it, with buffers of `size` bytes. Returns the content and what follows the delimiter.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn scan_in_pieces(delimiter: Delimiter, form: &[u8], size: usize) -> Option<(Vec<u8>, usize)> {
    let mut scanner = Scanner { delimiter, held: Vec::new(), after: None };
    let (mut content, mut read) = (Vec::new(), 0);
    let mut out = vec![0; size.max(1)];
    loop {
        let taken = scanner.take_held(&mut out).ok()?;
        content.extend_from_slice(&out[..taken]);
        if let Some(after) = scanner.after {
            return Some((content, read - after.len()));
        }
        if taken > 0 {
            continue;
        }
        let held = scanner.held.len();
        let rest = &form[read..];
        if rest.is_empty() {
            return None;
        }
        if out.len() <= held {
            let count = rest.len().min(3);
            scanner.held.extend_from_slice(&rest[..count]);
            read += count;
            continue;
        }
        let room = scanner.give_held(&mut out);
        let count = room.len().min(rest.len());
        room[..count].copy_from_slice(&rest[..count]);
        read += count;
        let scanned = scanner.scan(&out[..held + count]).ok()?;
        content.extend_from_slice(&out[..scanned]);
    }
}

#[cfg(test)]
mod tests {
    use super::{SizeBounds, scan_in_pieces};
    use crate::forms::boundary::Delimiter;
    use crate::forms::policy::FileSizes;

    #[test]
    fn content_ends_at_the_delimiter_wherever_the_bytes_are_cut() {
        for content in
            ["", "a", "\r\n--xY", "a\r\n--x", "\r\r\n\r\n-\r\n--x\r", "--xyz--", "\r\n--x\r\n--x\r\n--x"]
        {
            let form = format!("{content}\r\n--xyz--\r\n").into_bytes();
            for size in 1..=form.len() + 1 {
                let delimiter = Delimiter::new(b"xyz").expect("valid");
                let (found, after) = scan_in_pieces(delimiter, &form, size).expect("it ends");
                assert_eq!((found, after), (content.into(), content.len() + 7), "{content:?} {size}");
            }
        }
    }

    #[test]
    fn form_without_the_delimiter_has_no_file() {
        for size in 1..20 {
            let delimiter = Delimiter::new(b"xyz").expect("valid");
            assert_eq!(scan_in_pieces(delimiter, b"content\r\n--xy", size), None);
        }
    }

    #[test]
    fn size_of_the_file_is_bounded_before_it_arrives() {
        let delimiter = Delimiter::new(b"xyz").expect("valid");
        let bounds = |bytes| SizeBounds::new(bytes, &delimiter).map_err(|error| error.code());
        assert_eq!(bounds(8), Err("MalformedPOSTRequest"));
        assert_eq!(bounds(9), Ok(SizeBounds { least: 0, most: 0 }));
        assert_eq!(bounds(9 + 100_000), Ok(SizeBounds { least: 100_002 - 20_480, most: 100_000 }));
        let check = |min, max| {
            let bounds = bounds(9 + 100_000).expect("long enough");
            bounds.check(FileSizes { min, max }).map_err(|error| error.code())
        };
        assert_eq!(check(100_000, 100_000), Ok(()));
        assert_eq!(check(100_001, u64::MAX), Err("EntityTooSmall"));
        assert_eq!(check(0, 79_521), Err("EntityTooLarge"));
        assert_eq!(check(0, 79_522), Ok(()));
    }
}
