//! The round trip: writes, reads, lists, copies and deletes objects as clients do, and removes all of them.

use ring::rand::{SecureRandom, SystemRandom};

use super::check::{Checked, Verdict};
use super::clients::Mode;
use super::connection::{Answer, Body, Call, Connection, NoAnswer, crc32_text};
use super::failed::Failed;
use crate::s3::xml;

/// Begins the names of buckets and keys that are made here.
pub(crate) const TEMPORARY_PREFIX: &str = "cairn-doctor-";
const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// The name of the small object, with characters that clients must encode.
const SMALL_NAME: &str = "4 kib, ä+b";
const SMALL_BYTES: usize = 4 * KIB;
/// Sizes of the parts of the large object. All but the last must have 5 MiB.
const PARTS: [usize; 3] = [6 * MIB, 6 * MIB, 4 * MIB];
/// A range that spans the first two parts.
const RANGE: (usize, usize) = (6 * MIB - 100, 6 * MIB + 100);

/// The result of a step: the message of a success, or a failure.
type Step = Result<String, Box<Failed>>;

/// The objects of a trip: connection, bucket, prefix and keys.
pub(crate) struct Trip<'c> {
    pub(super) connection: &'c Connection,
    pub(super) mode: Option<Mode>,
    pub(super) bucket: String,
    /// Whether the bucket was made here, so that it must be removed.
    pub(super) owns_bucket: bool,
    /// Begins all keys.
    pub(super) prefix: String,
    /// The keys that may exist.
    pub(super) keys: Vec<String>,
    /// The uploads that may exist, by key and id.
    pub(super) uploads: Vec<(String, String)>,
    pub(super) checks: Vec<Checked>,
    is_ended: bool,
}

/// Returns a unique string.
fn unique() -> String {
    let mut bytes = [0; 8];
    SystemRandom::new().fill(&mut bytes).expect("the system has random numbers");
    hex::encode(bytes)
}

/// Returns bytes that no compression shortens, the same for the same seed.
fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut content = Vec::with_capacity(bytes + 8);
    while content.len() < bytes {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        content.extend_from_slice(&state.to_le_bytes());
    }
    content.truncate(bytes);
    content
}

impl<'c> Trip<'c> {
    /// Runs all steps in a bucket of its own, or in a given one, and removes what it made.
    pub(crate) fn run(connection: &'c Connection, mode: Option<Mode>, bucket: Option<&str>) -> Vec<Checked> {
        let name = format!("{TEMPORARY_PREFIX}{}", unique());
        let mut trip = Self {
            connection,
            mode,
            bucket: bucket.map_or_else(|| name.clone(), str::to_owned),
            owns_bucket: false,
            prefix: format!("{name}/"),
            keys: Vec::new(),
            uploads: Vec::new(),
            checks: Vec::new(),
            is_ended: false,
        };
        match bucket {
            None => trip.step("bucket", Self::make_bucket),
            Some(_) => trip.step("bucket", Self::enter_bucket),
        }
        if trip.checks.iter().any(|checked| checked.verdict == Verdict::Failed) {
            trip.is_ended = true;
        }
        trip.step("empty object", |trip| trip.small_object("empty", 0));
        trip.step("small object", |trip| trip.small_object(SMALL_NAME, SMALL_BYTES));
        trip.step("large object", Self::large_object);
        trip.step("range", Self::range);
        trip.step("list", Self::list);
        trip.step("copy", Self::copy);
        trip.step("presigned GET", Self::presigned_get);
        trip.step("presigned PUT", Self::presigned_put);
        trip.trailing_checksum();
        trip.list_version_1();
        trip.virtual_host();
        trip.step("delete", Self::delete);
        trip.batch_delete();
        trip.remove_all();
        trip.checks
    }

    /// Runs a step, unless an earlier failure makes it pointless.
    fn step(&mut self, name: &'static str, step: impl FnOnce(&mut Self) -> Step) {
        if self.is_ended {
            self.checks.push(Checked::new(name, Verdict::Skipped, "not tried after the failure above"));
            return;
        }
        let checked = match step(self) {
            Ok(message) => Checked::ok(name, message),
            Err(failed) => {
                self.is_ended = failed.is_end;
                failed.named(name)
            }
        };
        self.checks.push(checked);
    }

    /// Runs a step that need not work: a failure is a note with `fix`, unless the program was told to stop.
    fn optional(&mut self, name: &'static str, fix: &str, step: impl FnOnce(&mut Self) -> Step) {
        self.step(name, step);
        if self.is_ended && self.connection.is_stopped() {
            return;
        }
        if let Some(checked) = self.checks.last_mut().filter(|checked| checked.verdict == Verdict::Failed) {
            checked.verdict = Verdict::Note;
            checked.fix = Some(fix.to_owned());
        }
    }

