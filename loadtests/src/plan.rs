//! The plan of a run: its options with defaults, checked for contradictions.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use crate::arguments::{Common, Particular};
use crate::failure::{LoadError, while_doing};
use crate::http::request::{Auth, Secret, Target, Urls};
use crate::http::server::Server;
use crate::objects::key_space::{KeySpace, SCATTERED_MAX};
use crate::objects::sizes::Sizes;
use crate::units::ByteCount;
use crate::workload::{Digest, Operation, Order, Ratio, Workload};

/// The options of list requests.
#[derive(Clone, Debug)]
pub struct PageOptions {
    /// Keys per page.
    pub max_keys: u32,
    /// Delimiter that groups keys.
    pub delimiter: Option<String>,
    /// Follow continuation tokens instead of starting at random keys.
    pub walk: bool,
}

/// The plan of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The kind of run.
    pub workload: Workload,
    /// The name of the command.
    pub name: &'static str,
    /// The server.
    pub server: Server,
    /// The endpoint as given.
    pub endpoint: String,
    /// The target of requests, and their authentication.
    pub target: Target,
    /// Keys and sizes.
    pub keys: KeySpace,
    /// Whether `--size` was given, so that lengths can be checked.
    pub size_given: bool,
    /// Connections, with one request at a time on each.
    pub connections: usize,
    /// Threads that share the connections.
    pub threads: usize,
    /// Time before the measured window.
    pub warm_up: Duration,
    /// Length of the measured window; `None` for runs without a time limit.
    pub duration: Option<Duration>,
    /// Maximum number of requests of the run.
    pub requests: Option<u64>,
    /// Requests per second that are due in an open loop; `None` in a closed loop.
    pub rate: Option<u32>,
    /// The order of keys.
    pub order: Order,
    /// Bytes per range.
    pub range_size: ByteCount,
    /// The options of list requests.
    pub page: PageOptions,
    /// Weights of a mixed run.
    pub ratio: Ratio,
    /// The payload hash of uploads.
    pub digest: Digest,
    /// Verify responses.
    pub verify: bool,
    /// Exit code 3 on errors.
    pub fail_on_error: bool,
    /// JSON on standard output.
    pub json: bool,
    /// Report measurements of every second.
    pub time_series: bool,
    /// Time limit of a request without progress.
    pub timeout: Duration,
    /// Send buffer of each socket; 0 for the kernel's own.
    pub send_buffer: ByteCount,
    /// Seed of content, sizes and choices.
    pub seed: u64,
    /// Process whose memory and CPU time are reported.
    pub server_pid: Option<u32>,
    /// `idle`: send a request on each connection first.
    pub touch: bool,
    /// URLs to request in place of objects, one for each key.
    pub urls: Option<Urls>,
}

/// Maximum number of connections.
const CONNECTIONS_MAX: u32 = 20_000;
/// Larger bodies get a thread per connection. A body of this size fits into the socket's send buffer.
const SMALL_BYTES_MAX: ByteCount = ByteCount(64 * 1024);
/// S3's maximum for a page.
const PAGE_KEYS_MAX: u32 = 1_000;

