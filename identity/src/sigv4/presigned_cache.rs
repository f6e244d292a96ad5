//! A bounded cache of presigned URLs whose signature was verified.
//!
//! Each executor has its own. The same URL is often requested many times: by browsers, by players that seek, by clients
//! that resume. Its signature is then valid again, as long as the access key has the same secret. An entry says nothing
//! else. Whether the URL has expired, whether the credential may still be used, and what its account may do is decided
//! anew for each request.
//!
//! Invariants: an entry is made only after the whole verification has succeeded, so clients without a secret cannot
//! fill the cache. A request finds an entry only if all that verification reads has the same SHA-256. Requests with a
//! header that verification reads, other than `host`, are never looked up and never stored.

use super::limits::{PRESIGNED_SETS, PRESIGNED_WAYS};
use crate::credential::Generation;
use crate::request::SignedRequest;
use cairn_model::u64_of;
use sha2::{Digest, Sha256};
use std::sync::Arc;

const SIGNATURE: &[u8] = b"X-Amz-Signature=";
/// Bytes of a signature: 64 hexadecimal digits.
const SIGNATURE_BYTES: usize = 64;

/// The digest of a presigned request: of method, host, path and query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestDigest([u8; 32]);

impl RequestDigest {
    /// Returns the digest of a request whose verification depends on nothing else; `None` for all other requests.
    pub(super) fn of(request: &SignedRequest<'_>) -> Option<Self> {
        let query = request.query.filter(|query| has_signature(query.as_bytes()))?;
        let mut host = None;
        for (name, value) in request.headers {
            let is_amz = name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("x-amz-"));
            if is_amz || matches!(*name, "authorization" | "date") {
                return None;
            }
            if *name == "host" && host.replace(*value).is_some() {
                return None;
            }
        }
        let mut digest = Sha256::new();
        for part in [request.method.as_bytes(), host?, request.path.as_bytes(), query.as_bytes()] {
            // With its length, so that parts that are cut elsewhere have another digest.
            digest.update(u64_of(part.len()).to_le_bytes());
            digest.update(part);
        }
        Some(Self(digest.finalize().into()))
    }

    /// Returns the number of the set of a request. A digest is as good as random, so a part of it serves.
    fn set(self) -> usize {
        usize::from(u16::from_le_bytes([self.0[0], self.0[1]])) % PRESIGNED_SETS
    }
}

/// Returns whether a query has a signature. Most signers put it last.
fn has_signature(query: &[u8]) -> bool {
    let last = query.len().checked_sub(SIGNATURE.len() + SIGNATURE_BYTES);
    last.is_some_and(|last| query[last..].starts_with(SIGNATURE))
        || query.windows(SIGNATURE.len()).any(|window| window == SIGNATURE)
}

/// A URL whose signature was verified.
#[derive(Clone, Debug)]
pub(super) struct VerifiedUrl {
    pub(super) access_key: Arc<str>,
    /// The generation of the secret that made the signature.
    pub(super) generation: Generation,
    /// The date of the signature, in seconds since the Unix epoch.
    pub(super) signed_at_seconds: u64,
    /// The lifetime of the URL after that date.
    pub(super) lifetime_seconds: u64,
}

/// Up to [`PRESIGNED_WAYS`] entries. The oldest is removed first.
#[derive(Debug, Default)]
struct Set {
    entries: Vec<(RequestDigest, VerifiedUrl)>,
    next_victim: usize,
}

/// A set-associative cache of verified URLs, for one executor. A set takes memory when it gets its first entry.
#[derive(Debug)]
pub(super) struct PresignedCache {
    sets: Vec<Set>,
}

impl PresignedCache {
    pub(super) fn new() -> Self {
        Self { sets: std::iter::repeat_with(Set::default).take(PRESIGNED_SETS).collect() }
    }

    /// Returns the entry of the same request.
    pub(super) fn get(&self, request: RequestDigest) -> Option<&VerifiedUrl> {
        let entries = &self.sets[request.set()].entries;
        entries.iter().find(|(digest, _)| *digest == request).map(|(_, verified)| verified)
    }

