//! The memory budget of the process: `server.memory_limit`, divided among everything that grows with load.
//!
//! ```text
//! limit ─┬─ reserve          an eighth: fragmentation of the allocator, and socket buffers of the kernel
//!        ├─ fixed            program, accounts, queues; a fixed amount for each executor and each slice
//!        ├─ block cache      storage.cache_bytes, or a quarter of the limit
//!        ├─ upload buffers   two fifths of the rest, at most 128 MiB for each executor
//!        ├─ read-ahead       a fifth of the rest, at most 64 MiB for each executor
//!        ├─ small bodies     a twentieth of the rest, at most 16 MiB for each executor
//!        ├─ password hash    a second one at a time, if there is room for it
//!        └─ connections      what is left; an eighth for the management plane, and another for the console
//! ```
//!
//! The engine bounds the upload and read-ahead buffers and the small bodies, and the cache bounds itself. The rest is bounded
//! by the number of connections: each can hold the blocks that a client has not read, and a request head. LMDB's maps are not
//! counted: they are files, whose pages the kernel reclaims when it needs memory, and a control group does not kill a process
//! for them.
//!
//! Unless they are configured, the numbers of executors and slices are reduced if the limit is too small for the defaults.

use std::num::NonZeroUsize;

use cairn_engine::limits::{BufferLimits, default_slices};
use cairn_engine::{StoreFacts, StorePart};

use cairn_net::TLS_CONNECTION_BYTES;

use crate::config::{Settings, bytes_text, keys};
use crate::error::ServeError;
use crate::host::address_space;
use crate::host::memory::{self, SetBy};
use crate::host::open_files::{self, Connections, Users};
use crate::memory_sizes::{
    CONNECTION_BYTES, CONNECTIONS_MIN, CONSOLE_CONNECTIONS_MAX, CONSOLE_CONNECTIONS_MIN,
    MANAGEMENT_CONNECTIONS_MAX, MANAGEMENT_CONNECTIONS_MIN, MIB, PASSWORD_HASH_BYTES, buffers,
    connections_min, fixed, limit_min, without_reserve,
};

/// The default size of the cache is one part in four of the memory limit.
const CACHE_PART: u64 = 4;
/// The management plane and the console each get one part in eight of the memory for additional connections, up to their own
/// maximum.
const PLANE_PART: u64 = 8;
/// Two passwords are hashed at a time if a hash needs at most one part in eight of the memory that is left without the cache.
const HASH_PART: u64 = 8;
/// Of five parts of the remaining memory, upload buffers get two and read-ahead buffers get one.
const FIFTHS: u64 = 5;
/// Small bodies get one part in twenty of it.
const SMALL_BODY_PART: u64 = 20;

/// The limit, and what the configuration and the store require.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// Bytes of memory.
    pub(crate) limit: u64,
    /// Number of executors.
    pub(crate) executors: Wanted,
    /// Number of slices of the store.
    pub(crate) slices: Wanted,
    /// `server.connections_max`.
    pub(crate) connections_max: usize,
    /// Maximum bytes that a connection of the data plane can hold.
    pub(crate) connection_bytes: u64,
    /// Maximum bytes that a connection of the management plane can hold.
    pub(crate) management_connection_bytes: u64,
    /// Maximum bytes that a connection of the console can hold; `None` without a console.
    pub(crate) console_connection_bytes: Option<u64>,
    /// `storage.cache_bytes`.
    pub(crate) cache_bytes: Option<u64>,
}

/// A number of executors or slices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// Configured, or a property of the store.
    Fixed(usize),
    /// A default, which is lowered if there is too little memory.
    AtMost(usize),
}

/// The division of the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Budget {
    pub(crate) limit: u64,
    pub(crate) executors: usize,
    pub(crate) slices: usize,
    pub(crate) cache_bytes: u64,
    /// The buffers of each executor.
    pub(crate) buffers: BufferLimits,
    pub(crate) connections_max: usize,
    pub(crate) management_connections_max: usize,
    /// 0 without a console.
    pub(crate) console_connections_max: usize,
    /// Passwords that are hashed at a time.
    pub(crate) password_hashes: usize,
}

