//! The configuration as the rest of the program uses it: typed, complete and checked.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cairn_engine::ScrubOptions;
use cairn_http1::ForwardedHeader;
use cairn_net::TrustedProxies;
use cairn_observe::{LogFilter, LogFormat};

use super::key::Key;
use super::keys;
use super::problem::{ConfigError, Problem};
use super::secret_rules::{AuthSettings, check};
use super::sources::Values;
use super::tls::TlsSettings;
use super::value::{BindAddress, Value, expected};

/// Everything that was configured.
#[derive(Debug)]
pub struct Settings {
    /// Listeners, executors, deadlines.
    pub server: ServerSettings,
    /// The store.
    pub storage: StorageSettings,
    /// Secrets.
    pub auth: AuthSettings,
    /// The audit trail.
    pub audit: AuditSettings,
    /// The log.
    pub log: LogSettings,
    /// What to tell the operator once logging has started.
    pub warnings: Vec<String>,
    /// All values as given, for the log; secrets redact themselves.
    pub values: Values,
    /// The file that secrets of `--dev` came from, if any did.
    pub dev_secrets: Option<PathBuf>,
    /// What clients are to trust with `--dev --tls`, when the certificate was made for it.
    pub dev_authority: Option<PathBuf>,
}

/// Section `server`.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The data plane's address.
    pub s3_bind: BindAddress,
    /// The management plane's address.
    pub api_bind: BindAddress,
    /// The console's address; nothing listens there in this build.
    pub console_bind: BindAddress,
    /// The folder of the store.
    pub data_dir: PathBuf,
    /// Executors; `None`: one per core.
    pub executors: Option<usize>,
    /// Bytes of memory for the process; `None`: what host and control group allow.
    pub memory_limit: Option<u64>,
    /// Names of the data plane.
    pub base_hosts: Vec<String>,
    /// Whose word is taken for the addresses of clients; `None`: nobody's.
    pub trusted_proxies: Option<Arc<TrustedProxies>>,
    /// The certificates of the listeners.
    pub tls: TlsSettings,
    /// How long a drain may take.
    pub shutdown_grace_period: Duration,
    /// Most open connections of the process.
    pub connections_max: usize,
    /// Deadline of a head.
    pub head_timeout: Duration,
    /// Deadline of the next request.
    pub idle_timeout: Duration,
    /// Deadline of progress in a body.
    pub body_timeout: Duration,
}

/// Section `storage`.
#[derive(Clone, Copy, Debug)]
pub struct StorageSettings {
    /// Bytes of the block cache; `None`: a part of the memory.
    pub cache_bytes: Option<u64>,
    /// Slices of a new store; `None`: by the host's cores.
    pub slices: Option<u16>,
    /// Free bytes below which writes are refused.
    pub reserve_bytes: u64,
    /// How long space must have been free before the file system gets it back; `None`: never.
    pub reclaim_after: Option<Duration>,
    /// Whether new payloads are encrypted at rest.
    pub encryption_enabled: bool,
    /// How the store is verified in the background; `None`: not at all.
    pub scrub: Option<ScrubOptions>,
    /// How old unfinished multipart uploads become; `None`: any age.
    pub multipart_expiry: Option<Duration>,
}

/// Section `audit`.
#[derive(Clone, Copy, Debug)]
pub struct AuditSettings {
    /// How long events are kept.
    pub age_max: Duration,
    /// How many events are kept.
    pub records_max: u64,
}

/// Section `observability`.
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// What is logged.
    pub filter: LogFilter,
    /// How it is written.
    pub format: LogFormat,
}

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Reads single values; a value that does not fit becomes a problem of its key.
pub(super) struct Reader<'a> {
    pub(super) values: &'a Values,
    pub(super) problems: Vec<Problem>,
}

