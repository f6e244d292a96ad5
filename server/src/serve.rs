//! The life of the server process: configuration, log, host, store, listeners, executors; then requests; then the
//! drain.
//!
//! The order matters. Nothing is touched before the configuration is known to be right; the host is judged before
//! the store is opened, and the audit trail and the directory of accounts with it; the ports are bound before executors start, so that a wrong
//! address ends the start; and the store is closed after the last executor has ended.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};

use cairn_admin::{Verifications, WrongCredentials};
use cairn_engine::{OpenError, Store, StoreOptions};
use cairn_identity::directory::Directory;
use cairn_model::SystemClock;
use cairn_net::{ExecutorIndex, Executors};
use cairn_observe::{AuditLog, install_panic_hook, start_logging};

use crate::budget::{self, Budget};
use crate::certificates::Certificates;
use crate::config::{Environment, Settings, keys};
use crate::error::ServeError;
use crate::guide;
use crate::load::{Mode, ServeOptions, load_settings};
use crate::planes::{self, Listeners, Shared};
use crate::shutdown::Shutdown;
use crate::supervisor::Supervisor;
use crate::{audit, host, identity, not_ready, signals, subsystems};

/// The service accepts requests.
#[derive(Debug)]
pub struct Ready {
    /// The data plane's address; with the real port when 0 was configured.
    pub data: SocketAddr,
    /// The management plane's address.
    pub management: SocketAddr,
    /// What to print for who tries the service out; with `--dev` only.
    pub guide: Option<String>,
}

/// What is served, and with what.
struct Plan {
    settings: Arc<Settings>,
    budget: Budget,
    mode: Mode,
}

/// Runs the service until a signal has ended it. Calls `on_ready` once, when requests are accepted.
///
/// # Errors
/// When it does not start, or an executor dies; the caller ends the process.
pub fn serve(
    options: &ServeOptions,
    environment: &Environment,
    on_ready: impl FnOnce(&Ready),
) -> Result<(), ServeError> {
    let settings = Arc::new(load_settings(options, environment)?);
    let _log = start_logging(&settings.log.filter, settings.log.format, std::io::stderr())?;
    install_panic_hook();
    announce(&settings);
    let supervisor = Supervisor::of(environment);
    let tell_ready = |ready: &Ready| {
        supervisor.ready(&format!("Ready: S3 on {}, management on {}", ready.data, ready.management));
        on_ready(ready);
    };
    let served = serve_supervised(settings, options.mode, &supervisor, tell_ready);
    if let Err(error) = &served {
        supervisor.status(&error.to_string());
    }
    served
}

/// Serves while the manager of services is told what goes on.
fn serve_supervised(
    settings: Arc<Settings>,
    mode: Mode,
    supervisor: &Supervisor,
    on_ready: impl FnOnce(&Ready),
) -> Result<(), ServeError> {
    cairn_net::probe()?;
    supervisor.status("Opening the store");
    let opened = budget_of(&settings).and_then(|budget| Ok((budget, open_store(&settings, &budget)?)));
    let (budget, store) = match opened {
        Err(ServeError::Store(why @ OpenError::FormatTooNew { .. })) => {
            return not_ready::serve(&settings, &why, supervisor);
        }
        opened => opened?,
    };
    let plan = Plan { settings, budget, mode };
    let served = serve_audited(&plan, &store, supervisor, on_ready);
    // Also when serving failed: what was acknowledged is durable, but a clean end leaves nothing to recover.
    store.close();
    match &served {
        Ok(()) => tracing::info!(target: "service", "stopped"),
        Err(error) => tracing::error!(target: "service", %error, "ended"),
    }
    served
}

/// Serves between the records of the start and of the end.
fn serve_audited(
    plan: &Plan,
    store: &Arc<Store>,
    supervisor: &Supervisor,
    on_ready: impl FnOnce(&Ready),
) -> Result<(), ServeError> {
    let log = audit::open(&plan.settings, store)?;
    let served = identity::open(&plan.settings, store).and_then(|directory| {
        let (store, log) = (Arc::clone(store), Arc::clone(&log));
        let served = serve_store(plan, store, log, Arc::clone(&directory), supervisor, on_ready);
        directory.close();
        served
    });
    audit::close(&log, &served);
    served
}

