//! The allocation map of a volume's file: written space, preallocated space, and holes.
//!
//! The map is read once, when a volume is opened, so that free space is added to the right set of the allocator. The store's
//! own format does not hold this information, because the file system knows it and keeps it correct through a crash.
//!
//! FIEMAP distinguishes all three kinds. Without FIEMAP, `SEEK_DATA` distinguishes written space from the rest, which then
//! counts as holes. Holes are allocated again before they are used, so this costs only speed.

use crate::format::extent::Extent;
use crate::limits::UNIT_BYTES;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

/// A part of a volume that the file system has allocated, in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    start: u64,
    end: u64,
    written: bool,
}

/// The kind of a run of free units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FreeKind {
    /// Written before.
    Written,
    /// Preallocated, but never written.
    Fresh,
    /// Not allocated: takes no space on the disk.
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
const EXTENTS_PER_CALL: u32 = 256;

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
    extents: [FiemapExtent; EXTENTS_PER_CALL as usize],
}

impl AllocationMap {
    /// Reads the map of the first `bytes` bytes of `file`.
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

    /// Returns the map of a file that is written as a whole.
    pub(crate) fn written(bytes: u64) -> Self {
        Self(vec![Run { start: 0, end: bytes / UNIT_BYTES, written: true }])
    }

    /// Calls `found` with the pieces of `extent` of one kind each, in order.
    pub(crate) fn split(&self, extent: Extent, mut found: impl FnMut(Extent, FreeKind)) {
        let (mut at, end) = (u64::from(extent.start), u64::from(extent.start) + u64::from(extent.units));
        let mut piece = |from: u64, to: u64, kind| {
            let unit = |unit: u64| u32::try_from(unit).expect("a piece lies within its extent");
            found(Extent::between(extent.volume, unit(from), unit(to)), kind);
        };
        let first = self.0.partition_point(|run| run.end <= at);
        for run in self.0.iter().skip(first) {
            if at >= end || run.start >= end {
                break;
            }
            if run.start > at {
                piece(at, run.start, FreeKind::Hole);
                at = run.start;
            }
            let to = run.end.min(end);
            piece(at, to, if run.written { FreeKind::Written } else { FreeKind::Fresh });
            at = to;
        }
        if at < end {
            piece(at, end, FreeKind::Hole);
        }
    }
}

/// Collects runs in bytes, joins those that touch, and rounds them to whole units.
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

    /// Rounds all runs inward. A unit that is only partly of one kind counts as a hole: allocating it again does no harm.
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
            extent_count: EXTENTS_PER_CALL,
            reserved: 0,
            extents: [FiemapExtent::default(); EXTENTS_PER_CALL as usize],
        };
        #[expect(unsafe_code, reason = "there is no safe wrapper of this call")]
        // SAFETY: the descriptor is open, the structure is laid out as the kernel's, and the kernel writes no more than
        // `extent_count` extents into it.
        let answer = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as libc::Ioctl, &raw mut map) };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        let mapped = map.extents.iter().take(map.mapped_extents as usize);
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
            // There is no data after `at`.
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
    use crate::format::extent::Extent;
    use std::os::unix::fs::FileExt as _;

    fn kinds(map: &AllocationMap, start: u32, units: u32) -> Vec<(u32, u32, FreeKind)> {
        let mut kinds = Vec::new();
        let extent = Extent { volume: 0, start, units };
        map.split(extent, |extent, kind| kinds.push((extent.start, extent.units, kind)));
        kinds
    }

    #[test]
    fn written_preallocated_and_punched_space_are_distinguished() {
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
    fn unit_with_parts_of_two_kinds_is_a_hole() {
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

    /// The file has more extents than one call returns.
    #[test]
    fn file_with_many_extents_is_mapped_completely() {
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
