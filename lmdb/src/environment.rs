//! One LMDB environment: a folder, a data file, named tables.

use crate::Error;
use crate::compact::remove_unfinished;
use crate::limits::{MAP_BYTES_MIN, READERS_MAX};
use crate::readers::Readers;
use crate::txn::{ReadTxn, TOTALS_TABLE, WriteTxn};
use heed::types::Bytes;
use heed::{Database, Env, EnvOpenOptions, WithTls};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How an environment is opened.
#[derive(Clone, Copy, Debug)]
pub struct EnvironmentOptions {
    /// Size of the map in bytes: address space, not disk. Halved down to 1 GiB when the system refuses it.
    pub map_bytes: usize,
    /// Most named tables.
    pub tables_max: u32,
}

/// Zeros that one write adds behind the end of the data file.
static ZEROS: [u8; 1 << 18] = [0; 1 << 18];

/// A named table of an environment; keys and values are bytes.
#[derive(Clone, Copy, Debug)]
pub struct Table(pub(crate) Database<Bytes, Bytes>);

/// An open environment. Commits are durable: LMDB's plain mode, both of its flushes.
#[derive(Debug)]
pub struct Environment {
    pub(crate) env: Env<WithTls>,
    pub(crate) totals: Table,
    data: File,
    page_bytes: u64,
    /// Length of the data file that is known to be written.
    length: AtomicU64,
    extending: Mutex<()>,
    readers: Readers,
    /// Readers of processes that had ended, whose slots were cleared since the environment was opened, that included.
    stale_readers: AtomicU64,
}

