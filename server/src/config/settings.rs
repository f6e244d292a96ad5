//! The settings: the configuration as typed, complete and validated values.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cairn_engine::{CommitMode, EtagKind, EventRetention};
use cairn_engine::{DayLength, LifecycleOptions, ScrubOptions};
use cairn_http1::ForwardedHeader;
use cairn_net::TrustedProxies;
use cairn_observe::{DataEvents, LogFilter, LogFormat, LogOptions, RefusingSetting, RequestLog};
use cairn_openid::OpenIdSettings;
use cairn_s3::Compatibility;
use cairn_sharing::LinkPolicy;

use super::key::Key;
use super::keys;
use super::problem::{ConfigError, Problem};
use super::reader::{Reader, number};
use super::secret_rules::{AuthSettings, check};
use super::sources::Values;
use super::tls::TlsSettings;
use super::value::{BindAddress, HTTPS, Value};

/// All settings.
#[derive(Debug)]
pub struct Settings {
    /// Listeners, executors, timeouts.
    pub server: ServerSettings,
    /// The store.
    pub storage: StorageSettings,
    /// Secrets.
    pub auth: AuthSettings,
    /// The compatibility mode: how much of S3 is implemented.
    pub compatibility: Compatibility,
    /// Whether Signature Version 2 is accepted where `compatibility` allows it.
    pub accepts_signature_v2: bool,
    /// Whether the objects of the Smart Object Storage API are answered where `compatibility` allows it.
    pub answers_sosapi: bool,
    /// The kind of the entity tags of new objects and parts.
    pub etags: EtagKind,
    /// The audit trail.
    pub audit: AuditSettings,
    /// Storage events.
    pub events: EventSettings,
    /// Webhooks.
    pub webhooks: WebhookSettings,
    /// The policy of shares and embeds.
    pub sharing: LinkPolicy,
    /// The web console.
    pub console: ConsoleSettings,
    /// Lifecycle rules.
    pub lifecycle: LifecycleSettings,
    /// Section `metrics`.
    pub metrics: MetricSettings,
    /// The log: section `observability`.
    pub log: LogOptions,
    /// Warnings to log once logging has started.
    pub warnings: Vec<String>,
    /// All values with their sources, for the log. Secrets are shown redacted.
    pub values: Values,
    /// The file of the secrets of `--dev`, if any came from it.
    pub dev_secrets: Option<PathBuf>,
    /// The certificate authority that clients must trust with `--dev --tls`, if the certificate was created for it.
    pub dev_authority: Option<PathBuf>,
}

/// Connections that one client may have on any plane, unless a limit is set. A small plane has fewer in all: there, a client
/// with many idle connections is to replace them, not to be refused.
const CLIENT_CONNECTIONS_MIN: usize = 256;

/// `server.connections_per_client_max`, if it is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientConnectionsMax(Option<usize>);

impl ClientConnectionsMax {
    /// Returns the limit for a plane with at most `connections_max` connections; `None`: no limit.
    ///
    /// Unless it is set, one client takes at most three quarters, but at least [`CLIENT_CONNECTIONS_MIN`]. A client with one
    /// address, such as a benchmark or a proxy that is not trusted, so has nearly all, and still cannot lock the others out.
    #[must_use]
    pub fn of(self, connections_max: usize) -> Option<usize> {
        match self.0 {
            None => Some((connections_max - connections_max / 4).max(CLIENT_CONNECTIONS_MIN)),
            Some(0) => None,
            Some(max) => Some(max),
        }
    }
}

