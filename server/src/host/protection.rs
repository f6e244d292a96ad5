//! Protects the memory and the files of this process from other users.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::Mode;
use rustix::process::{DumpableBehavior, set_dumpable_behavior, umask};

/// Permission bits of other users.
const OTHERS: u32 = 0o007;

/// Sets whether the kernel writes core files of this process and lets other processes of the same user examine it. A core
/// file contains every secret, and the payloads and names in memory.
///
/// Takes effect for all threads. Logging may not have started, so a failure is returned as a warning.
pub(crate) fn set_core_files(allowed: bool) -> Option<String> {
    let behavior = if allowed { DumpableBehavior::Dumpable } else { DumpableBehavior::NotDumpable };
    let error = set_dumpable_behavior(behavior).err()?;
    Some(format!("core files could not be {}: {error}", if allowed { "allowed" } else { "forbidden" }))
}

/// Makes all files that this process creates accessible to its user alone (0600, folders 0700), whatever the umask was.
///
/// The umask belongs to the whole process, so this must precede its other threads. LMDB and other crates create files
/// too, and no mode that they ask for can exceed it.
pub fn restrict_new_files() {
    umask(Mode::RWXG | Mode::RWXO);
}

/// Returns a warning if other users may enter or read a folder. Its files are closed to them, but their names are not, and
/// neither are files that were copied there.
pub(crate) fn exposure(folder: &Path) -> Option<String> {
    let mode = std::fs::metadata(folder).ok()?.permissions().mode();
    let shown = folder.display();
    (mode & OTHERS != 0)
        .then(|| format!("other users may enter the data folder {shown}: chmod o-rwx {shown}"))
}
