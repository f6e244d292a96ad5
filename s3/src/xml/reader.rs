//! Reads the small XML bodies of S3 requests into a tree of elements.
//!
//! Namespaces and prefixes are dropped, for clients send them or not; attributes, comments and processing
//! instructions are skipped. Document types and references other than XML's five and to characters are refused:
//! S3 has no use for them and they are how parsers are attacked. Size, depth and number of elements are bounded.

use crate::errors::{ErrorCode, S3Error};
use quick_xml::Reader;
use quick_xml::events::Event;

/// The longest body that is read as XML (as for the management API's JSON bodies).
pub(crate) const XML_BODY_BYTES_MAX: usize = 1024 * 1024;
/// How deep elements may nest; S3's deepest request document has six levels.
pub(crate) const DEPTH_MAX: usize = 16;
/// Most elements of one document. A multipart upload of 10 000 parts is completed with eight for each part; the tree of
/// this many takes some 10 MB.
const ELEMENTS_MAX: usize = 100_000;

/// An element: its local name, its text, its children.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Element {
    name: String,
    text: String,
    children: Vec<Element>,
}

impl Element {
    /// The local name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The text directly inside, as written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// All children, in order.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn children(&self) -> &[Self] {
        &self.children
    }

    /// The children of this name, in order.
    pub(crate) fn children_named<'e>(&'e self, name: &'static str) -> impl Iterator<Item = &'e Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The one child of this name, if there is any.
    ///
    /// # Errors
    /// When there are several.
    pub(crate) fn only_child(&self, name: &'static str) -> Result<Option<&Self>, NotReadable> {
        let mut found = self.children_named(name);
        let first = found.next();
        if found.next().is_some() { Err(NotReadable) } else { Ok(first) }
    }

    /// The text of the one child of this name without white space around it, if there is any.
    ///
    /// # Errors
    /// When there are several.
    pub(crate) fn only_text(&self, name: &'static str) -> Result<Option<&str>, NotReadable> {
        Ok(self.only_child(name)?.map(|child| child.text.trim()))
    }

    /// The first child of this name.
    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }
}

/// The document is not what is read here.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotReadable;

impl From<NotReadable> for S3Error {
    fn from(_: NotReadable) -> Self {
        ErrorCode::MalformedXML.into()
    }
}

impl<E: std::error::Error> From<E> for NotReadable {
    fn from(_: E) -> Self {
        Self
    }
}

/// Reads a document.
///
/// # Errors
/// When it is not well-formed UTF-8 XML of one root, is too large or too deep, has too many elements, or has a document type or an entity.
pub(crate) fn parse(body: &[u8]) -> Result<Element, NotReadable> {
    if body.len() > XML_BODY_BYTES_MAX {
        return Err(NotReadable);
    }
    let body = std::str::from_utf8(body)?;
    let mut reader = Reader::from_str(body.strip_prefix('\u{feff}').unwrap_or(body));
    let mut open: Vec<Element> = Vec::new();
    let mut root = None;
    let mut elements = 0;
    loop {
        match reader.read_event()? {
            Event::Start(start) => {
                check_room(&open, root.as_ref(), &mut elements)?;
                open.push(element(start.local_name().as_ref()));
            }
            Event::Empty(start) => {
                check_room(&open, root.as_ref(), &mut elements)?;
                close(element(start.local_name().as_ref()), &mut open, &mut root);
            }
            Event::End(_) => close(open.pop().ok_or(NotReadable)?, &mut open, &mut root),
            Event::Text(text) => add_text(&mut open, &text.xml10_content())?,
            Event::CData(text) => add_text(&mut open, &text.xml10_content())?,
            Event::GeneralRef(reference) => {
                let resolved = match reference.resolve_char_ref()? {
                    Some(character) => character.to_string(),
                    None => predefined(&reference).ok_or(NotReadable)?.to_owned(),
                };
                open.last_mut().ok_or(NotReadable)?.text.push_str(&resolved);
            }
            Event::DocType(_) => return Err(NotReadable),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof => return if open.is_empty() { root.ok_or(NotReadable) } else { Err(NotReadable) },
        }
    }
}