impl Plan {
    /// Checks the options of the command `name`.
    ///
    /// # Errors
    /// [`LoadError::Usage`] if options contradict each other; [`LoadError::Io`] if the host cannot be resolved.
    pub fn new(
        name: &'static str,
        workload: Workload,
        (common, own): (Common, Particular),
    ) -> Result<Self, LoadError> {
        check(&common, &own, workload)?;
        let urls = own.urls.map(|file| read_urls(&file, own.origin)).transpose()?;
        let count = urls.as_ref().map_or(common.keys, |urls| urls.paths.len() as u64);
        let (host, server) = server(&common)?;
        let credentials = credentials(&common)?;
        let order_default = match workload {
            Workload::Repeat(Operation::Put) | Workload::EachOnce(_) => Order::Sequential,
            _ => Order::Random,
        };
        // These runs end after their last request, so they have no time limit.
        let counted = matches!(workload, Workload::EachOnce(_)) || common.requests.is_some();
        let sizes = common.size.clone().unwrap_or(Sizes::Fixed(ByteCount(4096)));
        let range_size = own.range_size.unwrap_or(ByteCount(64 * 1024));
        let connections = crate::units::index(u64::from(common.connections));
        let threads = common.threads.map(|threads| crate::units::index(u64::from(threads)));
        Ok(Self {
            size_given: common.size.is_some(),
            threads: threads
                .unwrap_or_else(|| if is_small(workload, &sizes, range_size) { cpus() } else { connections })
                .min(connections),
            workload,
            name,
            server,
            endpoint: common.endpoint,
            target: Target {
                host,
                bucket: common.bucket,
                auth: common.auth,
                credentials,
                region: common.region,
            },
            keys: KeySpace {
                prefix: common.prefix,
                count,
                first: common.first_key,
                scatter: common.scatter,
                folder_keys: common.folder_keys,
                seed: common.seed,
                sizes,
                listed: None,
            },
            connections,
            warm_up: if counted { Duration::ZERO } else { common.warm_up.0 },
            duration: if counted { None } else { Some(common.duration.0) },
            requests: common.requests,
            rate: own.rate,
            order: own.order.unwrap_or(order_default),
            range_size,
            page: PageOptions {
                max_keys: own.max_keys.unwrap_or(PAGE_KEYS_MAX),
                delimiter: own.delimiter,
                walk: own.walk,
            },
            ratio: own.ratio.unwrap_or(Ratio::DEFAULT),
            digest: common.payload_digest,
            verify: common.verify,
            fail_on_error: common.fail_on_error,
            json: common.json,
            time_series: common.time_series,
            timeout: common.timeout.0,
            send_buffer: common.send_buffer,
            seed: common.seed,
            server_pid: common.server_pid,
            touch: own.touch,
            urls,
        })
    }
}

fn read_urls(file: &Path, origin: Option<String>) -> Result<Urls, LoadError> {
    let text = std::fs::read_to_string(file).map_err(while_doing(format!("reading {}", file.display())))?;
    Urls::parse(&text, origin).map_err(|reason| LoadError::Usage(format!("--urls: {reason}")))
}