    /// Sends a request that must succeed.
    fn expect(&self, what: &str, call: &Call<'_>) -> Result<Answer, Box<Failed>> {
        self.success(what, self.connection.call(call))
    }

    fn success(&self, what: &str, answer: Result<Answer, NoAnswer>) -> Result<Answer, Box<Failed>> {
        let answer = answer.map_err(|no_answer| Failed::no_answer(what, no_answer))?;
        if answer.is_success() { Ok(answer) } else { Err(Failed::refused(what, &answer, self.mode)) }
    }

    /// Returns the key of a name, which is removed at the end.
    fn key(&mut self, name: &str) -> String {
        let key = format!("{}{name}", self.prefix);
        if !self.keys.contains(&key) {
            self.keys.push(key.clone());
        }
        key
    }

    fn make_bucket(&mut self) -> Step {
        // The answer may be lost, and the name is unique.
        self.owns_bucket = true;
        let bucket = self.bucket.clone();
        let made = self.expect("making a temporary bucket", &Call::new("PUT", &bucket, ""));
        match made {
            Ok(_) => Ok(format!("made the temporary bucket {bucket}")),
            Err(mut failed) => {
                self.owns_bucket = failed.is_end;
                if failed.code.as_deref() == Some("AccessDenied") {
                    failed.message = "these credentials may not make a temporary bucket".to_owned();
                    failed.fix = Some(format!(
                        "Name a bucket with --bucket: objects are written below {TEMPORARY_PREFIX}… there, and removed.{}",
                        self.visible_buckets()
                    ));
                }
                Err(failed)
            }
        }
    }

    /// Returns the buckets that the credentials can see, as a sentence.
    fn visible_buckets(&self) -> String {
        let listed = self.connection.call(&Call::new("GET", "", ""));
        let text = listed.map(|answer| answer.text()).unwrap_or_default();
        let names: Vec<String> = xml::texts(&text, "Name").take(10).collect();
        if names.is_empty() { String::new() } else { format!(" They see: {}.", names.join(", ")) }
    }

    fn enter_bucket(&mut self) -> Step {
        let bucket = self.bucket.clone();
        self.expect(&format!("looking for the bucket {bucket}"), &Call::new("HEAD", &bucket, ""))?;
        let call = Call::new("GET", &bucket, "").query(&[("object-lock", "")]);
        let locks = self
            .connection
            .call(&call)
            .map_err(|no_answer| Failed::no_answer("reading the lock", no_answer))?;
        if locks.is_success() && locks.text().contains("<DefaultRetention>") {
            return Err(Failed::new(
                format!("new objects in {bucket} are locked by default, so they could not be removed"),
                "Name a bucket without default retention with --bucket.",
            ));
        }
        Ok(format!("uses the bucket {bucket}, below {}", self.prefix))
    }

    fn small_object(&mut self, name: &str, bytes: usize) -> Step {
        let (key, bucket) = (self.key(name), self.bucket.clone());
        let content = content(bytes as u64 + 1, bytes);
        let checksum = crc32_text(&content);
        let headers = [("content-type", "text/x-doctor"), ("x-amz-checksum-crc32", checksum.as_str())];
        let put = Call::new("PUT", &bucket, &key).headers(&headers).body(Body::Signed(&content));
        self.expect("uploading an object", &put)?;
        let head = self.expect("HEAD of an object", &Call::new("HEAD", &bucket, &key))?;
        let length = head.header("content-length").and_then(|length| length.parse().ok());
        if length != Some(bytes) || head.header("content-type") != Some("text/x-doctor") {
            return Err(different("HEAD"));
        }
        let got = self.expect("downloading an object", &Call::new("GET", &bucket, &key))?;
        if got.body != content {
            return Err(different("GET"));
        }
        Ok(format!("PUT, HEAD and GET of {bytes} bytes"))
    }

