//! Counts the unfinished multipart uploads of a bucket.

use super::answer::Trouble;
use super::client::{Remote, path};
use super::listing::{self, Place};

/// Most uploads whose parts are asked for. Each takes a request or more.
const MEASURED_MAX: u64 = 1000;
/// Most uploads that are counted.
const COUNTED_MAX: u64 = 1_000_000;
/// Most pages of parts of an upload: as many as ten thousand parts can have.
const PART_PAGES_MAX: u32 = 10;

/// Unfinished uploads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unfinished {
    pub(crate) uploads: u64,
    /// Bytes of their parts.
    pub(crate) bytes: u64,
    /// Whether there are more of either: not all were counted.
    pub(crate) is_least: bool,
}

impl Remote {
    /// Counts the unfinished uploads of a bucket, as far as the store lists them. `None` if it does not.
    pub(crate) fn unfinished(&self, bucket: &str) -> Result<Option<Unfinished>, Trouble> {
        let (mut found, mut place) = (Unfinished::default(), Place::new());
        loop {
            let mut query = vec![("uploads", ""), ("encoding-type", "url")];
            query.extend(place.iter().map(|(name, value)| (*name, value.as_str())));
            let page = match self.document(&path(bucket, ""), &query) {
                Ok(document) => listing::uploads(&document).map_err(Trouble::Wrong)?,
                Err(trouble) if trouble.is_unknown_operation() => return Ok(None),
                Err(trouble) => return Err(trouble),
            };
            for (key, id) in &page.entries {
                found.uploads += 1;
                if found.uploads > MEASURED_MAX {
                    found.is_least = true;
                } else {
                    found.bytes = found.bytes.saturating_add(self.bytes_of_upload(bucket, key, id)?);
                }
            }
            let Some(next) = page.next else { return Ok(Some(found)) };
            // A store that begins again and again must not keep the command.
            if next == place || found.uploads >= COUNTED_MAX {
                return Ok(Some(Unfinished { is_least: true, ..found }));
            }
            place = next;
        }
    }

    fn bytes_of_upload(&self, bucket: &str, key: &str, id: &str) -> Result<u64, Trouble> {
        let (mut bytes, mut place) = (0_u64, Place::new());
        for _ in 0..PART_PAGES_MAX {
            let mut query = vec![("uploadId", id)];
            query.extend(place.iter().map(|(name, value)| (*name, value.as_str())));
            let page = match self.document(&path(bucket, key), &query) {
                Ok(document) => listing::parts(&document).map_err(Trouble::Wrong)?,
                // It was finished or aborted meanwhile, or may not be read.
                Err(Trouble::Refused { .. }) => break,
                Err(trouble) => return Err(trouble),
            };
            bytes = page.entries.iter().fold(bytes, |bytes, size| bytes.saturating_add(*size));
            match page.next {
                Some(next) => place = next,
                None => break,
            }
        }
        Ok(bytes)
    }
}
