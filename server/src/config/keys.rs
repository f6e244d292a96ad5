//! The table of configuration keys. A key exists when it stands here, and nowhere else.
//!
//! Sources: the specification ("Secrets and keys", "Limits", "Logging and observability configuration", "Events"), and
//! the sections and names decided for what it leaves open.

use super::key::Availability::{Built, NotBuilt};
use super::key::{Key, Kind};
use crate::budget::LIMIT_BYTES_MIN;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;

const fn integer(min: u64, max: u64) -> Kind {
    Kind::Integer { min, max }
}

const fn bytes(min: u64, max: u64) -> Kind {
    Kind::Bytes { min, max }
}

const FORWARDED_WORDS: Kind = Kind::Word { words: &["x-forwarded-for", "forwarded"] };

/// One row per key: its name, the variable's name where the specification gives one, what it takes, the default,
/// whether this build acts on it, and what it does.
macro_rules! keys {
    ($($id:ident: $name:literal, $variable:expr, $kind:expr, $default:expr, $availability:expr, $doc:literal;)+) => {
        $(pub(crate) static $id: Key = Key {
            name: $name,
            literal_variable: $variable,
            kind: $kind,
            default: $default,
            availability: $availability,
            doc: $doc,
        };)+

        /// Every key, in the order in which the documentation shows them.
        pub static ALL_KEYS: &[&Key] = &[$(&$id),+];
    };
}

