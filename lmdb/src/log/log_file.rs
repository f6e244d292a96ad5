//! The file of the log: writes records durably and finds them again.
//!
//! The file consists of blocks that were written before, so that a record needs nothing from the file system but its own write
//! and the flush of the device. Direct I/O keeps it out of the page cache, whose write-back it would otherwise wait for.

use crate::error::Error;
use crate::folder::flush_folder;
use crate::limits::{LOG_BLOCK_BYTES, LOG_BUFFER_KEPT_BYTES, LOG_EXTEND_PIECE_BYTES, LOG_SCAN_PIECE_BYTES};
use crate::log::log_record::{LOG_HEAD_BYTES, LogHead, is_record};
use crate::log_position::{LogId, Position};
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Name of the log's file in the folder of an environment.
pub(crate) const LOG_FILE: &str = "commit.log";

const BLOCK: u64 = LOG_BLOCK_BYTES as u64;
const _: () = assert!(LOG_HEAD_BYTES <= LOG_BLOCK_BYTES, "a block has room for a head");

/// Bytes in memory that begin at a multiple of the block size, as direct I/O requires.
#[derive(Debug, Default)]
struct AlignedBytes {
    bytes: Vec<u8>,
    start: usize,
}

impl AlignedBytes {
    /// Returns `length` bytes. They contain anything.
    fn first(&mut self, length: usize) -> &mut [u8] {
        if self.bytes.len() < self.start + length {
            self.bytes = vec![0; length.next_power_of_two() + LOG_BLOCK_BYTES];
            self.start = self.bytes.as_ptr().align_offset(LOG_BLOCK_BYTES);
        }
        &mut self.bytes[self.start..self.start + length]
    }
}

/// The open file of a log.
#[derive(Debug)]
pub(crate) struct LogFile {
    file: File,
    buffer: AlignedBytes,
}

/// A record that was read, whole.
pub(crate) struct FoundRecord {
    pub(crate) head: LogHead,
    pub(crate) body: Vec<u8>,
    /// The place of the record after it.
    pub(crate) next: Position,
}

