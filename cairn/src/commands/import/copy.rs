//! Copies one version: headers, content, tags and lock.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use cairn_api::ImportOutcome;
use cairn_md5::md5_digest;
use cairn_sync::Mutex;

use super::journal::{Journal, Record, State};
use super::permits::Permits;
use super::target::{Content, Refused, Target, settings_headers, settings_of};
use super::throttle::{Metered, Throttle};
use crate::commands::remote::{Answer, Checksum, Entry, Lock, Remote, Settings, Trouble, VersionRef};
use crate::failure::Failure;

/// Content up to this length is in memory while it is sent, so that connections are free early and attempts are cheap.
const SMALL_BYTES_MAX: u64 = 1 << 20;
/// Largest content of one request. S3 has the same limit.
const REQUEST_BYTES_MAX: u64 = 5 << 30;
/// Length of parts where those of the source are unknown.
const PART_BYTES: u64 = 64 << 20;
/// Most parts of an object.
const PARTS_MAX: u64 = 10_000;
/// The number of attempts at a transfer that breaks in its middle.
const ATTEMPTS: u32 = 6;

const OVERWRITTEN: &str = "it was overwritten at the source while it was copied: run the import again";

/// The error of a version that was not copied, or of the whole command.
#[derive(Debug)]
pub(super) enum Problem {
    /// The others can be copied.
    Version(String),
    /// The source does not have it any more.
    Gone,
    /// The source lists another tag than this one, which it answers with.
    OtherTag(String),
    /// The command cannot go on.
    Command(Failure),
}

impl From<Trouble> for Problem {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::NoAnswer(_) | Trouble::Stopped => Self::Command(super::buckets::failure(&trouble)),
            trouble if trouble.is_missing() => Self::Gone,
            trouble => Self::Version(trouble.text()),
        }
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Version { code, message } => Self::Version(format!("{code}: {message}")),
            Refused::Command(failure) => Self::Command(failure),
        }
    }
}

/// The result of copying a version.
pub(super) struct Copied {
    pub(super) outcome: ImportOutcome,
    pub(super) record: Record,
    /// Whether the tag is the source's own, and not that of the content.
    pub(super) is_opaque: bool,
    /// Whether the source declares a checksum that was left out: a composite of other parts, or of an unknown algorithm.
    pub(super) lacks_checksum: bool,
}

/// A request that sends the content of a version in one piece, with its settings.
pub(super) struct VersionRequest {
    settings: Settings,
    pub(super) headers: Vec<(String, String)>,
    pub(super) parameters: Vec<(&'static str, String)>,
    is_opaque: bool,
    lacks_checksum: bool,
}

/// A copier of a bucket's versions.
pub(super) struct Copier<'a> {
    pub(super) source: &'a Remote,
    pub(super) target: &'a Target<'a>,
    /// The journal in which uploads are noted; `None` for a comparison, which makes none.
    pub(super) journal: Option<&'a Journal>,
    pub(super) throttle: &'a Throttle,
    pub(super) permits: &'a Permits,
    pub(super) bucket: &'a str,
    /// Whether versions of the bucket can have retention and legal holds.
    pub(super) has_locks: bool,
}

