//! The network layer: executors, listeners, connections, timeouts and the drain. It knows no S3.
//!
//! A plane implements [`Service`]. [`bind`] makes one [`Listener`] per executor, [`start`] starts the executors, and
//! [`serve`] answers requests on each of them until the [`Drain`] is over. All limits are in [`Limits`] and
//! `limits.rs`.
//!
//! Only this crate uses glommio's sockets and listeners. The engine uses glommio too, for direct I/O, timers and tasks.

// The layers, from bottom to top: a module imports only from those above it in this list.
mod drain;
mod limits;
mod metrics;

mod host;

mod executor;

mod transport;

mod service;

mod connection;

mod server;

pub use connection::trusted_proxies::TrustedProxies;
pub use drain::Drain;
pub use executor::executors::{ExecutorFailure, ExecutorIndex, Executors, start};
pub use executor::timeout::timeout;
pub use executor::yield_budget::YieldBudget;
pub use host::check::{
    StartError, check_executors, check_host, check_io_uring, check_kernel, check_memlock, executors_possible,
};
pub use host::clock::{Synchronisation, clock_synchronisation};
pub use limits::{Limits, TLS_CONNECTION_BYTES};
pub use metrics::{HandshakeOutcome, TimeoutPhase};
pub use server::listener::{Listener, bind};
pub use server::port_metrics::{PortMetrics, PortSnapshot};
pub use server::serve::serve;
pub use service::interface::{
    BodySource, Chunk, Exchange, ExchangeOutcome, Rejection, Request, Response, ResponseBody, ResponseMeta,
    Service,
};
pub use service::request_body::{BodyError, CancelReason, RequestBody};
pub use transport::tls::Tls;
pub use transport::tls::certificate::{CertificateAndKey, CertificateAndKeyError};
pub use transport::tls::handshake_threads::HandshakeThreads;