/// Section `server`.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The data plane's address.
    pub s3_bind: BindAddress,
    /// The management plane's address.
    pub api_bind: BindAddress,
    /// The console's address; `None` if its listener is disabled.
    pub console_bind: Option<BindAddress>,
    /// The folder of the store.
    pub data_dir: PathBuf,
    /// Executors; `None`: one per core.
    pub executors: Option<usize>,
    /// Bytes of memory for the process; `None`: the limit of the host or the control group.
    pub memory_limit: Option<u64>,
    /// Host names of the data plane.
    pub base_hosts: Vec<String>,
    /// The URL by which clients reach the data plane, without a slash at its end.
    pub s3_url: Option<String>,
    /// Proxies that are trusted to report clients' addresses.
    pub trusted_proxies: Option<Arc<TrustedProxies>>,
    /// The certificates of the listeners.
    pub tls: TlsSettings,
    /// Time limit of a drain.
    pub shutdown_grace_period: Duration,
    /// Maximum number of open connections to the data plane.
    pub connections_max: usize,
    /// Maximum number of open connections from one client to each plane.
    pub connections_per_client_max: ClientConnectionsMax,
    /// Time limit for the first request on a connection.
    pub first_request_timeout: Duration,
    /// Time limit for a request head.
    pub head_timeout: Duration,
    /// Time limit for the next request on a connection.
    pub idle_timeout: Duration,
    /// Time that a body may make no progress.
    pub body_timeout: Duration,
    /// Whether core files and debuggers are allowed.
    pub core_dumps: bool,
}

/// Section `storage`.
#[derive(Clone, Copy, Debug)]
pub struct StorageSettings {
    /// Bytes of the block cache; `None`: part of the memory limit.
    pub cache_bytes: Option<u64>,
    /// Number of slices of a new store; `None`: from the number of cores.
    pub slices: Option<u16>,
    /// Whether a start creates a store in a data folder that has none.
    pub create_store: bool,
    /// Free bytes below which writes are refused.
    pub reserve_bytes: u64,
    /// Part of the file system in percent below which free space is reported as low. 0 means never.
    pub low_space_percent: u8,
    /// The time for which space must be unused before it is returned to the file system; `None`: never.
    pub reclaim_after: Option<Duration>,
    /// Whether new payloads are encrypted at rest.
    pub encryption_enabled: bool,
    /// `storage.commit`
    pub commit: CommitMode,
    /// The options of the scrub; `None`: no scrub.
    pub scrub: Option<ScrubOptions>,
    /// Age at which unfinished multipart uploads are removed; `None`: never.
    pub multipart_expiry: Option<Duration>,
}

/// Section `audit`.
#[derive(Clone, Copy, Debug)]
pub struct AuditSettings {
    /// The time for which events are kept.
    pub age_max: Duration,
    /// Maximum number of events that are kept.
    pub records_max: u64,
    /// The requests for objects that are recorded.
    pub data_events: DataEvents,
}

/// Section `metrics`.
#[derive(Clone, Copy, Debug)]
pub struct MetricSettings {
    /// Maximum number of buckets that have metrics of their own.
    pub buckets_max: usize,
}

/// Section `events`.
#[derive(Clone, Copy, Debug)]
pub struct EventSettings {
    /// Whether events are recorded.
    pub enabled: bool,
    /// The retention of events. Entries of the delivery log are kept for as long.
    pub retention: EventRetention,
}

/// Section `lifecycle`.
#[derive(Clone, Copy, Debug)]
pub struct LifecycleSettings {
    /// The options of the worker.
    pub options: LifecycleOptions,
    /// The length of a day.
    pub day: DayLength,
}

/// Section `console`, apart from whether its listener is opened.
#[derive(Clone, Debug)]
pub struct ConsoleSettings {
    /// Whether administration is served besides shares.
    pub admin_enabled: bool,
    /// Host names of the console, some of them with a port.
    pub hosts: Vec<String>,
    /// Those for which a proxy speaks TLS, without a port.
    pub secure_hosts: Vec<String>,
    /// A session ends after this time without a request.
    pub session_idle: Duration,
    /// A session ends after this time.
    pub session_absolute: Duration,
    /// Sign-in for people; `None`: with tokens only.
    pub openid: Option<OpenIdSettings>,
    /// The folder from which the files are read; `None`: those that are part of the program.
    pub folder: Option<PathBuf>,
}

