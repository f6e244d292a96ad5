//! Gives up a commit log that is missing or damaged.
//!
//! An opening refuses such a log, because acknowledged changes are missing. If there is no backup, the environment can continue
//! with the last checkpoint and the records before the damage. What later records hold is not applied: each record relies on
//! all records before it. They stay in a copy of the log.

use crate::environment::{EnvironmentOptions, Recovered, remove_unfinished_compactions};
use crate::error::Error;
use crate::folder::flush_folder;
use crate::generation::{DATA_FILE, Generation};
use crate::log::checkpoint_slot::Checkpoint;
use crate::log::faults::LogFaults;
use crate::log::log_file::{LOG_FILE, LogFile, remove_log};
use crate::log::log_record::{ChangesIn, LoggedChange};
use crate::log::recovery::{check_log_is_there, read_checkpoint, restore_checkpoint};
use crate::log_position::Position;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most copies of damaged logs in one folder.
const COPIES_MAX: u32 = 100;

/// A damaged commit log: why it is refused, and what giving it up keeps and loses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedLog {
    /// The damage.
    pub what: String,
    /// Records before the damage, which are applied to the last checkpoint.
    pub kept: u64,
    /// Whole records after the damage, which are lost in addition to what is damaged. Each has the changes of one transaction.
    /// `None` if it is unknown what the log had.
    pub lost: Option<u64>,
}

/// The damage of a log, and its place.
struct Damage {
    checkpoint: Checkpoint,
    /// The place of the first record that cannot be applied.
    end: Position,
    log: DamagedLog,
}

/// Called with the name of the table and the key of a change that is lost.
type LostChange<'c> = dyn FnMut(&str, &[u8]) + 'c;

/// Returns what is wrong with the commit log of the environment in `folder`, which must not be open. `None` if an opening would
/// accept it. Changes nothing.
///
/// Calls `lost` with the table and the key of each change in the records that are lost, in no certain order. The changes of the
/// damaged record itself are unknown.
///
/// # Errors
/// [`Error::DamagedLog`] if the data file has no checkpoint with which it could continue; [`Error::Io`].
pub fn examine_log(folder: &Path, lost: &mut LostChange<'_>) -> Result<Option<DamagedLog>, Error> {
    Ok(find_damage(folder, lost)?.map(|damage| damage.log))
}

/// Gives up a damaged commit log: applies the records before the damage, durably, and removes the log. A copy of it is kept as
/// `commit.log.damaged-<n>`. Calls `lost`, and returns, as [`examine_log`] does. Does nothing if the log is not damaged.
///
/// After a crash at any moment, it can be called again.
///
/// # Errors
/// As [`examine_log`]; [`Error::Truncated`] if the data file is shorter than its checkpoint; [`Error::DamagedLog`] if the
/// records before the damage do not fit the checkpoint; otherwise those of LMDB and of the file system.
pub fn discard_log(
    folder: &Path,
    options: EnvironmentOptions,
    lost: &mut LostChange<'_>,
) -> Result<Option<DamagedLog>, Error> {
    let Some(Damage { checkpoint, end, log }) = find_damage(folder, lost)? else { return Ok(None) };
    remove_unfinished_compactions(folder)?;
    let data = File::options().read(true).write(true).open(folder.join(DATA_FILE)).map_err(Error::Io)?;
    restore_checkpoint(&data, &checkpoint, &LogFaults::default())?;
    let generation = Arc::new(Generation::open(folder, options)?);
    let recovered = Recovered::from_log(folder, &generation, checkpoint, Some(end))?;
    // Until the next step is done, another attempt finds the same.
    keep_copy(folder).map_err(Error::Io)?;
    recovered.give_log_up(&generation)?;
    Generation::close(generation);
    remove_log(folder).map_err(Error::Io)?;
    Ok(Some(log))
}

fn find_damage(folder: &Path, lost: &mut LostChange<'_>) -> Result<Option<Damage>, Error> {
    let data = File::open(folder.join(DATA_FILE)).map_err(Error::Io)?;
    let checkpoint = read_checkpoint(folder, &data)?;
    let Some(checkpoint) = checkpoint.filter(|checkpoint| checkpoint.is_active) else { return Ok(None) };
    let nothing_kept = |what| {
        let log = DamagedLog { what, kept: 0, lost: None };
        Damage { checkpoint, end: checkpoint.next, log }
    };
    match check_log_is_there(folder, &checkpoint) {
        Err(Error::DamagedLog(what)) => return Ok(Some(nothing_kept(what))),
        checked => checked?,
    }
    let mut file = LogFile::open_to_read(folder).map_err(Error::Io)?;
    let mut end = checkpoint.next;
    let what = loop {
        match file.find(checkpoint.log, end) {
            Ok(Some(record)) => end = record.next,
            Ok(None) => return Ok(None),
            Err(Error::DamagedLog(what)) => break what,
            Err(error) => return Err(error),
        }
    };
    let kept = end.sequence - checkpoint.next.sequence;
    let mut count = 0;
    file.later_records(checkpoint.log, end.sequence, |record| {
        count += 1;
        name_changes(&record.body, lost);
        ControlFlow::Continue(())
    })?;
    Ok(Some(Damage { checkpoint, end, log: DamagedLog { what, kept, lost: Some(count) } }))
}

