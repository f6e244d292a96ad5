//! The last refused requests of S3 clients, in memory: what was asked, who was refused, why, and what would help.
//!
//! Each executor records into a ring of its own, so recording takes a lock that only readers ever share, for as long as
//! they copy a few hundred pointers. Only requests that are refused get here. The end of the process forgets them; the
//! audit trail and the log keep their own records.
//!
//! Invariant: a ring has a fixed number of entries, and each entry a largest size. A client that is refused often pushes out
//! its own requests, and never the last ones of all others.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use cairn_model::{Timestamp, client_network};
use cairn_sync::Mutex;

use crate::refusal_facts::{DecidingRule, RefusedRight, RefusingSetting};

/// Most requests that are kept, on all executors together.
pub const REFUSED_REQUESTS_MAX: usize = 1000;
/// Fewest requests that an executor keeps, on a machine with many executors.
const RING_ENTRIES_MIN: usize = 32;
/// A client has at most this part of a ring.
const CLIENT_SHARE: usize = 5;

/// Longest user agent and bucket, in bytes. The names of buckets have at most 63.
const NAME_BYTES_MAX: usize = 256;
/// Longest key, in bytes: the longest that objects have.
const KEY_BYTES_MAX: usize = 1024;
/// Longest message or advice, in bytes.
const TEXT_BYTES_MAX: usize = 512;

cairn_model::named_enum! {
    /// The kind of rule that refused a request. Named as in the API.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum RefusedBy {
        /// The signature or its credential.
        Authentication => "authentication",
        /// The policies of the service account.
        Policy => "policy",
        /// The bucket's quota.
        Quota => "quota",
        /// Retention or a legal hold.
        ObjectLock => "object_lock",
        /// The bucket's CORS rules.
        CorsRules => "cors_rules",
        /// The operation or header is not implemented.
        NotImplemented => "not_implemented",
        /// The request itself is invalid.
        Request => "request",
        /// The store has no room.
        Storage => "storage",
    }
}

/// A refused request. Holds no secret: no part of a signature, and no access key that does not exist.
#[derive(Clone, Debug)]
pub struct RefusedRequest {
    /// The time when it was refused.
    pub time: Timestamp,
    /// The id in the response, the log and the audit trail.
    pub request_id: String,
    /// The client's address.
    pub client: IpAddr,
    /// The user agent of the client; empty if it does not say.
    pub user_agent: String,
    /// The principal that made it, as in the audit trail; `None` if nobody was authenticated.
    pub principal: Option<Arc<str>>,
    /// The access key, if it exists and is not that of root.
    pub access_key: Option<String>,
    /// The method as sent.
    pub method: String,
    /// The operation's name; empty if it was refused before it was known.
    pub operation: &'static str,
    /// The bucket; empty if there is none, or it is not known.
    pub bucket: String,
    /// The key; empty if there is none, or keys are not logged.
    pub key: String,
    /// The status of the response.
    pub status: u16,
    /// The S3 error code.
    pub code: &'static str,
    /// The message that the client got.
    pub message: String,
    /// The rule that decided it.
    pub refused_by: RefusedBy,
    /// The right that the account does not have.
    pub right: Option<RefusedRight>,
    /// The rule that decided, if it is known and not a policy.
    pub rule: Option<DecidingRule>,
    /// The key of the configuration that would change it.
    pub setting: Option<RefusingSetting>,
    /// The remedy, if the message does not say it already.
    pub advice: Option<String>,
}

impl RefusedRequest {
    /// Cuts long texts. Everything that a client can choose is one of them.
    fn bounded(mut self) -> Self {
        let cut = |text: &mut String, bytes_max: usize| {
            if text.len() > bytes_max {
                text.truncate(text.floor_char_boundary(bytes_max));
                text.shrink_to_fit();
            }
        };
        for text in [&mut self.request_id, &mut self.user_agent, &mut self.bucket, &mut self.method] {
            cut(text, NAME_BYTES_MAX);
        }
        cut(&mut self.key, KEY_BYTES_MAX);
        cut(&mut self.message, TEXT_BYTES_MAX);
        for text in [&mut self.access_key, &mut self.advice].into_iter().flatten() {
            cut(text, TEXT_BYTES_MAX);
        }
        if let Some(right) = &mut self.right {
            cut(&mut right.bucket, NAME_BYTES_MAX);
            if let Some(key) = &mut right.key {
                cut(key, KEY_BYTES_MAX);
            }
        }
        if let Some(DecidingRule::Argument(text) | DecidingRule::ObjectLock { version_id: text, .. }) =
            &mut self.rule
        {
            cut(text, NAME_BYTES_MAX);
        }
        self
    }
}

