//! Encryption at rest: seals payloads, and wraps the keys that seal them.
//!
//! Each payload has its own random data key. It is sealed block by block with AES-256-GCM (NIST SP 800-38D). The nonce is the
//! number of the block: a data key seals each block of one payload once, so no nonce repeats under a key. The tag of a block
//! replaces the CRC of a plain block: it detects accidental and deliberate changes.
//!
//! The data key is stored in the object's record. It is wrapped by a key that HKDF-SHA-256 derives from the master key and the
//! identity of the store:
//! ```text
//! wrapped key, 60 bytes
//! offset  size  what
//! 0       12    random nonce
//! 12      32    the data key, sealed with AES-256-GCM; additional data: bucket id (u64, big-endian), object key
//! 44      16    its tag
//! ```
//! A wrapped key is bound to bucket and key, so it is useless if its record is copied to another name. A random nonce of 96
//! bits may wrap 2^32 payloads before a repetition has a chance of 2^-33 (SP 800-38D, 8.3).
//!
//! Object keys, attributes, sizes, entity tags and check tables are not sealed. Data keys are never logged and never leave this
//! file.

use crate::format::superblock::StoreId;
use hkdf::Hkdf;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use sha2::Sha256;
use std::io;
use zeroize::Zeroizing;

/// Bytes of a GCM tag.
pub(crate) const TAG_BYTES: usize = 16;
/// Bytes of a wrapped data key.
pub(crate) const WRAPPED_KEY_BYTES: usize = NONCE_BYTES + KEY_BYTES + TAG_BYTES;
const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;

/// The tag of a sealed block.
pub(crate) type Tag = [u8; TAG_BYTES];

/// A data key as the record of its payload holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WrappedKey(pub(crate) [u8; WRAPPED_KEY_BYTES]);

/// The key that wraps data keys. It is derived and never stored.
pub(crate) struct WrappingKey(LessSafeKey);

/// The data key of one payload.
pub(crate) struct PayloadKey(LessSafeKey);

/// The object that a data key belongs to.
#[derive(Clone, Copy)]
pub(crate) struct KeyOwner<'a> {
    pub(crate) bucket: u64,
    pub(crate) object: &'a [u8],
}

impl KeyOwner<'_> {
    fn additional_data(self) -> Aad<Vec<u8>> {
        Aad::from([&self.bucket.to_be_bytes(), self.object].concat())
    }
}

fn aes_key(bytes: &[u8]) -> io::Result<LessSafeKey> {
    UnboundKey::new(&AES_256_GCM, bytes).map(LessSafeKey::new).map_err(|_| cipher_refused())
}

fn cipher_refused() -> io::Error {
    io::Error::other("AES-256-GCM refused its input")
}

