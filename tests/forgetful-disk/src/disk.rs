//! The disk itself: what it holds now, what is durable of that, and what a power cut leaves.
//!
//! Two files of the same size. *Current* has every write. *Durable* has what a flush has reached; writes since then wait
//! in a list, as in the cache of a device. A cut decides by a seed, write by write, whether it reached the durable image:
//! whole, not at all, or torn into sectors of 512 bytes. From then on durable stands still until `restore` makes it the
//! current one. In between reads and writes go on as if nothing had happened, so that the kernel above can be unmounted in
//! peace; nothing of that survives.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The unit that a disk writes whole or not at all.
pub(crate) const SECTOR_BYTES: usize = 512;

/// Un-flushed bytes that the cache of the disk holds; beyond that the oldest writes become durable, as on a device.
const CACHE_BYTES_MAX: usize = 64 << 20;

/// Bytes that are copied at once when an image is restored.
const COPY_BYTES: u64 = 1 << 20;

/// The fate of unflushed writes in a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutMode {
    /// All are lost.
    Lose,
    /// All are kept, as if power had failed a moment after the cache was written out.
    Keep,
    /// Each is kept, lost or torn, whatever became of the ones before it.
    Mix,
}

/// The result of a cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) kept: u64,
    pub(crate) lost: u64,
    pub(crate) torn: u64,
}

/// Requests that the disk does not serve as it should.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// Reads fail.
    pub(crate) reads: bool,
    /// Writes fail.
    pub(crate) writes: bool,
    /// Flushes fail; what they should have reached stays in the cache.
    pub(crate) flushes: bool,
    /// Flushes succeed and do nothing: a disk that breaks the assumption on which every durable write rests.
    pub(crate) flushes_ignored: bool,
}

struct Write {
    offset: u64,
    data: Vec<u8>,
}

/// See the head of the file.
pub(crate) struct Disk {
    current: File,
    durable: File,
    bytes: u64,
    cache: VecDeque<Write>,
    cached_bytes: usize,
    /// Places, as offset and length, where current may differ from durable since a cut.
    strayed: Option<Vec<(u64, u64)>>,
    pub(crate) faults: Faults,
}

impl Disk {
    /// A disk over two files that hold the same.
    pub(crate) fn new(current: File, durable: File) -> io::Result<Self> {
        let bytes = current.metadata()?.len();
        if durable.metadata()?.len() != bytes {
            return Err(io::Error::other("the two images differ in size"));
        }
        let faults = Faults::default();
        Ok(Self { current, durable, bytes, cache: VecDeque::new(), cached_bytes: 0, strayed: None, faults })
    }

    /// Size of the disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads the current image; shorter at the end of the disk.
    pub(crate) fn read(&self, offset: u64, length: u32) -> io::Result<Vec<u8>> {
        if self.faults.reads {
            return Err(io::Error::other("reads fail"));
        }
        let length = u64::from(length).min(self.bytes.saturating_sub(offset));
        let mut data = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        self.current.read_exact_at(&mut data, offset)?;
        Ok(data)
    }

