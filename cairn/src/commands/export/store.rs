//! The bucket of another store that an export goes to.

use std::io::{Read, copy};
use std::result::Result as StdResult;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_api::RetentionMode;
use cairn_http1::{encode_strict, parse_rfc3339_millis};
use cairn_md5::Md5;
use cairn_model::Etag;

use super::content::{Origin, Problem};
use super::digests::{Digester, Digests, Hashed, Proof};
use super::history::{Common, Step, common};
use super::listing::{Group, Listed, Version};
use super::manifest::Line;
use super::outcome::{Outcome, Sent};
use crate::commands::remote::{Answer, Payload, Remote, Trouble, VersionRef};
use crate::failure::Failure;
use crate::moment::now_millis;

/// Content up to this length is in memory while it is sent, so that it is checked before.
const SMALL_BYTES_MAX: u64 = 1 << 20;
/// The number of attempts at a transfer that breaks in its middle.
const ATTEMPTS: u32 = 6;
/// The number of attempts at reading content that ends early. Damage does not pass.
const READ_ATTEMPTS: u32 = 3;

type Result<T> = StdResult<T, Problem>;

/// A bucket that is exported to.
pub(super) struct Store<'a> {
    remote: &'a Remote,
    bucket: &'a str,
    versions: bool,
    has_object_lock: bool,
}

impl<'a> Store<'a> {
    /// Takes a bucket, which must exist, and keep versions if all are exported.
    pub(super) fn new(remote: &'a Remote, bucket: &'a str, versions: bool) -> StdResult<Self, Failure> {
        let failed = |trouble: Trouble| match Problem::from(trouble) {
            Problem::Version(text) | Problem::Busy(text) => Failure::Failed(text),
            Problem::Command(failure) => failure,
        };
        let versioning = remote.versioning(bucket).map_err(failed)?;
        if versions && versioning.as_deref() != Some("Enabled") {
            let text =
                "the target bucket keeps no versions: turn versioning on there, or leave --versions out";
            return Err(text.into());
        }
        let has_object_lock = remote.has_object_lock(bucket).map_err(failed)?;
        Ok(Self { remote, bucket, versions, has_object_lock })
    }

