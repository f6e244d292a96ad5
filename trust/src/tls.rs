//! The TLS of outgoing requests.

use std::sync::Arc;

use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::authorities::Authorities;

/// Returns the TLS settings of an HTTP client that trusts these authorities: rustls with ring.
#[must_use]
pub fn tls_config(authorities: &Authorities) -> TlsConfig {
    let roots = match authorities {
        Authorities::Host => RootCerts::PlatformVerifier,
        Authorities::Only(list) => {
            RootCerts::from(list.iter().map(|der| Certificate::from_der(der).to_owned()))
        }
    };
    TlsConfig::builder()
        .root_certs(roots)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build()
}
