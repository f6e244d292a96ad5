//! Encryption of secret keys at rest.
//!
//! The owner of a sealed secret key is its credential: account id (16 bytes), credential id (16 bytes), access key. The format
//! is that of [`SealingKey`].

use crate::id::{AccountId, CredentialId};
use cairn_tables::SealingKey;
use std::io;
use zeroize::Zeroizing;

const INFO: &[u8] = b"cairn credential secret sealing 1";

/// The credential that a secret belongs to.
#[derive(Clone, Copy)]
pub(super) struct SecretOwner<'a> {
    pub(super) account: AccountId,
    pub(super) credential: CredentialId,
    pub(super) access_key: &'a str,
}

impl SecretOwner<'_> {
    fn parts(&self) -> [&[u8]; 3] {
        [&self.account.0, &self.credential.0, self.access_key.as_bytes()]
    }
}

/// The key that seals secret keys.
pub(super) struct SecretKey(SealingKey);

impl SecretKey {
    /// Derives the key of the store with this id.
    pub(super) fn derive(master_key: &[u8], store: [u8; 16]) -> Self {
        Self(SealingKey::derive(master_key, store, INFO))
    }

    /// Encrypts a secret key.
    ///
    /// # Errors
    /// The system's random number generator failed.
    pub(super) fn seal(&self, owner: SecretOwner<'_>, secret: &str) -> io::Result<Vec<u8>> {
        self.0.seal(&owner.parts(), secret.as_bytes())
    }

    /// Decrypts a secret key. Returns `None` if it was not sealed with this key for this owner, or is damaged.
    pub(super) fn open(&self, owner: SecretOwner<'_>, sealed: &[u8]) -> Option<Zeroizing<String>> {
        let secret = self.0.open(&owner.parts(), sealed)?;
        std::str::from_utf8(&secret).ok().map(|text| Zeroizing::new(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::{AccountId, CredentialId, SecretKey, SecretOwner};

    const OWNER: SecretOwner<'_> =
        SecretOwner { account: AccountId([1; 16]), credential: CredentialId([2; 16]), access_key: "AK" };

    #[test]
    fn secrets_open_only_for_their_credential() {
        let key = SecretKey::derive(b"master", [7; 16]);
        let sealed = key.seal(OWNER, "the secret").expect("seals");
        assert_eq!(key.open(OWNER, &sealed).as_deref().map(String::as_str), Some("the secret"));
        for other in [
            SecretOwner { account: AccountId([3; 16]), ..OWNER },
            SecretOwner { credential: CredentialId([3; 16]), ..OWNER },
            SecretOwner { access_key: "AL", ..OWNER },
        ] {
            assert_eq!(key.open(other, &sealed), None);
        }
    }

    /// A change here would make the secrets of existing stores unreadable.
    #[test]
    fn secrets_of_earlier_versions_open() {
        let key = SecretKey::derive(b"master", [7; 16]);
        let sealed = hex::decode(include_str!("golden/sealed_secret.hex").trim()).expect("hex");
        assert_eq!(key.open(OWNER, &sealed).as_deref().map(String::as_str), Some("the secret"));
    }
}
