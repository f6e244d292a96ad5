//! TLS 1.2 and 1.3 on a listener.
//!
//! A [`Tls`] holds what its listeners present to clients; [`Tls::replace`] changes the certificate for connections that are
//! accepted from then on, and those that are open go on as they began. Clients speak `http/1.1` (ALPN, RFC 7301) and may
//! resume sessions: by tickets, whose keys live in this process alone, change every few hours and are made anew with every
//! certificate, so that nobody resumes under one that was withdrawn.

mod handshake;
mod handshake_threads;
mod pair;
mod session;
mod validity;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::ring::{Ticketer, default_provider};
use rustls::server::NoServerSessionStorage;
use rustls::sign::SingleCertAndKey;

pub(crate) use handshake::{Greeting, greet};
pub use handshake_threads::HandshakeThreads;
pub use pair::{Pair, PairError};
pub(crate) use session::{CipherBuffer, Session, poll_send, send_if_there_is_room};

/// The one protocol that is spoken (RFC 7301 section 6).
const HTTP_1_1: &[u8] = b"http/1.1";

/// What one or more listeners present to clients. Clones share it.
#[derive(Clone)]
pub struct Tls {
    config: Arc<RwLock<Arc<ServerConfig>>>,
    threads: HandshakeThreads,
}

impl fmt::Debug for Tls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Tls")
    }
}

impl Tls {
    /// Presents `pair`; hellos are answered by `threads`.
    ///
    /// # Errors
    /// When the system gives no random bytes for the keys of tickets.
    pub fn new(pair: &Pair, threads: &HandshakeThreads) -> Result<Self, rustls::Error> {
        Ok(Self { config: Arc::new(RwLock::new(config_for(pair)?)), threads: threads.clone() })
    }

    /// Presents `pair` to clients that connect from now on.
    ///
    /// # Errors
    /// As [`Tls::new`]; then everything stays as it was.
    pub fn replace(&self, pair: &Pair) -> Result<(), rustls::Error> {
        let config = config_for(pair)?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn config_for(pair: &Pair) -> Result<Arc<ServerConfig>, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_protocol_versions(rustls::ALL_VERSIONS)?.with_no_client_auth();
    let mut config =
        builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(&pair.certified))));
    config.alpn_protocols = vec![HTTP_1_1.to_vec()];
    config.ticketer = Ticketer::new()?;
    // Tickets are all there is: sessions that the server keeps would be a memory for clients to fill.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(Arc::new(config))
}
