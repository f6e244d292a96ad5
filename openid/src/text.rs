//! Texts that come from the provider, made harmless to show.

/// Returns a text without control characters and without those that change the direction of writing, cut at a length in bytes.
pub(crate) fn harmless(text: &str, bytes_max: usize) -> String {
    let mut kept = String::new();
    for letter in text.trim().chars() {
        let letter = if letter.is_control() || is_invisible(letter) { '\u{fffd}' } else { letter };
        if kept.len() + letter.len_utf8() > bytes_max {
            break;
        }
        kept.push(letter);
    }
    kept
}

/// Returns whether a character only changes how others look: marks and overrides of direction, joiners, separators of lines.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
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
}
