//! Serves data plane, management plane and console on one executor.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cairn_admin::{
    AdminContext, AdminService, Archives, Capabilities, ImportRuns, ImportTurns, ManagementCredentials,
    MetricSources, OpenStore, PersonSignIns, S3Endpoint, SessionOptions, Sessions, SettingValues,
    SubsystemProbes, Verifications, Waits,
};
use cairn_console::{ConsoleFiles, ConsoleHosts, ConsoleService};
use cairn_engine::{Engine, Store};
use cairn_http1::HeadLimits;
use cairn_identity::directory::ExecutorCredentials;
use cairn_identity::{CredentialThrottle, RootCredential};
use cairn_model::{Clock, SystemClock};
use cairn_net::{ExecutorIndex, Limits, Listener};
use cairn_observe::{Plane, RefusedRequests};
use cairn_openid::SignIns;
use cairn_s3::{S3Options, S3Service};
use cairn_sharing::{ListenerUrl, PublicLinks, ShareService};

use super::listeners::Listeners;
use super::plan::Plan;
use super::readiness;
use super::shutdown::Shutdown;
use super::subsystems::{Closers, Subsystems};
use crate::certificates::Certificates;
use crate::config::Settings;
use crate::error::ServeError;
use crate::host::open_files::Connections;
use crate::host::watchdog::Heartbeats;

/// State that all executors share; each has a clone.
#[derive(Clone)]
pub(super) struct Shared {
    subsystems: Subsystems,
    settings: Arc<Settings>,
    shutdown: Shutdown,
    /// Says to the service manager's watchdog that this executor runs.
    pub(super) heartbeats: Heartbeats,
    connections: Connections,
    /// Throttles wrong credentials on both planes.
    throttle: CredentialThrottle,
    /// The last refused requests of S3 clients.
    refused: RefusedRequests,
    management: ManagementState,
    console: ConsoleState,
}

/// State of the management plane and of the console.
#[derive(Clone)]
struct ManagementState {
    verifications: Verifications,
    imports: ImportRuns,
    archives: Archives,
    readiness: SubsystemProbes,
    metrics: Arc<MetricSources>,
    /// The values of the settings that explanations of refusals name.
    setting_values: SettingValues,
}

/// State of the console.
#[derive(Clone)]
struct ConsoleState {
    /// `None` if it serves shares only.
    sessions: Option<Sessions>,
    /// `None` if people sign in with tokens only.
    sign_ins: Option<PersonSignIns>,
    files: Arc<ConsoleFiles>,
}

impl Shared {
    /// Creates the state and starts the threads of readiness and metrics. `executors_serve` becomes true when they do.
    pub(super) fn new(
        plan: &Plan,
        subsystems: Subsystems,
        closers: &mut Closers,
        certificates: Certificates,
        listeners: &[Listeners],
        executors_serve: &Arc<AtomicBool>,
    ) -> Result<Self, ServeError> {
        let Plan { settings, budget, watchdog, shutdown, .. } = plan;
        let (checked, events) = (subsystems.clone(), settings.events.enabled);
        let readiness =
            readiness::watch(checked, events, &shutdown.data, certificates.clone(), executors_serve)?;
        let console_is_secure = certificates.of(Plane::Console).is_some();
        let metrics = metric_sources(listeners, certificates, &subsystems.store, settings)
            .map_err(ServeError::Threads)?;
        let metrics = Arc::new(metrics);
        // Executors may end while a task still holds the metrics, so nothing is written when they are dropped.
        closers.add(&metrics, |metrics, _| metrics.close());
        Ok(Self {
            settings: Arc::clone(settings),
            shutdown: shutdown.clone(),
            heartbeats: Heartbeats::new(budget.executors, *watchdog),
            connections: Connections {
                data: budget.connections_max,
                management: budget.connections_max.min(budget.management_connections_max),
                console: budget.connections_max.min(budget.console_connections_max),
            },
            throttle: CredentialThrottle::default(),
            refused: RefusedRequests::new(budget.executors),
            console: ConsoleState::new(settings, &subsystems.store, console_is_secure)?,
            management: ManagementState {
                verifications: Verifications::default(),
                imports: ImportRuns::default(),
                archives: Archives::default(),
                readiness,
                metrics,
                setting_values: settings.values_of_refusing_settings().into(),
            },
            subsystems,
        })
    }
}

impl ConsoleState {
    fn new(settings: &Settings, store: &Store, is_secure: bool) -> Result<Self, ServeError> {
        let files = match &settings.console.folder {
            Some(folder) => ConsoleFiles::read(folder)
                .map_err(|error| ServeError::ConsoleFiles { folder: folder.clone(), error })?,
            None => ConsoleFiles::embedded(),
        };
        let options = SessionOptions {
            store_id: store.id().to_hex(),
            is_secure,
            secure_hosts: settings.console.secure_hosts.clone(),
            idle: settings.console.session_idle,
            absolute: settings.console.session_absolute,
        };
        let is_served = settings.console.admin_enabled && settings.server.console_bind.is_some();
        let openid = settings.console.openid.clone().filter(|_| is_served);
        let sign_ins = openid.map(|openid| {
            let sign_ins = SignIns::new(openid);
            sign_ins.prepare();
            PersonSignIns::new(sign_ins, &options)
        });
        let sessions = settings.console.admin_enabled.then(|| Sessions::new(options));
        Ok(Self { sessions, sign_ins, files: Arc::new(files) })
    }
}

