//! Decodes the name and value pairs of a query string.
//!
//! Only `&` separates pairs; a raw `;` is data. A raw `+` is a space, as on AWS: a plus is sent as `%2B`. A name
//! without `=` has an empty value. Empty pairs (`a&&b`) are skipped.

use std::borrow::Cow;

use memchr::memchr;

use crate::percent::{DecodeError, Plus, decode_with};

/// Iterates over the decoded pairs of `query` in the order sent. `query` must not include the `?`.
#[must_use]
pub const fn query_pairs(query: &str) -> QueryPairs<'_> {
    QueryPairs { rest: query }
}

/// Iterates over decoded name and value pairs; made by [`query_pairs`]. An invalid pair gives an error, and the pairs
/// after it follow.
#[derive(Clone, Debug)]
pub struct QueryPairs<'q> {
    rest: &'q str,
}

impl<'q> Iterator for QueryPairs<'q> {
    type Item = Result<(Cow<'q, str>, Cow<'q, str>), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let (pair, rest) = split_at_byte(self.rest, b'&');
            self.rest = rest;
            if !pair.is_empty() {
                let (name, value) = split_at_byte(pair, b'=');
                return Some(decode_pair(name, value));
            }
        }
        None
    }
}

/// Returns what is before the first `separator`, which is ASCII, and what is after it; without one, the whole text.
fn split_at_byte(text: &str, separator: u8) -> (&str, &str) {
    memchr(separator, text.as_bytes()).map_or((text, ""), |at| (&text[..at], &text[at + 1..]))
}

fn decode_pair<'q>(name: &'q str, value: &'q str) -> Result<(Cow<'q, str>, Cow<'q, str>), DecodeError> {
    Ok((decode_with(name, Plus::Space)?, decode_with(value, Plus::Space)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(query: &str) -> Vec<(String, String)> {
        query_pairs(query)
            .map(|pair| pair.map(|(name, value)| (name.into_owned(), value.into_owned())).unwrap())
            .collect()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn names_and_values_are_decoded() {
        assert_eq!(
            pairs("prefix=a%2Fb&uploads&x=1=2&y=a;b&z=a+b%2B"),
            [
                pair("prefix", "a/b"),
                pair("uploads", ""),
                pair("x", "1=2"),
                pair("y", "a;b"),
                pair("z", "a b+")
            ]
        );
    }

    #[test]
    fn empty_pairs_are_skipped() {
        assert_eq!(pairs(""), []);
        assert_eq!(pairs("&&a=1&"), [pair("a", "1")]);
        assert_eq!(pairs("=v"), [pair("", "v")]);
    }

    #[test]
    fn an_invalid_pair_is_one_error() {
        let read: Vec<_> = query_pairs("a=%zz&b=1").collect();
        assert_eq!(read[0], Err(DecodeError::InvalidEncoding));
        assert_eq!(read[1], Ok((Cow::Borrowed("b"), Cow::Borrowed("1"))));
    }

    proptest! {
        #[test]
        fn any_query_is_parsed_without_panic(query in any::<String>()) {
            let _ = query_pairs(&query).count();
        }
    }
}
