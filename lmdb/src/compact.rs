//! Offline compaction of an environment: replaces it with a copy that has no free pages.
//!
//! LMDB never shortens its data file. Pages freed by a mass deletion remain in it for new records. The copy is made in
//! the folder `compact` next to the data file. It is flushed, opened and compared with the original, record by record.
//! Then it is renamed over the original, and the rename is flushed. A crash before the rename leaves the original and a
//! folder that the next opening removes. A crash after it leaves the copy. The records and totals of the environment do
//! not change.

use crate::environment::{COMPACTION_FOLDER, Environment, EnvironmentOptions, remove_unfinished_compactions};
use crate::error::Error;
use crate::folder::flush_folder;
use crate::generation::{DATA_FILE, Generation};
use crate::limits::{COMPACTION_GAIN_MIN, TABLES_MAX};
use crate::record;
use crate::table::TOTALS_TABLE;
use crate::totals::Totals;
use crate::txn::ReadTxn;
use heed::types::{Bytes, Str};
use heed::{CompactionOption, Database, RoTxn};
use std::fs::File;
use std::path::Path;

/// Options of a compaction.
#[derive(Clone, Copy, Debug)]
pub struct CompactOptions {
    /// Size of the map in bytes of address space, as when the environment is opened.
    pub map_bytes: usize,
    /// Bytes of written space that the copy gets after its last page; see [`Environment::extend`].
    pub headroom_bytes: u64,
    /// Free bytes of the file system. The copy must fit into them.
    pub available_bytes: u64,
}

/// The result of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// Bytes of the data file before.
    pub bytes_before: u64,
    /// Bytes of the data file now. Unchanged when there was little to gain.
    pub bytes_after: u64,
    /// Number of records. If a copy was made, all of them were verified.
    pub records: u64,
}

/// Compacts the environment in `folder`, which must not be open.
///
/// # Errors
/// [`Error::NoSpaceForCopy`] when the copy would not fit. [`Error::Corrupt`] when a checksum or the totals are wrong: a
/// damaged environment must be repaired first. Otherwise those of LMDB and the file system. The environment is
/// unchanged then.
pub fn compact(folder: &Path, options: CompactOptions) -> Result<Compaction, Error> {
    let opening = EnvironmentOptions { map_bytes: options.map_bytes, tables_max: TABLES_MAX };
    let original = Environment::open(folder, opening)?;
    let copied = copy_beside(folder, &original, opening, options);
    original.close();
    let Ok(Compaction { bytes_before, bytes_after, .. }) = copied else {
        remove_unfinished_compactions(folder)?;
        return copied;
    };
    if bytes_after < bytes_before {
        std::fs::rename(folder.join(COMPACTION_FOLDER).join(DATA_FILE), folder.join(DATA_FILE))
            .map_err(Error::Io)?;
        flush_folder(folder).map_err(Error::Io)?;
    }
    remove_unfinished_compactions(folder)?;
    copied
}

