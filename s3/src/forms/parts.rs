//! Reads the parts of a form before and after its file.
//!
//! The bytes may arrive in pieces of any size: the result is that of one piece. Values are kept; the content of the file is
//! not read here. A line of the form is a delimiter only if nothing but white space follows the boundary; other text after
//! the boundary is refused and not taken for content, so that no two readers can understand different forms.

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::forms::boundary::{Delimiter, PartEnd, malformed};
use crate::forms::disposition;
use crate::forms::key::VARIABLE;
use crate::limits::{
    FORM_BYTES_BEFORE_FILE_MAX, FORM_FIELD_BYTES_MAX, FORM_FIELDS_MAX, FORM_PART_HEADER_BYTES_MAX,
    FORM_TRAILING_BYTES_MAX,
};

/// The name of the field with the file.
const FILE: &str = "file";

/// The progress of reading a form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// More bytes are needed.
    Incomplete,
    /// The content of the file comes next.
    File {
        /// The name of the file as the client sent it.
        name: String,
    },
    /// The form has ended.
    Ended,
}

enum State {
    /// Before the first delimiter.
    Preamble,
    /// In the line of a delimiter, after the boundary.
    DelimiterLine,
    /// In the headers of a part.
    Headers,
    /// In the value of the field of this name.
    Value(String),
    /// At the content of a file.
    File,
    /// After the last delimiter.
    Epilogue,
}

/// Reads the parts of a form up to its file, or those after it.
pub(crate) struct PartReader {
    delimiter: Delimiter,
    state: State,
    /// The bytes read, of which those from `at` on are not parsed yet.
    buffer: Vec<u8>,
    at: usize,
    /// The position at which the search for the end of the present part goes on.
    searched: usize,
    bytes_max: usize,
    /// The error for a form that exceeds a limit.
    too_long: fn() -> S3Error,
    parts: usize,
    field_bytes: usize,
    fields: Vec<(String, String)>,
}

fn too_long_before_file() -> S3Error {
    ErrorCode::MaxPostPreDataLengthExceededError.into()
}

/// Returns the error for a form that goes on for too long after its file.
pub(super) fn too_long_after_file() -> S3Error {
    malformed("more than 20 KiB follow the file")
}

/// Returns the error for a form with several files, or with none.
pub(crate) fn not_one_file() -> S3Error {
    ErrorCode::IncorrectNumberOfFilesInPostRequest.into()
}

impl PartReader {
    /// Reads a form from its beginning.
    pub(crate) fn new(delimiter: Delimiter) -> Self {
        // The first delimiter needs no line break in front of it.
        let (bytes_max, buffer) = (FORM_BYTES_BEFORE_FILE_MAX, b"\r\n".to_vec());
        Self { bytes_max, buffer, ..Self::with(delimiter, State::Preamble, too_long_before_file) }
    }

    /// Reads what follows the file, after the delimiter at its end.
    pub(crate) fn after_file(delimiter: Delimiter) -> Self {
        Self::with(delimiter, State::DelimiterLine, too_long_after_file)
    }

    fn with(delimiter: Delimiter, state: State, too_long: fn() -> S3Error) -> Self {
        Self {
            delimiter,
            state,
            buffer: Vec::new(),
            at: 0,
            searched: 0,
            bytes_max: FORM_TRAILING_BYTES_MAX,
            too_long,
            parts: 0,
            field_bytes: 0,
            fields: Vec::new(),
        }
    }

