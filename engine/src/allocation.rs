//! What the file system has allocated of a volume's file: written space, preallocated space, and holes.
//!
//! Asked once, when a volume is opened, so that free space goes back into the set that it was in: the difference is not
//! kept in the store's own format, for the file system knows it, and keeps it right through a crash. FIEMAP tells all
//! three apart. Where there is none, `SEEK_DATA` tells written space from the rest, which is then taken for holes: these
//! are allocated anew before they are used, so nothing but speed is lost.

use crate::limits::UNIT_BYTES;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

/// A part of a volume that the file system has allocated; in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    start: u64,
    end: u64,
    written: bool,
}

/// What a run of free units is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FreeKind {
    /// Written before.
    Written,
    /// Preallocated only.
    Fresh,
    /// Not allocated: it takes no space on the disk.
    Hole,
}

/// The allocated parts of a volume's file, in order.
#[derive(Debug, Default)]
pub(crate) struct AllocationMap(Vec<Run>);

/// `FS_IOC_FIEMAP`, `_IOWR('f', 11, struct fiemap)` (linux/fs.h, linux/fiemap.h).
const FS_IOC_FIEMAP: u64 = 0xC020_660B;
/// Flush the file before mapping it.
const FIEMAP_FLAG_SYNC: u32 = 1;
const FIEMAP_EXTENT_LAST: u32 = 1;
const FIEMAP_EXTENT_UNWRITTEN: u32 = 0x800;
/// Extents that one call returns (14 KiB).
const EXTENTS_A_CALL: usize = 256;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [FiemapExtent; EXTENTS_A_CALL],
}

impl AllocationMap {
    /// Asks the file system about the first `bytes` bytes of `file`.
    pub(crate) fn of(file: &File, bytes: u64) -> io::Result<Self> {
        let mut runs = Runs::default();
        match by_fiemap(file, bytes, &mut runs) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOTTY)) => {
                runs = Runs::default();
                by_seeking(file, bytes, &mut runs)?;
            }
            mapped => mapped?,
        }
        Ok(runs.finish())
    }

    /// Of a disk that allocates everything.
    #[cfg(feature = "simulation")]
    pub(crate) fn written(bytes: u64) -> Self {
        Self(vec![Run { start: 0, end: bytes / UNIT_BYTES, written: true }])
    }

    /// Cuts the run of `units` units at `start` where its kind changes.
    pub(crate) fn split(&self, start: u64, units: u64, mut found: impl FnMut(u64, u64, FreeKind)) {
        let (mut at, end) = (start, start + units);
        let first = self.0.partition_point(|run| run.end <= at);
        for run in self.0.iter().skip(first) {
            if at >= end || run.start >= end {
                break;
            }
            if run.start > at {
                found(at, run.start - at, FreeKind::Hole);
                at = run.start;
            }
            let to = run.end.min(end);
            found(at, to - at, if run.written { FreeKind::Written } else { FreeKind::Fresh });
            at = to;
        }
        if at < end {
            found(at, end - at, FreeKind::Hole);
        }
    }
}

/// Collects runs in bytes, joined where they touch, and makes whole units of them.
#[derive(Default)]
struct Runs {
    runs: Vec<Run>,
}

impl Runs {
    fn add(&mut self, start: u64, end: u64, written: bool) {
        match self.runs.last_mut() {
            Some(last) if last.end == start && last.written == written => last.end = end,
            _ => self.runs.push(Run { start, end, written }),
        }
    }

    /// A unit that is only partly of a kind counts as a hole: allocating it again does no harm.
    fn finish(mut self) -> AllocationMap {
        for run in &mut self.runs {
            (run.start, run.end) = (run.start.div_ceil(UNIT_BYTES), run.end / UNIT_BYTES);
        }
        self.runs.retain(|run| run.start < run.end);
        AllocationMap(self.runs)
    }
}

