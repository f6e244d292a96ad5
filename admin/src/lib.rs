//! The management plane (port 7601): health, readiness, and the routes below `/api/v1`.
//!
//! [`routes`] is the one table of routes: method, path pattern, roles, operation, handler. A request goes, in
//! [`service`]'s `answer`, through request id, route, authentication, role, handler and audit record, in that order.
//! What is not in the table does not exist.
//!
//! Shapes, codes and statuses follow the specification's "Management API" sections; `docs/api.md` has what those
//! leave open.
#![forbid(unsafe_code)]

mod access;
mod accounts;
mod audit;
mod buckets;
mod call;
mod credentials;
mod errand;
mod error;
mod exposition;
mod failures;
mod json;
mod limits;
mod listing;
mod metrics;
mod objects;
mod openapi;
mod policies;
mod process;
mod proof;
mod query;
mod readiness;
mod reply;
mod routes;
mod service;
mod storage;
mod system;
mod tokens;
mod verify;

pub use access::ManagementCredentials;
pub use failures::WrongCredentials;
pub use metrics::{CertificateReading, CertificateReadings, MetricSources};
pub use readiness::{Looking, Readiness, SubsystemChecks, SubsystemState, Subsystems};
pub use service::{AdminOptions, AdminService};
pub use verify::Verifications;
