//! Finds a text within others, whatever the case of ASCII letters.

/// A text that is searched for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextSearch {
    /// In lower case.
    wanted: Box<[u8]>,
}

impl TextSearch {
    /// Searches for a text. The empty text is in every other.
    #[must_use]
    pub fn new(wanted: &str) -> Self {
        Self { wanted: wanted.bytes().map(|byte| byte.to_ascii_lowercase()).collect() }
    }

    /// Returns whether the text is part of another. Only ASCII letters are compared without regard to their case.
    #[must_use]
    pub fn is_in(&self, text: &str) -> bool {
        let Some(first) = self.wanted.first() else { return true };
        let text = text.as_bytes();
        let Some(last_start) = text.len().checked_sub(self.wanted.len()) else { return false };
        // Most places differ in their first byte.
        (0..=last_start).any(|start| {
            text[start].to_ascii_lowercase() == *first
                && text[start..start + self.wanted.len()].eq_ignore_ascii_case(&self.wanted)
        })
    }

    /// Returns whether the text is part of a path of two parts with a slash between them.
    #[must_use]
    pub fn is_in_path(&self, first: &str, second: &str) -> bool {
        self.is_in(first)
            || self.is_in(second)
            || (self.wanted.contains(&b'/') && self.is_in(&format!("{first}/{second}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_found_anywhere_in_any_case() {
        let is_in = |wanted: &str, text: &str| TextSearch::new(wanted).is_in(text);
        assert!(is_in("", "") && is_in("", "a") && is_in("a", "a") && is_in("BC", "abcd"));
        assert!(is_in("cd", "abCD") && is_in("ab", "ABcd") && is_in("aab", "aaaab"));
        assert!(!is_in("a", "") && !is_in("abc", "ab") && !is_in("ac", "abc"));
        // Other letters are compared as they are, and no character is cut.
        assert!(is_in("ä", "Bär") && !is_in("Ä", "bär") && is_in("\u{1f600}", "x\u{1f600}y"));
    }

    #[test]
    fn text_is_found_across_parts_of_a_path() {
        let search = TextSearch::new("media/2026");
        assert!(search.is_in_path("Media", "2026/a.jpg") && search.is_in_path("x", "media/2026"));
        assert!(!search.is_in_path("media", "x2026"));
        assert!(!TextSearch::new("a2").is_in_path("media", "2026"));
    }
}
