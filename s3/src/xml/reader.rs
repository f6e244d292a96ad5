//! Reads the small XML bodies of S3 requests into a tree of elements.
//!
//! Namespaces and prefixes are dropped, for clients send them or not; attributes, comments and processing
//! instructions are skipped. A long list is read one child of its root at a time ([`Document`]). Document types and references other than XML's five and to characters are refused:
//! S3 has no use for them and they are how parsers are attacked. Size, depth and number of elements are bounded.

use crate::errors::{ErrorCode, S3Error};
use quick_xml::Reader;
use quick_xml::events::Event;

/// The longest body that is read as XML (as for the management API's JSON bodies), but for the completion of uploads.
pub(crate) const XML_BODY_BYTES_MAX: usize = 1024 * 1024;
/// How deep elements may nest; S3's deepest request document has six levels.
pub(crate) const DEPTH_MAX: usize = 16;
/// Most elements of one document. A multipart upload of 10 000 parts is completed with at most eight for each part.
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

/// Reads a document of at most [`XML_BODY_BYTES_MAX`].
///
/// # Errors
/// When it is not well-formed UTF-8 XML of one root, is too large or too deep, has too many elements, or has a document type or an entity.
pub(crate) fn parse(body: &[u8]) -> Result<Element, NotReadable> {
    let mut document = Document::new(body, XML_BODY_BYTES_MAX)?;
    let mut children = Vec::new();
    while let Some(child) = document.next_child()? {
        children.push(child);
    }
    let root = document.root.ok_or(NotReadable)?;
    Ok(Element { children, ..root })
}

/// How far [`Document::read_on`] came.
#[derive(Debug)]
pub(crate) enum Progress {
    /// To the end of a child of the root.
    Child(Element),
    /// As many bytes as were asked for.
    Paused,
    /// To the end of the document, which was found well-formed.
    End,
}

/// A document that is read one child of its root at a time, so that a long one takes no more memory than its longest child,
/// and its reader can take turns with others.
pub(crate) struct Document<'b> {
    reader: Reader<&'b [u8]>,
    /// The elements that are open, from the root on; the root has no children here.
    open: Vec<Element>,
    /// The root once it has been closed.
    root: Option<Element>,
    elements: usize,
}

impl<'b> Document<'b> {
    /// A document of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// When it is longer, or not UTF-8.
    pub(crate) fn new(body: &'b [u8], bytes_max: usize) -> Result<Self, NotReadable> {
        if body.len() > bytes_max {
            return Err(NotReadable);
        }
        let body = std::str::from_utf8(body)?;
        let reader = Reader::from_str(body.strip_prefix('\u{feff}').unwrap_or(body));
        Ok(Self { reader, open: Vec::new(), root: None, elements: 0 })
    }

    /// The root's name, known once the last child was given.
    pub(crate) fn root_name(&self) -> Option<&str> {
        self.root.as_ref().map(Element::name)
    }

    /// How many bytes were read.
    pub(crate) fn position(&self) -> u64 {
        self.reader.buffer_position()
    }

    /// The next child of the root; `None` at the end, when the whole document was found well-formed.
    ///
    /// # Errors
    /// As [`parse`].
    pub(crate) fn next_child(&mut self) -> Result<Option<Element>, NotReadable> {
        loop {
            match self.read_on(u64::MAX)? {
                Progress::Paused => {}
                Progress::Child(child) => return Ok(Some(child)),
                Progress::End => return Ok(None),
            }
        }
    }

    /// Reads to the end of the next child of the root or of the document, or to the first tag or text that ends `bytes` or more
    /// behind here.
    ///
    /// # Errors
    /// As [`parse`].
    pub(crate) fn read_on(&mut self, bytes: u64) -> Result<Progress, NotReadable> {
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
                    let finished = self.open.pop().ok_or(NotReadable)?;
                    if let Some(child) = self.close(finished) {
                        return Ok(Progress::Child(child));
                    }
                }
                Event::Text(text) => self.add_text(&text.xml10_content())?,
                Event::CData(text) => self.add_text(&text.xml10_content())?,
                Event::GeneralRef(reference) => {
                    let resolved = match reference.resolve_char_ref()? {
                        Some(character) => character.to_string(),
                        None => predefined(&reference).ok_or(NotReadable)?.to_owned(),
                    };
                    self.open.last_mut().ok_or(NotReadable)?.text.push_str(&resolved);
                }
                Event::DocType(_) => return Err(NotReadable),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
                Event::Eof if self.open.is_empty() && self.root.is_some() => return Ok(Progress::End),
                Event::Eof => return Err(NotReadable),
            }
        }
        Ok(Progress::Paused)
    }

    /// Counts one more element, and refuses it where there may be none.
    fn check_room(&mut self) -> Result<(), NotReadable> {
        self.elements += 1;
        let fits = self.elements <= ELEMENTS_MAX && self.open.len() < DEPTH_MAX && self.root.is_none();
        if fits { Ok(()) } else { Err(NotReadable) }
    }

    /// Puts an element that has ended into the one around it; gives it back when that is the root.
    fn close(&mut self, finished: Element) -> Option<Element> {
        match self.open.as_mut_slice() {
            [] => self.root = Some(finished),
            [_] => return Some(finished),
            [.., parent] => parent.children.push(finished),
        }
        None
    }

    fn add_text(&mut self, text: &str) -> Result<(), NotReadable> {
        match self.open.last_mut() {
            Some(parent) => parent.text.push_str(text),
            None if text.trim().is_empty() => {}
            None => return Err(NotReadable),
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
    use super::{Document, ELEMENTS_MAX, NotReadable, XML_BODY_BYTES_MAX, parse};
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

    #[test]
    fn a_list_is_read_child_by_child_and_judged_to_its_end() {
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
        assert_eq!(first_error, Some(NotReadable));
    }

    proptest! {
        #[test]
        fn no_body_makes_the_reader_panic(body in proptest::collection::vec(any::<u8>(), 0..256), markup in "[<>/&;!\\[\\]A-C#x0-9 \"'=-]{0,64}") {
            let _ = parse(&body);
            let _ = parse(markup.as_bytes());
        }
    }
}
