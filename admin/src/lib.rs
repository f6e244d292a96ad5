//! The management plane (port 7601): health, readiness, and the routes below `/api/v1`.
//!
//! [`routes`] is the only table of routes: method, path pattern, roles, operation name, handler. What is not in the
//! table does not exist. [`service`] takes each request through request id, route, authentication, role, handler and
//! audit record, in that order.
//!
//! Shapes, codes and statuses follow the specification's "Management API" sections; `docs/management-api.md` documents
//! what those leave open.
//!
//! The modules are layers. Each imports only from those before it in this list: `limits`, `error`, `operation`, `request`,
//! `reply`, `access`, `health`, `metrics`, `verification`, `archives`, `waits`, `context`, `call`, `handlers`, `checks`,
//! `routes`, `service`.
#![forbid(unsafe_code)]

mod access;
mod archives;
mod call;
pub mod checks;
mod context;
mod error;
mod handlers;
mod health;
mod import_rate;
mod import_runs;
mod import_turns;
mod limits;
mod metrics;
mod operation;
mod reply;
mod request;
mod routes;
mod service;
mod verification;
mod waits;

pub use access::{ManagementCredentials, PersonSignIns, SessionOptions, Sessions};
pub use archives::Archives;
pub use context::{AdminContext, Capabilities, OpenStore, S3Endpoint, SettingValues};
pub use health::{ProbeFuture, Readiness, SubsystemProbes, SubsystemProbesBuilder, SubsystemState};
pub use import_runs::ImportRuns;
pub use import_turns::ImportTurns;
pub use metrics::{CertificateSnapshot, CertificateSource, MetricSources};
pub use service::AdminService;
pub use verification::Verifications;
pub use waits::Waits;
