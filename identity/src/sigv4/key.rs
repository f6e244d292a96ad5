//! Signing keys, and a bounded cache of them.
//!
//! A signing key is four HMACs away from the secret and holds for one day and region, so it pays to keep it. The
//! cache takes in a key only after a signature made with it was verified: whoever has no secret cannot fill it.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;

/// Sets of the cache, a power of two. With `WAYS` entries each, an executor keeps the keys of 1024 combinations
/// of access key, day and region, some 400 bytes each.
const SETS: usize = 256;
const WAYS: usize = 4;

/// Longer region names work but are derived anew each time, so that the cache is bounded in bytes too.
const CACHED_REGION_BYTES_MAX: usize = 64;

/// The key that signs the strings of one access key, day and region, with its HMAC state prepared.
#[derive(Clone)]
pub(super) struct SigningKey(Hmac<Sha256>);

impl SigningKey {
    /// Derives the key: HMAC of the day, the region, the service and the terminator, in turn.
    pub(super) fn derive(secret_key: &str, date: &str, region: &str) -> Self {
        let mut first = Vec::with_capacity(4 + secret_key.len());
        first.extend_from_slice(b"AWS4");
        first.extend_from_slice(secret_key.as_bytes());
        let date_key = keyed(&first).chain_update(date).finalize().into_bytes();
        let region_key = keyed(&date_key).chain_update(region).finalize().into_bytes();
        let service_key = keyed(&region_key).chain_update(b"s3").finalize().into_bytes();
        let signing_key = keyed(&service_key).chain_update(b"aws4_request").finalize().into_bytes();
        Self(keyed(&signing_key))
    }

    /// The signature of `string_to_sign`.
    pub(super) fn sign(&self, string_to_sign: &[u8]) -> [u8; 32] {
        self.0.clone().chain_update(string_to_sign).finalize().into_bytes().into()
    }
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SigningKey(redacted)")
    }
}

/// What a signing key was derived for, the secret apart.
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
    generation: u64,
    key: SigningKey,
}

impl Entry {
    fn is_for(&self, name: KeyName<'_>) -> bool {
        *self.access_key == *name.access_key && *self.region == *name.region && *self.date == *name.date
    }
}

/// Up to `WAYS` entries whose names hash alike, and which of them goes next.
#[derive(Debug, Default)]
struct Set {
    entries: Vec<Entry>,
    next_victim: usize,
}

/// Signing keys by name; bounded; for one executor.
#[derive(Debug)]
pub(super) struct SigningKeyCache {
    sets: Vec<Set>,
    hasher: RandomState,
}

impl SigningKeyCache {
    pub(super) fn new() -> Self {
        Self { sets: std::iter::repeat_with(Set::default).take(SETS).collect(), hasher: RandomState::new() }
    }

    /// The key of this name and generation, and the access key as a shared string.
    pub(super) fn get(&self, name: KeyName<'_>, generation: u64) -> Option<(&SigningKey, &Arc<str>)> {
        let set = &self.sets[self.set_of(name)];
        let entry = set.entries.iter().find(|entry| entry.is_for(name))?;
        (entry.generation == generation).then_some((&entry.key, &entry.access_key))
    }

    /// Keeps a key, in place of the one of an older generation or else of the oldest of its set.
    pub(super) fn insert(
        &mut self,
        name: KeyName<'_>,
        generation: u64,
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

    #[expect(clippy::cast_possible_truncation, reason = "only the low bits of the hash are wanted")]
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
    fn a_new_generation_makes_the_old_key_unreachable() {
        let mut cache = SigningKeyCache::new();
        cache.insert(NAME, 1, &"a".into(), key());
        assert!(cache.get(NAME, 1).is_some());
        assert!(cache.get(NAME, 2).is_none());
        cache.insert(NAME, 2, &"a".into(), key());
        assert!(cache.get(NAME, 1).is_none());
        assert!(cache.get(NAME, 2).is_some());
    }

    #[test]
    fn each_part_of_the_name_tells_keys_apart() {
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
    fn the_cache_stays_within_its_bounds() {
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
