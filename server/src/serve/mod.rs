//! The life of the server process: start, requests, shutdown.
//!
//! The order of a start matters: configuration, log, ports, host checks, store, audit trail, directory of accounts, listeners,
//! webhooks, executors. Nothing is changed before the configuration has been validated and the ports have been found free. The
//! host is checked before the store is opened. Listeners are opened after the store, so that no client waits for it. The store
//! is closed after the last executor has ended.

mod audit;
mod directory;
mod listeners;
mod no_shares;
mod plan;
mod planes;
mod ports;
mod readiness;
mod sharing;
mod shutdown;
mod signals;
mod subsystems;
mod unavailable;
mod webhooks;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use cairn_engine::{FORMAT_VERSION, OpenError, Store, StoreFacts, StoreOptions};
use cairn_model::SystemClock;
use cairn_net::{ExecutorIndex, Executors};
use cairn_observe::{install_panic_hook, start_logging};
use cairn_sync::Mutex;

use crate::addresses::Addresses;
use crate::budget::{self, Budget};
use crate::certificates::CertificatesRead;
use crate::config::{Environment, Settings, keys};
use crate::dev::banner;
use crate::error::ServeError;
use crate::host::data_folder::{FileSystem, Loss};
use crate::host::memory;
use crate::host::open_files;
use crate::host::protection;
use crate::host::sd_notify::ServiceManager;
use crate::host::watchdog::{self, Watchdog};
use crate::load::{Mode, ServeOptions, Sources};
use listeners::{Listeners, Ports};
use plan::Plan;
use planes::Shared;
use shutdown::Shutdown;
use subsystems::{Closers, Subsystems};

/// Metadata is read into the page cache after a start if it has at most one part in two of the memory.
const WARM_UP_PART: u64 = 2;

/// Passed to the caller when the service accepts requests.
#[derive(Debug)]
pub struct Ready {
    /// The data plane's address, with the actual port if port 0 was configured.
    pub data: SocketAddr,
    /// The management plane's address.
    pub management: SocketAddr,
    /// The console's address, which serves shares; `None` if it is disabled.
    pub console: Option<SocketAddr>,
    /// The banner to print; with `--dev` only.
    pub banner: Option<String>,
}

/// Runs the service until a signal has ended it. Calls `on_ready` once, when requests are accepted.
///
/// # Errors
/// [`ServeError`] if the service does not start, or an executor dies. The caller ends the process.
pub fn serve(
    options: &ServeOptions,
    environment: &Environment,
    on_ready: impl FnOnce(&Ready),
) -> Result<(), ServeError> {
    // Before any secret is read, any file is created, or any thread starts.
    let mut warnings: Vec<String> = protection::set_core_files(false).into_iter().collect();
    protection::restrict_new_files();
    let sources = Sources::read(options, environment);
    let planned = sources.settings_to_check()?;
    if planned.server.core_dumps {
        warnings.extend(protection::set_core_files(true));
        warnings.push("server.core_dumps is on: a core file would contain all secrets".to_owned());
    }
    let _log = start_logging(&planned.log, std::io::stderr())?;
    install_panic_hook();
    ports::refuse_taken(&planned)?;
    // With --dev this creates files, so it comes after all checks.
    let settings = Arc::new(sources.settings()?);
    announce(&settings, &warnings);
    let manager = ServiceManager::of(environment);
    let tell_ready = |ready: &Ready| {
        let Ready { data, management, console, .. } = *ready;
        let addresses = Addresses { data, management, console };
        manager.ready(&format!("Ready: {}", addresses.ready_text()));
        on_ready(ready);
    };
    let watchdog = watchdog::limit(environment);
    let served = serve_supervised(settings, options.mode, &manager, watchdog, tell_ready);
    if let Err(error) = &served {
        manager.status(&error.to_string());
    }
    served
}

