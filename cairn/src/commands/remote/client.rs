//! Sends requests to another store: signed, in path style, tried again if they fail for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use cairn_http1::{encode_path, encode_strict};
use cairn_sync::Mutex;
use ureq::http::Request;
use ureq::{Agent, Error};

use super::answer::{Answer, Refusal, Trouble, answer_of};
use super::listing::{self, Entry, Page, Place};
use super::order::put_in_order;
use super::payload::{Payload, run};
use super::settings::tags_of_document;

use crate::client::{agent_with, error_text, trust_failure};
use crate::commands::signals::nap;
use crate::environment::{
    SOURCE_ACCESS_KEY_VARIABLE, SOURCE_CA_VARIABLE, SOURCE_SECRET_KEY_VARIABLE, TARGET_ACCESS_KEY_VARIABLE,
    TARGET_CA_VARIABLE, TARGET_SECRET_KEY_VARIABLE,
};
use crate::failure::Failure;
use crate::moment::now_millis;
use crate::s3::endpoint::Endpoint;
use crate::s3::signature::{Credentials, DayKey, Parts, Signer, Stamp};
use crate::s3::xml;

/// The number of attempts at a request that fails for a reason that may pass. With the pauses, this takes some 20 seconds: the
/// time of a restart.
const ATTEMPTS: u32 = 8;
/// Pause after the first failure; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(150);
/// The interval at which a pause looks whether the user wants the command to end.
const GLANCE: Duration = Duration::from_millis(50);
/// Time limit of an answer's head, and of a document.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Slowest rate at which content must arrive, in bytes per second, so that a dead connection is noticed.
const SLOWEST_RATE: u64 = 32 << 10;
/// The region that most stores other than AWS accept.
const REGION: &str = "us-east-1";
/// Most pages in which a version of one key is looked for.
const PAGES_OF_KEY_MAX: u32 = 1000;
/// Entries of a page: the most that S3 allows.
const PAGE_ENTRIES: &str = "1000";

/// The environment variables that a store's credential is taken from.
pub(crate) struct Variables {
    access_key: &'static str,
    secret_key: &'static str,
    authorities: &'static str,
    /// The name of the store in messages.
    store: &'static str,
}

impl Variables {
    /// Those of the source of an import.
    pub(crate) const SOURCE: Self = Self {
        access_key: SOURCE_ACCESS_KEY_VARIABLE,
        secret_key: SOURCE_SECRET_KEY_VARIABLE,
        authorities: SOURCE_CA_VARIABLE,
        store: "source",
    };
    /// Those of the target of an export.
    pub(crate) const TARGET: Self = Self {
        access_key: TARGET_ACCESS_KEY_VARIABLE,
        secret_key: TARGET_SECRET_KEY_VARIABLE,
        authorities: TARGET_CA_VARIABLE,
        store: "target",
    };
}

/// A version at the store.
#[derive(Clone, Copy)]
pub(crate) struct VersionRef<'a> {
    pub(crate) bucket: &'a str,
    pub(crate) key: &'a str,
    /// `None`: the current one.
    pub(crate) version: Option<&'a str>,
}

/// Parameters of a request, not encoded.
pub(super) type Query<'a> = [(&'a str, &'a str)];

/// A request.
pub(super) struct Call<'a> {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) query: &'a Query<'a>,
    pub(super) headers: &'a [(&'a str, &'a str)],
    /// Longest body that may be sent or may arrive, in bytes.
    pub(super) body_max: u64,
}

/// A store that is used through S3.
pub(crate) struct Remote {
    agent: Agent,
    /// The variable that names the file of trusted authorities.
    authorities: &'static str,
    pub(crate) endpoint: Endpoint,
    credentials: Credentials,
    region: Mutex<String>,
    /// The key of the requests of today.
    day_key: Mutex<Option<DayKey>>,
    /// The number of milliseconds by which its clock is ahead, if signatures must allow for it.
    clock_ahead: AtomicI64,
    /// Slows transfers down as a whole: time limits are longer by this factor.
    patience: u32,
    /// Whether delete markers were seen among versions in its lists.
    mixes_markers: AtomicBool,
    stop: Arc<AtomicBool>,
}

