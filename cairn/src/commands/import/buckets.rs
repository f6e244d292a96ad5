//! The buckets of a source, and what they have.

use crate::commands::remote::{Entry, Remote, Trouble};
use crate::failure::Failure;
use crate::terminal::plain;

/// A bucket at the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceBucket {
    pub(super) name: String,
    /// `Enabled`, `Suspended`, or nothing if it never had versions.
    pub(super) versioning: Option<String>,
    pub(super) has_object_lock: bool,
}

/// Returns the named buckets, or without names all that the credential can see.
pub(super) fn chosen(source: &Remote, names: &[String]) -> Result<Vec<String>, Failure> {
    let all = source.buckets().map_err(|trouble| failure(&trouble))?;
    if names.is_empty() {
        return Ok(all);
    }
    let mut chosen = names.to_vec();
    chosen.sort_unstable();
    chosen.dedup();
    match chosen.iter().find(|name| !all.contains(name)) {
        None => Ok(chosen),
        Some(name) => Err(format!("the source has no bucket {}, or does not show it", plain(name)).into()),
    }
}

impl SourceBucket {
    /// Asks the source.
    pub(super) fn of(source: &Remote, name: &str) -> Result<Self, Trouble> {
        Ok(Self {
            name: name.to_owned(),
            versioning: source.versioning(name)?,
            has_object_lock: source.has_object_lock(name)?,
        })
    }

    /// Leaves the id out of requests for null versions that are current and can only be replaced. Some stores list them as
    /// `null`, and do not know them under this id.
    pub(super) fn address(&self, entries: &mut [Entry]) {
        if self.versioning.as_deref() != Some("Enabled") {
            let current = entries.iter_mut().filter(|entry| entry.is_latest && entry.id() == "null");
            current.for_each(|entry| entry.version_id = None);
        }
    }
}

/// Returns the failure of a command for a trouble with the source.
pub(super) fn failure(trouble: &Trouble) -> Failure {
    match trouble {
        Trouble::NoAnswer(why) => Failure::NoResponse(why.clone()),
        Trouble::Stopped => {
            Failure::Interrupted("the import was interrupted; the same command continues it".to_owned())
        }
        Trouble::Refused { .. } | Trouble::Wrong(_) => Failure::Failed(trouble.text()),
    }
}