/// The requests of one executor, the oldest first.
#[derive(Debug)]
struct Ring {
    entries: VecDeque<(u64, Arc<RefusedRequest>)>,
    by_client: HashMap<IpAddr, usize>,
    entries_max: usize,
}

impl Ring {
    fn new(entries_max: usize) -> Self {
        Self { entries: VecDeque::new(), by_client: HashMap::new(), entries_max }
    }

    fn push(&mut self, sequence: u64, request: Arc<RefusedRequest>) {
        let client = client_network(request.client);
        if self.by_client.get(&client).is_some_and(|count| *count >= self.entries_max / CLIENT_SHARE) {
            self.remove_oldest_of(client);
        } else if self.entries.len() >= self.entries_max {
            let most = self.by_client.iter().max_by_key(|(_, count)| **count).map(|(client, _)| *client);
            self.remove_oldest_of(most.expect("a full ring has clients"));
        }
        self.entries.push_back((sequence, request));
        *self.by_client.entry(client).or_default() += 1;
        assert!(self.entries.len() <= self.entries_max, "a request was removed before one was added");
    }

    fn remove_oldest_of(&mut self, client: IpAddr) {
        let oldest = self.entries.iter().position(|(_, entry)| client_network(entry.client) == client);
        self.entries.remove(oldest.expect("a client that is counted has entries"));
        let count = self.by_client.get_mut(&client).expect("a client that has entries is counted");
        *count -= 1;
        if *count == 0 {
            self.by_client.remove(&client);
        }
    }
}

/// The refused requests of all executors. Clones share them.
#[derive(Clone, Debug)]
pub struct RefusedRequests(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    rings: Vec<Mutex<Ring>>,
    recorders: AtomicUsize,
    /// The number of requests that were recorded. It orders those of one millisecond.
    recorded: AtomicU64,
}

/// Records the refused requests of one executor.
#[derive(Debug)]
pub struct RefusedRecorder {
    shared: Arc<Shared>,
    ring: usize,
}

impl RefusedRequests {
    /// Makes rings for this many executors.
    #[must_use]
    pub fn new(executors: usize) -> Self {
        let executors = executors.max(1);
        let entries_max = (REFUSED_REQUESTS_MAX / executors).max(RING_ENTRIES_MIN);
        let rings = (0..executors).map(|_| Mutex::new(Ring::new(entries_max))).collect();
        Self(Arc::new(Shared { rings, recorders: AtomicUsize::new(0), recorded: AtomicU64::new(0) }))
    }

    /// Returns a recorder with a ring of its own, as long as there is one for each executor.
    #[must_use]
    pub fn recorder(&self) -> RefusedRecorder {
        let number = self.0.recorders.fetch_add(1, Ordering::Relaxed);
        RefusedRecorder { shared: Arc::clone(&self.0), ring: number % self.0.rings.len() }
    }

    /// Returns the requests that `is_wanted`, the latest first.
    #[must_use]
    pub fn list(&self, is_wanted: impl Fn(&RefusedRequest) -> bool) -> Vec<Arc<RefusedRequest>> {
        let all =
            self.0.rings.iter().flat_map(|ring| ring.lock().entries.iter().cloned().collect::<Vec<_>>());
        let mut found: Vec<_> = all.filter(|(_, request)| is_wanted(request)).collect();
        found.sort_by_key(|(sequence, _)| std::cmp::Reverse(*sequence));
        found.into_iter().map(|(_, request)| request).collect()
    }

    /// Returns the request with this id.
    #[must_use]
    pub fn find(&self, request_id: &str) -> Option<Arc<RefusedRequest>> {
        self.list(|request| request.request_id == request_id).into_iter().next()
    }
}

