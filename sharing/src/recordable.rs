//! Hides tokens of links in audit records, logs and refused requests.
//!
//! A URL of a link that is sent to the wrong port looks like a bucket and a key. The bucket then has a name that no bucket can
//! have, so its key says nothing about the store, and may be a token.

use crate::types::token::{TOKEN_CHARACTERS, TokenHash};
use cairn_model::BucketName;

/// Stands for a text that may be a token.
pub const HIDDEN_TOKEN: &str = "{token}";

/// Returns bucket and key as they may be recorded. The key of a bucket that cannot exist is left out, and also the bucket's
/// name, if it is long enough to contain a token.
#[must_use]
pub fn recordable_names<'t>(bucket: &'t str, key: &'t str) -> (&'t str, &'t str) {
    match BucketName::parse(bucket) {
        Ok(_) => (bucket, key),
        Err(_) if bucket.len() < TOKEN_CHARACTERS => (bucket, ""),
        Err(_) => (HIDDEN_TOKEN, ""),
    }
}

/// Returns the id of a record as it may be recorded. No id has the form of a token.
#[must_use]
pub fn recordable_id(id: &str) -> &str {
    if TokenHash::of(id).is_some() { HIDDEN_TOKEN } else { id }
}

#[cfg(test)]
mod tests {
    use super::{HIDDEN_TOKEN, recordable_id, recordable_names};
    use crate::types::token::CapabilityToken;

    #[test]
    fn tokens_in_wrong_places_are_left_out() {
        let token = CapabilityToken::generate().expect("random bytes");
        let token = token.expose();
        let below = format!("s/{token}");
        for (bucket, key, expected) in [
            ("photos", token, ("photos", token)),
            ("s", token, ("s", "")),
            ("S", token, ("S", "")),
            ("", &*below, ("", "")),
            ("..", &*below, ("..", "")),
            (&*below, "", (HIDDEN_TOKEN, "")),
            (token, "content", (HIDDEN_TOKEN, "")),
            ("My_Bucket", "", ("My_Bucket", "")),
        ] {
            assert_eq!(recordable_names(bucket, key), expected, "{bucket} {key}");
        }
        assert_eq!(recordable_id(token), HIDDEN_TOKEN);
        for id in ["", "01890000-0000-7000-8000-000000000000", "0123456789abcdef0123456789abcdef"] {
            assert_eq!(recordable_id(id), id);
        }
    }
}
