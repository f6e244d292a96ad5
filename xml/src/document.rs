//! Documents, read whole or one child of the root at a time.

use crate::element::{Element, InvalidXml};
use quick_xml::Reader;
use quick_xml::events::{BytesDecl, BytesStart, Event};

/// Deepest nesting of elements. S3's deepest document has seven levels.
pub const DEPTH_MAX: usize = 16;

/// The limits of a document's size.
#[derive(Clone, Copy, Debug)]
pub struct XmlLimits {
    /// Its length in bytes.
    pub bytes_max: usize,
    /// Its number of elements. A tree takes more than twenty times the memory of a document of empty elements.
    pub elements_max: usize,
}

/// Reads a whole document and returns its root.
///
/// # Errors
/// If it is not well-formed UTF-8 XML with one root, is too large or too deep, has too many elements, or has a document
/// type or an entity. Also if it declares another encoding, unless it is all ASCII.
pub fn parse(body: &[u8], limits: XmlLimits) -> Result<Element, InvalidXml> {
    let mut document = Document::new(body, limits)?;
    let mut children = Vec::new();
    while let Some(child) = document.next_child()? {
        children.push(child);
    }
    let root = document.root.ok_or(InvalidXml)?;
    Ok(Element { children, ..root })
}

/// The point at which [`Document::read_on`] stopped.
#[derive(Debug)]
pub enum Progress {
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
pub struct Document<'b> {
    reader: Reader<&'b [u8]>,
    /// Whether the document means the same in any encoding that contains ASCII.
    is_ascii: bool,
    /// The open elements, root first. The root has no children here.
    open: Vec<Element>,
    /// The root once it has been closed.
    root: Option<Element>,
    elements: usize,
    elements_max: usize,
}

impl<'b> Document<'b> {
    /// Starts to read a document.
    ///
    /// # Errors
    /// If it is too long, or not UTF-8.
    pub fn new(body: &'b [u8], limits: XmlLimits) -> Result<Self, InvalidXml> {
        if body.len() > limits.bytes_max {
            return Err(InvalidXml);
        }
        let body = std::str::from_utf8(body)?;
        let reader = Reader::from_str(body.strip_prefix('\u{feff}').unwrap_or(body));
        let elements_max = limits.elements_max;
        let is_ascii = body.is_ascii();
        Ok(Self { reader, is_ascii, open: Vec::new(), root: None, elements: 0, elements_max })
    }

    /// The root's name, known after the last child was returned.
    pub fn root_name(&self) -> Option<&str> {
        self.root.as_ref().map(Element::name)
    }

    /// The number of bytes that were read.
    pub fn position(&self) -> u64 {
        self.reader.buffer_position()
    }

