//! Encryption of secrets in records.
//!
//! A copy of the data folder alone reveals no secret. Secrets are sealed with AES-256-GCM (NIST SP 800-38D). HKDF-SHA-256
//! (RFC 5869) derives the keys from the master key and the id of the object store.
//!
//! ```text
//! sealed secret
//! offset  size  content
//! 0       12    random nonce
//! 12      n     encrypted secret; additional data: the owner, for example the key of the record
//! 12+n    16    tag
//! ```
//! The additional data bind a sealed secret to its owner: it cannot be opened in the record of another. With random nonces
//! of 96 bits, 2^32 secrets can be sealed before a repeated nonce has a probability of 2^-33 (SP 800-38D, 8.3).

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes256Gcm, KeyInit};
use hkdf::Hkdf;
use sha2::Sha256;
use std::io;
use zeroize::Zeroizing;

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;

/// Derives a key of an object store for the purpose `info`.
#[must_use]
pub fn derive_key(master_key: &[u8], store: [u8; 16], info: &[u8]) -> Zeroizing<[u8; KEY_BYTES]> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    let derived = Hkdf::<Sha256>::new(Some(&store), master_key).expand(info, &mut *key);
    derived.expect("HKDF-SHA-256 can derive 8160 bytes");
    key
}

/// The key that seals the secrets of a small store. It is derived and never stored.
pub struct SealingKey(Aes256Gcm);

impl SealingKey {
    /// Derives the key of an object store for the purpose `info`.
    #[must_use]
    pub fn derive(master_key: &[u8], store: [u8; 16], info: &[u8]) -> Self {
        let key = derive_key(master_key, store, info);
        Self(Aes256Gcm::new_from_slice(&*key).expect("the key has 32 bytes"))
    }

    /// Encrypts a secret of an owner, whose parts are concatenated.
    ///
    /// # Errors
    /// The system's random number generator failed.
    pub fn seal(&self, owner: &[&[u8]], secret: &[u8]) -> io::Result<Vec<u8>> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        Ok(self.seal_with_nonce(nonce, owner, secret))
    }

    fn seal_with_nonce(&self, nonce: [u8; NONCE_BYTES], owner: &[&[u8]], secret: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(NONCE_BYTES + secret.len() + TAG_BYTES);
        sealed.extend(nonce);
        sealed.extend(secret);
        let secret = (&mut sealed[NONCE_BYTES..]).into();
        let tag = self.0.encrypt_inout_detached(&nonce.into(), &owner.concat(), secret);
        sealed.extend(tag.expect("a secret is far shorter than 64 GiB"));
        sealed
    }

    /// Decrypts a secret. Returns `None` if it was not sealed with this key for this owner, or is damaged.
    #[must_use]
    pub fn open(&self, owner: &[&[u8]], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let (encrypted, tag) = sealed.split_last_chunk::<TAG_BYTES>()?;
        let mut secret = Zeroizing::new(encrypted.to_vec());
        let opened = self.0.decrypt_inout_detached(
            &(*nonce).into(),
            &owner.concat(),
            secret.as_mut_slice().into(),
            &(*tag).into(),
        );
        opened.ok().map(|()| secret)
    }
}

#[cfg(test)]
mod tests {
    use super::{NONCE_BYTES, SealingKey};

    const STORE: [u8; 16] = [7; 16];
    const OWNER: &[&[u8]] = &[b"link", &[1; 16]];

    fn key(master_key: &[u8], store: [u8; 16], info: &[u8]) -> SealingKey {
        SealingKey::derive(master_key, store, info)
    }

    #[test]
    fn secrets_open_only_with_their_key_and_owner() {
        let sealing = key(b"master", STORE, b"tests 1");
        let sealed = sealing.seal(OWNER, b"the secret").expect("seals");
        assert_eq!(sealing.open(OWNER, &sealed).as_deref().map(Vec::as_slice), Some(&b"the secret"[..]));
        assert_ne!(sealing.seal(OWNER, b"the secret").expect("seals"), sealed, "each secret has a new nonce");
        assert_eq!(sealing.open(&[b"link", &[2; 16]], &sealed), None);
        for other in [
            key(b"Master", STORE, b"tests 1"),
            key(b"master", [8; 16], b"tests 1"),
            key(b"master", STORE, b"tests 2"),
        ] {
            assert_eq!(other.open(OWNER, &sealed), None);
        }
        for bit in 0..sealed.len() * 8 {
            let mut damaged = sealed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(sealing.open(OWNER, &damaged), None, "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert_eq!(sealing.open(OWNER, &sealed[..length]), None, "{length} bytes");
        }
    }

    /// Releases up to 0.1 sealed with another implementation of AES-256-GCM. A change here would make the secrets of existing
    /// stores unreadable.
    #[test]
    fn the_format_is_that_of_earlier_versions() {
        let sealing = key(b"master", STORE, b"cairn capability token sealing 1");
        let golden = hex::decode(concat!(
            "000102030405060708090a0b",
            "259a4256b8720dbe2e3a94d0df1662fe4865c93e962d2cda35282efcec91e7142b4c7893efd3b18d396de3",
            "544c31e2c2cbd7fcf535f56c58cab369"
        ));
        let golden = golden.expect("hex");
        let (owner, secret): (&[&[u8]], _) = (&[&[1], &[1; 16]], [b'A'; 43]);
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&golden[..NONCE_BYTES]);
        assert_eq!(sealing.seal_with_nonce(nonce, owner, &secret), golden);
        assert_eq!(sealing.open(owner, &golden).as_deref().map(Vec::as_slice), Some(&secret[..]));
    }
}