impl RefusedRecorder {
    /// Keeps a request, and forgets an earlier one if there are too many.
    pub fn record(&self, request: RefusedRequest) {
        let request = Arc::new(request.bounded());
        let sequence = self.shared.recorded.fetch_add(1, Ordering::Relaxed);
        self.shared.rings[self.ring].lock().push(sequence, request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn request(client: IpAddr, number: u64) -> RefusedRequest {
        RefusedRequest {
            time: Timestamp(number),
            request_id: number.to_string(),
            client,
            user_agent: String::new(),
            principal: None,
            access_key: None,
            method: "GET".to_owned(),
            operation: "GetObject",
            bucket: String::new(),
            key: String::new(),
            status: 403,
            code: "AccessDenied",
            message: String::new(),
            refused_by: RefusedBy::Policy,
            right: None,
            rule: None,
            setting: None,
            advice: None,
        }
    }

    fn address(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(number).into()
    }

    #[test]
    fn a_flood_of_one_client_pushes_out_its_own_requests_only() {
        let requests = RefusedRequests::new(1);
        let recorder = requests.recorder();
        recorder.record(request(address(1), 0));
        for number in 1..10_000 {
            recorder.record(request(address(2), number));
        }
        let listed = requests.list(|_| true);
        assert_eq!(listed.len(), 1 + REFUSED_REQUESTS_MAX / CLIENT_SHARE);
        assert_eq!(
            (listed[0].time, listed.last().map(|last| last.client)),
            (Timestamp(9999), Some(address(1)))
        );
        assert!(requests.find("0").is_some() && requests.find("1").is_none());
    }

    /// Many clients at once: the number of entries is limited, and the ones with the most entries give way.
    #[test]
    fn clients_with_few_requests_outlive_those_with_many() {
        let requests = RefusedRequests::new(1);
        let recorder = requests.recorder();
        recorder.record(request(address(0), 0));
        for number in 1..20_000_u32 {
            recorder.record(request(address(1 + number % 50), number.into()));
        }
        assert_eq!(requests.list(|_| true).len(), REFUSED_REQUESTS_MAX);
        assert!(requests.find("0").is_some(), "its client has only this one");
        let counts = |client| requests.list(|request| request.client == address(client)).len();
        assert!((1..=50).all(|client| counts(client) >= 15), "they share the ring");
    }

    /// Whoever has an IPv6 network has 2^64 addresses.
    #[test]
    fn addresses_of_one_ipv6_network_are_one_client() {
        let requests = RefusedRequests::new(1);
        let recorder = requests.recorder();
        for number in 0..1000_u64 {
            let client = Ipv6Addr::from_bits((0x2001_0db8_u128 << 96) | u128::from(number));
            recorder.record(request(client.into(), number));
        }
        assert_eq!(requests.list(|_| true).len(), REFUSED_REQUESTS_MAX / CLIENT_SHARE);
    }

    #[test]
    fn texts_of_clients_are_cut() {
        let requests = RefusedRequests::new(1);
        let long = || "é".repeat(5000);
        requests.recorder().record(RefusedRequest {
            user_agent: long(),
            method: long(),
            bucket: long(),
            key: long(),
            message: long(),
            access_key: Some(long()),
            advice: Some(long()),
            right: Some(RefusedRight {
                action: "a",
                bucket: long(),
                key: Some(long()),
                shows_key: false,
                is_denied_explicitly: false,
                is_for_new_objects: false,
                account: None,
            }),
            rule: Some(DecidingRule::Argument(long())),
            ..request(address(1), 1)
        });
        let [kept] = &requests.list(|_| true)[..] else { panic!("one") };
        let right = kept.right.as_ref().expect("kept");
        let Some(DecidingRule::Argument(argument)) = &kept.rule else { panic!("kept") };
        let texts = [&kept.user_agent, &kept.method, &kept.bucket, &kept.key, &kept.message, &right.bucket];
        let options = [&kept.access_key, &kept.advice, &right.key];
        let all = texts.into_iter().chain(options.into_iter().flatten()).chain([argument]);
        let bytes: usize = all.map(String::capacity).sum();
        assert!(bytes < 5000, "{bytes}");
    }

    #[test]
    fn requests_of_all_executors_are_listed_by_time() {
        let requests = RefusedRequests::new(3);
        let recorders: Vec<_> = (0..4).map(|_| requests.recorder()).collect();
        for number in 0..8_usize {
            recorders[number % 4].record(request(address(1), number as u64));
        }
        let times: Vec<_> = requests.list(|_| true).iter().map(|request| request.time.0).collect();
        assert_eq!(times, [7, 6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(requests.list(|request| request.time.0 < 2).len(), 2);
    }
}
