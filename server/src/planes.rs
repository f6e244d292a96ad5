//! The planes as one executor serves them: one short function each.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use cairn_admin::{
    AdminOptions, AdminService, ManagementCredentials, MetricSources, SubsystemChecks, Verifications,
    WrongCredentials,
};
use cairn_engine::{Engine, Store};
use cairn_http1::HeadLimits;
use cairn_identity::RootCredential;
use cairn_identity::directory::{Directory, ExecutorCredentials};
use cairn_model::{Clock, SystemClock};
use cairn_net::{ExecutorIndex, Limits, Listener};
use cairn_observe::{AuditLog, Plane};
use cairn_s3::{S3Options, S3Service};

use crate::certificates::Certificates;
use crate::config::{Settings, keys};
use crate::error::ServeError;
use crate::host;
use crate::shutdown::Shutdown;

/// Most connections of the management port: a few operators and probes, while the data plane may be flooded.
pub(crate) const MANAGEMENT_CONNECTIONS_MAX: usize = 1024;

/// What all executors share. Cloned to each.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) store: Arc<Store>,
    pub(crate) audit: Arc<AuditLog>,
    pub(crate) directory: Arc<Directory>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) shutdown: Shutdown,
    /// What the limit on open files leaves of `server.connections_max`.
    pub(crate) connections_max: usize,
    /// What that and the memory leave to the management plane.
    pub(crate) management_connections_max: usize,
    pub(crate) verifications: Verifications,
    pub(crate) wrong_credentials: WrongCredentials,
    pub(crate) readiness: SubsystemChecks,
    pub(crate) metrics: Arc<MetricSources>,
}

/// The listeners of one executor.
pub(crate) struct Listeners {
    pub(crate) data: Listener,
    pub(crate) management: Listener,
}

/// Binds every port, once per executor.
pub(crate) fn bind(
    settings: &Settings,
    executors: usize,
    certificates: &Certificates,
) -> Result<Vec<Listeners>, ServeError> {
    let bind_one = |address: SocketAddr, variable: String| {
        let bound = host::refuse_taken(address, host::PORT_PATIENCE)
            .and_then(|()| cairn_net::bind(address, executors));
        bound.map_err(|error| ServeError::Listen { variable, error })
    };
    let data = bind_one(settings.server.s3_bind.address, keys::S3_BIND.variable())?;
    let management = bind_one(settings.server.api_bind.address, keys::API_BIND.variable())?;
    let dressed = |listener: Listener, plane| {
        let listener = listener.trusting(settings.server.trusted_proxies.clone());
        match certificates.of(plane) {
            Some(tls) => listener.secured(tls),
            None => listener,
        }
    };
    let of_executor = |(data, management)| Listeners {
        data: dressed(data, Plane::Data),
        management: dressed(management, Plane::Management),
    };
    Ok(data.into_iter().zip(management).map(of_executor).collect())
}

/// Where the metrics find what is counted of both ports. Each listener of a port tells of all executors.
pub(crate) fn metric_sources(
    listeners: &[Listeners],
    certificates: Certificates,
) -> io::Result<MetricSources> {
    let ports = listeners.first().map(|first| {
        vec![(Plane::Data, first.data.figures()), (Plane::Management, first.management.figures())]
    });
    MetricSources::start(ports.unwrap_or_default(), Box::new(move || certificates.readings()))
}

/// Serves both planes on this executor until the shutdown has ended. Says through `started` once that it serves, or
/// why not.
pub(crate) async fn serve(
    executor: ExecutorIndex,
    listeners: Listeners,
    shared: Shared,
    started: impl FnOnce(Result<(), ServeError>),
) {
    match Engine::open(Arc::clone(&shared.store)).await {
        Ok(engine) => {
            let management = management_service(Rc::clone(&engine), &shared);
            let data = data_service(Rc::clone(&engine), listeners.data.local_addr(), &shared);
            started(Ok(()));
            let serve_data = serve_data(listeners.data, data, &shared);
            let serve_management = serve_management(listeners.management, management, &shared);
            let serve_both = async {
                futures_lite::future::zip(serve_data, serve_management).await;
            };
            futures_lite::future::or(serve_both, keep_house(executor, engine, &shared)).await;
        }
        Err(error) => started(Err(error.into())),
    }
}

