//! The changeable settings of a stored version: tags, retention and legal hold.

use cairn_http1::{encode_strict, parse_rfc3339_millis, query_pairs};
use cairn_md5::md5_digest;

use crate::s3::xml::Element;

/// Retention and legal hold of a version.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub(crate) struct Lock {
    /// `GOVERNANCE` or `COMPLIANCE`, and until when, in milliseconds since the Unix epoch.
    pub(crate) retention: Option<(String, u64)>,
    pub(crate) legal_hold: bool,
}

/// The changeable settings of a version.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Sorted.
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) lock: Lock,
}

impl Settings {
    /// Returns 16 hexadecimal digits that differ if the settings differ.
    pub(crate) fn fingerprint(&self) -> String {
        let lock = match &self.lock.retention {
            Some((mode, until)) => format!("{mode} {until}"),
            None => String::new(),
        };
        fingerprint(&format!("{}\n{lock}\n{}", self.tags_text(), self.lock.legal_hold))
    }

    /// Returns the tags in the form of `x-amz-tagging`.
    pub(crate) fn tags_text(&self) -> String {
        let pair =
            |(key, value): &(String, String)| format!("{}={}", encode_strict(key), encode_strict(value));
        self.tags.iter().map(pair).collect::<Vec<_>>().join("&")
    }
}

/// Returns 16 hexadecimal digits of the MD5 of a text.
pub(crate) fn fingerprint(text: &str) -> String {
    hex::encode(&md5_digest(text.as_bytes())[..8])
}

/// Reads retention and legal hold from headers.
pub(crate) fn parsed_lock<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Lock {
    let mode = header("x-amz-object-lock-mode").filter(|mode| !mode.is_empty());
    let until = header("x-amz-object-lock-retain-until-date").and_then(parse_rfc3339_millis);
    let hold = header("x-amz-object-lock-legal-hold");
    Lock {
        retention: mode.zip(until).map(|(mode, until)| (mode.to_ascii_uppercase(), until)),
        legal_hold: hold.is_some_and(|hold| hold.eq_ignore_ascii_case("ON")),
    }
}

/// Reads tags in the form of `x-amz-tagging`; `None` if they are malformed.
pub(crate) fn parsed_tags(text: &str) -> Option<Vec<(String, String)>> {
    let mut tags: Vec<(String, String)> = Vec::new();
    for pair in query_pairs(text) {
        let (key, value) = pair.ok()?;
        tags.push((key.into_owned(), value.into_owned()));
    }
    tags.sort_unstable();
    Some(tags)
}

/// Reads the answer of GetObjectTagging.
pub(super) fn tags_of_document(root: &Element) -> Option<Vec<(String, String)>> {
    let set = root.child("TagSet")?;
    let tag = |tag: &Element| Some((tag.text_of("Key")?.to_owned(), tag.text_of("Value")?.to_owned()));
    let mut tags = set.children().iter().map(tag).collect::<Option<Vec<_>>>()?;
    tags.sort_unstable();
    Some(tags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::s3::xml;

    #[test]
    fn tags_are_read_from_both_forms() {
        let expected = vec![("a b".to_owned(), "c+d".to_owned()), ("x".to_owned(), String::new())];
        for text in ["x=&a%20b=c%2Bd", "a+b=c%2Bd&x="] {
            assert_eq!(parsed_tags(text).as_ref(), Some(&expected), "{text}");
        }
        assert_eq!(parsed_tags(""), Some(vec![]));
        let document = "<Tagging><TagSet><Tag><Key>x</Key><Value></Value></Tag><Tag><Key>a b</Key><Value>c+d</Value></Tag></TagSet></Tagging>";
        assert_eq!(tags_of_document(&xml::parse(document).expect("XML")).as_ref(), Some(&expected));
        let settings = Settings { tags: expected, ..Settings::default() };
        assert_eq!(settings.tags_text(), "a%20b=c%2Bd&x=");
        assert_ne!(settings.fingerprint(), Settings::default().fingerprint());
        assert_eq!(settings.fingerprint().len(), 16);
    }

    #[test]
    fn locks_are_read_from_headers() {
        let lock = parsed_lock(|name| match name {
            "x-amz-object-lock-mode" => Some("Governance"),
            "x-amz-object-lock-retain-until-date" => Some("2027-01-01T00:00:00.000Z"),
            _ => Some("OFF"),
        });
        assert_eq!(
            lock,
            Lock { retention: Some(("GOVERNANCE".to_owned(), 1_798_761_600_000)), legal_hold: false }
        );
        assert_eq!(parsed_lock(|_| None), Lock::default());
        // MinIO leaves empty texts where a retention was removed.
        assert_eq!(parsed_lock(|_| Some("")), Lock::default());
    }
}
