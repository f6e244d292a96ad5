//! Encoding of keys, prefixes and markers in lists: plain, or with `encoding-type=url`.

use crate::compatibility::Compatibility;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::xml::writer::{XmlWriter, xml_can_represent};
use cairn_http1::percent::{Slash, push_encoded};

/// The encoding of names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NameEncoding {
    /// As they are, escaped for XML.
    Plain,
    /// Percent-encoded except unreserved characters and the slash.
    Url,
}

impl NameEncoding {
    /// Parses `encoding-type`. The mode `strict` takes an empty value for none.
    ///
    /// # Errors
    /// `InvalidArgument` for another value than `url`.
    pub(crate) fn parse(value: Option<&str>, mode: Compatibility) -> S3Result<Self> {
        match value {
            None => Ok(Self::Plain),
            Some("") if mode == Compatibility::Strict => Ok(Self::Plain),
            Some(url) if url.eq_ignore_ascii_case("url") => Ok(Self::Url),
            Some(other) => Err(S3Error::invalid_argument(
                "encoding-type",
                other,
                "Invalid Encoding Method specified in Request",
            )),
        }
    }

    /// Writes an element that contains a name.
    ///
    /// # Errors
    /// `InvalidRequest` for a name that XML cannot represent. Another name in its place would make the client fetch or
    /// delete the wrong object.
    pub(crate) fn write(self, xml: &mut XmlWriter, element: &'static str, name: &str) -> S3Result<()> {
        match self {
            Self::Url => {
                let mut encoded = String::new();
                push_encoded(&mut encoded, name.as_bytes(), Slash::Kept);
                xml.value(element, encoded);
            }
            Self::Plain if xml_can_represent(name) => xml.text(element, name),
            Self::Plain => {
                return Err(S3Error::with_message(
                    ErrorCode::InvalidRequest,
                    "The list contains a name with characters that XML 1.0 cannot represent: list with encoding-type=url.",
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::NameEncoding;
    use crate::compatibility::Compatibility;
    use crate::xml::writer::XmlWriter;

    fn written(encoding: NameEncoding, name: &str) -> Result<String, u16> {
        let mut xml = XmlWriter::with_capacity(0);
        encoding.write(&mut xml, "Key", name).map_err(|error| error.status())?;
        Ok(String::from_utf8(xml.finish()).expect("UTF-8"))
    }

    #[test]
    fn names_that_xml_cannot_represent_need_url_encoding() {
        assert_eq!(written(NameEncoding::Plain, "a\u{1}b"), Err(400));
        assert!(written(NameEncoding::Url, "a\u{1}b").expect("ok").ends_with("<Key>a%01b</Key>"));
        assert!(written(NameEncoding::Plain, "a\rb").expect("ok").ends_with("<Key>a&#xD;b</Key>"));
        let encoded = written(NameEncoding::Url, "foo+1/bar \u{e4}~*").expect("ok");
        assert!(encoded.ends_with("<Key>foo%2B1/bar%20%C3%A4~%2A</Key>"), "{encoded}");
    }

    #[test]
    fn only_url_is_an_encoding() {
        assert_eq!(NameEncoding::parse(Some("url"), Compatibility::Extended).ok(), Some(NameEncoding::Url));
        assert!(NameEncoding::parse(Some(""), Compatibility::Extended).is_err());
        assert!(NameEncoding::parse(Some(""), Compatibility::Strict).is_ok());
        assert_eq!(NameEncoding::parse(None, Compatibility::Extended).ok(), Some(NameEncoding::Plain));
        assert_eq!(
            NameEncoding::parse(Some("base64"), Compatibility::Extended).expect_err("unknown").code(),
            "InvalidArgument"
        );
    }
}