impl Remote {
    /// Takes the credential from the environment. `connections` is the number of requests at a time.
    pub(crate) fn new(
        variables: &Variables,
        endpoint: &Endpoint,
        connections: usize,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        let Variables { access_key, secret_key, authorities, store } = variables;
        let variable = |name: &str| {
            std::env::var(name).ok().filter(|value| !value.is_empty()).ok_or_else(|| {
                Failure::WrongUsage(format!(
                    "{name} is not set: {access_key} and {secret_key} must contain a credential of the {store}"
                ))
            })
        };
        Ok(Self {
            agent: agent_with(authorities, connections)?,
            authorities,
            endpoint: endpoint.clone(),
            credentials: Credentials { access_key: variable(access_key)?, secret_key: variable(secret_key)? },
            region: Mutex::new(REGION.to_owned()),
            day_key: Mutex::default(),
            clock_ahead: AtomicI64::new(0),
            patience: 1,
            mixes_markers: AtomicBool::new(false),
            stop,
        })
    }

    /// Makes time limits of content longer, for a transfer that is slowed down on purpose.
    pub(crate) fn with_patience(self, factor: u32) -> Self {
        Self { patience: factor.max(1), ..self }
    }

    /// Returns whether the user wants the command to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns the names of all buckets that the credential can see.
    pub(crate) fn buckets(&self) -> Result<Vec<String>, Trouble> {
        let mut names: Vec<String> = Vec::new();
        let mut token: Option<String> = None;
        loop {
            let query: Vec<_> = token.iter().map(|token| ("continuation-token", token.as_str())).collect();
            let document = self.document("/", &query)?;
            let found = xml::elements(&document, "Bucket");
            names.extend(found.iter().filter_map(|bucket| bucket.text_of("Name")).map(str::to_owned));
            let next = xml::text(&document, "ContinuationToken").filter(|next| !next.is_empty());
            if next.is_none() || next == token {
                names.sort_unstable();
                names.dedup();
                return Ok(names);
            }
            token = next;
        }
    }

