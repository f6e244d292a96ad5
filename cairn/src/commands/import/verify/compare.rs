//! Compares a bucket: both lists side by side, then each version.

use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use cairn_api::ObjectVersion;
use cairn_http1::{encode_path, encode_strict};
use cairn_sync::Mutex;

use super::difference::{Difference, Subject};
use super::report::Report;
use crate::client::Request;
use crate::commands::import::buckets::{SourceBucket, failure};
use crate::commands::import::copy::{Copier, Problem};
use crate::commands::import::groups::{Group, Groups, Settings};
use crate::commands::import::here::Here;
use crate::commands::import::target::bucket_path;
use crate::commands::remote::{Entry, Remote, Trouble, VersionRef, fingerprint};
use crate::failure::{Failure, Outcome};

/// Keys that wait for a worker.
const KEYS_WAITING_MAX: usize = 256;
/// Bytes of both sides that are compared at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// The number of attempts at reading content that breaks off.
const ATTEMPTS: u32 = 4;

/// The share of content that is read, in hundredths of a percent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reading(pub(crate) u32);

impl Reading {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const ALL: Self = Self(10_000);

    /// Returns whether a version belongs to the part that is read: always the same versions.
    fn includes(self, key: &str, id: &str) -> bool {
        let digits = fingerprint(&format!("{key}\n{id}"));
        let number = u64::from_str_radix(&digits, 16).unwrap_or_default();
        number % 10_000 < u64::from(self.0)
    }
}

/// Counts of a bucket.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) versions: AtomicU64,
    pub(crate) delete_markers: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) read_versions: AtomicU64,
    pub(crate) read_bytes: AtomicU64,
    /// Versions that clients have written here.
    pub(crate) written_here: AtomicU64,
    pub(crate) differences: AtomicU64,
}

/// A comparison of a bucket with its source.
pub(crate) struct Comparison<'a> {
    pub(crate) copier: Copier<'a>,
    pub(crate) source: &'a Remote,
    pub(crate) there: &'a SourceBucket,
    pub(crate) reading: Reading,
    pub(crate) workers: usize,
    pub(crate) counts: &'a Counts,
    pub(crate) report: &'a Report<'a>,
}

/// The versions of a key on both sides, newest first.
struct Pair {
    key: String,
    source: Vec<Entry>,
    here: Vec<ObjectVersion>,
}

