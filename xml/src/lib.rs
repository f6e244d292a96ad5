//! Parses small XML request bodies into a tree of elements.
//!
//! Namespaces and prefixes are dropped, because not all clients send them. Attributes, comments and processing
//! instructions are skipped. A long list is read one child of its root at a time ([`Document`]). Document types and
//! entities other than the five of XML are refused: S3 does not use them, and parsers are attacked with them. Size,
//! depth and number of elements are bounded.

use crate::errors::{ErrorCode, S3Error};
use quick_xml::Reader;
use quick_xml::events::Event;

/// Longest body that is read as XML, in bytes (the same as for JSON bodies of the management API). The completion of an
/// upload may be longer.
pub(crate) const XML_BODY_BYTES_MAX: usize = 1024 * 1024;
/// Deepest nesting of elements. S3's deepest request document has six levels.
pub(crate) const DEPTH_MAX: usize = 16;
/// Most elements of one document. The completion of a multipart upload has four for each of 10 000 parts, and eight if it
/// has five checksums of each.
const ELEMENTS_MAX: usize = 100_000;

/// An element.
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
    pub(crate) fn children(&self) -> &[Self] {
        &self.children
    }

    /// The children of this name, in order.
    pub(crate) fn children_named<'e>(&'e self, name: &'static str) -> impl Iterator<Item = &'e Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// Returns the only child of this name, if there is one.
    ///
    /// # Errors
    /// If there are several.
    pub(crate) fn only_child(&self, name: &'static str) -> Result<Option<&Self>, InvalidXml> {
        let mut found = self.children_named(name);
        let first = found.next();
        if found.next().is_some() { Err(InvalidXml) } else { Ok(first) }
    }

    /// Returns the trimmed text of the only child of this name, if there is one.
    ///
    /// # Errors
    /// If there are several.
    pub(crate) fn only_text(&self, name: &'static str) -> Result<Option<&str>, InvalidXml> {
        Ok(self.only_child(name)?.map(|child| child.text.trim()))
    }

    /// The first child of this name.
    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }
}

/// The document is not well-formed, not allowed, or lacks what the operation needs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidXml;

impl From<InvalidXml> for S3Error {
    fn from(_: InvalidXml) -> Self {
        ErrorCode::MalformedXML.into()
    }
}

impl<E: std::error::Error> From<E> for InvalidXml {
    fn from(_: E) -> Self {
        Self
    }
}

/// Reads a document of at most [`XML_BODY_BYTES_MAX`].
///
/// # Errors
/// If it is not well-formed UTF-8 XML with one root, is too large or too deep, has too many elements, or has a document
/// type or an entity.
pub(crate) fn parse(body: &[u8]) -> Result<Element, InvalidXml> {
    let mut document = Document::new(body, XML_BODY_BYTES_MAX)?;
    let mut children = Vec::new();
    while let Some(child) = document.next_child()? {
        children.push(child);
    }
    let root = document.root.ok_or(InvalidXml)?;
    Ok(Element { children, ..root })
}

/// Where [`Document::read_on`] stopped.
#[derive(Debug)]
pub(crate) enum Progress {
    /// At the end of a child of the root.
    Child(Element),
    /// After as many bytes as were requested.
    Paused,
    /// At the end of the document, which is well-formed.
    End,
}

/// A document that is read one child of its root at a time.
///
/// A long document takes no more memory than its longest child, and its reader can yield to other tasks.
pub(crate) struct Document<'b> {
    reader: Reader<&'b [u8]>,
    /// The open elements, root first. The root has no children here.
    open: Vec<Element>,
    /// The root once it has been closed.
    root: Option<Element>,
    elements: usize,
}

impl<'b> Document<'b> {
    /// Starts to read a document of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// If it is longer, or not UTF-8.
    pub(crate) fn new(body: &'b [u8], bytes_max: usize) -> Result<Self, InvalidXml> {
        if body.len() > bytes_max {
            return Err(InvalidXml);
        }
        let body = std::str::from_utf8(body)?;
        let reader = Reader::from_str(body.strip_prefix('\u{feff}').unwrap_or(body));
        Ok(Self { reader, open: Vec::new(), root: None, elements: 0 })
    }

    /// The root's name, known after the last child was returned.
    pub(crate) fn root_name(&self) -> Option<&str> {
        self.root.as_ref().map(Element::name)
    }

    /// The number of bytes that were read.
    pub(crate) fn position(&self) -> u64 {
        self.reader.buffer_position()
    }

    /// Returns the next child of the root; `None` at the end of a well-formed document.
    ///
    /// # Errors
    /// Those of [`parse`].
    pub(crate) fn next_child(&mut self) -> Result<Option<Element>, InvalidXml> {
        loop {
            match self.read_on(u64::MAX)? {
                Progress::Paused => {}
                Progress::Child(child) => return Ok(Some(child)),
                Progress::End => return Ok(None),
            }
        }
    }

