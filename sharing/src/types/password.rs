//! Checks a password against its Argon2id hash (RFC 9106).
//!
//! ```text
//! {"memory_kib":19456,"iterations":2,"salt":"<hex>","hash":"<hex>","generation":"<hex>"}
//! ```
//! The parameters are stored, so that later versions can choose others. The generation is random and changes with every change
//! of the password; unlock tokens contain it.

use crate::limits::PASSWORD_HASH_BYTES;
use argon2::{Algorithm, Argon2, Block, Params, Version};
use serde::{Deserialize, Serialize};
use std::io;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Memory of one hash in KiB, and passes over it: the first recommendation of the OWASP Password Storage Cheat Sheet.
pub(crate) const MEMORY_KIB: u32 = 19 * 1024;
const _: () = assert!(MEMORY_KIB as u64 * 1024 == PASSWORD_HASH_BYTES);
const ITERATIONS: u32 = 2;
/// More than any version has used. A damaged record must not claim all memory.
const MEMORY_KIB_MAX: u32 = 64 * 1024;
const ITERATIONS_MAX: u32 = 16;
const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;
/// Length of a generation in bytes.
pub(crate) const GENERATION_BYTES: usize = 8;

/// The stored verifier of a password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PasswordVerifier {
    memory_kib: u32,
    iterations: u32,
    salt: [u8; SALT_BYTES],
    hash: [u8; HASH_BYTES],
    pub(crate) generation: [u8; GENERATION_BYTES],
}

impl std::fmt::Debug for PasswordVerifier {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("redacted")
    }
}

/// The form on disk.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredPassword {
    memory_kib: u32,
    iterations: u32,
    salt: String,
    hash: String,
    generation: String,
}

/// The memory of a hash, which is used again for the next one.
#[derive(Default)]
pub(crate) struct HashMemory(Vec<Block>);

impl PasswordVerifier {
    /// Hashes a password. Takes about 20 ms of computation, and [`MEMORY_KIB`] of memory.
    ///
    /// # Errors
    /// The operating system has no random bytes.
    pub(crate) fn make(password: &str, memory: &mut HashMemory) -> io::Result<Self> {
        let (mut salt, mut generation) = ([0; SALT_BYTES], [0; GENERATION_BYTES]);
        getrandom::fill(&mut salt).map_err(io::Error::other)?;
        getrandom::fill(&mut generation).map_err(io::Error::other)?;
        let mut verifier =
            Self { memory_kib: MEMORY_KIB, iterations: ITERATIONS, salt, hash: [0; HASH_BYTES], generation };
        verifier.hash = *verifier.compute(password, memory)?;
        Ok(verifier)
    }

    /// Returns whether this is the password. As expensive as [`Self::make`].
    ///
    /// # Errors
    /// Never in practice, because the parameters were checked.
    pub(crate) fn matches(&self, password: &str, memory: &mut HashMemory) -> io::Result<bool> {
        Ok(self.compute(password, memory)?.ct_eq(&self.hash).into())
    }

    fn compute(&self, password: &str, memory: &mut HashMemory) -> io::Result<Zeroizing<[u8; HASH_BYTES]>> {
        let params =
            Params::new(self.memory_kib, self.iterations, 1, Some(HASH_BYTES)).map_err(io::Error::other)?;
        let blocks = params.block_count();
        if memory.0.len() < blocks {
            memory.0.resize(blocks, Block::default());
        }
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let mut hash = Zeroizing::new([0; HASH_BYTES]);
        argon2
            .hash_password_into_with_memory(
                password.as_bytes(),
                &self.salt,
                &mut *hash,
                &mut memory.0[..blocks],
            )
            .map_err(io::Error::other)?;
        Ok(hash)
    }

    /// Returns the form on disk.
    pub(crate) fn to_stored(&self) -> StoredPassword {
        StoredPassword {
            memory_kib: self.memory_kib,
            iterations: self.iterations,
            salt: hex::encode(self.salt),
            hash: hex::encode(self.hash),
            generation: hex::encode(self.generation),
        }
    }

    /// Reads the form on disk; `None` if it is invalid.
    pub(crate) fn from_stored(stored: StoredPassword) -> Option<Self> {
        let StoredPassword { memory_kib, iterations, .. } = stored;
        if memory_kib > MEMORY_KIB_MAX || iterations > ITERATIONS_MAX {
            return None;
        }
        Params::new(memory_kib, iterations, 1, Some(HASH_BYTES)).ok()?;
        let mut read = Self { memory_kib, iterations, salt: [0; _], hash: [0; _], generation: [0; _] };
        hex::decode_to_slice(&stored.salt, &mut read.salt).ok()?;
        hex::decode_to_slice(&stored.hash, &mut read.hash).ok()?;
        hex::decode_to_slice(&stored.generation, &mut read.generation).ok()?;
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_matches() {
        let memory = &mut HashMemory::default();
        let verifier = PasswordVerifier::make("correct horse", memory).expect("hashes");
        assert!(verifier.matches("correct horse", memory).expect("hashes"));
        assert!(!verifier.matches("correct horse ", memory).expect("hashes"));
        let again = PasswordVerifier::make("correct horse", memory).expect("hashes");
        assert_ne!((again.hash, again.generation), (verifier.hash, verifier.generation));
        let stored = PasswordVerifier::from_stored(verifier.to_stored()).expect("reads");
        assert_eq!(stored, verifier);
        assert_eq!(format!("{stored:?}"), "redacted");
        let huge = StoredPassword { memory_kib: u32::MAX, ..verifier.to_stored() };
        assert!(PasswordVerifier::from_stored(huge).is_none(), "a damaged record claims no memory");
    }

    /// Computed with the reference implementation, through Python's argon2-cffi 25.1.0.
    #[test]
    fn hashes_are_those_of_the_reference_implementation() {
        let verifier = PasswordVerifier {
            memory_kib: MEMORY_KIB,
            iterations: ITERATIONS,
            salt: *b"somesaltsomesalt",
            hash: [0; HASH_BYTES],
            generation: [0; GENERATION_BYTES],
        };
        let hash = verifier.compute("password", &mut HashMemory::default()).expect("hashes");
        assert_eq!(hex::encode(*hash), "2b5dc4054886ec957ef59c73b661c54dd6fb274590b278f657c6d96aac8fa6d1");
    }
}
