//! One data file of an environment, opened with LMDB.
//!
//! Compaction of an open environment replaces its generation by another one with the same records. Transactions keep the
//! generation in which they began.

use crate::error::Error;
use crate::flush_failures::FlushFailures;
use crate::limits::{MAP_BYTES_MIN, READ_ATTEMPTS_MAX, READERS_MAX};
use crate::log_position::Position;
use crate::meta_page::{META_BYTES, MetaFields};
use crate::reader_table;
use crate::reading_threads;
use crate::steady_io::cannot_preallocate;
use crate::table::{Database, TOTALS_TABLE, Table};
use cairn_sync::Mutex;
use heed::{Env, EnvFlags, EnvOpenOptions, FlagSetMode, RoTxn, RwTxn, WithTls};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::retry_on_intr;
use std::fs::File;
use std::ops::Deref;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Name of the data file in the folder of an environment.
pub(crate) const DATA_FILE: &str = "data.mdb";

/// The options for opening an environment.
#[derive(Clone, Copy, Debug)]
pub struct EnvironmentOptions {
    /// Size of the map in bytes of address space, not of disk. It is halved, down to 1 GiB, while the system refuses
    /// it.
    pub map_bytes: usize,
    /// Most named tables.
    pub tables_max: u32,
}

/// Bytes that one call reserves at the end of the data file (1 MiB). A full disk still grants what fits.
const RESERVED_PIECE_BYTES: u64 = 1 << 20;

/// Zeros that one write appends to the data file.
static ZEROS: [u8; 1 << 18] = [0; 1 << 18];

/// LMDB's environment. It is closed when this is dropped.
#[derive(Debug)]
pub(crate) struct OpenEnv(Option<Env<WithTls>>);

impl Deref for OpenEnv {
    type Target = Env<WithTls>;

    fn deref(&self) -> &Self::Target {
        self.0.as_ref().expect("it is open until it is dropped")
    }
}

impl Drop for OpenEnv {
    fn drop(&mut self) {
        let Some(env) = self.0.take() else { return };
        reading_threads::close(|| {
            env.prepare_for_closing().wait();
        });
    }
}

/// The state after the last committed transaction, for the next checkpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Committed {
    pub(crate) meta: MetaFields,
    /// The place in the log of the first record that is not part of it.
    pub(crate) next: Position,
}

/// An open data file.
#[derive(Debug)]
pub(crate) struct Generation {
    pub(crate) env: OpenEnv,
    /// The opened tables with their names, by the number in [`Table`].
    databases: Box<[OnceLock<(Database, String)>]>,
    /// Those that are opened, one bit for each number. Set last, so a transaction that begins afterwards can read them.
    opened_tables: AtomicU64,
    pub(crate) data: File,
    /// The same file, to make it longer. The kernel reports a failed write-back once to each open file, and the flushes of
    /// `data` must not miss one.
    extended: File,
    pub(crate) page_bytes: u64,
    /// Length of the data file up to which it is known to be written.
    length: AtomicU64,
    /// Added to LMDB's numbers of transactions (wrapping), so that they continue in the next generation.
    number_offset: AtomicU64,
    /// LMDB's number of the last transaction whose commit has begun.
    last_begun: AtomicUsize,
    /// LMDB's number of the last transaction that is known to be committed.
    last_committed: AtomicUsize,
    /// Set while a log makes commits durable.
    committed: Mutex<Option<Committed>>,
}

/// The kind of space after the last page of a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Headroom {
    /// It is reserved. With a log, a flush of the data file delays nobody.
    Reserved,
    /// Zeros are written, because a flush of space that was never written takes a journal commit of the file system.
    Written,
}

impl Headroom {
    /// Returns the kind for a data file with or without a log.
    pub(crate) const fn with_log(has_log: bool) -> Self {
        if has_log { Self::Reserved } else { Self::Written }
    }
}