impl Copier<'_> {
    pub(super) fn at<'v>(&'v self, entry: &'v Entry) -> VersionRef<'v> {
        VersionRef { bucket: self.bucket, key: &entry.key, version: entry.version_id.as_deref() }
    }

    /// Copies a version or a delete marker.
    pub(super) fn copy(&self, entry: &Entry) -> Result<Copied, Problem> {
        match self.copy_as(entry) {
            Err(Problem::OtherTag(etag)) => {
                let copied = match self.copy_as(&Entry { etag, ..entry.clone() }) {
                    Err(Problem::OtherTag(_)) => return Err(Problem::Version(OVERWRITTEN.to_owned())),
                    copied => copied?,
                };
                // The next run compares with what is listed.
                let record = Record {
                    version: Record::of(entry, String::new(), State::Imported).version,
                    ..copied.record
                };
                Ok(Copied { record, ..copied })
            }
            copied => copied,
        }
    }

    fn copy_as(&self, entry: &Entry) -> Result<Copied, Problem> {
        if entry.is_marker {
            let marker = [("delete_marker", "true".to_owned())];
            let outcome = self.target.put(self.bucket, entry, &marker, &[], &mut Content::Bytes(b""))?;
            return Ok(copied(entry, outcome, String::new(), false));
        }
        match entry.parts() {
            Some(parts) if entry.size > 0 => self.copy_parts(entry, parts),
            _ if entry.size > REQUEST_BYTES_MAX => self.copy_parts(entry, 0),
            _ => self.copy_whole(entry),
        }
    }

    /// Brings tags and lock of a version up to date that was here already, without the journal knowing it. Returns the outcome.
    fn same_settings(
        &self,
        entry: &Entry,
        settings: &Settings,
        outcome: ImportOutcome,
    ) -> Result<ImportOutcome, Problem> {
        if outcome != ImportOutcome::Unchanged {
            return Ok(outcome);
        }
        match self.target.record(self.bucket, &entry.key, entry.id())? {
            Some(here) if settings_of(&here) != *settings => {
                Ok(self.target.change(self.bucket, entry, settings)?)
            }
            _ => Ok(outcome),
        }
    }

    /// Returns what is sent with the content of a version in one piece.
    pub(super) fn request_of(
        &self,
        entry: &Entry,
        answer: &Answer,
        is_known_opaque: bool,
    ) -> Result<VersionRequest, Problem> {
        self.same(entry, answer)?;
        let settings = self.settings_of_get(entry, answer)?;
        let mut headers = headers(answer, &settings)?;
        let (checksum, lacks_checksum) = checksum_of(answer, |checksum| checksum.parts().is_none());
        headers.extend(checksum.map(|checksum| checksum.header()));
        let is_opaque = answer.has_opaque_tag() || is_known_opaque;
        let parameters = tag_parameters(entry, is_opaque);
        Ok(VersionRequest { settings, headers, parameters, is_opaque, lacks_checksum })
    }

    /// Returns what became of a version that was sent in one piece.
    pub(super) fn copied_whole(
        &self,
        entry: &Entry,
        request: &VersionRequest,
        outcome: ImportOutcome,
    ) -> Result<Copied, Problem> {
        let outcome = self.same_settings(entry, &request.settings, outcome)?;
        let copied = copied(entry, outcome, request.settings.fingerprint(), request.is_opaque);
        Ok(Copied { lacks_checksum: request.lacks_checksum, ..copied })
    }

    /// Copies a version in one request.
    fn copy_whole(&self, entry: &Entry) -> Result<Copied, Problem> {
        let mut attempt = 1;
        let mut is_known_opaque = false;
        loop {
            let answer = self.source.get(self.at(entry), None, None, entry.size)?;
            let request = self.request_of(entry, &answer, is_known_opaque)?;
            let (parameters, headers) = (&request.parameters, &request.headers);
            let mut content = Metered::new(answer.into_reader(), self.throttle, self.source);
            let sent = if entry.size <= SMALL_BYTES_MAX {
                match content.read_whole(entry.size) {
                    Ok(bytes) => {
                        self.target.put(self.bucket, entry, parameters, headers, &mut Content::Bytes(&bytes))
                    }
                    Err(failure) => {
                        content.failure = Some(failure);
                        Err("".into())
                    }
                }
            } else {
                let mut stream = Content::Stream(&mut content, entry.size);
                self.target.put(self.bucket, entry, parameters, headers, &mut stream)
            };
            if self.source.is_stopped() {
                return Err(Trouble::Stopped.into());
            }
            match (sent, content.failure.clone()) {
                (Ok(outcome), _) => return self.copied_whole(entry, &request, outcome),
                // It may have been changed on its way.
                (Err(Refused::Version { message, .. }), None)
                    if message.contains("this checksum") && attempt == 1 => {}
                (Err(Refused::Version { message, .. }), None)
                    if message.contains("entity tag") && !request.is_opaque && attempt < ATTEMPTS =>
                {
                    // Read alone, the content has the tag, or the tag is the source's own.
                    is_known_opaque = self.digest_of(entry)? != entry.etag.to_ascii_lowercase();
                }
                (Err(Refused::Command(Failure::NoResponse(_))), _) if attempt < ATTEMPTS => {
                    self.source.pause(attempt + 2)?;
                }
                (Err(_), Some(_)) if attempt < ATTEMPTS => self.source.pause(attempt)?,
                (Err(_), Some(why)) => {
                    return Err(Problem::Version(format!("the source sent no complete content: {why}")));
                }
                (Err(refused), None) => return Err(refused.into()),
            }
            attempt += 1;
        }
    }

    /// Returns the MD5 of the content at the source.
    fn digest_of(&self, entry: &Entry) -> Result<String, Problem> {
        let answer = self.source.get(self.at(entry), None, None, entry.size)?;
        let mut content = Metered::new(answer.into_reader(), self.throttle, self.source).hashed();
        std::io::copy(&mut content, &mut std::io::sink())
            .map_err(|error| Problem::Version(format!("the source sent no complete content: {error}")))?;
        Ok(content.digest().unwrap_or_default())
    }

    /// Checks that the answer is about the version that was listed.
    fn same(&self, entry: &Entry, answer: &Answer) -> Result<(), Problem> {
        let length = answer.whole_length();
        let Some(etag) = answer.etag().filter(|etag| *etag != entry.etag) else {
            // Without a usable tag, nothing else would notice that only a part of it was copied.
            return match length.filter(|length| *length != entry.size) {
                None => Ok(()),
                Some(length) => Err(Problem::Version(format!(
                    "it is listed with {} bytes and sent with {length}: if it was overwritten meanwhile, run the import again",
                    entry.size
                ))),
            };
        };
        let has_its_date = answer.modified().is_some_and(|modified| modified / 1000 == entry.modified / 1000);
        let has_its_size = length == Some(entry.size);
        if has_its_date && has_its_size && self.source.lists_as(self.bucket, entry)? {
            return Err(Problem::OtherTag(etag.to_owned()));
        }
        Err(Problem::Version(OVERWRITTEN.to_owned()))
    }

    /// Returns tags and lock. Asks for tags only if there are any.
    pub(super) fn settings(&self, entry: &Entry, answer: &Answer) -> Result<Settings, Problem> {
        if let Some(settings) = &entry.settings {
            return Ok(settings.clone());
        }
        let tags = match answer.tag_count() {
            0 => Vec::new(),
            _ => self.source.tags(self.at(entry))?,
        };
        Ok(Settings { tags, lock: answer.lock() })
    }

    /// As [`Self::settings`], for the answer to a GET. Some stores tell locks only when they are asked for headers alone.
    fn settings_of_get(&self, entry: &Entry, answer: &Answer) -> Result<Settings, Problem> {
        if self.has_locks && entry.settings.is_none() && answer.lock() == Lock::default() {
            return self.current_settings(entry);
        }
        self.settings(entry, answer)
    }

    /// Asks for the headers of a version. Some stores do not know versions there that they send when they are asked for
    /// content.
    pub(super) fn head(&self, entry: &Entry) -> Result<Answer, Trouble> {
        match self.source.head(self.at(entry), None) {
            Err(trouble) if trouble.is_missing() && entry.version_id.is_some() => {
                self.source.get(self.at(entry), None, (entry.size > 0).then_some((0, 1)), 1)
            }
            answer => answer,
        }
    }

    /// Asks the source for the settings of a version.
    pub(super) fn current_settings(&self, entry: &Entry) -> Result<Settings, Problem> {
        let answer = self.head(entry)?;
        self.settings(entry, &answer)
    }

    /// Copies a version part by part, with the parts of the source where they can be known. `parts` is 0 if it was not uploaded
    /// in parts.
    fn copy_parts(&self, entry: &Entry, parts: u32) -> Result<Copied, Problem> {
        let head = self.head(entry)?;
        self.same(entry, &head)?;
        let settings = self.settings(entry, &head)?;
        if self.is_here(entry)? {
            let outcome = self.same_settings(entry, &settings, ImportOutcome::Unchanged)?;
            return Ok(copied(entry, outcome, settings.fingerprint(), false));
        }
        let layout = if parts == 0 { None } else { self.layout(entry, parts)? };
        let ranges = layout.clone().unwrap_or_else(|| even(entry.size));
        let known = layout.as_ref().map(Vec::len);
        let (checksum, lacks_checksum) =
            checksum_of(&head, |checksum| checksum.upload_headers(known).is_some());
        let mut headers = headers(&head, &settings)?;
        headers.extend(checksum.iter().filter_map(|checksum| checksum.upload_headers(known)).flatten());
        let upload = self.target.begin_upload(self.bucket, &entry.key, &headers)?;
        if let Some(journal) = self.journal {
            let line = format!("{}\t{}\t{upload}", self.bucket, cairn_http1::encode_path(&entry.key));
            journal.add_upload(&line).map_err(Problem::Command)?;
        }
        let is_known = head.has_opaque_tag() || layout.is_none();
        let is_same = |tags: &[String]| tag_of_parts(tags) == entry.etag.to_ascii_lowercase();
        let sent = self.send_parts(entry, &upload, &ranges, is_known).and_then(|tags| {
            // Either the tag is the source's own, or something was changed on its way: each part is hashed on both sides.
            let is_doubtful = !is_known && !is_same(&tags);
            if is_doubtful { self.send_parts(entry, &upload, &ranges, true) } else { Ok(tags) }
        });
        let done = sent.and_then(|tags| {
            let is_opaque = !is_same(&tags);
            let mut parameters = tag_parameters(entry, is_opaque);
            parameters.push(("upload_id", upload.clone()));
            let declared: Vec<_> = checksum.iter().map(Checksum::header).collect();
            let outcome =
                self.target.put(self.bucket, entry, &parameters, &declared, &mut Content::Bytes(b""))?;
            Ok(Copied { lacks_checksum, ..copied(entry, outcome, settings.fingerprint(), is_opaque) })
        });
        let is_used = matches!(&done, Ok(copied) if matches!(copied.outcome, ImportOutcome::Created | ImportOutcome::Replaced));
        if !is_used && !matches!(done, Err(Problem::Command(_))) {
            self.target.abort_upload(self.bucket, &entry.key, &upload)?;
        }
        done
    }

    /// Returns whether the version is here already.
    fn is_here(&self, entry: &Entry) -> Result<bool, Problem> {
        let here = self.target.record(self.bucket, &entry.key, entry.id())?;
        Ok(here.is_some_and(|here| {
            let date = cairn_http1::parse_rfc3339_millis(&here.object.last_modified);
            (here.object.size, &*here.object.etag, date) == (entry.size, &*entry.etag, Some(entry.modified))
        }))
    }

    /// Returns where the parts begin and how long they are; `None` if the source does not tell.
    fn layout(&self, entry: &Entry, parts: u32) -> Result<Option<Vec<(u64, u64)>>, Problem> {
        let (mut found, mut offset) = (Vec::new(), 0);
        for number in 1..=parts {
            let answer = match self.source.head(self.at(entry), Some(number)) {
                Ok(answer) => answer,
                Err(Trouble::Refused { .. }) => return Ok(None),
                Err(trouble) => return Err(trouble.into()),
            };
            let Some(length) = answer.length() else { return Ok(None) };
            if answer.range_start().unwrap_or_default() != offset {
                return Ok(None);
            }
            found.push((offset, length));
            offset += length;
            // All parts but the last have one length, nearly always.
            if number == 1 && answer.parts() == Some(parts) && parts > 2 {
                let rest = entry.size.checked_sub(length * u64::from(parts - 1));
                if let Some(rest) = rest.filter(|rest| (1..=length).contains(rest))
                    && self.is_part(entry, parts, entry.size - rest, rest)?
                    && self.is_part(entry, 2, length, length)?
                {
                    let all = (0..u64::from(parts))
                        .map(|index| (index * length, length.min(entry.size - index * length)));
                    return Ok(Some(all.collect()));
                }
            }
        }
        Ok(Some(found).filter(|_| offset == entry.size))
    }

    fn is_part(&self, entry: &Entry, number: u32, offset: u64, length: u64) -> Result<bool, Problem> {
        match self.source.head(self.at(entry), Some(number)) {
            Ok(answer) => Ok(answer.range_start() == Some(offset) && answer.length() == Some(length)),
            Err(Trouble::Refused { .. }) => Ok(false),
            Err(trouble) => Err(trouble.into()),
        }
    }

    /// Sends all parts, several at a time while other connections are idle. Returns their tags. With `hashes`, they are
    /// compared with the content that the source sent.
    fn send_parts(
        &self,
        entry: &Entry,
        upload: &str,
        ranges: &[(u64, u64)],
        hashes: bool,
    ) -> Result<Vec<String>, Problem> {
        let next = AtomicU32::new(0);
        let tags = Mutex::new(vec![String::new(); ranges.len()]);
        let problem: Mutex<Option<Problem>> = Mutex::new(None);
        let has_problem = || problem.lock().is_some();
        let take = || {
            self.target.watch.wait(self.source);
            let index = next.fetch_add(1, Ordering::Relaxed);
            Some(index).filter(|index| (*index as usize) < ranges.len() && !has_problem())
        };
        let send =
            |index: u32| match self.send_part(entry, (upload, index + 1), ranges[index as usize], hashes) {
                Ok(tag) => tags.lock()[index as usize] = tag,
                Err(found) => *problem.lock() = Some(found),
            };
        thread::scope(|scope| {
            while let Some(index) = take() {
                let is_left = (next.load(Ordering::Relaxed) as usize) < ranges.len();
                if let Some(permit) = is_left.then(|| self.permits.try_take()).flatten() {
                    scope.spawn(|| {
                        let _permit = permit;
                        while let Some(index) = take() {
                            send(index);
                        }
                    });
                }
                send(index);
            }
        });
        match problem.into_inner() {
            Some(problem) => Err(problem),
            None => Ok(tags.into_inner()),
        }
    }

    fn send_part(
        &self,
        entry: &Entry,
        part: (&str, u32),
        (offset, length): (u64, u64),
        hashes: bool,
    ) -> Result<String, Problem> {
        let mut attempt = 1;
        loop {
            let range = (length < entry.size).then_some((offset, length));
            let answer = self.source.get(self.at(entry), None, range, length)?;
            self.same(entry, &answer)?;
            if answer.length().is_some_and(|found| found != length) {
                return Err(Problem::Version("the source does not answer ranges".to_owned()));
            }
            let content = Metered::new(answer.into_reader(), self.throttle, self.source);
            let mut content = if hashes { content.hashed() } else { content };
            let sent = self.target.put_part(
                self.bucket,
                &entry.key,
                part,
                &mut Content::Stream(&mut content, length),
            );
            if self.source.is_stopped() {
                return Err(Trouble::Stopped.into());
            }
            let failure = content.failure.clone();
            match sent {
                Ok(tag) if content.digest().is_none_or(|digest| tag.eq_ignore_ascii_case(&digest)) => {
                    return Ok(tag);
                }
                Ok(_) if attempt < ATTEMPTS => {}
                Ok(_) => return Err(Problem::Version("a part arrives changed again and again".to_owned())),
                Err(Refused::Command(Failure::NoResponse(_))) if attempt < ATTEMPTS => {
                    self.source.pause(attempt + 2)?;
                }
                Err(_) if failure.is_some() && attempt < ATTEMPTS => self.source.pause(attempt)?,
                Err(refused) => match failure {
                    Some(why) => {
                        return Err(Problem::Version(format!("the source sent no complete content: {why}")));
                    }
                    None => return Err(refused.into()),
                },
            }
            attempt += 1;
        }
    }
}

