//! Patterns of keys: `*` and `?` within one level, `**` across levels, `[a-z]`. A backslash makes a character literal.

/// A piece of a pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Literal(char),
    /// `?`: one character, not `/`.
    AnyOne,
    /// `*`: any characters, not `/`.
    AnyInLevel,
    /// `**`: any characters.
    Any,
    /// `[…]`: one character of these ranges; `[!…]`: one of the others.
    OneOf {
        ranges: Vec<(char, char)>,
        is_negated: bool,
    },
}

/// A pattern of keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Glob {
    pieces: Vec<Piece>,
}

impl Glob {
    /// Parses a pattern.
    ///
    /// # Errors
    /// A range without its end, or a backslash without a character.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let mut pieces = Vec::new();
        let mut rest = text.chars().peekable();
        while let Some(character) = rest.next() {
            let piece = match character {
                '\\' => Piece::Literal(rest.next().ok_or("the pattern ends with a backslash")?),
                '?' => Piece::AnyOne,
                '*' if rest.next_if_eq(&'*').is_some() => Piece::Any,
                '*' => Piece::AnyInLevel,
                '[' => one_of(&mut rest)?,
                other => Piece::Literal(other),
            };
            // Adjacent stars match what the widest of them matches. One is left, because `matches` looks at all that follow.
            match (pieces.last_mut(), &piece) {
                (Some(Piece::Any), Piece::Any | Piece::AnyInLevel)
                | (Some(Piece::AnyInLevel), Piece::AnyInLevel) => {}
                (Some(last @ Piece::AnyInLevel), Piece::Any) => *last = piece,
                _ => pieces.push(piece),
            }
        }
        Ok(Self { pieces })
    }

    /// Returns the only key that matches, if no piece has several matches.
    #[must_use]
    pub fn literal(&self) -> Option<String> {
        let prefix = self.prefix();
        (prefix.chars().count() == self.pieces.len()).then_some(prefix)
    }

    /// Returns the text that all matching keys begin with.
    #[must_use]
    pub fn prefix(&self) -> String {
        let literals = self.pieces.iter().map_while(|piece| match piece {
            Piece::Literal(character) => Some(*character),
            _ => None,
        });
        literals.collect()
    }

    /// Returns whether a key matches. The time is at most the product of both lengths.
    #[must_use]
    pub fn matches(&self, key: &str) -> bool {
        // `n` is reached when the first n pieces match the characters so far. Most patterns have reached only a few.
        let (mut reached, mut next) = (Vec::new(), Vec::new());
        self.reach(0, &mut reached);
        for character in key.chars() {
            for &number in &reached {
                match self.pieces.get(number) {
                    Some(Piece::Any) => self.reach(number, &mut next),
                    Some(Piece::AnyInLevel) if character != '/' => self.reach(number, &mut next),
                    Some(one) if one.is_one(character) => self.reach(number + 1, &mut next),
                    _ => {}
                }
            }
            std::mem::swap(&mut reached, &mut next);
            next.clear();
            if reached.is_empty() {
                return false;
            }
        }
        reached.last() == Some(&self.pieces.len())
    }

    /// Adds what is reached with `number`: also what follows pieces that match no characters. Callers add in ascending order.
    fn reach(&self, number: usize, reached: &mut Vec<usize>) {
        for number in number.. {
            if reached.last().is_none_or(|last| *last < number) {
                reached.push(number);
            }
            if !matches!(self.pieces.get(number), Some(Piece::Any | Piece::AnyInLevel)) {
                return;
            }
        }
    }
}

impl Piece {
    fn is_one(&self, character: char) -> bool {
        match self {
            Self::Literal(own) => *own == character,
            Self::AnyOne => character != '/',
            Self::OneOf { ranges, is_negated } => {
                let is_inside = ranges.iter().any(|(first, last)| (*first..=*last).contains(&character));
                character != '/' && is_inside != *is_negated
            }
            Self::Any | Self::AnyInLevel => false,
        }
    }
}

/// Parses what follows `[`.
fn one_of(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Piece, &'static str> {
    const OPEN: &str = "the pattern has a [ without a ]; write \\[ for the character";
    let is_negated = rest.next_if(|next| matches!(next, '!' | '^')).is_some();
    let mut ranges = Vec::new();
    loop {
        let first = match rest.next().ok_or(OPEN)? {
            // As the first character, it is literal.
            ']' if !ranges.is_empty() => return Ok(Piece::OneOf { ranges, is_negated }),
            '\\' => rest.next().ok_or(OPEN)?,
            character => character,
        };
        let mut last = first;
        if rest.peek() == Some(&'-') {
            rest.next();
            match rest.peek() {
                Some(']') => ranges.push(('-', '-')),
                _ => last = rest.next().ok_or(OPEN)?,
            }
        }
        ranges.push((first, last));
    }
}