fn serve_store(
    plan: &Plan,
    store: Arc<Store>,
    audit: Arc<AuditLog>,
    directory: Arc<Directory>,
    supervisor: &Supervisor,
    on_ready: impl FnOnce(&Ready),
) -> Result<(), ServeError> {
    let Plan { settings, budget, mode } = plan;
    let executors = budget.executors;
    let certificates =
        Certificates::load(&settings.server.tls, executors).map_err(ServeError::Certificate)?;
    let listeners = planes::bind(settings, executors, &certificates)?;
    let Some((data, management)) =
        listeners.first().map(|first| (first.data.local_addr(), first.management.local_addr()))
    else {
        return Err(ServeError::Host(cairn_net::StartError::NoExecutors));
    };
    let shutdown = Shutdown::new(executors);
    let grace = settings.server.shutdown_grace_period;
    signals::watch(shutdown.data.clone(), grace, supervisor.clone(), certificates.clone())
        .map_err(ServeError::Signals)?;

    let connections_max = host::connections_possible(budget.connections_max);
    let verifications = Verifications::default();
    let wrong_credentials = WrongCredentials::default();
    let readiness = subsystems::watch(&store, &audit, &directory, &shutdown.data, certificates.clone())?;
    let metrics = Arc::new(planes::metric_sources(&listeners, certificates).map_err(ServeError::Threads)?);
    let settings = Arc::clone(settings);
    let shared = Shared {
        store,
        audit,
        directory,
        settings,
        shutdown,
        connections_max,
        management_connections_max: connections_max.min(budget.management_connections_max),
        verifications,
        wrong_credentials,
        readiness,
        metrics,
    };
    let running = start_executors(listeners, &shared)?;
    tracing::info!(target: "service", %data, %management, executors, "ready");
    let guide = (*mode == Mode::Dev).then(|| guide::write(&shared.settings, data, management));
    on_ready(&Ready { data, management, guide });
    Ok(running.join()?)
}

/// Starts the executors and waits until each of them serves.
fn start_executors(listeners: Vec<Listeners>, shared: &Shared) -> Result<Executors, ServeError> {
    let count = listeners.len();
    let waiting = Arc::new(Mutex::new(listeners.into_iter().map(Some).collect::<Vec<_>>()));
    let (report, reports) = channel();
    let shared = shared.clone();
    let running = cairn_net::start(count, move |executor: ExecutorIndex| {
        let own =
            waiting.lock().unwrap_or_else(PoisonError::into_inner).get_mut(executor.0).and_then(Option::take);
        let (shared, report) = (shared.clone(), report.clone());
        async move {
            // Nobody listens any more only when the start has failed elsewhere; then the process is ending.
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

/// Divides the memory, and says how.
fn budget_of(settings: &Settings) -> Result<Budget, ServeError> {
    let budget = budget::of_settings(settings)?;
    let Budget { limit, executors, slices, cache_bytes, buffers, .. } = budget;
    let Budget { connections_max, management_connections_max, .. } = budget;
    tracing::info!(
        target: "service",
        limit,
        cache_bytes,
        executors,
        upload_bytes_per_executor = buffers.upload_bytes,
        read_ahead_bytes_per_executor = buffers.read_ahead_bytes,
        slices,
        connections_max,
        management_connections_max,
        "memory divided"
    );
    let asked = settings.server.connections_max;
    if connections_max < asked && settings.values.is_given(&keys::CONNECTIONS_MAX) {
        tracing::warn!(
            target: "service",
            connections_max,
            "too little memory for the {asked} of server.connections_max, which is lowered"
        );
    }
    Ok(budget)
}

fn open_store(settings: &Settings, budget: &Budget) -> Result<Arc<Store>, ServeError> {
    let options = StoreOptions {
        data_dir: settings.server.data_dir.clone(),
        slices: u16::try_from(budget.slices).ok(),
        master_key: settings.auth.credential_master_key.expose().as_bytes().to_vec(),
        cache_bytes: budget.cache_bytes,
        buffers: budget.buffers,
        reserve_bytes: settings.storage.reserve_bytes,
        reclaim_after: settings.storage.reclaim_after,
        encryption_at_rest: settings.storage.encryption_enabled,
        clock: Arc::new(SystemClock),
    };
    let store = Store::open(options)?;
    tracing::info!(target: "service", data_dir = %settings.server.data_dir.display(), "store open");
    Ok(store)
}

fn announce(settings: &Settings) {
    tracing::info!(target: "service", version = env!("CARGO_PKG_VERSION"), "starting");
    for warning in &settings.warnings {
        tracing::warn!(target: "service", "{warning}");
    }
    for (key, value, source) in settings.values.redacted() {
        tracing::debug!(target: "service::configuration", key, value, source, "configured");
    }
}
