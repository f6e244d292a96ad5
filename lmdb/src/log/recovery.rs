//! Recovery of an environment from its checkpoint and its log.
//!
//! 1. [`restore`] writes the roots of the checkpoint back to both meta pages, before LMDB opens the file. Whatever later
//!    transactions have left in the file is then free space.
//! 2. [`replay`] applies the changes of the records after the checkpoint again. The snapshot of the checkpoint stays pinned, so a
//!    crash meanwhile changes nothing.

use crate::error::Error;
use crate::generation::{DATA_FILE, Generation};
use crate::limits::REPLAY_BYTES_MAX;
use crate::log::checkpoint_slot::Checkpoint;
use crate::log::faults::{LogFaults, Moment};
use crate::log::log_file::{LOG_FILE, LogFile, holds_records, holds_records_of};
use crate::log::log_record::{ChangesIn, LoggedChange};
use crate::log_position::{LogId, Position};
use crate::meta_page::{META_BYTES, MetaFields};
use crate::record;
use crate::table::{Database, TOTALS_TABLE};
use crate::totals::{TOTALS_KEY, Totals};
use heed::RwTxn;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;

/// The state of the log according to a data file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Restored {
    /// The checkpoint, if the log counts.
    pub(crate) checkpoint: Option<Checkpoint>,
    /// The number of the last checkpoint, also of one whose log was given up. The next one must have a greater number.
    pub(crate) number: u64,
}

/// Prepares the data file in a folder for LMDB. Returns what it says about its log.
///
/// Both copies of the checkpoint, and its roots, are written again although they may look right: after a failed flush, the page
/// cache may show what the device does not have.
///
/// # Errors
/// [`Error::Io`]; [`Error::DamagedLog`] if there are records, but no checkpoint; and [`Error::Truncated`] if the file is
/// shorter than the snapshot of the checkpoint.
pub(crate) fn restore(folder: &Path, faults: &LogFaults) -> Result<Restored, Error> {
    let file = match File::options().read(true).write(true).open(folder.join(DATA_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Restored::default()),
        opened => opened.map_err(Error::Io)?,
    };
    let found = file.metadata().map_err(Error::Io)?.len();
    if found < META_BYTES as u64 {
        // A later check refuses it.
        return Ok(Restored::default());
    }
    let checkpoint = match read_checkpoint(folder, &file) {
        Err(Error::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => None,
        read => read?,
    };
    let Some(checkpoint) = checkpoint else { return Ok(Restored::default()) };
    let number = checkpoint.number;
    if !checkpoint.is_active {
        write_again(&file, &checkpoint).map_err(Error::Io)?;
        return Ok(Restored { checkpoint: None, number });
    }
    check_log_is_there(folder, &checkpoint)?;
    restore_checkpoint(&file, &checkpoint, faults)?;
    Ok(Restored { checkpoint: Some(checkpoint), number })
}

/// Reads the checkpoint of the data file `data` in a folder. `None` if there is neither a checkpoint nor a record.
///
/// # Errors
/// [`Error::DamagedLog`] if there are records, but no checkpoint; [`Error::Io`].
pub(crate) fn read_checkpoint(folder: &Path, data: &File) -> Result<Option<Checkpoint>, Error> {
    let checkpoint = Checkpoint::read(data).map_err(Error::Io)?;
    if checkpoint.is_none() && holds_records(folder).map_err(Error::Io)? {
        let what = "it has records, but the data file has no valid checkpoint".to_owned();
        return Err(Error::DamagedLog(what));
    }
    Ok(checkpoint)
}

/// Checks that the log of a checkpoint is in its folder.
///
/// # Errors
/// [`Error::DamagedLog`]; [`Error::Io`].
pub(crate) fn check_log_is_there(folder: &Path, checkpoint: &Checkpoint) -> Result<(), Error> {
    if !folder.join(LOG_FILE).try_exists().map_err(Error::Io)? {
        return Err(Error::DamagedLog("its file is missing".to_owned()));
    }
    // The record before the next one stays in the file until later ones of the same log replace it.
    let is_first = checkpoint.next == Position::FIRST;
    if !is_first && !holds_records_of(folder, checkpoint.log).map_err(Error::Io)? {
        return Err(Error::DamagedLog("it has no record of the log that the checkpoint names".to_owned()));
    }
    Ok(())
}

/// Lets a data file begin with its checkpoint, durably.
///
/// # Errors
/// [`Error::Truncated`] if the file is shorter than the snapshot; [`Error::Io`].
pub(crate) fn restore_checkpoint(
    file: &File,
    checkpoint: &Checkpoint,
    faults: &LogFaults,
) -> Result<(), Error> {
    let (expected, found) = (checkpoint.meta.file_bytes(), file.metadata().map_err(Error::Io)?.len());
    if expected > found {
        return Err(Error::Truncated { expected, found });
    }
    let is_newest = MetaFields::newest(file).map_err(Error::Io)? == Some(checkpoint.meta);
    let roots = if is_newest { checkpoint.meta.write_again(file) } else { checkpoint.meta.restore(file) };
    faults.pass(Moment::WroteCheckpoint);
    roots.and_then(|()| write_again(file, checkpoint)).map_err(Error::Io)?;
    faults.pass(Moment::FlushedCheckpoint);
    Ok(())
}

/// Writes both copies of a checkpoint, and flushes the file.
fn write_again(file: &File, checkpoint: &Checkpoint) -> io::Result<()> {
    [0, 1].into_iter().try_for_each(|page| checkpoint.write(file, page))?;
    file.sync_data()
}

/// Lets the file begin with the snapshot that has these roots, durably.
pub(crate) fn restore_roots(file: &File, meta: &MetaFields) -> io::Result<()> {
    meta.restore(file)?;
    file.sync_data()
}

/// The result of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replayed {
    /// The place after the last record.
    pub(crate) next: Position,
    /// Number of records.
    pub(crate) records: u64,
    /// The totals after the last record.
    pub(crate) totals: Totals,
}

