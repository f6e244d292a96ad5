//! The audit trail: a durable record of security and administrative actions (specification, "Audit event").
//!
//! An [`AuditLog`] owns an LMDB environment, a thread that writes it and a thread that reads pages of it. Callers are
//! executors: nothing here makes them wait for the disk but [`AuditLog::append`] and [`AuditLog::intend`], whose futures
//! resolve when the record is durable. A change is recorded as an [`Intent`] before it is begun, and by its outcome after.
//! [`AuditLog::offer`] waits for nothing, and its records are limited by source: floods of refused requests neither fill the
//! disk nor push out what matters.
//!
//! Invariants: events have growing ids in the order in which they were recorded; what was acknowledged is on the device;
//! no event holds a secret.

mod error;
mod id;
mod intent;
mod limiter;
pub(crate) mod limits;
mod log;
mod query;
mod queue;
mod record;
mod store;

pub use error::{AuditError, AuditOpenError};
pub use id::AuditId;
pub use intent::Intent;
pub use limits::{AUDIT_PAGE_EVENTS_DEFAULT, AUDIT_PAGE_EVENTS_MAX};
pub use log::{AuditLog, AuditOptions, Source};
pub use query::{AuditPage, AuditQuery};
pub use record::{AuditEvent, AuditRecord, AuditResult};
