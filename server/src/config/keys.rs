//! The table of configuration keys: the only place where a key is defined.
//!
//! Sources: the specification ("Secrets and keys", "Limits", "Logging and observability configuration", "Events"). Sections
//! and names that it leaves open were chosen here.

use super::key::{Key, Kind};
use crate::memory_sizes::LIMIT_BYTES_MIN;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;

const fn integer(min: u64, max: u64) -> Kind {
    Kind::Integer { min, max }
}

const fn bytes(min: u64, max: u64) -> Kind {
    Kind::Bytes { min, max }
}

/// Maximum of `metrics.buckets_max`: a scrape of so many buckets has some megabytes.
const METRICS_BUCKETS_LIMIT: u64 = 10_000;

const DATA_EVENTS_WORDS: Kind = Kind::Word { words: &["off", "writes", "all"] };
const COMPATIBILITY_WORDS: Kind = Kind::Word { words: &["strict", "extended"] };
const COMMIT_WORDS: Kind = Kind::Word { words: &["log", "lmdb"] };
const ETAG_WORDS: Kind = Kind::Word { words: &["md5", "opaque"] };
const REQUEST_LOG_WORDS: Kind = Kind::Word { words: &["all", "errors", "off"] };
const FORWARDED_WORDS: Kind = Kind::Word { words: &["x-forwarded-for", "forwarded"] };

/// One row per key: its name, the variable's name if the specification gives one, its kind of value, its default and its
/// documentation.
macro_rules! keys {
    ($($id:ident: $name:literal, $variable:expr, $kind:expr, $default:expr, $doc:literal;)+) => {
        $(pub(crate) static $id: Key = Key {
            name: $name,
            literal_variable: $variable,
            kind: $kind,
            default: $default,
            doc: $doc,
        };)+

        /// Every key, in the order in which the documentation shows them.
        pub static ALL_KEYS: &[&Key] = &[$(&$id),+];
    };
}

