//! Compaction of an environment that nobody has open: a copy without its free pages takes its place.
//!
//! LMDB never makes its data file shorter; pages freed by a mass deletion wait in it for new records. The copy is made in
//! the folder `compact` beside the data file, flushed, opened, and compared with the original record by record; then it is
//! renamed over it, and the name is flushed. A crash before the rename leaves the original, and a folder that the next
//! opening removes; a crash after it leaves the copy. The environment's records, totals included, stay the same.

use crate::environment::{Environment, EnvironmentOptions};
use crate::limits::{COMPACTION_GAIN_MIN, TABLES_MAX};
use crate::txn::{TOTALS_TABLE, Totals};
use crate::{Error, record};
use heed::types::{Bytes, Str};
use heed::{CompactionOption, Database, RoTxn};
use std::fs::File;
use std::path::Path;

/// Folder of an unfinished copy, in the environment's folder.
const FOLDER: &str = "compact";
const DATA: &str = "data.mdb";

/// How a compaction is done.
#[derive(Clone, Copy, Debug)]
pub struct CompactOptions {
    /// Address space of the map, as when the environment is opened.
    pub map_bytes: usize,
    /// Written space that the copy gets behind its last page, see [`Environment::extend`].
    pub headroom_bytes: u64,
    /// Free bytes of the file system, which the copy must fit into.
    pub available_bytes: u64,
}

/// What a compaction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// Bytes of the data file before.
    pub bytes_before: u64,
    /// Bytes of the data file now; as before when there was little to gain.
    pub bytes_after: u64,
    /// Records; all of them were read and checked if a copy was made.
    pub records: u64,
}

/// Removes what an interrupted compaction left.
pub(crate) fn remove_unfinished(folder: &Path) -> Result<(), Error> {
    match std::fs::remove_dir_all(folder.join(FOLDER)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::Io(error)),
        _ => Ok(()),
    }
}

/// Compacts the environment in `folder`, which no one may have open.
///
/// # Errors
/// [`Error::NoRoom`] when the copy would not fit; [`Error::Corrupt`] when a record's check, or the totals, are wrong, for a
/// damaged environment is to be repaired first; and what LMDB and the file system answer. The environment is as it was.
pub fn compact(folder: &Path, options: CompactOptions) -> Result<Compaction, Error> {
    let opening = EnvironmentOptions { map_bytes: options.map_bytes, tables_max: TABLES_MAX };
    let original = Environment::open(folder, opening)?;
    let copied = copy_beside(folder, &original, opening, options);
    original.close();
    let Ok(Compaction { bytes_before, bytes_after, .. }) = copied else {
        remove_unfinished(folder)?;
        return copied;
    };
    if bytes_after < bytes_before {
        std::fs::rename(folder.join(FOLDER).join(DATA), folder.join(DATA)).map_err(Error::Io)?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::Io)?;
    }
    remove_unfinished(folder)?;
    copied
}

/// Makes, checks and flushes the copy; none when there is little to gain.
fn copy_beside(
    folder: &Path,
    original: &Environment,
    opening: EnvironmentOptions,
    options: CompactOptions,
) -> Result<Compaction, Error> {
    let bytes_before = length(folder)?;
    let needed = original.live_bytes()?.saturating_add(options.headroom_bytes);
    if bytes_before.saturating_sub(needed) < COMPACTION_GAIN_MIN {
        let records = original.read()?.totals(original)?.records;
        return Ok(Compaction { bytes_before, bytes_after: bytes_before, records });
    }
    if needed > options.available_bytes {
        return Err(Error::NoRoom { needed, available: options.available_bytes });
    }
    let copy = folder.join(FOLDER);
    std::fs::create_dir(&copy).map_err(Error::Io)?;
    let mut file = File::create_new(copy.join(DATA)).map_err(Error::Io)?;
    original.env.copy_to_file(&mut file, CompactionOption::Enabled)?;
    let copied = Environment::open(&copy, opening)?;
    let compared = compare(original, &copied).and_then(|totals| {
        copied.extend(options.headroom_bytes)?;
        Ok(totals)
    });
    copied.close();
    let records = compared?.records;
    file.sync_all().map_err(Error::Io)?;
    Ok(Compaction { bytes_before, bytes_after: length(&copy)?, records })
}

