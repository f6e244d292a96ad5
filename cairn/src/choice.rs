//! Options whose value is one of a fixed set of words.

/// Returns the word that a text is.
///
/// # Errors
/// A message with the words.
pub(crate) fn one_of(text: &str, words: &[&'static str]) -> Result<&'static str, String> {
    words.iter().find(|word| **word == text).copied().ok_or_else(|| match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("expected {} or {last}", others.join(", ")),
        _ => format!("expected {}", words.join("")),
    })
}

/// Declares the type of an option that accepts some words.
macro_rules! choice {
    ($(#[$attribute:meta])* $choice:ident = $($word:literal)|+) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) struct $choice(pub(crate) &'static str);

        impl std::str::FromStr for $choice {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                crate::choice::one_of(text, &[$($word),+]).map(Self)
            }
        }
    };
}

pub(crate) use choice;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_words_are_answered_with_the_right_ones() {
        assert_eq!(one_of("b", &["a", "b"]), Ok("b"));
        for (words, said) in [(&["a"][..], "expected a"), (&["a", "b", "c"], "expected a, b or c")] {
            assert_eq!(one_of("A", words), Err(said.to_owned()));
        }
    }
}
