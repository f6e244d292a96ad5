//! Continuation tokens of the list of objects: text that means nothing to clients.
//!
//! ```text
//! base64url, unpadded, of
//! 0      1                  n-4      n
//! +------+------------------+--------+
//! | kind | key or prefix    | check  |
//! +------+------------------+--------+
//! ```
//! `kind` is 1 for "after this key", 2 for "after this common prefix"; `check`, of all before it, tells tokens from mistakes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_engine::{ListPosition, block_check};
use cairn_model::OBJECT_KEY_BYTES_MAX;

const AFTER_KEY: u8 = 1;
const AFTER_PREFIX: u8 = 2;
const CHECK_BYTES: usize = 4;

/// The token of a position.
pub(crate) fn of_position(position: &ListPosition) -> String {
    let (kind, place) = match position {
        ListPosition::AfterKey(key) => (AFTER_KEY, key),
        ListPosition::AfterPrefix(prefix) => (AFTER_PREFIX, prefix),
    };
    let mut bytes = [&[kind], place.as_slice()].concat();
    let check = check(&bytes);
    bytes.extend_from_slice(&check);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The position of a token; `None` if it is none.
pub(crate) fn to_position(token: &str) -> Option<ListPosition> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (content, own) = bytes.split_last_chunk::<CHECK_BYTES>()?;
    let (kind, place) = content.split_first()?;
    if *own != check(content) || place.len() > OBJECT_KEY_BYTES_MAX {
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
    use super::{of_position, to_position};
    use cairn_engine::ListPosition;

    #[test]
    fn a_token_leads_back_to_its_position_and_nothing_else_is_one() {
        let key = of_position(&ListPosition::AfterKey("a/ü".into()));
        for position in [
            ListPosition::AfterKey("a/ü".into()),
            ListPosition::AfterPrefix(b"a/".to_vec()),
            ListPosition::AfterKey(vec![b'k'; 1024]),
        ] {
            assert_eq!(to_position(&of_position(&position)), Some(position));
        }
        let long = of_position(&ListPosition::AfterKey(vec![b'k'; 1025]));
        let changed = format!("B{}", &key[1..]);
        for wrong in ["", "A", "????", "AAAAAAAA", &key[1..], &format!("{key}A"), &changed, &long] {
            assert_eq!(to_position(wrong), None, "{wrong}");
        }
    }
}