    /// Adds a request whose signature was verified. It replaces an entry of the same request, or the oldest of a full
    /// set.
    pub(super) fn insert(&mut self, request: RequestDigest, verified: VerifiedUrl) {
        let set = &mut self.sets[request.set()];
        if let Some((_, present)) = set.entries.iter_mut().find(|(digest, _)| *digest == request) {
            *present = verified;
        } else if set.entries.len() < PRESIGNED_WAYS {
            set.entries.push((request, verified));
        } else {
            set.entries[set.next_victim] = (request, verified);
            set.next_victim = (set.next_victim + 1) % PRESIGNED_WAYS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &[(&str, &[u8])] = &[("host", b"h"), ("range", b"bytes=0-1")];
    const QUERY: &str = "X-Amz-Date=d&X-Amz-Signature=aa";

    fn request<'a>(path: &'a str) -> SignedRequest<'a> {
        SignedRequest { method: "GET", path, query: Some(QUERY), headers: HOST, bucket_in_host: None }
    }

    fn digest(request: &SignedRequest<'_>) -> RequestDigest {
        RequestDigest::of(request).expect("a request that may be remembered")
    }

    #[test]
    fn requests_have_the_same_digest_only_if_all_their_parts_are_the_same() {
        let verified = request("/b/k");
        assert_eq!(digest(&verified), digest(&request("/b/k")));
        let (other_query, longer_host) = (format!("a=b&{QUERY}"), [("host", &b"h/"[..])]);
        for other in [
            SignedRequest { method: "PUT", ..verified },
            SignedRequest { path: "/b/K", ..verified },
            SignedRequest { query: Some(&other_query), ..verified },
            SignedRequest { headers: &[("host", b"i")], ..verified },
            // The same bytes, cut at another place.
            SignedRequest { headers: &longer_host, path: "b/k", ..verified },
        ] {
            assert_ne!(digest(&other), digest(&verified), "{other:?}");
        }
    }

    #[test]
    fn requests_with_other_headers_that_verification_reads_are_not_remembered() {
        for headers in [
            &[("host", &b"h"[..]), ("x-amz-date", b"d")][..],
            &[("host", b"h"), ("X-Amz-Acl", b"private")],
            &[("host", b"h"), ("authorization", b"")],
            &[("host", b"h"), ("date", b"d")],
            &[("host", b"h"), ("host", b"h")],
            &[],
        ] {
            assert!(RequestDigest::of(&SignedRequest { headers, ..request("/") }).is_none());
        }
    }

    #[test]
    fn a_signature_is_found_at_any_place() {
        let digits = "0123456789abcdef".repeat(4);
        for query in [
            format!("X-Amz-Signature={digits}"),
            format!("X-Amz-Signature={digits}&x-id=GetObject"),
            format!("a=b&X-Amz-Signature={digits}"),
        ] {
            assert!(has_signature(query.as_bytes()), "{query}");
        }
        for query in ["", "a=b", "X-Amz-Signature", "x-amz-signature=aa"] {
            assert!(!has_signature(query.as_bytes()), "{query}");
        }
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_the_newest() {
        let mut cache = PresignedCache::new();
        let verified = VerifiedUrl {
            access_key: "key".into(),
            generation: 1,
            signed_at_seconds: 0,
            lifetime_seconds: 60,
        };
        let numbered = |number: usize| digest(&request(&format!("/b/{number}")));
        let count = PRESIGNED_SETS * PRESIGNED_WAYS * 2;
        for number in 0..count {
            // Adding an entry again takes no other place.
            for _ in 0..2 {
                cache.insert(numbered(number), verified.clone());
            }
            assert!(cache.get(numbered(number)).is_some(), "{number}");
        }
        assert!(cache.sets.iter().all(|set| set.entries.capacity() <= PRESIGNED_WAYS));
        let kept = |numbers: std::ops::Range<usize>| {
            numbers.filter(|number| cache.get(numbered(*number)).is_some()).count()
        };
        // All sets are full by now, up to chance.
        assert!(kept(0..count) > PRESIGNED_SETS * PRESIGNED_WAYS * 9 / 10);
        assert!(kept(count / 2..count) > kept(0..count / 2) * 2);
    }
}
