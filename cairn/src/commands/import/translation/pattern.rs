//! Patterns of the source: `*` stands for any text, `?` for one character.

/// Returns whether a pattern matches a text. Takes time in proportion to the product of their lengths at most.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut place) = (0, 0);
    // Where the last star stands, and how much of the text it stands for so far.
    let mut star: Option<(usize, usize)> = None;
    while place < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(b'?') => {
                at += 1;
                place += character_bytes(text, place);
            }
            Some(byte) if *byte == text[place] => {
                at += 1;
                place += 1;
            }
            _ => {
                let Some((star_at, star_place)) = star else { return false };
                let next = star_place + character_bytes(text, star_place);
                star = Some((star_at, next));
                (at, place) = (star_at + 1, next);
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// Returns the length of the character at a place, in bytes.
fn character_bytes(text: &[u8], place: usize) -> usize {
    let rest = text[place + 1..].iter();
    1 + rest.take_while(|byte| (**byte & 0b1100_0000) == 0b1000_0000).count()
}

/// Returns whether a text has a character that patterns read in another way.
pub(super) fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_match() {
        for (pattern, text) in
            [("*", ""), ("a*", "a"), ("a*c", "abcbc"), ("?", "ä"), ("*?b*", "aab"), ("", ""), ("**a", "a")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("a", ""), ("a*c", "ab"), ("??", "ä"), ("a", "A"), ("?", "")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    /// The definition, which takes exponential time.
    fn by_definition(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], text) => text.is_empty(),
            (['*', rest @ ..], _) => (0..=text.len()).any(|cut| by_definition(rest, &text[cut..])),
            (['?', rest @ ..], [_, after @ ..]) => by_definition(rest, after),
            ([one, rest @ ..], [other, after @ ..]) => one == other && by_definition(rest, after),
            (_, []) => false,
        }
    }

    proptest! {
        #[test]
        fn matching_agrees_with_the_definition(pattern in "[ab*?ä]{0,7}", text in "[abä]{0,8}") {
            let characters = |text: &str| text.chars().collect::<Vec<_>>();
            let expected = by_definition(&characters(&pattern), &characters(&text));
            prop_assert_eq!(matches(&pattern, &text), expected);
        }
    }
}
