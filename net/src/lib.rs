//! The network layer: pinned executors, listeners, connections, deadlines and the drain. Knows no S3.
//!
//! A plane implements [`Service`]; [`bind`] makes one [`Listener`] per executor, [`start`] starts the executors, and on
//! each of them [`serve`] answers requests until the [`Drain`] is over. Every limit stands in [`Limits`].
//!
//! This crate and the engine's disk are the only places that name glommio.

mod ahead;
mod balance;
mod body;
mod clock;
mod connection;
mod deadline;
mod drain;
mod executors;
mod figures;
mod limits;
mod listener;
mod probe;
mod respond;
mod server;
mod service;
mod socket;
mod tls;
mod trusted_proxies;
mod turns;
mod wire;
mod within;

pub use body::{Abandoned, BodyError, RequestBody};
pub use clock::{Synchronisation, clock_synchronisation};
pub use drain::Drain;
pub use executors::{ExecutorFailure, ExecutorIndex, Executors, start};
pub use figures::{HandshakeEnd, PortFigures, PortReading, TimeoutPhase};
pub use limits::{Limits, TLS_CONNECTION_BYTES};
pub use listener::{Listener, bind};
pub use probe::{StartError, probe, probe_io_uring, probe_kernel, probe_memlock};
pub use server::serve;
pub use service::{
    BodySource, Chunk, Exchange, Outcome, Rejection, Request, RequestIdText, Response, ResponseBody,
    ResponseMeta, Service,
};
pub use tls::{HandshakeThreads, Pair, PairError, Tls};
pub use trusted_proxies::{Network, TrustedProxies};
pub use turns::Turns;
pub use within::within;