/// Opens everything, serves, and closes it; reports each step to the service manager.
fn serve_supervised(
    settings: Arc<Settings>,
    mode: Mode,
    manager: &ServiceManager,
    watchdog: Option<Duration>,
    on_ready: impl FnOnce(&Ready),
) -> Result<(), ServeError> {
    cairn_net::check_host()?;
    // Before a new store is made: its creation would be for nothing.
    let certificates = CertificatesRead::of(&settings.server.tls).map_err(ServeError::Certificate)?;
    manager.status("Opening the store");
    let (budget, store) = match find_and_open_store(&settings, mode) {
        Err(ServeError::Store(why @ (OpenError::FormatTooNew { .. } | OpenError::FormatTooOld { .. }))) => {
            return unavailable::serve(&settings, &why, certificates, manager, watchdog);
        }
        opened => opened?,
    };
    let shutdown = Shutdown::new(budget.executors);
    let plan = Plan { settings, budget, mode, watchdog, shutdown };
    let mut closers = Closers::default();
    let served =
        Subsystems::open(&plan, store, certificates, &mut closers).and_then(|(subsystems, ports)| {
            serve_subsystems(&plan, subsystems, ports, &mut closers, manager, on_ready)
        });
    closers.close(&served);
    match &served {
        Ok(()) => tracing::info!(target: "service", "stopped"),
        Err(error) => tracing::error!(target: "service", %error, "ended"),
    }
    served
}

/// Serves on all executors until a signal has ended it.
fn serve_subsystems(
    plan: &Plan,
    subsystems: Subsystems,
    Ports { certificates, listeners, addresses }: Ports,
    closers: &mut Closers,
    manager: &ServiceManager,
    on_ready: impl FnOnce(&Ready),
) -> Result<(), ServeError> {
    let Plan { settings, budget, mode, watchdog, shutdown } = plan;
    let executors = budget.executors;
    let grace = settings.server.shutdown_grace_period;
    signals::watch(shutdown.data.clone(), grace, manager.clone(), certificates.clone())
        .map_err(ServeError::Signals)?;
    let executors_serve = Arc::new(AtomicBool::new(false));
    let shared = Shared::new(plan, subsystems, closers, certificates, &listeners, &executors_serve)?;
    let running = start_executors(listeners, &shared)?;
    executors_serve.store(true, Ordering::Release);
    let Addresses { data, management, console } = addresses;
    let console_shown = console.map(tracing::field::display);
    tracing::info!(target: "service", %data, %management, console = console_shown, executors, "ready");
    let banner = (*mode == Mode::Dev).then(|| banner::write(settings, addresses));
    on_ready(&Ready { data, management, console, banner });
    let _watchdog =
        Watchdog::start(shared.heartbeats, *watchdog, manager.clone()).map_err(ServeError::Threads)?;
    Ok(running.join()?)
}

/// Starts the executors and waits until each of them serves.
fn start_executors(listeners: Vec<Listeners>, shared: &Shared) -> Result<Executors, ServeError> {
    let count = listeners.len();
    let waiting = Arc::new(Mutex::new(listeners.into_iter().map(Some).collect::<Vec<_>>()));
    let (report, reports) = channel();
    let shared = shared.clone();
    let running = cairn_net::start(count, move |executor: ExecutorIndex| {
        let own = waiting.lock().get_mut(executor.0).and_then(Option::take);
        let (shared, report) = (shared.clone(), report.clone());
        async move {
            // Sending fails only if another executor failed to start; then the process is ending.
            let started = |result| drop(report.send(result));
            match own {
                Some(own) => planes::serve(executor, own, shared, started).await,
                None => {
                    started(Err(ServeError::Executor(format!("executor {} has no listeners", executor.0))))
                }
            }
        }
    })?;
    all_started(count, &reports)?;
    Ok(running)
}

fn all_started(count: usize, reports: &Receiver<Result<(), ServeError>>) -> Result<(), ServeError> {
    for _ in 0..count {
        let gone = |_| Err(ServeError::Executor("it ended while starting".to_owned()));
        reports.recv().unwrap_or_else(gone)?;
    }
    Ok(())
}

/// Opens the store in the data folder, or makes one, within the budget of this process.
///
/// # Errors
/// [`ServeError::NoStore`] if the folder holds no store and none may be created; its disk may not be mounted.
/// [`ServeError::Memory`] or [`ServeError::Limit`] if the process has too few resources. [`ServeError::Store`] if the store
/// cannot be opened.
fn find_and_open_store(settings: &Settings, mode: Mode) -> Result<(Budget, Arc<Store>), ServeError> {
    let data_dir = &settings.server.data_dir;
    let found = cairn_engine::preflight_store(data_dir)?;
    if found.is_none() && !settings.storage.create_store {
        return Err(ServeError::NoStore(data_dir.clone()));
    }
    let budget = budget_of(settings, found)?;
    let store = open_store(settings, &budget)?;
    if found.is_none() && mode != Mode::Dev {
        tracing::info!(target: "service", data_dir = %data_dir.display(), "the data folder held no store: a new, empty one was created. If there should be one, stop the service and look whether its disk is mounted; storage.create_store = false refuses such a start");
    }
    warm_up_and_warn(&store, data_dir);
    Ok((budget, store))
}