impl LogFile {
    /// Opens the file of a folder. Its writes are durable when they return.
    ///
    /// # Errors
    /// Those of the file system, also when the file is missing.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        Self::open_with(folder, OpenOptions::new().read(true).write(true))
    }

    /// Opens the file of a folder, which may be on a read-only file system, for reading alone.
    ///
    /// # Errors
    /// As [`LogFile::open`].
    pub(crate) fn open_to_read(folder: &Path) -> io::Result<Self> {
        Self::open_with(folder, OpenOptions::new().read(true))
    }

    /// Creates the file, or opens the one that is left of an earlier log, and makes it `bytes` bytes long.
    pub(crate) fn create(folder: &Path, bytes: u64) -> io::Result<Self> {
        let mut created =
            Self::open_with(folder, OpenOptions::new().read(true).write(true).create(true).mode(0o600))?;
        created.extend(bytes)?;
        flush_folder(folder)?;
        Ok(created)
    }

    fn open_with(folder: &Path, options: &mut OpenOptions) -> io::Result<Self> {
        let path = folder.join(LOG_FILE);
        let mut open = |flags| options.custom_flags(flags).open(&path);
        let file = match open(libc::O_DIRECT | libc::O_DSYNC) {
            // A file system without direct I/O.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => open(libc::O_DSYNC)?,
            opened => opened?,
        };
        Ok(Self { file, buffer: AlignedBytes::default() })
    }

    /// Returns the length of the file in whole blocks, in bytes.
    pub(crate) fn length(&self) -> io::Result<u64> {
        let length = self.file.metadata()?.len();
        Ok(length - length % BLOCK)
    }

    /// Makes the file `bytes` bytes long, whole blocks, with zeros, durably. It stays as it is if it is longer. After a failure
    /// it has at least its earlier length.
    pub(crate) fn extend(&mut self, bytes: u64) -> io::Result<()> {
        assert!(bytes.is_multiple_of(BLOCK), "direct I/O");
        let mut end = self.length()?;
        while end < bytes {
            let piece = (bytes - end).min(LOG_EXTEND_PIECE_BYTES);
            let zeros = self.buffer.first(usize::try_from(piece).expect("a piece is small"));
            zeros.fill(0);
            self.file.write_all_at(zeros, end)?;
            end += piece;
        }
        self.file.sync_all()
    }

    /// Writes a record, or a part of one, at an offset. It is durable when this returns.
    pub(crate) fn write(&mut self, record: &[u8], offset: u64) -> io::Result<()> {
        assert!(record.len().is_multiple_of(LOG_BLOCK_BYTES) && offset.is_multiple_of(BLOCK), "direct I/O");
        let aligned = self.buffer.first(record.len());
        aligned.copy_from_slice(record);
        self.file.write_all_at(aligned, offset)?;
        if record.len() > LOG_BUFFER_KEPT_BYTES {
            self.buffer = AlignedBytes::default();
        }
        Ok(())
    }

    /// Reads up to `length` bytes at an offset, fewer at the end of the file.
    fn read(&mut self, offset: u64, length: usize) -> io::Result<&[u8]> {
        let aligned = self.buffer.first(length);
        let mut filled = 0;
        while filled < length {
            let count = match self.file.read_at(&mut aligned[filled..], offset + filled as u64) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            filled += count;
            if count == 0 || !filled.is_multiple_of(LOG_BLOCK_BYTES) {
                break;
            }
        }
        Ok(&aligned[..filled])
    }

    /// Reads the record at an offset. `None` if no whole record of this log is there.
    fn read_record(&mut self, log: LogId, offset: u64) -> Result<Option<FoundRecord>, Error> {
        let length = self.length().map_err(Error::Io)?;
        let Some(head) = LogHead::decode(self.read(offset, LOG_BLOCK_BYTES).map_err(Error::Io)?, log) else {
            return Ok(None);
        };
        let bytes = head.file_bytes() as u64;
        if bytes > length.saturating_sub(offset) {
            return Ok(None);
        }
        let record = self.read(offset, head.file_bytes()).map_err(Error::Io)?;
        let body = head.body_of(record).map(<[u8]>::to_vec);
        let next = Position { sequence: head.sequence + 1, offset: offset + bytes };
        Ok(body.map(|body| FoundRecord { head, body, next }))
    }

    /// Finds the record at a place. `None` if the log ends there.
    ///
    /// A record is durable before the next one is written. So the first place without a whole record is the end, unless the
    /// file was damaged. Then records follow that were written later.
    ///
    /// # Errors
    /// [`Error::DamagedLog`] if there are later records; [`Error::Io`].
    pub(crate) fn find(&mut self, log: LogId, place: Position) -> Result<Option<FoundRecord>, Error> {
        for offset in [place.offset, 0] {
            let found = self.read_record(log, offset)?;
            if let Some(found) = found.filter(|found| found.head.sequence == place.sequence) {
                return Ok(Some(found));
            }
        }
        let mut later = None;
        self.later_records(log, place.sequence, |record| {
            later = Some(record.head.sequence);
            ControlFlow::Break(())
        })?;
        if let Some(later) = later {
            let what = format!("record {} is damaged or missing, but record {later} follows", place.sequence);
            return Err(Error::DamagedLog(what));
        }
        Ok(None)
    }

    /// Calls `found` with the whole records that are later than `sequence`, in the order of the file, until it breaks.
    pub(crate) fn later_records(
        &mut self,
        log: LogId,
        sequence: u64,
        mut found: impl FnMut(&FoundRecord) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        for offset in self.later_heads(log, sequence)? {
            let record = self.read_record(log, offset)?;
            if record.is_some_and(|record| found(&record).is_break()) {
                break;
            }
        }
        Ok(())
    }

    /// Returns the offsets of the heads of later records, whole or torn.
    fn later_heads(&mut self, log: LogId, sequence: u64) -> Result<Vec<u64>, Error> {
        let mut offsets = Vec::new();
        self.any_block(|block, offset| {
            let head = LogHead::decode(block, log).filter(|head| head.sequence > sequence);
            offsets.extend(head.map(|_| offset));
            false
        })
        .map_err(Error::Io)?;
        Ok(offsets)
    }

    /// Returns whether `is_wanted` accepts a block of the file. It gets the block and its offset. The search ends at the first
    /// accepted block.
    fn any_block(&mut self, mut is_wanted: impl FnMut(&[u8], u64) -> bool) -> io::Result<bool> {
        let mut at = 0;
        loop {
            let piece = self.read(at, LOG_SCAN_PIECE_BYTES)?;
            let mut blocks = piece.chunks(LOG_BLOCK_BYTES).zip((at..).step_by(LOG_BLOCK_BYTES));
            if blocks.any(|(block, offset)| is_wanted(block, offset)) {
                return Ok(true);
            }
            if piece.is_empty() {
                return Ok(false);
            }
            at += piece.len() as u64;
        }
    }
}

