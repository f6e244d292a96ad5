//! Files of imported versions: of each bucket a list, in the order of the source.
//!
//! A run reads the list of the last run beside the source's, and writes a new one. So memory does not depend on the number of
//! versions. A run that was killed leaves the beginning of a new list; the next run puts the rest of the last one behind it.

mod bounds;
mod folder;
mod record;

pub(super) use folder::{Journal, ListReader, ListWriter};
pub(super) use record::{Record, State, version_fingerprint};
