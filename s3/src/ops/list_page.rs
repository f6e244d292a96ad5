//! What pages of lists have in common, whatever they list: how much a client may ask for, and elements that several have.

use crate::checksum;
use crate::errors::{S3Error, S3Result};
use crate::ops::names::NameEncoding;
use crate::query::Query;
use crate::xml::writer::XmlWriter;
use cairn_engine::ListedObject;

/// Most keys and common prefixes, or parts, on one page; a larger number counts as this.
pub(crate) const KEYS_MAX: usize = 1000;
/// Bytes of XML around one key, for the first allocation.
pub(crate) const ENTRY_BYTES: usize = 256;

/// What `max-keys` asks for.
///
/// # Errors
/// `InvalidArgument` for what is no number of digits alone.
pub(crate) fn max_keys(query: &Query<'_>) -> S3Result<usize> {
    page_size(query, "max-keys")
}

/// How many entries the parameter `name` asks for, 1000 at most.
///
/// # Errors
/// `InvalidArgument` for what is no number of digits alone.
pub(crate) fn page_size(query: &Query<'_>, name: &'static str) -> S3Result<usize> {
    let Some(text) = query.get(name) else { return Ok(KEYS_MAX) };
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let message = format!("Provided {name} is not a non-negative integer.");
        return Err(S3Error::invalid_argument(name, text, message));
    }
    // A number beyond `usize` is as good as the largest page.
    Ok(text.parse().unwrap_or(KEYS_MAX).min(KEYS_MAX))
}

/// Whether a key marker is a common prefix of a page before: what stands after the list's prefix ends with its first
/// delimiter. The page after such a marker begins behind all keys under it.
pub(crate) fn is_common_prefix(marker: &str, prefix: &str, delimiter: Option<&str>) -> bool {
    let (Some(rest), Some(delimiter)) = (marker.strip_prefix(prefix), delimiter) else { return false };
    rest.find(delimiter).is_some_and(|at| at + delimiter.len() == rest.len())
}

/// A common prefix as text: keys and delimiters are UTF-8, hence so is what ends with a delimiter.
///
/// # Errors
/// `InternalError` when it is not.
pub(crate) fn prefix_text(prefix: &[u8]) -> S3Result<&str> {
    std::str::from_utf8(prefix).map_err(|_| S3Error::internal("a common prefix is not UTF-8"))
}

/// Writes the common prefixes of a page.
///
/// # Errors
/// `InvalidRequest` for one that XML cannot carry.
pub(crate) fn write_common_prefixes(
    xml: &mut XmlWriter,
    names: NameEncoding,
    prefixes: &[Vec<u8>],
) -> S3Result<()> {
    for prefix in prefixes {
        xml.open("CommonPrefixes");
        names.write(xml, "Prefix", prefix_text(prefix)?)?;
        xml.close("CommonPrefixes");
    }
    Ok(())
}

/// Writes which checksums an object has.
pub(crate) fn write_checksums(xml: &mut XmlWriter, object: &ListedObject) {
    for algorithm in &object.checksum_algorithms {
        xml.text("ChecksumAlgorithm", checksum::name(*algorithm));
        xml.text("ChecksumType", checksum::kind_name(object.checksum_kind));
    }
}