fn copied(entry: &Entry, outcome: ImportOutcome, settings: String, is_opaque: bool) -> Copied {
    let state = if outcome == ImportOutcome::Kept { State::Kept } else { State::Imported };
    Copied { outcome, record: Record::of(entry, settings, state), is_opaque, lacks_checksum: false }
}

/// Returns the checksum that a version can have here, and whether the source declares others.
fn checksum_of(answer: &Answer, fits: impl Fn(&Checksum) -> bool) -> (Option<Checksum>, bool) {
    let (declared, has_unknown) = answer.checksums();
    let count = declared.len();
    let checksum = declared.into_iter().find(fits);
    let left_out = count > usize::from(checksum.is_some());
    (checksum, left_out || has_unknown)
}

/// Returns the parameters that give a version its tag. A tag of another form cannot be kept.
fn tag_parameters(entry: &Entry, is_opaque: bool) -> Vec<(&'static str, String)> {
    if !entry.has_usual_tag() {
        return Vec::new();
    }
    let opaque = is_opaque.then(|| ("opaque_etag", "true".to_owned()));
    [("etag", entry.etag.clone())].into_iter().chain(opaque).collect()
}

/// Returns the tag of an object that was uploaded in parts with these tags.
fn tag_of_parts(tags: &[String]) -> String {
    // One that is no MD5 is no tag of the server that has answered with it.
    let bytes = hex::decode(tags.concat()).unwrap_or_default();
    format!("{}-{}", hex::encode(md5_digest(&bytes)), tags.len())
}

