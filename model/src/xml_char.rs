//! The characters that an XML 1.0 document can contain.

/// Returns whether a character can be written in XML 1.0 (production 2, "Char").
#[must_use]
pub const fn is_xml_char(character: char) -> bool {
    !matches!(character, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::is_xml_char;

    #[test]
    fn control_characters_and_noncharacters_are_excluded() {
        assert!("a\r\n\t\u{7f}\u{85}\u{10ffff}".chars().all(is_xml_char));
        assert!(!"\0\u{8}\u{b}\u{c}\u{1f}\u{fffe}\u{ffff}".chars().any(is_xml_char));
    }
}