/// Checks every record of every table, that both have the same, byte for byte, and that the totals are theirs.
fn compare(original: &Environment, copied: &Environment) -> Result<Totals, Error> {
    let (read, read_copy) = (original.read()?, copied.read()?);
    let tables = table_names(original, &read.txn)?;
    let corrupt = |key: &str, what| Error::Corrupt { key: key.to_owned(), what };
    if tables != table_names(copied, &read_copy.txn)? {
        return Err(corrupt("the tables", "the copy has others"));
    }
    let mut counted = Totals::default();
    for name in tables {
        let (table, table_copy) = (table(original, &read.txn, &name)?, table(copied, &read_copy.txn, &name)?);
        let mut copies = table_copy.iter(&read_copy.txn)?;
        for item in table.iter(&read.txn)? {
            let (key, value) = item?;
            record::open(key, value)?;
            if copies.next().transpose()? != Some((key, value)) {
                return Err(corrupt(&name, "the copy differs from it"));
            }
            if name != TOTALS_TABLE {
                counted.records += 1;
                counted.hash = counted.hash.wrapping_add(record::stored_check(value));
            }
        }
        if copies.next().is_some() {
            return Err(corrupt(&name, "the copy has more records"));
        }
    }
    if read.totals(original)? != counted {
        return Err(corrupt(TOTALS_TABLE, "they do not fit the records"));
    }
    Ok(counted)
}

/// Names of all tables, those that this program does not know included.
fn table_names(environment: &Environment, txn: &RoTxn<'_>) -> Result<Vec<String>, Error> {
    let unnamed: Option<Database<Str, Bytes>> = environment.env.open_database(txn, None)?;
    let mut names = Vec::new();
    for item in unnamed.iter().flat_map(|table| table.iter(txn)).flatten() {
        names.push(item?.0.to_owned());
    }
    Ok(names)
}

fn table(environment: &Environment, txn: &RoTxn<'_>, name: &str) -> Result<Database<Bytes, Bytes>, Error> {
    let found = environment.env.open_database(txn, Some(name))?;
    found.ok_or_else(|| Error::Lmdb(format!("{name} is no table")))
}

fn length(folder: &Path) -> Result<u64, Error> {
    Ok(std::fs::metadata(folder.join(DATA)).map_err(Error::Io)?.len())
}

#[cfg(test)]
mod tests {
    use super::{COMPACTION_GAIN_MIN, CompactOptions, compact};
    use crate::{Environment, EnvironmentOptions, Error, Table};
    use std::path::Path;

    const OPTIONS: CompactOptions =
        CompactOptions { map_bytes: 1 << 30, headroom_bytes: 1 << 20, available_bytes: u64::MAX };

    fn open(folder: &Path) -> (Environment, Table) {
        let options = EnvironmentOptions { map_bytes: 1 << 30, tables_max: 4 };
        let environment = Environment::open(folder, options).expect("opens");
        let table = environment.table("t").expect("a table");
        (environment, table)
    }

    /// An environment of 16 MiB, of which one record in a hundred is left.
    fn mass_deletion(folder: &Path) {
        let (environment, table) = open(folder);
        for change in [true, false] {
            let mut txn = environment.write().expect("writes");
            for n in 0..4000u32 {
                if change {
                    txn.put(table, &n.to_be_bytes(), 1, &[n.to_be_bytes()[3]; 3000], b"tail").expect("puts");
                } else if n % 100 != 0 {
                    txn.remove(table, &n.to_be_bytes()).expect("removes");
                }
            }
            txn.commit().expect("commits");
        }
        environment.close();
    }