/// Section `webhooks`.
#[derive(Clone, Copy, Debug)]
pub struct WebhookSettings {
    /// Whether targets may be `http` URLs.
    pub allow_http: bool,
    /// Whether targets may have private addresses.
    pub allow_private_networks: bool,
    /// Time limit of one attempt.
    pub request_timeout: Duration,
    /// Attempts before a delivery fails permanently.
    pub maximum_attempts: u8,
    /// The interval at which due deliveries are looked for.
    pub poll_interval: Duration,
    /// Maximum number of requests to one webhook at a time.
    pub concurrency_per_target: usize,
}

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The section `s3` of the configuration.
struct S3Settings {
    compatibility: Compatibility,
    accepts_signature_v2: bool,
    answers_sosapi: bool,
    etags: EtagKind,
}

impl Reader<'_> {
    fn server(&mut self) -> Option<ServerSettings> {
        let s3_bind = self.address(&keys::S3_BIND);
        let api_bind = self.address(&keys::API_BIND);
        let console_bind = self.address(&keys::CONSOLE_BIND);
        let has_console = self.flag(&keys::CONSOLE_ENABLED);
        let data_dir =
            self.read(
                &keys::DATA_DIR,
                |value| {
                    if let Value::Path(path) = value { Some(path.clone()) } else { None }
                },
            );
        let base_hosts = self.read(&keys::BASE_HOSTS, |value| {
            if let Value::List(names) = value { Some(names.clone()) } else { None }
        });
        let s3_url = self.optional(&keys::S3_URL, |value| {
            if let Value::Text(text) = value { Some(text.clone()) } else { None }
        });
        let trusted_proxies = self.trusted_proxies();
        let executors: Option<usize> = self.number(&keys::EXECUTORS);
        let memory_limit = self.optional(&keys::MEMORY_LIMIT, number);
        let tls = self.tls(has_console.unwrap_or(true));
        let shutdown_grace_period = self.seconds(&keys::SHUTDOWN_GRACE);
        let connections_max = self.number(&keys::CONNECTIONS_MAX);
        let connections_per_client_max = self.optional(&keys::CONNECTIONS_PER_CLIENT, |value| {
            if let Value::Number(max) = value { usize::try_from(*max).ok() } else { None }
        });
        let first_request_timeout = self.seconds(&keys::FIRST_REQUEST_TIMEOUT);
        let head_timeout = self.seconds(&keys::HEAD_TIMEOUT);
        let idle_timeout = self.seconds(&keys::IDLE_TIMEOUT);
        let body_timeout = self.seconds(&keys::BODY_TIMEOUT);
        let core_dumps = self.flag(&keys::CORE_DUMPS);
        Some(ServerSettings {
            s3_bind: s3_bind?,
            api_bind: api_bind?,
            console_bind: Some(console_bind?).filter(|_| has_console != Some(false)),
            data_dir: data_dir?,
            executors: executors.map(|count| if count == 0 { None } else { Some(count) })?,
            memory_limit: memory_limit?,
            base_hosts: base_hosts?,
            s3_url: s3_url?,
            trusted_proxies: trusted_proxies?,
            tls: tls?,
            shutdown_grace_period: shutdown_grace_period?,
            connections_max: connections_max?,
            connections_per_client_max: ClientConnectionsMax(connections_per_client_max?),
            first_request_timeout: first_request_timeout?,
            head_timeout: head_timeout?,
            idle_timeout: idle_timeout?,
            body_timeout: body_timeout?,
            core_dumps: core_dumps?,
        })
    }

    /// The outer `None` means a problem, the inner one an empty list.
    fn trusted_proxies(&mut self) -> Option<Option<Arc<TrustedProxies>>> {
        let networks = self.read(&keys::TRUSTED_PROXIES, |value| {
            if let Value::Networks(networks) = value { Some(networks.clone()) } else { None }
        });
        let headers = [ForwardedHeader::XForwardedFor, ForwardedHeader::Forwarded];
        let header = self.word(&keys::FORWARDED_HEADER, &headers, ForwardedHeader::name);
        let (networks, header) = (networks?, header?);
        Some((!networks.is_empty()).then(|| Arc::new(TrustedProxies::new(networks, header))))
    }

    fn storage(&mut self) -> Option<StorageSettings> {
        let cache_bytes = self.optional(&keys::CACHE_BYTES, number);
        let slices = self.optional(&keys::SLICES, number);
        let create_store = self.flag(&keys::CREATE_STORE);
        let reserve_bytes = self.number(&keys::RESERVE_BYTES);
        let low_space_percent = self.number(&keys::LOW_SPACE_PERCENT);
        let reclaim_after = self.seconds(&keys::RECLAIM_AFTER);
        let encryption_enabled = self.flag(&keys::ENCRYPTION_ENABLED);
        let commit = self.word(&keys::COMMIT, &CommitMode::ALL, CommitMode::name);
        let scrub_days: Option<u32> = self.number(&keys::SCRUB_INTERVAL);
        let scrub_rate = self.number(&keys::SCRUB_RATE);
        let expiry_days: Option<u32> = self.number(&keys::MULTIPART_EXPIRY);
        let scrub = ScrubOptions { interval: scrub_days? * DAY, bytes_per_second: scrub_rate? };
        Some(StorageSettings {
            cache_bytes: cache_bytes?,
            slices: slices?,
            create_store: create_store?,
            reserve_bytes: reserve_bytes?,
            low_space_percent: low_space_percent?,
            reclaim_after: Some(reclaim_after?).filter(|after| !after.is_zero()),
            encryption_enabled: encryption_enabled?,
            commit: commit?,
            scrub: (!scrub.interval.is_zero()).then_some(scrub),
            multipart_expiry: Some(expiry_days? * DAY).filter(|age| !age.is_zero()),
        })
    }

    fn audit(&mut self) -> Option<AuditSettings> {
        const DAY_SECONDS: u64 = 86_400;
        let days: Option<u64> = self.number(&keys::AUDIT_RETENTION);
        let records_max = self.number(&keys::AUDIT_RECORDS_MAX);
        let data_events = self.word(&keys::AUDIT_DATA_EVENTS, &DataEvents::ALL, DataEvents::name);
        Some(AuditSettings {
            age_max: Duration::from_secs(days? * DAY_SECONDS),
            records_max: records_max?,
            data_events: data_events?,
        })
    }

    fn events(&mut self) -> Option<EventSettings> {
        let enabled = self.flag(&keys::EVENTS_ENABLED);
        let days: Option<u32> = self.number(&keys::EVENTS_RETENTION);
        let records_max = self.number(&keys::EVENTS_RECORDS_MAX);
        let retention = EventRetention { age_max: days? * DAY, records_max: records_max? };
        Some(EventSettings { enabled: enabled?, retention })
    }

    fn lifecycle(&mut self) -> Option<LifecycleSettings> {
        let interval = self.seconds(&keys::LIFECYCLE_INTERVAL);
        let batch_size = self.number(&keys::LIFECYCLE_BATCH);
        let day: Option<u64> = self.number(&keys::LIFECYCLE_DAY);
        let options = LifecycleOptions { interval: interval?, batch_size: batch_size? };
        Some(LifecycleSettings { options, day: DayLength(day?) })
    }

    fn webhooks(&mut self) -> Option<WebhookSettings> {
        let allow_http = self.flag(&keys::ALLOW_HTTP);
        let allow_private_networks = self.flag(&keys::ALLOW_PRIVATE);
        let request_timeout = self.seconds(&keys::WEBHOOK_TIMEOUT);
        let maximum_attempts = self.number(&keys::WEBHOOK_ATTEMPTS);
        let poll_interval = self.seconds(&keys::WEBHOOK_POLL);
        let concurrency_per_target = self.number(&keys::WEBHOOK_CONCURRENCY);
        Some(WebhookSettings {
            allow_http: allow_http?,
            allow_private_networks: allow_private_networks?,
            request_timeout: request_timeout?,
            maximum_attempts: maximum_attempts?,
            poll_interval: poll_interval?,
            concurrency_per_target: concurrency_per_target?,
        })
    }

    fn s3(&mut self) -> Option<S3Settings> {
        let compatibility = self.word(&keys::S3_COMPATIBILITY, &Compatibility::ALL, Compatibility::name);
        let (accepts_signature_v2, answers_sosapi) =
            (self.flag(&keys::S3_SIGNATURE_V2), self.flag(&keys::S3_SOSAPI));
        let etags = self.word(&keys::S3_ETAG, &EtagKind::ALL, EtagKind::name);
        Some(S3Settings {
            compatibility: compatibility?,
            accepts_signature_v2: accepts_signature_v2?,
            answers_sosapi: answers_sosapi?,
            etags: etags?,
        })
    }

    fn console(&mut self) -> Option<ConsoleSettings> {
        const MINUTE: Duration = Duration::from_secs(60);
        let admin_enabled = self.flag(&keys::CONSOLE_ADMIN_ENABLED);
        let hosts = self.read(&keys::CONSOLE_HOSTS, |value| {
            if let Value::List(names) = value { Some(names.clone()) } else { None }
        });
        let (idle, hours): (Option<u32>, Option<u32>) =
            (self.number(&keys::CONSOLE_IDLE), self.number(&keys::CONSOLE_HOURS));
        let hosts = hosts?;
        let bound = self.values.get(&keys::CONSOLE_BIND).map(Value::to_string);
        let openid = self.openid(&hosts.iter().cloned().chain(bound).collect::<Vec<_>>())?;
        // A provider sends browsers to this URL without saying whether they use TLS.
        let console_url = openid.iter().map(|settings| settings.console_url.as_str());
        let secure = hosts.iter().map(String::as_str).chain(console_url);
        let secure = secure.filter_map(|host| host.strip_prefix(HTTPS));
        Some(ConsoleSettings {
            admin_enabled: admin_enabled?,
            secure_hosts: secure
                .map(|host| host.split_once(':').map_or(host, |(name, _)| name).to_owned())
                .collect(),
            hosts: hosts.iter().map(|host| host.trim_start_matches(HTTPS).to_owned()).collect(),
            session_idle: idle? * MINUTE,
            session_absolute: hours? * 60 * MINUTE,
            openid,
            folder: None,
        })
    }

    fn sharing(&mut self) -> Option<LinkPolicy> {
        let url = |value: &Value| {
            if let Value::Text(text) = value { Some(text.trim_end_matches('/').to_owned()) } else { None }
        };
        let embeds_enabled = self.flag(&keys::EMBEDS_ENABLED);
        let maximum_lifetime_days = self.optional(&keys::MAXIMUM_LIFETIME, number);
        let require_expiration = self.flag(&keys::REQUIRE_EXPIRATION);
        let share_base_url = self.optional(&keys::SHARE_BASE_URL, url);
        let embed_base_url = self.optional(&keys::EMBED_BASE_URL, url);
        Some(LinkPolicy {
            embeds_enabled: embeds_enabled?,
            maximum_lifetime_days: maximum_lifetime_days?,
            require_expiration: require_expiration?,
            share_base_url: share_base_url?,
            embed_base_url: embed_base_url?,
        })
    }

    fn metrics(&mut self) -> Option<MetricSettings> {
        Some(MetricSettings { buckets_max: self.number(&keys::METRICS_BUCKETS_MAX)? })
    }

    fn log(&mut self) -> Option<LogOptions> {
        let filter = self.read(&keys::LOG_FILTER, |value| {
            if let Value::Text(text) = value { LogFilter::parse(text).ok() } else { None }
        });
        let format =
            self.flag(&keys::LOG_JSON).map(|json| if json { LogFormat::Json } else { LogFormat::Text });
        let request_log = self.word(&keys::REQUEST_LOG, &RequestLog::ALL, RequestLog::name);
        let paths = self.flag(&keys::LOG_PATHS);
        Some(LogOptions { filter: filter?, format: format?, request_log: request_log?, paths: paths? })
    }
}

