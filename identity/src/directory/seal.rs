//! How secret keys are kept: sealed with AES-256-GCM (NIST SP 800-38D) under a key that HKDF-SHA-256 derives from the master
//! key and the store's identity.
//!
//! ```text
//! sealed secret
//! offset  size  what
//! 0       12    random nonce
//! 12      n     the secret key, sealed; additional data: account id (16), credential id (16), access key
//! 12+n    16    its tag
//! ```
//! Bound to its credential, a sealed secret opens nothing when its record is copied to another. A random nonce of 96 bits may
//! seal 2^32 secrets before a repetition has a chance of 2^-33 (SP 800-38D, 8.3).

use super::id::{AccountId, CredentialId};
use hkdf::Hkdf;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::Sha256;
use std::io;

const INFO: &[u8] = b"cairn credential secret sealing 1";
const KEY_BYTES: usize = 32;

/// Whose a secret is.
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

/// The key that seals secrets; derived, never stored.
pub(super) struct SealingKey(LessSafeKey);

fn refused<E>(_: E) -> io::Error {
    io::Error::other("AES-256-GCM refused its input")
}

impl SealingKey {
    /// Derives the key of a store.
    ///
    /// # Errors
    /// Never in practice: lengths are fixed.
    pub(super) fn derive(master_key: &[u8], store: [u8; 16]) -> io::Result<Self> {
        let mut bytes = [0; KEY_BYTES];
        Hkdf::<Sha256>::new(Some(&store), master_key).expand(INFO, &mut bytes).map_err(io::Error::other)?;
        UnboundKey::new(&AES_256_GCM, &bytes).map(LessSafeKey::new).map(Self).map_err(refused)
    }

    /// Seals a secret.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub(super) fn seal(&self, owner: SecretOwner<'_>, secret: &str) -> io::Result<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        let mut sealed = secret.as_bytes().to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        self.0.seal_in_place_append_tag(unique, owner.additional_data(), &mut sealed).map_err(refused)?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Opens a secret; `None` when it was not sealed by this key for this owner, or is damaged.
    pub(super) fn open(&self, owner: SecretOwner<'_>, sealed: &[u8]) -> Option<String> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut bytes = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.0.open_in_place(nonce, owner.additional_data(), &mut bytes).ok()?;
        std::str::from_utf8(opened).ok().map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::{AccountId, CredentialId, SealingKey, SecretOwner};

    const OWNER: SecretOwner<'_> =
        SecretOwner { account: AccountId([1; 16]), credential: CredentialId([2; 16]), access_key: "AK" };

    #[test]
    fn a_secret_opens_with_its_key_for_its_credential_alone() {
        let key = SealingKey::derive(b"master", [7; 16]).expect("derives");
        let sealed = key.seal(OWNER, "the secret").expect("seals");
        assert_eq!(key.open(OWNER, &sealed).as_deref(), Some("the secret"));
        assert_ne!(key.seal(OWNER, "the secret").expect("seals"), sealed, "a nonce of its own");
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
            let mut hurt = sealed.clone();
            hurt[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.open(OWNER, &hurt), None, "bit {bit}");
        }
        assert_eq!(key.open(OWNER, &sealed[..11]), None);
    }

    /// A change here makes the secrets of existing stores unreadable.
    #[test]
    fn a_secret_sealed_by_an_earlier_program_opens() {
        let key = SealingKey::derive(b"master", [7; 16]).expect("derives");
        let sealed = hex::decode(include_str!("golden/sealed_secret.hex").trim()).expect("hex");
        assert_eq!(key.open(OWNER, &sealed).as_deref(), Some("the secret"));
    }
}
