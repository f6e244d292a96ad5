//! Encryption of capability tokens at rest.
//!
//! The owner of a sealed token is its link: the kind (1 byte; 1: share, 2: embed) and the id (16 bytes). The format is that of
//! [`SealingKey`].

use super::record::kind_byte;
use crate::types::id::LinkId;
use crate::types::link::LinkKind;
use crate::types::token::CapabilityToken;
use cairn_tables::{SealingKey, derive_key};
use std::io;
use zeroize::Zeroizing;

const SEALING_INFO: &[u8] = b"cairn capability token sealing 1";
const UNLOCK_INFO: &[u8] = b"cairn share unlock tokens 1";

/// Derives the key that authenticates unlock tokens.
pub(crate) fn derive_unlock_key(master_key: &[u8], store: [u8; 16]) -> Zeroizing<[u8; 32]> {
    derive_key(master_key, store, UNLOCK_INFO)
}

/// The key that seals tokens.
pub(crate) struct TokenKey(SealingKey);

impl TokenKey {
    /// Derives the key of the store with this id.
    pub(crate) fn derive(master_key: &[u8], store: [u8; 16]) -> Self {
        Self(SealingKey::derive(master_key, store, SEALING_INFO))
    }

    /// Encrypts the token of a link.
    ///
    /// # Errors
    /// The system's random number generator failed.
    pub(crate) fn seal(&self, kind: LinkKind, link: LinkId, token: &CapabilityToken) -> io::Result<Vec<u8>> {
        self.0.seal(&[&[kind_byte(kind)], &link.0], token.expose().as_bytes())
    }

    /// Decrypts the token of a link. Returns `None` if it was not sealed with this key for this link, or is damaged.
    pub(crate) fn open(&self, kind: LinkKind, link: LinkId, sealed: &[u8]) -> Option<CapabilityToken> {
        let token = self.0.open(&[&[kind_byte(kind)], &link.0], sealed)?;
        CapabilityToken::parse(std::str::from_utf8(&token).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: LinkId = LinkId([1; 16]);
    /// A change here would make the tokens of existing stores unreadable.
    const GOLDEN: &str = concat!(
        "000102030405060708090a0b",
        "259a4256b8720dbe2e3a94d0df1662fe4865c93e962d2cda35282efcec91e7142b4c7893efd3b18d396de3",
        "544c31e2c2cbd7fcf535f56c58cab369"
    );

    #[test]
    fn tokens_open_only_for_their_link() {
        let key = TokenKey::derive(b"master", [7; 16]);
        let token = CapabilityToken::generate().expect("random bytes");
        let sealed = key.seal(LinkKind::Share, LINK, &token).expect("seals");
        assert_eq!(key.open(LinkKind::Share, LINK, &sealed), Some(token));
        assert_eq!(key.open(LinkKind::Embed, LINK, &sealed), None);
        assert_eq!(key.open(LinkKind::Share, LinkId([2; 16]), &sealed), None);
    }

    #[test]
    fn tokens_of_earlier_versions_open() {
        let key = TokenKey::derive(b"master", [7; 16]);
        let sealed = hex::decode(GOLDEN).expect("hex");
        let token = key.open(LinkKind::Share, LINK, &sealed).expect("opens");
        assert_eq!(token.expose(), "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    }
}