    /// Returns the next child of the root; `None` at the end of a well-formed document.
    ///
    /// # Errors
    /// Those of [`parse`].
    pub fn next_child(&mut self) -> Result<Option<Element>, InvalidXml> {
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
    pub fn read_on(&mut self, bytes: u64) -> Result<Progress, InvalidXml> {
        let pause = self.reader.buffer_position().saturating_add(bytes);
        while self.reader.buffer_position() < pause {
            match self.reader.read_event()? {
                Event::Start(start) => {
                    self.check_room()?;
                    self.open.push(element(&start));
                }
                Event::Empty(start) => {
                    self.check_room()?;
                    if let Some(child) = self.close(element(&start)) {
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
                Event::Decl(declaration) if !self.is_ascii => check_encoding(&declaration)?,
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
        let fits = self.elements <= self.elements_max && self.open.len() < DEPTH_MAX && self.root.is_none();
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

fn element(start: &BytesStart<'_>) -> Element {
    let mut attributes = start.attributes().flatten();
    let found = attributes.find(|attribute| attribute.key.local_name().as_ref() == "type");
    let type_attribute = found.map(|attribute| attribute.value.into());
    Element { name: start.local_name().as_ref().to_owned(), type_attribute, ..Element::default() }
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

/// Refuses a declaration of another encoding: the text would be another one than was meant. The document has more than ASCII.
fn check_encoding(declaration: &BytesDecl<'_>) -> Result<(), InvalidXml> {
    let Some(encoding) = declaration.encoding() else { return Ok(()) };
    let encoding = encoding?;
    let is_read = ["utf-8", "utf8", "us-ascii"].iter().any(|name| encoding.eq_ignore_ascii_case(name));
    if is_read { Ok(()) } else { Err(InvalidXml) }
}

#[cfg(test)]
mod tests {
    use super::{Document, XmlLimits};
    use crate::element::{Element, InvalidXml};
    use proptest::prelude::*;

    const LIMITS: XmlLimits = XmlLimits { bytes_max: 4000, elements_max: 500 };

    fn parse(body: &[u8]) -> Result<Element, InvalidXml> {
        super::parse(body, LIMITS)
    }

    #[test]
    fn namespaces_and_prefixes_are_dropped() {
        for body in [
            "<A><B>x &amp; &#x79;</B><C/></A>",
            "\u{feff}<?xml version=\"1.0\"?>\n<A xmlns=\"urn:x\"><!-- c --><B>x &amp; <![CDATA[y]]></B><D><E/></D></A>\n",
            "<p:A xmlns:p='urn:x'><p:B>x &amp; y</p:B></p:A>",
            "<?xml version='1.0' encoding='latin1'?><A><B>x &amp; y</B></A>",
        ] {
            let root = parse(body.as_bytes()).expect(body);
            assert_eq!(root.name(), "A");
            assert_eq!(root.child("B").map(|b| b.text()), Some("x & y"), "{body}");
            assert!(root.child("X").is_none());
            assert_eq!(root.text_of("B"), Some("x & y"));
        }
    }

    #[test]
    fn the_type_is_read_with_any_prefix() {
        let of_root = |document: &str| {
            let root = parse(document.as_bytes()).expect(document);
            root.type_attribute().map(str::to_owned)
        };
        let both = "<A xmlns:x='urn:x' x:other='1' x:type='Group'><B type='User'/></A>";
        assert_eq!(of_root(both).as_deref(), Some("Group"));
        assert_eq!(
            parse(both.as_bytes()).expect(both).child("B").and_then(|b| b.type_attribute()),
            Some("User")
        );
        assert_eq!(of_root("<A other='1'/>"), None);
    }

    #[test]
    fn elements_of_a_name_are_found_at_any_depth() {
        let root = parse(b"<L><P><N>1</N></P><N>2<N>3</N></N><N/></L>").expect("well-formed");
        let mut found = Vec::new();
        root.collect("N", &mut found);
        assert_eq!(found.iter().map(Element::text).collect::<Vec<_>>(), ["1", "2", ""]);
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
            "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><A>\u{e9}</A>",
            "<?xml version=\"1.0\" encoding=\"UTF-16\"?><A>\u{e9}</A>",
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
        assert!(parse(format!("<A>{}</A>", "x".repeat(LIMITS.bytes_max)).as_bytes()).is_err());
    }

    /// Only bytes were bounded: a body of 1 MiB held 260 000 elements of four bytes, whose tree took more than twenty
    /// times the memory of the body.
    #[test]
    fn number_of_elements_is_bounded() {
        for (empty, count) in [("<a/>", 1), ("<a></a>", 1), ("<a><b/></a>", 2)] {
            let document = |elements: usize| format!("<A>{}</A>", empty.repeat(elements / count));
            let most = LIMITS.elements_max - 1;
            assert!(parse(document(most).as_bytes()).is_ok(), "{empty}");
            assert_eq!(parse(document(most + count).as_bytes()), Err(InvalidXml), "{empty}");
        }
    }

    #[test]
    fn document_is_read_child_by_child_to_its_end() {
        let body = b"<L>\n<P><N>1</N></P><Q/> <P><N>2</N></P>\n</L>\n";
        let mut document = Document::new(body, LIMITS).expect("fits");
        let mut names = Vec::new();
        while let Some(child) = document.next_child().expect("well-formed") {
            names.push((child.name().to_owned(), child.child("N").map(|n| n.text().to_owned())));
        }
        assert_eq!(document.root_name(), Some("L"));
        let number = |text: &str| Some(text.to_owned());
        assert_eq!(names, [("P".into(), number("1")), ("Q".into(), None), ("P".into(), number("2"))]);
        assert!(Document::new(body, XmlLimits { bytes_max: 10, ..LIMITS }).is_err());
        let mut cut = Document::new(&body[..body.len() - 5], LIMITS).expect("fits");
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