    /// Writes into the current image and the cache.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.faults.writes {
            return Err(io::Error::other("writes fail"));
        }
        if offset.saturating_add(data.len() as u64) > self.bytes {
            return Err(io::Error::other("a write behind the end of the disk"));
        }
        self.current.write_all_at(data, offset)?;
        if let Some(strayed) = &mut self.strayed {
            strayed.push((offset, data.len() as u64));
            return Ok(());
        }
        self.cache.push_back(Write { offset, data: data.to_vec() });
        self.cached_bytes += data.len();
        while self.cached_bytes > CACHE_BYTES_MAX && !self.faults.flushes_ignored {
            self.write_out_oldest()?;
        }
        Ok(())
    }

    /// Makes everything written so far durable.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.faults.flushes {
            return Err(io::Error::other("flushes fail"));
        }
        if self.faults.flushes_ignored {
            return Ok(());
        }
        while !self.cache.is_empty() {
            self.write_out_oldest()?;
        }
        Ok(())
    }

    fn write_out_oldest(&mut self) -> io::Result<()> {
        let Some(write) = self.cache.pop_front() else { return Ok(()) };
        self.cached_bytes -= write.data.len();
        self.durable.write_all_at(&write.data, write.offset)
    }

    /// The power fails now. The same seed does the same to the same writes.
    pub(crate) fn cut(&mut self, seed: u64, mode: CutMode) -> io::Result<Cut> {
        if self.strayed.is_some() {
            return Err(io::Error::other("the power has failed already"));
        }
        let mut random = Random(seed);
        let mut done = Cut::default();
        let mut strayed = Vec::new();
        for write in std::mem::take(&mut self.cache) {
            strayed.push((write.offset, write.data.len() as u64));
            // A third of the mixed writes each.
            let fate = match mode {
                CutMode::Keep => 0,
                CutMode::Lose => 1,
                CutMode::Mix => random.next() % 3,
            };
            match fate {
                0 => {
                    self.durable.write_all_at(&write.data, write.offset)?;
                    done.kept += 1;
                }
                1 => done.lost += 1,
                _ => {
                    self.tear(&write, &mut random)?;
                    done.torn += 1;
                }
            }
        }
        self.cached_bytes = 0;
        self.strayed = Some(strayed);
        Ok(done)
    }

    /// Every sector by itself reaches the durable image or does not: devices reorder within a write too.
    fn tear(&self, write: &Write, random: &mut Random) -> io::Result<()> {
        let mut at = write.offset;
        for sector in write.data.chunks(SECTOR_BYTES) {
            if random.next().is_multiple_of(2) {
                self.durable.write_all_at(sector, at)?;
            }
            at += sector.len() as u64;
        }
        Ok(())
    }

    /// The power is back: the disk holds what the cut left, and works as it should.
    pub(crate) fn restore(&mut self) -> io::Result<()> {
        let strayed = self.strayed.take().ok_or_else(|| io::Error::other("the power has not failed"))?;
        let mut buffer = vec![0; usize::try_from(COPY_BYTES).map_err(io::Error::other)?];
        for (offset, length) in strayed {
            let (mut at, end) = (offset, offset + length);
            while at < end {
                let piece = usize::try_from((end - at).min(COPY_BYTES)).map_err(io::Error::other)?;
                self.durable.read_exact_at(&mut buffer[..piece], at)?;
                self.current.write_all_at(&buffer[..piece], at)?;
                at += piece as u64;
            }
        }
        self.faults = Faults::default();
        Ok(())
    }
}

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::{CACHE_BYTES_MAX, CutMode, Disk, SECTOR_BYTES};

    const BYTES: u64 = 128 << 20;
    const WRITE: usize = 8 * SECTOR_BYTES;

    fn disk() -> Disk {
        let image = || {
            let file = tempfile::tempfile().expect("a file");
            file.set_len(BYTES).expect("grows");
            file
        };
        Disk::new(image(), image()).expect("a disk")
    }

    /// The sectors of a range that hold `byte` throughout.
    fn sectors(disk: &Disk, offset: u64, count: u32, byte: u8) -> usize {
        let sector = u32::try_from(SECTOR_BYTES).expect("small");
        let data = disk.read(offset, count * sector).expect("reads");
        let whole = data.chunks(SECTOR_BYTES).filter(|s| s.iter().all(|b| b == &s[0])).count();
        assert_eq!(whole, count as usize, "a sector was torn");
        data.chunks(SECTOR_BYTES).filter(|sector| sector[0] == byte).count()
    }

    #[test]
    fn what_was_flushed_outlives_every_cut() {
        for mode in [CutMode::Lose, CutMode::Keep, CutMode::Mix] {
            let mut disk = disk();
            disk.write(4096, &[1; WRITE]).expect("writes");
            disk.flush().expect("flushes");
            disk.cut(7, mode).expect("cuts");
            disk.write(4096, &[2; WRITE]).expect("writes into the void");
            disk.flush().expect("flushes into the void");
            assert_eq!(sectors(&disk, 4096, 8, 2), 8, "until it is restored the disk goes on");
            disk.restore().expect("restores");
            assert_eq!(sectors(&disk, 4096, 8, 1), 8);
        }
    }

    #[test]
    fn what_was_not_flushed_is_lost_or_kept_or_torn_at_sectors() {
        for (mode, expected) in
            [(CutMode::Lose, 0..=0), (CutMode::Keep, 800..=800), (CutMode::Mix, 200..=600)]
        {
            let mut disk = disk();
            for number in 0..100 {
                disk.write(number * WRITE as u64, &[1; WRITE]).expect("writes");
            }
            let cut = disk.cut(1, mode).expect("cuts");
            assert_eq!(cut.kept + cut.lost + cut.torn, 100);
            disk.restore().expect("restores");
            assert!(expected.contains(&sectors(&disk, 0, 800, 1)), "{mode:?}: {cut:?}");
        }
    }

    #[test]
    fn the_same_seed_does_the_same() {
        let image = |seed| {
            let mut disk = disk();
            for number in 0..50 {
                disk.write(number * WRITE as u64, &[3; WRITE]).expect("writes");
            }
            disk.cut(seed, CutMode::Mix).expect("cuts");
            disk.restore().expect("restores");
            disk.read(0, 50 * 4096).expect("reads")
        };
        assert_eq!(image(5), image(5));
        assert_ne!(image(5), image(6));
    }

    #[test]
    fn a_flush_that_fails_or_lies_makes_nothing_durable() {
        let mut disk = disk();
        disk.write(0, &[1; WRITE]).expect("writes");
        disk.faults.flushes = true;
        assert!(disk.flush().is_err());
        disk.faults.flushes = false;
        disk.faults.flushes_ignored = true;
        disk.flush().expect("lies");
        disk.cut(1, CutMode::Lose).expect("cuts");
        disk.restore().expect("restores");
        assert_eq!(sectors(&disk, 0, 8, 0), 8);
        assert!(!disk.faults.flushes_ignored, "a restored disk is a good one");
    }

    #[test]
    fn the_cache_is_bounded() {
        let mut disk = disk();
        let piece = vec![9; 1 << 20];
        for number in 0..100 {
            disk.write(number << 20, &piece).expect("writes");
        }
        assert!(disk.cached_bytes <= CACHE_BYTES_MAX);
        disk.cut(1, CutMode::Lose).expect("cuts");
        disk.restore().expect("restores");
        assert_eq!(sectors(&disk, 0, 8, 9), 8, "the oldest were written out");
        assert_eq!(sectors(&disk, 99 << 20, 8, 9), 0, "the latest were not");
    }

    #[test]
    fn nothing_is_written_behind_the_end() {
        let mut disk = disk();
        assert!(disk.write(BYTES - 512, &[1; 1024]).is_err());
        assert_eq!(disk.read(BYTES - 512, 1024).expect("reads").len(), 512);
    }
}
