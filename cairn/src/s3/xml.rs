//! Reads the XML that S3 servers send.

pub(crate) use cairn_xml::Element;
use cairn_xml::XmlLimits;

/// A client bounds the bytes of an answer. A page of 1 000 versions may have the metadata of each.
const LIMITS: XmlLimits = XmlLimits { bytes_max: usize::MAX, elements_max: 1_000_000 };

/// Returns the root of a document; `None` if it is not well-formed, or too deep.
pub(crate) fn parse(document: &str) -> Option<Element> {
    // Some servers send an empty line before the declaration.
    let document = document.trim_start_matches(['\u{feff}', ' ', '\r', '\n']);
    cairn_xml::parse(document.as_bytes(), LIMITS).ok()
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
    elements(document, name).into_iter().map(|element| element.text().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_taken_out_and_unescaped() {
        let document = "\r\n<?xml version=\"1.0\"?>\n<L xmlns=\"urn:x\"><Key>a&amp;lt;b&#34;&#x79;</Key><Key></Key><KeyCount>2</KeyCount><Key/></L>";
        assert_eq!(texts(document, "Key").collect::<Vec<_>>(), ["a&lt;b\"y", "", ""]);
        assert_eq!(text(document, "KeyCount").as_deref(), Some("2"));
        assert_eq!(text(document, "Code"), None);
        let root = parse(document).expect("well-formed");
        assert_eq!((root.name(), root.children().len(), root.text_of("KeyCount")), ("L", 4, Some("2")));
    }

    #[test]
    fn what_is_not_xml_has_no_elements() {
        assert_eq!(parse("an error of a proxy"), None);
        assert!(elements("<A>", "A").is_empty());
    }
}
