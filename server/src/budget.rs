//! One budget for the memory of the process: `server.memory_limit` divided among everything that grows with use.
//!
//! ```text
//! limit ─┬─ an eighth        what the allocator cannot use of its pages, and what the kernel keeps for sockets
//!        ├─ fixed            program, accounts, queues; so much for each executor and for each slice
//!        ├─ block cache      storage.cache_bytes, or a quarter of the limit
//!        ├─ uploads          buffers of each executor: two fifths of the rest, at most 128 MiB each
//!        ├─ reading ahead    of each executor: a fifth of the rest, at most 64 MiB each
//!        └─ connections      what is left: so many connections as it is enough for
//! ```
//!
//! The buffers of uploads and of reading ahead are bounded by the engine, the cache bounds itself, and what is left is
//! bounded by the number of connections: each can hold the blocks that a client does not read, and a head. LMDB's maps are
//! files, whose pages the kernel takes back when it needs them, and are not counted; nor are they counted by a control
//! group in a way that ends the process.
//!
//! Executors and slices that nobody configured are fewer where the limit is too small for one on every core.

use std::fmt;
use std::num::NonZeroUsize;

use cairn_engine::limits::{BLOCK_BYTES, BLOCKS_OF_SLOW_READER, BufferLimits, SLICES_MAX};

use cairn_net::TLS_CONNECTION_BYTES;

use crate::config::{Settings, bytes_text, keys};
use crate::error::ServeError;
use crate::memory::{self, SetBy};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The cache takes this part of the memory when nothing is configured.
const CACHE_PART: u64 = 4;
/// This part is nobody's: pages of which the allocator can use a piece only, and the kernel's buffers of sockets.
const SPARE_PART: u64 = 8;
/// The program itself, the directory of accounts, the queues of the log and the audit trail, and the answers of the
/// management plane.
const PROCESS_BYTES: u64 = 32 * MIB;
/// What an executor takes: memory registered for direct I/O, rings, hashers, its stack, and reads that are being checked.
const EXECUTOR_BYTES: u64 = 8 * MIB;
/// What a slice takes: the pages that a transaction changes, the free map, the changes that wait for it.
const SLICE_BYTES: u64 = 4 * MIB;
/// What a connection can hold at most: the blocks of an answer that the client does not read, or a small payload that has
/// come, and beside it a head and the state of the connection.
const CONNECTION_BYTES: u64 = BLOCKS_OF_SLOW_READER * BLOCK_BYTES as u64 + 24 * KIB;
/// With fewer connections it is no server.
const CONNECTIONS_MIN: u64 = 64;
/// A new store has at least so many slices where there is memory for them, so that its batches commit side by side.
const SLICES_MIN: usize = 2;
/// Shares of the buffers: of fifths, uploads have two and reading ahead one.
const FIFTHS: u64 = 5;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// Bytes of memory.
    pub(crate) limit: u64,
    /// Executors.
    pub(crate) executors: Wanted,
    /// Slices of the store.
    pub(crate) slices: Wanted,
    /// `server.connections_max`.
    pub(crate) connections_max: usize,
    /// What one of them can hold at most.
    pub(crate) connection_bytes: u64,
    /// `storage.cache_bytes`.
    pub(crate) cache_bytes: Option<u64>,
}

/// A number that may be lower where there is little memory, or may not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// Configured, or the way the store is.
    Fixed(usize),
    /// A default.
    AtMost(usize),
}

/// How the memory is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Budget {
    pub(crate) limit: u64,
    pub(crate) executors: usize,
    pub(crate) slices: usize,
    pub(crate) cache_bytes: u64,
    /// Of each executor.
    pub(crate) buffers: BufferLimits,
    pub(crate) connections_max: usize,
}

/// Why the memory is not enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BudgetError {
    /// The limit is too small even without a cache.
    TooSmall { limit: u64, least: u64, executors: usize, slices: usize },
    /// The cache that is configured does not fit.
    CacheTooLarge { limit: u64, cache_bytes: u64, most: u64 },
}

impl fmt::Display for BudgetError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (limit_key, cache_key) = (keys::MEMORY_LIMIT.variable(), keys::CACHE_BYTES.variable());
        match self {
            Self::TooSmall { limit, least, executors, slices } => write!(
                out,
                "{limit_key}: {} of memory are too little for {executors} executors and {slices} slices, which need at \
                 least {}: raise the limit of the host or the container, or configure fewer executors",
                mebibytes(*limit),
                bytes_text(*least)
            ),
            Self::CacheTooLarge { limit, cache_bytes, most } => write!(
                out,
                "{cache_key}: a cache of {} does not fit into the {} of {limit_key}: at most {} do",
                bytes_text(*cache_bytes),
                mebibytes(*limit),
                bytes_text(*most)
            ),
        }
    }
}

impl std::error::Error for BudgetError {}

