//! Continuation tokens of object lists: opaque to clients.
//!
//! ```text
//! base64url, unpadded, of
//! 0      1                  n-4      n
//! +------+------------------+--------+
//! | kind | key or prefix    | check  |
//! +------+------------------+--------+
//! ```
//! `kind` is 1 for "after this key", 2 for "after this common prefix". `check` is a checksum of all bytes before it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_engine::{ListPosition, block_check};
use cairn_model::OBJECT_KEY_BYTES_MAX;

const AFTER_KEY: u8 = 1;
const AFTER_PREFIX: u8 = 2;
const CHECK_BYTES: usize = 4;

/// Returns the token of a position.
pub(crate) fn encode(position: &ListPosition) -> String {
    let (kind, place) = match position {
        ListPosition::AfterKey(key) => (AFTER_KEY, key),
        ListPosition::AfterPrefix(prefix) => (AFTER_PREFIX, prefix),
    };
    let mut bytes = [&[kind], place.as_slice()].concat();
    let check = check(&bytes);
    bytes.extend_from_slice(&check);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns the position of a token; `None` when the token is invalid.
pub(crate) fn decode(token: &str) -> Option<ListPosition> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (content, sent_check) = bytes.split_last_chunk::<CHECK_BYTES>()?;
    let (kind, place) = content.split_first()?;
    if *sent_check != check(content) || place.len() > OBJECT_KEY_BYTES_MAX {
        return None;
    }
    match *kind {
        AFTER_KEY => Some(ListPosition::AfterKey(place.to_vec())),
        AFTER_PREFIX => Some(ListPosition::AfterPrefix(place.to_vec())),
        _ => None,
    }
}

fn check(content: &[u8]) -> [u8; CHECK_BYTES] {
    let [.., a, b, c, d] = block_check(content).to_be_bytes();
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};
    use cairn_engine::ListPosition;

    #[test]
    fn token_round_trips_and_changed_tokens_are_refused() {
        let key = encode(&ListPosition::AfterKey("a/ü".into()));
        for position in [
            ListPosition::AfterKey("a/ü".into()),
            ListPosition::AfterPrefix(b"a/".to_vec()),
            ListPosition::AfterKey(vec![b'k'; 1024]),
        ] {
            assert_eq!(decode(&encode(&position)), Some(position));
        }
        let long = encode(&ListPosition::AfterKey(vec![b'k'; 1025]));
        let changed = format!("B{}", &key[1..]);
        for wrong in ["", "A", "????", "AAAAAAAA", &key[1..], &format!("{key}A"), &changed, &long] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