/// Counts one more element, and refuses it where there may be none.
fn check_room(open: &[Element], root: Option<&Element>, elements: &mut usize) -> Result<(), NotReadable> {
    *elements += 1;
    let fits = *elements <= ELEMENTS_MAX && open.len() < DEPTH_MAX && root.is_none();
    if fits { Ok(()) } else { Err(NotReadable) }
}

fn element(name: &str) -> Element {
    Element { name: name.to_owned(), ..Element::default() }
}

fn close(finished: Element, open: &mut [Element], root: &mut Option<Element>) {
    match open.last_mut() {
        Some(parent) => parent.children.push(finished),
        None => *root = Some(finished),
    }
}

fn add_text(open: &mut [Element], text: &str) -> Result<(), NotReadable> {
    match open.last_mut() {
        Some(parent) => parent.text.push_str(text),
        None if text.trim().is_empty() => {}
        None => return Err(NotReadable),
    }
    Ok(())
}

fn predefined(entity: &str) -> Option<&'static str> {
    Some(match entity {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" => "\"",
        "apos" => "'",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{ELEMENTS_MAX, NotReadable, XML_BODY_BYTES_MAX, parse};
    use proptest::prelude::*;

    #[test]
    fn elements_are_found_with_and_without_a_namespace() {
        for body in [
            "<A><B>x &amp; &#x79;</B><C/></A>",
            "\u{feff}<?xml version=\"1.0\"?>\n<A xmlns=\"urn:x\"><!-- c --><B>x &amp; <![CDATA[y]]></B><D><E/></D></A>\n",
            "<p:A xmlns:p='urn:x'><p:B>x &amp; y</p:B></p:A>",
        ] {
            let root = parse(body.as_bytes()).expect(body);
            assert_eq!(root.name(), "A");
            assert_eq!(root.child("B").map(|b| b.text()), Some("x & y"), "{body}");
            assert!(root.child("X").is_none());
        }
    }

    #[test]
    fn what_is_malformed_or_dangerous_is_refused() {
        for body in [
            "",
            "text",
            "<A>",
            "<A></B>",
            "</A>",
            "<A/><B/>",
            "<A>&unknown;</A>",
            "<A>&#x0;</A>",
            "<A>a & b</A>",
            "<!DOCTYPE A><A/>",
            "<!DOCTYPE A [<!ENTITY x \"y\">]><A>&x;</A>",
            "<A/>trailing",
        ] {
            assert_eq!(parse(body.as_bytes()), Err(NotReadable), "{body}");
        }
        assert!(parse(b"<A>\xff</A>").is_err());
        assert!(parse(format!("{}{}", "<A>".repeat(17), "</A>".repeat(17)).as_bytes()).is_err());
        assert!(parse(format!("{}{}", "<A>".repeat(16), "</A>".repeat(16)).as_bytes()).is_ok());
        assert!(parse(format!("<A>{}</A>", "x".repeat(XML_BODY_BYTES_MAX)).as_bytes()).is_err());
    }

    /// Only bytes were bounded: a body of 1 MiB held 260 000 elements of four bytes, whose tree took more than twenty
    /// times the room of the body.
    #[test]
    fn a_document_has_a_bounded_number_of_elements() {
        for (empty, count) in [("<a/>", 1), ("<a></a>", 1), ("<a><b/></a>", 2)] {
            let document = |elements: usize| format!("<A>{}</A>", empty.repeat(elements / count));
            let most = ELEMENTS_MAX - 1;
            assert!(parse(document(most).as_bytes()).is_ok(), "{empty}");
            assert_eq!(parse(document(most + count).as_bytes()), Err(NotReadable), "{empty}");
        }
    }

    proptest! {
        #[test]
        fn no_body_makes_the_reader_panic(body in proptest::collection::vec(any::<u8>(), 0..256), markup in "[<>/&;!\\[\\]A-C#x0-9 \"'=-]{0,64}") {
            let _ = parse(&body);
            let _ = parse(markup.as_bytes());
        }
    }
}
