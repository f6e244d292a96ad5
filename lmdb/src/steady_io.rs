//! Writing and freeing large files in small portions.
//!
//! To flush or to free much at once keeps the device busy, and the flushes of requests wait for that.

use crate::limits::{SHRINK_PAUSE, SHRINK_STEP_BYTES};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd as _;

/// Hands the dirty pages of a file to the device, without waiting for them. A failure shows at the next flush.
pub(crate) fn begin_write_back(file: &File) {
    let _ = sync_file_range(file, 0..0, libc::SYNC_FILE_RANGE_WRITE);
}

/// Waits until those pages of a file are written that were handed to the device before, then hands the other dirty pages to it.
/// So the device has those of one call at a time.
///
/// # Errors
/// Those of writing. The next flush does not report them again.
pub(crate) fn continue_write_back(file: &File) -> io::Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE;
    or_flush(file, sync_file_range(file, 0..0, flags))
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
    let flags = libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    or_flush(file, sync_file_range(file, range, flags))
}

/// Returns whether an error of fallocate(2) means that the file system, or the sandbox of the process, has no preallocation.
#[must_use]
pub fn cannot_preallocate(error: Errno) -> bool {
    matches!(error, Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM)
}

/// Flushes the file where a sandbox has no `sync_file_range`.
fn or_flush(file: &File, written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => file.sync_data(),
        written => written,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_file_is_written_back_and_freed() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&[7; 3 << 20]).expect("written");
        write_back(&file, 1 << 20..2 << 20).expect("written back");
        continue_write_back(&file).expect("written back");
        free_gradually(&file).expect("freed");
        assert_eq!(file.metadata().expect("there").len(), 0);
    }

    #[test]
    fn a_sandbox_without_the_system_call_costs_a_flush() {
        let file = tempfile::tempfile().expect("a file");
        for missing in [libc::ENOSYS, libc::EPERM] {
            or_flush(&file, Err(io::Error::from_raw_os_error(missing))).expect("flushed");
        }
        let failed = or_flush(&file, Err(io::Error::from_raw_os_error(libc::EIO)));
        assert_eq!(failed.expect_err("a failure of the device").raw_os_error(), Some(libc::EIO));
    }
}
