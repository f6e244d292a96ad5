//! Conditions and results of searches and counts.

use crate::types::event::StorageEvent;
use crate::types::object::{Attributes, ListPosition, ObjectInfo};
use cairn_model::{Glob, Timestamp};
use std::fmt;
use std::ops::Range;
use std::time::Duration;

/// The filter for the keys of found objects.
#[derive(Clone, Debug)]
pub enum KeyFilter {
    /// They contain this text.
    Contains(String),
    /// They match this pattern.
    Glob(Glob),
}

impl KeyFilter {
    pub(crate) fn matches(&self, key: &str) -> bool {
        match self {
            Self::Contains(text) => key.contains(text),
            Self::Glob(glob) => glob.matches(key),
        }
    }
}

/// The bounds of one call: how much it may examine.
#[derive(Clone, Copy, Debug)]
pub struct SearchBounds {
    /// Most keys.
    pub keys: u64,
    /// Longest time. A step that has begun is completed.
    pub time: Duration,
}

/// A condition on the headers and tags of an object.
pub type AttributesFilter = Box<dyn Fn(&Attributes) -> bool>;

/// Parameters of a search. An object is found if it fulfils all conditions.
pub struct FindObjects {
    /// Keys begin with this.
    pub prefix: Vec<u8>,
    /// The filter for keys.
    pub key: Option<KeyFilter>,
    /// Smallest size, in bytes.
    pub bytes_min: u64,
    /// Largest size, in bytes.
    pub bytes_max: u64,
    /// The range of times when they were written.
    pub modified: Range<Timestamp>,
    /// The filter for headers and tags.
    pub attributes: Option<AttributesFilter>,
    /// The moment whose objects are searched; `None` for the current ones.
    pub at: Option<Timestamp>,
    /// The position after which the search begins.
    pub after: Option<ListPosition>,
    /// Most objects of the result.
    pub max: usize,
    /// The bounds of the examination.
    pub bounds: SearchBounds,
}

impl fmt::Debug for FindObjects {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FindObjects").field("key", &self.key).field("at", &self.at).finish_non_exhaustive()
    }
}

/// A part of the result of a search.
#[derive(Clone, Debug, Default)]
pub struct FoundObjects {
    /// Keys and metadata, ordered by key.
    pub objects: Vec<(String, ObjectInfo)>,
    /// Keys that were examined.
    pub examined: u64,
    /// The position at which the search continues. `None` at its end.
    pub next: Option<ListPosition>,
}

/// The size of a folder: the number of its objects, and their bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// The beginning of their keys, with the slash at its end.
    pub prefix: String,
    /// Number of current objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Parameters of a count.
#[derive(Clone, Debug)]
pub struct CountFolders {
    /// Keys begin with this.
    pub prefix: Vec<u8>,
    /// The position after which the count begins.
    pub after: Option<ListPosition>,
    /// Most folders of the result, without those at its ends that may be parts.
    pub folders_max: usize,
    /// The bounds of the examination.
    pub bounds: SearchBounds,
}

/// A part of what the objects below a prefix take up.
#[derive(Clone, Debug)]
pub struct FolderUsage {
    /// The folders one level below the prefix, ordered by prefix. Its first and last one may be parts of folders.
    pub folders: Vec<Folder>,
    /// The number of folders that are not there, because others have more bytes. All of them were counted whole.
    pub left_out: u64,
    /// Number of the objects that were counted, also those in no folder.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The position at which the count continues. `None` at its end.
    pub next: Option<ListPosition>,
}

/// The storage events of an object.
#[derive(Clone, Debug)]
pub struct ObjectEvents {
    /// The latest first.
    pub events: Vec<StorageEvent>,
    /// Whether all events that are kept were examined.
    pub is_complete: bool,
}
