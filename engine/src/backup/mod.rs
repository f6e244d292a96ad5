//! A folder of incremental backups.
//!
//! Each backup has one moment of a store, and shares with the earlier ones what they have in common.
//!
//! ```text
//! <folder>/repository.json        whose backups these are
//! <folder>/lock                   flock: one process at a time
//! <folder>/packs/NNNNNN.pack      blobs, one after the other: pages and payloads
//! <folder>/packs/NNNNNN.index     the blobs of the pack (`pack.rs`), written when the pack is durable
//! <folder>/packs/NNNNNN.damaged   the blobs of the pack that the last verification found to be damaged
//! <folder>/backups/NAME.json      the signed manifest of a backup, written last
//! <folder>/backups/NAME.contents   what the backup consists of (`manifest.rs`)
//! ```
//! A file of metadata is a sequence of pages of 4096 bytes; the last one may be shorter. A page is named by the first 16 bytes
//! of its SHA-256, so equal pages are stored once. A payload in a volume is named by its random id. Its bytes never change, so
//! a payload that an earlier backup has is not read again. Of a volume only its header is a page.
//!
//! The manifest has the SHA-256 of the list. The list has the SHA-256 of the index of every pack that the backup needs, and an
//! index has the SHA-256 of each blob. So the signature of the manifest covers every byte.
//!
//! A backup that is interrupted leaves packs without a manifest. The next one uses those with an index, and removes the others.
//!
//! A blob that is known to be damaged counts as missing, so the next backup writes it again. Nothing that a backup may need is
//! removed while its manifest or its list is damaged.

mod copy;
mod error;
mod limits;
mod manifest;
mod pack;
mod payload;
mod places;
mod progress;
mod prune;
mod repository;
mod restore;
mod verify;

pub use copy::{Copied, HeldFolders, copy_into};
pub use error::BackupError;
pub use manifest::BackupSummary;
pub use progress::Progress;
pub use prune::{Pruned, prune};
pub use repository::BackupFolder;
pub use restore::{Restored, restore};
pub use verify::{Verified, verify_backups};