/// Applies the changes of the records of a log from the place `from` on, up to its end or to the place `end`.
///
/// # Errors
/// [`Error::DamagedLog`] if a record before the end is damaged, or if the totals after a record are not those that it names;
/// otherwise those of LMDB and of the file system.
pub(crate) fn replay(
    generation: &Generation,
    file: &mut LogFile,
    log: LogId,
    from: Position,
    end: Option<Position>,
) -> Result<Replayed, Error> {
    let mut tables = HashMap::new();
    let mut replayed = Replayed { next: from, records: 0, totals: Totals::default() };
    let mut is_complete = false;
    while !is_complete {
        let mut txn = generation.env.write_txn()?;
        let totals_table = open_table(generation, &mut txn, &mut tables, TOTALS_TABLE)?;
        if let Some(stored) = totals_table.get(&txn, TOTALS_KEY)? {
            replayed.totals = Totals::decode(record::decode(TOTALS_KEY, stored)?.body)?;
        }
        let before = replayed.records;
        let mut bytes = 0;
        while bytes < REPLAY_BYTES_MAX {
            let is_at_end = end.is_some_and(|end| replayed.next.sequence >= end.sequence);
            let found = if is_at_end { None } else { file.find(log, replayed.next)? };
            let Some(found) = found else {
                is_complete = true;
                break;
            };
            apply(generation, &mut txn, &mut tables, &found.body, &mut replayed.totals)?;
            if replayed.totals != found.head.totals {
                let what = format!("record {} does not fit the records before it", found.head.sequence);
                return Err(Error::DamagedLog(what));
            }
            bytes += found.body.len();
            replayed.records += 1;
            replayed.next = found.next;
        }
        if replayed.records == before {
            txn.abort();
            break;
        }
        let mut value = Vec::new();
        record::encode(&mut value, TOTALS_KEY, 1, &replayed.totals.encode(), &[])?;
        totals_table.put(&mut txn, TOTALS_KEY, &value)?;
        generation.commit(txn, Some(replayed.next))?;
    }
    Ok(replayed)
}

fn open_table(
    generation: &Generation,
    txn: &mut RwTxn<'_>,
    tables: &mut HashMap<String, Database>,
    name: &str,
) -> Result<Database, Error> {
    if let Some(database) = tables.get(name) {
        return Ok(*database);
    }
    let database = generation.env.create_database(txn, Some(name))?;
    tables.insert(name.to_owned(), database);
    Ok(database)
}

/// Applies the changes of one record, and follows the totals.
fn apply(
    generation: &Generation,
    txn: &mut RwTxn<'_>,
    tables: &mut HashMap<String, Database>,
    body: &[u8],
    totals: &mut Totals,
) -> Result<(), Error> {
    let mut named: HashMap<u8, Database> = HashMap::new();
    let unnamed = || Error::DamagedLog("a change names no table".to_owned());
    for change in ChangesIn(body) {
        match change? {
            LoggedChange::Name { table, name } => {
                named.insert(table, open_table(generation, txn, tables, name)?);
            }
            LoggedChange::Put { table, key, value } => {
                let database = named.get(&table).ok_or_else(unnamed)?;
                record::decode(key, value)?;
                remove(database, txn, key, totals)?;
                database.put(txn, key, value)?;
                totals.add(value);
            }
            LoggedChange::Remove { table, key } => {
                let database = named.get(&table).ok_or_else(unnamed)?;
                remove(database, txn, key, totals)?;
            }
        }
    }
    Ok(())
}

fn remove(database: &Database, txn: &mut RwTxn<'_>, key: &[u8], totals: &mut Totals) -> Result<(), Error> {
    let Some(old) = database.get(txn, key)? else { return Ok(()) };
    if totals.records == 0 {
        return Err(Error::DamagedLog("its changes do not fit the totals of the checkpoint".to_owned()));
    }
    totals.subtract(old);
    database.delete(txn, key)?;
    Ok(())
}