    fn is_whole(folder: &Path) {
        let (environment, table) = open(folder);
        {
            let read = environment.read().expect("reads");
            assert_eq!(read.count(&[table]).expect("whole"), read.totals(&environment).expect("totals"));
            assert_eq!(read.totals(&environment).expect("totals").records, 40);
            let record = read.get(table, &3900u32.to_be_bytes()).expect("reads").expect("there");
            assert_eq!((record.body, record.tail), (&[60; 3000][..], &b"tail"[..]));
        }
        let mut txn = environment.write().expect("writes");
        txn.put(table, b"after", 1, b"", b"").expect("puts");
        txn.commit().expect("commits");
        let mut txn = environment.write().expect("writes");
        assert!(txn.remove(table, b"after").expect("removes"));
        txn.commit().expect("commits");
        environment.close();
    }

    #[test]
    fn the_space_of_a_mass_deletion_comes_back_and_all_that_was_left_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        mass_deletion(folder.path());
        let done = compact(folder.path(), OPTIONS).expect("compacts");
        assert!(done.bytes_before > 12 << 20 && done.bytes_after < 2 << 20, "{done:?}");
        assert_eq!(done.records, 40);
        assert!(!folder.path().join("compact").exists());
        let (environment, _) = open(folder.path());
        assert!(environment.headroom() >= OPTIONS.headroom_bytes);
        environment.close();
        is_whole(folder.path());
        let again = compact(folder.path(), OPTIONS).expect("compacts");
        assert_eq!(again.bytes_before, again.bytes_after, "there is nothing to gain");
    }

    #[test]
    fn a_copy_that_would_not_fit_is_refused_with_both_figures_and_nothing_is_left_of_it() {
        let folder = tempfile::tempdir().expect("a folder");
        mass_deletion(folder.path());
        let refused = compact(folder.path(), CompactOptions { available_bytes: 1 << 20, ..OPTIONS });
        assert!(matches!(refused, Err(Error::NoRoom { needed, available: 1_048_576 }) if needed > 1 << 20));
        assert!(!folder.path().join("compact").exists());
        is_whole(folder.path());
    }

    /// One bit of a record flipped in the file: a compact copy would carry it on, under totals that are then wrong too.
    #[test]
    fn a_damaged_environment_is_not_compacted() {
        let folder = tempfile::tempdir().expect("a folder");
        mass_deletion(folder.path());
        let data = folder.path().join("data.mdb");
        let mut bytes = std::fs::read(&data).expect("reads");
        // All copies of a record that is still there: the body of key 3900 is 60s.
        for at in 0..bytes.len() - 3000 {
            if bytes[at..at + 3000] == [60; 3000] {
                bytes[at + 1000] ^= 1;
            }
        }
        std::fs::write(&data, &bytes).expect("writes");
        assert!(matches!(compact(folder.path(), OPTIONS), Err(Error::Corrupt { .. })));
        assert!(!folder.path().join("compact").exists());
        assert_eq!(std::fs::metadata(&data).expect("a file").len(), bytes.len() as u64);
    }

    /// What each moment of a compaction leaves when the process ends there.
    #[test]
    fn a_crash_at_any_moment_leaves_a_good_environment_and_no_copy() {
        let scratch = tempfile::tempdir().expect("a folder");
        mass_deletion(scratch.path());
        let original = std::fs::read(scratch.path().join("data.mdb")).expect("reads");
        compact(scratch.path(), OPTIONS).expect("compacts");
        let copy = std::fs::read(scratch.path().join("data.mdb")).expect("reads");
        let moments: [(&[u8], Option<&[u8]>); 5] = [
            (&original, None),
            (&original, Some(&[])),
            (&original, Some(&copy[..copy.len() / 2])),
            (&original, Some(&copy)),
            (&copy, None),
        ];
        for (data, beside) in moments {
            let folder = tempfile::tempdir().expect("a folder");
            std::fs::write(folder.path().join("data.mdb"), data).expect("writes");
            std::fs::create_dir(folder.path().join("compact")).expect("a folder");
            if let Some(beside) = beside {
                std::fs::write(folder.path().join("compact/data.mdb"), beside).expect("writes");
            }
            is_whole(folder.path());
            assert!(!folder.path().join("compact").exists());
            let done = compact(folder.path(), OPTIONS).expect("compacts");
            assert!(done.bytes_after < COMPACTION_GAIN_MIN, "{done:?}");
            is_whole(folder.path());
        }
    }
}