fn block_nonce(block: u64) -> Nonce {
    let mut nonce = [0u8; NONCE_BYTES];
    nonce[..8].copy_from_slice(&block.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

impl WrappingKey {
    /// Derives the key of a store.
    ///
    /// # Errors
    /// Never in practice: lengths are fixed.
    pub(crate) fn derive(master_key: &[u8], store: StoreId) -> io::Result<Self> {
        let mut bytes = Zeroizing::new([0u8; KEY_BYTES]);
        let hkdf = Hkdf::<Sha256>::new(Some(&store.0), master_key);
        hkdf.expand(b"cairn payload key wrapping 1", &mut *bytes).map_err(io::Error::other)?;
        aes_key(&*bytes).map(Self)
    }

    /// Returns a new data key, and its wrapped form.
    ///
    /// # Errors
    /// If the system provides no random numbers.
    pub(crate) fn new_payload_key(&self, owner: KeyOwner<'_>) -> io::Result<(PayloadKey, WrappedKey)> {
        let mut wrapped = [0u8; WRAPPED_KEY_BYTES];
        let (random, tag) = wrapped.split_at_mut(NONCE_BYTES + KEY_BYTES);
        getrandom::fill(random).map_err(io::Error::other)?;
        let (nonce, key) = random.split_at_mut(NONCE_BYTES);
        let payload_key = aes_key(key)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| cipher_refused())?;
        let sealed = self.0.seal_in_place_separate_tag(nonce, owner.additional_data(), key);
        tag.copy_from_slice(sealed.map_err(|_| cipher_refused())?.as_ref());
        Ok((PayloadKey(payload_key), WrappedKey(wrapped)))
    }

    /// Unwraps a data key. Returns `None` if it was not wrapped by this key for this owner, or is damaged.
    pub(crate) fn unwrap(&self, wrapped: &WrappedKey, owner: KeyOwner<'_>) -> Option<PayloadKey> {
        let mut bytes = wrapped.0;
        let (nonce, sealed) = bytes.split_at_mut(NONCE_BYTES);
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let key = self.0.open_in_place(nonce, owner.additional_data(), sealed).ok()?;
        aes_key(key).ok().map(PayloadKey)
    }
}

impl PayloadKey {
    /// Seals block number `block` in place. Must be called only once for each block of a payload.
    ///
    /// # Errors
    /// Never in practice: blocks are far below AES-GCM's limit.
    pub(crate) fn seal(&self, block: u64, bytes: &mut [u8]) -> io::Result<Tag> {
        let sealed = self.0.seal_in_place_separate_tag(block_nonce(block), Aad::empty(), bytes);
        let mut tag = Tag::default();
        tag.copy_from_slice(sealed.map_err(|_| cipher_refused())?.as_ref());
        Ok(tag)
    }

    /// Opens block number `block` in place. Returns `false` if it is not what was sealed; then the bytes are meaningless.
    #[must_use]
    pub(crate) fn open(&self, block: u64, bytes: &mut [u8], tag: &Tag) -> bool {
        self.0.open_in_place_separate_tag(block_nonce(block), Aad::empty(), (*tag).into(), bytes, 0..).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyOwner, WRAPPED_KEY_BYTES, WrappedKey, WrappingKey};
    use crate::format::superblock::StoreId;

    const MASTER_KEY: &[u8] = b"a master key of the tests, long enough";
    const OWNER: KeyOwner<'_> = KeyOwner { bucket: 7, object: b"photos/a" };

    fn wrapping_key() -> WrappingKey {
        WrappingKey::derive(MASTER_KEY, StoreId([3; 16])).expect("derives")
    }

    #[test]
    fn sealed_block_opens_only_under_its_number() {
        let (key, _) = wrapping_key().new_payload_key(OWNER).expect("makes");
        let plain = vec![42u8; 65_536];
        let mut sealed = plain.clone();
        let tag = key.seal(5, &mut sealed).expect("seals");
        assert_ne!(sealed, plain);
        let mut opened = sealed.clone();
        assert!(key.open(5, &mut opened, &tag));
        assert_eq!(opened, plain);
        assert!(!key.open(6, &mut sealed.clone(), &tag));
        let mut same = plain.clone();
        let other_tag = key.seal(6, &mut same).expect("seals");
        assert_ne!((same, other_tag), (sealed, tag));
    }

    #[test]
    fn every_flipped_bit_of_a_sealed_block_is_detected() {
        let (key, _) = wrapping_key().new_payload_key(OWNER).expect("makes");
        let mut sealed = vec![1u8; 200];
        let tag = key.seal(0, &mut sealed).expect("seals");
        for bit in 0..sealed.len() * 8 {
            let mut bad = sealed.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.open(0, &mut bad, &tag), "bit {bit}");
        }
        for bit in 0..tag.len() * 8 {
            let mut bad = tag;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.open(0, &mut sealed.clone(), &bad), "bit {bit} of the tag");
        }
    }

    #[test]
    fn wrapped_key_opens_only_for_its_owner_store_and_master_key() {
        let (key, wrapped) = wrapping_key().new_payload_key(OWNER).expect("makes");
        let mut sealed = b"payload".to_vec();
        let tag = key.seal(0, &mut sealed).expect("seals");
        let again = wrapping_key().unwrap(&wrapped, OWNER).expect("unwraps");
        assert!(again.open(0, &mut sealed, &tag));
        assert_eq!(sealed, b"payload");

        assert!(wrapping_key().unwrap(&wrapped, KeyOwner { bucket: 8, ..OWNER }).is_none());
        assert!(wrapping_key().unwrap(&wrapped, KeyOwner { object: b"photos/b", ..OWNER }).is_none());
        let of_another_store = WrappingKey::derive(MASTER_KEY, StoreId([4; 16])).expect("derives");
        assert!(of_another_store.unwrap(&wrapped, OWNER).is_none());
        let of_another_master = WrappingKey::derive(b"another", StoreId([3; 16])).expect("derives");
        assert!(of_another_master.unwrap(&wrapped, OWNER).is_none());
        for bit in 0..WRAPPED_KEY_BYTES * 8 {
            let mut bad = wrapped;
            bad.0[bit / 8] ^= 1 << (bit % 8);
            assert!(wrapping_key().unwrap(&bad, OWNER).is_none(), "bit {bit}");
        }
    }

    #[test]
    fn two_payloads_of_one_object_have_different_keys() {
        let (_, WrappedKey(first)) = wrapping_key().new_payload_key(OWNER).expect("makes");
        let (_, WrappedKey(second)) = wrapping_key().new_payload_key(OWNER).expect("makes");
        assert_ne!(first[12..44], second[12..44]);
    }
}