/// Returns whether the file of a folder has records, of any log. It may be missing.
pub(crate) fn holds_records(folder: &Path) -> io::Result<bool> {
    has_block(folder, is_record)
}

/// Returns whether the file of a folder has records of a log, whole or torn. It may be missing.
pub(crate) fn holds_records_of(folder: &Path, log: LogId) -> io::Result<bool> {
    has_block(folder, |block| LogHead::decode(block, log).is_some())
}

/// Returns whether the file has a block that is wanted.
fn has_block(folder: &Path, is_wanted: impl Fn(&[u8]) -> bool) -> io::Result<bool> {
    match LogFile::open_to_read(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        opened => opened?.any_block(|block, _| is_wanted(block)),
    }
}

/// Removes the file of a folder, durably. It may be missing.
pub(crate) fn remove_log(folder: &Path) -> io::Result<()> {
    match std::fs::remove_file(folder.join(LOG_FILE)) {
        Ok(()) => flush_folder(folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::LogFile;
    use crate::error::Error;
    use crate::log::log_record::LoggedChanges;
    use crate::log_position::{LogId, Position};
    use crate::table::Table;
    use crate::totals::Totals;

    const LOG: LogId = LogId([1; 16]);

    fn write(file: &mut LogFile, sequence: u64, offset: u64, value: &[u8]) {
        let mut changes = LoggedChanges::in_buffer(Vec::new());
        changes.put(Table(1), b"key", value, || "t".to_owned());
        let record = changes.complete(LOG, sequence, Totals::default()).expect("small");
        file.write(&record, offset).expect("writes");
    }

    fn sequences(file: &mut LogFile, mut place: Position) -> Result<Vec<u64>, Error> {
        let mut found = Vec::new();
        while let Some(record) = file.find(LOG, place)? {
            found.push(record.head.sequence);
            place = record.next;
        }
        Ok(found)
    }

    #[test]
    fn records_are_found_behind_each_other_and_at_the_beginning() {
        let folder = tempfile::tempdir_in(".").expect("a folder");
        let mut file = LogFile::create(folder.path(), 8 * 4096).expect("creates");
        write(&mut file, 1, 0, b"");
        write(&mut file, 2, 4096, &[7; 9000]);
        write(&mut file, 3, 4 * 4096, b"");
        assert_eq!(sequences(&mut file, Position::FIRST).expect("whole"), [1, 2, 3]);
        // The next one does not fit before the end.
        write(&mut file, 4, 0, &[7; 13000]);
        let from_three = Position { sequence: 3, offset: 4 * 4096 };
        assert_eq!(sequences(&mut file, from_three).expect("whole"), [3, 4]);
        let mut again = LogFile::open(folder.path()).expect("opens");
        assert_eq!(sequences(&mut again, from_three).expect("whole"), [3, 4]);
    }

    /// The end of the log is where the last write was torn. Damage before the end would lose acknowledged changes.
    #[test]
    fn a_torn_end_is_accepted_and_damage_before_the_end_is_not() {
        let folder = tempfile::tempdir_in(".").expect("a folder");
        let mut file = LogFile::create(folder.path(), 64 * 4096).expect("creates");
        for sequence in 1..=3 {
            write(&mut file, sequence, (sequence - 1) * 2 * 4096, &[3; 5000]);
        }
        file.write(&[0; 4096], 5 * 4096).expect("tears the second half of record 3");
        assert_eq!(sequences(&mut file, Position::FIRST).expect("a torn end"), [1, 2]);
        file.write(&[0; 4096], 0).expect("damages record 1");
        assert!(matches!(sequences(&mut file, Position::FIRST), Err(Error::DamagedLog(_))));
    }
}