#[cfg(test)]
mod tests {
    use super::{Glob, Piece};
    use proptest::prelude::*;
    use std::time::{Duration, Instant};

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, right, wrong) in [
            ("a/b.jpg", &["a/b.jpg"][..], &["a/b.jpgx", "", "a/bxjpg"][..]),
            ("*.jpg", &[".jpg", "a.jpg", "ä.jpg"], &["a/b.jpg", "a.jpg/"]),
            ("**.jpg", &["a.jpg", "a/b/c.jpg"], &["a.png"]),
            ("a/**", &["a/", "a/b", "a/b/c"], &["a", "b/a/"]),
            ("a/**/c", &["a/b/c", "a/b/b/c", "a//c"], &["a/c", "a/b/cc"]),
            ("a***c", &["ac", "a/b/c"], &["a", "a/b"]),
            ("****/c", &["/c", "a/b/c"], &["c"]),
            ("?/b", &["a/b"], &["/b", "aa/b", "//b"]),
            ("[a-c]x", &["ax", "cx"], &["dx", "x"]),
            ("[!a-c]x", &["dx"], &["ax", "/x"]),
            ("[]-]", &["]", "-"], &["a"]),
            (r"\*\[", &["*["], &["a["]),
            ("", &[""], &["a"]),
        ] {
            let glob = Glob::parse(pattern).expect("valid");
            for key in right {
                assert!(glob.matches(key), "{pattern} {key}");
            }
            for key in wrong {
                assert!(!glob.matches(key), "{pattern} {key}");
            }
        }
        for wrong in ["[a", "[", "\\", "[]"] {
            assert!(Glob::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn literal_text_and_common_prefix_are_known() {
        let parse = |text| Glob::parse(text).expect("valid");
        assert_eq!(parse("a/b").literal().as_deref(), Some("a/b"));
        assert_eq!(parse(r"a\*").literal().as_deref(), Some("a*"));
        assert_eq!(parse("a*").literal(), None);
        assert_eq!(parse("a/b*c").prefix(), "a/b");
        assert_eq!(parse("[ab]").prefix(), "");
    }

    /// Patterns like these take exponential time if a matcher tries every split. Here a key takes at most a million steps.
    #[test]
    fn many_stars_are_matched_quickly() {
        let key = "a".repeat(1023) + "/";
        let begun = Instant::now();
        for pattern in
            ["a*".repeat(200), "**a".repeat(341), "*".repeat(1024), "a**/*b".repeat(170), "?*".repeat(512)]
        {
            let glob = Glob::parse(&pattern).expect("valid");
            let is_match = (0..10).filter(|_| glob.matches(&key)).count() > 0;
            assert_eq!(is_match, pattern.starts_with("**") && pattern.ends_with('*'), "{pattern}");
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    }

    /// Each of many adjacent stars was reached from each before it: a million steps for a character.
    #[test]
    fn adjacent_stars_are_one_piece() {
        for (pattern, piece) in [
            ("*", Piece::AnyInLevel),
            ("**", Piece::Any),
            ("***", Piece::Any),
            (&"*".repeat(1024), Piece::Any),
        ] {
            assert_eq!(Glob::parse(pattern).expect("valid").pieces, [piece], "{pattern}");
        }
    }

    /// Compares with a matcher that is obviously right.
    fn matches_slowly(pieces: &[Piece], key: &[char]) -> bool {
        let Some((piece, rest)) = pieces.split_first() else { return key.is_empty() };
        let skips = matches!(piece, Piece::Any | Piece::AnyInLevel) && matches_slowly(rest, key);
        skips
            || key.split_first().is_some_and(|(first, after)| match piece {
                Piece::Any => matches_slowly(pieces, after),
                Piece::AnyInLevel => *first != '/' && matches_slowly(pieces, after),
                one => one.is_one(*first) && matches_slowly(rest, after),
            })
    }

    proptest! {
        #[test]
        fn every_pattern_matches_what_its_pieces_match(pattern in "[ab/*?]{0,10}", key in "[ab/]{0,8}") {
            let glob = Glob::parse(&pattern).expect("valid");
            let characters: Vec<char> = key.chars().collect();
            prop_assert_eq!(glob.matches(&key), matches_slowly(&glob.pieces, &characters));
        }
    }
}
