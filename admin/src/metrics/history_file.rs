//! The file of the history: `<data-dir>/history`.
//!
//! ```text
//! magic      8   "CAIRNHST"
//! version    4   1
//! digest     8   the first bytes of the SHA-256 of the body
//! body           all numbers little-endian; a text is its length in bytes (2) and UTF-8
//!   started  8   milliseconds since the Unix epoch, as all times
//!   for hour, day and month: number of samples (4), then for each
//!     end (8), milliseconds (8)
//!     for each plane: reads, writes, lists, other, client errors, server errors, bytes in, bytes out,
//!                     p50, p99 in nanoseconds (8 each; all ones: no request)
//!     logical, physical, capacity, available bytes (8 each)
//!   number of days (4), then for each
//!     time, capacity, available (8 each), bytes and objects of the other buckets (8 each)
//!     number of buckets (4), then for each its name, bytes (8), objects (8)
//!   number of dismissals (4), then for each its subject, who (texts), until (8)
//!   number of backups (4), then the time of each (8)
//! ```
//! Nothing depends on it. A file that cannot be read is set aside as `history.damaged`, and the history begins anew. Writing
//! makes a new file, flushes it, and gives it the name of the old one, so a crash leaves one of the two.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use cairn_model::Timestamp;
use cairn_observe::Plane;
use sha2::{Digest, Sha256};

use super::bucket_days::{BUCKETS_OF_DAY_MAX, BucketDays, DAYS_MAX, DayOfBuckets, Held};
use super::dismissals::{Dismissal, Dismissals};
use super::series::{MetricSample, Period, PlaneSample, SpaceSample};

const NAME: &str = "history";
const NEW_NAME: &str = "history.new";
const DAMAGED_NAME: &str = "history.damaged";
const MAGIC: &[u8; 8] = b"CAIRNHST";
const VERSION: u32 = 1;
const DIGEST_BYTES: usize = 8;
const HEAD_BYTES: usize = MAGIC.len() + 4 + DIGEST_BYTES;
/// No file of ours is longer: all samples take less than one mebibyte, and so do the days.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Most entries of a list: more are not written.
const ENTRIES_MAX: usize = 4096;
/// Backups whose times are kept: they show how often backups are made.
pub(super) const BACKUPS_MAX: usize = 8;
/// In place of a latency when there was no request.
const NO_LATENCY: u64 = u64::MAX;

/// The content of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Kept {
    pub(super) started: Timestamp,
    /// In the order of [`Period::ALL`].
    pub(super) samples: Vec<Vec<MetricSample>>,
    pub(super) days: BucketDays,
    pub(super) dismissals: Dismissals,
    pub(super) backups: Vec<Timestamp>,
}

impl Kept {
    /// A history that begins now.
    pub(super) fn empty(started: Timestamp) -> Self {
        Self {
            started,
            samples: vec![Vec::new(); Period::ALL.len()],
            days: BucketDays::default(),
            dismissals: Dismissals::default(),
            backups: Vec::new(),
        }
    }
}

/// Reads the file of a data folder. Returns `None` if the file is missing or unreadable. An unreadable file is renamed, and the
/// reason is logged.
pub(super) fn load(folder: &Path) -> Option<Kept> {
    let path = folder.join(NAME);
    let problem = match read(&path) {
        Ok(kept) => return Some(kept),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => error,
    };
    let aside = folder.join(DAMAGED_NAME);
    let renamed = fs::rename(&path, &aside);
    tracing::warn!(
        target: "service::metrics", path = %path.display(), error = %problem, set_aside = renamed.is_ok(),
        "the history of metrics cannot be read and begins anew"
    );
    None
}

fn read(path: &Path) -> io::Result<Kept> {
    if fs::metadata(path)?.len() > FILE_BYTES_MAX {
        return Err(io::Error::other("it is too long"));
    }
    decode(&fs::read(path)?).map_err(io::Error::other)
}

/// Replaces the file of a data folder, durably.
pub(super) fn save(folder: &Path, kept: &Kept) -> io::Result<()> {
    let (path, new) = (folder.join(NAME), folder.join(NEW_NAME));
    let written = File::create(&new)
        .and_then(|mut file| file.write_all(&encode(kept)).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&new, &path));
    if written.is_err() {
        // On a full disk, an unfinished file would take space for nothing.
        let _ = fs::remove_file(&new);
    }
    written?;
    File::open(folder)?.sync_all()
}

fn digest(body: &[u8]) -> [u8; DIGEST_BYTES] {
    let digest = Sha256::digest(body);
    std::array::from_fn(|index| digest[index])
}

