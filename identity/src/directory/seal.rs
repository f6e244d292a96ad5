//! Encryption of secret keys at rest.
//!
//! Secret keys are sealed with AES-256-GCM (NIST SP 800-38D). HKDF-SHA-256 derives the sealing key from the master key and the
//! store's id.
//!
//! ```text
//! sealed secret
//! offset  size  content
//! 0       12    random nonce
//! 12      n     encrypted secret key; additional data: account id (16), credential id (16), access key
//! 12+n    16    tag
//! ```
//! The additional data bind a sealed secret to its credential: it cannot be opened in the record of another. With random nonces
//! of 96 bits, 2^32 secrets can be sealed before a repeated nonce has a probability of 2^-33 (SP 800-38D, 8.3).

use crate::id::{AccountId, CredentialId};
use hkdf::Hkdf;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::Sha256;
use std::io;
use zeroize::Zeroizing;

const INFO: &[u8] = b"cairn credential secret sealing 1";
const KEY_BYTES: usize = 32;

/// The credential that a secret belongs to.
#[derive(Clone, Copy)]
pub(super) struct SecretOwner<'a> {
    pub(super) account: AccountId,
    pub(super) credential: CredentialId,
    pub(super) access_key: &'a str,
}

impl SecretOwner<'_> {
    fn additional_data(self) -> Aad<Vec<u8>> {
        Aad::from([&self.account.0[..], &self.credential.0[..], self.access_key.as_bytes()].concat())
    }
}

/// The key that seals secrets. It is derived and never stored.
pub(super) struct SealingKey(LessSafeKey);

fn refused<E>(_: E) -> io::Error {
    io::Error::other("AES-256-GCM refused its input")
}

impl SealingKey {
    /// Derives the key of the store with this id.
    ///
    /// # Errors
    /// Never in practice, because all lengths are fixed.
    pub(super) fn derive(master_key: &[u8], store: [u8; 16]) -> io::Result<Self> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        Hkdf::<Sha256>::new(Some(&store), master_key).expand(INFO, &mut *bytes).map_err(io::Error::other)?;
        UnboundKey::new(&AES_256_GCM, &*bytes).map(LessSafeKey::new).map(Self).map_err(refused)
    }

    /// Encrypts a secret.
    ///
    /// # Errors
    /// If the system's random number generator fails.
    pub(super) fn seal(&self, owner: SecretOwner<'_>, secret: &str) -> io::Result<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        let mut sealed = secret.as_bytes().to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        self.0.seal_in_place_append_tag(unique, owner.additional_data(), &mut sealed).map_err(refused)?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Decrypts a secret. Returns `None` if it was not sealed with this key for this owner, or is damaged.
    pub(super) fn open(&self, owner: SecretOwner<'_>, sealed: &[u8]) -> Option<Zeroizing<String>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut bytes = Zeroizing::new(sealed.to_vec());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.0.open_in_place(nonce, owner.additional_data(), &mut bytes).ok()?;
        std::str::from_utf8(opened).ok().map(|text| Zeroizing::new(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::{AccountId, CredentialId, SealingKey, SecretOwner};

    const OWNER: SecretOwner<'_> =
        SecretOwner { account: AccountId([1; 16]), credential: CredentialId([2; 16]), access_key: "AK" };

    #[test]
    fn secrets_open_only_with_their_key_and_credential() {
        let key = SealingKey::derive(b"master", [7; 16]).expect("derives");
        let sealed = key.seal(OWNER, "the secret").expect("seals");
        assert_eq!(key.open(OWNER, &sealed).as_deref().map(String::as_str), Some("the secret"));
        assert_ne!(key.seal(OWNER, "the secret").expect("seals"), sealed, "each secret has a new nonce");
        for other in [
            SecretOwner { account: AccountId([3; 16]), ..OWNER },
            SecretOwner { credential: CredentialId([3; 16]), ..OWNER },
            SecretOwner { access_key: "AL", ..OWNER },
        ] {
            assert_eq!(key.open(other, &sealed), None);
        }
        for other in [SealingKey::derive(b"Master", [7; 16]), SealingKey::derive(b"master", [8; 16])] {
            assert_eq!(other.expect("derives").open(OWNER, &sealed), None);
        }
        for bit in 0..sealed.len() * 8 {
            let mut damaged = sealed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.open(OWNER, &damaged), None, "bit {bit}");
        }
        assert_eq!(key.open(OWNER, &sealed[..11]), None);
    }

    /// A change here would make the secrets of existing stores unreadable.
    #[test]
    fn secrets_of_earlier_versions_open() {
        let key = SealingKey::derive(b"master", [7; 16]).expect("derives");
        let sealed = hex::decode(include_str!("golden/sealed_secret.hex").trim()).expect("hex");
        assert_eq!(key.open(OWNER, &sealed).as_deref().map(String::as_str), Some("the secret"));
    }
}