impl Settings {
    /// Validates the values as a whole and converts them to their types.
    ///
    /// # Errors
    /// [`ConfigError`] with every value that is missing or invalid, or contradicts another one.
    pub fn from_values(values: Values) -> Result<Self, ConfigError> {
        let mut reader = Reader { values: &values, problems: Vec::new() };
        let server = reader.server();
        let storage = reader.storage();
        let audit = reader.audit();
        let (events, webhooks) = (reader.events(), reader.webhooks());
        let (lifecycle, sharing) = (reader.lifecycle(), reader.sharing());
        let console = reader.console();
        let (metrics, log) = (reader.metrics(), reader.log());
        let root_s3_enabled = reader.flag(&keys::ROOT_S3_ENABLED);
        let public_access_enabled = reader.flag(&keys::PUBLIC_ACCESS_ENABLED);
        let s3 = reader.s3();
        let mut problems = reader.problems;
        let secrets = check(&values, &mut problems);
        if let Some(server) = &server {
            check_binds(server, &mut problems);
        }
        let (Some(server), Some(storage), Some(audit), Some(metrics), Some(log), true) =
            (server, storage, audit, metrics, log, problems.is_empty())
        else {
            return Err(ConfigError { problems });
        };
        let (Some(events), Some(webhooks), Some(lifecycle), Some(sharing), Some(console)) =
            (events, webhooks, lifecycle, sharing, console)
        else {
            return Err(ConfigError { problems });
        };
        let (Some(root_s3_enabled), Some(public_access_enabled), Some(s3), Some(secrets)) =
            (root_s3_enabled, public_access_enabled, s3, secrets)
        else {
            return Err(ConfigError { problems });
        };
        let warnings = [values.warnings(), &secrets.warnings].concat();
        let auth = AuthSettings {
            credential_master_key: secrets.master_key,
            root_access_key: secrets.root_access_key,
            root_secret_key: secrets.root_secret_key,
            root_s3_enabled,
            public_access_enabled,
            management_system_token: secrets.system_token,
            metrics_scrape_token: secrets.scrape_token,
        };
        Ok(Self {
            server,
            storage,
            auth,
            compatibility: s3.compatibility,
            accepts_signature_v2: s3.accepts_signature_v2,
            answers_sosapi: s3.answers_sosapi,
            etags: s3.etags,
            audit,
            events,
            webhooks,
            sharing,
            console,
            lifecycle,
            metrics,
            log,
            warnings,
            values,
            dev_secrets: None,
            dev_authority: None,
        })
    }
}

