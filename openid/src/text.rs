//! Texts that come from the provider, made harmless to show.

use cairn_http1::is_deceptive;

/// Returns a text without control characters and without invisible ones, cut at a length in bytes.
pub(crate) fn harmless(text: &str, bytes_max: usize) -> String {
    let mut kept = String::new();
    for letter in text.trim().chars() {
        let letter = if is_invisible(letter) { '\u{fffd}' } else { letter };
        if kept.len() + letter.len_utf8() > bytes_max {
            break;
        }
        kept.push(letter);
    }
    kept
}

/// Returns whether a character is a control, or has no look of its own: what cannot be in a file name, the rest of
/// `Default_Ignorable_Code_Point` (Unicode, UAX #44), and the blank pattern of Braille.
pub(crate) fn is_invisible(letter: char) -> bool {
    is_deceptive(letter)
        || matches!(
            letter,
            '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}'
                | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
                | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn names_cannot_change_the_text_around_them() {
        assert_eq!(harmless(" Ada\r\nroot ", 100), "Ada\u{fffd}\u{fffd}root");
        assert_eq!(harmless("a\u{202e}nimda\u{2066}", 100), "a\u{fffd}nimda\u{fffd}");
        assert_eq!(harmless("<b>Ada</b>", 100), "<b>Ada</b>", "it is shown as text");
        assert_eq!(harmless(&"ä".repeat(100), 9), "ää\u{e4}ä", "whole characters");
    }

    #[test]
    fn invisible_characters_are_seen() {
        for hidden in "\u{ad}\u{34f}\u{61c}\u{115f}\u{17b4}\u{180e}\u{200b}\u{2063}\u{2800}\u{3164}\u{fe0f}\u{feff}\u{ffa0}\u{fffb}\u{e0041}\u{e01ef}".chars() {
            assert_eq!(harmless(&format!("a{hidden}b"), 100), "a\u{fffd}b", "{hidden:?}");
        }
    }
}
