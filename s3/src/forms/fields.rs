//! The fields of a form: those of its signature, the key, and those that count as headers of a PUT.
//!
//! A form sends as fields what PutObject has as headers. The fields become headers here, so that both are checked and stored
//! by the same code.

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::forms::key::with_filename;
use crate::headers::attributes::STORED_HEADERS;
use cairn_http1::{is_field_value, is_token, trim_ows};
use cairn_identity::{SignedForm, SignedFormVersion2};

/// Fields that are part of the signature and not headers.
const SIGNATURE_FIELDS: [&str; 4] = ["x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature"];
/// The prefix of fields that are neither read nor covered by a policy.
pub(crate) const IGNORED_PREFIX: &str = "x-ignore-";

/// The fields before the file.
#[derive(Debug)]
pub(crate) struct FormFields {
    /// Names in lower case, each once except those with [`IGNORED_PREFIX`].
    pairs: Vec<(String, String)>,
    /// The key with the name of the file in it.
    key: Option<String>,
}

impl FormFields {
    /// Takes the fields of a form. `filename` is the name of its file.
    ///
    /// # Errors
    /// `InvalidArgument` for a field that is sent twice.
    pub(crate) fn new(pairs: Vec<(String, String)>, filename: &str) -> S3Result<Self> {
        for (at, (name, value)) in pairs.iter().enumerate() {
            let is_repeated = pairs[..at].iter().any(|(earlier, _)| earlier == name);
            if is_repeated && !name.starts_with(IGNORED_PREFIX) {
                return Err(S3Error::invalid_argument(
                    name,
                    value,
                    "The form has this field more than once: send it once.",
                ));
            }
        }
        let key = pairs.iter().find(|(name, _)| name == "key").map(|(_, key)| with_filename(key, filename));
        Ok(Self { pairs, key })
    }

    /// Returns a field as the policy sees it: the key has the name of the file in it.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        if name == "key" {
            return self.key.as_deref();
        }
        self.pairs.iter().find(|(found, _)| found == name).map(|(_, value)| &**value)
    }

    /// Returns the names of all fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.pairs.iter().map(|(name, _)| &**name)
    }

    /// Returns the key of the object.
    ///
    /// # Errors
    /// `UserKeyMustBeSpecified` if there is none, or an empty one.
    pub(crate) fn key(&self) -> S3Result<&str> {
        self.key
            .as_deref()
            .filter(|key| !key.is_empty())
            .ok_or_else(|| ErrorCode::UserKeyMustBeSpecified.into())
    }

    /// Returns the fields of the signature.
    pub(crate) fn signature(&self) -> SignedForm<'_> {
        SignedForm {
            algorithm: self.get("x-amz-algorithm"),
            credential: self.get("x-amz-credential"),
            date: self.get("x-amz-date"),
            signature: self.get("x-amz-signature"),
            policy: self.get("policy"),
            version_2: SignedFormVersion2 {
                access_key: self.get("awsaccesskeyid"),
                signature: self.get("signature"),
            },
            has_security_token: self.get("x-amz-security-token").is_some(),
        }
    }

    /// Returns the fields that are headers of PutObject, as such.
    ///
    /// # Errors
    /// `InvalidArgument` for a name or value that a header cannot have. It could be stored, but not returned.
    pub(crate) fn headers(&self) -> S3Result<Vec<(&str, &[u8])>> {
        let mut headers: Vec<(&str, &[u8])> = Vec::new();
        for (name, value) in &self.pairs {
            let header = match &**name {
                "acl" => "x-amz-acl",
                "content-md5" | "if-match" | "if-none-match" => name,
                stored if STORED_HEADERS.iter().any(|(header, _)| *header == stored) => name,
                amz if amz.starts_with("x-amz-") && !SIGNATURE_FIELDS.contains(&amz) => name,
                _ => continue,
            };
            let text = trim_ows(value.as_bytes());
            if !is_token(header) || !is_field_value(text) {
                let message = "The field becomes a header: its name must be one, and its value must not have control \
                               characters such as line breaks.";
                return Err(S3Error::invalid_argument(name, value, message));
            }
            if headers.iter().any(|(earlier, _)| *earlier == header) {
                return Err(S3Error::invalid_argument(
                    name,
                    value,
                    "The form has this field under two names: send one of them.",
                ));
            }
            headers.push((header, text));
        }
        Ok(headers)
    }
}

#[cfg(test)]
mod tests {
    use super::FormFields;
    use crate::errors::S3Result;

    fn fields(pairs: &[(&str, &str)]) -> S3Result<FormFields> {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        FormFields::new(pairs, "a.txt")
    }

    #[test]
    fn key_has_the_name_of_the_file() {
        let form = fields(&[("key", "up/${filename}")]).expect("valid");
        assert_eq!((form.key().expect("there"), form.get("key")), ("up/a.txt", Some("up/a.txt")));
        for pairs in [&[][..], &[("key", "")]] {
            let refused = fields(pairs).expect("valid");
            assert_eq!(refused.key().expect_err("no key").code(), "UserKeyMustBeSpecified");
        }
    }

    #[test]
    fn fields_of_a_put_become_headers() {
        let form = fields(&[
            ("key", "k"),
            ("acl", "private"),
            ("content-type", " text/plain "),
            ("x-amz-meta-a", "1"),
            ("x-amz-date", "20261121T000000Z"),
            ("x-amz-signature", "00"),
            ("policy", "e30="),
            ("success_action_status", "201"),
            ("x-ignore-b", "\r\n"),
            ("x-ignore-b", ""),
        ]);
        let form = form.expect("valid");
        let headers: &[(&str, &[u8])] =
            &[("x-amz-acl", b"private"), ("content-type", b"text/plain"), ("x-amz-meta-a", b"1")];
        assert_eq!(form.headers().expect("valid"), headers);
    }

    /// A line break in a content type would end the header of every later response and begin another.
    #[test]
    fn fields_that_cannot_be_headers_are_refused() {
        for pair in [
            ("content-type", "text/plain\r\nSet-Cookie: a=b"),
            ("cache-control", "no-store\nX: y"),
            ("content-disposition", "a\0b"),
            ("x-amz-meta-a", "\u{1}"),
            ("x-amz-meta-a b", "1"),
            ("x-amz-meta-\u{e4}", "1"),
        ] {
            let refused = fields(&[pair]).expect("parsed").headers().expect_err(pair.0);
            assert_eq!(refused.code(), "InvalidArgument");
        }
        let twice = fields(&[("acl", "private"), ("x-amz-acl", "private")]).expect("parsed");
        assert_eq!(twice.headers().expect_err("twice").code(), "InvalidArgument");
        assert_eq!(fields(&[("key", "a"), ("key", "b")]).expect_err("twice").code(), "InvalidArgument");
    }
}