fn data_service(engine: Rc<Engine>, bound: SocketAddr, shared: &Shared) -> Rc<S3Service> {
    let auth = &shared.settings.auth;
    let root = RootCredential::new(&auth.root_access_key, auth.root_secret_key.expose())
        .s3_enabled(auth.root_s3_enabled);
    let credentials = Box::new(ExecutorCredentials::new(root, Arc::clone(&shared.directory)));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let server = &shared.settings.server;
    // Clients know the server by the name it was told to bind to, not only by the address that the name stands for.
    let base_hosts = [server.base_hosts.as_slice(), std::slice::from_ref(&server.s3_bind.text)].concat();
    let audit = Arc::clone(&shared.audit);
    let options = S3Options { credentials, audit, clock, base_hosts, bound_address: bound };
    S3Service::new(engine, options)
}

fn management_service(engine: Rc<Engine>, shared: &Shared) -> Rc<AdminService> {
    let credentials = management_credentials(&shared.settings);
    let options = AdminOptions {
        credentials,
        readiness: Box::new(shared.readiness.clone()),
        engine: Some(engine),
        audit: Some(Arc::clone(&shared.audit)),
        directory: Some(Arc::clone(&shared.directory)),
        wrong_credentials: shared.wrong_credentials.clone(),
        verifications: shared.verifications.clone(),
        metrics: Arc::clone(&shared.metrics),
        drain: shared.shutdown.data.clone(),
    };
    AdminService::new(options)
}

pub(crate) fn management_credentials(settings: &Settings) -> ManagementCredentials {
    let auth = &settings.auth;
    ManagementCredentials {
        system_token: auth.management_system_token.expose().to_owned(),
        root_access_key: auth.root_access_key.clone(),
        root_secret_key: auth.root_secret_key.expose().to_owned(),
        scrape_token: auth.metrics_scrape_token.as_ref().map(|token| token.expose().to_owned()),
    }
}

/// The executor that does what the store needs done in the background.
const HOUSEKEEPING: ExecutorIndex = ExecutorIndex(0);

/// Scrubs the store and expires abandoned uploads until the drain begins, on one executor; never ends, for it must not
/// end the planes.
async fn keep_house(executor: ExecutorIndex, engine: Rc<Engine>, shared: &Shared) {
    if executor == HOUSEKEEPING {
        let storage = &shared.settings.storage;
        let stopping = || {
            let drain = shared.shutdown.data.clone();
            move || drain.is_begun()
        };
        let scrub = async {
            if let Some(options) = storage.scrub {
                engine.scrub(options, stopping()).await;
            }
        };
        let expire = async {
            if let Some(age) = storage.multipart_expiry {
                engine.expire_uploads(age, stopping()).await;
            }
        };
        futures_lite::future::zip(scrub, expire).await;
    }
    std::future::pending().await
}

async fn serve_data(listener: Listener, service: Rc<S3Service>, shared: &Shared) {
    let limits = limits(&shared.settings, shared.connections_max);
    cairn_net::serve(listener, service, limits, shared.shutdown.data.clone()).await;
    shared.shutdown.data_plane_ended();
}

async fn serve_management(listener: Listener, service: Rc<AdminService>, shared: &Shared) {
    let limits = limits(&shared.settings, shared.management_connections_max);
    cairn_net::serve(listener, service, limits, shared.shutdown.management.clone()).await;
}

pub(crate) fn limits(settings: &Settings, connections_max: usize) -> Limits {
    let server = &settings.server;
    Limits {
        head: HeadLimits::default(),
        connections_max,
        head_timeout: server.head_timeout,
        idle_timeout: server.idle_timeout,
        body_stall_timeout: server.body_timeout,
        write_stall_timeout: server.body_timeout,
        ..Limits::default()
    }
}
