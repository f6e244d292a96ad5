//! The headers of a part of a form: its name, and the name of its file.

use crate::errors::S3Result;
use crate::forms::boundary::{malformed, parameter};

/// The headers of a part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PartHeaders {
    /// The name of the field, in lower case: names of fields ignore case.
    pub(super) name: String,
    /// The name of the file, as sent.
    pub(super) filename: Option<String>,
}

/// Reads the headers of a part, without the empty line after them.
///
/// # Errors
/// `MalformedPOSTRequest` for lines of another grammar, without exactly one `Content-Disposition: form-data` that has a name,
/// and for an encoding of the content.
pub(super) fn parse(block: &[u8]) -> S3Result<PartHeaders> {
    let mut found = None;
    let mut rest = block;
    while !rest.is_empty() {
        let end = memchr::memmem::find(rest, b"\r\n").unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        rest = after.get(2..).unwrap_or_default();
        // A tab is the only control character that a header may have. This refuses single carriage returns and line feeds.
        if line.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
            return Err(malformed("a header of a part has a control character"));
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let colon = colon.ok_or_else(|| malformed("a header of a part has no colon"))?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-disposition") {
            if found.is_some() {
                return Err(malformed("a part has two Content-Disposition headers"));
            }
            found = Some(disposition(value)?);
        } else if name.eq_ignore_ascii_case(b"content-transfer-encoding")
            && ![&b"7bit"[..], b"8bit", b"binary"].iter().any(|plain| value.eq_ignore_ascii_case(plain))
        {
            return Err(malformed("a part has a Content-Transfer-Encoding; send its bytes as they are"));
        }
    }
    found.ok_or_else(|| malformed("a part has no Content-Disposition header"))
}

fn disposition(value: &[u8]) -> S3Result<PartHeaders> {
    let kind = value.split(|byte| *byte == b';').next().unwrap_or_default();
    if !kind.trim_ascii().eq_ignore_ascii_case(b"form-data") {
        return Err(malformed("the Content-Disposition of a part is not form-data"));
    }
    let text = |value: Vec<u8>| {
        String::from_utf8(value).map_err(|_| malformed("the name of a field or file is not UTF-8"))
    };
    let name = parameter(value, b"name")?.ok_or_else(|| malformed("a part has no name"))?;
    let filename = parameter(value, b"filename")?.map(text).transpose()?;
    Ok(PartHeaders { name: text(name)?.to_lowercase(), filename })
}

#[cfg(test)]
mod tests {
    use super::{PartHeaders, parse};

    fn headers(name: &str, filename: Option<&str>) -> PartHeaders {
        PartHeaders { name: name.to_owned(), filename: filename.map(str::to_owned) }
    }

    #[test]
    fn name_and_file_name_are_read() {
        for (block, expected) in [
            ("Content-Disposition: form-data; name=\"Key\"", headers("key", None)),
            (
                "content-type: text/plain\r\nCONTENT-DISPOSITION:form-data;filename=\"a b.txt\";name=file",
                headers("file", Some("a b.txt")),
            ),
            (
                "Content-Disposition: form-data; name=\"file\"; filename=\"\u{e4}\"; filename*=UTF-8''x\r\n\
                 Content-Transfer-Encoding: Binary",
                headers("file", Some("\u{e4}")),
            ),
        ] {
            assert_eq!(parse(block.as_bytes()).expect(block), expected);
        }
    }

    #[test]
    fn other_headers_are_malformed() {
        for block in [
            "",
            "Content-Type: text/plain",
            "Content-Disposition: form-data",
            "Content-Disposition: attachment; name=key",
            "Content-Disposition: form-data; name=a; name=b",
            "Content-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=b",
            "Content-Disposition: form-data;\r\n name=a",
            "Content-Disposition: form-data; name=\"a\nb\"",
            "Content-Disposition: form-data; name=\"a\0b\"",
            "Content-Disposition: form-data; name=a\nX: y",
            "no colon",
            "Content-Disposition: form-data; name=file\r\nContent-Transfer-Encoding: base64",
        ] {
            assert_eq!(parse(block.as_bytes()).expect_err(block).code(), "MalformedPOSTRequest");
        }
        let latin: &[u8] = b"Content-Disposition: form-data; name=file; filename=\"\xe4\"";
        assert!(parse(latin).is_err());
    }
}
