//! TLS 1.2 and 1.3 on a listener.
//!
//! A [`Tls`] holds the certificate that its listeners present. [`Tls::replace`] changes it for connections that are
//! accepted from then on; open connections go on with the old one. The only protocol is `http/1.1` (ALPN, RFC 7301).
//! Clients may resume sessions by tickets. The ticket keys exist only in this process, change every few hours, and are
//! made anew with every certificate, so that no session is resumed under a certificate that was withdrawn.

pub(crate) mod certificate;
pub(crate) mod handshake_threads;
pub(crate) mod session;
pub(crate) mod validity;

use std::fmt;
use std::sync::Arc;

use cairn_sync::RwLock;
use rustls::ServerConfig;
use rustls::crypto::ring::{Ticketer, default_provider};
use rustls::server::NoServerSessionStorage;
use rustls::sign::SingleCertAndKey;

use crate::transport::tls::certificate::CertificateAndKey;
use crate::transport::tls::handshake_threads::HandshakeThreads;

/// The only application protocol (RFC 7301 section 6).
const HTTP_1_1: &[u8] = b"http/1.1";

/// The TLS configuration of one or more listeners. Clones share it.
#[derive(Clone)]
pub struct Tls {
    config: Arc<RwLock<Arc<ServerConfig>>>,
    threads: HandshakeThreads,
    /// The value of `Strict-Transport-Security`.
    strict_transport: Option<Arc<str>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Tls")
    }
}

impl Tls {
    /// Makes a configuration that presents `certificate`. `threads` answer the client hellos.
    ///
    /// # Errors
    /// An error when the system gives no random bytes for the ticket keys.
    pub fn new(certificate: &CertificateAndKey, threads: &HandshakeThreads) -> Result<Self, rustls::Error> {
        Ok(Self {
            config: Arc::new(RwLock::new(config_for(certificate)?)),
            threads: threads.clone(),
            strict_transport: None,
        })
    }

    /// Tells browsers with every response to use only TLS for this host for `seconds` (RFC 6797). With 0 they forget it.
    #[must_use]
    pub fn with_strict_transport(self, seconds: u32) -> Self {
        Self { strict_transport: Some(format!("max-age={seconds}").into()), ..self }
    }

    /// Returns the value of `Strict-Transport-Security`, if it is sent.
    pub(crate) fn strict_transport(&self) -> Option<&str> {
        self.strict_transport.as_deref()
    }

    /// Presents `certificate` to clients that connect from now on.
    ///
    /// # Errors
    /// As [`Tls::new`]; nothing has changed then.
    pub fn replace(&self, certificate: &CertificateAndKey) -> Result<(), rustls::Error> {
        let config = config_for(certificate)?;
        *self.config.write() = config;
        Ok(())
    }

    /// Returns the configuration for a new connection.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config.read())
    }

    /// Returns the threads that answer client hellos.
    pub(crate) const fn threads(&self) -> &HandshakeThreads {
        &self.threads
    }
}

fn config_for(certificate: &CertificateAndKey) -> Result<Arc<ServerConfig>, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_protocol_versions(rustls::ALL_VERSIONS)?.with_no_client_auth();
    let mut config =
        builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(&certificate.key))));
    config.alpn_protocols = vec![HTTP_1_1.to_vec()];
    config.ticketer = Ticketer::new()?;
    // Only tickets: clients could fill the memory of sessions that the server stores.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(Arc::new(config))
}