/// Calls `lost` with each change of a record, as far as its body is valid.
fn name_changes(body: &[u8], lost: &mut LostChange<'_>) {
    let mut tables = BTreeMap::new();
    for change in ChangesIn(body).map_while(Result::ok) {
        match change {
            LoggedChange::Name { table, name } => drop(tables.insert(table, name)),
            LoggedChange::Put { table, key, .. } | LoggedChange::Remove { table, key } => {
                lost(tables.get(&table).copied().unwrap_or_default(), key);
            }
        }
    }
}

/// Copies the log to a new name in its folder, durably. Does nothing if it is missing.
fn keep_copy(folder: &Path) -> io::Result<()> {
    let mut log = match File::open(folder.join(LOG_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let name = |number| folder.join(format!("{LOG_FILE}.damaged-{number}"));
    let create = |path: PathBuf| match File::create_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
        created => Some(created),
    };
    let too_many = || Err(io::Error::other("there are too many copies of damaged commit logs: remove some"));
    let mut copy = (1..=COPIES_MAX).find_map(|number| create(name(number))).unwrap_or_else(too_many)?;
    io::copy(&mut log, &mut copy)?;
    copy.sync_all()?;
    flush_folder(folder)
}

#[cfg(test)]
mod tests {
    use super::DamagedLog;
    use crate::log::checkpoint_slot::Checkpoint;
    use crate::log::faults::LogFaults;
    use crate::log::log_record::LogHead;
    use crate::{Environment, EnvironmentOptions, Error, FlushFailures, LogOptions};
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::path::Path;

    const OPTIONS: EnvironmentOptions = EnvironmentOptions { map_bytes: 1 << 30, tables_max: 2 };
    const LOG: LogOptions = LogOptions { bytes_max: 1 << 20, checkpoint_bytes: 1 << 30 };

    type Values = BTreeMap<u8, u8>;

    fn examine_log(folder: &Path) -> Result<Option<DamagedLog>, Error> {
        super::examine_log(folder, &mut |_, _| ())
    }

    fn discard_log(folder: &Path, options: EnvironmentOptions) -> Result<Option<DamagedLog>, Error> {
        super::discard_log(folder, options, &mut |_, _| ())
    }

    fn commit(environment: &Environment, key: u8, value: u8) {
        let table = environment.table("t").expect("a table");
        let mut txn = environment.write().expect("begins");
        txn.put(table, &[key], 1, &[value], &[]).expect("puts");
        txn.commit().expect("commits");
    }

    fn values(environment: &Environment) -> Values {
        let table = environment.table("t").expect("a table");
        let read = environment.read().expect("reads");
        let found = read.scan(table, &[]).expect("scans").map(|item| {
            let (key, record) = item.expect("valid");
            (key[0], record.body[0])
        });
        let values = found.collect();
        assert_eq!(read.compute_totals(&[table]).expect("valid"), read.totals().expect("totals"));
        values
    }

    /// Makes an environment with the keys 0 to 3 in its checkpoint, and 4 to 9 in a record each, as a crash leaves it.
    fn make(folder: &Path) {
        let environment =
            Environment::open_log(folder, OPTIONS, LOG, &FlushFailures::default(), LogFaults::default())
                .expect("opens");
        (0..4).for_each(|key| commit(&environment, key, 1));
        environment.checkpoint().expect("makes a checkpoint");
        (4..10).for_each(|key| commit(&environment, key, 1));
        drop(environment);
    }

    /// Flips a bit in the n-th record after the checkpoint.
    fn damage(folder: &Path, n: u64) {
        let data = File::open(folder.join("data.mdb")).expect("opens");
        let checkpoint = Checkpoint::read(&data).expect("reads").expect("there is one");
        let path = folder.join("commit.log");
        let mut log = std::fs::read(&path).expect("reads");
        let wanted = |at: &usize| {
            LogHead::decode(&log[*at..], checkpoint.log)
                .is_some_and(|head| head.sequence == checkpoint.next.sequence + n)
        };
        let at = (0..log.len()).step_by(4096).find(wanted).expect("the record is there");
        log[at + 70] ^= 1;
        std::fs::write(path, log).expect("writes");
    }

    fn expect_refused(folder: &Path) {
        let refused = Environment::open_with_log(folder, OPTIONS, LOG, &FlushFailures::default());
        assert!(matches!(refused, Err(Error::DamagedLog(_))), "{refused:?}");
    }

    /// Opens the environment with a log and without one, and goes on to use it.
    fn expect_usable(folder: &Path, mut expected: Values) {
        for round in 0..4 {
            let environment = if round % 2 == 0 {
                Environment::open_with_log(folder, OPTIONS, LOG, &FlushFailures::default()).expect("opens")
            } else {
                Environment::open(folder, OPTIONS).expect("opens")
            };
            assert_eq!(values(&environment), expected);
            commit(&environment, 100 + round, round);
            expected.insert(100 + round, round);
            environment.close();
        }
    }

    #[test]
    fn what_precedes_the_damage_is_kept() {
        for damaged in 0..5 {
            let folder = tempfile::tempdir_in(".").expect("a folder");
            make(folder.path());
            damage(folder.path(), damaged);
            let before = std::fs::read(folder.path().join("commit.log")).expect("reads");
            expect_refused(folder.path());
            let found = examine_log(folder.path()).expect("examines").expect("it is damaged");
            assert_eq!((found.kept, found.lost), (damaged, Some(5 - damaged)), "{found:?}");
            assert!(found.what.contains("is damaged or missing"), "{found:?}");
            expect_refused(folder.path());
            assert_eq!(discard_log(folder.path(), OPTIONS).expect("discards"), Some(found));
            assert_eq!(examine_log(folder.path()).expect("examines"), None);
            let copy = std::fs::read(folder.path().join("commit.log.damaged-1")).expect("a copy is kept");
            assert_eq!(copy, before);
            let kept = 4 + u8::try_from(damaged).expect("small");
            expect_usable(folder.path(), (0..kept).map(|key| (key, 1)).collect());
        }
    }

    #[test]
    fn the_changes_after_the_damage_are_named() {
        let folder = tempfile::tempdir_in(".").expect("a folder");
        make(folder.path());
        damage(folder.path(), 2);
        let mut lost = Vec::new();
        super::examine_log(folder.path(), &mut |table, key| lost.push((table.to_owned(), key.to_vec())))
            .expect("examines");
        // Key 6 is in the damaged record.
        assert_eq!(lost, [7, 8, 9].map(|key| ("t".to_owned(), vec![key])));
    }

    #[test]
    fn the_checkpoint_is_kept_when_the_log_is_missing_or_belongs_to_another_environment() {
        for is_foreign in [false, true] {
            let (folder, other) =
                (tempfile::tempdir_in(".").expect("a folder"), tempfile::tempdir_in(".").expect("a folder"));
            make(folder.path());
            make(other.path());
            let log = folder.path().join("commit.log");
            std::fs::remove_file(&log).expect("removes");
            if is_foreign {
                std::fs::copy(other.path().join("commit.log"), &log).expect("copies");
            }
            expect_refused(folder.path());
            let DamagedLog { kept, lost, .. } =
                discard_log(folder.path(), OPTIONS).expect("discards").expect("it is damaged");
            assert_eq!((kept, lost), (0, None));
            assert_eq!(folder.path().join("commit.log.damaged-1").exists(), is_foreign);
            expect_usable(folder.path(), (0..4).map(|key| (key, 1)).collect());
        }
    }

    #[test]
    fn a_log_that_an_opening_accepts_stays() {
        let folder = tempfile::tempdir_in(".").expect("a folder");
        make(folder.path());
        // The last record: a write that was never acknowledged would look the same.
        damage(folder.path(), 5);
        let before = std::fs::read(folder.path().join("commit.log")).expect("reads");
        assert_eq!(discard_log(folder.path(), OPTIONS).expect("examines"), None);
        assert_eq!(std::fs::read(folder.path().join("commit.log")).expect("reads"), before);
        expect_usable(folder.path(), (0..9).map(|key| (key, 1)).collect());
        assert_eq!(discard_log(folder.path(), OPTIONS).expect("examines"), None, "nothing is left to apply");
    }

    #[test]
    fn records_without_a_checkpoint_stay_refused() {
        let folder = tempfile::tempdir_in(".").expect("a folder");
        make(folder.path());
        let path = folder.path().join("data.mdb");
        let mut data = std::fs::read(&path).expect("reads");
        for page in [0, 4096] {
            data[page + 2048] ^= 1;
        }
        std::fs::write(&path, &data).expect("writes");
        assert!(matches!(discard_log(folder.path(), OPTIONS), Err(Error::DamagedLog(_))));
        assert_eq!(std::fs::read(&path).expect("reads"), data, "nothing was changed");
        expect_refused(folder.path());
    }

    /// Whatever was done before a crash, the next attempt completes it.
    #[test]
    fn an_interrupted_attempt_is_repeated() {
        let folder = tempfile::tempdir_in(".").expect("a folder");
        make(folder.path());
        damage(folder.path(), 2);
        let (log, data) = (folder.path().join("commit.log"), folder.path().join("data.mdb"));
        let (log_before, data_before) =
            (std::fs::read(&log).expect("reads"), std::fs::read(&data).expect("reads"));
        discard_log(folder.path(), OPTIONS).expect("discards");
        // The data file is durable before the log is removed.
        std::fs::write(&log, &log_before).expect("writes");
        assert_eq!(discard_log(folder.path(), OPTIONS).expect("discards"), None);
        // And the copy is made before the log counts no more.
        std::fs::write(&data, data_before).expect("writes");
        let found = discard_log(folder.path(), OPTIONS).expect("discards").expect("it is damaged");
        assert_eq!((found.kept, found.lost), (2, Some(3)));
        assert!(folder.path().join("commit.log.damaged-2").exists());
        expect_usable(folder.path(), (0..6).map(|key| (key, 1)).collect());
    }
}