impl Generation {
    /// Opens the data file in the folder `path`, or creates it. The table of totals is opened too.
    pub(crate) fn open(path: &Path, options: EnvironmentOptions) -> Result<Self, Error> {
        reader_table::check_room(path).map_err(Error::Io)?;
        let mut map_bytes = options.map_bytes;
        let env = loop {
            let mut open = EnvOpenOptions::new();
            open.map_size(map_bytes).max_readers(READERS_MAX).max_dbs(options.tables_max + 1);
            #[expect(unsafe_code, reason = "heed's function is unsafe, because some flags are")]
            // SAFETY: this flag is advice to the kernel. With readahead, a page that is not in memory would bring its
            // neighbours with it, up to megabytes. That is too much for the random reads of a tree that does not fit into
            // memory. `Environment::read_into_page_cache` is for one that does.
            unsafe {
                open.flags(EnvFlags::NO_READ_AHEAD);
            }
            #[expect(
                unsafe_code,
                reason = "heed's open is unsafe, because the mapped file must not change under the process"
            )]
            // SAFETY: the store's folder is locked against other processes (engine's lock file), this process opens
            // each folder once, and nothing truncates the data file while it is open. A compaction gives its name to
            // another file, but does not touch it.
            let opened = unsafe { open.open(path) };
            match opened {
                Ok(env) => break OpenEnv(Some(env)),
                Err(heed::Error::Io(io))
                    if io.kind() == std::io::ErrorKind::OutOfMemory && map_bytes > MAP_BYTES_MIN =>
                {
                    map_bytes /= 2;
                }
                Err(error) => return Err(error.into()),
            }
        };
        reader_table::move_to_memory(path).map_err(Error::Io)?;
        let data = File::options().read(true).write(true).open(path.join(DATA_FILE)).map_err(Error::Io)?;
        let extended =
            File::options().read(true).write(true).open(path.join(DATA_FILE)).map_err(Error::Io)?;
        let length = AtomicU64::new(data.metadata().map_err(Error::Io)?.len());
        let page_bytes = MetaFields::page_bytes_of(&data).map_err(Error::Io)?;
        let databases = (0..=options.tables_max).map(|_| OnceLock::new()).collect();
        let number_offset = AtomicU64::new(0);
        let last_committed = AtomicUsize::new(env.info().last_txn_id);
        let last_begun = AtomicUsize::new(env.info().last_txn_id);
        let committed = Mutex::new(None);
        let opened = Self {
            env,
            databases,
            opened_tables: AtomicU64::new(0),
            data,
            extended,
            page_bytes,
            length,
            number_offset,
            last_begun,
            last_committed,
            committed,
        };
        opened.open_table(Table::TOTALS, TOTALS_TABLE)?;
        Ok(opened)
    }

    /// Opens a table under its number, or creates it when it is missing.
    pub(crate) fn open_table(&self, table: Table, name: &str) -> Result<(), Error> {
        let place = self.databases.get(table.index()).filter(|_| table.bit() != 0);
        let place = place.ok_or_else(|| Error::Lmdb(format!("no room for the table {name}")))?;
        let mut txn = self.env.write_txn()?;
        let database = self.env.create_database(&mut txn, Some(name))?;
        self.commit(txn, None)?;
        let _ = place.set((database, name.to_owned()));
        self.opened_tables.fetch_or(table.bit(), Ordering::SeqCst);
        Ok(())
    }

    /// Opens the tables that are open in `earlier`, under the same numbers. `names` are those of all numbers.
    pub(crate) fn open_tables_of(&self, earlier: &Self, names: &[String]) -> Result<(), Error> {
        let opened = earlier.opened_tables();
        let numbers = (0..=u8::MAX).map(Table).zip(names);
        let present = numbers.filter(|(table, _)| opened & table.bit() != 0);
        present.into_iter().try_for_each(|(table, name)| self.open_table(table, name))
    }

    /// Returns the opened tables, one bit for each number.
    pub(crate) fn opened_tables(&self) -> u64 {
        self.opened_tables.load(Ordering::SeqCst)
    }

    /// Commits a transaction. With a log, `next` is the place after its record. Without a record the place stays.
    pub(crate) fn commit(&self, txn: RwTxn<'_>, next: Option<Position>) -> Result<(), Error> {
        let id = txn.id();
        // Before the meta page of a transaction is written: see `begin_read`.
        self.last_begun.store(id, Ordering::SeqCst);
        // Held until what is committed is noted, so that a pin finds both or none.
        let mut noted = self.committed.lock();
        txn.commit()?;
        // A transaction without a change leaves its number to the next.
        let last = self.env.info().last_txn_id;
        self.last_begun.store(last, Ordering::SeqCst);
        self.last_committed.store(last, Ordering::Release);
        if let Some(committed) = *noted {
            let next = next.unwrap_or(committed.next);
            // If the roots cannot be read, the transaction is committed all the same. The next checkpoint fails.
            *noted = self.read_meta(last).ok().map(|meta| Committed { meta, next });
        }
        Ok(())
    }

    /// Returns whether the roots of the snapshot `id` cannot have been overwritten: the same meta page is written again by the
    /// transaction after the next.
    pub(crate) fn keeps_roots_of(&self, id: usize) -> bool {
        self.last_begun.load(Ordering::SeqCst) <= id + 1
    }

    fn read_meta(&self, id: usize) -> Result<MetaFields, Error> {
        let meta = MetaFields::read(&self.data, id as u64 & 1, self.page_bytes).map_err(Error::Io)?;
        assert_eq!(
            meta.transaction(),
            id,
            "only one thread commits, and the meta page is that of its transaction"
        );
        Ok(meta)
    }

    /// Begins to read the newest snapshot, and returns what its transaction left.
    ///
    /// # Errors
    /// Those of LMDB, also if no log makes its commits durable.
    pub(crate) fn begin_read_committed(&self) -> Result<(RoTxn<'_, WithTls>, Committed), Error> {
        let committed = self.committed.lock();
        let read = begin_read(self)?;
        let committed =
            committed.ok_or_else(|| Error::Lmdb("no log makes its commits durable".to_owned()))?;
        assert_eq!(committed.meta.transaction(), read.id(), "no transaction is committed meanwhile");
        Ok((read, committed))
    }

    /// Begins to read the newest snapshot, and returns its roots.
    ///
    /// # Errors
    /// Those of LMDB and of reading the data file.
    pub(crate) fn begin_read_with_roots(&self) -> Result<(RoTxn<'_, WithTls>, MetaFields), Error> {
        // Held so that no transaction is committed meanwhile.
        let _none_commits = self.committed.lock();
        let read = begin_read(self)?;
        let roots = self.read_meta(read.id())?;
        Ok((read, roots))
    }

    /// Returns what the last committed transaction left. `None` without a log.
    pub(crate) fn committed(&self) -> Option<Committed> {
        *self.committed.lock()
    }

    /// Leaves it to a log to make commits durable. `next` is the place of the next record. Nobody else may
    /// commit meanwhile.
    pub(crate) fn leave_flushes_to_log(&self, next: Position) -> Result<(), Error> {
        *self.committed.lock() = Some(Committed { meta: self.read_meta(self.last_committed())?, next });
        self.set_no_sync(FlagSetMode::Enable)
    }

    /// Makes no commit durable from now on. For a copy that nobody uses before it is flushed and a log has taken it over.
    pub(crate) fn leave_commits_unflushed(&self) -> Result<(), Error> {
        self.set_no_sync(FlagSetMode::Enable)
    }

    /// Lets LMDB flush each commit. The caller has flushed the earlier ones.
    pub(crate) fn flush_commits(&self) -> Result<(), Error> {
        *self.committed.lock() = None;
        self.set_no_sync(FlagSetMode::Disable)
    }

    fn set_no_sync(&self, mode: FlagSetMode) -> Result<(), Error> {
        #[expect(unsafe_code, reason = "heed's function is unsafe, because unflushed commits can be lost")]
        // SAFETY: the log makes each commit durable before LMDB is told to commit it, and a snapshot that was flushed is kept. A
        // copy is flushed as a whole before it is used.
        unsafe {
            self.env.set_flags(EnvFlags::NO_SYNC, mode)?;
        }
        Ok(())
    }

    /// Returns LMDB's number of the last transaction that is known to be committed.
    pub(crate) fn last_committed(&self) -> usize {
        self.last_committed.load(Ordering::Acquire)
    }

    /// Returns a table, or `None` if it is absent.
    pub(crate) fn database(&self, table: Table) -> Option<&Database> {
        Some(&self.databases.get(table.index())?.get()?.0)
    }

    /// Returns the name of an opened table.
    pub(crate) fn name_of(&self, table: Table) -> String {
        let opened = self.databases.get(table.index()).and_then(OnceLock::get);
        opened.expect("only tables that are present have records").1.clone()
    }

    /// Returns the number of a transaction, from LMDB's own.
    pub(crate) fn number_of(&self, id: usize) -> u64 {
        (id as u64).wrapping_add(self.number_offset.load(Ordering::Relaxed))
    }

    /// Lets the last transaction of this generation have the number `number`.
    pub(crate) fn continue_numbers_from(&self, number: u64) {
        let last = self.last_committed() as u64;
        self.number_offset.store(number.wrapping_sub(last), Ordering::Relaxed);
    }

    /// Returns the number of the last committed transaction.
    pub(crate) fn last_number(&self) -> u64 {
        self.number_of(self.last_committed())
    }

    /// Returns the bytes up to the end of the last used page.
    pub(crate) fn used(&self) -> u64 {
        (self.env.info().last_page_number as u64 + 1) * self.page_bytes
    }

    /// Returns the bytes of the data file after its last used page.
    pub(crate) fn headroom(&self) -> u64 {
        self.length.load(Ordering::Acquire).saturating_sub(self.used())
    }

    /// Returns the bytes of all pages in use. All tables must be open, or fit into [`EnvironmentOptions::tables_max`].
    pub(crate) fn live_bytes(&self) -> Result<u64, Error> {
        // Plus the two meta pages at the start.
        Ok(self.env.non_free_pages_size()? + 2 * self.page_bytes)
    }

    /// See [`crate::Environment::extend`]. Only one thread at a time may call it. A failed flush is counted.
    pub(crate) fn extend(
        &self,
        bytes: u64,
        headroom: Headroom,
        flush_failures: &FlushFailures,
    ) -> Result<(), Error> {
        let end = (self.used() + bytes).next_multiple_of(self.page_bytes);
        let appended = self.append(end, headroom);
        // What was appended before a failure can be used too. On a full disk, deletes need it.
        let length = self.extended.metadata().map_err(heed::Error::Io)?.len();
        flush_failures.counted(self.extended.sync_all()).map_err(heed::Error::Io)?;
        self.length.store(length - length % self.page_bytes, Ordering::Release);
        appended
    }

    /// Makes the data file `end` bytes long.
    fn append(&self, end: u64, headroom: Headroom) -> Result<(), Error> {
        let mut is_reserved = headroom == Headroom::Reserved;
        let mut at = 0;
        while at < end {
            let writer_lock = self.env.write_txn()?;
            at = self.data.metadata().map_err(heed::Error::Io)?.len();
            if is_reserved && at < end {
                let piece = (end - at).min(RESERVED_PIECE_BYTES);
                match retry_on_intr(|| fallocate(&self.extended, FallocateFlags::empty(), at, piece)) {
                    Ok(()) => {
                        at += piece;
                        continue;
                    }
                    Err(error) if cannot_preallocate(error) => is_reserved = false,
                    Err(error) => return Err(heed::Error::Io(error.into()).into()),
                }
            }
            // The file may have grown past `end` meanwhile.
            let missing = end.saturating_sub(at).min(ZEROS.len() as u64);
            let piece = usize::try_from(missing).expect("a piece is no longer than ZEROS");
            self.extended.write_all_at(&ZEROS[..piece], at).map_err(heed::Error::Io)?;
            at += missing;
            writer_lock.abort();
        }
        Ok(())
    }

    /// Closes the data file, so that it can be opened again or be replaced. Returns it, or `None` when transactions are still
    /// open. It is then closed with the last one.
    pub(crate) fn close(generation: Arc<Self>) -> Option<File> {
        let Self { env, data, .. } = Arc::into_inner(generation)?;
        drop(env);
        Some(data)
    }
}

