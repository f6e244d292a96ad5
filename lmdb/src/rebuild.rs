//! Rebuilds the data file of an environment from its checkpoint and log.
//!
//! After a failed flush, the kernel may have dropped pages that it could not write, and nobody knows which. The pages of the
//! last checkpoint were flushed, and they were not written again. The records of the log were flushed too. So both lead to the
//! last acknowledged state again: in a new file, which is flushed as a whole and replaces the old one. A new log begins, so
//! that a record whose write had failed does not count, even if the device has it.

use crate::compact::Compaction;
use crate::compact_open::{CopyProgress, OpenCompactOptions, OpenCompaction};
use crate::environment::{Environment, remove_folder};
use crate::error::Error;
use crate::generation::{DATA_FILE, Generation, Headroom};
use crate::limits::COPY_STEP_BYTES;
use crate::log::commit_log::{CommitLog, Saved};
use crate::log::log_file::LogFile;
use crate::log::pin::Pin;
use crate::log::recovery::{replay, restore_roots};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl Environment {
    /// Rebuilds the data file. Returns the earlier generation. The caller ensures that nothing is written.
    ///
    /// # Errors
    /// [`Error::NoSpaceForCopy`], [`Error::Cancelled`], [`Error::DamagedLog`] if the log does not lead to the last acknowledged
    /// state, and [`Error::Io`] while the device still fails. The environment is unchanged then.
    pub(crate) fn rebuild(
        &self,
        log: &CommitLog,
        tables: &[String],
        options: &OpenCompactOptions<'_>,
    ) -> Result<(Arc<Generation>, OpenCompaction), Error> {
        let _name_stays = self.lock_file();
        let earlier = self.current.get();
        // Waits for a transaction in progress, which may have begun before the failure. If LMDB refuses every transaction, none
        // can be in progress.
        let _writers_wait = earlier.env.write_txn();
        let mut saved = log.lock_saved();
        let folder = self.make_folder()?;
        let rebuilt = self.rebuild_in(&folder, &earlier, log, &mut saved, tables, options);
        let removed = remove_folder(&folder);
        let rebuilt = rebuilt?;
        removed?;
        Ok(rebuilt)
    }

    fn rebuild_in(
        &self,
        folder: &Path,
        earlier: &Generation,
        log: &CommitLog,
        saved: &mut Saved,
        tables: &[String],
        options: &OpenCompactOptions<'_>,
    ) -> Result<(Arc<Generation>, OpenCompaction), Error> {
        let began = Instant::now();
        let flush_failures = self.flush_failures().count();
        let bytes_before = earlier.data.metadata().map_err(Error::Io)?.len();
        let pin = saved
            .pin
            .as_ref()
            .ok_or_else(|| Error::Lmdb("no snapshot is pinned: restart the service".to_owned()))?;
        let bytes = pin.snapshot.meta.file_bytes();
        let needed = bytes.saturating_add(options.headroom_bytes);
        if needed > options.available_bytes {
            return Err(Error::NoSpaceForCopy { needed, available: options.available_bytes });
        }
        copy_file(&earlier.data, &folder.join(DATA_FILE), bytes, options)?;
        let copy = self.replay_in(folder, earlier, log, pin, saved, tables)?;
        copy.continue_numbers_from(earlier.last_number());
        copy.extend(options.headroom_bytes, Headroom::Reserved, &self.flush_failures())?;
        let checkpoint = log.prepare_rebuilt(saved, &copy)?;
        self.flush_failures().check_none_since(flush_failures).map_err(Error::Io)?;
        // Nobody can write to the copy before its snapshot is pinned.
        let copy_is_held = copy.env.write_txn()?;
        let named = self.replace_data_file(folder)?;
        if let Err(error) = named.and_then(|()| self.flush_failures().check_none_since(flush_failures)) {
            // A power cut could bring the earlier file back, without any change that follows.
            self.is_broken.store(true, Ordering::Release);
            return Err(Error::Io(error));
        }
        self.is_broken.store(false, Ordering::Release);
        let replaced = self.current.replace(Arc::clone(&copy));
        log.restart_with(saved, &copy, &checkpoint, flush_failures);
        copy_is_held.abort();
        let records = self.read()?.totals()?.records;
        let bytes_after = copy.data.metadata().map_err(Error::Io)?.len();
        let compaction = Compaction { bytes_before, bytes_after, records };
        Ok((replaced, OpenCompaction { compaction, pause: began.elapsed() }))
    }

    /// Opens a copy of the data file at the last checkpoint, and applies the acknowledged records of the log.
    fn replay_in(
        &self,
        folder: &Path,
        earlier: &Generation,
        log: &CommitLog,
        pin: &Pin,
        saved: &Saved,
        tables: &[String],
    ) -> Result<Arc<Generation>, Error> {
        let (id, appended, totals) = log.appended();
        // A record whose transaction LMDB did not commit may be about to be taken back.
        let end = earlier.committed().map_or(appended, |committed| committed.next);
        let totals = totals.filter(|_| end == appended);
        let file = File::options().read(true).write(true).open(folder.join(DATA_FILE)).map_err(Error::Io)?;
        restore_roots(&file, &pin.snapshot.meta).map_err(Error::Io)?;
        let copy = Generation::open(folder, self.options)?;
        let mut records = LogFile::open(&self.folder).map_err(Error::Io)?;
        let replayed = replay(&copy, &mut records, id, saved.next, Some(end))?;
        let is_complete =
            replayed.next.sequence == end.sequence && totals.is_none_or(|totals| totals == replayed.totals);
        if !is_complete {
            let what = format!("it ends before record {}: restart the service", end.sequence);
            return Err(Error::DamagedLog(what));
        }
        copy.open_tables_of(earlier, tables)?;
        Ok(Arc::new(copy))
    }
}

/// Copies the first `bytes` bytes of the data file into a new file. Does not flush it.
fn copy_file(data: &File, path: &Path, bytes: u64, options: &OpenCompactOptions<'_>) -> Result<(), Error> {
    let copy = File::create_new(path).map_err(Error::Io)?;
    let mut piece = vec![0; COPY_STEP_BYTES];
    let mut at = 0;
    while at < bytes {
        let began = Instant::now();
        let count = usize::try_from(bytes - at).map_or(piece.len(), |rest| rest.min(piece.len()));
        data.read_exact_at(&mut piece[..count], at).map_err(Error::Io)?;
        copy.write_all_at(&piece[..count], at).map_err(heed::Error::Io)?;
        at += count as u64;
        let step: Duration = began.elapsed();
        if !(options.proceed)(CopyProgress { copied_bytes: at, expected_bytes: bytes, step }) {
            return Err(Error::Cancelled);
        }
    }
    Ok(())
}