    /// Adds bytes, and reads as far as possible.
    ///
    /// # Errors
    /// `MalformedPOSTRequest`, and `MaxPostPreDataLengthExceededError` for a form that is too long before its file.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> S3Result<Progress> {
        self.buffer.extend_from_slice(bytes);
        loop {
            let before = self.at;
            if let Some(progress) = self.step()? {
                return Ok(progress);
            }
            if self.at == before {
                // What the limit cuts off is not looked at, so the result does not depend on the pieces.
                let is_full = self.buffer.len() > self.bytes_max;
                return if is_full { Err((self.too_long)()) } else { Ok(Progress::Incomplete) };
            }
        }
    }

    /// Returns the fields in the order sent, names in lower case, and the bytes that were pushed and not parsed.
    pub(crate) fn into_rest(mut self) -> (Vec<(String, String)>, Vec<u8>) {
        self.buffer.drain(..self.at);
        (self.fields, self.buffer)
    }

    /// Parses one element. Without enough bytes for it, nothing changes.
    fn step(&mut self) -> S3Result<Option<Progress>> {
        match std::mem::replace(&mut self.state, State::Epilogue) {
            State::Preamble => {
                if self.find_delimiter().is_none() {
                    self.state = State::Preamble;
                }
                Ok(None)
            }
            State::DelimiterLine => self.step_delimiter_line(),
            State::Headers => self.step_headers(),
            State::Value(name) => self.step_value(name).map(|()| None),
            State::File => unreachable!("a form is read up to its file only"),
            State::Epilogue if self.buffer.len() > self.bytes_max => Err((self.too_long)()),
            State::Epilogue => Ok(Some(Progress::Ended)),
        }
    }

    /// Returns the bytes to parse.
    fn view(&self) -> &[u8] {
        &self.buffer[self.at..self.buffer.len().min(self.bytes_max)]
    }

    fn step_delimiter_line(&mut self) -> S3Result<Option<Progress>> {
        self.state = State::DelimiterLine;
        let view = self.view();
        let blanks = view.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        match &view[blanks..] {
            [] | [b'\r'] => return Ok(None),
            [b'-'] if blanks == 0 => return Ok(None),
            [b'-', b'-', ..] if blanks == 0 => {
                self.at += 2;
                self.state = State::Epilogue;
            }
            [b'\r', b'\n', ..] => {
                self.at += blanks + 2;
                self.state = State::Headers;
            }
            _ => return Err(malformed("a line begins with the boundary and goes on with other text")),
        }
        Ok(None)
    }

    fn step_headers(&mut self) -> S3Result<Option<Progress>> {
        self.state = State::Headers;
        let view = self.view();
        let longest = FORM_PART_HEADER_BYTES_MAX + 4;
        let Some(end) = memchr::memmem::find(&view[..view.len().min(longest)], b"\r\n\r\n") else {
            let too_long = || malformed("the headers of a part are longer than 4 KiB");
            return if view.len() < longest { Ok(None) } else { Err(too_long()) };
        };
        let headers = disposition::parse(&view[..end])?;
        self.at += end + 4;
        self.searched = self.at;
        if headers.name == FILE {
            self.state = State::File;
            // Without a name of the file the key stays as it is.
            let name = headers.filename.unwrap_or_else(|| VARIABLE.to_owned());
            return Ok(Some(Progress::File { name }));
        }
        self.parts += 1;
        if self.parts > FORM_FIELDS_MAX {
            return Err(malformed("it has more than 100 fields"));
        }
        self.field_bytes += headers.name.len();
        self.state = State::Value(headers.name);
        Ok(None)
    }

    fn step_value(&mut self, name: String) -> S3Result<()> {
        let start = self.at;
        let Some(end) = self.find_delimiter() else {
            if self.field_bytes + self.searched.saturating_sub(start) > FORM_FIELD_BYTES_MAX {
                return Err((self.too_long)());
            }
            self.state = State::Value(name);
            return Ok(());
        };
        self.field_bytes += end - start;
        if self.field_bytes > FORM_FIELD_BYTES_MAX {
            return Err((self.too_long)());
        }
        let value = String::from_utf8(self.buffer[start..end].to_vec());
        let value = value.map_err(|_| malformed("the value of a field is not UTF-8"))?;
        self.fields.push((name, value));
        Ok(())
    }

    /// Finds the next delimiter, and goes to what follows it. Returns where it begins.
    fn find_delimiter(&mut self) -> Option<usize> {
        let end = self.buffer.len().min(self.bytes_max);
        let from = self.searched.min(end);
        match self.delimiter.find(&self.buffer[from..end]) {
            PartEnd::Found(at) => {
                self.at = from + at + self.delimiter.len();
                self.state = State::DelimiterLine;
                Some(from + at)
            }
            PartEnd::NotBefore(at) => {
                self.searched = from + at;
                None
            }
        }
    }
}

/// Reads a form up to its file from pieces of `size` bytes. Returns the fields, the name of the file and the rest.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn read_in_pieces(delimiter: Delimiter, form: &[u8], size: usize) -> ReadForm {
    let mut reader = PartReader::new(delimiter);
    let mut pushed = 0;
    for piece in form.chunks(size.max(1)) {
        pushed += piece.len();
        match reader.push(piece).map_err(|error| (error.code(), error.message().to_owned()))? {
            Progress::Incomplete => {}
            Progress::Ended => return Ok(None),
            Progress::File { name } => {
                let (fields, mut rest) = reader.into_rest();
                rest.extend_from_slice(&form[pushed..]);
                return Ok(Some((fields, name, rest)));
            }
        }
    }
    Err(("Incomplete", String::new()))
}

/// The result of [`read_in_pieces`]: `None` for a form without a file.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) type ReadForm = Result<Option<(Vec<(String, String)>, String, Vec<u8>)>, (&'static str, String)>;

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