/// Returns the sources of the ports' metrics. Each listener of a port has the counts of all executors.
fn metric_sources(
    listeners: &[Listeners],
    certificates: Certificates,
    store: &Arc<Store>,
    settings: &Settings,
) -> io::Result<MetricSources> {
    let mut ports = Vec::new();
    if let Some(first) = listeners.first() {
        ports.push((Plane::Data, first.data.metrics()));
        ports.push((Plane::Management, first.management.metrics()));
        ports.extend(first.console.iter().map(|console| (Plane::Console, console.metrics())));
    }
    let certificates = Box::new(move || certificates.readings());
    MetricSources::start(ports, certificates, store, &settings.server.data_dir, settings.metrics.buckets_max)
}

/// Serves all planes on this executor until the shutdown has ended. Calls `started` once, when it serves or when it could
/// not start.
pub(crate) async fn serve(
    executor: ExecutorIndex,
    listeners: Listeners,
    shared: Shared,
    started: impl FnOnce(Result<(), ServeError>),
) {
    match Engine::open(Arc::clone(&shared.subsystems.store)).await {
        Ok(engine) => {
            let open = open_store(Rc::clone(&engine), &shared.subsystems);
            let waits = Waits::default();
            let bound = listeners.data.local_addr();
            let management = management_service(&open, &waits, None, bound, &shared);
            let console = console_service(&open, &waits, &listeners, &shared);
            let data = data_service(open, bound, &shared);
            started(Ok(()));
            let serve_data = serve_visitors(listeners.data, data, listeners.console, console, &shared);
            let serve_management = serve_management(listeners.management, management, &shared);
            let serve_all = async {
                futures_lite::future::zip(serve_data, serve_management).await;
            };
            let beside = async {
                futures_lite::future::zip(
                    shared.heartbeats.count(executor),
                    run_background_tasks(executor, engine, &shared),
                )
                .await;
            };
            futures_lite::future::or(serve_all, beside).await;
        }
        Err(error) => started(Err(error.into())),
    }
}

/// Returns what is open on this executor.
fn open_store(engine: Rc<Engine>, subsystems: &Subsystems) -> OpenStore {
    let Subsystems { audit, directory, webhooks, sharing, .. } = subsystems.clone();
    let links = PublicLinks::new(
        Arc::clone(&sharing),
        Rc::clone(&engine),
        Arc::clone(&audit),
        Arc::clone(&directory),
    );
    OpenStore { engine, directory, audit, webhooks, sharing, links, import_turns: ImportTurns::default() }
}

fn data_service(open: OpenStore, bound: SocketAddr, shared: &Shared) -> Rc<S3Service> {
    let auth = &shared.settings.auth;
    let root = RootCredential::new(&auth.root_access_key, auth.root_secret_key.expose())
        .s3_enabled(auth.root_s3_enabled);
    let credentials = Box::new(ExecutorCredentials::new(root, open.directory));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let server = &shared.settings.server;
    // Clients may use the host name that the server binds to, not only the address that it resolves to.
    let base_hosts = [server.base_hosts.as_slice(), std::slice::from_ref(&server.s3_bind.text)].concat();
    let options = S3Options {
        credentials,
        throttle: shared.throttle.clone(),
        audit: open.audit,
        refused: shared.refused.recorder(),
        clock,
        base_hosts,
        compatibility: shared.settings.compatibility,
        accepts_signature_v2: shared.settings.accepts_signature_v2,
        public_access: auth.public_access_enabled,
        answers_sosapi: shared.settings.answers_sosapi,
        links: Some(open.links),
        bound_address: bound,
    };
    S3Service::new(open.engine, options)
}

/// Returns the service of the console's listener. Without sessions, it serves shares only.
fn console_service(
    open: &OpenStore,
    waits: &Waits,
    listeners: &Listeners,
    shared: &Shared,
) -> Rc<ConsoleService> {
    let shares = ShareService::new(Rc::clone(&open.links));
    let (Some(sessions), Some(listener)) = (&shared.console.sessions, &listeners.console) else {
        return ConsoleService::for_shares(shares);
    };
    let settings = &shared.settings;
    let bound = settings.server.console_bind.iter().map(|bind| bind.text.clone());
    let hosts = settings.console.hosts.iter().cloned().chain(bound).collect();
    let admin = management_service(open, waits, Some(sessions.clone()), listeners.data.local_addr(), shared);
    let files = Arc::clone(&shared.console.files);
    ConsoleService::new(shares, admin, ConsoleHosts::new(hosts, listener.local_addr()), files)
}

