//! Writes XML 1.0 documents.
//!
//! Text is escaped so that every XML parser returns it unchanged. Carriage returns, which parsers turn into line feeds,
//! are written as references, and so are tabs and line feeds. Callers must not write characters that XML 1.0 cannot
//! represent (`xml_can_represent`). If one is written all the same, U+FFFD replaces it, so that the document stays
//! well-formed.

use cairn_http1::iso8601_millis;
use cairn_model::{Timestamp, is_xml_char};
use std::fmt::{self, Write as _};

/// The first bytes of every document.
pub(crate) const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// Returns whether every character of `text` can be written in XML 1.0 (production 2, "Char").
pub(crate) fn xml_can_represent(text: &str) -> bool {
    text.chars().all(is_xml_char)
}

/// A document under construction.
pub(crate) struct XmlWriter {
    out: String,
}

impl XmlWriter {
    /// Starts a document with the XML declaration. Reserves `capacity` bytes.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        let mut out = String::with_capacity(capacity.max(DECLARATION.len()));
        out.push_str(DECLARATION);
        Self { out }
    }

    /// Opens the root element in S3's namespace.
    pub(crate) fn open_root(&mut self, name: &str) {
        self.out.push('<');
        self.out.push_str(name);
        self.out.push_str(" xmlns=\"");
        self.out.push_str(super::NAMESPACE);
        self.out.push_str("\">");
    }

    /// Opens an element.
    pub(crate) fn open(&mut self, name: &str) {
        self.out.push('<');
        self.out.push_str(name);
        self.out.push('>');
    }

    /// Closes an element.
    pub(crate) fn close(&mut self, name: &str) {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    /// Writes an element with text.
    pub(crate) fn text(&mut self, name: &str, text: &str) {
        self.open(name);
        escape_into(&mut self.out, text);
        self.close(name);
    }

    /// Writes text into the open element.
    pub(crate) fn only_text(&mut self, text: &str) {
        escape_into(&mut self.out, text);
    }

    /// Writes an element with a value whose text needs no escaping, such as a number or a date.
    pub(crate) fn value(&mut self, name: &str, value: impl fmt::Display) {
        self.open(name);
        write!(self.out, "{value}").expect("writing to a String does not fail");
        self.close(name);
    }

    /// Writes a time in whole seconds, as on AWS, so that it equals the `Last-Modified` of the object.
    pub(crate) fn time(&mut self, name: &str, time: Timestamp) {
        self.value(name, iso8601_millis(time.seconds() * 1000));
    }

    /// Returns the document.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.out.into_bytes()
    }
}

/// Appends `text`, escaped for element content and for attributes.
fn escape_into(out: &mut String, text: &str) {
    let plain = |byte: u8| (b' '..0x7f).contains(&byte) && !matches!(byte, b'&' | b'<' | b'>' | b'"' | b'\'');
    if text.bytes().all(plain) {
        out.push_str(text);
        return;
    }
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\t' => out.push_str("&#x9;"),
            '\n' => out.push_str("&#xA;"),
            '\r' => out.push_str("&#xD;"),
            other if is_xml_char(other) => out.push(other),
            _ => out.push('\u{fffd}'),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{XmlWriter, xml_can_represent};
    use crate::xml::reader;
    use proptest::prelude::*;

    fn written(text: &str) -> String {
        let mut xml = XmlWriter::with_capacity(0);
        xml.text("Key", text);
        String::from_utf8(xml.finish()).expect("UTF-8")
    }

    #[test]
    fn markup_and_control_white_space_are_escaped() {
        let xml = written("a&<>\"'\r\n\t\u{e4}");
        assert!(xml.ends_with("<Key>a&amp;&lt;&gt;&quot;&apos;&#xD;&#xA;&#x9;\u{e4}</Key>"), "{xml}");
    }

    #[test]
    fn control_characters_are_replaced() {
        assert!(xml_can_represent("a\r\n\t\u{7f}\u{85}\u{10ffff}"));
        for bad in ["\0", "\u{1}", "\u{b}", "\u{1f}", "\u{fffe}", "\u{ffff}"] {
            assert!(!xml_can_represent(bad), "{bad:?}");
            assert!(written(bad).contains('\u{fffd}'));
        }
    }

    proptest! {
        #[test]
        fn written_text_reads_back(text in any::<String>()) {
            prop_assume!(xml_can_represent(&text));
            let root = reader::parse(written(&text).as_bytes()).expect("well-formed");
            prop_assert_eq!(root.text(), text);
        }

        #[test]
        fn any_written_text_is_well_formed(text in any::<String>()) {
            prop_assert!(reader::parse(written(&text).as_bytes()).is_ok());
        }
    }
}
