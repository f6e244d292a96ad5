//! Signing keys and a bounded cache of them.
//!
//! Deriving a signing key from the secret takes four HMACs. The key is valid for one day and region, so caching pays off. A key
//! enters the cache only after a signature made with it was verified, so clients without a secret cannot fill the cache.

use crate::credential::Generation;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Number of sets of the cache, a power of two. With `WAYS` entries each, an executor caches 1024 keys of about 400 bytes.
const SETS: usize = 256;
/// Entries of a set.
const WAYS: usize = 4;

/// Longest region name in the cache, which bounds the cache in bytes. Keys for longer names are derived every time.
const CACHED_REGION_BYTES_MAX: usize = 64;

/// The signing key of one access key, day and region, with its HMAC state prepared. Zeroed on drop.
#[derive(Clone)]
pub(super) struct SigningKey(Hmac<Sha256>);

impl SigningKey {
    /// Derives the key by chained HMACs of the day, the region, the service and the terminator.
    pub(super) fn derive(secret_key: &str, date: &str, region: &str) -> Self {
        // Not grown later, so no copy of the secret is left behind.
        let mut first = Zeroizing::new(Vec::with_capacity(4 + secret_key.len()));
        first.extend_from_slice(b"AWS4");
        first.extend_from_slice(secret_key.as_bytes());
        let date_key = derived(&first, date);
        let region_key = derived(&*date_key, region);
        let service_key = derived(&*region_key, "s3");
        let signing_key = derived(&*service_key, "aws4_request");
        Self(keyed(&*signing_key))
    }

    /// Signs a string.
    pub(super) fn sign(&self, string_to_sign: &[u8]) -> [u8; 32] {
        self.0.clone().chain_update(string_to_sign).finalize().into_bytes().into()
    }

    /// Returns the prepared HMAC, for what else the request signs.
    pub(super) fn into_mac(self) -> Hmac<Sha256> {
        self.0
    }
}

fn derived(key: &[u8], text: &str) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(keyed(key).chain_update(text).finalize().into_bytes().into())
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SigningKey(redacted)")
    }
}

/// The inputs of a signing key's derivation, without the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct KeyName<'a> {
    pub(super) access_key: &'a str,
    pub(super) date: &'a str,
    pub(super) region: &'a str,
}

#[derive(Debug)]
struct Entry {
    access_key: Arc<str>,
    date: Box<str>,
    region: Box<str>,
    generation: Generation,
    key: SigningKey,
}

impl Entry {
    fn is_for(&self, name: KeyName<'_>) -> bool {
        *self.access_key == *name.access_key && *self.region == *name.region && *self.date == *name.date
    }
}

/// Up to [`WAYS`] entries whose names hash to the same set. The oldest is evicted first.
#[derive(Debug, Default)]
struct Set {
    entries: Vec<Entry>,
    next_victim: usize,
}

/// A set-associative cache of signing keys, for one executor.
#[derive(Debug)]
pub(super) struct SigningKeyCache {
    sets: Vec<Set>,
    hasher: RandomState,
}

impl SigningKeyCache {
    pub(super) fn new() -> Self {
        Self { sets: std::iter::repeat_with(Set::default).take(SETS).collect(), hasher: RandomState::new() }
    }

    /// Returns the key of this name and generation, and the access key as a shared string.
    pub(super) fn get(&self, name: KeyName<'_>, generation: Generation) -> Option<(&SigningKey, &Arc<str>)> {
        let set = &self.sets[self.set_of(name)];
        let entry = set.entries.iter().find(|entry| entry.is_for(name))?;
        (entry.generation == generation).then_some((&entry.key, &entry.access_key))
    }

    /// Adds a key. It replaces the key of another generation, or the oldest of a full set.
    pub(super) fn insert(
        &mut self,
        name: KeyName<'_>,
        generation: Generation,
        access_key: &Arc<str>,
        key: SigningKey,
    ) {
        if name.region.len() > CACHED_REGION_BYTES_MAX {
            return;
        }
        let set = self.set_of(name);
        let set = &mut self.sets[set];
        let entry = Entry {
            access_key: Arc::clone(access_key),
            date: name.date.into(),
            region: name.region.into(),
            generation,
            key,
        };
        if let Some(stale) = set.entries.iter_mut().find(|entry| entry.is_for(name)) {
            *stale = entry;
        } else if set.entries.len() < WAYS {
            set.entries.push(entry);
        } else {
            set.entries[set.next_victim] = entry;
            set.next_victim = (set.next_victim + 1) % WAYS;
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "only the low bits of the hash are used")]
    fn set_of(&self, name: KeyName<'_>) -> usize {
        self.hasher.hash_one(name) as usize % SETS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: KeyName<'_> = KeyName { access_key: "a", date: "20130524", region: "eu" };

    fn key() -> SigningKey {
        SigningKey::derive("secret", NAME.date, NAME.region)
    }

    #[test]
    fn a_new_generation_replaces_the_old_key() {
        let mut cache = SigningKeyCache::new();
        cache.insert(NAME, 1, &"a".into(), key());
        assert!(cache.get(NAME, 1).is_some());
        assert!(cache.get(NAME, 2).is_none());
        cache.insert(NAME, 2, &"a".into(), key());
        assert!(cache.get(NAME, 1).is_none());
        assert!(cache.get(NAME, 2).is_some());
    }

    #[test]
    fn keys_differ_by_each_part_of_the_name() {
        let mut cache = SigningKeyCache::new();
        cache.insert(NAME, 1, &"a".into(), key());
        for other in [
            KeyName { access_key: "b", ..NAME },
            KeyName { date: "20130525", ..NAME },
            KeyName { region: "us", ..NAME },
        ] {
            assert!(cache.get(other, 1).is_none(), "{other:?}");
        }
    }

    #[test]
    fn the_cache_is_bounded() {
        let mut cache = SigningKeyCache::new();
        let key = key();
        for region in 0..SETS * WAYS * 4 {
            let region = region.to_string();
            cache.insert(KeyName { region: &region, ..NAME }, 1, &"a".into(), key.clone());
            assert!(cache.get(KeyName { region: &region, ..NAME }, 1).is_some());
        }
        let long = "r".repeat(CACHED_REGION_BYTES_MAX + 1);
        cache.insert(KeyName { region: &long, ..NAME }, 1, &"a".into(), key);
        assert!(cache.get(KeyName { region: &long, ..NAME }, 1).is_none());
        assert!(cache.sets.iter().all(|set| set.entries.len() <= WAYS));
    }

    #[test]
    fn debug_output_never_shows_a_key() {
        assert_eq!(format!("{:?}", key()), "SigningKey(redacted)");
    }
}
