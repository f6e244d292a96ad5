//! Configures the HTTP client: connect timeout, trusted certificate authorities, no redirects, no proxy.

use std::path::Path;
use std::time::Duration;

use cairn_trust::{Authorities, UnusablePem, tls_config};
use ureq::Agent;
use ureq::unversioned::transport::DefaultConnector;

use super::resolver::KeepingResolver;
use crate::environment::CA_VARIABLE;
use crate::failure::Failure;

/// Time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for which an idle connection is used again. The server may have closed a connection that was idle for longer; then it
/// would be unknown whether a change was made. No server closes one within a second.
const IDLE_MAX: Duration = Duration::from_millis(500);
/// Maximum number of idle connections: one for each request of a command that sends several at a time.
pub(super) const CONNECTIONS_MAX: usize = 8;

/// Returns the configured HTTP client. It trusts the certificate authorities of the environment or of the host.
pub(crate) fn agent() -> Result<Agent, Failure> {
    agent_with(CA_VARIABLE, CONNECTIONS_MAX)
}

/// Returns the configured HTTP client. It trusts the certificate authorities of the file that a variable names, or else those
/// of the host, and keeps this many idle connections.
pub(crate) fn agent_with(variable: &str, connections: usize) -> Result<Agent, Failure> {
    let path = std::env::var_os(variable).filter(|path| !path.is_empty());
    configured(path.as_deref().map(|path| (variable, Path::new(path))), connections)
}

/// Returns the configured HTTP client. It trusts the certificate authorities of a PEM file, or else those of the host. The
/// file comes with the name of the setting that it is from, for messages.
pub(crate) fn agent_trusting(file: Option<(&str, &Path)>) -> Result<Agent, Failure> {
    configured(file, CONNECTIONS_MAX)
}

fn configured(file: Option<(&str, &Path)>, connections: usize) -> Result<Agent, Failure> {
    let authorities = match file {
        Some((setting, path)) => authorities(setting, path)?,
        None => Authorities::Host,
    };
    let config = Agent::config_builder()
        .tls_config(tls_config(&authorities))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .http_status_as_error(false)
        // The token must not be sent to any other server.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .max_idle_connections(connections)
        .max_idle_connections_per_host(connections)
        .max_idle_age(IDLE_MAX)
        .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")))
        .build();
    Ok(Agent::with_parts(config, DefaultConnector::default(), KeepingResolver::default()))
}

/// Reads the certificates of a file, which must contain at least one.
fn authorities(setting: &str, path: &Path) -> Result<Authorities, Failure> {
    let refused = |why: String| {
        Failure::WrongUsage(format!("{setting}: {} contains no usable certificates: {why}", path.display()))
    };
    let text = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
    Authorities::of_pem(&text).map_err(|unusable| match unusable {
        UnusablePem::Empty => refused("it is not PEM".to_owned()),
        UnusablePem::Invalid(why) => refused(why),
    })
}
