//! Writing and freeing large files in small portions.
//!
//! To flush or to free much at once keeps the device busy, and the flushes of requests wait for that.

use crate::limits::{SHRINK_PAUSE, SHRINK_STEP_BYTES};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd as _;

/// Hands the dirty pages of a file to the device, without waiting for them. A failure shows at the next flush.
pub(crate) fn begin_write_back(file: &File) {
    let _ = sync_file_range(file, 0..0, libc::SYNC_FILE_RANGE_WRITE);
}

/// Hands the dirty pages of a file to the device, and waits until all of them are written. They are durable after the next flush.
///
/// # Errors
/// Those of writing. The next flush does not report them again.
pub(crate) fn write_back_all(file: &File) -> io::Result<()> {
    let wait = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    sync_file_range(file, 0..0, libc::SYNC_FILE_RANGE_WRITE | wait)
}

/// Hands the dirty pages of a range to the device, and waits until they are written. They are durable after the next flush.
///
/// # Errors
/// Those of writing. The next flush does not report them again.
///
/// # Panics
/// If the range is empty.
pub fn write_back(file: &File, range: Range<u64>) -> io::Result<()> {
    assert!(!range.is_empty(), "an empty range would mean the whole file");
    sync_file_range(file, range, libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER)
}

/// An empty range means the whole file.
fn sync_file_range(file: &File, range: Range<u64>, flags: libc::c_uint) -> io::Result<()> {
    let offset = |at| libc::off64_t::try_from(at).map_err(io::Error::other);
    let (at, bytes) = (offset(range.start)?, offset(range.end - range.start)?);
    #[expect(unsafe_code, reason = "the standard library has no such function")]
    // SAFETY: it takes a descriptor that is open, and no pointer.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), at, bytes, flags) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Truncates a file to nothing, step by step. Sleeps in between, so it is for plain threads.
///
/// # Errors
/// Those of the file system.
#[expect(clippy::disallowed_methods, reason = "executors do not free large files")]
pub fn free_gradually(file: &File) -> io::Result<()> {
    let mut bytes = file.metadata()?.len();
    while bytes > 0 {
        bytes = bytes.saturating_sub(SHRINK_STEP_BYTES);
        file.set_len(bytes)?;
        std::thread::sleep(SHRINK_PAUSE);
    }
    Ok(())
}