/// Makes, verifies and flushes the copy. Makes none when there is little to gain.
fn copy_beside(
    folder: &Path,
    original: &Environment,
    opening: EnvironmentOptions,
    options: CompactOptions,
) -> Result<Compaction, Error> {
    let bytes_before = length(folder)?;
    let needed = original.current.get().live_bytes()?.saturating_add(options.headroom_bytes);
    if bytes_before.saturating_sub(needed) < COMPACTION_GAIN_MIN {
        let records = original.read()?.totals()?.records;
        return Ok(Compaction { bytes_before, bytes_after: bytes_before, records });
    }
    if needed > options.available_bytes {
        return Err(Error::NoSpaceForCopy { needed, available: options.available_bytes });
    }
    let copy = folder.join(COMPACTION_FOLDER);
    std::fs::create_dir(&copy).map_err(Error::Io)?;
    // The copy reads in the order of keys. A failure shows there.
    let _ = original.read_into_page_cache(|| true);
    let mut file = File::create_new(copy.join(DATA_FILE)).map_err(Error::Io)?;
    original.current.get().env.copy_to_file(&mut file, CompactionOption::Enabled)?;
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

/// Verifies every record of every table, that the copy has the same bytes, and that the totals are right.
fn compare(original: &Environment, copied: &Environment) -> Result<Totals, Error> {
    let (read, read_copy) = (original.read()?, copied.read()?);
    let tables = table_names(&original.current.get(), &read)?;
    let corrupt = |key: &str, what| Error::Corrupt { key: key.to_owned(), what };
    if tables != table_names(&copied.current.get(), &read_copy)? {
        return Err(corrupt("the tables", "the copy has other tables"));
    }
    let mut counted = Totals::default();
    for name in tables {
        let (table, table_copy) = (table(original, &read.txn, &name)?, table(copied, &read_copy.txn, &name)?);
        let mut copies = table_copy.iter(&read_copy.txn)?;
        for item in table.iter(&read.txn)? {
            let (key, value) = item?;
            record::decode(key, value)?;
            if copies.next().transpose()? != Some((key, value)) {
                return Err(corrupt(&name, "the copy differs"));
            }
            if name != TOTALS_TABLE {
                counted.add(value);
            }
        }
        if copies.next().is_some() {
            return Err(corrupt(&name, "the copy has more records"));
        }
    }
    if read.totals()? != counted {
        return Err(corrupt(TOTALS_TABLE, "they do not match the records"));
    }
    Ok(counted)
}

/// Returns the names of all tables, including those that this program does not know.
pub(crate) fn table_names(generation: &Generation, read: &ReadTxn<'_>) -> Result<Vec<String>, Error> {
    let unnamed: Option<Database<Str, Bytes>> = generation.env.open_database(&read.txn, None)?;
    let mut names = Vec::new();
    for item in unnamed.iter().flat_map(|table| table.iter(&read.txn)).flatten() {
        names.push(item?.0.to_owned());
    }
    Ok(names)
}

fn table(environment: &Environment, txn: &RoTxn<'_>, name: &str) -> Result<Database<Bytes, Bytes>, Error> {
    let found = environment.current.get().env.open_database(txn, Some(name))?;
    found.ok_or_else(|| Error::Lmdb(format!("the table {name} is missing")))
}

pub(crate) fn length(folder: &Path) -> Result<u64, Error> {
    Ok(std::fs::metadata(folder.join(DATA_FILE)).map_err(Error::Io)?.len())
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

    /// Makes an environment of 16 MiB in which one record in a hundred is left.
    fn make_with_mass_deletion(folder: &Path) {
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

    /// Checks that all records are left and that the environment can be written.
    fn check_environment(folder: &Path) {
        let (environment, table) = open(folder);
        {
            let read = environment.read().expect("reads");
            assert_eq!(read.compute_totals(&[table]).expect("whole"), read.totals().expect("totals"));
            assert_eq!(read.totals().expect("totals").records, 40);
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
    fn compaction_frees_space_and_keeps_every_record() {
        let folder = tempfile::tempdir().expect("a folder");
        make_with_mass_deletion(folder.path());
        let done = compact(folder.path(), OPTIONS).expect("compacts");
        assert!(done.bytes_before > 12 << 20 && done.bytes_after < 2 << 20, "{done:?}");
        assert_eq!(done.records, 40);
        assert!(!folder.path().join("compact").exists());
        let (environment, _) = open(folder.path());
        assert!(environment.headroom() >= OPTIONS.headroom_bytes);
        environment.close();
        check_environment(folder.path());
        let again = compact(folder.path(), OPTIONS).expect("compacts");
        assert_eq!(again.bytes_before, again.bytes_after, "there is nothing to gain");
    }

    #[test]
    fn a_copy_that_would_not_fit_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        make_with_mass_deletion(folder.path());
        let refused = compact(folder.path(), CompactOptions { available_bytes: 1 << 20, ..OPTIONS });
        assert!(
            matches!(refused, Err(Error::NoSpaceForCopy { needed, available: 1_048_576 }) if needed > 1 << 20)
        );
        assert!(!folder.path().join("compact").exists());
        check_environment(folder.path());
    }

    /// One flipped bit of a record in the file: a compact copy would contain it too, and its totals would be wrong.
    #[test]
    fn a_damaged_environment_is_not_compacted() {
        let folder = tempfile::tempdir().expect("a folder");
        make_with_mass_deletion(folder.path());
        let data = folder.path().join("data.mdb");
        let mut bytes = std::fs::read(&data).expect("reads");
        // All stored copies of the record with key 3900, whose body consists of 60s.
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

    /// The files that a crash at each moment of a compaction leaves.
    #[test]
    fn a_crash_at_any_moment_leaves_a_valid_environment() {
        let scratch = tempfile::tempdir().expect("a folder");
        make_with_mass_deletion(scratch.path());
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
            check_environment(folder.path());
            assert!(!folder.path().join("compact").exists());
            let done = compact(folder.path(), OPTIONS).expect("compacts");
            assert!(done.bytes_after < COMPACTION_GAIN_MIN, "{done:?}");
            check_environment(folder.path());
        }
    }
}
