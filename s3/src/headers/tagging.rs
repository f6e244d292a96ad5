//! Tags in requests and responses: the header `x-amz-tagging` and the document `Tagging`.
//!
//! Source: "Categorizing your objects using tags" (AWS); API Reference, PutObjectTagging, PutBucketTagging.

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::request::fields::Fields;
use crate::xml::reader::Element;
use crate::xml::writer::XmlWriter;
use cairn_engine::limits::{OBJECT_TAGS_MAX, TAG_KEY_UNITS_MAX, TAG_VALUE_UNITS_MAX};
use cairn_engine::{InvalidTags, Tags};
use cairn_http1::{ResponseHead, query_pairs};

const HEADER: &str = "x-amz-tagging";
const DIRECTIVE_HEADER: &str = "x-amz-tagging-directive";
/// The root of the document.
pub(crate) const DOCUMENT: &str = "Tagging";

/// The source of a copy's tags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TaggingDirective {
    /// From the source.
    Copy,
    /// From the request.
    Replace,
}

/// Reads the directive of a copy.
///
/// # Errors
/// `InvalidArgument` for an unknown directive.
pub(crate) fn directive(fields: Fields<'_>) -> S3Result<TaggingDirective> {
    match fields.amz(DIRECTIVE_HEADER) {
        None | Some("COPY") => Ok(TaggingDirective::Copy),
        Some("REPLACE") => Ok(TaggingDirective::Replace),
        Some(other) => Err(S3Error::invalid_argument(DIRECTIVE_HEADER, other, "Unknown tagging directive.")),
    }
}

/// Reads the tags of a new object from the header, which is encoded like a query. Without one there are none.
///
/// # Errors
/// `InvalidArgument` for a header that cannot be decoded or names a key twice; `InvalidTag`; `BadRequest` for too many.
pub(crate) fn from_request(fields: Fields<'_>) -> S3Result<Tags> {
    let Some(text) = fields.amz(HEADER).filter(|text| !text.is_empty()) else { return Ok(Tags::default()) };
    let refused = || {
        let message = "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters \
                       without tag name duplicates.";
        S3Error::invalid_argument(HEADER, text, message)
    };
    let mut tags = Vec::new();
    for pair in query_pairs(text) {
        let (key, value) = pair.map_err(|_| refused())?;
        tags.push((key.into_owned(), value.into_owned()));
        if tags.len() > OBJECT_TAGS_MAX {
            break;
        }
    }
    Tags::new(tags, OBJECT_TAGS_MAX).map_err(|invalid| match invalid {
        InvalidTags::Duplicate(_) => refused(),
        InvalidTags::Key(text) | InvalidTags::Value { value: text, .. } if !Tags::has_only_allowed(&text) => {
            refused()
        }
        invalid => tags_error(invalid, "Object tags"),
    })
}

/// Reads a document of at most `count_max` tags. `what` names these in an error.
///
/// # Errors
/// `MalformedXML`, `InvalidTag`; `BadRequest` for too many.
pub(crate) fn from_document(document: &Element, count_max: usize, what: &str) -> S3Result<Tags> {
    match document.only_child("TagSet")? {
        Some(set) => from_element(set, count_max, what),
        // As on AWS, a document without a set has no tags.
        None => Ok(Tags::default()),
    }
}

/// Reads an element with at most `count_max` tags. `what` names these in an error.
///
/// # Errors
/// `MalformedXML`, `InvalidTag`; `BadRequest` for too many.
pub(crate) fn from_element(set: &Element, count_max: usize, what: &str) -> S3Result<Tags> {
    let mut tags = Vec::new();
    for tag in set.children_named("Tag") {
        tags.push(read_tag(tag)?);
    }
    Tags::new(tags, count_max).map_err(|invalid| tags_error(invalid, what))
}

/// Reads key and value of an element `Tag`.
///
/// # Errors
/// `MalformedXML` if one of them is missing.
pub(crate) fn read_tag(tag: &Element) -> S3Result<(String, String)> {
    let text = |name| tag.only_child(name)?.map(Element::text).ok_or(crate::xml::reader::InvalidXml);
    Ok((text("Key")?.to_owned(), text("Value")?.to_owned()))
}

