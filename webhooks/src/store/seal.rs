//! Encryption of signing secrets at rest.
//!
//! Secrets are sealed with AES-256-GCM (NIST SP 800-38D). HKDF-SHA-256 derives the sealing key from the master key and the
//! store's id.
//!
//! ```text
//! sealed secret
//! offset  size  content
//! 0       12    random nonce
//! 12      n     encrypted secret; additional data: webhook id (16)
//! 12+n    16    tag
//! ```
//! The additional data bind a sealed secret to its webhook: it cannot be opened in the record of another.

use crate::id::WebhookId;
use crate::signature::SigningSecret;
use hkdf::Hkdf;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::Sha256;
use std::io;
use zeroize::Zeroizing;

const INFO: &[u8] = b"cairn webhook secret sealing 1";
const KEY_BYTES: usize = 32;

/// The key that seals secrets. It is derived and never stored.
pub(crate) struct SealingKey(LessSafeKey);

fn refused<E>(_: E) -> io::Error {
    io::Error::other("AES-256-GCM refused its input")
}

impl SealingKey {
    /// Derives the key of the store with this id.
    ///
    /// # Errors
    /// Never in practice, because all lengths are fixed.
    pub(crate) fn derive(master_key: &[u8], store: [u8; 16]) -> io::Result<Self> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        Hkdf::<Sha256>::new(Some(&store), master_key).expand(INFO, &mut *bytes).map_err(io::Error::other)?;
        UnboundKey::new(&AES_256_GCM, &*bytes).map(LessSafeKey::new).map(Self).map_err(refused)
    }

    /// Encrypts a secret.
    ///
    /// # Errors
    /// If the system's random number generator fails.
    pub(crate) fn seal(&self, webhook: WebhookId, secret: &SigningSecret) -> io::Result<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        let mut sealed = secret.expose().as_bytes().to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        self.0.seal_in_place_append_tag(unique, Aad::from(webhook.0), &mut sealed).map_err(refused)?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Decrypts a secret. Returns `None` if it was not sealed with this key for this webhook, or is damaged.
    pub(crate) fn open(&self, webhook: WebhookId, sealed: &[u8]) -> Option<SigningSecret> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut bytes = Zeroizing::new(sealed.to_vec());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.0.open_in_place(nonce, Aad::from(webhook.0), &mut bytes).ok()?;
        SigningSecret::parse(std::str::from_utf8(opened).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{SealingKey, WebhookId};
    use crate::signature::SigningSecret;

    const WEBHOOK: WebhookId = WebhookId([1; 16]);

    fn opened(key: &SealingKey, webhook: WebhookId, sealed: &[u8]) -> Option<String> {
        key.open(webhook, sealed).map(|secret| secret.expose().to_owned())
    }

    #[test]
    fn secrets_open_only_with_their_key_and_webhook() {
        let key = SealingKey::derive(b"master", [7; 16]).expect("derives");
        let secret = SigningSecret::generate().expect("random bytes");
        let sealed = key.seal(WEBHOOK, &secret).expect("seals");
        assert_eq!(opened(&key, WEBHOOK, &sealed).as_deref(), Some(secret.expose()));
        assert_ne!(key.seal(WEBHOOK, &secret).expect("seals"), sealed, "each has a new nonce");
        assert_eq!(opened(&key, WebhookId([2; 16]), &sealed), None);
        for other in [SealingKey::derive(b"Master", [7; 16]), SealingKey::derive(b"master", [8; 16])] {
            assert_eq!(opened(&other.expect("derives"), WEBHOOK, &sealed), None);
        }
        for bit in 0..sealed.len() * 8 {
            let mut damaged = sealed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(opened(&key, WEBHOOK, &damaged), None, "bit {bit}");
        }
        assert_eq!(opened(&key, WEBHOOK, &sealed[..11]), None);
    }

    /// A change here would make the secrets of existing stores unreadable.
    #[test]
    fn secrets_of_earlier_versions_open() {
        let key = SealingKey::derive(b"master", [7; 16]).expect("derives");
        let sealed = hex::decode(include_str!("golden/sealed_secret.hex").trim()).expect("hex");
        let expected = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        assert_eq!(opened(&key, WEBHOOK, &sealed).as_deref(), Some(expected));
    }
}