impl Reader<'_> {
    fn read<T>(&mut self, key: &'static Key, convert: impl FnOnce(&Value) -> Option<T>) -> Option<T> {
        let converted = self.values.get(key).and_then(convert);
        if converted.is_none() {
            self.problems
                .push(Problem::Invalid { name: self.values.source(key), expected: expected(key.kind) });
        }
        converted
    }

    pub(super) fn optional<T>(
        &mut self,
        key: &'static Key,
        convert: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<Option<T>> {
        if self.values.get(key).is_none() { Some(None) } else { self.read(key, convert).map(Some) }
    }

    fn address(&mut self, key: &'static Key) -> Option<BindAddress> {
        self.read(key, |value| if let Value::Address(address) = value { Some(address.clone()) } else { None })
    }

    fn flag(&mut self, key: &'static Key) -> Option<bool> {
        self.read(key, |value| if let Value::Flag(flag) = value { Some(*flag) } else { None })
    }

    fn number<N: TryFrom<u64>>(&mut self, key: &'static Key) -> Option<N> {
        self.read(key, number)
    }

    fn seconds(&mut self, key: &'static Key) -> Option<Duration> {
        self.number(key).map(Duration::from_secs)
    }

    fn server(&mut self) -> Option<ServerSettings> {
        let s3_bind = self.address(&keys::S3_BIND);
        let api_bind = self.address(&keys::API_BIND);
        let console_bind = self.address(&keys::CONSOLE_BIND);
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
        let trusted_proxies = self.trusted_proxies();
        let executors: Option<usize> = self.number(&keys::EXECUTORS);
        let memory_limit = self.optional(&keys::MEMORY_LIMIT, number);
        let tls = self.tls();
        let shutdown_grace_period = self.seconds(&keys::SHUTDOWN_GRACE);
        let connections_max = self.number(&keys::CONNECTIONS_MAX);
        let head_timeout = self.seconds(&keys::HEAD_TIMEOUT);
        let idle_timeout = self.seconds(&keys::IDLE_TIMEOUT);
        let body_timeout = self.seconds(&keys::BODY_TIMEOUT);
        Some(ServerSettings {
            s3_bind: s3_bind?,
            api_bind: api_bind?,
            console_bind: console_bind?,
            data_dir: data_dir?,
            executors: executors.map(|count| if count == 0 { None } else { Some(count) })?,
            memory_limit: memory_limit?,
            base_hosts: base_hosts?,
            trusted_proxies: trusted_proxies?,
            tls: tls?,
            shutdown_grace_period: shutdown_grace_period?,
            connections_max: connections_max?,
            head_timeout: head_timeout?,
            idle_timeout: idle_timeout?,
            body_timeout: body_timeout?,
        })
    }

    /// The outer `None` is a problem, the inner one an empty list.
    fn trusted_proxies(&mut self) -> Option<Option<Arc<TrustedProxies>>> {
        let networks = self.read(&keys::TRUSTED_PROXIES, |value| {
            if let Value::Networks(networks) = value { Some(networks.clone()) } else { None }
        });
        let header = self.read(&keys::FORWARDED_HEADER, |value| {
            let named =
                |header: &ForwardedHeader| matches!(value, Value::Text(word) if word == header.name());
            [ForwardedHeader::XForwardedFor, ForwardedHeader::Forwarded].into_iter().find(named)
        });
        let (networks, header) = (networks?, header?);
        Some((!networks.is_empty()).then(|| Arc::new(TrustedProxies::new(networks, header))))
    }

    fn storage(&mut self) -> Option<StorageSettings> {
        let cache_bytes = self.optional(&keys::CACHE_BYTES, number);
        let slices = self.optional(&keys::SLICES, number);
        let reserve_bytes = self.number(&keys::RESERVE_BYTES);
        let reclaim_after = self.seconds(&keys::RECLAIM_AFTER);
        let encryption_enabled = self.flag(&keys::ENCRYPTION_ENABLED);
        let scrub_days: Option<u32> = self.number(&keys::SCRUB_INTERVAL);
        let scrub_rate = self.number(&keys::SCRUB_RATE);
        let expiry_days: Option<u32> = self.number(&keys::MULTIPART_EXPIRY);
        let scrub = ScrubOptions { interval: scrub_days? * DAY, bytes_per_second: scrub_rate? };
        Some(StorageSettings {
            cache_bytes: cache_bytes?,
            slices: slices?,
            reserve_bytes: reserve_bytes?,
            reclaim_after: Some(reclaim_after?).filter(|after| !after.is_zero()),
            encryption_enabled: encryption_enabled?,
            scrub: (!scrub.interval.is_zero()).then_some(scrub),
            multipart_expiry: Some(expiry_days? * DAY).filter(|age| !age.is_zero()),
        })
    }

    fn audit(&mut self) -> Option<AuditSettings> {
        const DAY_SECONDS: u64 = 86_400;
        let days: Option<u64> = self.number(&keys::AUDIT_RETENTION);
        let records_max = self.number(&keys::AUDIT_RECORDS_MAX);
        Some(AuditSettings { age_max: Duration::from_secs(days? * DAY_SECONDS), records_max: records_max? })
    }

    fn log(&mut self) -> Option<LogSettings> {
        let filter = self.read(&keys::LOG_FILTER, |value| {
            if let Value::Text(text) = value { LogFilter::parse(text).ok() } else { None }
        });
        let format =
            self.flag(&keys::LOG_JSON).map(|json| if json { LogFormat::Json } else { LogFormat::Text });
        Some(LogSettings { filter: filter?, format: format? })
    }
}