/// Words what is wrong with tags. `what` names them if they are too many.
pub(crate) fn tags_error(invalid: InvalidTags, what: &str) -> S3Error {
    let message = match &invalid {
        InvalidTags::TooMany(max) => {
            return S3Error::with_message(
                ErrorCode::BadRequest,
                format!("{what} cannot be greater than {max}"),
            );
        }
        InvalidTags::Duplicate(_) => "Cannot provide multiple Tags with the same key".to_owned(),
        InvalidTags::Key(_) => format!(
            "The TagKey you have provided is invalid: it must have 1 to {TAG_KEY_UNITS_MAX} characters, letters, digits, \
             spaces and + - = . _ : / @, and not begin with aws:."
        ),
        InvalidTags::Value { .. } => format!(
            "The TagValue you have provided is invalid: it must have up to {TAG_VALUE_UNITS_MAX} characters, letters, \
             digits, spaces and + - = . _ : / @."
        ),
    };
    let error = S3Error::with_message(ErrorCode::InvalidTag, message);
    match invalid {
        InvalidTags::Duplicate(key) | InvalidTags::Key(key) => error.element("TagKey", shown(&key)),
        InvalidTags::Value { key, value } => {
            error.element("TagKey", shown(&key)).element("TagValue", shown(&value))
        }
        InvalidTags::TooMany(_) => error,
    }
}

/// Cuts a key or value, of which a document may have a megabyte, so that an answer stays short.
fn shown(text: &str) -> String {
    text.chars().take(TAG_VALUE_UNITS_MAX).collect()
}

/// Returns the document with these tags.
pub(crate) fn document(tags: &Tags) -> XmlWriter {
    let mut xml = XmlWriter::with_capacity(256);
    xml.open_root(DOCUMENT);
    xml.open("TagSet");
    for (key, value) in tags.iter() {
        xml.open("Tag");
        xml.text("Key", key);
        xml.text("Value", value);
        xml.close("Tag");
    }
    xml.close("TagSet");
    xml.close(DOCUMENT);
    xml
}

/// Writes the number of an object's tags into a response to GET or HEAD.
pub(crate) fn write_count(head: &mut ResponseHead, tags: &Tags) {
    head.header("x-amz-tagging-count", tags.len().to_string());
}

#[cfg(test)]
mod tests {
    use super::{directive, from_document, from_request};
    use crate::request::fields::Fields;
    use crate::request::query::Query;
    use crate::xml::reader::parse;

    fn of_header(value: &str) -> Result<Vec<(String, String)>, &'static str> {
        let query = Query::default();
        let headers: &[(&str, &[u8])] = &[("x-amz-tagging", value.as_bytes())];
        let tags = from_request(Fields::new(headers, &query)).map_err(|error| error.code())?;
        Ok(tags.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    fn of_document(text: &str) -> Result<usize, &'static str> {
        let document = parse(text.as_bytes()).expect("well-formed");
        from_document(&document, 2, "Tags").map(|tags| tags.len()).map_err(|error| error.code())
    }

    #[test]
    fn header_is_encoded_like_a_query() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(of_header(""), Ok(vec![]));
        assert_eq!(of_header("a=1&b+c=%C3%A4&d"), Ok(vec![pair("a", "1"), pair("b c", "ä"), pair("d", "")]));
        let eleven: Vec<String> = (0..11).map(|number| format!("k{number}=")).collect();
        for (value, code) in [
            ("a=%zz", "InvalidArgument"),
            ("a=%ff", "InvalidArgument"),
            ("a=1&a=2", "InvalidArgument"),
            ("=1", "InvalidTag"),
            ("aws:a=1", "InvalidTag"),
            ("a=%0A", "InvalidArgument"),
            ("a=1,b=2", "InvalidArgument"),
            (&eleven.join("&"), "BadRequest"),
        ] {
            assert_eq!(of_header(value), Err(code), "{value}");
        }
    }

    #[test]
    fn documents_name_each_key_once() {
        let tag = |key: &str| format!("<Tag><Key>{key}</Key><Value/></Tag>");
        let document = |inner: &str| format!("<Tagging><TagSet>{inner}</TagSet></Tagging>");
        assert_eq!(of_document(&document("")), Ok(0));
        assert_eq!(of_document("<Tagging/>"), Ok(0));
        assert_eq!(of_document(&document(&(tag("a") + &tag("b")))), Ok(2));
        for (text, code) in [
            (document("<Tag><Key>a</Key></Tag>"), "MalformedXML"),
            (document("<Tag><Key>a</Key><Key>b</Key><Value/></Tag>"), "MalformedXML"),
            (document(&(tag("a") + &tag("a"))), "InvalidTag"),
            (document(&tag("")), "InvalidTag"),
            (document(&(tag("a") + &tag("b") + &tag("c"))), "BadRequest"),
        ] {
            assert_eq!(of_document(&text), Err(code), "{text}");
        }
    }

    #[test]
    fn unknown_directives_are_refused() {
        let query = Query::default();
        for (value, is_valid) in [("COPY", true), ("REPLACE", true), ("copy", false), ("", false)] {
            let headers: &[(&str, &[u8])] = &[("x-amz-tagging-directive", value.as_bytes())];
            assert_eq!(directive(Fields::new(headers, &query)).is_ok(), is_valid, "{value}");
        }
    }
}