/// Returns parts of equal length.
fn even(size: u64) -> Vec<(u64, u64)> {
    let length = PART_BYTES.max(size.div_ceil(PARTS_MAX));
    (0..size.div_ceil(length)).map(|index| (index * length, length.min(size - index * length))).collect()
}

/// Returns all headers of a version.
fn headers(answer: &Answer, settings: &Settings) -> Result<Vec<(String, String)>, Problem> {
    let mut headers = answer.stored_headers().map_err(Problem::Version)?;
    headers.extend(settings_headers(settings));
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_of_parts_is_that_of_s3() {
        // The MD5 of "a", of "b", and of both digests.
        let tags =
            ["0cc175b9c0f1b6a831c399e269772661", "92eb5ffee6ae2fec3ad71c777531578f"].map(str::to_owned);
        assert_eq!(tag_of_parts(&tags), "96e024ba2074fe77e8e965ba43a704be-2");
    }

    #[test]
    fn parts_of_equal_length_cover_everything() {
        assert_eq!(even(PART_BYTES + 1), [(0, PART_BYTES), (PART_BYTES, 1)]);
        let large = even(PARTS_MAX * PART_BYTES * 2);
        assert_eq!(large.len() as u64, PARTS_MAX);
        assert_eq!(large.iter().map(|(_, length)| length).sum::<u64>(), PARTS_MAX * PART_BYTES * 2);
    }
}