/// Computes the budget of memory and open files, and logs it.
fn budget_of(settings: &Settings, found: Option<StoreFacts>) -> Result<Budget, ServeError> {
    let of_memory = budget::of_settings(settings, found)?;
    let descriptors = open_files::raise();
    let budget = of_memory.within_open_files(settings, found, descriptors)?;
    let Budget { limit, executors, slices, cache_bytes, buffers, .. } = budget;
    let Budget {
        connections_max, management_connections_max, console_connections_max, password_hashes, ..
    } = budget;
    tracing::info!(
        target: "service",
        limit,
        cache_bytes,
        executors,
        upload_bytes_per_executor = buffers.upload_bytes,
        read_ahead_bytes_per_executor = buffers.read_ahead_bytes,
        small_body_bytes_per_executor = buffers.small_body_bytes,
        slices,
        connections_max,
        management_connections_max,
        console_connections_max,
        password_hashes,
        "memory divided"
    );
    if connections_max < of_memory.connections_max {
        tracing::warn!(
            target: "service",
            descriptors,
            connections_max,
            "server.connections_max is lowered, because the limit on open files is too low; raise the hard limit (LimitNOFILE, \
             ulimit -Hn)"
        );
    }
    let without = budget::cores_without_executor(settings);
    if without > 0 {
        tracing::warn!(target: "service", "{without} cores have no executor, because too little memory may be locked; raise the limit (LimitMEMLOCK, ulimit -l)");
    }
    let configured = settings.server.connections_max;
    if of_memory.connections_max < configured && settings.values.is_given(&keys::CONNECTIONS_MAX) {
        tracing::warn!(
            target: "service",
            connections_max,
            "server.connections_max is lowered from {configured}, because there is too little memory"
        );
    }
    Ok(budget)
}

fn open_store(settings: &Settings, budget: &Budget) -> Result<Arc<Store>, ServeError> {
    let data_dir = &settings.server.data_dir;
    let options = StoreOptions {
        data_dir: data_dir.clone(),
        slices: u16::try_from(budget.slices).ok(),
        master_key: settings.auth.credential_master_key.expose().as_bytes().to_vec().into(),
        cache_bytes: budget.cache_bytes,
        buffers: budget.buffers,
        reserve_bytes: settings.storage.reserve_bytes,
        low_space_percent: settings.storage.low_space_percent,
        reclaim_after: settings.storage.reclaim_after,
        encryption_at_rest: settings.storage.encryption_enabled,
        etags: settings.etags,
        commit: settings.storage.commit,
        events: settings.events.enabled,
        clock: Arc::new(SystemClock),
    };
    let store = Store::open(options)?;
    let format = store.format_version();
    if format < FORMAT_VERSION {
        tracing::info!(target: "service", format, latest = FORMAT_VERSION, "the store keeps its format until `cairn storage upgrade`");
    }
    store.set_lifecycle_day(settings.lifecycle.day);
    tracing::info!(target: "service", data_dir = %data_dir.display(), "store open");
    Ok(store)
}

/// Reads metadata in advance, and warns of a data folder that others can read or that may lose data.
fn warm_up_and_warn(store: &Arc<Store>, data_dir: &Path) {
    if let Err(error) = store.begin_warm_up(memory::usable().bytes / WARM_UP_PART) {
        tracing::warn!(target: "service", %error, "the metadata is not read into memory in advance");
    }
    if let Some(warning) = protection::exposure(data_dir) {
        tracing::warn!(target: "service", "{warning}");
    }
    if let Ok(FileSystem { name, loss: Some(Loss { when, fix }) }) = FileSystem::of(data_dir) {
        tracing::warn!(target: "service", data_dir = %data_dir.display(), "the data folder is on {name}: {when}; {fix}");
    }
}

fn announce(settings: &Settings, warnings: &[String]) {
    tracing::info!(target: "service", version = env!("CARGO_PKG_VERSION"), "starting");
    for warning in settings.warnings.iter().chain(warnings) {
        tracing::warn!(target: "service", "{warning}");
    }
    for (key, value, source) in settings.values.redacted() {
        tracing::debug!(target: "service::configuration", key, value, source, "configured");
    }
}