impl Environment {
    /// Opens the environment in the folder `path`, which must exist.
    ///
    /// # Errors
    /// [`Error::Truncated`] when the data file is shorter than it says, else what LMDB answers.
    pub fn open(path: &Path, options: EnvironmentOptions) -> Result<Self, Error> {
        refuse_truncated(path)?;
        remove_unfinished(path)?;
        let mut map_bytes = options.map_bytes;
        let env = loop {
            let mut open = EnvOpenOptions::new();
            open.map_size(map_bytes).max_readers(READERS_MAX).max_dbs(options.tables_max + 1);
            #[expect(
                unsafe_code,
                reason = "heed's open is unsafe, for a map must not change under the process"
            )]
            // SAFETY: the store's folder is locked against other processes (engine's lock file), this process opens
            // each folder once, and nothing truncates or replaces the data file while it is open.
            let opened = unsafe { open.open(path) };
            match opened {
                Ok(env) => break env,
                Err(heed::Error::Io(io))
                    if io.kind() == std::io::ErrorKind::OutOfMemory && map_bytes > MAP_BYTES_MIN =>
                {
                    map_bytes /= 2;
                }
                Err(error) => return Err(error.into()),
            }
        };
        let stale_readers = AtomicU64::new(env.clear_stale_readers()? as u64);
        let mut txn = env.write_txn()?;
        let totals = Table(env.create_database(&mut txn, Some(TOTALS_TABLE))?);
        txn.commit()?;
        let data = File::options().read(true).write(true).open(path.join("data.mdb")).map_err(Error::Io)?;
        let length = AtomicU64::new(data.metadata().map_err(Error::Io)?.len());
        let page_bytes = page_bytes(path)?;
        let (extending, readers) = (Mutex::new(()), Readers::new());
        Ok(Self { env, totals, data, page_bytes, length, extending, readers, stale_readers })
    }

    /// Closes the environment: it can then be opened again, or its file replaced. Without this it is closed some time after
    /// its last owner has dropped it.
    pub fn close(self) {
        self.env.prepare_for_closing().wait();
    }

    /// Age of the oldest read transaction of this process that is still open. Pages freed since it began cannot be used.
    #[must_use]
    pub fn oldest_read(&self) -> Option<Duration> {
        self.readers.oldest()
    }

    /// Clears the slots of readers whose processes have ended, which would keep freed pages for ever; returns how many were
    /// cleared since the environment was opened.
    ///
    /// # Errors
    /// What LMDB answers.
    pub fn clear_stale_readers(&self) -> Result<u64, Error> {
        let cleared = self.env.clear_stale_readers()? as u64;
        Ok(self.stale_readers.fetch_add(cleared, Ordering::Relaxed) + cleared)
    }

    /// How many slots of ended readers were cleared since the environment was opened, that included.
    #[must_use]
    pub fn stale_readers(&self) -> u64 {
        self.stale_readers.load(Ordering::Relaxed)
    }

    /// Bytes of the pages that hold something: what a compact copy takes. All tables must have been opened, or fit into
    /// [`EnvironmentOptions::tables_max`].
    pub(crate) fn live_bytes(&self) -> Result<u64, Error> {
        // Two meta pages stand in front.
        Ok(self.env.non_free_pages_size()? + 2 * self.page_bytes)
    }

    /// Fails when the folder `path` holds no data file, or an empty one. To be asked before an environment is opened that
    /// must be there already: opening would make a new one in its place.
    ///
    /// # Errors
    /// [`Error::Io`] when there is none, [`Error::Truncated`] when it is empty.
    pub fn require(path: &Path) -> Result<(), Error> {
        let found = std::fs::metadata(path.join("data.mdb")).map_err(Error::Io)?.len();
        if found == 0 { Err(Error::Truncated { expected: META_BYTES as u64, found }) } else { Ok(()) }
    }

    /// Bytes of the data file behind its last used page: written space that a commit can use without the file system
    /// having to allocate any.
    #[must_use]
    pub fn headroom(&self) -> u64 {
        self.length.load(Ordering::Acquire).saturating_sub(self.used())
    }

    /// Whether the data file is still what was opened: at its place, and as long as the pages that are in use. A read of
    /// pages that were cut off would end the process with SIGBUS.
    ///
    /// # Errors
    /// [`Error::Truncated`]; [`Error::Io`] when the file is gone, was replaced, or cannot be examined.
    pub fn check_file(&self) -> Result<(), Error> {
        use std::os::unix::fs::MetadataExt as _;
        let open = self.data.metadata().map_err(Error::Io)?;
        let named = std::fs::metadata(self.env.path().join("data.mdb")).map_err(Error::Io)?;
        if (open.dev(), open.ino()) != (named.dev(), named.ino()) {
            return Err(Error::Io(std::io::Error::other("the data file was replaced")));
        }
        let (expected, found) = (self.used(), open.len());
        if expected > found { Err(Error::Truncated { expected, found }) } else { Ok(()) }
    }

    /// Bytes up to the end of the last used page; pages in between may be free.
    #[must_use]
    pub fn used(&self) -> u64 {
        (self.env.info().last_page_number as u64 + 1) * self.page_bytes
    }

    /// Writes zeros behind the end of the data file until there are `bytes` bytes of headroom; durable when it returns.
    /// LMDB takes a file that is longer than it needs. A commit into space that was written before needs no journal commit
    /// of the file system, which is most of what a small durable commit costs.
    ///
    /// Any thread but one that has a write transaction may call this. Each piece is written under LMDB's writer lock and
    /// behind the end of the file as it is then, so it can never meet the pages of a commit.
    ///
    /// # Errors
    /// [`Error::Full`] or [`Error::Io`]; the file may have become longer, and is as good as before.
    pub fn extend(&self, bytes: u64) -> Result<(), Error> {
        let _one_at_a_time = self.extending.lock().unwrap_or_else(PoisonError::into_inner);
        let end = (self.used() + bytes).next_multiple_of(self.page_bytes);
        let mut at = 0;
        while at < end {
            let writer_lock = self.env.write_txn()?;
            at = self.data.metadata().map_err(heed::Error::Io)?.len();
            let piece = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX).min(ZEROS.len());
            self.data.write_all_at(&ZEROS[..piece], at).map_err(heed::Error::Io)?;
            at += piece as u64;
            writer_lock.abort();
        }
        self.data.sync_all().map_err(heed::Error::Io)?;
        self.length.store(at, Ordering::Release);
        Ok(())
    }

    /// Opens the table `name`, making it when it is missing.
    ///
    /// # Errors
    /// What LMDB answers.
    pub fn table(&self, name: &str) -> Result<Table, Error> {
        let mut txn = self.env.write_txn()?;
        let table = Table(self.env.create_database(&mut txn, Some(name))?);
        txn.commit()?;
        Ok(table)
    }

    /// Begins to read a snapshot. The transaction belongs to this thread: one at a time for each environment,
    /// never across an `.await` (it would keep freed pages for as long).
    ///
    /// # Errors
    /// What LMDB answers, for example that all reader slots are taken.
    pub fn read(&self) -> Result<ReadTxn<'_>, Error> {
        Ok(ReadTxn { txn: self.env.read_txn()?, _open: self.readers.begin() })
    }

    /// Begins to write. Blocks while another thread writes: only an environment's own writer thread calls it.
    ///
    /// # Errors
    /// What LMDB answers.
    pub fn write(&self) -> Result<WriteTxn<'_>, Error> {
        WriteTxn::begin(self)
    }

    /// Longest key in bytes.
    #[must_use]
    pub fn key_bytes_max(&self) -> usize {
        self.env.max_key_size()
    }
}