fn by_fiemap(file: &File, bytes: u64, runs: &mut Runs) -> io::Result<()> {
    let mut at = 0;
    while at < bytes {
        let mut map = Fiemap {
            start: at,
            length: bytes - at,
            flags: FIEMAP_FLAG_SYNC,
            mapped_extents: 0,
            extent_count: u32::try_from(EXTENTS_A_CALL).unwrap_or(0),
            reserved: 0,
            extents: [FiemapExtent::default(); EXTENTS_A_CALL],
        };
        #[expect(unsafe_code, reason = "there is no safe wrapper of this call")]
        // SAFETY: the descriptor is open, the structure is laid out as the kernel's, and the kernel writes no more than
        // `extent_count` extents into it.
        let answer = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as libc::Ioctl, &raw mut map) };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        let mapped = map.extents.iter().take(usize::try_from(map.mapped_extents).unwrap_or(0));
        let before = at;
        for extent in mapped {
            let end = extent.logical.saturating_add(extent.length).min(bytes);
            runs.add(extent.logical, end, extent.flags & FIEMAP_EXTENT_UNWRITTEN == 0);
            at = if extent.flags & FIEMAP_EXTENT_LAST != 0 { bytes } else { end };
        }
        if at == before {
            break;
        }
    }
    Ok(())
}

fn by_seeking(file: &File, bytes: u64, runs: &mut Runs) -> io::Result<()> {
    use rustix::fs::{SeekFrom, seek};
    let mut at = 0;
    while at < bytes {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            // No data behind `at`.
            Err(rustix::io::Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let end = seek(file, SeekFrom::Hole(start))?.min(bytes);
        if start >= end {
            break;
        }
        runs.add(start, end, true);
        at = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{AllocationMap, FreeKind, Runs, by_seeking};
    use std::os::unix::fs::FileExt as _;

    fn kinds(map: &AllocationMap, start: u64, units: u64) -> Vec<(u64, u64, FreeKind)> {
        let mut kinds = Vec::new();
        map.split(start, units, |start, units, kind| kinds.push((start, units, kind)));
        kinds
    }

    #[test]
    fn written_preallocated_and_punched_space_are_told_apart() {
        let file = tempfile::tempfile_in(".").expect("a file");
        let all = rustix::fs::FallocateFlags::empty();
        rustix::fs::fallocate(&file, all, 0, 1 << 20).expect("preallocates");
        file.write_all_at(&[7; 16 * 4096], 32 * 4096).expect("writes");
        file.sync_all().expect("flushes");
        let punch = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&file, punch, 40 * 4096, 100 * 4096).expect("punches");
        let map = AllocationMap::of(&file, 1 << 20).expect("maps");
        let expected = [
            (0, 32, FreeKind::Fresh),
            (32, 8, FreeKind::Written),
            (40, 100, FreeKind::Hole),
            (140, 116, FreeKind::Fresh),
        ];
        assert_eq!(kinds(&map, 0, 256), expected);
        assert_eq!(kinds(&map, 35, 10), [(35, 5, FreeKind::Written), (40, 5, FreeKind::Hole)]);
        let mut runs = Runs::default();
        by_seeking(&file, 1 << 20, &mut runs).expect("seeks");
        let expected = [(0, 32, FreeKind::Hole), (32, 8, FreeKind::Written), (40, 216, FreeKind::Hole)];
        assert_eq!(kinds(&runs.finish(), 0, 256), expected);
    }

    #[test]
    fn a_unit_that_is_partly_of_a_kind_is_a_hole() {
        let mut runs = Runs::default();
        runs.add(0, 1024, true);
        runs.add(1024, 6 * 1024, true);
        runs.add(6 * 1024, 12 * 1024, false);
        let expected = [
            (0, 1, FreeKind::Written),
            (1, 1, FreeKind::Hole),
            (2, 1, FreeKind::Fresh),
            (3, 1, FreeKind::Hole),
        ];
        assert_eq!(kinds(&runs.finish(), 0, 4), expected);
    }

    /// More extents than one call returns.
    #[test]
    fn a_file_of_many_pieces_is_mapped_whole() {
        let file = tempfile::tempfile_in(".").expect("a file");
        for piece in 0..600u64 {
            file.write_all_at(&[1; 4096], piece * 8192).expect("writes");
        }
        file.set_len(600 * 8192).expect("sets the length");
        let map = AllocationMap::of(&file, 600 * 8192).expect("maps");
        let found = kinds(&map, 0, 1200);
        assert_eq!(found.len(), 1200);
        assert!(found.iter().all(|(at, units, kind)| {
            *units == 1 && *kind == if at % 2 == 0 { FreeKind::Written } else { FreeKind::Hole }
        }));
    }
}
