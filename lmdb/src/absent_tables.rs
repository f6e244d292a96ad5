//! Tables that are only created when they are needed.
//!
//! A program of an earlier version refuses to compact an open environment that has a table which it does not know. So a table
//! that a later format version has is absent until the store is upgraded. Whoever reads it finds it empty.

use crate::compact::table_names;
use crate::environment::Environment;
use crate::error::Error;
use crate::table::Table;

impl Environment {
    /// Gives the table `name` a number, without creating it. If it is absent, it is empty to all who read it, until
    /// [`Environment::create_table`].
    ///
    /// # Errors
    /// Those of LMDB.
    pub fn table_if_present(&self, name: &str) -> Result<Table, Error> {
        if table_names(&self.current.get(), &self.read()?)?.iter().any(|found| found == name) {
            return self.table(name);
        }
        let mut tables = self.lock_tables();
        let table = Table(u8::try_from(tables.len()).map_err(|_| Error::Lmdb("too many tables".to_owned()))?);
        tables.push(name.to_owned());
        Ok(table)
    }

    /// Creates a table that is absent. Transactions that began before do not see it. Waits for the end of a compaction.
    ///
    /// # Errors
    /// Those of LMDB.
    pub fn create_table(&self, table: Table) -> Result<(), Error> {
        let tables = self.lock_tables();
        let generation = self.current.get();
        if generation.database(table).is_some() {
            return Ok(());
        }
        generation.open_table(table, &tables[table.index()])
    }
}

#[cfg(test)]
mod tests {
    use crate::{Environment, EnvironmentOptions, OpenCompactOptions};

    const OPTIONS: EnvironmentOptions = EnvironmentOptions { map_bytes: 1 << 30, tables_max: 4 };

    fn compact(environment: &Environment) {
        let proceed = |_| true;
        // More than the gain from which on a compaction does something.
        environment.extend(64 << 20).expect("extends");
        let options = OpenCompactOptions { headroom_bytes: 0, available_bytes: u64::MAX, proceed: &proceed };
        environment.compact(&options).expect("compacts");
    }

    /// The tables of a later version were created at each start. So the program of the day before could not compact the store.
    #[test]
    fn absent_table_is_empty_until_it_is_created() {
        let folder = tempfile::tempdir().expect("a folder");
        let environment = Environment::open(folder.path(), OPTIONS).expect("opens");
        let (first, later) = (environment.table("first"), environment.table_if_present("later"));
        let (first, later) = (first.expect("a table"), later.expect("a number"));
        let last = environment.table("last").expect("a table");
        let mut txn = environment.write().expect("writes");
        txn.put(last, b"k", 1, b"body", b"").expect("puts");
        assert!(txn.get(later, b"k").expect("reads").is_none());
        assert!(!txn.remove(later, b"k").expect("removes nothing"));
        txn.commit().expect("commits");
        compact(&environment);
        let before = environment.read().expect("reads");
        environment.create_table(later).expect("creates");
        assert!(before.get(later, b"k").expect("reads").is_none());
        assert!(before.scan(later, b"").expect("scans").next().is_none());
        assert_eq!(before.count(later).expect("counts"), 0);
        drop(before);
        let mut txn = environment.write().expect("writes");
        txn.put(later, b"k", 1, b"imported", b"").expect("puts");
        txn.commit().expect("commits");
        compact(&environment);
        let txn = environment.read().expect("reads");
        assert_eq!(txn.get(later, b"k").expect("reads").expect("is there").body, b"imported");
        assert_eq!(txn.get(last, b"k").expect("reads").expect("is there").body, b"body");
        assert_eq!(txn.compute_totals(&[first, later, last]).expect("adds up"), txn.totals().expect("reads"));
        drop(txn);
        environment.close();
        let environment = Environment::open(folder.path(), OPTIONS).expect("opens");
        let found = environment.table_if_present("later").expect("it is there");
        assert!(environment.read().expect("reads").get(found, b"k").expect("reads").is_some());
    }
}