keys! {
    S3_BIND: "server.s3_bind", Some("SERVICE_S3_BIND"), Kind::Address, Some("0.0.0.0:7600"), Built,
     "Where the S3 data plane listens.";
    API_BIND: "server.api_bind", Some("SERVICE_API_BIND"), Kind::Address, Some("127.0.0.1:7601"), Built,
     "Where the management plane listens.";
    CONSOLE_BIND: "server.console_bind", Some("SERVICE_CONSOLE_BIND"), Kind::Address, Some("127.0.0.1:7602"), NotBuilt,
     "Where the web console listens.";
    DATA_DIR: "server.data_dir", Some("SERVICE_DATA_DIR"), Kind::Path, Some("/var/lib/cairn"), Built,
     "The folder that holds everything stored. With `--dev` the default is `./cairn-data`.";
    EXECUTORS: "server.executors", None, integer(0, 1024), Some("0"), Built,
     "Executors, each pinned to a core; 0 means one for each core.";
    MEMORY_LIMIT: "server.memory_limit", None, bytes(LIMIT_BYTES_MIN, 16 * TIB), None, Built,
     "Memory that the process may use, for the cache, buffers and connections together. When not set, what the host \
     or the control group allows, of either version. Where it is small, fewer connections are taken, and executors and \
     slices of a new store that are not configured are fewer than the cores.";
    BASE_HOSTS: "server.base_hosts", None, Kind::HostNames, Some(""), Built,
     "Names under which the data plane is reached. A request whose host is one of them with a bucket's \
     name in front is virtual-hosted style and is refused as not implemented.";
    TRUSTED_PROXIES: "server.trusted_proxies", None, Kind::Networks, Some(""), Built,
     "Proxies whose word is taken for the addresses of their clients, in audit trail, request log and the slowing down of \
     wrong credentials. Of every other peer nothing is believed. See docs/proxies.md.";
    FORWARDED_HEADER: "server.forwarded_header", None, FORWARDED_WORDS, Some("x-forwarded-for"), Built,
     "The header field in which the trusted proxies tell whom they speak for. The other one is never read, for a proxy \
     passes it on as a client sent it.";
    SHUTDOWN_GRACE: "server.shutdown_grace_period_seconds", None, integer(1, 300), Some("30"), Built,
     "How long requests in flight may take to end after SIGTERM.";
    CONNECTIONS_MAX: "server.connections_max", None, integer(16, 1_000_000), Some("16384"), Built,
     "Most open connections to the data plane; further ones are answered 503 and closed, with TLS closed without an answer. Lowered \
     at the start when the limit on open files or `server.memory_limit` is too low for it.";
    HEAD_TIMEOUT: "server.head_timeout_seconds", None, integer(1, 300), Some("15"), Built,
     "How long a client may take to send a request head.";
    IDLE_TIMEOUT: "server.idle_timeout_seconds", None, integer(1, 3600), Some("75"), Built,
     "How long a connection may wait for its next request.";
    BODY_TIMEOUT: "server.body_timeout_seconds", None, integer(1, 3600), Some("60"), Built,
     "How long a body, in either direction, may stand still.";

    TLS_CERTIFICATE: "server.tls.certificate", Some("SERVICE_TLS_CERTIFICATE"), Kind::Path, None, Built,
     "The certificate chain in PEM form, the server's own first, of every listener that speaks TLS and has no other. It and \
     its key are read again when they change and on SIGHUP. When not set, listeners without one of their own speak plain HTTP.";
    TLS_KEY: "server.tls.key", Some("SERVICE_TLS_KEY"), Kind::Path, None, Built,
     "The private key that belongs to it, in PEM form and without a password. Required with a certificate.";
    TLS_S3_ENABLED: "server.tls.s3_enabled", Some("SERVICE_TLS_S3_ENABLED"), Kind::Flag, None, Built,
     "Whether the data plane speaks TLS. When not set, it does if there is a certificate for it.";
    TLS_S3_CERTIFICATE: "server.tls.s3_certificate", Some("SERVICE_TLS_S3_CERTIFICATE"), Kind::Path, None, Built,
     "The data plane's own certificate. When not set, `certificate`.";
    TLS_S3_KEY: "server.tls.s3_key", Some("SERVICE_TLS_S3_KEY"), Kind::Path, None, Built,
     "The key of the data plane's own certificate. Required with it.";
    TLS_API_ENABLED: "server.tls.api_enabled", Some("SERVICE_TLS_API_ENABLED"), Kind::Flag, None, Built,
     "Whether the management plane speaks TLS. When not set, it does if there is a certificate for it.";
    TLS_API_CERTIFICATE: "server.tls.api_certificate", Some("SERVICE_TLS_API_CERTIFICATE"), Kind::Path, None, Built,
     "The management plane's own certificate. When not set, `certificate`.";
    TLS_API_KEY: "server.tls.api_key", Some("SERVICE_TLS_API_KEY"), Kind::Path, None, Built,
     "The key of the management plane's own certificate. Required with it.";
    TLS_CONSOLE_ENABLED: "server.tls.console_enabled", Some("SERVICE_TLS_CONSOLE_ENABLED"), Kind::Flag, None, NotBuilt,
     "Whether the web console speaks TLS. When not set, it does if there is a certificate for it.";
    TLS_CONSOLE_CERTIFICATE: "server.tls.console_certificate", Some("SERVICE_TLS_CONSOLE_CERTIFICATE"), Kind::Path, None, NotBuilt,
     "The console's own certificate. When not set, `certificate`.";
    TLS_CONSOLE_KEY: "server.tls.console_key", Some("SERVICE_TLS_CONSOLE_KEY"), Kind::Path, None, NotBuilt,
     "The key of the console's own certificate. Required with it.";

    CACHE_BYTES: "storage.cache_bytes", None, bytes(0, 16 * TIB), None, Built,
     "Memory for the cache of checked blocks, a part of `server.memory_limit`. When not set, a quarter of that, or \
     less where the rest needs more.";
    SLICES: "storage.slices", None, integer(1, 64), None, Built,
     "Slices of a new store; an existing store keeps its number. When not set, the cores of the host, at \
     least 2 and at most 64.";
    RESERVE_BYTES: "storage.reserve_bytes", None, bytes(16 * MIB, 16 * TIB), Some("256MiB"), Built,
     "New writes are refused while less than this is free on the file system; reads and deletes go on.";
    RECLAIM_AFTER: "storage.reclaim_after_seconds", None, integer(0, 86_400), Some("60"), Built,
     "Free space in the volumes that was not needed for so long is given back to the file system, but for a \
     part that is kept at hand; 0 means never.";
    SCRUB_INTERVAL: "storage.scrub_interval_days", None, integer(0, 3650), Some("30"), Built,
     "Days from the end of one verification of the whole store in the background to the beginning of the next; 0 turns it \
     off.";
    SCRUB_RATE: "storage.scrub_bytes_per_second", None, bytes(64 * KIB, TIB), Some("32MiB"), Built,
     "Most bytes in a second that this verification reads. While requests are served it reads far less.";
    MULTIPART_EXPIRY: "storage.multipart_expiry_days", None, integer(0, 3650), Some("7"), Built,
     "Days after which a multipart upload that was neither completed nor aborted is removed with its parts; 0 means never. \
     It is looked for once an hour.";
    ENCRYPTION_ENABLED: "storage.encryption_enabled", None, Kind::Flag, Some("false"), Built,
     "Encryption at rest: new payloads are sealed with AES-256-GCM under the master key. Payloads that are \
     there stay as they are and readable, whichever way it is set. Keys, sizes, entity tags and metadata are \
     not encrypted.";

    MASTER_KEY: "auth.credential_master_key", Some("SERVICE_CREDENTIAL_MASTER_KEY"), Kind::Secret, None, Built,
     "The key under which secrets are sealed. Required, at least 16 bytes, 32 or more recommended; a store \
     opens only with the key it was made with.";
    ROOT_ACCESS_KEY: "auth.root_access_key", Some("SERVICE_ROOT_ACCESS_KEY"), Kind::Text { bytes_max: 128 }, None, Built,
     "The access key of the root credential. Required; 3 to 128 letters, digits, `_`, `-` or `.`.";
    ROOT_SECRET_KEY: "auth.root_secret_key", Some("SERVICE_ROOT_SECRET_KEY"), Kind::Secret, None, Built,
     "The secret key of the root credential. Required, at least 8 bytes.";
    ROOT_S3_ENABLED: "auth.root_s3_enabled", Some("SERVICE_ROOT_S3_ENABLED"), Kind::Flag, Some("true"), Built,
     "Whether the root credential may use the data plane.";
    SYSTEM_TOKEN: "auth.management_system_token", Some("SERVICE_MANAGEMENT_SYSTEM_TOKEN"), Kind::Secret, None, Built,
     "The bearer token of the management plane's system administrator. Required, at least 32 bytes, \
     different from every other secret.";

    ALLOW_HTTP: "webhooks.allow_http", None, Kind::Flag, Some("false"), NotBuilt,
     "Whether webhooks may be delivered without TLS.";
    ALLOW_PRIVATE: "webhooks.allow_private_networks", None, Kind::Flag, Some("false"), NotBuilt,
     "Whether webhooks may be delivered to addresses that are not public.";
    WEBHOOK_TIMEOUT: "webhooks.request_timeout_seconds", None, integer(1, 300), Some("10"), NotBuilt,
     "How long one delivery may take.";
    WEBHOOK_ATTEMPTS: "webhooks.maximum_attempts", None, integer(1, 32), Some("6"), NotBuilt,
     "Attempts before a delivery has failed for good.";
    WEBHOOK_POLL: "webhooks.poll_interval_seconds", None, integer(1, 3600), Some("2"), NotBuilt,
     "How often due deliveries are looked for.";

    EMBEDS_ENABLED: "sharing.embeds_enabled", None, Kind::Flag, Some("true"), NotBuilt,
     "Whether embed links exist.";
    MAXIMUM_LIFETIME: "sharing.maximum_lifetime_days", None, integer(1, 36_500), None, NotBuilt,
     "Longest life of a share or embed. When not set, there is no limit.";
    REQUIRE_EXPIRATION: "sharing.require_expiration", None, Kind::Flag, Some("false"), NotBuilt,
     "Whether every share and embed must expire.";
    SHARE_BASE_URL: "sharing.share_base_url", None, Kind::Url, None, NotBuilt,
     "What share addresses begin with. When not set, the console's address.";
    EMBED_BASE_URL: "sharing.embed_base_url", None, Kind::Url, None, NotBuilt,
     "What embed addresses begin with. When not set, the data plane's address.";

    LIFECYCLE_INTERVAL: "lifecycle.interval_seconds", None, integer(1, 86_400), Some("3600"), NotBuilt,
     "How often lifecycle rules are applied.";
    LIFECYCLE_BATCH: "lifecycle.batch_size", None, integer(1, 100_000), Some("1000"), NotBuilt,
     "Most expirations in one batch.";
    LIFECYCLE_DAY: "lifecycle.day_seconds", None, integer(1, 86_400), Some("86400"), NotBuilt,
     "The length of a day in lifecycle rules; other values are for tests.";

    EVENTS_ENABLED: "events.enabled", None, Kind::Flag, Some("true"), NotBuilt,
     "Whether storage events are recorded.";
    EVENTS_RETENTION: "events.retention_days", None, integer(1, 36_500), Some("30"), NotBuilt,
     "How long events are kept.";

    AUDIT_RETENTION: "audit.retention_days", None, integer(1, 36_500), Some("365"), Built,
     "How long audit events are kept.";
    AUDIT_RECORDS_MAX: "audit.records_max", None, integer(1000, 1_000_000_000), Some("4000000"), Built,
     "Most audit events that are kept; beyond that the oldest are removed. The default is more than one client \
     whose requests are refused without end can cause in a year.";

    LOG_FILTER: "observability.log_filter", Some("SERVICE_LOG"), Kind::LogFilter, Some("service=info"), Built,
     "Which log lines are written: `level` or `target=level`, separated by commas.";
    LOG_JSON: "observability.json", Some("SERVICE_LOG_JSON"), Kind::Flag, Some("false"), Built,
     "Whether the log is newline-delimited JSON instead of text.";
    SCRAPE_TOKEN: "observability.metrics_scrape_token", Some("SERVICE_METRICS_SCRAPE_TOKEN"), Kind::Secret, None, Built,
     "The bearer token of `/metrics`, at least 16 bytes. Without one nobody gets the metrics there.";
}
