//! Reads the body of DeleteObjects: the objects that the client names. Source: API Reference, DeleteObjects.
//!
//! Two megabytes of XML take a while: the document is read in pieces, and other tasks run in between.

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::xml::reader::{Document, Element, InvalidXml, Progress, limits};
use crate::xml::writer::xml_can_represent;
use futures_lite::future::yield_now;

/// Longest document, in bytes (AWS: 2 MB).
pub(crate) const BODY_BYTES_MAX: usize = 2 << 20;
/// Most objects of one request (AWS: DeleteObjects).
pub(crate) const OBJECTS_MAX: usize = 1000;
/// Bytes of the document that are read before other tasks run.
const BYTES_PER_YIELD: u64 = 32 << 10;

/// An object to delete, as the client names it. Only the XML has been checked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedObject {
    pub(crate) key: String,
    pub(crate) version: Option<String>,
    /// Conditions on the current object or the named version: entity tag, size and time of the last modification.
    pub(crate) etag: Option<String>,
    pub(crate) size: Option<String>,
    pub(crate) last_modified: Option<String>,
}

/// The document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DeleteRequest {
    /// Whether the response names only the objects that could not be deleted.
    pub(crate) is_quiet: bool,
    /// At least one, at most [`OBJECTS_MAX`], in the order of the document. An object may be named repeatedly.
    pub(crate) objects: Vec<NamedObject>,
}

/// Reads the document.
///
/// # Errors
/// `MalformedXML`, also for no object, too many objects, no key, and keys that XML cannot represent.
pub(crate) async fn parse(body: &[u8]) -> S3Result<DeleteRequest> {
    let mut document = Document::new(body, limits(BODY_BYTES_MAX))?;
    let mut objects: Vec<NamedObject> = Vec::new();
    let mut quiet = None;
    let mut bytes_since_yield = 0;
    loop {
        let before = document.position();
        let progress = document.read_on(BYTES_PER_YIELD)?;
        bytes_since_yield += document.position() - before;
        if bytes_since_yield >= BYTES_PER_YIELD {
            bytes_since_yield = 0;
            yield_now().await;
        }
        match progress {
            Progress::Child(child) if child.name() == "Object" => {
                if objects.len() == OBJECTS_MAX {
                    return Err(malformed("A request deletes at most 1000 objects: send several requests."));
                }
                objects.push(named_object(&child)?);
            }
            Progress::Child(child) if child.name() == "Quiet" => {
                let is_repeated = quiet.replace(parse_flag(child.text().trim())?).is_some();
                if is_repeated {
                    return Err(InvalidXml.into());
                }
            }
            Progress::Child(_) | Progress::Paused => {}
            Progress::End => break,
        }
    }
    if document.root_name() != Some("Delete") || objects.is_empty() {
        return Err(InvalidXml.into());
    }
    Ok(DeleteRequest { is_quiet: quiet.unwrap_or(false), objects })
}

fn named_object(object: &Element) -> S3Result<NamedObject> {
    let text = |name| object.only_text(name).map(|text| text.map(str::to_owned));
    let key = object.only_child("Key")?.map(Element::text).filter(|key| !key.is_empty()).ok_or(InvalidXml)?;
    if !xml_can_represent(key) {
        return Err(malformed(
            "A key contains characters that XML 1.0 cannot represent: delete it with DeleteObject.",
        ));
    }
    Ok(NamedObject {
        key: key.to_owned(),
        version: text("VersionId")?,
        etag: text("ETag")?,
        size: text("Size")?,
        last_modified: text("LastModifiedTime")?,
    })
}

fn parse_flag(text: &str) -> Result<bool, InvalidXml> {
    match text {
        "" => Ok(false),
        _ if text.eq_ignore_ascii_case("true") => Ok(true),
        _ if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(InvalidXml),
    }
}

fn malformed(message: &'static str) -> S3Error {
    S3Error::with_message(ErrorCode::MalformedXML, message)
}

