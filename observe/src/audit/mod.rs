//! The audit trail: durable records of security-relevant and administrative actions (specification, "Audit event").
//!
//! An [`AuditLog`] owns an LMDB environment, a writer thread and a reader thread. Executors wait for the disk only in
//! [`AuditLog::append`] and [`AuditLog::record_intent`], whose futures resolve when the record is durable. A change is recorded
//! as an [`Intent`] before it begins, and with its outcome afterwards. [`AuditLog::offer`] never waits. Its records are limited
//! by source, so that floods of refused requests do not fill the disk. [`AuditLog::record_access`] merges repetitions. Records
//! of one kind never displace those of another.
//!
//! Invariants: ids of events increase in the order of recording. Acknowledged events are on disk. No event holds a secret.

mod accesses;
mod id;
mod intent;
mod kind;
mod limiter;
pub(crate) mod limits;
mod log;
mod query;
mod queue;
mod record;
mod store;
mod threads;

pub use id::AuditId;
pub use intent::Intent;
pub use kind::AuditKind;
pub use limits::{AUDIT_PAGE_EVENTS_DEFAULT, AUDIT_PAGE_EVENTS_MAX};
pub use log::{AuditLog, AuditOptions, DataEvents, Source};
pub use query::{AuditPage, AuditQuery};
pub use record::{AuditEvent, AuditRecord, AuditResult};
