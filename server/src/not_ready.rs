//! A service whose store was made by a later program: it says so on both planes and touches nothing.
//!
//! The store stays closed, its lock included, until the process is replaced by a program that knows the format. Ending
//! at once would have a supervisor start it again and again; so `/health` answers 200, `/ready` 503 with the reason,
//! and the data plane 503 to every request.

use std::sync::{Arc, Mutex, PoisonError};

use cairn_admin::{
    AdminOptions, AdminService, Looking, Readiness, SubsystemState, Verifications, WrongCredentials,
};
use cairn_engine::OpenError;
use cairn_s3::UnavailableService;

use crate::certificates::Certificates;
use crate::config::Settings;
use crate::error::ServeError;
use crate::planes::{self, Listeners};
use crate::shutdown::Shutdown;
use crate::supervisor::Supervisor;
use crate::{host, signals};

/// There is nothing to compute.
const EXECUTORS: usize = 1;

/// The store's subsystems while it is closed.
struct Closed {
    reason: String,
}

impl Readiness for Closed {
    fn look(&self) -> Looking<'_> {
        let state = |name| SubsystemState { name, state: Err(self.reason.clone()) };
        Box::pin(async move { ["storage", "metadata"].map(state).into() })
    }

    fn public_reason(&self) -> Option<String> {
        Some(self.reason.clone())
    }
}

/// Answers on both planes until a signal ends the process.
///
/// # Errors
/// As [`crate::serve`].
pub(crate) fn serve(
    settings: &Arc<Settings>,
    why: &OpenError,
    supervisor: &Supervisor,
) -> Result<(), ServeError> {
    let reason = why.to_string();
    let certificates =
        Certificates::load(&settings.server.tls, EXECUTORS).map_err(ServeError::Certificate)?;
    let listeners = planes::bind(settings, EXECUTORS, &certificates)?;
    let shutdown = Shutdown::new(EXECUTORS);
    let grace = settings.server.shutdown_grace_period;
    signals::watch(shutdown.data.clone(), grace, supervisor.clone(), certificates)
        .map_err(ServeError::Signals)?;
    let connections_max = host::connections_possible(settings.server.connections_max);
    tracing::error!(target: "service", reason, "the store is not opened: every request is refused");
    let listeners = Arc::new(Mutex::new(listeners.into_iter().next()));
    let settings = Arc::clone(settings);
    let running = cairn_net::start(EXECUTORS, move |_| {
        let own = listeners.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (settings, shutdown, reason) = (Arc::clone(&settings), shutdown.clone(), reason.clone());
        async move {
            if let Some(own) = own {
                serve_planes(own, &settings, &shutdown, connections_max, reason).await;
            }
        }
    })?;
    // It stays, and whoever looks at it shall see why; a start that times out would be tried again and again.
    supervisor.ready(&format!("Every request is refused: {why}"));
    Ok(running.join()?)
}

async fn serve_planes(
    listeners: Listeners,
    settings: &Settings,
    shutdown: &Shutdown,
    connections_max: usize,
    reason: String,
) {
    let options = AdminOptions {
        credentials: planes::management_credentials(settings),
        readiness: Box::new(Closed { reason }),
        engine: None,
        audit: None,
        directory: None,
        wrong_credentials: WrongCredentials::default(),
        verifications: Verifications::default(),
        metrics: Arc::default(),
        drain: shutdown.data.clone(),
    };
    let management = AdminService::new(options);
    let serve_data = async {
        let limits = planes::limits(settings, connections_max);
        cairn_net::serve(listeners.data, UnavailableService::new(), limits, shutdown.data.clone()).await;
        shutdown.data_plane_ended();
    };
    let management_max = connections_max.min(planes::MANAGEMENT_CONNECTIONS_MAX);
    let limits = planes::limits(settings, management_max);
    let serve_management =
        cairn_net::serve(listeners.management, management, limits, shutdown.management.clone());
    futures_lite::future::zip(serve_data, serve_management).await;
}