    fn at<'v>(&'v self, key: &'v str) -> (&'v str, &'v str) {
        (self.bucket, key)
    }

    /// Exports a key. Returns what became of each version, in order.
    ///
    /// `earlier` are lines of earlier manifests about the key: they have the target's entity tags where these differ.
    pub(super) fn export(
        &self,
        origin: &Origin<'_>,
        group: &Group,
        earlier: &[Line],
    ) -> StdResult<Vec<Outcome>, Failure> {
        let mut outcomes: Vec<Option<Outcome>> = group.versions.iter().map(|_| None).collect();
        let mut attempt = 1;
        loop {
            match self.try_export(origin, (group, earlier), &mut outcomes) {
                Err(Problem::Command(Failure::NoResponse(_)) | Problem::Busy(_)) if attempt < ATTEMPTS => {
                    // What was sent may have arrived: the next attempt looks.
                    self.remote.pause(attempt + 2).map_err(|_| super::content::interrupted())?;
                }
                Err(Problem::Command(failure)) => return Err(failure),
                Err(Problem::Version(why) | Problem::Busy(why)) => {
                    for outcome in outcomes.iter_mut().filter(|outcome| outcome.is_none()) {
                        *outcome = Some(Outcome::Failed(why.clone()));
                    }
                }
                Ok(()) => {}
            }
            if outcomes.iter().all(Option::is_some) {
                return Ok(outcomes.into_iter().flatten().collect());
            }
            attempt += 1;
        }
    }

    /// Exports what has no outcome yet, oldest first.
    fn try_export(
        &self,
        origin: &Origin<'_>,
        (group, earlier): (&Group, &[Line]),
        outcomes: &mut [Option<Outcome>],
    ) -> Result<()> {
        let there = if self.versions { self.there(group, earlier, outcomes)? } else { Common::default() };
        for (index, listed) in group.versions.iter().enumerate() {
            if outcomes[index].is_some() {
                continue;
            }
            let tag = expected_tag(listed, earlier);
            let done = if there.missing.contains(&index) {
                let text = "newer versions are at the target already, so this one cannot get its place";
                Err(Problem::Version(text.to_owned()))
            } else {
                self.one(origin, &group.key, listed, (index < there.count, &tag))
            };
            outcomes[index] = Some(match done {
                Ok(outcome) => outcome,
                // The others keep their order.
                Err(Problem::Version(why)) => Outcome::Failed(why),
                Err(problem) => return Err(problem),
            });
        }
        Ok(())
    }

    /// Exports one version. `tag` is the entity tag that the target would give it, as far as that is known.
    fn one(
        &self,
        origin: &Origin<'_>,
        key: &str,
        listed: &Listed,
        (is_there, tag): (bool, &str),
    ) -> Result<Outcome> {
        if listed.is_marker {
            let marker = if is_there { None } else { Some(self.remote.delete(self.at(key))?) };
            let version = marker.as_ref().and_then(|answer| answer.header("x-amz-version-id"));
            return Ok(Outcome::Marker(version.map(str::to_owned)));
        }
        let version = Version::of(origin.client, origin.bucket, key, listed)?;
        let is_there = is_there || (!self.versions && self.is_equal(&version, tag)?);
        let mut sent = if is_there { Sent::default() } else { self.send(origin, &version)? };
        sent.is_lock_lost = !self.has_object_lock && !lock_headers(&version).is_empty();
        Ok(Outcome::Exported(Box::new(version), sent))
    }

    /// Returns what is there already. `outcomes` are those of this run.
    fn there(&self, group: &Group, earlier: &[Line], outcomes: &[Option<Outcome>]) -> Result<Common> {
        let tag = |(one, outcome): (&Listed, &Option<Outcome>)| match outcome {
            Some(Outcome::Exported(_, Sent { other_tag: Some(tag), .. })) => tag.to_ascii_lowercase(),
            _ => expected_tag(one, earlier),
        };
        let ours = group.versions.iter().zip(outcomes);
        let ours: Vec<Step> =
            ours.map(|pair| (!pair.0.is_marker).then(|| (tag(pair), pair.0.size))).collect();
        let there = self.history(&group.key)?;
        common(&ours, &there).ok_or_else(|| {
            let count = there.len();
            Problem::Version(format!("the target has other versions of this key ({count})"))
        })
    }

    /// Returns the history of a key at the target, oldest first.
    fn history(&self, key: &str) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        let mut place = vec![("prefix", key.to_owned())];
        loop {
            let page = self.remote.versions(self.bucket, &place, false)?;
            let is_over = page.entries.iter().any(|entry| entry.key != key);
            let own = page.entries.into_iter().filter(|entry| entry.key == key);
            steps.extend(own.map(|one| (!one.is_marker).then(|| (one.etag.to_ascii_lowercase(), one.size))));
            match page.next {
                Some(next) if !is_over => {
                    place = next;
                    place.push(("prefix", key.to_owned()));
                }
                _ => break,
            }
        }
        steps.reverse();
        Ok(steps)
    }

    /// Returns whether the target has the object with the same content, headers and tags.
    fn is_equal(&self, version: &Version, tag: &str) -> Result<bool> {
        let at = VersionRef { bucket: self.bucket, key: &version.key, version: None };
        let answer = match self.remote.head(at, None) {
            Ok(answer) => answer,
            Err(trouble) if trouble.is_missing() => return Ok(false),
            Err(trouble) => return Err(trouble.into()),
        };
        let is_same_content = answer.etag().is_some_and(|etag| etag.eq_ignore_ascii_case(tag))
            && answer.length() == Some(version.size());
        let mut headers = stored_headers(version);
        headers.sort_unstable();
        if !is_same_content || answer.stored_headers().ok().as_ref() != Some(&headers) {
            return Ok(false);
        }
        let mut tags: Vec<_> =
            version.record.tags.iter().map(|tag| (tag.key.clone(), tag.value.clone())).collect();
        tags.sort_unstable();
        if tags.is_empty() && answer.tag_count() == 0 {
            return Ok(true);
        }
        Ok(self.remote.tags(at)? == tags)
    }

    fn send(&self, origin: &Origin<'_>, version: &Version) -> Result<Sent> {
        let mut headers = stored_headers(version);
        if !version.record.tags.is_empty() {
            let pair =
                |tag: &cairn_api::Tag| format!("{}={}", encode_strict(&tag.key), encode_strict(&tag.value));
            let tags = version.record.tags.iter().map(pair).collect::<Vec<_>>().join("&");
            headers.push(("x-amz-tagging".to_owned(), tags));
        }
        if self.has_object_lock {
            headers.extend(lock_headers(version));
        }
        let sent = if version.parts.is_empty() {
            self.send_whole(origin, version, &headers)?
        } else {
            self.send_parts(origin, version, &headers)?
        };
        let Stored { digests, etag, version_id } = sent;
        let is_same_tag = etag.eq_ignore_ascii_case(version.etag());
        if !is_same_tag {
            self.read_back(version, version_id.as_deref(), &digests)?;
        }
        Ok(Sent {
            sha256: Some(digests.sha256),
            copied: Some(version.size()),
            target_version: version_id,
            other_tag: (!is_same_tag).then_some(etag),
            is_lock_lost: false,
        })
    }

    /// Compares what the target has with what was sent, where its entity tag does not prove it.
    fn read_back(&self, version: &Version, id: Option<&str>, sent: &Digests) -> Result<()> {
        let at = VersionRef { bucket: self.bucket, key: &version.key, version: id };
        let answer = self.remote.get(at, None, None, version.size())?;
        let mut content = Hashed::new(answer.into_reader(), version);
        let read = copy(&mut content, &mut std::io::sink());
        match read {
            Ok(_) if content.finish().sha256 == sent.sha256 => Ok(()),
            Ok(_) => Err(Problem::Version("the target has another content".to_owned())),
            Err(error) => Err(Problem::Version(format!("the target sent no complete content: {error}"))),
        }
    }

    /// Sends an object in one request, with its MD5, which the target compares.
    fn send_whole(
        &self,
        origin: &Origin<'_>,
        version: &Version,
        headers: &[(String, String)],
    ) -> Result<Stored> {
        let mut md5 = Etag::parse(version.etag()).filter(|etag| etag.parts == 0).map(|etag| etag.md5);
        let checksum = declared_checksum(version);
        let mut attempt = 1;
        loop {
            let is_of_tag = md5.is_some_and(|md5| hex::encode(md5) == version.etag());
            let known = match md5 {
                Some(md5) => md5,
                None => self.md5_of(origin, version)?,
            };
            md5 = Some(known);
            let digest = STANDARD.encode(known);
            let mut headers: Vec<_> =
                headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            headers.push(("content-md5", &digest));
            headers.extend(checksum.as_ref().map(|(name, value)| (name.as_str(), *value)));
            let mut content = Hashed::new(origin.read(version, None)?, version);
            let sent = self.put(version, &headers, &mut content);
            let is_complete = content.bytes == version.size();
            if origin.is_stopped() {
                return Err(Trouble::Stopped.into());
            }
            match sent {
                Ok(answer) if is_complete => {
                    let digests = content.finish();
                    digests.check(version)?;
                    return Ok(Stored::of(digests, &answer));
                }
                Err(Trouble::Refused { code, .. })
                    if is_of_tag && matches!(code.as_str(), "BadDigest" | "InvalidDigest") =>
                {
                    // The tag may be opaque.
                    md5 = None;
                }
                _ if !is_complete && attempt < READ_ATTEMPTS => self.remote.pause(attempt)?,
                Ok(_) => return Err(cut()),
                Err(Trouble::NoAnswer(_)) if !is_complete => return Err(cut()),
                Err(Trouble::NoAnswer(_)) if !self.versions && attempt < ATTEMPTS => {
                    self.remote.pause(attempt + 2)?;
                }
                Err(trouble) => return Err(trouble.into()),
            }
            attempt += 1;
        }
    }

    fn put(
        &self,
        version: &Version,
        headers: &[(&str, &str)],
        content: &mut Hashed<impl Read>,
    ) -> StdResult<Answer, Trouble> {
        if version.size() > SMALL_BYTES_MAX {
            return self.remote.put(self.at(&version.key), headers, Payload::Stream(content, version.size()));
        }
        let mut bytes = Vec::new();
        match content.take(SMALL_BYTES_MAX + 1).read_to_end(&mut bytes) {
            Ok(_) => self.remote.put(self.at(&version.key), headers, Payload::Bytes(&bytes)),
            Err(error) => Err(Trouble::Wrong(format!("the content could not be read: {error}"))),
        }
    }

    /// Reads the content of a version whose tag is opaque. Returns its MD5.
    fn md5_of(&self, origin: &Origin<'_>, version: &Version) -> Result<[u8; 16]> {
        let mut content = Hashed::new(origin.read(version, None)?, version);
        copy(&mut content, &mut std::io::sink())
            .map_err(|error| format!("the content could not be read: {error}"))?;
        let digests = content.finish();
        digests.check(version)?;
        digests.md5.ok_or_else(|| Problem::Version("the object has parts".to_owned()))
    }

    /// Sends an object with the parts that it has, so that it gets the same entity tag.
    fn send_parts(
        &self,
        origin: &Origin<'_>,
        version: &Version,
        headers: &[(String, String)],
    ) -> Result<Stored> {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let upload = self.remote.begin_upload(self.at(&version.key), &headers)?;
        let sent = self.parts(origin, version, &upload).and_then(|(parts, digests)| {
            if digests.check(version)? == Proof::Nothing {
                let mut again = Hashed::new(origin.read(version, None)?, version);
                copy(&mut again, &mut std::io::sink())
                    .map_err(|error| format!("the content could not be read: {error}"))?;
                if again.finish() != digests {
                    return Err(Problem::Version("the content arrives changed".to_owned()));
                }
            }
            let (etag, version_id) = self.remote.complete_upload(self.at(&version.key), &upload, &parts)?;
            Ok(Stored { digests, etag, version_id })
        });
        if sent.is_err() {
            // A completion that was not answered may have been made: then there is nothing to remove.
            self.remote.abort_upload(self.at(&version.key), &upload);
        }
        sent
    }

    /// Sends all parts. Returns their numbers and tags, and the digests of the content.
    fn parts(
        &self,
        origin: &Origin<'_>,
        version: &Version,
        upload: &str,
    ) -> Result<(Vec<(u32, String)>, Digests)> {
        let (mut sent, mut offset, mut digester) = (Vec::new(), 0, Digester::new(version));
        for part in &version.record.parts {
            let place = (offset, part.size);
            let tag;
            (tag, digester) = self.part(origin, version, (upload, part.part_number), place, &digester)?;
            sent.push((part.part_number, tag));
            offset += part.size;
        }
        Ok((sent, digester.finish()))
    }

    fn part(
        &self,
        origin: &Origin<'_>,
        version: &Version,
        part: (&str, u32),
        (offset, size): (u64, u64),
        digester: &Digester,
    ) -> Result<(String, Digester)> {
        let mut attempt = 1;
        loop {
            let mut md5 = Md5::new();
            let (sent, digester, bytes) = if size == 0 {
                let sent = self.remote.put_part(self.at(&version.key), part, Payload::Bytes(b""));
                (sent, digester.clone(), 0)
            } else {
                let content = origin.read(version, Some((offset, size)))?;
                let mut content =
                    Part { content: Hashed::going_on(content, digester.clone()), md5: &mut md5 };
                let sent =
                    self.remote.put_part(self.at(&version.key), part, Payload::Stream(&mut content, size));
                let bytes = content.content.bytes;
                (sent, content.content.into_digester(), bytes)
            };
            if origin.is_stopped() {
                return Err(Trouble::Stopped.into());
            }
            match sent {
                Ok(answer) => {
                    let tag = answer.etag().unwrap_or_default().to_owned();
                    let is_proved =
                        tag.eq_ignore_ascii_case(&hex::encode(md5.finish())) || answer.has_opaque_tag();
                    if is_proved && bytes == size {
                        return Ok((tag, digester));
                    }
                    if attempt >= ATTEMPTS {
                        return Err(Problem::Version("a part arrives changed again and again".to_owned()));
                    }
                }
                Err(Trouble::NoAnswer(_)) if bytes < size && attempt < READ_ATTEMPTS => {
                    self.remote.pause(attempt)?;
                }
                Err(Trouble::NoAnswer(_)) if bytes < size => return Err(cut()),
                Err(Trouble::NoAnswer(_)) if attempt < ATTEMPTS => self.remote.pause(attempt + 2)?,
                Err(Trouble::Refused { status: 429 | 500 | 502..=504, .. }) if attempt < ATTEMPTS => {
                    self.remote.pause(attempt + 2)?;
                }
                Err(trouble) => return Err(trouble.into()),
            }
            attempt += 1;
        }
    }
}

