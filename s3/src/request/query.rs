//! Decodes the query of a request into names and values.
//!
//! A `+` means a space, as on AWS. The signature is computed elsewhere, from the raw text. Parameters are kept in the
//! order sent. If a name is repeated, the first value counts, and routing sees them all.

use crate::errors::{ErrorCode, S3Error, S3Result};
use cairn_http1::query_pairs;
use std::borrow::Cow;

/// Most parameters in one query. No AWS operation has more than about a dozen. The limit of the head bounds the bytes.
const PARAMETERS_MAX: usize = 256;

/// The parameters of a presigned URL's signature. They do not replace headers.
const SIGNATURE: &[&str] = &[
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-SignedHeaders",
    "X-Amz-Signature",
];

/// A decoded query.
#[derive(Debug, Default)]
pub(crate) struct Query<'a> {
    parameters: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The parameters that replace a header: names in lower case, and indexes into `parameters`. Collected once,
    /// because every lookup of a header needs them.
    hoisted: Vec<(String, usize)>,
}

/// Returns the name of the header that a parameter replaces.
fn hoisted_name(name: &str) -> Option<String> {
    let amz = name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("x-amz-"));
    let is_signature = || SIGNATURE.iter().any(|known| name.eq_ignore_ascii_case(known));
    (amz && !is_signature()).then(|| name.to_ascii_lowercase())
}

impl<'a> Query<'a> {
    /// Decodes a raw query, which has no `?`.
    ///
    /// # Errors
    /// `InvalidURI` for a broken escape, for bytes that are not UTF-8, and for too many parameters.
    pub(crate) fn parse(raw: Option<&'a str>) -> S3Result<Self> {
        let mut parameters: Vec<(Cow<'a, str>, Cow<'a, str>)> = Vec::new();
        for pair in query_pairs(raw.unwrap_or_default()) {
            if parameters.len() == PARAMETERS_MAX {
                return Err(S3Error::with_message(
                    ErrorCode::InvalidURI,
                    "The query has too many parameters.",
                ));
            }
            parameters.push(pair.map_err(|_| ErrorCode::InvalidURI)?);
        }
        let numbered = parameters.iter().enumerate();
        let hoisted = numbered.filter_map(|(at, (name, _))| Some((hoisted_name(name)?, at))).collect();
        Ok(Self { parameters, hoisted })
    }

    /// The `X-Amz-*` parameters except those of the signature, names in lower case.
    pub(crate) fn hoisted(&self) -> impl Iterator<Item = (&str, &str)> {
        self.hoisted.iter().map(|(name, at)| (name.as_str(), &*self.parameters[*at].1))
    }

    /// The value of the first parameter of this name; empty if it was sent without `=`.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    /// The value of the first parameter of this name, if it is not empty.
    pub(crate) fn get_non_empty(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// Returns whether a parameter of this name was sent, with or without a value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// All parameters in the order sent.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parameters.iter().map(|(name, value)| (&**name, &**value))
    }
}

#[cfg(test)]
mod tests {
    use super::Query;

    #[test]
    fn names_and_values_are_decoded_once() {
        let query = Query::parse(Some("prefix=a%2Fb+c%2B&&acl&x=%2525&prefix=second")).expect("decodes");
        assert_eq!(query.get("prefix"), Some("a/b c+"));
        assert_eq!(query.get("acl"), Some(""));
        assert_eq!(query.get("x"), Some("%25"));
        assert!(query.has("acl") && !query.has("policy"));
        assert_eq!(query.get_non_empty("acl"), None);
        assert_eq!(Query::parse(None).expect("empty").iter().count(), 0);
    }

    #[test]
    fn invalid_escapes_and_utf8_are_refused() {
        for raw in ["prefix=%", "prefix=%4", "prefix=%zz", "prefix=%ff", "%c3=1"] {
            assert_eq!(Query::parse(Some(raw)).expect_err(raw).code(), "InvalidURI");
        }
        assert!(Query::parse(Some(&"a&".repeat(300))).is_err());
    }
}
