//! The changes in the commit log of a damaged environment.

use crate::limits::LOG_BLOCK_BYTES;
use crate::log::checkpoint_slot::Checkpoint;
use crate::log::log_file::LOG_FILE;
use crate::log::log_record::{ChangesIn, LOG_HEAD_BYTES, LogHead, LoggedChange, is_record};
use crate::log_position::LogId;
use crate::record;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Blocks that are looked at together (1 MiB).
const PIECE_BYTES: usize = 1 << 20;

/// The values that the log gives to the keys of one table. `None` if a key was removed.
pub(super) type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// The changes of tables that the log has and the data file does not.
#[derive(Default)]
pub(super) struct LoggedTables {
    pub(super) tables: HashMap<String, Changes>,
    /// The faults of the log.
    pub(super) faults: Vec<String>,
}

/// A record of the file, whole or torn.
struct Found {
    log: LogId,
    sequence: u64,
    offset: u64,
    body: Option<Vec<u8>>,
}

/// Reads the log in a folder. With a checkpoint, what follows it; without one, the last unbroken sequence of records.
pub(super) fn read(folder: &Path, checkpoint: Option<&Checkpoint>) -> LoggedTables {
    let mut logged = LoggedTables::default();
    let found = match File::open(folder.join(LOG_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if checkpoint.is_some() {
                logged
                    .faults
                    .push("the commit log is missing: changes since the checkpoint are lost".to_owned());
            }
            return logged;
        }
        opened => opened.and_then(|file| records_of(&file)),
    };
    let mut found = match found {
        Ok(found) => found,
        Err(error) => {
            logged.faults.push(format!("the commit log cannot be read: {error}"));
            return logged;
        }
    };
    let last = found.iter().max_by_key(|record| record.sequence).map(|record| record.log);
    let Some(log) = checkpoint.map(|checkpoint| checkpoint.log).or(last) else { return logged };
    found.retain(|record| record.log == log);
    found.sort_by_key(|record| record.sequence);
    found.dedup_by_key(|record| record.sequence);
    let first = match checkpoint {
        Some(checkpoint) => checkpoint.next.sequence,
        None => unbroken_from(&found),
    };
    let mut next = first;
    for record in found.iter().filter(|record| record.sequence >= first) {
        if record.sequence > next {
            logged.faults.push(format!("the commit log lacks records {next} to {}", record.sequence - 1));
        }
        next = record.sequence + 1;
        match &record.body {
            Some(body) => apply(body, record.sequence, &mut logged),
            None => logged.faults.push(format!(
                "record {} of the commit log, at byte {}, is damaged, or was never completed",
                record.sequence, record.offset
            )),
        }
    }
    logged
}

/// Returns the first sequence of the records that follow each other up to the last one.
fn unbroken_from(found: &[Found]) -> u64 {
    let mut first = found.last().map_or(0, |record| record.sequence);
    for record in found.iter().rev() {
        if record.body.is_none() || record.sequence + 1 < first {
            break;
        }
        first = record.sequence;
    }
    first
}

/// Finds all records of a file.
fn records_of(file: &File) -> io::Result<Vec<Found>> {
    let length = file.metadata()?.len();
    let mut found = Vec::new();
    let mut piece = vec![0; PIECE_BYTES];
    let mut at = 0;
    while at < length {
        let count = usize::try_from(length - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        file.read_exact_at(&mut piece[..count], at)?;
        for (offset, block) in (at..).step_by(LOG_BLOCK_BYTES).zip(piece[..count].chunks(LOG_BLOCK_BYTES)) {
            found.extend(record_at(file, block, offset, length));
        }
        at += count as u64;
    }
    Ok(found)
}

fn record_at(file: &File, block: &[u8], offset: u64, length: u64) -> Option<Found> {
    let log = LogId(*block.get(8..)?.first_chunk().filter(|_| is_record(block))?);
    let head = LogHead::decode(block, log)?;
    let bytes = head.file_bytes();
    let body = (bytes >= LOG_HEAD_BYTES && bytes as u64 <= length - offset).then(|| {
        let mut record = vec![0; bytes];
        file.read_exact_at(&mut record, offset).ok()?;
        head.body_of(&record).map(<[u8]>::to_vec)
    });
    Some(Found { log, sequence: head.sequence, offset, body: body.flatten() })
}

/// Adds the changes of one record.
fn apply(body: &[u8], sequence: u64, logged: &mut LoggedTables) {
    let mut names: HashMap<u8, String> = HashMap::new();
    for change in ChangesIn(body) {
        let change = match change {
            Ok(LoggedChange::Name { table, name }) => {
                names.insert(table, name.to_owned());
                continue;
            }
            Ok(LoggedChange::Put { table, key, value }) => {
                record::decode(key, value).is_ok().then(|| (table, key, Some(value.to_vec())))
            }
            Ok(LoggedChange::Remove { table, key }) => Some((table, key, None)),
            Err(_) => None,
        };
        match change.and_then(|(table, key, value)| Some((names.get(&table)?, key, value))) {
            Some((name, key, value)) => {
                logged.tables.entry(name.clone()).or_default().insert(key.to_vec(), value);
            }
            None => logged.faults.push(format!("a change in record {sequence} of the commit log is invalid")),
        }
    }
}