/// Divides the memory that the host, the control group or the configuration allows, for the store that there is.
///
/// # Errors
/// [`ServeError::Memory`] when it is not enough, or more is configured than there is, and [`ServeError::Store`] when the store
/// cannot be told.
pub(crate) fn of_settings(settings: &Settings) -> Result<Budget, ServeError> {
    let usable = memory::usable();
    let configured = settings.server.memory_limit;
    if let Some(limit) =
        configured.filter(|limit| *limit > usable.bytes && usable.set_by != SetBy::Assumption)
    {
        return Err(ServeError::Memory(format!(
            "{}: {} are more than the {} that this process may use, by {}",
            settings.values.source(&keys::MEMORY_LIMIT),
            bytes_text(limit),
            mebibytes(usable.bytes),
            usable.set_by
        )));
    }
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let of_new_store = || match settings.storage.slices {
        Some(slices) => Wanted::Fixed(slices.into()),
        None => Wanted::AtMost(cores.clamp(SLICES_MIN, SLICES_MAX.into())),
    };
    let stored = cairn_engine::examine_store(&settings.server.data_dir)?;
    let tls_bytes = if settings.server.tls.s3.is_some() { TLS_CONNECTION_BYTES as u64 } else { 0 };
    Ok(divide(&Demand {
        limit: configured.unwrap_or(usable.bytes),
        executors: settings.server.executors.map_or(Wanted::AtMost(cores), Wanted::Fixed),
        slices: stored.map_or_else(of_new_store, |store| Wanted::Fixed(store.slices.into())),
        connections_max: settings.server.connections_max,
        connection_bytes: CONNECTION_BYTES + tls_bytes,
        cache_bytes: settings.storage.cache_bytes,
    })?)
}

/// Divides the memory.
///
/// # Errors
/// [`BudgetError`], with what would be enough.
pub(crate) fn divide(demand: &Demand) -> Result<Budget, BudgetError> {
    let (executors, slices) = fewer_where_needed(demand);
    let least = least(executors, slices, demand.connection_bytes);
    if demand.limit < least {
        return Err(BudgetError::TooSmall { limit: demand.limit, least, executors, slices });
    }
    // What is over when everything has the least it needs: the cache may take that much.
    let most = whole(spared(demand.limit) - spared(least));
    let cache_bytes = demand.cache_bytes.unwrap_or_else(|| most.min(demand.limit / CACHE_PART));
    if cache_bytes > most {
        return Err(BudgetError::CacheTooLarge { limit: demand.limit, cache_bytes, most });
    }
    let rest = spared(demand.limit)
        - fixed(executors, slices)
        - cache_bytes
        - CONNECTIONS_MIN * demand.connection_bytes;
    let (count, highest) = (executors as u64, BufferLimits::default());
    let upload_bytes =
        (rest * 2 / FIFTHS / count).clamp(BufferLimits::MIN.upload_bytes, highest.upload_bytes);
    let read_ahead_bytes =
        (rest / FIFTHS / count).clamp(BufferLimits::MIN.read_ahead_bytes, highest.read_ahead_bytes);
    let left = rest.saturating_sub(count * (upload_bytes + read_ahead_bytes));
    let connections = CONNECTIONS_MIN + left / demand.connection_bytes;
    let connections_max = demand.connections_max.min(usize::try_from(connections).unwrap_or(usize::MAX));
    let buffers = BufferLimits { upload_bytes, read_ahead_bytes };
    Ok(Budget { limit: demand.limit, executors, slices, cache_bytes, buffers, connections_max })
}

/// Executors and slices: those wanted, or as many as the limit is enough for where a default asked for more.
fn fewer_where_needed(demand: &Demand) -> (usize, usize) {
    let (mut executors, mut slices) = (number(demand.executors), number(demand.slices));
    while least(executors, slices, demand.connection_bytes) > demand.limit {
        let may_be_fewer = |wanted, now: usize| matches!(wanted, Wanted::AtMost(_)) && now > 1;
        // The larger number first: what is stored lies in slices for good, and executors come and go.
        if may_be_fewer(demand.executors, executors)
            && (executors >= slices || demand.slices == Wanted::Fixed(slices))
        {
            executors -= 1;
        } else if may_be_fewer(demand.slices, slices) {
            slices -= 1;
        } else if may_be_fewer(demand.executors, executors) {
            executors -= 1;
        } else {
            break;
        }
    }
    (executors, slices)
}

const fn number(wanted: Wanted) -> usize {
    match wanted {
        Wanted::Fixed(number) | Wanted::AtMost(number) => number,
    }
}

/// What does not depend on what the service is asked for.
const fn fixed(executors: usize, slices: usize) -> u64 {
    PROCESS_BYTES + executors as u64 * EXECUTOR_BYTES + slices as u64 * SLICE_BYTES
}

/// The limit without the part that is nobody's.
const fn spared(limit: u64) -> u64 {
    limit - limit / SPARE_PART
}

