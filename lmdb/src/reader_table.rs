//! LMDB's table of readers, in memory.
//!
//! LMDB keeps its mutexes and the slots of readers in a file that is mapped for writing. A page that is written there
//! needs space of the file system: in a hole, on btrfs each time, on XFS if a copy shares the block. On a full disk the
//! kernel then ends the process with SIGBUS, for a mere read. The file is meant for other processes, and the lock of
//! the data folder excludes them. So memory takes its place as soon as LMDB has opened it.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::fs::{File, canonicalize};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Name of the file in the folder of an environment.
const LOCK_FILE: &str = "lock.mdb";
const MAPS: &str = "/proc/self/maps";
/// The mapping of LMDB is writable and shared.
const WRITABLE_SHARED: &[u8] = b"rw-s";
const PAGE_BYTES: usize = 4096;

/// Checks that the disk takes the first page of the file, to which LMDB writes through the mapping while it opens. The
/// page keeps its bytes: on most file systems it also keeps its place, and needs no room even on a full disk.
///
/// # Errors
/// Those of the file system, so that a full disk is an error and no SIGBUS.
pub(crate) fn check_room(folder: &Path) -> io::Result<()> {
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true).mode(0o600);
    let file = options.open(folder.join(LOCK_FILE))?;
    let mut page = [0; PAGE_BYTES];
    // What is missing of a short file stays zero.
    let _ = file.read_at(&mut page, 0)?;
    file.write_all_at(&page, 0)
}

/// Replaces the mapping of an environment that was just opened by memory with the same bytes. Without `/proc`, where it
/// is not found, it stays.
///
/// # Errors
/// Those of the file system, and a lack of memory.
pub(crate) fn move_to_memory(folder: &Path) -> io::Result<()> {
    let path = canonicalize(folder.join(LOCK_FILE))?;
    let Some(mapped) =
        std::fs::read(MAPS).ok().and_then(|maps| mapping_of(&maps, path.as_os_str().as_bytes()))
    else {
        return Ok(());
    };
    let address = std::ptr::with_exposed_provenance_mut::<u8>(mapped.start);
    #[expect(unsafe_code, reason = "mappings are memory that the compiler does not know")]
    // SAFETY: the range is a readable and writable mapping that nothing but this environment uses, and no other thread
    // has the environment yet. It is replaced at the same address, with the same length and bytes, so LMDB's pointers
    // stay valid; LMDB unmaps it when it closes.
    unsafe {
        let bytes = std::slice::from_raw_parts(address, mapped.len()).to_vec();
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
        let memory = mmap_anonymous(address.cast(), bytes.len(), access, flags)?;
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory.cast(), bytes.len());
    }
    Ok(())
}

/// Returns the addresses at which a file is mapped writable and shared. `maps` is the content of `/proc/self/maps`
/// (proc(5)): lines `start-end permissions offset device inode path`, with a newline in a path as `\012`. Device and
/// inode do not tell: on btrfs and overlays they differ from those of stat(2).
fn mapping_of(maps: &[u8], path: &[u8]) -> Option<Range<usize>> {
    let escaped: Vec<u8> = path
        .iter()
        .flat_map(|byte| if *byte == b'\n' { b"\\012".as_slice() } else { std::slice::from_ref(byte) })
        .copied()
        .collect();
    let mut found = maps.split(|byte| *byte == b'\n').filter(|line| {
        let mut fields = line.splitn(6, |byte| *byte == b' ');
        let (permissions, last) = (fields.nth(1), fields.nth(3));
        permissions == Some(WRITABLE_SHARED) && last.is_some_and(|last| last.trim_ascii_start() == escaped)
    });
    let line = found.next().filter(|_| found.next().is_none())?;
    let range = std::str::from_utf8(line.split(|byte| *byte == b' ').next()?).ok()?;
    let (start, end) = range.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some(address(start)?..address(end)?)
}

#[cfg(test)]
mod tests {
    use super::{LOCK_FILE, MAPS, WRITABLE_SHARED, mapping_of};
    use crate::environment::{Environment, EnvironmentOptions};

    const OPTIONS: EnvironmentOptions = EnvironmentOptions { map_bytes: 1 << 30, tables_max: 4 };

    #[test]
    fn a_mapping_is_found_by_its_path() {
        let maps = b"7f0000000000-7f0000021000 rw-s 00000000 00:2a 257                        /srv/my store/lock.mdb\n\
            7f1000000000-7f1000021000 r--s 00000000 00:2a 258 /srv/a/lock.mdb\n\
            7f2000000000-7f2000021000 rw-s 00000000 00:2a 259 /srv/a\\012b/lock.mdb\n\
            7f3000000000-7f3000021000 rw-p 00000000 00:00 0\n\
            7f4000000000-7f4000001000 rw-s 00000000 00:2a 1 /twice\n7f5000000000-7f5000001000 rw-s 00001000 00:2a 1 /twice\n";
        assert_eq!(mapping_of(maps, b"/srv/my store/lock.mdb"), Some(0x7f00_0000_0000..0x7f00_0002_1000));
        assert_eq!(mapping_of(maps, b"/srv/a\nb/lock.mdb"), Some(0x7f20_0000_0000..0x7f20_0002_1000));
        for other in [&b"/srv/a/lock.mdb"[..], b"store/lock.mdb", b"", b"/twice"] {
            assert_eq!(mapping_of(maps, other), None);
        }
    }

    /// On btrfs the first read on a full disk ended the process.
    #[test]
    fn reads_and_commits_write_nothing_to_the_lock_file() {
        let folder = tempfile::tempdir_in(".").expect("a folder");
        let environment = Environment::open(folder.path(), OPTIONS).expect("opens");
        let path = std::fs::canonicalize(folder.path().join(LOCK_FILE)).expect("LMDB has made it");
        let maps = std::fs::read(MAPS).expect("reads");
        let name = path.to_str().expect("a name").as_bytes();
        let is_mapped =
            |line: &&[u8]| line.ends_with(name) && line.windows(4).any(|at| at == WRITABLE_SHARED);
        assert_eq!(maps.split(|byte| *byte == b'\n').find(is_mapped), None);
        let before = std::fs::read(&path).expect("reads");
        let table = environment.table("t").expect("creates");
        for number in 0..3 {
            std::thread::scope(|scope| {
                scope.spawn(|| drop(environment.read().expect("a slot of its own")));
            });
            let mut txn = environment.write().expect("writes");
            txn.put(table, &[number], 1, b"value", b"").expect("puts");
            txn.commit().expect("commits");
        }
        let read = environment.read().expect("reads");
        assert!(read.get(table, &[2]).expect("reads").is_some());
        assert_eq!(std::fs::read(&path).expect("reads"), before);
    }
}