/// Offsets in a meta page, behind its header of 16 bytes (mdb.c, `MDB_meta`): magic 4, version 4, address 8, map size 8,
/// then two tables of 48 bytes, the first of which begins with the page size; last page 8, transaction 8.
const PAGE_SIZE_AT: usize = 16 + 4 + 4 + 8 + 8;
const LAST_PAGE_AT: usize = PAGE_SIZE_AT + 2 * 48;
const META_BYTES: usize = LAST_PAGE_AT + 16;

/// The last meta page names the last used page; a file that ends before it would be SIGBUS under the map.
fn refuse_truncated(path: &Path) -> Result<(), Error> {
    use std::io::Read as _;
    const MAGIC: u32 = 0xBEEF_C0DE;
    let Ok(mut file) = File::open(path.join("data.mdb")) else { return Ok(()) };
    let found = file.metadata().map_err(Error::Io)?.len();
    if found == 0 {
        return Ok(());
    }
    let mut first = [0u8; META_BYTES];
    file.read_exact(&mut first).map_err(|_| Error::Truncated { expected: META_BYTES as u64, found })?;
    let page_bytes = page_bytes_in(&first);
    let mut second = [0u8; META_BYTES];
    file.read_exact_at(&mut second, page_bytes)
        .map_err(|_| Error::Truncated { expected: 2 * page_bytes, found })?;
    let last_page = [&first, &second]
        .into_iter()
        .filter(|meta| field::<4>(&meta[..], 16).map(u32::from_le_bytes) == Some(MAGIC))
        .map(|meta| {
            let number = |at| field::<8>(&meta[..], at).map_or(0, u64::from_le_bytes);
            (number(LAST_PAGE_AT + 8), number(LAST_PAGE_AT))
        })
        .max()
        .map_or(0, |(_, last_page)| last_page);
    let expected = last_page.saturating_add(1).saturating_mul(page_bytes);
    if expected > found { Err(Error::Truncated { expected, found }) } else { Ok(()) }
}

/// Size of the pages of the data file in a folder: the host's page size when the file was made.
fn page_bytes(path: &Path) -> Result<u64, Error> {
    let mut first = [0u8; META_BYTES];
    let file = File::open(path.join("data.mdb")).map_err(Error::Io)?;
    file.read_exact_at(&mut first, 0).map_err(Error::Io)?;
    Ok(page_bytes_in(&first))
}

fn page_bytes_in(meta: &[u8]) -> u64 {
    u64::from(field::<4>(meta, PAGE_SIZE_AT).map_or(0, u32::from_le_bytes)).max(512)
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk::<N>().copied()
}
