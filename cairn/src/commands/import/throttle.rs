//! Readers that keep to a rate, count, hash, and can be stopped.

use std::io::{Error, Read, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cairn_md5::Md5;
use cairn_sync::Mutex;

use crate::commands::remote::Remote;
use crate::commands::signals::nap;

/// Longest pause at a time, so that a stop is noticed.
const NAP: Duration = Duration::from_millis(100);
/// Most bytes that pass before the rate is looked at again.
const STEP: usize = 64 << 10;

/// The rate of all transfers together.
pub(super) struct Throttle {
    /// In bytes per second; 0 for no limit.
    rate: u64,
    /// The time when the next bytes may pass.
    free_at: Mutex<Instant>,
    passed: AtomicU64,
}

impl Throttle {
    pub(super) fn new(rate: u64) -> Self {
        Self { rate, free_at: Mutex::new(Instant::now()), passed: AtomicU64::new(0) }
    }

    /// Returns how many bytes have passed.
    pub(super) fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    /// Waits until so many bytes may pass.
    fn pass(&self, bytes: usize, source: &Remote) {
        self.passed.fetch_add(bytes as u64, Ordering::Relaxed);
        if self.rate == 0 {
            return;
        }
        let micros = (bytes as u64).saturating_mul(1_000_000) / self.rate;
        let until = {
            let mut free_at = self.free_at.lock();
            *free_at = (*free_at).max(Instant::now()) + Duration::from_micros(micros);
            *free_at
        };
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|_| !source.is_stopped()) {
            nap(left.min(NAP));
        }
    }
}

/// Content on its way.
pub(super) struct Metered<'a, R> {
    reader: R,
    throttle: &'a Throttle,
    source: &'a Remote,
    digest: Option<Md5>,
    /// The reason why it could not be read.
    pub(super) failure: Option<String>,
}

impl<'a, R: Read> Metered<'a, R> {
    pub(super) fn new(reader: R, throttle: &'a Throttle, source: &'a Remote) -> Self {
        Self { reader, throttle, source, digest: None, failure: None }
    }

    /// Hashes what is read. The server hashes too, so this is only for content whose tag says nothing.
    pub(super) fn hashed(self) -> Self {
        Self { digest: Some(Md5::new()), ..self }
    }

    /// Reads content of a known length into memory.
    ///
    /// # Errors
    /// The reason why it could not be read.
    pub(super) fn read_whole(&mut self, size: u64) -> std::result::Result<Vec<u8>, String> {
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        let read = self.by_ref().take(size + 1).read_to_end(&mut bytes);
        match self.failure.clone() {
            Some(failure) => Err(failure),
            None if read.is_err() || bytes.len() as u64 != size => {
                Err("the content does not have its length".to_owned())
            }
            None => Ok(bytes),
        }
    }

    /// Returns the MD5 of what was read, in hexadecimal digits, if it was hashed.
    pub(super) fn digest(self) -> Option<String> {
        self.digest.map(|digest| hex::encode(digest.finish()))
    }
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.source.is_stopped() {
            return Err(Error::other("the import was interrupted"));
        }
        let wanted = buffer.len().min(STEP);
        let read = self
            .reader
            .read(&mut buffer[..wanted])
            .inspect_err(|error| self.failure = Some(error.to_string()))?;
        self.throttle.pass(read, self.source);
        if let Some(digest) = &mut self.digest {
            digest.update(&buffer[..read]);
        }
        Ok(read)
    }
}
