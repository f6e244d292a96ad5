//! One budget for the memory of the process: `server.memory_limit` divided among everything that grows with use.
//!
//! ```text
//! limit ─┬─ an eighth        what the allocator cannot use of its pages, and what the kernel keeps for sockets
//!        ├─ fixed            program, accounts, queues; so much for each executor and for each slice
//!        ├─ block cache      storage.cache_bytes, or a quarter of the limit
//!        ├─ uploads          buffers of each executor: two fifths of the rest, at most 128 MiB each
//!        ├─ reading ahead    of each executor: a fifth of the rest, at most 64 MiB each
//!        └─ connections      what is left: as many as it is enough for, of both planes; an eighth to the management plane
//! ```
//!
//! The buffers of uploads and of reading ahead are bounded by the engine, the cache bounds itself, and what is left is
//! bounded by the number of connections: each can hold the blocks that a client does not read, and a head. LMDB's maps are
//! files, whose pages the kernel takes back when it needs them, and are not counted; nor are they counted by a control
//! group in a way that ends the process.
//!
//! Executors and slices that nobody configured are fewer where the limit is too small for one on every core.

use std::num::NonZeroUsize;

use cairn_engine::limits::{BLOCK_BYTES, BLOCKS_OF_SLOW_READER, BufferLimits, SLICES_MAX};

use cairn_net::TLS_CONNECTION_BYTES;

use crate::config::{Settings, bytes_text, keys};
use crate::error::ServeError;
use crate::memory::{self, SetBy};
use crate::planes::MANAGEMENT_CONNECTIONS_MAX;

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
/// Operators, probes and scrapes need a few.
const MANAGEMENT_CONNECTIONS_MIN: u64 = 16;
/// The management plane has this part of what is left for connections beyond the least, up to its own maximum.
const MANAGEMENT_PART: u64 = 8;
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
    /// What a connection of the management plane can hold at most.
    pub(crate) management_connection_bytes: u64,
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
    pub(crate) management_connections_max: usize,
}

/// Why the memory is not enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BudgetError {
    /// The limit is too small even without a cache.
    TooSmall { limit: u64, least: u64, executors: usize, slices: usize },
    /// The cache that is configured does not fit.
    CacheTooLarge { limit: u64, cache_bytes: u64, most: u64 },
}

impl BudgetError {
    /// The text for who configured it: `limit_by` is what set the limit, and `cache_by` the cache.
    fn text(self, limit_by: &str, cache_by: &str) -> String {
        match self {
            Self::TooSmall { limit, least, executors, slices } => {
                let fewer = if executors > 1 { ", or configure fewer executors" } else { "" };
                format!(
                    "{limit_by}: {} of memory are too little for {} and {}, which need at least {}: raise the limit{fewer}",
                    mebibytes(limit),
                    counted(executors, "executor"),
                    counted(slices, "slice"),
                    bytes_text(least)
                )
            }
            Self::CacheTooLarge { limit, cache_bytes, most } => format!(
                "{cache_by}: a cache of {} does not fit into the memory of {} by {limit_by}: at most {} do",
                bytes_text(cache_bytes),
                mebibytes(limit),
                bytes_text(most)
            ),
        }
    }
}

fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// What set the limit of the memory, for messages.
pub(crate) fn limit_source(settings: &Settings) -> String {
    match settings.server.memory_limit {
        Some(_) => settings.values.source(&keys::MEMORY_LIMIT),
        None => memory::usable().set_by.to_string(),
    }
}

/// Slices of a new store where there is memory enough and nobody configured them.
pub(crate) fn slices_of_new_store() -> usize {
    cores().clamp(SLICES_MIN, SLICES_MAX.into())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

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
    let of_new_store = || match settings.storage.slices {
        Some(slices) => Wanted::Fixed(slices.into()),
        None => Wanted::AtMost(slices_of_new_store()),
    };
    let stored = cairn_engine::examine_store(&settings.server.data_dir)?;
    let tls = &settings.server.tls;
    let connection_bytes =
        |has_tls: bool| CONNECTION_BYTES + if has_tls { TLS_CONNECTION_BYTES as u64 } else { 0 };
    let divided = divide(&Demand {
        limit: configured.unwrap_or(usable.bytes),
        executors: settings.server.executors.map_or_else(|| Wanted::AtMost(cores()), Wanted::Fixed),
        slices: stored.map_or_else(of_new_store, |store| Wanted::Fixed(store.slices.into())),
        connections_max: settings.server.connections_max,
        connection_bytes: connection_bytes(tls.s3.is_some()),
        management_connection_bytes: connection_bytes(tls.api.is_some()),
        cache_bytes: settings.storage.cache_bytes,
    });
    let cache_by = settings.values.source(&keys::CACHE_BYTES);
    divided.map_err(|error| ServeError::Memory(error.text(&limit_source(settings), &cache_by)))
}

