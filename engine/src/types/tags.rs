//! Tags of objects and buckets: names with values.
//!
//! Source: "Categorizing your objects using tags", "Using cost allocation S3 bucket tags" (AWS).

use crate::limits::{TAG_KEY_UNITS_MAX, TAG_VALUE_UNITS_MAX};
use std::collections::HashSet;

/// Tags in the order in which they were set. No two have the same key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags(Vec<(String, String)>);

/// The reason why tags are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidTags {
    /// There are more than so many.
    TooMany(usize),
    /// A key is empty, too long, has characters that tags may not have, or begins with `aws:`.
    Key(String),
    /// A value is too long or has characters that tags may not have.
    Value {
        /// The tag's key.
        key: String,
        /// The value.
        value: String,
    },
    /// Two tags have this key.
    Duplicate(String),
}

/// Returns whether tags may have the character.
fn is_allowed(character: char) -> bool {
    character.is_alphanumeric() || character == ' ' || "+-=._:/@".contains(character)
}

fn is_valid(text: &str, units_max: usize) -> bool {
    text.encode_utf16().count() <= units_max && text.chars().all(is_allowed)
}

impl Tags {
    /// Checks keys and values.
    ///
    /// # Errors
    /// If there are more than `count_max`, or one of them is not allowed.
    pub fn new(tags: Vec<(String, String)>, count_max: usize) -> Result<Self, InvalidTags> {
        if tags.len() > count_max {
            return Err(InvalidTags::TooMany(count_max));
        }
        let mut keys = HashSet::new();
        for (key, value) in &tags {
            let is_system = key.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("aws:"));
            if key.is_empty() || is_system || !is_valid(key, TAG_KEY_UNITS_MAX) {
                return Err(InvalidTags::Key(key.clone()));
            }
            if !is_valid(value, TAG_VALUE_UNITS_MAX) {
                return Err(InvalidTags::Value { key: key.clone(), value: value.clone() });
            }
            if !keys.insert(key) {
                return Err(InvalidTags::Duplicate(key.clone()));
            }
        }
        Ok(Self(tags))
    }

    /// Returns whether a key or value has only characters that tags may have.
    #[must_use]
    pub fn has_only_allowed(text: &str) -> bool {
        text.chars().all(is_allowed)
    }

    /// Returns keys and values.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Returns the number of tags.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no tags.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether all of these tags are among them, with the same values.
    #[must_use]
    pub fn contains_all(&self, tags: &Self) -> bool {
        tags.0.iter().all(|tag| self.0.contains(tag))
    }

    /// Makes tags from a record, whose rules were checked when it was written.
    pub(crate) const fn of_record(tags: Vec<(String, String)>) -> Self {
        Self(tags)
    }
}

#[cfg(test)]
mod tests {
    use super::{InvalidTags, Tags};

    fn tags(pairs: &[(&str, &str)]) -> Result<Tags, InvalidTags> {
        Tags::new(pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(), 3)
    }

    #[test]
    fn tags_contain_others_with_the_same_values_only() {
        let (two, one) = (tags(&[("a", "1"), ("b", "")]).expect("valid"), tags(&[("b", "")]).expect("valid"));
        assert!(two.contains_all(&one) && two.contains_all(&two) && two.contains_all(&Tags::default()));
        assert!(!one.contains_all(&two) && !Tags::default().contains_all(&one));
        assert!(!two.contains_all(&tags(&[("b", "1")]).expect("valid")));
    }

    #[test]
    fn rules_for_keys_and_values() {
        let (long, longer) = ("k".repeat(128), "k".repeat(129));
        // Two units of UTF-16 each.
        let (wide, wider) = ("𝒳".repeat(128), "𝒳".repeat(129));
        assert!(tags(&[("a", ""), ("A", "b c+-=._:/@"), (&long, &wide)]).is_ok());
        for (key, value, refused) in [
            ("", "v", InvalidTags::Key(String::new())),
            (&longer, "", InvalidTags::Key(longer.clone())),
            ("AWS:x", "", InvalidTags::Key("AWS:x".into())),
            ("a&b", "", InvalidTags::Key("a&b".into())),
            ("a", &wider, InvalidTags::Value { key: "a".into(), value: wider.clone() }),
            ("a", "\n", InvalidTags::Value { key: "a".into(), value: "\n".into() }),
        ] {
            assert_eq!(tags(&[(key, value)]), Err(refused));
        }
        assert_eq!(tags(&[("a", "1"), ("a", "2")]), Err(InvalidTags::Duplicate("a".into())));
        assert_eq!(tags(&[("a", ""); 4]), Err(InvalidTags::TooMany(3)));
    }
}