impl Settings {
    /// Returns the values of the keys that the explanation of a refused request names. None of them is a secret.
    pub(crate) fn values_of_refusing_settings(&self) -> Vec<(RefusingSetting, String)> {
        let effective = self.values.effective();
        let value_of = |setting: RefusingSetting| {
            let found = effective.iter().find(|key| key.name == setting.name());
            (setting, found.and_then(|key| key.value.clone()).unwrap_or_default())
        };
        RefusingSetting::ALL.map(value_of).into()
    }
}

/// The listeners must have different ports. (Port 0 means any free port.)
fn check_binds(server: &ServerSettings, problems: &mut Vec<Problem>) {
    let mut listeners = server.listeners();
    while let Some((key, bind)) = listeners.pop() {
        for (other, same) in &listeners {
            let port = bind.address.port();
            if port != 0 && port == same.address.port() {
                let (one, two) = (other.variable(), key.variable());
                problems.push(Problem::Inconsistent(format!(
                    "{one} and {two} must have different ports ({port})"
                )));
            }
        }
    }
}

impl ServerSettings {
    /// Returns the keys and the addresses of all listeners.
    pub(crate) fn listeners(&self) -> Vec<(&'static Key, &BindAddress)> {
        let always = [(&keys::S3_BIND, &self.s3_bind), (&keys::API_BIND, &self.api_bind)];
        let console = self.console_bind.iter().map(|bind| (&keys::CONSOLE_BIND, bind));
        always.into_iter().chain(console).collect()
    }
}
