//! Shared code of lists: page sizes, common prefixes, and elements that several lists write.

use crate::access::account;
use crate::errors::{S3Error, S3Result};
use crate::headers::checksum;
use crate::ops::name_encoding::NameEncoding;
use crate::request::query::Query;
use crate::xml::writer::XmlWriter;
use cairn_engine::ListedObject;

/// Most entries on one page. A larger request counts as this many.
pub(crate) const KEYS_MAX: usize = 1000;
/// Estimated bytes of XML for one key, to size the first allocation.
pub(crate) const ENTRY_BYTES: usize = 256;

/// Parses `max-keys`.
///
/// # Errors
/// `InvalidArgument` for anything but digits.
pub(crate) fn max_keys(query: &Query<'_>) -> S3Result<usize> {
    page_size(query, "max-keys")
}

/// Parses the page size in the parameter `name`, at most 1000.
///
/// # Errors
/// `InvalidArgument` for anything but digits.
pub(crate) fn page_size(query: &Query<'_>, name: &'static str) -> S3Result<usize> {
    let Some(text) = query.get(name) else { return Ok(KEYS_MAX) };
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let message = format!("Provided {name} is not a non-negative integer.");
        return Err(S3Error::invalid_argument(name, text, message));
    }
    // A number that does not fit into `usize` counts as the largest page.
    Ok(text.parse().unwrap_or(KEYS_MAX).min(KEYS_MAX))
}

/// Whether a key marker is a common prefix of the previous page: the text after the list's prefix ends with its first
/// delimiter. The page after such a marker starts after all keys with this prefix.
pub(crate) fn is_common_prefix(marker: &str, prefix: &str, delimiter: Option<&str>) -> bool {
    let (Some(rest), Some(delimiter)) = (marker.strip_prefix(prefix), delimiter) else { return false };
    rest.find(delimiter).is_some_and(|at| at + delimiter.len() == rest.len())
}

/// Converts a common prefix to text. Keys and delimiters are UTF-8, and so is every text that ends with a delimiter.
///
/// # Errors
/// `InternalError` if it is not UTF-8.
pub(crate) fn prefix_text(prefix: &[u8]) -> S3Result<&str> {
    std::str::from_utf8(prefix).map_err(|_| S3Error::internal("a common prefix is not UTF-8"))
}

/// Writes the common prefixes of a page.
///
/// # Errors
/// `InvalidRequest` for one that XML cannot represent.
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

/// Whether a list names the owner of each object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owners {
    Named,
    Omitted,
}

/// Writes an object of a list of current objects.
///
/// # Errors
/// `InvalidRequest` for a key that XML cannot represent.
pub(crate) fn write_object(
    xml: &mut XmlWriter,
    names: NameEncoding,
    owners: Owners,
    object: &ListedObject,
) -> S3Result<()> {
    xml.open("Contents");
    names.write(xml, "Key", &object.key)?;
    xml.time("LastModified", object.last_modified);
    xml.value("ETag", format_args!("&quot;{}&quot;", object.etag));
    write_checksums(xml, object);
    xml.value("Size", object.size);
    if owners == Owners::Named {
        account::write_owner(xml);
    }
    xml.text("StorageClass", "STANDARD");
    xml.close("Contents");
    Ok(())
}

/// Writes the algorithms and the type of an object's checksums.
pub(crate) fn write_checksums(xml: &mut XmlWriter, object: &ListedObject) {
    for algorithm in &object.checksum_algorithms {
        xml.text("ChecksumAlgorithm", checksum::name(*algorithm));
        xml.text("ChecksumType", checksum::kind_name(object.checksum_kind));
    }
}
