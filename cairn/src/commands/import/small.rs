//! Copies small versions together: several reads of the source, and one request of the management API.
//!
//! Whatever is unusual about a version is left to [`Copier::copy`], which handles one version alone and tries again.

use super::copy::{Copied, Copier, Problem, VersionRequest};
use super::target::BatchedVersion;
use super::throttle::Metered;
use crate::commands::remote::Entry;
use crate::failure::Failure;

/// Most bytes of a version that is copied with others.
const BYTES_MAX: u64 = 16 << 10;
/// Most versions that are copied together. The server accepts 64, and 512 KiB, which this many cannot reach with their headers.
pub(super) const VERSIONS_MAX: usize = 16;

/// A version whose content is in memory.
struct Fetched<'e> {
    entry: &'e Entry,
    request: VersionRequest,
    content: Vec<u8>,
}

/// Returns whether a version may be copied with others.
pub(super) fn is_small(entry: &Entry) -> bool {
    !entry.is_marker && entry.size <= BYTES_MAX && entry.parts().is_none()
}

impl Copier<'_> {
    /// Copies small versions of different keys. Returns what became of each; `None` for one that must be copied alone.
    ///
    /// # Errors
    /// The command cannot go on.
    pub(super) fn copy_together(&self, entries: &[&Entry]) -> Result<Vec<Option<Copied>>, Failure> {
        let fetched: Vec<_> =
            entries.iter().map(|entry| usual(self.fetch(entry))).collect::<Result<_, _>>()?;
        let batched = fetched.iter().flatten().map(|fetched| BatchedVersion {
            entry: fetched.entry,
            parameters: &fetched.request.parameters,
            headers: &fetched.request.headers,
            content: &fetched.content,
        });
        let batched: Vec<_> = batched.collect();
        // One alone saves nothing.
        let sent =
            if batched.len() > 1 { self.target.put_batch(self.bucket, &batched) } else { Ok(Vec::new()) };
        let mut outcomes = usual(sent.map_err(Problem::from))?.unwrap_or_default().into_iter();
        let mut copied = Vec::with_capacity(entries.len());
        for fetched in fetched {
            let sent = fetched.and_then(|fetched| Some((outcomes.next()??, fetched)));
            copied.push(match sent {
                Some((outcome, Fetched { entry, request, .. })) => {
                    usual(self.copied_whole(entry, &request, outcome))?
                }
                None => None,
            });
        }
        Ok(copied)
    }

    /// Reads a version from the source.
    fn fetch<'e>(&self, entry: &'e Entry) -> Result<Fetched<'e>, Problem> {
        let answer = self.source.get(self.at(entry), None, None, entry.size)?;
        let request = self.request_of(entry, &answer, false)?;
        let mut content = Metered::new(answer.into_reader(), self.throttle, self.source);
        let content = content.read_whole(entry.size).map_err(Problem::Version)?;
        Ok(Fetched { entry, request, content })
    }
}

/// Returns `None` for a version that is unusual.
fn usual<T>(done: Result<T, Problem>) -> Result<Option<T>, Failure> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(Problem::Command(failure)) => Err(failure),
        Err(_) => Ok(None),
    }
}