/// Returns a service of the management plane. With `sessions`, it is that of the console. `data` is the data plane's address.
fn management_service(
    open: &OpenStore,
    waits: &Waits,
    sessions: Option<Sessions>,
    data: SocketAddr,
    shared: &Shared,
) -> Rc<AdminService> {
    let ManagementState { verifications, imports, archives, readiness, metrics, setting_values } =
        shared.management.clone();
    let options = AdminContext {
        credentials: management_credentials(&shared.settings),
        readiness: Box::new(readiness),
        open: Some(open.clone()),
        sign_ins: shared.console.sign_ins.clone().filter(|_| sessions.is_some()),
        sessions,
        throttle: shared.throttle.clone(),
        verifications,
        imports,
        archives,
        metrics,
        refused: shared.refused.clone(),
        setting_values,
        waits: waits.clone(),
        capabilities: Capabilities {
            events: shared.settings.events.enabled,
            console: shared.settings.server.console_bind.is_some() && shared.settings.console.admin_enabled,
            root_s3: shared.settings.auth.root_s3_enabled,
            public_access: shared.settings.auth.public_access_enabled,
            s3_compatibility: shared.settings.compatibility.name(),
        },
        s3_endpoint: s3_endpoint(&shared.settings, data),
        drain: shared.shutdown.data.clone(),
    };
    AdminService::new(options)
}

/// Returns where clients reach the data plane, which is bound to an address.
pub(crate) fn s3_endpoint(settings: &Settings, bound: SocketAddr) -> S3Endpoint {
    let is_secure = settings.server.tls.s3.is_some();
    S3Endpoint { url: settings.server.s3_url.clone(), listener: ListenerUrl { address: bound, is_secure } }
}

pub(crate) fn management_credentials(settings: &Settings) -> ManagementCredentials {
    let auth = &settings.auth;
    ManagementCredentials {
        system_token: auth.management_system_token.expose().to_owned().into(),
        root_access_key: auth.root_access_key.clone(),
        root_secret_key: auth.root_secret_key.expose().to_owned().into(),
        scrape_token: auth.metrics_scrape_token.as_ref().map(|token| token.expose().to_owned().into()),
    }
}

/// The executor that runs the background tasks.
const BACKGROUND_EXECUTOR: ExecutorIndex = ExecutorIndex(0);

/// Scrubs the store, expires abandoned uploads and old events, and applies lifecycle rules, on one executor until the
/// drain begins. Never completes, because the planes end when it does.
async fn run_background_tasks(executor: ExecutorIndex, engine: Rc<Engine>, shared: &Shared) {
    if executor == BACKGROUND_EXECUTOR {
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
        let expire_events = engine.expire_events(shared.settings.events.retention, stopping());
        let expire = futures_lite::future::zip(expire, expire_events);
        let lifecycle = engine.run_lifecycle(shared.settings.lifecycle.options, stopping());
        futures_lite::future::zip(scrub, futures_lite::future::zip(expire, lifecycle)).await;
    }
    std::future::pending().await
}

/// Serves the data plane and the console: the users' requests, which end together at a shutdown.
async fn serve_visitors(
    data_listener: Listener,
    data: Rc<S3Service>,
    console_listener: Option<Listener>,
    console: Rc<ConsoleService>,
    shared: &Shared,
) {
    let drain = || shared.shutdown.data.clone();
    let of_data = limits(&shared.settings, shared.connections.data);
    let of_console = limits(&shared.settings, shared.connections.console);
    let serve_console = async {
        if let Some(listener) = console_listener {
            cairn_net::serve(listener, console, of_console, drain()).await;
        }
    };
    futures_lite::future::zip(cairn_net::serve(data_listener, data, of_data, drain()), serve_console).await;
    shared.shutdown.data_plane_ended();
}

async fn serve_management(listener: Listener, service: Rc<AdminService>, shared: &Shared) {
    let limits = limits(&shared.settings, shared.connections.management);
    cairn_net::serve(listener, service, limits, shared.shutdown.management.clone()).await;
}

/// Requests that nobody has signed hold one in so many of a listener's connections: the others are for those with a credential.
const UNSIGNED_SHARE: usize = 2;

pub(crate) fn limits(settings: &Settings, connections_max: usize) -> Limits {
    let server = &settings.server;
    Limits {
        head: HeadLimits::default(),
        connections_max,
        unsigned_max: connections_max / UNSIGNED_SHARE,
        connections_per_client_max: server.connections_per_client_max.of(connections_max),
        head_timeout: server.head_timeout,
        first_request_timeout: server.first_request_timeout,
        idle_timeout: server.idle_timeout,
        body_stall_timeout: server.body_timeout,
        write_stall_timeout: server.body_timeout,
        ..Limits::default()
    }
}