/// Returns whether requests and responses fit the sockets' buffers, so that connections can share threads. Lists do not.
fn is_small(workload: Workload, sizes: &Sizes, range_size: ByteCount) -> bool {
    match workload {
        Workload::Repeat(Operation::List) | Workload::Mixed => false,
        Workload::Repeat(Operation::RangeGet) => range_size.min(sizes.max()) <= SMALL_BYTES_MAX,
        Workload::Repeat(Operation::Delete) | Workload::EachOnce(Operation::Delete) => true,
        Workload::Repeat(_) | Workload::EachOnce(_) => sizes.max() <= SMALL_BYTES_MAX,
    }
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn check(common: &Common, own: &Particular, workload: Workload) -> Result<(), LoadError> {
    let usage = |text: &str| Err(LoadError::Usage(text.to_owned()));
    if !(1..=CONNECTIONS_MAX).contains(&common.connections) {
        return usage("--connections: 1 to 20000");
    }
    if common.threads == Some(0) {
        return usage("--threads: at least 1");
    }
    if common.keys == 0 {
        return usage("--keys: at least 1");
    }
    if workload == Workload::Mixed && common.keys < u64::from(common.connections) {
        return usage(
            "mixed: --keys must be at least --connections, because each connection has its own keys",
        );
    }
    if common.timeout.0.is_zero() {
        return usage("--timeout: more than 0");
    }
    if common.duration.0.is_zero() {
        return usage("--duration: more than 0");
    }
    if own.range_size == Some(ByteCount(0)) {
        return usage("--range-size: at least 1");
    }
    if own.rate == Some(0) {
        return usage("--rate: at least 1");
    }
    if own.max_keys.is_some_and(|keys| !(1..=PAGE_KEYS_MAX).contains(&keys)) {
        return usage("--max-keys: 1 to 1000");
    }
    let listing = workload == Workload::Repeat(Operation::List);
    if common.verify && (own.delimiter.is_some() || own.walk || (listing && common.scatter)) {
        return usage("list --verify cannot be combined with --delimiter, --walk or --scatter");
    }
    if common.scatter && common.first_key.saturating_add(common.keys) > SCATTERED_MAX {
        return usage("--scatter: --first-key and --keys are at most 4294967296 together");
    }
    if own.urls.is_some() && common.auth != Auth::None {
        return usage("--urls: URLs are requested unsigned, with --auth none");
    }
    if own.origin.is_some() && own.urls.is_none() {
        return usage("--origin: only with --urls");
    }
    if common.auth == Auth::None && common.payload_digest == Digest::Sha256 {
        return usage("--payload-digest sha256 cannot be combined with --auth none");
    }
    Ok(())
}

/// Returns the host, as it is sent and signed, and the server of these options.
fn server(common: &Common) -> Result<(String, Server), LoadError> {
    let Some(rest) = common.endpoint.strip_prefix("https://") else {
        let (host, address) = resolve(&common.endpoint)?;
        return Ok((host, address.into()));
    };
    let Some(authorities) = &common.ca_certificate else {
        return Err(LoadError::Usage("an https endpoint needs --ca-certificate".to_owned()));
    };
    let (host, address) = host_and_address(&common.endpoint, rest, 443)?;
    let name = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
    let server = Server::with_tls(address, name.map_or(host.as_str(), |(name, _)| name), authorities)?;
    Ok((host, server))
}

/// Returns the host, as it is sent and signed, and the address of `http://host:port`.
pub(crate) fn resolve(endpoint: &str) -> Result<(String, SocketAddr), LoadError> {
    let wrong = || LoadError::Usage(format!("--endpoint {endpoint}: write http://host:port"));
    host_and_address(endpoint, endpoint.strip_prefix("http://").ok_or_else(wrong)?, 80)
}

/// Returns host and address of the part after an endpoint's scheme. The host does not contain the scheme's default port.
fn host_and_address(endpoint: &str, rest: &str, port: u16) -> Result<(String, SocketAddr), LoadError> {
    let wrong =
        || LoadError::Usage(format!("--endpoint {endpoint}: write http://host:port or https://host:port"));
    let host = rest.trim_end_matches('/');
    if host.is_empty() || host.contains(['/', '?', '#', '@', ' ']) {
        return Err(wrong());
    }
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let with_port = if has_port { host.to_owned() } else { format!("{host}:{port}") };
    let mut addresses =
        with_port.to_socket_addrs().map_err(while_doing(format!("looking up the address of {host}")))?;
    // Prefers IPv4, because most servers under test listen on it, and `localhost` has both.
    let all: Vec<SocketAddr> = addresses.by_ref().collect();
    let address = all.iter().find(|address| address.is_ipv4()).or(all.first()).copied();
    // HTTP omits the default port in `Host`, and the signature covers the header as sent.
    let host = host.strip_suffix(&format!(":{port}")).unwrap_or(host).to_owned();
    Ok((host, address.ok_or_else(wrong)?))
}

fn credentials(common: &Common) -> Result<(String, Secret), LoadError> {
    if common.auth == Auth::None {
        return Ok((String::new(), Secret(String::new())));
    }
    credentials_of(common.access_key.clone(), common.secret_key.clone())
}

/// Returns the credential from the options, or from the environment.
pub(crate) fn credentials_of(
    access_key: Option<String>,
    secret_key: Option<Secret>,
) -> Result<(String, Secret), LoadError> {
    let one = |given: Option<String>, variable: &str, option: &str| {
        given.or_else(|| std::env::var(variable).ok()).ok_or_else(|| {
            LoadError::Usage(format!("no credential: give {option} or set {variable} (or --auth none)"))
        })
    };
    let secret = secret_key.map(|secret| secret.0);
    Ok((
        one(access_key, "AWS_ACCESS_KEY_ID", "--access-key")?,
        Secret(one(secret, "AWS_SECRET_ACCESS_KEY", "--secret-key")?),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_omits_the_default_port() {
        assert_eq!(resolve("http://127.0.0.1:7600/").unwrap().0, "127.0.0.1:7600");
        assert_eq!(
            resolve("http://127.0.0.1").unwrap(),
            ("127.0.0.1".into(), "127.0.0.1:80".parse().unwrap())
        );
        assert_eq!(resolve("http://127.0.0.1:80").unwrap().0, "127.0.0.1");
        assert_eq!(resolve("http://[::1]:80").unwrap().0, "[::1]");
        for endpoint in ["https://h", "h:1", "http://", "http://h/path", "http://u@h"] {
            assert!(matches!(resolve(endpoint), Err(LoadError::Usage(_))), "{endpoint} was taken");
        }
    }
}
