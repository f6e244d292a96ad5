//! The commit of a transaction with a log.

use crate::current::Current;
use crate::error::Error;
use crate::generation::Generation;
use crate::log::commit_log::CommitLog;
use crate::log::faults::Moment;
use crate::log::log_record::LoggedChanges;
use crate::totals::Totals;
use heed::RwTxn;
use std::sync::Arc;

/// Writes the changes to the log, durably. Only then lets LMDB commit, so that nobody reads what a power cut could take away.
/// If they do not fit into the log, a checkpoint makes them durable, after LMDB's commit.
pub(crate) fn commit_after_log(
    generation: &Arc<Generation>,
    txn: RwTxn<'_>,
    (log, current): (&CommitLog, &Current),
    logged: LoggedChanges,
    totals: Totals,
) -> Result<(), Error> {
    let appended = match log.append(logged, totals) {
        // The record is longer than the log, and the disk is full. On a full disk, deletes must succeed: many at once make a long
        // record.
        Err(Error::Full) => {
            let (id, ..) = log.appended();
            generation.commit(txn, None)?;
            return log.save_without_record(id, current, totals);
        }
        appended => appended?,
    };
    let committed = generation.commit(txn, Some(appended.next));
    match &committed {
        Ok(()) if generation.committed().is_none() => {
            let what = "the roots of the last transaction could not be read";
            log.fail_with(&Error::Io(std::io::Error::other(what)));
        }
        Ok(()) => log.faults.pass(Moment::Committed),
        // If the record stays, the outcome is unknown: that is an error of I/O, whatever the first one was.
        Err(_) => log.withdraw(appended)?,
    }
    committed
}
