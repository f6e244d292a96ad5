//! A pinned snapshot of an open environment, and its copy.
//!
//! LMDB never writes to a page that a reader may need, except for the two meta pages. So the pages of a pinned snapshot can be
//! copied while others write. The copy gets the roots of the snapshot in both meta pages, and no checkpoint of a commit log: it
//! is a complete environment without a log. Pages that are free in the snapshot may be written meanwhile. Nothing in the copy
//! refers to them, so they are holes in it.

use crate::data_file::{DataFile, Pages};
use crate::environment::Environment;
use crate::error::Error;
use crate::free_pages::free_pages;
use crate::generation::Generation;
use crate::limits::COPY_STEP_BYTES;
use crate::log::log_file::remove_log;
use crate::log::pin::Pin;
use crate::meta_page::{META_BYTES, MetaFields};
use crate::steady_io::write_back;
use crc_fast::{CrcAlgorithm, Digest};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

/// A snapshot whose pages are kept until this is dropped.
#[derive(Debug)]
pub struct Snapshot {
    generation: Arc<Generation>,
    pin: Pin<MetaFields>,
}

/// A finished copy of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotCopy {
    /// Length of the file in bytes.
    pub bytes: u64,
    /// CRC-64/NVME of the file.
    pub crc64: u64,
}

impl Environment {
    /// Pins the newest committed snapshot. Its pages cannot be reused while the snapshot exists, so the data file may grow.
    ///
    /// # Errors
    /// Those of LMDB and of reading the data file.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        let generation = self.current.get();
        let pin = Pin::begin(&generation, Generation::begin_read_with_roots)?;
        Ok(Snapshot { generation, pin })
    }
}

impl Snapshot {
    /// Returns the length of a copy in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.pin.snapshot.file_bytes()
    }

    /// Copies the snapshot into a new file, and flushes it. After each step of 1 MiB or so, `proceed` gets the number of bytes
    /// of the step, and says whether to go on.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::Full`], and those of reading and writing. The file may be there, incomplete.
    pub fn copy_to(&self, path: &Path, mut proceed: impl FnMut(u64) -> bool) -> Result<SnapshotCopy, Error> {
        let free = self.free_pages()?;
        let copy = File::create_new(path).map_err(heed::Error::Io)?;
        let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
        let mut piece = vec![0; COPY_STEP_BYTES];
        let bytes = self.bytes();
        let mut at = 0;
        while at < bytes {
            let count = usize::try_from(bytes - at).map_or(piece.len(), |rest| rest.min(piece.len()));
            let piece = &mut piece[..count];
            self.generation.data.read_exact_at(piece, at).map_err(Error::Io)?;
            if at == 0 {
                self.write_meta_pages(piece)?;
            }
            let written = self.write_used_pages(&copy, piece, at, &free);
            written.and_then(|()| write_back(&copy, at..at + count as u64)).map_err(heed::Error::Io)?;
            digest.update(piece);
            at += count as u64;
            if !proceed(count as u64) {
                return Err(Error::Cancelled);
            }
        }
        copy.set_len(bytes).and_then(|()| copy.sync_all()).map_err(heed::Error::Io)?;
        Ok(SnapshotCopy { bytes, crc64: digest.finalize() })
    }

    /// Returns the free pages. If they are not known, none count as free.
    fn free_pages(&self) -> Result<Pages, Error> {
        let page_bytes = usize::try_from(self.generation.page_bytes).unwrap_or(usize::MAX);
        let data = self.generation.data.try_clone().and_then(|data| DataFile::new(data, page_bytes));
        Ok(free_pages(&data.map_err(Error::Io)?, &self.pin.snapshot).unwrap_or_else(Pages::none))
    }

    /// Writes the used pages of a piece to their places in the copy, and clears the free ones in the piece.
    fn write_used_pages(&self, copy: &File, piece: &mut [u8], at: u64, free: &Pages) -> io::Result<()> {
        let page_bytes = self.generation.page_bytes;
        let length = usize::try_from(page_bytes).unwrap_or(usize::MAX);
        let mut run = 0..0;
        for (number, start) in (at / page_bytes..).zip((0..piece.len()).step_by(length)) {
            let end = piece.len().min(start + length);
            if free.has(number) {
                piece[start..end].fill(0);
                copy.write_all_at(&piece[run.clone()], at + run.start as u64)?;
                run = end..end;
            } else {
                run.end = end;
            }
        }
        copy.write_all_at(&piece[run.clone()], at + run.start as u64)
    }

    /// Writes the roots of the snapshot to both meta pages at the front of a copy. Removes what is not LMDB's from them.
    fn write_meta_pages(&self, front: &mut [u8]) -> Result<(), Error> {
        let page = usize::try_from(self.generation.page_bytes).unwrap_or(usize::MAX);
        let pages = front.get_mut(..2 * page);
        let pages = pages.ok_or_else(|| Error::Io(io::Error::other("the data file has no meta pages")))?;
        for meta in pages.chunks_exact_mut(page) {
            let head = META_BYTES - self.pin.snapshot.0.len();
            meta[head..META_BYTES].copy_from_slice(&self.pin.snapshot.0);
            meta[META_BYTES..].fill(0);
        }
        Ok(())
    }
}