/// Divides the memory.
///
/// # Errors
/// [`BudgetError`], with what would be enough.
pub(crate) fn divide(demand: &Demand) -> Result<Budget, BudgetError> {
    let (executors, slices) = fewer_where_needed(demand);
    let least = least(executors, slices, demand.connections_least());
    if demand.limit < least {
        return Err(BudgetError::TooSmall { limit: demand.limit, least, executors, slices });
    }
    // What is over when everything has the least it needs: the cache may take that much.
    let most = whole(spared(demand.limit) - spared(least));
    let cache_bytes = demand.cache_bytes.unwrap_or_else(|| most.min(demand.limit / CACHE_PART));
    if cache_bytes > most {
        return Err(BudgetError::CacheTooLarge { limit: demand.limit, cache_bytes, most });
    }
    let rest = spared(demand.limit) - fixed(executors, slices) - cache_bytes - demand.connections_least();
    let (count, highest) = (executors as u64, BufferLimits::default());
    let upload_bytes =
        (rest * 2 / FIFTHS / count).clamp(BufferLimits::MIN.upload_bytes, highest.upload_bytes);
    let read_ahead_bytes =
        (rest / FIFTHS / count).clamp(BufferLimits::MIN.read_ahead_bytes, highest.read_ahead_bytes);
    let left = rest.saturating_sub(count * (upload_bytes + read_ahead_bytes));
    let (connections_max, management_connections_max) = demand.connections(left);
    let buffers = BufferLimits { upload_bytes, read_ahead_bytes };
    Ok(Budget {
        limit: demand.limit,
        executors,
        slices,
        cache_bytes,
        buffers,
        connections_max,
        management_connections_max,
    })
}

impl Demand {
    /// What the least number of connections of both planes can hold.
    const fn connections_least(&self) -> u64 {
        connections_least(self.connection_bytes, self.management_connection_bytes)
    }

    /// Connections of the data plane and of the management plane, with so many bytes beyond the least.
    fn connections(&self, left: u64) -> (usize, usize) {
        let most = MANAGEMENT_CONNECTIONS_MAX as u64 - MANAGEMENT_CONNECTIONS_MIN;
        let management = (left / MANAGEMENT_PART / self.management_connection_bytes).min(most);
        let data = (left - management * self.management_connection_bytes) / self.connection_bytes;
        let number = |more: u64, least: u64| usize::try_from(least + more).unwrap_or(usize::MAX);
        let data = number(data, CONNECTIONS_MIN).min(self.connections_max);
        (data, number(management, MANAGEMENT_CONNECTIONS_MIN))
    }
}