    fn large_object(&mut self) -> Step {
        let (key, bucket) = (self.key("large"), self.bucket.clone());
        let begun = self.expect(
            "beginning a multipart upload",
            &Call::new("POST", &bucket, &key).query(&[("uploads", "")]),
        )?;
        let id = xml::text(&begun.text(), "UploadId").ok_or_else(|| different("CreateMultipartUpload"))?;
        self.uploads.push((key.clone(), id.clone()));
        let mut document = String::from("<CompleteMultipartUpload>");
        for (index, bytes) in PARTS.into_iter().enumerate() {
            let number = (index + 1).to_string();
            let part = content(100 + index as u64, bytes);
            let query = [("partNumber", number.as_str()), ("uploadId", id.as_str())];
            let call = Call::new("PUT", &bucket, &key).query(&query).body(Body::Signed(&part));
            let sent = self.expect(&format!("uploading part {number}"), &call)?;
            let etag = sent.header("etag").ok_or_else(|| different("UploadPart"))?;
            document += &format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>");
        }
        document += "</CompleteMultipartUpload>";
        let query = [("uploadId", id.as_str())];
        let call = Call::new("POST", &bucket, &key).query(&query).body(Body::Signed(document.as_bytes()));
        let done = self.expect("completing a multipart upload", &call)?;
        if done.code_of_document().is_some() {
            return Err(Failed::refused("completing a multipart upload", &done, self.mode));
        }
        self.uploads.clear();
        let got = self.expect("downloading a large object", &Call::new("GET", &bucket, &key))?;
        if got.body != large_content() {
            return Err(different("GET"));
        }
        Ok(format!("{} MiB in {} parts", PARTS.iter().sum::<usize>() / MIB, PARTS.len()))
    }

    fn range(&mut self) -> Step {
        let (key, bucket) = (format!("{}large", self.prefix), self.bucket.clone());
        let (first, last) = RANGE;
        let range = format!("bytes={first}-{last}");
        let headers = [("range", range.as_str())];
        let got = self.expect("reading a range", &Call::new("GET", &bucket, &key).headers(&headers))?;
        if got.status != 206 || got.body != large_content()[first..=last] {
            return Err(different("a ranged GET"));
        }
        Ok(format!("bytes {first} to {last}, across two parts"))
    }

    fn list(&mut self) -> Step {
        let (bucket, prefix) = (self.bucket.clone(), self.prefix.clone());
        let query = [("list-type", "2"), ("prefix", prefix.as_str())];
        let listed = self.expect("listing", &Call::new("GET", &bucket, "").query(&query))?;
        self.all_listed(&listed)
    }

    fn all_listed(&self, listed: &Answer) -> Step {
        let text = listed.text();
        let found: Vec<String> = xml::texts(&text, "Key").collect();
        let missing: Vec<&str> = self
            .keys
            .iter()
            .filter(|key| !found.contains(key))
            .filter_map(|key| key.split('/').nth(1))
            .collect();
        if missing.is_empty() {
            return Ok(format!("{} keys", found.len()));
        }
        Err(Failed::new(
            format!("the list does not have {}", missing.join(", ")),
            "If an upload failed above, see there. Otherwise look for a proxy that caches.",
        ))
    }

    fn copy(&mut self) -> Step {
        let (source, key, bucket) = (format!("{}large", self.prefix), self.key("copy"), self.bucket.clone());
        let from = format!("/{bucket}/{source}");
        let headers = [("x-amz-copy-source", from.as_str())];
        self.expect("copying an object", &Call::new("PUT", &bucket, &key).headers(&headers))?;
        let head = self.expect("HEAD of a copy", &Call::new("HEAD", &bucket, &key))?;
        if head.header("content-length") != Some(large_content().len().to_string().as_str()) {
            return Err(different("CopyObject"));
        }
        Ok("an object of 16 MiB within the bucket".to_owned())
    }

    fn presigned_get(&mut self) -> Step {
        let (key, bucket) = (format!("{}{SMALL_NAME}", self.prefix), self.bucket.clone());
        let what = "GET with a presigned URL";
        let got = self.success(what, self.connection.use_presigned("GET", &bucket, &key, b""))?;
        if got.body != content(SMALL_BYTES as u64 + 1, SMALL_BYTES) {
            return Err(different("GET"));
        }
        Ok("works without credentials".to_owned())
    }

    fn presigned_put(&mut self) -> Step {
        let (key, bucket) = (self.key("presigned"), self.bucket.clone());
        let content = content(7, KIB);
        let what = "PUT with a presigned URL";
        self.success(what, self.connection.use_presigned("PUT", &bucket, &key, &content))?;
        let got = self.expect("downloading an object", &Call::new("GET", &bucket, &key))?;
        if got.body != content {
            return Err(different("PUT"));
        }
        Ok("works without credentials".to_owned())
    }

    /// Sends a trailing checksum, as SDKs do by default. The mode `strict` refuses it.
    fn trailing_checksum(&mut self) {
        const FIX: &str = "Let clients send checksums only when required, or set s3.compatibility = \"extended\" on the server. \
                           `cairn doctor CLIENT` shows the setting.";
        let kind = if self.connection.endpoint.has_tls() { "unsigned" } else { "signed" };
        let step = |trip: &mut Self| {
            let (key, bucket) = (trip.key("trailer"), trip.bucket.clone());
            let content = content(9, 100 * KIB);
            let put = Call::new("PUT", &bucket, &key).body(Body::Chunked(&content));
            let put = trip.expect(&format!("an aws-chunked body, {kind}, with a checksum after it,"), &put);
            if put.is_err() {
                trip.keys.pop();
            }
            put?;
            let got = trip.expect("downloading an object", &Call::new("GET", &bucket, &key))?;
            if got.body != content {
                return Err(different("PUT"));
            }
            Ok(format!("aws-chunked, {kind}, with a CRC-32 after the body, as SDKs send it by default"))
        };
        self.in_extended("checksum after body", FIX, step);
    }