fn encode(kept: &Kept) -> Vec<u8> {
    let mut out = Writer(vec![0; HEAD_BYTES]);
    out.number(kept.started.0);
    for samples in &kept.samples {
        out.list(samples, Writer::sample);
    }
    let days: Vec<&DayOfBuckets> = kept.days.iter().collect();
    out.list(&days, |out, day| {
        for number in [day.at.0, day.capacity, day.available, day.others.bytes, day.others.objects] {
            out.number(number);
        }
        out.list(&day.buckets, |out, (name, held)| {
            out.text(name);
            out.number(held.bytes);
            out.number(held.objects);
        });
    });
    out.list(kept.dismissals.all(), |out, dismissal| {
        out.text(&dismissal.subject);
        out.text(&dismissal.by);
        out.number(dismissal.until.0);
    });
    out.list(&kept.backups, |out, time| out.number(time.0));
    let mut file = out.0;
    let digest = digest(&file[HEAD_BYTES..]);
    file[..MAGIC.len()].copy_from_slice(MAGIC);
    file[MAGIC.len()..MAGIC.len() + 4].copy_from_slice(&VERSION.to_le_bytes());
    file[MAGIC.len() + 4..HEAD_BYTES].copy_from_slice(&digest);
    file
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(usize::from(u16::MAX))];
        let length = u16::try_from(text.len()).expect("the text was cut to fit");
        self.0.extend_from_slice(&length.to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn list<T>(&mut self, entries: &[T], write: impl Fn(&mut Self, &T)) {
        let entries = &entries[..entries.len().min(ENTRIES_MAX)];
        let count = u32::try_from(entries.len()).expect("the list was cut to fit");
        self.0.extend_from_slice(&count.to_le_bytes());
        entries.iter().for_each(|entry| write(self, entry));
    }

    fn sample(&mut self, sample: &MetricSample) {
        self.number(sample.end.0);
        self.number(sample.milliseconds);
        for plane in &sample.planes {
            let latency = |latency: Option<u64>| latency.unwrap_or(NO_LATENCY);
            for number in [
                plane.reads,
                plane.writes,
                plane.lists,
                plane.other,
                plane.client_errors,
                plane.server_errors,
                plane.bytes_in,
                plane.bytes_out,
                latency(plane.latency_p50),
                latency(plane.latency_p99),
            ] {
                self.number(number);
            }
        }
        let SpaceSample { logical, physical, capacity, available } = sample.space;
        [logical, physical, capacity, available].into_iter().for_each(|bytes| self.number(bytes));
    }
}

fn decode(file: &[u8]) -> Result<Kept, &'static str> {
    let (head, body) = file.split_at_checked(HEAD_BYTES).ok_or("it is cut off")?;
    if head[..MAGIC.len()] != MAGIC[..] {
        return Err("it does not begin as a history does");
    }
    if head[MAGIC.len()..MAGIC.len() + 4] != VERSION.to_le_bytes() {
        return Err("its version is unknown");
    }
    if head[MAGIC.len() + 4..] != digest(body) {
        return Err("its digest is wrong");
    }
    let mut from = Reader(body);
    from.kept().filter(|_| from.0.is_empty()).ok_or("its parts do not fit together")
}

struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn bytes(&mut self, length: usize) -> Option<&[u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
    }

    fn time(&mut self) -> Option<Timestamp> {
        self.number().map(Timestamp)
    }

    fn text(&mut self) -> Option<String> {
        let length = u16::from_le_bytes(self.bytes(2)?.try_into().ok()?);
        Some(std::str::from_utf8(self.bytes(length.into())?).ok()?.to_owned())
    }

    fn list<T>(&mut self, most: usize, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = u32::from_le_bytes(self.bytes(4)?.try_into().ok()?);
        let count = usize::try_from(count).ok().filter(|count| *count <= most)?;
        (0..count).map(|_| read(self)).collect()
    }

    fn kept(&mut self) -> Option<Kept> {
        let started = self.time()?;
        let samples = Period::ALL
            .into_iter()
            .map(|period| self.list(period.samples_max(), Self::sample))
            .collect::<Option<_>>()?;
        let days = self.list(DAYS_MAX, Self::day)?;
        let dismissals = self.list(ENTRIES_MAX, |from| {
            Some(Dismissal { subject: from.text()?, by: from.text()?, until: from.time()? })
        })?;
        let backups = self.list(BACKUPS_MAX, Self::time)?;
        let (days, dismissals) = (BucketDays::kept(days), Dismissals::kept(dismissals));
        Some(Kept { started, samples, days, dismissals, backups })
    }

    fn day(&mut self) -> Option<DayOfBuckets> {
        let (at, capacity, available) = (self.time()?, self.number()?, self.number()?);
        let others = self.held()?;
        let buckets = self.list(BUCKETS_OF_DAY_MAX, |from| Some((Arc::from(from.text()?), from.held()?)))?;
        Some(DayOfBuckets { at, capacity, available, buckets, others })
    }

    fn held(&mut self) -> Option<Held> {
        Some(Held { bytes: self.number()?, objects: self.number()? })
    }

    fn sample(&mut self) -> Option<MetricSample> {
        let (end, milliseconds) = (self.time()?, self.number()?);
        let mut planes = Vec::with_capacity(Plane::ALL.len());
        for _ in Plane::ALL {
            planes.push(self.plane()?);
        }
        let planes = planes.try_into().ok()?;
        let space = SpaceSample {
            logical: self.number()?,
            physical: self.number()?,
            capacity: self.number()?,
            available: self.number()?,
        };
        Some(MetricSample { end, milliseconds, planes, space })
    }

    fn plane(&mut self) -> Option<PlaneSample> {
        let latency = |number: u64| Some(number).filter(|number| *number != NO_LATENCY);
        Some(PlaneSample {
            reads: self.number()?,
            writes: self.number()?,
            lists: self.number()?,
            other: self.number()?,
            client_errors: self.number()?,
            server_errors: self.number()?,
            bytes_in: self.number()?,
            bytes_out: self.number()?,
            latency_p50: latency(self.number()?),
            latency_p99: latency(self.number()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Kept {
        let plane = |reads| PlaneSample {
            reads,
            writes: 2,
            lists: 3,
            other: 4,
            client_errors: 5,
            server_errors: 6,
            bytes_in: 7,
            bytes_out: 8,
            latency_p50: Some(9),
            latency_p99: None,
        };
        let space = SpaceSample { logical: 1, physical: 2, capacity: 3, available: 4 };
        let sample = |end| MetricSample {
            end: Timestamp(end),
            milliseconds: 10_000,
            planes: [plane(end), plane(1), plane(2)],
            space,
        };
        let day = DayOfBuckets {
            at: Timestamp(86_400_000 * 3),
            capacity: 1000,
            available: 10,
            buckets: vec![(Arc::from("photos"), Held { bytes: 5, objects: 6 })],
            others: Held { bytes: 7, objects: 8 },
        };
        let dismissal = Dismissal {
            subject: "quota photos".to_owned(),
            until: Timestamp(99),
            by: "token:änne".to_owned(),
        };
        Kept {
            started: Timestamp(1),
            samples: vec![vec![sample(1), sample(2)], Vec::new(), vec![sample(3)]],
            days: BucketDays::kept(vec![day]),
            dismissals: Dismissals::kept(vec![dismissal]),
            backups: vec![Timestamp(4), Timestamp(5)],
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = temporary_folder();
        assert_eq!(load(&folder), None);
        save(&folder, &kept()).expect("written");
        assert_eq!(load(&folder), Some(kept()));
        save(&folder, &Kept::empty(Timestamp(7))).expect("replaced");
        assert_eq!(load(&folder), Some(Kept::empty(Timestamp(7))));
        assert!(!folder.join(NEW_NAME).exists() && !folder.join(DAMAGED_NAME).exists());
        fs::remove_dir_all(folder).expect("removed");
    }

    /// Golden bytes: a change here is a change of the format.
    #[test]
    fn the_format_does_not_change() {
        assert_eq!(hex::encode(digest(&encode(&kept()))), "e9c79848aa07b034");
    }

    #[test]
    fn every_damage_is_found_and_set_aside() {
        let file = encode(&kept());
        for position in 0..file.len() {
            let mut damaged = file.clone();
            damaged[position] ^= 1;
            assert!(decode(&damaged).is_err(), "byte {position}");
            assert!(decode(&file[..position]).is_err(), "cut at {position}");
        }
        let folder = temporary_folder();
        fs::write(folder.join(NAME), &file[..file.len() - 1]).expect("written");
        assert_eq!(load(&folder), None);
        assert!(folder.join(DAMAGED_NAME).exists() && !folder.join(NAME).exists());
        fs::remove_dir_all(folder).expect("removed");
    }

    /// A body with a right digest can still be wrong: one of another program.
    #[test]
    fn lists_that_are_too_long_are_refused() {
        let mut body = 1_u64.to_le_bytes().to_vec();
        body.extend_from_slice(&u32::MAX.to_le_bytes());
        let mut file = [&MAGIC[..], &VERSION.to_le_bytes(), &digest(&body)].concat();
        file.extend_from_slice(&body);
        assert_eq!(decode(&file), Err("its parts do not fit together"));
    }

    fn temporary_folder() -> std::path::PathBuf {
        let mut random = [0; 8];
        getrandom::fill(&mut random).expect("random bytes");
        let folder = std::env::temp_dir().join(format!("cairn-history-{:x}", u64::from_le_bytes(random)));
        fs::create_dir(&folder).expect("created");
        folder
    }
}
