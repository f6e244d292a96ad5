//! The Ed25519 key (RFC 8032) that signs proofs of verification.
//!
//! The key is derived from the master key, so it is the same for the life of a store:
//! `seed = HKDF-SHA-256(key = master key, salt = store id, info = "cairn proof key 1", 32 bytes)`. A client that has kept the
//! public key can tell that a later proof comes from a store with the same id and master key.

use crate::error::OpenError;
use crate::format::superblock::StoreId;
use ring::signature::{Ed25519KeyPair, KeyPair};
use sha2::Sha256;
use std::path::Path;
use zeroize::Zeroizing;

const INFO: &[u8] = b"cairn proof key 1";
const SEED_BYTES: usize = 32;

/// An Ed25519 key pair. It does not implement `Debug`, which could reveal the seed.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    pub(crate) fn derive(master_key: &[u8], store: StoreId, data_dir: &Path) -> Result<Self, OpenError> {
        let mut seed = Zeroizing::new([0u8; SEED_BYTES]);
        let failed = |what: String| OpenError::Io {
            path: data_dir.to_owned(),
            doing: "deriving the signing key for",
            error: std::io::Error::other(what),
        };
        let hkdf = hkdf::Hkdf::<Sha256>::new(Some(&store.0), master_key);
        hkdf.expand(INFO, &mut *seed).map_err(|error| failed(error.to_string()))?;
        Ed25519KeyPair::from_seed_unchecked(&*seed).map(Self).map_err(|error| failed(error.to_string()))
    }

    /// Returns the public key, 32 bytes.
    #[must_use]
    pub fn public_key(&self) -> &[u8] {
        self.0.public_key().as_ref()
    }

    /// Signs `message`. Returns the signature, 64 bytes.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message).as_ref().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::SigningKey;
    use crate::format::superblock::StoreId;
    use ring::signature::{ED25519, UnparsedPublicKey};
    use std::path::Path;

    fn key(master_key: &[u8], store: u8) -> SigningKey {
        SigningKey::derive(master_key, StoreId([store; 16]), Path::new("x")).expect("derives")
    }

    #[test]
    fn signature_is_valid_only_for_its_message_and_store() {
        let mine = key(b"a master key", 1);
        let signature = mine.sign(b"what was found");
        let good = |key: &SigningKey, message: &[u8]| {
            UnparsedPublicKey::new(&ED25519, key.public_key()).verify(message, &signature).is_ok()
        };
        assert!(good(&mine, b"what was found"));
        assert!(good(&key(b"a master key", 1), b"what was found"), "the same after a restart");
        assert!(!good(&mine, b"what was f0und"));
        assert!(!good(&key(b"a master key", 2), b"what was found"));
        assert!(!good(&key(b"b master key", 1), b"what was found"));
    }

    /// Golden bytes: a client that kept a public key must be able to recognise it.
    #[test]
    fn derived_key_does_not_change() {
        let public = hex::encode(key(b"a master key", 1).public_key());
        assert_eq!(public, "7393e3178777a4dd9ecb0406bcc405f37b808048b5d27e80bc54cb3ed6a24d83");
    }
}
