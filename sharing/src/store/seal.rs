//! Encryption of capability tokens at rest.
//!
//! A copy of the data folder alone opens no link. Tokens are sealed with AES-256-GCM (NIST SP 800-38D). HKDF-SHA-256 derives the keys from the master key and the store's id.
//!
//! ```text
//! sealed token
//! offset  size  content
//! 0       12    random nonce
//! 12      43    encrypted token; additional data: kind (1: share, 2: embed), link id (16)
//! 55      16    tag
//! ```
//! The additional data bind a sealed token to its link: it cannot be opened in the record of another.

use super::record::kind_byte;
use crate::types::id::LinkId;
use crate::types::link::LinkKind;
use crate::types::token::CapabilityToken;
use hkdf::Hkdf;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::Sha256;
use std::io;
use zeroize::Zeroizing;

const SEALING_INFO: &[u8] = b"cairn capability token sealing 1";
const UNLOCK_INFO: &[u8] = b"cairn share unlock tokens 1";
const KEY_BYTES: usize = 32;

/// The key that seals tokens. It is derived and never stored.
pub(crate) struct SealingKey(LessSafeKey);

fn refused<E>(_: E) -> io::Error {
    io::Error::other("AES-256-GCM refused its input")
}

fn derive(master_key: &[u8], store: [u8; 16], info: &[u8]) -> io::Result<Zeroizing<[u8; KEY_BYTES]>> {
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    Hkdf::<Sha256>::new(Some(&store), master_key).expand(info, &mut *bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// Derives the key that authenticates unlock tokens.
///
/// # Errors
/// Never in practice, because all lengths are fixed.
pub(crate) fn derive_unlock_key(
    master_key: &[u8],
    store: [u8; 16],
) -> io::Result<Zeroizing<[u8; KEY_BYTES]>> {
    derive(master_key, store, UNLOCK_INFO)
}

fn additional_data(kind: LinkKind, link: LinkId) -> [u8; 17] {
    let mut data = [kind_byte(kind); 17];
    data[1..].copy_from_slice(&link.0);
    data
}

impl SealingKey {
    /// Derives the key of the store with this id.
    ///
    /// # Errors
    /// Never in practice, because all lengths are fixed.
    pub(crate) fn derive(master_key: &[u8], store: [u8; 16]) -> io::Result<Self> {
        let bytes = derive(master_key, store, SEALING_INFO)?;
        UnboundKey::new(&AES_256_GCM, &*bytes).map(LessSafeKey::new).map(Self).map_err(refused)
    }

    /// Encrypts a token.
    ///
    /// # Errors
    /// If the system's random number generator fails.
    pub(crate) fn seal(&self, kind: LinkKind, link: LinkId, token: &CapabilityToken) -> io::Result<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        let mut sealed = token.expose().as_bytes().to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        let additional = Aad::from(additional_data(kind, link));
        self.0.seal_in_place_append_tag(unique, additional, &mut sealed).map_err(refused)?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Decrypts a token. Returns `None` if it was not sealed with this key for this link, or is damaged.
    pub(crate) fn open(&self, kind: LinkKind, link: LinkId, sealed: &[u8]) -> Option<CapabilityToken> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut bytes = Zeroizing::new(sealed.to_vec());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.0.open_in_place(nonce, Aad::from(additional_data(kind, link)), &mut bytes).ok()?;
        CapabilityToken::parse(std::str::from_utf8(opened).ok()?)
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
    fn tokens_open_only_with_their_key_and_link() {
        let key = SealingKey::derive(b"master", [7; 16]).expect("derives");
        let token = CapabilityToken::generate().expect("random bytes");
        let sealed = key.seal(LinkKind::Share, LINK, &token).expect("seals");
        let open = |key: &SealingKey, kind, link, sealed: &[u8]| key.open(kind, link, sealed);
        assert_eq!(open(&key, LinkKind::Share, LINK, &sealed), Some(token.clone()));
        assert_ne!(key.seal(LinkKind::Share, LINK, &token).expect("seals"), sealed, "each has a new nonce");
        assert_eq!(open(&key, LinkKind::Embed, LINK, &sealed), None);
        assert_eq!(open(&key, LinkKind::Share, LinkId([2; 16]), &sealed), None);
        for other in [SealingKey::derive(b"Master", [7; 16]), SealingKey::derive(b"master", [8; 16])] {
            assert_eq!(open(&other.expect("derives"), LinkKind::Share, LINK, &sealed), None);
        }
        for bit in 0..sealed.len() * 8 {
            let mut damaged = sealed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&key, LinkKind::Share, LINK, &damaged), None, "bit {bit}");
        }
        assert_eq!(open(&key, LinkKind::Share, LINK, &sealed[..11]), None);
    }

    #[test]
    fn tokens_of_earlier_versions_open() {
        let key = SealingKey::derive(b"master", [7; 16]).expect("derives");
        let sealed = hex::decode(GOLDEN).expect("hex");
        let token = key.open(LinkKind::Share, LINK, &sealed).expect("opens");
        assert_eq!(token.expose(), "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    }
}
