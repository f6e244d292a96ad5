//! Flushes folders, so that the names in them are durable.

use std::fs::File;
use std::io;
use std::path::Path;

/// Makes the names in a folder durable.
pub(crate) fn flush_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