/// The least limit to run in, in whole MiB, with no cache.
fn least(executors: usize, slices: usize, connection_bytes: u64) -> u64 {
    let BufferLimits { upload_bytes, read_ahead_bytes } = BufferLimits::MIN;
    let buffers = executors as u64 * (upload_bytes + read_ahead_bytes) + CONNECTIONS_MIN * connection_bytes;
    let bytes = fixed(executors, slices) + buffers;
    (bytes * SPARE_PART).div_ceil(SPARE_PART - 1).next_multiple_of(MIB)
}

/// A number of bytes for people.
pub(crate) fn mebibytes(bytes: u64) -> String {
    bytes_text(if bytes < MIB { bytes } else { whole(bytes) })
}

/// Down to whole MiB, as a user would write it.
const fn whole(bytes: u64) -> u64 {
    bytes / MIB * MIB
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(limit: u64) -> Demand {
        Demand {
            limit,
            executors: Wanted::AtMost(4),
            slices: Wanted::AtMost(4),
            connections_max: 16_384,
            connection_bytes: CONNECTION_BYTES,
            cache_bytes: None,
        }
    }

    /// Everything that can be taken at once.
    fn taken(budget: &Budget) -> u64 {
        let per_executor = budget.buffers.upload_bytes + budget.buffers.read_ahead_bytes;
        fixed(budget.executors, budget.slices)
            + budget.cache_bytes
            + budget.executors as u64 * per_executor
            + budget.connections_max as u64 * CONNECTION_BYTES
    }

    #[test]
    fn the_parts_never_add_up_to_more_than_the_limit() {
        for mebibytes in (64..4096).step_by(13).chain([8192, 65_536, 1 << 20]) {
            for executors in [1, 2, 7, 64] {
                let demand = Demand { executors: Wanted::AtMost(executors), ..demand(mebibytes * MIB) };
                let Ok(budget) = divide(&demand) else { continue };
                assert!(taken(&budget) <= spared(demand.limit), "{budget:?}");
                assert!(budget.connections_max >= 64 && budget.executors >= 1 && budget.slices >= 1);
            }
        }
    }

    #[test]
    fn much_memory_changes_nothing_but_the_cache() {
        let budget = divide(&demand(64 << 30)).unwrap();
        assert_eq!((budget.executors, budget.slices, budget.connections_max), (4, 4, 16_384));
        assert_eq!((budget.cache_bytes, budget.buffers), (16 << 30, BufferLimits::default()));
    }

    #[test]
    fn a_small_container_runs_with_less_of_everything() {
        let budget = divide(&demand(256 * MIB)).unwrap();
        assert_eq!((budget.executors, budget.slices), (4, 4));
        assert!(budget.cache_bytes >= 32 * MIB && budget.connections_max >= 128, "{budget:?}");
    }

    /// A container with little memory on a host with many cores did not start with the defaults, or would have been killed.
    #[test]
    fn defaults_give_way_where_there_are_more_cores_than_memory() {
        let many = Demand { executors: Wanted::AtMost(64), slices: Wanted::AtMost(64), ..demand(256 * MIB) };
        let budget = divide(&many).unwrap();
        assert!(budget.executors >= 4 && budget.executors < 64, "{budget:?}");
        let fixed = Demand { executors: Wanted::Fixed(64), slices: Wanted::Fixed(64), ..many };
        let Err(BudgetError::TooSmall { least, executors: 64, slices: 64, .. }) = divide(&fixed) else {
            panic!("what was configured must not be changed");
        };
        assert!(divide(&Demand { limit: least, ..fixed }).is_ok(), "the least that is named is enough");
        assert!(divide(&Demand { limit: least - 1, ..fixed }).is_err());
        let stored = Demand { slices: Wanted::Fixed(8), ..many };
        assert_eq!(divide(&stored).unwrap().slices, 8, "a store keeps its slices");
    }

    #[test]
    fn tls_leaves_room_for_fewer_connections() {
        let plain = demand(512 * MIB);
        let tls = Demand { connection_bytes: CONNECTION_BYTES + TLS_CONNECTION_BYTES as u64, ..plain };
        let (plain, tls) = (divide(&plain).unwrap(), divide(&tls).unwrap());
        assert!(
            tls.connections_max >= 64 && tls.connections_max < plain.connections_max,
            "{tls:?} {plain:?}"
        );
    }

    #[test]
    fn a_cache_that_does_not_fit_is_refused_with_the_largest_that_does() {
        let asked = Demand { cache_bytes: Some(200 * MIB), ..demand(256 * MIB) };
        let error = divide(&asked).unwrap_err();
        let BudgetError::CacheTooLarge { most, .. } = error else { panic!("{error}") };
        assert!(error.to_string().contains(&bytes_text(most)), "{error}");
        let fits = divide(&Demand { cache_bytes: Some(most), ..asked }).unwrap();
        assert_eq!(fits.cache_bytes, most);
        assert!(taken(&fits) <= spared(fits.limit));
        assert!(divide(&Demand { cache_bytes: Some(most + MIB), ..asked }).is_err());
        assert_eq!(divide(&Demand { cache_bytes: Some(0), ..asked }).unwrap().cache_bytes, 0);
    }
}