fn cut() -> Problem {
    Problem::Version("the content could not be read to its end; the log of the server says why".to_owned())
}

/// Returns the entity tag that a version has at the target, in lower case: its own, unless an earlier export got another one.
fn expected_tag(listed: &Listed, earlier: &[Line]) -> String {
    let is_same = |line: &&Line| line.version_id == listed.id && line.etag.as_ref() == Some(&listed.etag);
    let other = earlier.iter().filter(is_same).find_map(|line| line.target_etag.as_ref());
    other.unwrap_or(&listed.etag).to_ascii_lowercase()
}

/// The version that the target has stored.
struct Stored {
    digests: Digests,
    etag: String,
    version_id: Option<String>,
}

impl Stored {
    fn of(digests: Digests, answer: &Answer) -> Self {
        let etag = answer.etag().unwrap_or_default().to_owned();
        let version_id = answer.header("x-amz-version-id").map(str::to_owned);
        Self { digests, etag, version_id }
    }
}

/// The content of a part, with its MD5.
struct Part<'m, R> {
    content: Hashed<R>,
    md5: &'m mut Md5,
}

impl<R: Read> Read for Part<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.content.read(buffer)?;
        self.md5.update(&buffer[..read]);
        Ok(read)
    }
}

/// Returns the header of a checksum that a client has declared for the whole object.
fn declared_checksum(version: &Version) -> Option<(String, &str)> {
    /// Those that S3 knows. A request has one of them.
    const ALGORITHMS: [&str; 5] = ["crc64nvme", "crc32c", "crc32", "sha256", "sha1"];
    let checksums = &version.record.checksums;
    let found = ALGORITHMS.iter().find_map(|name| checksums.get(*name).map(|value| (name, value.as_str())));
    // That of an object in parts is no checksum of its bytes.
    found
        .filter(|(_, value)| !value.contains('-'))
        .map(|(name, value)| (format!("x-amz-checksum-{name}"), value))
}

/// Returns the headers that are stored with an object.
fn stored_headers(version: &Version) -> Vec<(String, String)> {
    let record = &version.record;
    let mut headers = vec![("content-type".to_owned(), record.object.content_type.clone())];
    headers.extend(record.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
    let metadata = record.metadata.iter();
    headers.extend(metadata.map(|(name, value)| (format!("x-amz-meta-{name}"), value.clone())));
    headers
}

/// Returns the headers of a lock that holds now.
fn lock_headers(version: &Version) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    let mut header =
        |name: &str, value: &str| headers.push((format!("x-amz-object-lock-{name}"), value.to_owned()));
    if let Some(retention) = &version.record.object.retention
        && parse_rfc3339_millis(&retention.retain_until).is_some_and(|until| until > now_millis())
    {
        let mode = match retention.mode {
            RetentionMode::Governance => "GOVERNANCE",
            RetentionMode::Compliance => "COMPLIANCE",
        };
        header("mode", mode);
        header("retain-until-date", &retention.retain_until);
    }
    if version.record.object.legal_hold {
        header("legal-hold", "ON");
    }
    headers
}
