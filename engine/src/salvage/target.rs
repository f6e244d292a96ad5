//! The trait that receives what a salvage finds.

use crate::types::object::ObjectInfo;
use std::io::{self, Write};

/// A version that was found.
pub struct SalvagedVersion {
    /// The bucket. One whose name is lost is called `bucket-<id>`.
    pub bucket: String,
    /// The id of the bucket.
    pub bucket_id: u64,
    /// The key.
    pub key: Vec<u8>,
    /// All that its record says.
    pub info: ObjectInfo,
    /// Whether it is a delete marker, which has no content.
    pub is_delete_marker: bool,
    /// Whether it is the newest version that was found of its key.
    pub is_latest: bool,
    /// Whether it was certainly there, and nothing newer of its key. If not, it may have been deleted or replaced.
    pub is_certain: bool,
}

/// Something that was lost.
#[derive(Clone, Debug, Default)]
pub struct SalvageLoss {
    /// The slice, if the loss is in one.
    pub slice: Option<u16>,
    /// The bucket, if it is known.
    pub bucket: Option<String>,
    /// The key, if it is known.
    pub key: Option<Vec<u8>>,
    /// The version, if it is known.
    pub version: Option<String>,
    /// The first encoded key that may be lost, and the first after it that is not.
    pub range: Option<(Vec<u8>, Option<Vec<u8>>)>,
    /// The cause of the loss.
    pub reason: String,
}

/// The error of content that could not be written.
#[derive(Debug)]
pub enum ContentError {
    /// It is damaged or missing.
    Damaged(String),
    /// The target cannot be written.
    Target(io::Error),
}

/// Writes the content of a version.
pub type WriteContent<'c> = dyn FnMut(&mut dyn Write) -> Result<(), ContentError> + 'c;

/// A receiver of salvaged versions.
pub trait SalvageTarget {
    /// Takes a version. `content` writes its content, block by block; after an error, what was written must not be used.
    ///
    /// # Errors
    /// Those of the target, which end the salvage.
    fn version(&mut self, version: &SalvagedVersion, content: &mut WriteContent<'_>) -> io::Result<()>;

    /// Notes a loss.
    ///
    /// # Errors
    /// As [`SalvageTarget::version`].
    fn loss(&mut self, loss: SalvageLoss) -> io::Result<()>;
}