    fn list_version_1(&mut self) {
        const FIX: &str = "Let clients use the second version of the list, or set s3.compatibility = \"extended\" on the server.";
        self.in_extended("list, version 1", FIX, |trip| {
            let (bucket, prefix) = (trip.bucket.clone(), trip.prefix.clone());
            let query = [("prefix", prefix.as_str())];
            let listed = trip.expect(
                "listing with the first version of the list",
                &Call::new("GET", &bucket, "").query(&query),
            )?;
            trip.all_listed(&listed)
        });
    }

    fn batch_delete(&mut self) {
        const FIX: &str =
            "Turn batch deletes off in clients, or set s3.compatibility = \"extended\" on the server.";
        self.in_extended("batch delete", FIX, |trip| {
            let (bucket, keys) = (trip.bucket.clone(), [trip.key("batch-1"), trip.key("batch-2")]);
            let mut document = String::from("<Delete>");
            for key in &keys {
                trip.expect("uploading an object", &Call::new("PUT", &bucket, key))?;
                document += &format!("<Object><Key>{key}</Key></Object>");
            }
            document += "</Delete>";
            let checksum = crc32_text(document.as_bytes());
            let headers = [("x-amz-checksum-crc32", checksum.as_str())];
            let call = Call::new("POST", &bucket, "").query(&[("delete", "")]).headers(&headers);
            let deleted = trip.expect(
                "deleting several objects in one request",
                &call.body(Body::Signed(document.as_bytes())),
            )?;
            let refused = xml::text(&deleted.text(), "Message");
            match refused {
                None => Ok("two objects in one request".to_owned()),
                Some(message) => {
                    Err(Failed::new(format!("an object was not deleted: {message}"), "See the message."))
                }
            }
        });
    }

    /// Runs a step that only the mode `extended` must pass.
    fn in_extended(&mut self, name: &'static str, fix: &str, step: impl FnOnce(&mut Self) -> Step) {
        if self.mode == Some(Mode::Extended) {
            self.step(name, step);
        } else {
            self.optional(name, fix, step);
        }
    }

    fn virtual_host(&mut self) {
        const NAME: &str = "virtual host";
        if self.is_ended {
            return;
        }
        let endpoint = &self.connection.endpoint;
        if endpoint.is_address() {
            let message =
                format!("clients must use path style: no bucket can be named below {}", endpoint.host);
            self.checks.push(Checked::new(NAME, Verdict::Note, message));
            return;
        }
        let fix = format!(
            "Use path style. Or, in the extended mode, add {} to server.base_hosts, and *.{} to the DNS and to the certificate.",
            endpoint.host, endpoint.host
        );
        self.optional(NAME, &fix, |trip| {
            let bucket = trip.bucket.clone();
            let answer = trip.connection.call_virtual_hosted(&Call::new("HEAD", &bucket, ""));
            let mut answer =
                trip.success(&format!("a request to {bucket}.{}", trip.connection.endpoint.host), answer);
            if let Err(failed) = &mut answer {
                failed.is_end = false;
            }
            answer.map(|_| "virtual-hosted style works as well as path style".to_owned())
        });
    }

    fn delete(&mut self) -> Step {
        let bucket = self.bucket.clone();
        let keys = self.keys.clone();
        for key in &keys {
            self.expect("deleting an object", &Call::new("DELETE", &bucket, key))?;
        }
        let prefix = self.prefix.clone();
        let query = [("list-type", "2"), ("prefix", prefix.as_str())];
        let listed = self.expect("listing", &Call::new("GET", &bucket, "").query(&query))?;
        let left = xml::texts(&listed.text(), "Key").count();
        if left > 0 {
            return Err(Failed::new(
                format!("{left} deleted keys are still listed"),
                "Look for a proxy that caches.",
            ));
        }
        Ok(format!("{} objects", keys.len()))
    }
}

fn large_content() -> Vec<u8> {
    PARTS.into_iter().enumerate().flat_map(|(index, bytes)| content(100 + index as u64, bytes)).collect()
}

fn different(what: &str) -> Box<Failed> {
    Failed::new(
        format!("the answer to {what} is not what was written"),
        "Look for a proxy that changes or caches what it passes on.",
    )
}
