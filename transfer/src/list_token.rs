//! List tokens: the position where a list continues, as opaque text.
//!
//! ```text
//! base64url, unpadded, of
//! 0      1      2                      n-4      n
//! +------+------+----------------------+--------+
//! | 0x01 | kind | key, prefix or name  | check  |
//! +------+------+----------------------+--------+
//! ```
//! `kind` is 1 for "after this key", 2 for "after this common prefix", 3 for "after this bucket". `check` is the
//! CRC-32C, big-endian, of all bytes before it. It detects mistakes, not forgeries: a forged token contains only a
//! position that `start-after` could name too.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_engine::ListPosition;
use cairn_model::OBJECT_KEY_BYTES_MAX;

const VERSION: u8 = 1;
const KIND_AFTER_KEY: u8 = 1;
const KIND_AFTER_PREFIX: u8 = 2;
const KIND_AFTER_BUCKET: u8 = 3;
const CHECK_BYTES: usize = 4;
/// Longest token before encoding, in bytes: version, kind, the longest key and the check.
const TOKEN_BYTES_MAX: usize = 2 + OBJECT_KEY_BYTES_MAX + CHECK_BYTES;

/// Encodes a position in a list of objects.
#[must_use]
pub fn of_position(position: &ListPosition) -> String {
    match position {
        ListPosition::AfterKey(key) => encode(KIND_AFTER_KEY, key),
        ListPosition::AfterPrefix(prefix) => encode(KIND_AFTER_PREFIX, prefix),
    }
}

/// Decodes a position in a list of objects; `None` for an invalid token.
#[must_use]
pub fn to_position(token: &str) -> Option<ListPosition> {
    match decode(token)? {
        (KIND_AFTER_KEY, key) => Some(ListPosition::AfterKey(key)),
        (KIND_AFTER_PREFIX, prefix) => Some(ListPosition::AfterPrefix(prefix)),
        _ => None,
    }
}

/// Encodes a position in the list of buckets.
#[must_use]
pub fn of_bucket(name: &str) -> String {
    encode(KIND_AFTER_BUCKET, name.as_bytes())
}

/// Decodes the bucket name after which a list of buckets continues; `None` for an invalid token.
#[must_use]
pub fn to_bucket(token: &str) -> Option<String> {
    match decode(token)? {
        (KIND_AFTER_BUCKET, name) => String::from_utf8(name).ok(),
        _ => None,
    }
}

fn encode(kind: u8, position: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(2 + position.len() + CHECK_BYTES);
    bytes.extend([VERSION, kind]);
    bytes.extend_from_slice(position);
    let check = crc_fast::crc32_iscsi(&bytes);
    bytes.extend(check.to_be_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

fn decode(token: &str) -> Option<(u8, Vec<u8>)> {
    if token.len() > TOKEN_BYTES_MAX.div_ceil(3) * 4 {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (content, check) = bytes.split_last_chunk::<CHECK_BYTES>()?;
    let [VERSION, kind, position @ ..] = content else { return None };
    let intact = crc_fast::crc32_iscsi(content) == u32::from_be_bytes(*check);
    (intact && position.len() <= OBJECT_KEY_BYTES_MAX).then(|| (*kind, position.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::{of_bucket, of_position, to_bucket, to_position};
    use cairn_engine::ListPosition;
    use proptest::prelude::*;

    #[test]
    fn invalid_tokens_are_refused() {
        let key = of_position(&ListPosition::AfterKey(b"a/b".to_vec()));
        let bucket = of_bucket("photos");
        for bad in ["", "x", "AAAA", "!!!!", "a/b", &bucket, &format!("{key}A"), &key[1..], &"A".repeat(5000)]
        {
            assert_eq!(to_position(bad), None, "{bad}");
        }
        assert_eq!(to_bucket(&key), None);
        assert_eq!(to_bucket(&bucket).as_deref(), Some("photos"));
    }

    proptest! {
        #[test]
        fn token_decodes_to_its_position(bytes in proptest::collection::vec(any::<u8>(), 0..=1024), key: bool) {
            let position = if key { ListPosition::AfterKey(bytes) } else { ListPosition::AfterPrefix(bytes) };
            let token = of_position(&position);
            prop_assert!(token.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
            prop_assert_eq!(to_position(&token), Some(position));
        }

        #[test]
        fn changed_token_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64), at: usize, to in "[A-Za-z0-9_-]") {
            let position = ListPosition::AfterKey(bytes);
            let token = of_position(&position);
            let at = at % token.len();
            let changed = format!("{}{}{}", &token[..at], to, &token[at + 1..]);
            prop_assume!(changed != token);
            prop_assert_eq!(to_position(&changed), None);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in any::<String>()) {
            let _ = to_position(&text);
            let _ = to_bucket(&text);
        }
    }
}
