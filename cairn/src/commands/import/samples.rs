//! Objects that `cairn import plan` reads, to estimate the time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cairn_sync::Mutex;

use super::loss::Loss;
use crate::commands::remote::{Entry, Remote, Trouble, VersionRef};
use crate::terminal::plain;

/// Requests at a time that read samples, as many as an import sends.
pub(super) const WORKERS: usize = 8;
/// Most objects that are read to measure how many can be read in a second.
const SAMPLES_MAX: usize = 64;
/// Most objects that are read to measure how many bytes can be read in a second: the largest ones.
const LARGE_MAX: usize = 8;
/// Objects from this size count as large.
const LARGE_BYTES_MIN: u64 = 256 << 10;
/// Most bytes that are read of a sample, and of a large one.
const SAMPLE_BYTES_MAX: u64 = 64 << 10;
const LARGE_SAMPLE_BYTES_MAX: u64 = 8 << 20;
/// The time for which samples of each kind are read.
const SAMPLE_TIME: Duration = Duration::from_millis(1500);

/// Objects from all over the source, and the largest ones.
#[derive(Default)]
pub(super) struct Samples {
    spread: Vec<Sample>,
    largest: Vec<Sample>,
}

struct Sample {
    bucket: String,
    entry: Entry,
}

/// The measurement of samples.
#[derive(Default)]
struct Measured {
    objects: AtomicU64,
    bytes: AtomicU64,
    /// The first refusal of each bucket.
    refused: Mutex<BTreeMap<String, (String, Trouble)>>,
    /// The reason why the measurement ended early.
    trouble: Mutex<Option<Trouble>>,
}

impl Samples {
    /// Offers an object, the `number`th of its bucket. Each later one replaces an earlier one, ever more rarely.
    pub(super) fn offer(&mut self, bucket: &str, entry: Entry, number: u64) {
        if entry.is_marker {
            return;
        }
        let sample = || Sample { bucket: bucket.to_owned(), entry: entry.clone() };
        if entry.size >= LARGE_BYTES_MIN {
            if self.largest.len() < LARGE_MAX {
                self.largest.push(sample());
            } else if let Some(least) = self.largest.iter_mut().min_by_key(|sample| sample.entry.size)
                && least.entry.size < entry.size
            {
                *least = sample();
            }
        }
        if self.spread.len() < SAMPLES_MAX {
            self.spread.push(sample());
        } else if number.is_power_of_two() || number.is_multiple_of(9_973) {
            let place = usize::try_from(number % SAMPLES_MAX as u64).unwrap_or_default();
            self.spread[place] = sample();
        }
    }

    /// Reads samples. Returns how many seconds it takes to read so many versions and bytes at their rate, and what of them
    /// could not be read.
    pub(super) fn read(
        &self,
        source: &Remote,
        versions: u64,
        bytes: u64,
    ) -> Result<(u64, Vec<Loss>), Trouble> {
        let (mut millis, mut losses) = (0, Vec::new());
        for (samples, bytes_max, is_large) in
            [(&self.spread, SAMPLE_BYTES_MAX, false), (&self.largest, LARGE_SAMPLE_BYTES_MAX, true)]
        {
            if samples.is_empty() {
                continue;
            }
            let begun = Instant::now();
            let measured = Measured::of(source, samples, bytes_max)?;
            let elapsed = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
            let (all, read) = if is_large { (bytes, measured.bytes) } else { (versions, measured.objects) };
            // Without any, nothing can be said.
            millis += all.saturating_mul(elapsed).checked_div(read.into_inner()).unwrap_or_default();
            losses.extend(losses_of(source, measured.refused)?);
        }
        losses.sort_unstable();
        losses.dedup();
        Ok((millis / 1000, losses))
    }
}

impl Measured {
    fn of(source: &Remote, samples: &[Sample], bytes_max: u64) -> Result<Self, Trouble> {
        let (next, begun, measured) = (AtomicUsize::new(0), Instant::now(), Self::default());
        let worker = || {
            while begun.elapsed() < SAMPLE_TIME {
                let sample = &samples[next.fetch_add(1, Ordering::Relaxed) % samples.len()];
                if let Err(trouble) = measured.read(source, sample, bytes_max) {
                    *measured.trouble.lock() = Some(trouble);
                    return;
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(worker);
            }
        });
        match measured.trouble.lock().take() {
            Some(trouble) => Err(trouble),
            None => Ok(()),
        }?;
        Ok(measured)
    }

    fn read(
        &self,
        source: &Remote,
        Sample { bucket, entry }: &Sample,
        bytes_max: u64,
    ) -> Result<(), Trouble> {
        let version = VersionRef { bucket, key: &entry.key, version: entry.version_id.as_deref() };
        let size = entry.size.min(bytes_max);
        let range = (size < entry.size).then_some((0, size));
        let content = source.get(version, None, range, size).and_then(|answer| match answer.whole_length() {
            Some(length) if length != entry.size => {
                Err(Trouble::Wrong(format!("it is listed with {} bytes and sent with {length}", entry.size)))
            }
            _ => Ok(std::io::copy(&mut answer.into_reader(), &mut std::io::sink()).unwrap_or_default()),
        });
        match content {
            Ok(bytes) => {
                self.objects.fetch_add(1, Ordering::Relaxed);
                self.bytes.fetch_add(bytes, Ordering::Relaxed);
            }
            Err(trouble @ (Trouble::Refused { .. } | Trouble::Wrong(_))) => {
                let mut refused = self.refused.lock();
                refused.entry(bucket.clone()).or_insert_with(|| (entry.key.clone(), trouble));
            }
            Err(other) => return Err(other),
        }
        Ok(())
    }
}

/// Returns a loss for each bucket of which a sample could not be read.
fn losses_of(
    source: &Remote,
    refused: Mutex<BTreeMap<String, (String, Trouble)>>,
) -> Result<Vec<Loss>, Trouble> {
    let mut losses = Vec::new();
    for (bucket, (key, trouble)) in refused.into_inner() {
        // It may have been deleted meanwhile.
        if trouble.is_missing() && !source.lists(&bucket, &key, None)? {
            continue;
        }
        let why = format!("an object that was tried could not be read: {}", trouble.text());
        losses.push(Loss::new("object", plain(&format!("{bucket}/{key}")), why));
    }
    Ok(losses)
}
