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
pub(super) struct Glob {
    pieces: Vec<Piece>,
}

impl Glob {
    /// Parses a pattern.
    ///
    /// # Errors
    /// A range without its end, or a backslash without a character.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let mut pieces = Vec::new();
        let mut rest = text.chars().peekable();
        while let Some(character) = rest.next() {
            pieces.push(match character {
                '\\' => Piece::Literal(rest.next().ok_or("the pattern ends with a backslash")?),
                '?' => Piece::AnyOne,
                '*' if rest.next_if_eq(&'*').is_some() => Piece::Any,
                '*' => Piece::AnyInLevel,
                '[' => one_of(&mut rest)?,
                other => Piece::Literal(other),
            });
        }
        Ok(Self { pieces })
    }

    /// Returns the only key that matches, if no piece has several matches.
    pub(super) fn literal(&self) -> Option<String> {
        let prefix = self.prefix();
        (prefix.chars().count() == self.pieces.len()).then_some(prefix)
    }

    /// Returns the text that all matching keys begin with.
    pub(super) fn prefix(&self) -> String {
        let literals = self.pieces.iter().map_while(|piece| match piece {
            Piece::Literal(character) => Some(*character),
            _ => None,
        });
        literals.collect()
    }

    /// Returns whether a key matches. The time is at most the product of both lengths.
    pub(super) fn matches(&self, key: &str) -> bool {
        // `reached[n]`: the first n pieces match the characters so far.
        let mut reached = vec![false; self.pieces.len() + 1];
        reached[0] = true;
        self.skip_empty(&mut reached);
        for character in key.chars() {
            let mut next = vec![false; reached.len()];
            for (index, piece) in self.pieces.iter().enumerate().filter(|(index, _)| reached[*index]) {
                match piece {
                    Piece::Any => next[index] = true,
                    Piece::AnyInLevel if character != '/' => next[index] = true,
                    Piece::AnyInLevel => {}
                    one if one.is_one(character) => next[index + 1] = true,
                    _ => {}
                }
            }
            self.skip_empty(&mut next);
            reached = next;
        }
        reached[self.pieces.len()]
    }

    /// Marks what follows pieces that match no characters.
    fn skip_empty(&self, reached: &mut [bool]) {
        for (index, piece) in self.pieces.iter().enumerate() {
            if reached[index] && matches!(piece, Piece::Any | Piece::AnyInLevel) {
                reached[index + 1] = true;
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
    use super::Glob;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, right, wrong) in [
            ("a/b.jpg", &["a/b.jpg"][..], &["a/b.jpgx", "", "a/bxjpg"][..]),
            ("*.jpg", &[".jpg", "a.jpg", "ä.jpg"], &["a/b.jpg", "a.jpg/"]),
            ("**.jpg", &["a.jpg", "a/b/c.jpg"], &["a.png"]),
            ("a/**", &["a/", "a/b", "a/b/c"], &["a", "b/a/"]),
            ("a/**/c", &["a/b/c", "a/b/b/c", "a//c"], &["a/c", "a/b/cc"]),
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

    /// A pattern like this takes exponential time if a matcher tries every split.
    #[test]
    fn many_stars_are_matched_quickly() {
        let glob = Glob::parse(&"a*".repeat(200)).expect("valid");
        assert!(!glob.matches(&("a".repeat(1000) + "/")));
    }
}