    /// Returns `Enabled`, `Suspended`, or nothing if the bucket never had versions.
    pub(crate) fn versioning(&self, bucket: &str) -> Result<Option<String>, Trouble> {
        match self.document(&path(bucket, ""), &[("versioning", "")]) {
            Ok(document) => Ok(xml::text(&document, "Status").filter(|status| !status.is_empty())),
            Err(trouble) if trouble.is_unknown_operation() => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// Returns whether the bucket has object lock.
    pub(crate) fn has_object_lock(&self, bucket: &str) -> Result<bool, Trouble> {
        match self.document(&path(bucket, ""), &[("object-lock", "")]) {
            Ok(document) => {
                Ok(xml::text(&document, "ObjectLockEnabled").is_some_and(|text| text == "Enabled"))
            }
            Err(trouble) if trouble.is_unknown_operation() => Ok(false),
            // Stores have several names for it.
            Err(Trouble::Refused { status: 404, code, .. }) if code != "NoSuchBucket" => Ok(false),
            Err(trouble) => Err(trouble),
        }
    }

    /// Returns a page of the bucket's versions. With `settings`, MinIO adds tags and locks; other stores ignore that, or
    /// refuse it.
    pub(crate) fn versions(&self, bucket: &str, place: &Place, settings: bool) -> Result<Page, Trouble> {
        let mut query = vec![("versions", ""), ("encoding-type", "url"), ("max-keys", PAGE_ENTRIES)];
        query.extend(settings.then_some(("metadata", "true")));
        query.extend(place.iter().map(|(name, value)| (*name, value.as_str())));
        let mut page =
            listing::versions(&self.document(&path(bucket, ""), &query)?).map_err(Trouble::Wrong)?;
        put_in_order(&mut page.entries, &self.mixes_markers);
        Ok(page)
    }

    /// Returns a page of the bucket's current objects.
    pub(crate) fn objects(&self, bucket: &str, place: &Place) -> Result<Page, Trouble> {
        let mut query = vec![("list-type", "2"), ("encoding-type", "url"), ("max-keys", PAGE_ENTRIES)];
        query.extend(place.iter().map(|(name, value)| (*name, value.as_str())));
        listing::objects(&self.document(&path(bucket, ""), &query)?).map_err(Trouble::Wrong)
    }

    /// Returns whether the store lists a version, or without an id the current object of a key.
    pub(crate) fn lists(&self, bucket: &str, key: &str, version: Option<&str>) -> Result<bool, Trouble> {
        self.listed(bucket, key, version).map(|found| found.is_some())
    }

    /// Returns whether the store still lists a version with the same date, size and tag.
    pub(crate) fn lists_as(&self, bucket: &str, entry: &Entry) -> Result<bool, Trouble> {
        let found = self.listed(bucket, &entry.key, entry.version_id.as_deref())?;
        Ok(found.is_some_and(|found| {
            (found.modified, found.size, found.etag) == (entry.modified, entry.size, entry.etag.clone())
        }))
    }

    fn listed(&self, bucket: &str, key: &str, version: Option<&str>) -> Result<Option<Entry>, Trouble> {
        let is_it = |entry: &Entry| entry.key == key && version.is_none_or(|version| entry.id() == version);
        let mut place: Place = vec![("prefix", key.to_owned())];
        let mut has_versions = version.is_some();
        for _ in 0..PAGES_OF_KEY_MAX {
            let listed = if has_versions {
                self.versions(bucket, &place, false)
            } else {
                self.objects(bucket, &place)
            };
            let page = match listed {
                // All objects of a store without versions have this id.
                Err(trouble) if has_versions && version == Some("null") && trouble.is_unknown_operation() => {
                    has_versions = false;
                    continue;
                }
                page => page?,
            };
            if let Some(found) = page.entries.iter().find(|entry| is_it(entry)) {
                return Ok(Some(found.clone()));
            }
            // The versions of the key come first among those of keys that begin with it.
            let is_past = page.entries.last().is_none_or(|last| last.key != key);
            match page.next {
                Some(next) if !is_past && !place.ends_with(&next) => {
                    place.truncate(1);
                    place.extend(next);
                }
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Asks for the headers of a version, or with a part number for those of a part.
    pub(crate) fn head(&self, version: VersionRef<'_>, part: Option<u32>) -> Result<Answer, Trouble> {
        self.object("HEAD", version, part, None, 0)
    }

    /// Asks for the content of a version, of a part of it, or of a range of `size` bytes at an offset.
    pub(crate) fn get(
        &self,
        version: VersionRef<'_>,
        part: Option<u32>,
        range: Option<(u64, u64)>,
        size: u64,
    ) -> Result<Answer, Trouble> {
        self.object("GET", version, part, range, size)
    }

    fn object(
        &self,
        method: &'static str,
        VersionRef { bucket, key, version }: VersionRef<'_>,
        part: Option<u32>,
        range: Option<(u64, u64)>,
        body_max: u64,
    ) -> Result<Answer, Trouble> {
        let part = part.map(|part| part.to_string());
        let mut query: Vec<_> = version.map(|version| ("versionId", version)).into_iter().collect();
        query.extend(part.as_deref().map(|part| ("partNumber", part)));
        let range = range.map(|(first, size)| format!("bytes={first}-{}", first + size.saturating_sub(1)));
        let mut headers = vec![("x-amz-checksum-mode", "ENABLED")];
        headers.extend(range.as_deref().map(|range| ("range", range)));
        self.call(&Call { method, path: path(bucket, key), query: &query, headers: &headers, body_max })
    }

    /// Returns the tags of a version, sorted.
    pub(crate) fn tags(
        &self,
        VersionRef { bucket, key, version }: VersionRef<'_>,
    ) -> Result<Vec<(String, String)>, Trouble> {
        let mut query = vec![("tagging", "")];
        query.extend(version.map(|version| ("versionId", version)));
        let document = self.document(&path(bucket, key), &query)?;
        let tags = xml::parse(&document).as_ref().and_then(tags_of_document);
        tags.ok_or_else(|| Trouble::Wrong("the answer to GetObjectTagging is not its document".to_owned()))
    }

    pub(super) fn document(&self, path: &str, query: &Query<'_>) -> Result<String, Trouble> {
        let call = Call { method: "GET", path: path.to_owned(), query, headers: &[], body_max: 0 };
        let mut attempt = 1;
        loop {
            match self.call(&call)?.into_text() {
                Ok(text) => return Ok(text),
                Err(_) if attempt < ATTEMPTS => self.pause(attempt)?,
                Err(error) => return Err(self.no_answer(&error)),
            }
            attempt += 1;
        }
    }

    /// Sends a request until it is answered, or too often.
    fn call(&self, call: &Call<'_>) -> Result<Answer, Trouble> {
        self.call_with(call, &mut Payload::Bytes(b""))
    }

    /// As [`Self::call`], with a body. A stream is sent once, and only refusals that come before it are adapted to.
    pub(super) fn call_with(&self, call: &Call<'_>, payload: &mut Payload<'_>) -> Result<Answer, Trouble> {
        let mut attempt = 1;
        loop {
            if self.is_stopped() {
                return Err(Trouble::Stopped);
            }
            let trouble = match self.send(call, payload) {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(refusal)) => {
                    if attempt < ATTEMPTS && self.has_adapted(&refusal) && payload.can_be_repeated() {
                        attempt += 1;
                        continue;
                    }
                    refusal.trouble
                }
                Err(error) => match trust_failure(&error) {
                    // Another attempt would find the same certificate.
                    Some(failure) => {
                        let text = failure.text(&error, &self.endpoint.url(), self.authorities);
                        return Err(Trouble::NoAnswer(text));
                    }
                    None => self.no_answer(&error),
                },
            };
            // A change that was not answered may have been made.
            let is_read = matches!(call.method, "GET" | "HEAD");
            let may_pass = match &trouble {
                Trouble::NoAnswer(_) => is_read,
                Trouble::Refused { status: 408 | 429 | 503, .. } => true,
                Trouble::Refused { status, .. } => is_read && matches!(status, 500 | 502 | 504),
                Trouble::Wrong(_) | Trouble::Stopped => false,
            };
            if !may_pass || attempt == ATTEMPTS || !payload.can_be_repeated() {
                return Err(trouble);
            }
            self.pause(attempt)?;
            attempt += 1;
        }
    }

    /// Waits after a failed attempt.
    pub(crate) fn pause(&self, attempt: u32) -> Result<(), Trouble> {
        let end = Instant::now() + FIRST_PAUSE * 2_u32.saturating_pow(attempt - 1);
        while Instant::now() < end {
            if self.is_stopped() {
                return Err(Trouble::Stopped);
            }
            nap(GLANCE);
        }
        Ok(())
    }

    /// Takes the region or the clock from a refusal that is about them. Returns whether another attempt makes sense.
    fn has_adapted(&self, Refusal { trouble, headers }: &Refusal) -> bool {
        let Trouble::Refused { code, .. } = trouble else { return false };
        match code.as_str() {
            "RequestTimeTooSkewed" => {
                let ahead = Answer::date_of(headers)
                    .and_then(|date| date.checked_signed_diff(now_millis()))
                    .unwrap_or_default();
                self.clock_ahead.swap(ahead, Ordering::Relaxed) != ahead
            }
            _ => {
                let region = headers.get("x-amz-bucket-region").and_then(|region| region.to_str().ok());
                let Some(region) = region.filter(|_| code == "AuthorizationHeaderMalformed") else {
                    return false;
                };
                let mut known = self.region.lock();
                let is_new = *known != region;
                region.clone_into(&mut known);
                is_new
            }
        }
    }

    pub(super) fn send(
        &self,
        call: &Call<'_>,
        payload: &mut Payload<'_>,
    ) -> Result<Result<Answer, Box<Refusal>>, Error> {
        let Call { method, path, query, headers, body_max } = call;
        let mut pairs: Vec<_> =
            query.iter().map(|(name, value)| (encode_strict(name), encode_strict(value))).collect();
        pairs.sort();
        let query = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
        let stamp =
            Stamp::from_millis(now_millis().saturating_add_signed(self.clock_ahead.load(Ordering::Relaxed)));
        let (host, hash) = (self.endpoint.authority(), payload.hash());
        let mut sent = vec![
            ("host", host.as_str()),
            ("x-amz-content-sha256", hash.as_ref()),
            ("x-amz-date", stamp.text()),
        ];
        sent.extend_from_slice(headers);
        sent.sort_unstable();
        // Signed values have single spaces.
        let words = |value: &str| value.split_whitespace().collect::<Vec<_>>().join(" ");
        let values: Vec<_> = sent.iter().map(|(_, value)| words(value)).collect();
        let signed: Vec<_> =
            sent.iter().zip(&values).map(|((name, _), value)| (*name, value.as_str())).collect();
        let region = self.region.lock().clone();
        let signer = {
            let mut key = self.day_key.lock();
            Signer::with_key_of(&mut key, &self.credentials, &region, stamp.clone())
        };
        let parts = Parts { method, path, query: &query, headers: &signed, payload: &hash };
        let (authorization, _) = signer.authorization(&parts);
        let target = if query.is_empty() { path.clone() } else { format!("{path}?{query}") };
        let mut builder = Request::builder().method(*method).uri(format!("{}{target}", self.endpoint.url()));
        for (name, value) in sent.iter().filter(|(name, _)| *name != "host") {
            builder = builder.header(*name, *value);
        }
        let builder = builder.header("authorization", authorization);
        let content = Duration::from_secs(body_max / SLOWEST_RATE);
        let limit = ANSWER_TIMEOUT + content.saturating_mul(self.patience);
        Ok(answer_of(run(&self.agent, builder, payload, limit)?))
    }

    fn no_answer(&self, error: &Error) -> Trouble {
        Trouble::NoAnswer(format!("{} does not answer: {}", self.endpoint.url(), error_text(error)))
    }
}

pub(super) fn path(bucket: &str, key: &str) -> String {
    match key {
        "" => format!("/{}", encode_path(bucket)),
        key => format!("/{}/{}", encode_path(bucket), encode_path(key)),
    }
}