/// Removes the commit log of a folder whose data file was replaced by the copy of a snapshot. It belongs to the earlier file.
///
/// # Errors
/// Those of the file system.
pub fn remove_log_of_replaced_file(folder: &Path) -> io::Result<()> {
    remove_log(folder)
}

#[cfg(test)]
mod tests {
    use crate::{Environment, EnvironmentOptions, FlushFailures, LogOptions, Table};
    use std::path::Path;

    const OPTIONS: EnvironmentOptions = EnvironmentOptions { map_bytes: 1 << 30, tables_max: 4 };
    const LOG: LogOptions = LogOptions { bytes_max: 4 << 20, checkpoint_bytes: 1 << 18 };

    fn open(folder: &Path, with_log: bool) -> (Environment, Table) {
        let environment = if with_log {
            Environment::open_with_log(folder, OPTIONS, LOG, &FlushFailures::default()).expect("opens")
        } else {
            Environment::open(folder, OPTIONS).expect("opens")
        };
        let table = environment.table("t").expect("a table");
        (environment, table)
    }

    /// Replaces all records by those of round `round`.
    fn write_round(environment: &Environment, table: Table, round: u8) {
        for piece in 0..10u32 {
            let mut txn = environment.write().expect("writes");
            for n in piece * 50..(piece + 1) * 50 {
                txn.put(table, &n.to_be_bytes(), 1, &[round; 1500], b"tail").expect("puts");
            }
            txn.commit().expect("commits");
        }
    }

    /// The copy is made after every page of the snapshot was replaced several times, with and without a commit log. It must
    /// open by itself, with the records of the snapshot, and accept changes.
    #[test]
    fn the_copy_of_a_snapshot_has_its_records_whatever_is_written_meanwhile() {
        for with_log in [false, true] {
            let (folder, copied) =
                (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
            let (environment, table) = open(folder.path(), with_log);
            for round in [3, 2, 1] {
                write_round(&environment, table, round);
            }
            let snapshot = environment.snapshot().expect("a snapshot");
            let totals = environment.read().expect("reads").totals().expect("totals");
            let mut steps = 0;
            let copy = snapshot.copy_to(&copied.path().join("data.mdb"), |_| {
                steps += 1;
                write_round(&environment, table, 1 + steps);
                true
            });
            let copy = copy.expect("copied");
            assert_eq!(copy.bytes, snapshot.bytes());
            let pages = std::fs::read(copied.path().join("data.mdb")).expect("reads");
            let empty = pages.chunks(4096).filter(|page| page.iter().all(|byte| *byte == 0)).count();
            assert!(empty > 20, "free pages are left out: {empty}");
            drop(snapshot);
            write_round(&environment, table, 100);
            environment.close();
            let (environment, table) = open(copied.path(), with_log);
            {
                let read = environment.read().expect("reads");
                assert_eq!(read.totals().expect("totals"), totals);
                assert_eq!(read.compute_totals(&[table]).expect("whole"), totals);
                let record = read.get(table, &499u32.to_be_bytes()).expect("reads").expect("there");
                assert_eq!(record.body, &[1; 1500][..]);
            }
            write_round(&environment, table, 7);
            environment.close();
        }
    }

    #[test]
    fn a_copy_can_be_cancelled() {
        let (folder, copied) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let (environment, table) = open(folder.path(), false);
        write_round(&environment, table, 1);
        let snapshot = environment.snapshot().expect("a snapshot");
        let cancelled = snapshot.copy_to(&copied.path().join("data.mdb"), |_| false);
        assert!(matches!(cancelled, Err(crate::Error::Cancelled)));
    }
}
