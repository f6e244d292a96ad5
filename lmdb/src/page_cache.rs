//! Reads a data file into the kernel's page cache.

use crate::generation::DATA_FILE;
use crate::limits::PAGE_CACHE_PIECE_BYTES;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Reads the first `bytes` bytes of the data file in `folder`, one piece after the other. After each piece, `goes_on` is asked
/// whether to continue. Returns how many bytes were read.
///
/// Whoever holds the file open may go on to use it, and a compaction may replace it.
pub(crate) fn read_data_file(
    folder: &Path,
    bytes: u64,
    mut goes_on: impl FnMut() -> bool,
) -> std::io::Result<u64> {
    let file = File::open(folder.join(DATA_FILE))?;
    // Only advice, and the map has its own.
    let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Sequential);
    let mut piece = vec![0; PAGE_CACHE_PIECE_BYTES];
    let mut read = 0;
    while read < bytes {
        let wanted = piece.len().min(usize::try_from(bytes - read).unwrap_or(usize::MAX));
        let count = file.read_at(&mut piece[..wanted], read)?;
        read += count as u64;
        if count == 0 || !goes_on() {
            break;
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::{Environment, EnvironmentOptions};

    const OPTIONS: EnvironmentOptions = EnvironmentOptions { map_bytes: 1 << 30, tables_max: 4 };

    /// Returns the bytes that this thread has read from devices.
    fn read_from_devices() -> u64 {
        #[expect(unsafe_code, reason = "the standard library has no such function")]
        // SAFETY: all zeros are a value of this struct, and the call writes nothing else.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), 0);
            usage
        };
        // In units of 512 bytes.
        u64::try_from(usage.ru_inblock).expect("a count") * 512
    }

    /// Runs `body`. Returns how many bytes it has read from devices.
    fn bytes_read(body: impl FnOnce()) -> u64 {
        let before = read_from_devices();
        body();
        read_from_devices() - before
    }

    /// Removes a file from the page cache.
    fn forget(folder: &Path) {
        let file = File::open(folder.join(DATA_FILE)).expect("the data file");
        file.sync_all().expect("flushed");
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advice");
    }

    #[test]
    fn a_record_needs_single_pages_of_the_device_until_the_file_was_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let environment = Environment::open(folder.path(), OPTIONS).expect("opens");
        let table = environment.table("t").expect("a table");
        let mut txn = environment.write().expect("writes");
        let key = |number: u32| number.to_be_bytes();
        for number in 0..16_000 {
            txn.put(table, &key(number), 1, &[7; 1500], b"").expect("puts");
        }
        txn.commit().expect("commits");
        let used = environment.used();
        environment.close();
        forget(folder.path());

        let environment = Environment::open(folder.path(), OPTIONS).expect("opens");
        let table = environment.table("t").expect("a table");
        let get = |number| {
            let txn = environment.read().expect("reads");
            assert!(txn.get(table, &key(number)).expect("reads").is_some());
        };
        let of_a_record = bytes_read(|| get(8000));
        let first = environment.read_into_page_cache(|| false).expect("reads");
        assert_eq!(first, PAGE_CACHE_PIECE_BYTES as u64, "it stops when it is told to");
        let of_the_file = bytes_read(|| {
            assert_eq!(environment.read_into_page_cache(|| true).expect("reads"), used);
        });
        assert_eq!(bytes_read(|| get(12_000)), 0, "it is in memory");
        // Some file systems have their files in memory.
        if of_the_file > 0 {
            assert!(of_the_file > used / 2, "{of_the_file} of {used} bytes were read");
            assert!(of_a_record < 64 * 1024, "{of_a_record} bytes were read for one record");
        }
    }
}
