//! Serves refusals when the store's format cannot be run.
//!
//! The store is neither opened nor locked. If the process ended, a service manager would restart it again and again. Instead,
//! `/health` responds with 200, `/ready` with 503 and the reason, and the data plane and the console with 503 to every
//! request, until the process is stopped, and the store is upgraded or the program is replaced.

use std::sync::Arc;
use std::time::Duration;

use cairn_admin::{
    AdminContext, AdminService, Archives, Capabilities, ImportRuns, ProbeFuture, Readiness, SubsystemState,
    Verifications, Waits,
};
use cairn_engine::OpenError;
use cairn_identity::CredentialThrottle;
use cairn_observe::RefusedRequests;
use cairn_s3::UnavailableService;
use cairn_sync::Mutex;

use super::listeners::{self, Listeners};
use super::no_shares::NoShares;
use super::planes;
use super::shutdown::Shutdown;
use super::signals;
use crate::certificates::{Certificates, CertificatesRead};
use crate::config::Settings;
use crate::error::ServeError;
use crate::host::open_files::{self, Connections, Users};
use crate::host::sd_notify::ServiceManager;
use crate::host::watchdog::{Heartbeats, Watchdog};
use crate::memory_sizes::MANAGEMENT_CONNECTIONS_MAX;

/// Refusals need little computation.
const EXECUTORS: usize = 1;

/// The readiness of the store's subsystems while it is not open.
struct Closed {
    reason: String,
}

impl Readiness for Closed {
    fn probe(&self) -> ProbeFuture<'_> {
        let state = |name| SubsystemState { name, state: Err(self.reason.clone()) };
        Box::pin(async move { ["storage", "metadata"].map(state).into() })
    }

    fn public_reason(&self) -> Option<String> {
        Some(self.reason.clone())
    }
}

/// Refuses requests on all planes until a signal ends the process.
///
/// # Errors
/// As those of [`crate::serve`].
pub(crate) fn serve(
    settings: &Arc<Settings>,
    why: &OpenError,
    certificates: CertificatesRead,
    manager: &ServiceManager,
    watchdog: Option<Duration>,
) -> Result<(), ServeError> {
    let reason = why.to_string();
    let certificates = Certificates::start(certificates, EXECUTORS).map_err(ServeError::Certificate)?;
    let listeners = listeners::bind(settings, EXECUTORS, &certificates)?;
    let shutdown = Shutdown::new(EXECUTORS);
    let grace = settings.server.shutdown_grace_period;
    signals::watch(shutdown.data.clone(), grace, manager.clone(), certificates)
        .map_err(ServeError::Signals)?;
    let users = Users { executors: EXECUTORS, slices: 0, volumes: 0 };
    let wanted = Connections { data: settings.server.connections_max, management: 0, console: 0 };
    let connections = open_files::connections_within(open_files::raise(), users, wanted);
    let connections_max = connections.map_err(ServeError::Limit)?.data;
    tracing::error!(target: "service", reason, "the store was not opened: every request is refused");
    let listeners = Arc::new(Mutex::new(listeners.into_iter().next()));
    let settings = Arc::clone(settings);
    let heartbeats = Heartbeats::new(EXECUTORS, watchdog);
    let counted = heartbeats.clone();
    let running = cairn_net::start(EXECUTORS, move |executor| {
        let own = listeners.lock().take();
        let (settings, shutdown, reason) = (Arc::clone(&settings), shutdown.clone(), reason.clone());
        let heartbeats = counted.clone();
        async move {
            if let Some(own) = own {
                let serving = serve_planes(own, &settings, &shutdown, connections_max, reason);
                futures_lite::future::or(serving, heartbeats.count(executor)).await;
            }
        }
    })?;
    // Reported as ready, with the reason as status: a start that times out would be retried again and again.
    manager.ready(&format!("Every request is refused: {why}"));
    let _watchdog = Watchdog::start(heartbeats, watchdog, manager.clone()).map_err(ServeError::Threads)?;
    Ok(running.join()?)
}

async fn serve_planes(
    listeners: Listeners,
    settings: &Settings,
    shutdown: &Shutdown,
    connections_max: usize,
    reason: String,
) {
    let options = AdminContext {
        credentials: planes::management_credentials(settings),
        readiness: Box::new(Closed { reason }),
        open: None,
        sessions: None,
        sign_ins: None,
        throttle: CredentialThrottle::default(),
        verifications: Verifications::default(),
        imports: ImportRuns::default(),
        archives: Archives::default(),
        metrics: Arc::default(),
        refused: RefusedRequests::new(1),
        setting_values: Arc::default(),
        waits: Waits::default(),
        capabilities: Capabilities {
            events: settings.events.enabled,
            console: false,
            root_s3: settings.auth.root_s3_enabled,
            public_access: settings.auth.public_access_enabled,
            s3_compatibility: settings.compatibility.name(),
        },
        s3_endpoint: planes::s3_endpoint(settings, listeners.data.local_addr()),
        drain: shutdown.data.clone(),
    };
    let management = AdminService::new(options);
    let serve_console = async {
        if let Some(listener) = listeners.console {
            let limits = planes::limits(settings, connections_max.min(MANAGEMENT_CONNECTIONS_MAX));
            cairn_net::serve(listener, NoShares::new(), limits, shutdown.data.clone()).await;
        }
    };
    let serve_data = async {
        let limits = planes::limits(settings, connections_max);
        let data = cairn_net::serve(listeners.data, UnavailableService::new(), limits, shutdown.data.clone());
        futures_lite::future::zip(data, serve_console).await;
        shutdown.data_plane_ended();
    };
    let management_max = connections_max.min(MANAGEMENT_CONNECTIONS_MAX);
    let limits = planes::limits(settings, management_max);
    let serve_management =
        cairn_net::serve(listeners.management, management, limits, shutdown.management.clone());
    futures_lite::future::zip(serve_data, serve_management).await;
}
