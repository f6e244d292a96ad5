//! Logs, request ids, metrics and the audit trail: what both planes need to say what they did.
//!
//! Nothing here waits for a file, a terminal or a lock that is held for longer than a copy takes, but what says that it
//! blocks: an executor may call every other function of this crate. Log lines go to a background thread ([`sink`]) and are dropped, and
//! counted, when that thread falls behind.
//!
//! All events of the service have the target `service` or one below it (`service::request` is the request log).
#![forbid(unsafe_code)]

mod audit;
mod event_layer;
mod exposition;
mod filter;
mod format;
mod logging;
pub mod metrics;
mod panic_hook;
mod request_figures;
mod request_id;
mod request_log;
mod sink;

pub use audit::{
    AUDIT_PAGE_EVENTS_DEFAULT, AUDIT_PAGE_EVENTS_MAX, AuditError, AuditEvent, AuditId, AuditLog,
    AuditOpenError, AuditOptions, AuditPage, AuditQuery, AuditRecord, AuditResult, Intent, Source,
};
pub use exposition::{Family, MetricKind, MetricName, MetricValue, Sample};
pub use filter::{DEFAULT_LOG_FILTER, InvalidLogFilter, LogFilter};
pub use format::LogFormat;
pub use logging::{LogGuard, LogStartError, flush_logs, start_logging};
pub use panic_hook::install_panic_hook;
pub use request_id::{REQUEST_ID_BYTES_MAX, client_request_id};
pub use request_log::{Plane, RequestOutcome, RequestRecord, log_exchange, log_request};
