//! Shared code of lists: page sizes, common prefixes, and elements that several lists write.

use crate::access::account;
use crate::compatibility::Compatibility;
use crate::errors::{S3Error, S3Result};
use crate::headers::checksum;
use crate::ops::name_encoding::NameEncoding;
use crate::request::query::Query;
use crate::xml::writer::XmlWriter;
use cairn_engine::ListedObject;

/// Most entries on one page. A larger request counts as this many.
pub(crate) const KEYS_MAX: usize = 1000;
/// Largest page size or number of a part that AWS reads: that of an `i32`.
const NUMBER_MAX: usize = i32::MAX as usize;
/// Estimated bytes of XML for one key, to size the first allocation.
pub(crate) const ENTRY_BYTES: usize = 256;

/// Parses `max-keys`.
///
/// # Errors
/// `InvalidArgument` for anything but digits.
pub(crate) fn max_keys(query: &Query<'_>, mode: Compatibility) -> S3Result<usize> {
    page_size(query, "max-keys", mode)
}

/// Parses the page size in the parameter `name`, at most 1000.
///
/// # Errors
/// Those of [`number`].
pub(crate) fn page_size(query: &Query<'_>, name: &'static str, mode: Compatibility) -> S3Result<usize> {
    match (query.get(name), mode) {
        (None, _) | (Some(""), Compatibility::Extended) => Ok(KEYS_MAX),
        (Some(text), _) => Ok(number(name, text, mode)?.min(KEYS_MAX)),
    }
}

/// Parses a page size or a marker that is a number. In the mode `strict`, a number that is too large counts as the
/// largest.
///
/// # Errors
/// `InvalidArgument` for anything but digits, and in the mode `extended` for a number that AWS cannot read.
pub(crate) fn number(name: &'static str, text: &str, mode: Compatibility) -> S3Result<usize> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let message = format!("Provided {name} is not a non-negative integer.");
        return Err(S3Error::invalid_argument(name, text, message));
    }
    match (text.parse::<usize>(), mode) {
        (Ok(number), Compatibility::Strict) => Ok(number),
        (Err(_), Compatibility::Strict) => Ok(usize::MAX),
        (Ok(number), Compatibility::Extended) if number <= NUMBER_MAX => Ok(number),
        (_, Compatibility::Extended) => {
            let message = format!("Argument {name} must be an integer between 0 and {NUMBER_MAX}");
            Err(S3Error::invalid_argument(name, text, message))
        }
    }
}

/// Returns the common prefix after which a page with this key marker begins, if the marker is one: the text after the list's
/// prefix ends with its first delimiter. In the mode `extended`, as on AWS, a marker within a common prefix counts as the
/// prefix.
pub(crate) fn common_prefix<'m>(
    marker: &'m str,
    prefix: &str,
    delimiter: Option<&str>,
    mode: Compatibility,
) -> Option<&'m str> {
    let (rest, delimiter) = (marker.strip_prefix(prefix)?, delimiter?);
    let end = marker.len() - rest.len() + rest.find(delimiter)? + delimiter.len();
    (end == marker.len() || mode == Compatibility::Extended).then(|| &marker[..end])
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

/// The owners of objects in a list: named, or left out.
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