fn number<N: TryFrom<u64>>(value: &Value) -> Option<N> {
    if let Value::Number(number) = value { N::try_from(*number).ok() } else { None }
}

impl Settings {
    /// Checks what no single value shows and gives the values their types.
    ///
    /// # Errors
    /// With everything that is missing, too short, equal where it must differ, or asked for and not built.
    pub fn from_values(values: Values) -> Result<Self, ConfigError> {
        let mut reader = Reader { values: &values, problems: Vec::new() };
        let server = reader.server();
        let storage = reader.storage();
        let audit = reader.audit();
        let log = reader.log();
        let root_s3_enabled = reader.flag(&keys::ROOT_S3_ENABLED);
        let mut problems = reader.problems;
        let secrets = check(&values, &mut problems);
        if let Some(server) = &server {
            check_binds(server, &mut problems);
        }
        let (Some(server), Some(storage), Some(audit), Some(log), Some(root_s3_enabled), Some(secrets), true) =
            (server, storage, audit, log, root_s3_enabled, secrets, problems.is_empty())
        else {
            return Err(ConfigError { problems });
        };
        let mut warnings = [values.warnings(), &secrets.warnings].concat();
        warnings.extend(values.without_effect().map(|key| {
            format!("{} is set, but this build does not have the feature it configures", values.source(key))
        }));
        let auth = AuthSettings {
            credential_master_key: secrets.master_key,
            root_access_key: secrets.root_access_key,
            root_secret_key: secrets.root_secret_key,
            root_s3_enabled,
            management_system_token: secrets.system_token,
            metrics_scrape_token: secrets.scrape_token,
        };
        Ok(Self {
            server,
            storage,
            auth,
            audit,
            log,
            warnings,
            values,
            dev_secrets: None,
            dev_authority: None,
        })
    }
}

/// Administration never travels over the data plane's port. (Port 0 asks for any free port.)
fn check_binds(server: &ServerSettings, problems: &mut Vec<Problem>) {
    let (s3, api) = (server.s3_bind.address, server.api_bind.address);
    if s3.port() != 0 && s3.port() == api.port() {
        problems.push(Problem::Inconsistent(format!(
            "{} and {} must have different ports",
            keys::S3_BIND.variable(),
            keys::API_BIND.variable()
        )));
    }
}