impl Comparison<'_> {
    fn bucket(&self) -> &str {
        self.copier.bucket
    }

    /// Compares the whole bucket.
    pub(crate) fn run(&self) -> Outcome {
        let (jobs, waiting) = sync_channel::<Pair>(KEYS_WAITING_MAX);
        let waiting = Mutex::new(waiting);
        let end: Mutex<Option<Failure>> = Mutex::new(None);
        let is_over = || end.lock().is_some();
        let listed = thread::scope(|scope| {
            for _ in 0..self.workers {
                scope.spawn(|| self.work(&waiting, &end));
            }
            let mut groups = Groups::begin(scope, self.source, self.there, Settings::WhileTagged, Vec::new());
            let mut here = Here::begin(scope, self.copier.target, self.bucket());
            // The channel closes at the end of this block.
            let jobs = jobs;
            let send = |pair: Pair| {
                if jobs.send(pair).is_err() { Err(Failure::from("the workers have ended")) } else { Ok(()) }
            };
            loop {
                if is_over() {
                    return Ok(());
                }
                if self.source.is_stopped() {
                    return Err(failure(&Trouble::Stopped));
                }
                let group = groups.next_group().map_err(|trouble| failure(&trouble))?;
                if !groups.is_ordered {
                    return Err("the source does not list keys in the order of their bytes, so that it cannot be compared".into());
                }
                let Some(Group { key, mut entries }) = group else { break };
                self.there.address(&mut entries);
                while here.key()?.is_some_and(|next| next.as_bytes() < key.as_bytes()) {
                    let versions = here.next()?;
                    send(Pair {
                        key: versions.first().map(|one| one.key.to_string()).unwrap_or_default(),
                        source: Vec::new(),
                        here: versions,
                    })?;
                }
                let versions = if here.key()? == Some(key.as_str()) { here.next()? } else { Vec::new() };
                send(Pair { key, source: entries, here: versions })?;
            }
            while here.key()?.is_some() {
                let versions = here.next()?;
                send(Pair {
                    key: versions.first().map(|one| one.key.to_string()).unwrap_or_default(),
                    source: Vec::new(),
                    here: versions,
                })?;
            }
            Ok(())
        });
        match end.into_inner() {
            Some(failure) => Err(failure),
            None => listed,
        }
    }

    fn work(&self, waiting: &Mutex<Receiver<Pair>>, end: &Mutex<Option<Failure>>) {
        loop {
            let pair = waiting.lock().recv();
            let Ok(pair) = pair else { return };
            if end.lock().is_some() {
                continue;
            }
            if let Err(failure) = self.pair(&pair) {
                end.lock().get_or_insert(failure);
            }
        }
    }

    fn note(&self, differences: Vec<Difference>) -> Outcome {
        self.counts.differences.fetch_add(differences.len() as u64, Ordering::Relaxed);
        differences.into_iter().try_for_each(|difference| self.report.add(&difference))
    }

    /// Compares a key.
    fn pair(&self, Pair { key, source, here }: &Pair) -> Outcome {
        let subject = |id| Subject { bucket: self.copier.bucket, key, id };
        let mut order = Vec::new();
        for entry in source {
            let place = here.iter().position(|one| &*one.version_id == entry.id());
            let Some(place) = place else {
                self.note(vec![subject(entry.id()).difference("missing", "there", "not here")])?;
                continue;
            };
            order.push(place);
            let mut found = subject(entry.id()).listed(entry, &here[place]);
            if found.iter().any(|difference| difference.kind == "etag") {
                // Some sources list other tags than they answer with.
                let told = self.copier.head(entry).ok().and_then(|head| head.etag().map(str::to_owned));
                if told.is_some() && told.as_deref() == here[place].etag.as_deref() {
                    found.retain(|difference| difference.kind != "etag");
                }
            }
            if entry.is_marker {
                self.counts.delete_markers.fetch_add(1, Ordering::Relaxed);
            } else {
                self.counts.versions.fetch_add(1, Ordering::Relaxed);
                self.counts.bytes.fetch_add(entry.size, Ordering::Relaxed);
                if !here[place].is_delete_marker {
                    found.extend(self.version(subject(entry.id()), entry)?);
                }
            }
            self.note(found)?;
        }
        if !order.is_sorted() {
            let ids = |all: &mut dyn Iterator<Item = &str>| all.collect::<Vec<_>>().join(", ");
            let there = ids(&mut source.iter().map(Entry::id));
            let here = ids(&mut here.iter().map(|one| &*one.version_id));
            self.note(vec![subject("").difference("order", there, here)])?;
        }
        for one in here.iter().filter(|one| source.iter().all(|entry| entry.id() != &*one.version_id)) {
            if one.imported {
                self.note(vec![subject(&one.version_id).difference("gone", "not there any more", "here")])?;
            } else {
                self.counts.written_here.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Compares headers, metadata, tags and lock of a version, and its content if it is among those that are read.
    fn version(&self, subject: Subject<'_>, entry: &Entry) -> Result<Vec<Difference>, Failure> {
        let unreadable = |problem: Problem| match problem {
            Problem::Command(failure) => Err(failure),
            Problem::Version(why) => Ok(vec![subject.difference("unreadable", why, "")]),
            Problem::Gone | Problem::OtherTag(_) => {
                Ok(vec![subject.difference("unreadable", "it went away meanwhile", "")])
            }
        };
        let at =
            VersionRef { bucket: subject.bucket, key: subject.key, version: entry.version_id.as_deref() };
        let head = match self.copier.head(entry) {
            Ok(head) => head,
            Err(trouble) => return unreadable(trouble.into()),
        };
        let headers = match head.stored_headers() {
            Ok(headers) => headers,
            Err(why) => return Ok(vec![subject.difference("unreadable", why, "")]),
        };
        let settings = match self.copier.settings(entry, &head) {
            Ok(settings) => settings,
            Err(problem) => return unreadable(problem),
        };
        let here = match self.copier.target.record(subject.bucket, subject.key, subject.id) {
            Ok(Some(here)) => here,
            Ok(None) => return Ok(vec![subject.difference("missing", "there", "it went away meanwhile")]),
            Err(refused) => return unreadable(refused.into()),
        };
        let mut found = subject.stored(&headers, &settings, &here);
        found.extend(subject.checksums(&head.checksums().0, &here));
        if self.reading.includes(subject.key, subject.id) && here.object.size == entry.size {
            self.counts.read_versions.fetch_add(1, Ordering::Relaxed);
            found.extend(self.content(subject, at, entry.size)?);
        }
        Ok(found)
    }

    /// Reads both sides and compares them byte by byte.
    fn content(
        &self,
        subject: Subject<'_>,
        at: VersionRef<'_>,
        size: u64,
    ) -> Result<Option<Difference>, Failure> {
        let path = format!(
            "{}/object-content/{}?version_id={}",
            bucket_path(subject.bucket),
            encode_path(subject.key),
            encode_strict(subject.id)
        );
        let request = Request::get(path).long_running();
        let mut attempt = 1;
        loop {
            let there = match self.source.get(at, None, None, size) {
                Ok(answer) => answer.into_reader(),
                Err(trouble @ (Trouble::NoAnswer(_) | Trouble::Stopped)) => return Err(failure(&trouble)),
                Err(trouble) => return Ok(Some(subject.difference("unreadable", trouble.text(), ""))),
            };
            let here = match self.copier.target.client.download(&request) {
                Ok(download) => download.content,
                Err(Failure::NoResponse(_)) if attempt < ATTEMPTS => {
                    self.source.pause(attempt + 2).map_err(|trouble| failure(&trouble))?;
                    attempt += 1;
                    continue;
                }
                Err(Failure::Failed(why)) => return Ok(Some(subject.difference("unreadable", "", why))),
                Err(other) => return Err(other),
            };
            match self.streams(there, here) {
                Ok(None) => return Ok(None),
                Ok(Some(place)) => {
                    let what = format!("differs at byte {place}");
                    return Ok(Some(subject.difference("content", "", what)));
                }
                Err(_) if self.source.is_stopped() => return Err(failure(&Trouble::Stopped)),
                Err(_) if attempt < ATTEMPTS => {
                    self.source.pause(attempt).map_err(|trouble| failure(&trouble))?
                }
                Err((side, why)) => {
                    let texts = if side == "source" { (why, String::new()) } else { (String::new(), why) };
                    return Ok(Some(subject.difference("unreadable", texts.0, texts.1)));
                }
            }
            attempt += 1;
        }
    }

    /// Returns the first place where two streams differ. The error names the side that cannot be read.
    fn streams(
        &self,
        mut there: impl Read,
        mut here: impl Read,
    ) -> Result<Option<u64>, (&'static str, String)> {
        let mut buffers = [vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]];
        let mut offset = 0;
        loop {
            if self.source.is_stopped() {
                return Err(("source", "the command was interrupted".to_owned()));
            }
            let [one, other] = &mut buffers;
            let lengths = (filled(&mut there, one), filled(&mut here, other));
            let (length, other_length) = match lengths {
                (Err(error), _) => return Err(("source", error.to_string())),
                (_, Err(error)) => return Err(("here", error.to_string())),
                (Ok(one), Ok(other)) => (one, other),
            };
            self.counts.read_bytes.fetch_add(length as u64, Ordering::Relaxed);
            let same =
                one[..length].iter().zip(&other[..other_length]).take_while(|(one, other)| one == other);
            let same = if one[..length] == other[..other_length] { length } else { same.count() };
            if same < length.max(other_length) {
                return Ok(Some(offset + same as u64));
            }
            if length < CHUNK_BYTES {
                return Ok(None);
            }
            offset += length as u64;
        }
    }
}

/// Reads until the buffer is full or the stream ends.
fn filled(reader: &mut impl Read, buffer: &mut [u8]) -> Result<usize, std::io::Error> {
    let mut length = 0;
    while length < buffer.len() {
        match reader.read(&mut buffer[length..])? {
            0 => break,
            more => length += more,
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_part_of_the_versions_is_read_each_time() {
        let read = |reading: Reading| (0..10_000).filter(|id| reading.includes("k", &id.to_string())).count();
        assert_eq!((read(Reading::NONE), read(Reading::ALL)), (0, 10_000));
        let some = read(Reading(1000));
        assert!((800..1200).contains(&some), "{some} of 10 000 for 10 %");
        assert_eq!(read(Reading(1000)), some);
    }
}
