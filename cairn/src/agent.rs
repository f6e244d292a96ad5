//! What sends the client's requests: how long it waits for a connection, whom it trusts, and that it follows nobody.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::failure::Failure;

/// Names a file of authorities to trust, for servers whose certificate the host's own do not vouch for.
pub(crate) const CA_VARIABLE: &str = "SERVICE_CA_CERTIFICATE";
/// A host that takes longer to accept a connection is not there.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

/// What sends requests.
pub(crate) fn agent() -> Result<Agent, Failure> {
    let roots = match std::env::var_os(CA_VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => RootCerts::from(authorities(Path::new(&path))?),
        None => RootCerts::PlatformVerifier,
    };
    let tls = TlsConfig::builder()
        .root_certs(roots)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .timeout_connect(Some(CONNECT_PATIENCE))
        .http_status_as_error(false)
        // The token goes to the server named and to nobody else.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        // A connection that was kept may be closed by now, and then nobody knows what became of a change.
        .max_idle_connections(0)
        .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")))
        .build();
    Ok(config.into())
}

/// The certificates of a file, of which there must be some.
fn authorities(path: &Path) -> Result<Vec<Certificate<'static>>, Failure> {
    let refused = |why: String| {
        Failure::WrongUsage(format!("{CA_VARIABLE}: {} holds no certificates: {why}", path.display()))
    };
    let text = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
    let found: Result<Vec<_>, _> = parse_pem(&text)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(Ok(certificate)),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        })
        .collect();
    let found = found.map_err(|error| refused(error.to_string()))?;
    if found.is_empty() { Err(refused("it is not PEM".to_owned())) } else { Ok(found) }
}
