//! Continuation tokens: where a list goes on, as text that means nothing to clients.
//!
//! ```text
//! base64url, unpadded, of
//! 0      1      2                      n-4      n
//! +------+------+----------------------+--------+
//! | 0x01 | kind | key, prefix or name  | check  |
//! +------+------+----------------------+--------+
//! ```
//! `kind` is 1 for "after this key", 2 for "after this common prefix", 3 for "after this bucket"; `check` is the
//! CRC-32C, big-endian, of all before it. The check tells tokens from mistakes, not from forgeries: a token only
//! holds a position that `start-after` could name as well.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_engine::ListPosition;
use cairn_model::OBJECT_KEY_BYTES_MAX;

const VERSION: u8 = 1;
const KIND_AFTER_KEY: u8 = 1;
const KIND_AFTER_PREFIX: u8 = 2;
const KIND_AFTER_BUCKET: u8 = 3;
const CHECK_BYTES: usize = 4;
/// Version, kind, the longest key and the check.
const TOKEN_BYTES_MAX: usize = 2 + OBJECT_KEY_BYTES_MAX + CHECK_BYTES;

/// The token of a position in a list of objects.
pub(crate) fn of_position(position: &ListPosition) -> String {
    match position {
        ListPosition::AfterKey(key) => encode(KIND_AFTER_KEY, key),
        ListPosition::AfterPrefix(prefix) => encode(KIND_AFTER_PREFIX, prefix),
    }
}

/// The position of a token of a list of objects; `None` if it is none.
pub(crate) fn to_position(token: &str) -> Option<ListPosition> {
    match decode(token)? {
        (KIND_AFTER_KEY, key) => Some(ListPosition::AfterKey(key)),
        (KIND_AFTER_PREFIX, prefix) => Some(ListPosition::AfterPrefix(prefix)),
        _ => None,
    }
}

/// The token of a position in the list of buckets.
pub(crate) fn of_bucket(name: &str) -> String {
    encode(KIND_AFTER_BUCKET, name.as_bytes())
}

/// The bucket name after which a list of buckets goes on; `None` if the token is none.
pub(crate) fn to_bucket(token: &str) -> Option<String> {
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
    fn what_is_no_token_is_refused() {
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
        fn a_token_gives_back_its_position(bytes in proptest::collection::vec(any::<u8>(), 0..=1024), key: bool) {
            let position = if key { ListPosition::AfterKey(bytes) } else { ListPosition::AfterPrefix(bytes) };
            let token = of_position(&position);
            prop_assert!(token.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
            prop_assert_eq!(to_position(&token), Some(position));
        }

        #[test]
        fn a_changed_token_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64), at: usize, to in "[A-Za-z0-9_-]") {
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
