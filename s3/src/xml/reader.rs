//! Reads small request bodies as XML.

use crate::errors::{ErrorCode, S3Error};
use cairn_xml::XmlLimits;
pub(crate) use cairn_xml::{Document, Element, InvalidXml, Progress};

/// Longest body that is read as XML, in bytes (the same as for JSON bodies of the management API). The completion of an
/// upload may be longer.
pub(crate) const XML_BODY_BYTES_MAX: usize = 1024 * 1024;
/// Most elements of one document. The completion of a multipart upload has four for each of 10 000 parts, and eight if it
/// has five checksums of each.
pub(crate) const ELEMENTS_MAX: usize = 100_000;

impl From<InvalidXml> for S3Error {
    fn from(_: InvalidXml) -> Self {
        ErrorCode::MalformedXML.into()
    }
}

/// Cuts a text that a client chose, so that an answer stays short.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}

/// Returns the limits of a document of at most `bytes_max` bytes.
pub(crate) fn limits(bytes_max: usize) -> XmlLimits {
    XmlLimits { bytes_max, elements_max: ELEMENTS_MAX }
}

/// Reads a document of at most [`XML_BODY_BYTES_MAX`].
///
/// # Errors
/// Those of [`cairn_xml::parse`].
pub(crate) fn parse(body: &[u8]) -> Result<Element, InvalidXml> {
    cairn_xml::parse(body, limits(XML_BODY_BYTES_MAX))
}
