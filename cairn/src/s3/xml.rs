//! Reads the XML that S3 servers send into a tree. Namespaces, attributes and comments are dropped.

use quick_xml::Reader;
use quick_xml::events::Event;

/// Deepest nesting of elements. S3's deepest answer has seven levels.
const DEPTH_MAX: usize = 16;

/// An element.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Element {
    name: String,
    text: String,
    children: Vec<Element>,
}

impl Element {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The text directly inside.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn children(&self) -> &[Self] {
        &self.children
    }

    /// Returns the first child of this name.
    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Returns the text of the first child of this name.
    pub(crate) fn text_of(&self, name: &str) -> Option<&str> {
        self.child(name).map(Self::text)
    }

    /// Appends all elements of this name, at any depth, in the order of the document.
    fn collect(self, name: &str, found: &mut Vec<Self>) {
        if self.name == name {
            found.push(self);
        } else {
            self.children.into_iter().for_each(|child| child.collect(name, found));
        }
    }
}

/// Returns the root of a document; `None` if it is not well-formed, or too deep.
pub(crate) fn parse(document: &str) -> Option<Element> {
    let mut reader = Reader::from_str(document.trim_start_matches(['\u{feff}', ' ', '\r', '\n']));
    let mut open: Vec<Element> = Vec::new();
    loop {
        let finished = match reader.read_event().ok()? {
            Event::Start(start) if open.len() < DEPTH_MAX => {
                let name = start.local_name().as_ref().to_owned();
                open.push(Element { name, ..Element::default() });
                continue;
            }
            Event::Empty(start) => {
                Element { name: start.local_name().as_ref().to_owned(), ..Element::default() }
            }
            Event::End(_) => open.pop()?,
            Event::Text(text) => {
                add_text(&mut open, &text.xml10_content())?;
                continue;
            }
            Event::CData(text) => {
                add_text(&mut open, &text.xml10_content())?;
                continue;
            }
            Event::GeneralRef(reference) => {
                let resolved = match reference.resolve_char_ref().ok()? {
                    Some(character) => character.to_string(),
                    None => predefined(&reference)?.to_owned(),
                };
                open.last_mut()?.text.push_str(&resolved);
                continue;
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => continue,
            Event::Start(_) | Event::DocType(_) | Event::Eof => return None,
        };
        match open.last_mut() {
            Some(parent) => parent.children.push(finished),
            None => return Some(finished),
        }
    }
}

fn add_text(open: &mut [Element], text: &str) -> Option<()> {
    match open.last_mut() {
        Some(parent) => parent.text.push_str(text),
        None if text.trim().is_empty() => {}
        None => return None,
    }
    Some(())
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

/// Returns all elements of this name, which are not nested in themselves.
pub(crate) fn elements(document: &str, name: &str) -> Vec<Element> {
    let mut found = Vec::new();
    if let Some(root) = parse(document) {
        root.collect(name, &mut found);
    }
    found
}

/// Returns the text of the first element of this name.
pub(crate) fn text(document: &str, name: &str) -> Option<String> {
    texts(document, name).next()
}

/// Returns the texts of all elements of this name.
pub(crate) fn texts(document: &str, name: &str) -> impl Iterator<Item = String> + use<> {
    elements(document, name).into_iter().map(|element| element.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_taken_out_and_unescaped() {
        let document = "<?xml version=\"1.0\"?>\n<L xmlns=\"urn:x\"><Key>a&amp;lt;b&#34;&#x79;</Key><Key></Key><KeyCount>2</KeyCount><Key/></L>";
        assert_eq!(texts(document, "Key").collect::<Vec<_>>(), ["a&lt;b\"y", "", ""]);
        assert_eq!(text(document, "KeyCount").as_deref(), Some("2"));
        assert_eq!(text(document, "Code"), None);
        let root = parse(document).expect("well-formed");
        assert_eq!((root.name(), root.children().len(), root.text_of("KeyCount")), ("L", 4, Some("2")));
    }

    #[test]
    fn what_is_not_xml_has_no_elements() {
        for document in ["", "text", "<A>", "<A></B>", "<!DOCTYPE A><A/>", "<A>&x;</A>", "<A>&#x0;</A>"] {
            assert_eq!(parse(document), None, "{document}");
        }
        assert_eq!(parse(&format!("{}{}", "<A>".repeat(17), "</A>".repeat(17))), None);
    }
}