/// Begins to read a snapshot that is durable.
///
/// LMDB takes the number of the last transaction, then copies the roots from the one of two meta pages that this number
/// selects. If the thread is interrupted in between, and two more transactions are committed, then that page has other roots:
/// those of a later transaction, which may not have been flushed yet. So the roots are only used if no commit that overwrites
/// the page has begun.
pub(crate) fn begin_read(generation: &Generation) -> Result<RoTxn<'_, WithTls>, Error> {
    reading_threads::note_reading();
    for _ in 0..READ_ATTEMPTS_MAX {
        let txn = generation.env.read_txn()?;
        if generation.keeps_roots_of(txn.id()) {
            return Ok(txn);
        }
    }
    Err(Error::Lmdb(format!("no read could begin between two transactions in {READ_ATTEMPTS_MAX} attempts")))
}

/// Checks that the data file contains all used pages. The newer meta page names the last one. Accessing a page after
/// the end of the file would kill the process with SIGBUS.
pub(crate) fn check_not_truncated(path: &Path) -> Result<(), Error> {
    let Ok(file) = File::open(path.join(DATA_FILE)) else { return Ok(()) };
    let found = file.metadata().map_err(Error::Io)?.len();
    if found == 0 {
        return Ok(());
    }
    let newest =
        MetaFields::newest(&file).map_err(|_| Error::Truncated { expected: META_BYTES as u64, found })?;
    let expected = newest.map_or(META_BYTES as u64, |meta| meta.file_bytes());
    if expected > found { Err(Error::Truncated { expected, found }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use crate::{Environment, EnvironmentOptions, FlushFailures, LogOptions};
    use std::process::Command;

    const IN_CHILD: &str = "CAIRN_TEST_LIMITED_FILES";

    /// Otherwise the deletes of a store whose disk is full from its first moment would be refused.
    #[test]
    fn what_an_extension_has_written_before_it_failed_can_be_used() {
        if std::env::var_os(IN_CHILD).is_none() {
            // The limit on the size of files applies to a whole process: 2 or 4 MiB, as the shell counts blocks.
            let this_test = "generation::tests::what_an_extension_has_written_before_it_failed_can_be_used";
            let limited = "trap '' XFSZ; ulimit -f 4096; exec \"$0\" --exact \"$1\"";
            let program = std::env::current_exe().expect("a path");
            let status = Command::new("sh")
                .args(["-c", limited])
                .arg(program)
                .arg(this_test)
                .env(IN_CHILD, "1")
                .status();
            assert!(status.expect("a shell").success());
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let options = EnvironmentOptions { map_bytes: 1 << 30, tables_max: 4 };
        let environment = Environment::open(folder.path(), options).expect("opens");
        let table = environment.table("t").expect("a table");
        assert!(environment.headroom() < 1 << 20);
        environment.extend(64 << 20).expect_err("files are limited");
        let headroom = environment.headroom();
        assert!((1 << 20..4 << 20).contains(&headroom), "{headroom}");
        let mut txn = environment.write().expect("writes");
        txn.put(table, b"a", 1, &[7; 500_000], b"").expect("puts");
        txn.commit().expect("commits into what was written");
        assert!(environment.headroom() < headroom);
    }

    /// Runs `body` on a thread for which a seccomp filter answers fallocate(2) with an error.
    fn with_fallocate_refused<T: Send>(error: libc::c_int, body: impl FnOnce() -> T + Send) -> T {
        let number = u32::try_from(libc::SYS_fallocate).expect("a number");
        let answer = libc::SECCOMP_RET_ERRNO | u32::try_from(error).expect("a code");
        let step = |code: u32, jt, jf, k| libc::sock_filter {
            code: u16::try_from(code).expect("16 bits"),
            jt,
            jf,
            k,
        };
        let mut steps = [
            step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number),
            step(libc::BPF_RET | libc::BPF_K, 0, 0, answer),
            step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let refuse = move || {
            let filter = libc::sock_fprog { len: 4, filter: steps.as_mut_ptr() };
            #[expect(unsafe_code, reason = "the standard library has no such function")]
            // SAFETY: the filter and its length are valid during the calls, which affect this thread alone.
            unsafe {
                assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
                assert_eq!(
                    libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter),
                    0
                );
            }
            body()
        };
        std::thread::scope(|scope| scope.spawn(refuse).join().expect("no panic"))
    }

    /// Whatever refused the reservation counted as a failed flush, which stops the changes of the whole store.
    #[test]
    fn a_refused_reservation_is_no_failure_of_the_device() {
        let folder = tempfile::tempdir_in(".").expect("a folder");
        let options = EnvironmentOptions { map_bytes: 1 << 30, tables_max: 4 };
        let log = LogOptions { bytes_max: 1 << 20, checkpoint_bytes: 1 << 18 };
        let failures = FlushFailures::default();
        let environment = Environment::open_with_log(folder.path(), options, log, &failures).expect("opens");
        let headroom = environment.headroom();
        // A sandbox without the call.
        for error in [libc::EPERM, libc::ENOSYS] {
            with_fallocate_refused(error, || environment.extend(environment.headroom() + (1 << 20)))
                .expect("writes zeros");
        }
        assert!(environment.headroom() >= headroom + (2 << 20));
        with_fallocate_refused(libc::ENOMEM, || environment.extend(64 << 20))
            .expect_err("an error of its own");
        assert_eq!((failures.count(), environment.log_failure()), (0, None));
    }
}