/// Checks what must hold of every document.
///
/// # Panics
/// Panics when it does not hold.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check_list(body: &[u8]) {
    let Ok(request) = futures_lite::future::block_on(parse(body)) else { return };
    assert!((1..=OBJECTS_MAX).contains(&request.objects.len()));
    let is_named = |object: &NamedObject| !object.key.is_empty() && xml_can_represent(&object.key);
    assert!(request.objects.iter().all(is_named));
}

#[cfg(test)]
mod tests {
    use super::{BODY_BYTES_MAX, DeleteRequest, NamedObject, parse};
    use crate::errors::S3Result;
    use futures_lite::future::block_on;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    fn parsed(children: &str) -> S3Result<DeleteRequest> {
        block_on(parse(format!("<Delete>{children}</Delete>").as_bytes()))
    }

    #[test]
    fn objects_are_read_as_they_are_named() {
        let body = "\n<Quiet> TRUE </Quiet><Other/><Object><Key> a&amp;b&#13;\n</Key></Object>\
                    <Object><VersionId> null </VersionId><Key>c</Key><ETag>\"x\"</ETag><Size>3</Size>\
                    <LastModifiedTime>t</LastModifiedTime></Object><Object><Key>c</Key></Object>";
        let request = parsed(body).expect("a list");
        assert!(request.is_quiet);
        let text = |text: &str| Some(text.to_owned());
        let second = NamedObject {
            key: "c".to_owned(),
            version: text("null"),
            etag: text("\"x\""),
            size: text("3"),
            last_modified: text("t"),
        };
        let key = |key: &str| NamedObject { key: key.to_owned(), ..NamedObject::default() };
        assert_eq!(request.objects, [key(" a&b\r\n"), second, key("c")]);
        assert!(!parsed("<Object><Key>a</Key></Object>").expect("a list").is_quiet);
    }

    #[test]
    fn malformed_documents_are_refused() {
        let object = "<Object><Key>a</Key></Object>";
        for body in [
            String::new(),
            "<Object/>".to_owned(),
            "<Object><Key/></Object>".to_owned(),
            "<Object><Key></Key></Object>".to_owned(),
            "<Object><Key>a</Key><Key>b</Key></Object>".to_owned(),
            "<Object><Key>a</Key><VersionId>1</VersionId><VersionId>2</VersionId></Object>".to_owned(),
            "<Object><Key>&#x1;</Key></Object>".to_owned(),
            format!("{object}<Quiet>yes</Quiet>"),
            format!("{object}<Quiet>true</Quiet><Quiet>false</Quiet>"),
            object.repeat(1001),
            "<Object>".to_owned(),
        ] {
            assert_eq!(parsed(&body).expect_err(&body).code(), "MalformedXML", "{body}");
        }
        assert_eq!(parsed(&object.repeat(1000)).expect("fits").objects.len(), 1000);
        let other = block_on(parse(format!("<Remove>{object}</Remove>").as_bytes()));
        assert_eq!(other.expect_err("another document").code(), "MalformedXML");
        assert!(parsed(&" ".repeat(BODY_BYTES_MAX)).is_err());
    }

    #[test]
    fn a_thousand_of_the_longest_keys_fit() {
        let object = format!("<Object><Key>{}</Key></Object>", "k".repeat(1024));
        assert_eq!(parsed(&object.repeat(1000)).expect("fits").objects.len(), 1000);
    }

    #[test]
    fn reading_yields_whatever_the_document_contains() {
        let body = format!("<Delete>{}", "<Other>text</Other>".repeat((1 << 20) / 19));
        let mut context = Context::from_waker(Waker::noop());
        let mut reading = pin!(parse(body.as_bytes()));
        let mut yields = 0;
        while reading.as_mut().poll(&mut context).is_pending() {
            yields += 1;
        }
        assert!((30..=33).contains(&yields), "{yields}");
    }
}