/// The reason why the memory is insufficient.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BudgetError {
    /// The limit is too small, even without a cache.
    TooSmall { limit: u64, least: u64, executors: usize, slices: usize },
    /// The configured cache does not fit.
    CacheTooLarge { limit: u64, cache_bytes: u64, most: u64 },
}

impl BudgetError {
    /// Returns the message. `limit_by` names what set the limit, and `cache_by` what set the cache.
    fn text(self, limit_by: &str, cache_by: &str) -> String {
        match self {
            Self::TooSmall { limit, least, executors, slices } => {
                let fewer = if executors > 1 { " or configure fewer executors" } else { "" };
                format!(
                    "{limit_by}: {} of memory is too little for {} and {}, which need at least {}; raise the limit{fewer}",
                    mebibytes(limit),
                    counted(executors, "executor"),
                    counted(slices, "slice"),
                    bytes_text(least)
                )
            }
            Self::CacheTooLarge { limit, cache_bytes, most } => format!(
                "{cache_by}: a cache of {} does not fit into {} of memory (set by {limit_by}); the maximum is {}",
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

/// Returns what set the memory limit, for messages.
pub(crate) fn limit_source(settings: &Settings) -> String {
    match settings.server.memory_limit {
        Some(_) => settings.values.source(&keys::MEMORY_LIMIT),
        None => memory::usable().set_by.to_string(),
    }
}

/// Returns the default number of slices of a new store, given sufficient memory.
pub(crate) fn slices_of_new_store() -> usize {
    default_slices(cores()).into()
}

/// Returns the default number of executors, given sufficient memory: one per core, as far as the limit on locked memory
/// allows.
fn default_executors() -> usize {
    cores().min(cairn_net::executors_possible().unwrap_or(usize::MAX))
}

/// Returns how many cores have no executor because of the limit on locked memory.
pub(crate) fn cores_without_executor(settings: &Settings) -> usize {
    if settings.server.executors.is_some() { 0 } else { cores() - default_executors() }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Divides the memory that the host, the control group or the configuration allows, for the store that was found in the data
/// folder or for a new one.
///
/// # Errors
/// [`ServeError::Memory`] if it is insufficient, or if more is configured than is available.
pub(crate) fn of_settings(settings: &Settings, found: Option<StoreFacts>) -> Result<Budget, ServeError> {
    let usable = memory::usable();
    let configured = settings.server.memory_limit;
    if let Some(limit) =
        configured.filter(|limit| *limit > usable.bytes && usable.set_by != SetBy::Assumption)
    {
        return Err(ServeError::Memory(format!(
            "{}: {} is more than the {} that this process may use (set by {})",
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
    let tls = &settings.server.tls;
    let connection_bytes =
        |has_tls: bool| CONNECTION_BYTES + if has_tls { TLS_CONNECTION_BYTES as u64 } else { 0 };
    let divided = divide(&Demand {
        limit: configured.unwrap_or(usable.bytes),
        executors: settings
            .server
            .executors
            .map_or_else(|| Wanted::AtMost(default_executors()), Wanted::Fixed),
        slices: found.map_or_else(of_new_store, |store| Wanted::Fixed(store.slices.into())),
        connections_max: settings.server.connections_max,
        connection_bytes: connection_bytes(tls.s3.is_some()),
        management_connection_bytes: connection_bytes(tls.api.is_some()),
        console_connection_bytes: settings
            .server
            .console_bind
            .as_ref()
            .map(|_| connection_bytes(tls.console.is_some())),
        cache_bytes: settings.storage.cache_bytes,
    });
    let cache_by = settings.values.source(&keys::CACHE_BYTES);
    let budget =
        divided.map_err(|error| ServeError::Memory(error.text(&limit_source(settings), &cache_by)))?;
    cairn_net::check_executors(budget.executors)?;
    address_space::check(budget.slices).map_err(ServeError::Limit)?;
    Ok(budget)
}

impl Budget {
    /// Lowers the numbers of connections to what `limit` open files allow.
    ///
    /// # Errors
    /// As [`connections_within`].
    pub(crate) fn within_open_files(
        self,
        settings: &Settings,
        found: Option<StoreFacts>,
        limit: Option<u64>,
    ) -> Result<Self, ServeError> {
        let wanted = Connections {
            data: self.connections_max,
            management: self.management_connections_max,
            console: self.console_connections_max,
        };
        let possible = connections_within(settings, found, limit, (self.executors, self.slices), wanted)?;
        Ok(Self {
            connections_max: possible.data,
            management_connections_max: possible.management,
            console_connections_max: possible.console,
            ..self
        })
    }
}

/// Returns how many of the `wanted` connections `limit` open files allow, with these numbers of executors and slices.
///
/// # Errors
/// [`ServeError::Limit`] if they are too few.
pub(crate) fn connections_within(
    settings: &Settings,
    found: Option<StoreFacts>,
    limit: Option<u64>,
    (executors, slices): (usize, usize),
    wanted: Connections,
) -> Result<Connections, ServeError> {
    let data_dir = &settings.server.data_dir;
    let parts = found.map_or_else(Vec::new, |facts| cairn_engine::store_parts(data_dir, facts));
    let is_volume = |part: &&StorePart| part.path.extension().is_some_and(|extension| extension == "vol");
    let volumes = parts.iter().filter(is_volume).count().max(slices);
    open_files::connections_within(limit, Users { executors, slices, volumes }, wanted)
        .map_err(ServeError::Limit)
}

/// Divides the memory.
///
/// # Errors
/// [`BudgetError`], with the limit or the cache size that would fit.
pub(crate) fn divide(demand: &Demand) -> Result<Budget, BudgetError> {
    let (executors, slices) = reduce_to_fit(demand);
    let least = limit_min(executors, slices, demand.connections_min());
    if demand.limit < least {
        return Err(BudgetError::TooSmall { limit: demand.limit, least, executors, slices });
    }
    // Maximum size of the cache: what is left when everything else has its minimum.
    let most = whole(without_reserve(demand.limit) - without_reserve(least));
    let cache_bytes = demand.cache_bytes.unwrap_or_else(|| most.min(demand.limit / CACHE_PART));
    if cache_bytes > most {
        return Err(BudgetError::CacheTooLarge { limit: demand.limit, cache_bytes, most });
    }
    let mut rest =
        without_reserve(demand.limit) - fixed(executors, slices) - cache_bytes - demand.connections_min();
    let mut password_hashes = 1;
    let buffers_min = executors as u64 * buffers(BufferLimits::MIN);
    if rest.saturating_sub(buffers_min) / HASH_PART >= PASSWORD_HASH_BYTES {
        password_hashes += 1;
        rest -= PASSWORD_HASH_BYTES;
    }
    let (count, highest) = (executors as u64, BufferLimits::default());
    let upload_bytes =
        (rest * 2 / FIFTHS / count).clamp(BufferLimits::MIN.upload_bytes, highest.upload_bytes);
    let read_ahead_bytes =
        (rest / FIFTHS / count).clamp(BufferLimits::MIN.read_ahead_bytes, highest.read_ahead_bytes);
    let small_body_bytes =
        (rest / SMALL_BODY_PART / count).clamp(BufferLimits::MIN.small_body_bytes, highest.small_body_bytes);
    let of_executor = BufferLimits { upload_bytes, read_ahead_bytes, small_body_bytes };
    let left = rest.saturating_sub(count * buffers(of_executor));
    let (connections_max, management_connections_max, console_connections_max) = demand.connections(left);
    let budget = Budget {
        limit: demand.limit,
        executors,
        slices,
        cache_bytes,
        buffers: of_executor,
        connections_max,
        management_connections_max,
        console_connections_max,
        password_hashes,
    };
    assert!(
        used(&budget, demand) <= without_reserve(demand.limit),
        "the parts of the budget exceed the limit"
    );
    Ok(budget)
}

/// Memory that can be in use at the same time.
fn used(budget: &Budget, demand: &Demand) -> u64 {
    fixed(budget.executors, budget.slices)
        + budget.cache_bytes
        + budget.executors as u64 * buffers(budget.buffers)
        // One is in the fixed part.
        + (budget.password_hashes as u64 - 1) * PASSWORD_HASH_BYTES
        + budget.connections_max as u64 * demand.connection_bytes
        + budget.management_connections_max as u64 * demand.management_connection_bytes
        + budget.console_connections_max as u64 * demand.console_connection_bytes.unwrap_or_default()
}

impl Demand {
    /// Bytes that the minimum number of connections of all listeners can hold.
    const fn connections_min(&self) -> u64 {
        connections_min(
            self.connection_bytes,
            self.management_connection_bytes,
            self.console_connection_bytes,
        )
    }

    /// Returns the numbers of connections of the data plane, the management plane and the console, given this many bytes in
    /// addition to what the minimum numbers need.
    fn connections(&self, left: u64) -> (usize, usize, usize) {
        let of_plane =
            |bytes: u64, least: u64, most: usize| (left / PLANE_PART / bytes).min(most as u64 - least);
        let management_bytes = self.management_connection_bytes;
        let management = of_plane(management_bytes, MANAGEMENT_CONNECTIONS_MIN, MANAGEMENT_CONNECTIONS_MAX);
        let console = self
            .console_connection_bytes
            .map(|bytes| (of_plane(bytes, CONSOLE_CONNECTIONS_MIN, CONSOLE_CONNECTIONS_MAX), bytes));
        let beside = management * management_bytes + console.map_or(0, |(number, bytes)| number * bytes);
        let data = (left - beside) / self.connection_bytes;
        let number = |more: u64, least: u64| cairn_model::usize_of(least + more);
        let data = number(data, CONNECTIONS_MIN).min(self.connections_max);
        let console = console.map_or(0, |(more, _)| number(more, CONSOLE_CONNECTIONS_MIN));
        (data, number(management, MANAGEMENT_CONNECTIONS_MIN), console)
    }
}

/// Returns the numbers of executors and slices. Defaults are reduced until the minimum for everything fits the limit.
fn reduce_to_fit(demand: &Demand) -> (usize, usize) {
    let (mut executors, mut slices) = (number(demand.executors), number(demand.slices));
    while limit_min(executors, slices, demand.connections_min()) > demand.limit {
        let may_be_fewer = |wanted, now: usize| matches!(wanted, Wanted::AtMost(_)) && now > 1;
        // The larger number is reduced first, and executors before slices: the number of slices is permanent.
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

/// Formats a number of bytes, rounded down to whole MiB.
pub(crate) fn mebibytes(bytes: u64) -> String {
    bytes_text(if bytes < MIB { bytes } else { whole(bytes) })
}

/// Rounds down to whole MiB.
const fn whole(bytes: u64) -> u64 {
    bytes / MIB * MIB
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_sizes::LIMIT_BYTES_MIN;
    use cairn_engine::limits::SLICES_MAX;

    const TLS: u64 = TLS_CONNECTION_BYTES as u64;

    fn demand(limit: u64) -> Demand {
        Demand {
            limit,
            executors: Wanted::AtMost(4),
            slices: Wanted::AtMost(4),
            connections_max: 16_384,
            connection_bytes: CONNECTION_BYTES,
            management_connection_bytes: CONNECTION_BYTES,
            console_connection_bytes: Some(CONNECTION_BYTES),
            cache_bytes: None,
        }
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
                    console_connection_bytes: (tls == 0).then_some(CONNECTION_BYTES + management_tls),
                    ..demand(mebibytes * MIB)
                };
                let Ok(budget) = divide(&demand) else { continue };
                assert!(used(&budget, &demand) <= without_reserve(demand.limit), "{budget:?}");
                assert!(budget.connections_max >= 64 && budget.executors >= 1 && budget.slices >= 1);
                let management = budget.management_connections_max;
                assert!((16..=MANAGEMENT_CONNECTIONS_MAX).contains(&management), "{budget:?}");
                let console = budget.console_connections_max;
                assert!(if tls == 0 { (6..=4096).contains(&console) } else { console == 0 }, "{budget:?}");
            }
        }
    }

    #[test]
    fn a_new_store_has_a_slice_for_two_cores() {
        let numbers = [(1, 1), (2, 1), (3, 2), (4, 2), (64, 32), (4096, SLICES_MAX)];
        assert_eq!(numbers.map(|(cores, _)| (cores, default_slices(cores))), numbers);
    }

    #[test]
    fn plenty_of_memory_gives_every_part_its_maximum() {
        let budget = divide(&demand(64 << 30)).unwrap();
        assert_eq!((budget.executors, budget.slices, budget.connections_max), (4, 4, 16_384));
        assert_eq!(budget.management_connections_max, MANAGEMENT_CONNECTIONS_MAX);
        assert_eq!((budget.console_connections_max, budget.password_hashes), (CONSOLE_CONNECTIONS_MAX, 2));
        assert_eq!((budget.cache_bytes, budget.buffers), (16 << 30, BufferLimits::default()));
    }

    #[test]
    fn a_small_container_gets_less_of_everything() {
        let budget = divide(&demand(256 * MIB)).unwrap();
        assert_eq!((budget.executors, budget.slices), (4, 4));
        assert!(budget.cache_bytes >= 32 * MIB && budget.connections_max >= 128, "{budget:?}");
    }

    /// With the defaults, a container with little memory on a host with many cores did not start, or would have been killed.
    #[test]
    fn defaults_are_reduced_on_many_cores_with_little_memory() {
        let many = Demand { executors: Wanted::AtMost(64), slices: Wanted::AtMost(64), ..demand(256 * MIB) };
        let budget = divide(&many).unwrap();
        assert!(budget.executors >= 4 && budget.executors < 64, "{budget:?}");
        let fixed = Demand { executors: Wanted::Fixed(64), slices: Wanted::Fixed(64), ..many };
        let Err(BudgetError::TooSmall { least, executors: 64, slices: 64, .. }) = divide(&fixed) else {
            panic!("configured numbers must not be changed");
        };
        assert!(divide(&Demand { limit: least, ..fixed }).is_ok(), "the limit in the error is sufficient");
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
    fn a_cache_that_does_not_fit_is_refused_with_the_maximum() {
        let asked = Demand { cache_bytes: Some(200 * MIB), ..demand(256 * MIB) };
        let error = divide(&asked).unwrap_err();
        let BudgetError::CacheTooLarge { most, .. } = error else { panic!("{error:?}") };
        let text = error.text("the control group", "storage.cache_bytes");
        let (named, shown) = ("set by the control group", bytes_text(most));
        assert!(
            text.starts_with("storage.cache_bytes: ") && text.contains(named) && text.contains(&shown),
            "{text}"
        );
        let fits = divide(&Demand { cache_bytes: Some(most), ..asked }).unwrap();
        assert_eq!(fits.cache_bytes, most);
        assert!(used(&fits, &asked) <= without_reserve(fits.limit));
        assert!(divide(&Demand { cache_bytes: Some(most + MIB), ..asked }).is_err());
        assert_eq!(divide(&Demand { cache_bytes: Some(0), ..asked }).unwrap().cache_bytes, 0);
    }

    /// The minimum of the key was too small for any configuration, and a refusal advised fewer executors than one.
    #[test]
    fn the_minimum_limit_is_exact() {
        let one = Demand {
            executors: Wanted::Fixed(1),
            slices: Wanted::Fixed(1),
            cache_bytes: Some(0),
            console_connection_bytes: None,
            ..demand(LIMIT_BYTES_MIN)
        };
        assert_eq!(divide(&one).unwrap().password_hashes, 1);
        let console = Demand { console_connection_bytes: Some(CONNECTION_BYTES), ..one };
        assert!(
            divide(&Demand { limit: LIMIT_BYTES_MIN + MIB, ..console }).is_ok(),
            "a console needs little more"
        );
        let text = divide(&Demand { limit: LIMIT_BYTES_MIN - 1, ..one }).unwrap_err().text("the host", "");
        assert!(text.starts_with("the host: ") && text.contains("1 executor and 1 slice,"), "{text}");
        assert!(!text.contains("fewer"), "{text}");
    }
}