/// Executors and slices: those wanted, or as many as the limit is enough for where a default asked for more.
fn fewer_where_needed(demand: &Demand) -> (usize, usize) {
    let (mut executors, mut slices) = (number(demand.executors), number(demand.slices));
    while least(executors, slices, demand.connections_least()) > demand.limit {
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

const fn connections_least(connection_bytes: u64, management_connection_bytes: u64) -> u64 {
    CONNECTIONS_MIN * connection_bytes + MANAGEMENT_CONNECTIONS_MIN * management_connection_bytes
}

/// The least limit to run in, in whole MiB, with no cache and this for connections.
const fn least(executors: usize, slices: usize, connections_least: u64) -> u64 {
    let BufferLimits { upload_bytes, read_ahead_bytes } = BufferLimits::MIN;
    let buffers = executors as u64 * (upload_bytes + read_ahead_bytes) + connections_least;
    let bytes = fixed(executors, slices) + buffers;
    (bytes * SPARE_PART).div_ceil(SPARE_PART - 1).next_multiple_of(MIB)
}

/// The least limit that is enough for anything: one executor and one slice, without TLS.
pub(crate) const LIMIT_BYTES_MIN: u64 = least(1, 1, connections_least(CONNECTION_BYTES, CONNECTION_BYTES));

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

    const TLS: u64 = TLS_CONNECTION_BYTES as u64;

    fn demand(limit: u64) -> Demand {
        Demand {
            limit,
            executors: Wanted::AtMost(4),
            slices: Wanted::AtMost(4),
            connections_max: 16_384,
            connection_bytes: CONNECTION_BYTES,
            management_connection_bytes: CONNECTION_BYTES,
            cache_bytes: None,
        }
    }

    /// Everything that can be taken at once.
    fn taken(budget: &Budget, demand: &Demand) -> u64 {
        let per_executor = budget.buffers.upload_bytes + budget.buffers.read_ahead_bytes;
        fixed(budget.executors, budget.slices)
            + budget.cache_bytes
            + budget.executors as u64 * per_executor
            + budget.connections_max as u64 * demand.connection_bytes
            + budget.management_connections_max as u64 * demand.management_connection_bytes
    }

    #[test]
    fn the_parts_never_add_up_to_more_than_the_limit() {
        for mebibytes in (64..4096).step_by(13).chain([8192, 65_536, 1 << 20]) {
            for (executors, tls, management_tls) in
                [(1, 0, 0), (2, TLS, 0), (2, 0, TLS), (7, TLS, TLS), (64, 0, 0), (64, TLS, TLS)]
            {
                let demand = Demand {
                    executors: Wanted::AtMost(executors),
                    connection_bytes: CONNECTION_BYTES + tls,
                    management_connection_bytes: CONNECTION_BYTES + management_tls,
                    ..demand(mebibytes * MIB)
                };
                let Ok(budget) = divide(&demand) else { continue };
                assert!(taken(&budget, &demand) <= spared(demand.limit), "{budget:?}");
                assert!(budget.connections_max >= 64 && budget.executors >= 1 && budget.slices >= 1);
                let management = budget.management_connections_max;
                assert!((16..=MANAGEMENT_CONNECTIONS_MAX).contains(&management), "{budget:?}");
            }
        }
    }

    #[test]
    fn much_memory_changes_nothing_but_the_cache() {
        let budget = divide(&demand(64 << 30)).unwrap();
        assert_eq!((budget.executors, budget.slices, budget.connections_max), (4, 4, 16_384));
        assert_eq!(budget.management_connections_max, MANAGEMENT_CONNECTIONS_MAX);
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
        let tls = Demand { connection_bytes: CONNECTION_BYTES + TLS, ..plain };
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
        let BudgetError::CacheTooLarge { most, .. } = error else { panic!("{error:?}") };
        let text = error.text("the control group", "storage.cache_bytes");
        let (named, shown) = ("by the control group", bytes_text(most));
        assert!(
            text.starts_with("storage.cache_bytes: ") && text.contains(named) && text.contains(&shown),
            "{text}"
        );
        let fits = divide(&Demand { cache_bytes: Some(most), ..asked }).unwrap();
        assert_eq!(fits.cache_bytes, most);
        assert!(taken(&fits, &asked) <= spared(fits.limit));
        assert!(divide(&Demand { cache_bytes: Some(most + MIB), ..asked }).is_err());
        assert_eq!(divide(&Demand { cache_bytes: Some(0), ..asked }).unwrap().cache_bytes, 0);
    }

    /// The range of the key began below what any configuration could run in, and a refusal advised fewer executors than one.
    #[test]
    fn the_least_limit_of_the_key_is_enough_and_no_less_is() {
        let one = Demand {
            executors: Wanted::Fixed(1),
            slices: Wanted::Fixed(1),
            cache_bytes: Some(0),
            ..demand(LIMIT_BYTES_MIN)
        };
        assert!(divide(&one).is_ok());
        let text = divide(&Demand { limit: LIMIT_BYTES_MIN - 1, ..one }).unwrap_err().text("the host", "");
        assert!(text.starts_with("the host: ") && text.contains("1 executor and 1 slice,"), "{text}");
        assert!(!text.contains("fewer"), "{text}");
    }
}
