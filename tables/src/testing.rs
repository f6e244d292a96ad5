//! A full disk, for the tests of the small stores.
//!
//! The limit of the process on the size of files simulates it; a store sees the same errors. Beyond the limit the kernel also
//! sends a signal, which ends the process unless it is ignored, and the limit applies to the whole process. The test therefore
//! runs itself again in a process of its own, started by a shell that ignores the signal.

#[cfg(test)]
use crate::schema::{Headroom, StoreSchema};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::Path;
use std::process::Command;

/// Set in the process that runs the body of a test.
const INNER: &str = "CAIRN_TEST_SIGNAL_IGNORED";

/// Runs the body of the test `name` in a process of its own. `name` is the test's path in its crate.
///
/// # Panics
/// The test failed in its process.
pub fn with_limited_files(name: &str, body: impl FnOnce()) {
    if std::env::var_os(INNER).is_some() {
        return body();
    }
    let this = std::env::current_exe().expect("a path");
    let run = "trap '' XFSZ; exec \"$0\" --exact \"$1\" --nocapture";
    let done =
        Command::new("sh").arg("-c").arg(run).arg(this).arg(name).env(INNER, "1").output().expect("a shell");
    let output = String::from_utf8_lossy(&done.stdout);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && output.contains("1 passed"), "{output}{errors}");
}

/// Limits the size of all files that the process writes, in bytes. `None` removes the limit.
///
/// # Panics
/// The operating system refused the limit.
pub fn limit_files(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum })
        .expect("a soft limit can be set");
}

/// Makes the disk full for a store: its data file cannot grow any more.
///
/// # Panics
/// The store has no data file.
pub fn fill_disk(folder: &Path) {
    limit_files(Some(std::fs::metadata(folder.join("data.mdb")).expect("a data file").len()));
}

/// Returns a folder in which a store can be created.
///
/// # Panics
/// The folder cannot be created.
#[must_use]
pub fn unmade_store() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(cairn_lmdb::UNMADE_MARKER), b"").expect("writes");
    folder
}

/// The store of this crate's tests.
#[cfg(test)]
pub(crate) static SCHEMA: StoreSchema = StoreSchema {
    name: "the tests",
    fresh_start: "start without tests",
    without_space: "changes are refused",
    after_failure: "nothing is changed",
    identity_table: "store",
    map_bytes: 1 << 30,
    tables_max: 4,
    compared_bytes_max: u64::MAX,
    headroom: Headroom {
        target: 4 << 20,
        low: 3 << 20,
        additions: 2 << 20,
        changes: 2 << 20,
        removals: 1 << 20,
    },
};