keys! {
    S3_BIND: "server.s3_bind", Some("SERVICE_S3_BIND"), Kind::Address, Some("0.0.0.0:7600"),
     "The address of the S3 data plane.";
    API_BIND: "server.api_bind", Some("SERVICE_API_BIND"), Kind::Address, Some("127.0.0.1:7601"),
     "The address of the management plane.";
    CONSOLE_BIND: "server.console_bind", Some("SERVICE_CONSOLE_BIND"), Kind::Address, Some("127.0.0.1:7602"),
     "The address of the console's listener: the web console, and share links.";
    DATA_DIR: "server.data_dir", Some("SERVICE_DATA_DIR"), Kind::Path, Some("/var/lib/cairn"),
     "The folder in which everything is stored. With `--dev` the default is `./cairn-data`.";
    EXECUTORS: "server.executors", None, integer(0, 1024), Some("0"),
     "Number of executors, each pinned to a core; 0 means one per core.";
    MEMORY_LIMIT: "server.memory_limit", None, bytes(LIMIT_BYTES_MIN, 16 * TIB), None,
     "Memory that the process may use for the cache, buffers and connections together. When not set, the limit of the host \
     or of the control group (version 1 or 2). A small limit reduces the number of connections and, unless they are \
     configured, the number of executors and the number of slices of a new store.";
    BASE_HOSTS: "server.base_hosts", None, Kind::HostNames, Some(""),
     "Host names of the data plane. A request whose host is a bucket name followed by one of them is virtual-hosted style, \
     which only `s3.compatibility = \"extended\"` implements.";
    S3_URL: "server.s3_url", None, Kind::Origin, None,
     "The URL by which clients reach the data plane, if it is not that of the listener: behind a proxy for example. It is shown \
     to people, in `GET /api/v1/system/info` and by `cairn app create`, and changes nothing else. When not set, the listener's \
     address; if that means all addresses, the host of the request that asks.";
    TRUSTED_PROXIES: "server.trusted_proxies", None, Kind::Networks, Some(""),
     "Proxies that are trusted to report the addresses of their clients. The audit trail, the request log and the throttling \
     of wrong credentials use these addresses. Reports of all other peers are ignored. See docs/proxies.md.";
    FORWARDED_HEADER: "server.forwarded_header", None, FORWARDED_WORDS, Some("x-forwarded-for"),
     "The header field in which trusted proxies report the client's address. The other field is never read, because a proxy \
     forwards it as the client sent it.";
    SHUTDOWN_GRACE: "server.shutdown_grace_period_seconds", None, integer(1, 300), Some("30"),
     "Time that requests in flight have to finish after SIGTERM.";
    CONNECTIONS_MAX: "server.connections_max", None, integer(16, 1_000_000), Some("16384"),
     "Maximum number of open connections to the data plane. A further connection takes the place of an idle one: of those \
     that have sent no request, or else of all, the one that has been idle longest. If none is idle, it gets a 503 response \
     and is closed; with TLS it is closed without a response. Lowered at the start if the limit on open files or `server.memory_limit` is too low for it.";
    CONNECTIONS_PER_CLIENT: "server.connections_per_client_max", None, integer(0, 1_000_000), None,
     "Maximum number of open connections from one IPv4 address or IPv6 /64 network, on each plane; 0 means no limit. Further \
     connections are refused as above. Trusted proxies are exempt. When not set, three quarters of \
     the plane's maximum, and at least 256.";
    HEAD_TIMEOUT: "server.head_timeout_seconds", None, integer(1, 300), Some("15"),
     "Time that a client has to send a request head.";
    FIRST_REQUEST_TIMEOUT: "server.first_request_timeout_seconds", None, integer(1, 3600), Some("10"),
     "Time that a new connection may wait for its first request, at most `idle_timeout_seconds`.";
    IDLE_TIMEOUT: "server.idle_timeout_seconds", None, integer(1, 3600), Some("75"),
     "Time that a connection may wait for its next request.";
    BODY_TIMEOUT: "server.body_timeout_seconds", None, integer(1, 3600), Some("60"),
     "Time that a request or response body may make no progress.";

    CORE_DUMPS: "server.core_dumps", None, Kind::Flag, Some("false"),
     "Whether the kernel may write core files of the process, and debuggers of the same user may examine it. Core files \
     contain all secrets; allow them for debugging only.";

    TLS_CERTIFICATE: "server.tls.certificate", Some("SERVICE_TLS_CERTIFICATE"), Kind::Path, None,
     "The certificate chain (PEM, the server's certificate first) of every TLS listener that has no certificate of its own. \
     The certificate and its key are reloaded when they change and on SIGHUP. When not set, listeners without their own \
     certificate speak plain HTTP.";
    TLS_KEY: "server.tls.key", Some("SERVICE_TLS_KEY"), Kind::Path, None,
     "The private key of the certificate (PEM, without a password). Required with a certificate.";
    TLS_S3_ENABLED: "server.tls.s3_enabled", Some("SERVICE_TLS_S3_ENABLED"), Kind::Flag, None,
     "Whether the data plane speaks TLS. When not set, it does if it has a certificate.";
    TLS_S3_CERTIFICATE: "server.tls.s3_certificate", Some("SERVICE_TLS_S3_CERTIFICATE"), Kind::Path, None,
     "The data plane's own certificate. When not set, `certificate`.";
    TLS_S3_KEY: "server.tls.s3_key", Some("SERVICE_TLS_S3_KEY"), Kind::Path, None,
     "The private key of the data plane's own certificate. Required with that certificate.";
    TLS_API_ENABLED: "server.tls.api_enabled", Some("SERVICE_TLS_API_ENABLED"), Kind::Flag, None,
     "Whether the management plane speaks TLS. When not set, it does if it has a certificate.";
    TLS_API_CERTIFICATE: "server.tls.api_certificate", Some("SERVICE_TLS_API_CERTIFICATE"), Kind::Path, None,
     "The management plane's own certificate. When not set, `certificate`.";
    TLS_API_KEY: "server.tls.api_key", Some("SERVICE_TLS_API_KEY"), Kind::Path, None,
     "The private key of the management plane's own certificate. Required with that certificate.";
    TLS_CONSOLE_ENABLED: "server.tls.console_enabled", Some("SERVICE_TLS_CONSOLE_ENABLED"), Kind::Flag, None,
     "Whether the console's listener speaks TLS. When not set, it does if it has a certificate.";
    TLS_CONSOLE_CERTIFICATE: "server.tls.console_certificate", Some("SERVICE_TLS_CONSOLE_CERTIFICATE"), Kind::Path, None,
     "The console's own certificate. When not set, `certificate`.";
    TLS_CONSOLE_KEY: "server.tls.console_key", Some("SERVICE_TLS_CONSOLE_KEY"), Kind::Path, None,
     "The private key of the console's own certificate. Required with that certificate.";
    TLS_HSTS: "server.tls.hsts_seconds", None, integer(0, 63_072_000), Some("31536000"),
     "Time for which browsers use only TLS for a host whose TLS listener they have visited (`max-age` of \
     Strict-Transport-Security), in seconds. It applies to all ports of the host. 0 makes them forget it; with `--dev` this is \
     the default.";

    CACHE_BYTES: "storage.cache_bytes", None, bytes(0, 16 * TIB), None,
     "Memory for the cache of verified blocks, part of `server.memory_limit`. When not set, a quarter of that limit, or less \
     if the rest needs more.";
    SLICES: "storage.slices", None, integer(1, 64), None,
     "Number of slices of a new store; an existing store keeps its number. When not set, half the number of cores, rounded up, \
     at most 64.";
    CREATE_STORE: "storage.create_store", None, Kind::Flag, Some("true"),
     "Whether a start creates a store in a data folder that has none. With `false`, once the store exists, a start fails while \
     its disk is not mounted, instead of serving an empty store.";
    RESERVE_BYTES: "storage.reserve_bytes", None, bytes(16 * MIB, 16 * TIB), Some("256MiB"),
     "While less than this is free on the file system, no file of the store grows. Writes use the free space in the store's \
     volumes (its data files), and are refused when that is used up; reads and deletes continue.";
    LOW_SPACE_PERCENT: "storage.low_space_percent", None, integer(0, 90), Some("15"),
     "Disk space is reported as low while less than this part of the file system, in percent, is free above `reserve_bytes`; \
     0 means never. Nothing is refused because of it.";
    RECLAIM_AFTER: "storage.reclaim_after_seconds", None, integer(0, 86_400), Some("60"),
     "Free space in the volumes is returned to the file system after it was unused for this time, except for a part that \
     stays allocated; 0 means never.";
    SCRUB_INTERVAL: "storage.scrub_interval_days", None, integer(0, 3650), Some("30"),
     "Days from the end of one background verification of the whole store (scrub) to the start of the next; 0 disables it.";
    SCRUB_RATE: "storage.scrub_bytes_per_second", None, bytes(64 * KIB, TIB), Some("32MiB"),
     "Maximum number of bytes per second that the scrub reads. While requests are served it reads far less.";
    MULTIPART_EXPIRY: "storage.multipart_expiry_days", None, integer(0, 3650), Some("7"),
     "Days after which a multipart upload that was neither completed nor aborted is removed with its parts; 0 means never. \
     Checked once an hour.";
    COMMIT: "storage.commit", None, COMMIT_WORDS, Some("log"),
     "What makes changes of objects durable. `log` is a commit log in each slice: one write and one flush for each group of \
     changes. `lmdb` leaves it to LMDB, with two flushes. A store can be started with either after the other.";
    ENCRYPTION_ENABLED: "storage.encryption_enabled", None, Kind::Flag, Some("false"),
     "Encryption at rest: new payloads are encrypted with AES-256-GCM under the master key. Existing payloads are not \
     changed and stay readable with either setting. Object keys, sizes, entity tags and metadata are not encrypted. With \
     `s3.compatibility = \"extended\"`, S3 clients may ask for it (`AES256`), and responses say what is encrypted.";

    MASTER_KEY: "auth.credential_master_key", Some("SERVICE_CREDENTIAL_MASTER_KEY"), Kind::Secret, None,
     "The key that encrypts all other secrets. Required, at least 16 bytes, 32 or more recommended; a store opens only with \
     the key that it was created with.";
    ROOT_ACCESS_KEY: "auth.root_access_key", Some("SERVICE_ROOT_ACCESS_KEY"), Kind::Text { bytes_max: 128 }, None,
     "The access key of the root credential. Required; 3 to 128 letters, digits, `_`, `-` or `.`.";
    ROOT_SECRET_KEY: "auth.root_secret_key", Some("SERVICE_ROOT_SECRET_KEY"), Kind::Secret, None,
     "The secret key of the root credential. Required, at least 8 bytes, 32 or more recommended.";
    ROOT_S3_ENABLED: "auth.root_s3_enabled", Some("SERVICE_ROOT_S3_ENABLED"), Kind::Flag, Some("true"),
     "Whether the root credential may use the data plane. If not, its requests are refused before their signature is checked.";
    PUBLIC_ACCESS_ENABLED: "auth.public_access_enabled", None, Kind::Flag, Some("true"),
     "Whether the rules of public access have an effect. If not, no bucket is public, and no rule can be set; rules can be \
     removed.";
    SYSTEM_TOKEN: "auth.management_system_token", Some("SERVICE_MANAGEMENT_SYSTEM_TOKEN"), Kind::Secret, None,
     "The bearer token of the management plane's system administrator. Required, at least 32 bytes, \
     different from every other secret.";

    S3_COMPATIBILITY: "s3.compatibility", None, COMPATIBILITY_WORDS, Some("strict"),
     "How much of S3 the data plane implements. `extended` adds operations and headers that current clients use by default, \
     such as DeleteObjects; `strict` answers them with 501. See docs/s3-api.md.";
    S3_SIGNATURE_V2: "s3.signature_v2", None, Kind::Flag, Some("true"),
     "Whether `s3.compatibility = \"extended\"` accepts Signature Version 2 in presigned URLs and browser forms. boto3 and older \
     SDKs make them unless they are told otherwise. `strict` never accepts them.";
    S3_SOSAPI: "s3.sosapi", None, Kind::Flag, Some("false"),
     "Whether `s3.compatibility = \"extended\"` answers Veeam's Smart Object Storage API: two objects of every bucket that tell \
     backup software what the store can do and how much room it has. `strict` never answers them.";
    S3_ETAG: "s3.etag", None, ETAG_WORDS, Some("md5"),
     "What the entity tags of new objects and parts are. `md5` is the MD5 of the bytes, as on Amazon S3. `opaque` are random \
     bytes, written as the tag of an upload of one part (32 hexadecimal digits and `-1`), which clients do not take for an \
     MD5. It saves the time of the MD5, most of the processor time of large uploads. Content-MD5 is checked with both.";

    ALLOW_HTTP: "webhooks.allow_http", None, Kind::Flag, Some("false"),
     "Whether webhooks may be delivered without TLS. With `--dev` the default is `true`.";
    ALLOW_PRIVATE: "webhooks.allow_private_networks", None, Kind::Flag, Some("false"),
     "Whether webhooks may be delivered to loopback, private (RFC 1918, unique local) and shared (100.64.0.0/10) addresses. \
     Link-local, multicast, broadcast, unspecified and cloud metadata addresses are always refused. With `--dev` the default \
     is `true`.";
    WEBHOOK_TIMEOUT: "webhooks.request_timeout_seconds", None, integer(1, 300), Some("10"),
     "Time that one attempt of a delivery may take.";
    WEBHOOK_ATTEMPTS: "webhooks.maximum_attempts", None, integer(1, 20), Some("6"),
     "Number of attempts before a delivery fails permanently.";
    WEBHOOK_POLL: "webhooks.poll_interval_seconds", None, integer(1, 3600), Some("2"),
     "How often the service looks for due deliveries without being told. A new event is delivered immediately.";
    WEBHOOK_CONCURRENCY: "webhooks.concurrency_per_target", None, integer(1, 64), Some("8"),
     "Maximum number of requests that are sent to one webhook at a time. All webhooks together have at most 64.";

    EMBEDS_ENABLED: "sharing.embeds_enabled", None, Kind::Flag, Some("true"),
     "Whether embed links exist.";
    MAXIMUM_LIFETIME: "sharing.maximum_lifetime_days", None, integer(1, 36_500), None,
     "Maximum lifetime of a share or embed. When not set, there is no limit.";
    REQUIRE_EXPIRATION: "sharing.require_expiration", None, Kind::Flag, Some("false"),
     "Whether every share and embed must expire.";
    SHARE_BASE_URL: "sharing.share_base_url", None, Kind::Url, None,
     "The base URL of shares. When not set, the console's address, or the management plane's without a console.";
    EMBED_BASE_URL: "sharing.embed_base_url", None, Kind::Url, None,
     "The base URL of embeds. When not set, the data plane's address.";

    CONSOLE_ENABLED: "console.enabled", None, Kind::Flag, Some("true"),
     "Whether the console's listener is opened. Without it, there is no web console, and share links are served on the \
     management plane only.";
    CONSOLE_ADMIN_ENABLED: "console.admin_enabled", None, Kind::Flag, Some("true"),
     "Whether the console serves administration besides share links. Turn it off for a listener that is reached from the \
     internet.";
    CONSOLE_HOSTS: "console.hosts", None, Kind::WebHosts, Some(""),
     "Host names of the console, besides `localhost`, literal addresses and the host of `server.console_bind`. Requests for \
     administration that name another host are refused, because a site could make browsers take its own name for the console. \
     With `https://` in front, a proxy speaks TLS for this host: the cookies of its sessions are sent over TLS only.";
    CONSOLE_IDLE: "console.session_idle_minutes", None, integer(1, 1440), Some("60"),
     "A session of the console ends after this time without a request.";
    CONSOLE_HOURS: "console.session_hours", None, integer(1, 720), Some("12"),
     "A session of the console ends after this time.";

    OPENID_ISSUER: "console.openid.issuer", None, Kind::Url, None,
     "The OpenID provider that people sign in with, exactly as the provider writes its issuer. https, or http on a loopback \
     address. When not set, people sign in with tokens only. See docs/console.md.";
    OPENID_NAME: "console.openid.name", None, Kind::Text { bytes_max: 64 }, Some("OpenID"),
     "What people call the provider: the page says `Sign in with <name>`.";
    OPENID_CLIENT_ID: "console.openid.client_id", None, Kind::Text { bytes_max: 256 }, None,
     "The client that the provider knows the console as. Required with an issuer.";
    OPENID_CLIENT_SECRET: "console.openid.client_secret", None, Kind::Secret, None,
     "The secret of the client. When not set, it is a public client, which PKCE alone protects.";
    OPENID_CONSOLE_URL: "console.openid.console_url", None, Kind::Origin, None,
     "The URL by which browsers reach the console. The redirect URI, which the provider must know, is this URL and \
     `/sign-in/callback`. Its host must be one of the console. https, or http on a loopback address. Required with an issuer.";
    OPENID_SCOPES: "console.openid.scopes", None, Kind::Texts, Some("openid,profile,email"),
     "The scopes that are asked for. Some providers send groups only for a scope such as `groups`.";
    OPENID_ROLE_CLAIM: "console.openid.role_claim", None, Kind::Text { bytes_max: 256 }, Some("groups"),
     "The claim whose values give a role: a text, or a list of texts. A claim inside of another is named by a JSON pointer, \
     such as `/realm_access/roles`.";
    OPENID_SYSTEM_ADMINS: "console.openid.system_admins", None, Kind::Texts, Some(""),
     "Values of the claim that make a person a system administrator. They are compared exactly. If several roles apply, the one \
     with most rights counts; without one, the person cannot sign in.";
    OPENID_STORAGE_ADMINS: "console.openid.storage_admins", None, Kind::Texts, Some(""),
     "Values of the claim that make a person a storage administrator.";
    OPENID_AUDITORS: "console.openid.auditors", None, Kind::Texts, Some(""),
     "Values of the claim that make a person an auditor.";
    OPENID_MEMBERS: "console.openid.members", None, Kind::Texts, Some(""),
     "Values of the claim that give a person without a role object rights through policies: entries `value = policy name`, of \
     which the last `=` counts. A value may be in several entries. See docs/console.md.";
    OPENID_NAME_CLAIM: "console.openid.name_claim", None, Kind::Text { bytes_max: 256 }, Some("preferred_username"),
     "The claim with the name of a person, as sessions, the audit trail and shares show it. Without this claim, `email`, or else \
     the subject.";
    OPENID_CA_FILE: "console.openid.ca_file", None, Kind::Path, None,
     "The certificate authorities (PEM) that the provider's certificate is checked against. When not set, those of the host.";

    LIFECYCLE_INTERVAL: "lifecycle.interval_seconds", None, integer(1, 86_400), Some("3600"),
     "How often lifecycle rules are applied.";
    LIFECYCLE_BATCH: "lifecycle.batch_size", None, integer(1, 100_000), Some("1000"),
     "Maximum number of expirations in one batch.";
    LIFECYCLE_DAY: "lifecycle.day_seconds", None, integer(1, 86_400), Some("86400"),
     "The length of a day in lifecycle rules; other values are for tests.";

    EVENTS_ENABLED: "events.enabled", None, Kind::Flag, Some("true"),
     "Whether storage events are recorded. Without them, no webhook can be created, and nothing new is delivered.";
    EVENTS_RETENTION: "events.retention_days", None, integer(1, 3650), Some("30"),
     "How long events and the delivery log of webhooks are kept.";
    EVENTS_RECORDS_MAX: "events.records_max", None, integer(100_000, 100_000_000_000), Some("100000000"),
     "Maximum number of storage events that are kept; beyond it the oldest are removed. The default takes about 14 GB.";

    AUDIT_RETENTION: "audit.retention_days", None, integer(1, 36_500), Some("365"),
     "How long audit events are kept.";
    AUDIT_RECORDS_MAX: "audit.records_max", None, integer(1000, 1_000_000_000), Some("4000000"),
     "Maximum number of audit events of each kind that are kept; beyond it the oldest of the kind are removed. The default \
     exceeds what one client whose requests are all refused can cause in a year.";
    AUDIT_DATA_EVENTS: "audit.data_events", None, DATA_EVENTS_WORDS, Some("off"),
     "Which requests for objects are recorded in the audit trail besides refused ones: `writes` records each change of an \
     object before it begins and with its outcome, `all` also records reads and lists. Both slow requests down and fill \
     the trail; see docs/internals/audit.md.";

    LOG_FILTER: "observability.log_filter", Some("SERVICE_LOG"), Kind::LogFilter, Some("service=info"),
     "Which log lines are written: `level` or `target=level`, separated by commas.";
    LOG_JSON: "observability.json", Some("SERVICE_LOG_JSON"), Kind::Flag, Some("false"),
     "Whether the log is newline-delimited JSON instead of text.";
    REQUEST_LOG: "observability.request_log", None, REQUEST_LOG_WORDS, Some("all"),
     "Which requests have a line in the log: `all`, `errors` (a status of 400 or more, or a response that was cut short) or \
     `off`. `serve --dev` on a terminal defaults to `errors`, with warnings as the only other lines. Needs a log filter that \
     enables `service::request=info`.";
    LOG_PATHS: "observability.log_paths", None, Kind::Flag, Some("false"),
     "Whether the lines of requests contain bucket and key besides the pattern of the route. Keys may be confidential.";
    SCRAPE_TOKEN: "observability.metrics_scrape_token", Some("SERVICE_METRICS_SCRAPE_TOKEN"), Kind::Secret, None,
     "The bearer token of `/metrics`, at least 16 bytes, 32 or more recommended. When not set, `/metrics` refuses every request.";

    METRICS_BUCKETS_MAX: "metrics.buckets_max", None, integer(0, METRICS_BUCKETS_LIMIT), Some("100"),
     "How many buckets have metrics of their own: those with the most bytes. 0 means none. Every bucket adds three series to \
     a scrape.";
}

#[cfg(test)]
mod tests {
    use super::{ALL_KEYS, Kind};
    use cairn_observe::RefusingSetting;

    /// The explanation of a refused request shows the value, so none may be a secret.
    #[test]
    fn settings_of_refusals_are_keys_and_no_secrets() {
        for setting in RefusingSetting::ALL {
            let key = ALL_KEYS.iter().find(|key| key.name == setting.name());
            assert!(key.is_some_and(|key| key.kind != Kind::Secret), "{}", setting.name());
        }
    }
}