    /// Reads to the end of the next child of the root, or to the end of the document. Stops earlier, after the first
    /// tag or text that ends at least `bytes` bytes after the current position.
    ///
    /// # Errors
    /// Those of [`parse`].
    pub(crate) fn read_on(&mut self, bytes: u64) -> Result<Progress, InvalidXml> {
        let pause = self.reader.buffer_position().saturating_add(bytes);
        while self.reader.buffer_position() < pause {
            match self.reader.read_event()? {
                Event::Start(start) => {
                    self.check_room()?;
                    self.open.push(element(start.local_name().as_ref()));
                }
                Event::Empty(start) => {
                    self.check_room()?;
                    if let Some(child) = self.close(element(start.local_name().as_ref())) {
                        return Ok(Progress::Child(child));
                    }
                }
                Event::End(_) => {
                    let finished = self.open.pop().ok_or(InvalidXml)?;
                    if let Some(child) = self.close(finished) {
                        return Ok(Progress::Child(child));
                    }
                }
                Event::Text(text) => self.add_text(&text.xml10_content())?,
                Event::CData(text) => self.add_text(&text.xml10_content())?,
                Event::GeneralRef(reference) => {
                    let resolved = match reference.resolve_char_ref()? {
                        Some(character) => character.to_string(),
                        None => predefined(&reference).ok_or(InvalidXml)?.to_owned(),
                    };
                    self.open.last_mut().ok_or(InvalidXml)?.text.push_str(&resolved);
                }
                Event::DocType(_) => return Err(InvalidXml),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
                Event::Eof if self.open.is_empty() && self.root.is_some() => return Ok(Progress::End),
                Event::Eof => return Err(InvalidXml),
            }
        }
        Ok(Progress::Paused)
    }

    /// Counts one more element, and refuses it if there are too many, it is too deep, or it follows the root.
    fn check_room(&mut self) -> Result<(), InvalidXml> {
        self.elements += 1;
        let fits = self.elements <= ELEMENTS_MAX && self.open.len() < DEPTH_MAX && self.root.is_none();
        if fits { Ok(()) } else { Err(InvalidXml) }
    }

    /// Adds a finished element to its parent. Returns it instead if its parent is the root.
    fn close(&mut self, finished: Element) -> Option<Element> {
        match self.open.as_mut_slice() {
            [] => self.root = Some(finished),
            [_] => return Some(finished),
            [.., parent] => parent.children.push(finished),
        }
        None
    }

    fn add_text(&mut self, text: &str) -> Result<(), InvalidXml> {
        match self.open.last_mut() {
            Some(parent) => parent.text.push_str(text),
            None if text.trim().is_empty() => {}
            None => return Err(InvalidXml),
        }
        Ok(())
    }
}

fn element(name: &str) -> Element {
    Element { name: name.to_owned(), ..Element::default() }
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
    use super::{Document, ELEMENTS_MAX, InvalidXml, XML_BODY_BYTES_MAX, parse};
    use proptest::prelude::*;

    #[test]
    fn namespaces_and_prefixes_are_dropped() {
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
    fn malformed_and_dangerous_documents_are_refused() {
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
            assert_eq!(parse(body.as_bytes()), Err(InvalidXml), "{body}");
        }
        assert!(parse(b"<A>\xff</A>").is_err());
        assert!(parse(format!("{}{}", "<A>".repeat(17), "</A>".repeat(17)).as_bytes()).is_err());
        assert!(parse(format!("{}{}", "<A>".repeat(16), "</A>".repeat(16)).as_bytes()).is_ok());
        assert!(parse(format!("<A>{}</A>", "x".repeat(XML_BODY_BYTES_MAX)).as_bytes()).is_err());
    }

    /// Only bytes were bounded: a body of 1 MiB held 260 000 elements of four bytes, whose tree took more than twenty
    /// times the memory of the body.
    #[test]
    fn number_of_elements_is_bounded() {
        for (empty, count) in [("<a/>", 1), ("<a></a>", 1), ("<a><b/></a>", 2)] {
            let document = |elements: usize| format!("<A>{}</A>", empty.repeat(elements / count));
            let most = ELEMENTS_MAX - 1;
            assert!(parse(document(most).as_bytes()).is_ok(), "{empty}");
            assert_eq!(parse(document(most + count).as_bytes()), Err(InvalidXml), "{empty}");
        }
    }

    #[test]
    fn document_is_read_child_by_child_to_its_end() {
        let body = b"<L>\n<P><N>1</N></P><Q/> <P><N>2</N></P>\n</L>\n";
        let mut document = Document::new(body, 100).expect("fits");
        let mut names = Vec::new();
        while let Some(child) = document.next_child().expect("well-formed") {
            names.push((child.name().to_owned(), child.child("N").map(|n| n.text().to_owned())));
        }
        assert_eq!(document.root_name(), Some("L"));
        let number = |text: &str| Some(text.to_owned());
        assert_eq!(names, [("P".into(), number("1")), ("Q".into(), None), ("P".into(), number("2"))]);
        assert!(Document::new(body, 10).is_err());
        let mut cut = Document::new(&body[..body.len() - 5], 100).expect("fits");
        let first_error = std::iter::from_fn(|| cut.next_child().transpose()).find_map(Result::err);
        assert_eq!(first_error, Some(InvalidXml));
    }

    proptest! {
        #[test]
        fn no_body_makes_the_reader_panic(body in proptest::collection::vec(any::<u8>(), 0..256), markup in "[<>/&;!\\[\\]A-C#x0-9 \"'=-]{0,64}") {
            let _ = parse(&body);
            let _ = parse(markup.as_bytes());
        }
    }
}
