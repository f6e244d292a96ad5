//! Logs, request ids, metrics and the audit trail of both planes.
//!
//! Executors may call every function of this crate whose documentation does not say that it blocks. These functions never wait
//! for a file or a terminal, and only hold locks for as long as a copy takes. A background thread writes log lines. If it falls
//! behind, lines are dropped and counted.
//!
//! All events of the service have the target `service` or one below it. `service::request` is the request log.
#![forbid(unsafe_code)]

mod audit;
mod log;
pub mod metrics;
mod refusal_facts;
mod refused_requests;
mod request_id;
mod request_log;
mod request_record;

pub use audit::{
    AUDIT_PAGE_EVENTS_DEFAULT, AUDIT_PAGE_EVENTS_MAX, AuditEvent, AuditId, AuditKind, AuditLog, AuditOptions,
    AuditPage, AuditQuery, AuditRecord, AuditResult, DataEvents, Intent, Source,
};
pub use log::{
    DEFAULT_LOG_FILTER, InvalidLogFilter, LogFilter, LogFormat, LogGuard, LogOptions, LogStartError,
    RequestLog, flush_logs, install_panic_hook, start_logging,
};
pub use metrics::{Family, MetricKind, MetricName, MetricValue, Sample};
pub use refusal_facts::{
    CorsMismatch, DecidingRule, QuotaFact, RefusedAccount, RefusedRight, RefusingSetting, RightsMark,
};
pub use refused_requests::{
    REFUSED_REQUESTS_MAX, RefusedBy, RefusedRecorder, RefusedRequest, RefusedRequests,
};
pub use request_id::{REQUEST_ID_BYTES_MAX, client_request_id};
pub use request_log::{log_exchange, log_request, paths_are_logged};
pub use request_record::{LoggedResource, Plane, RequestOutcome, RequestRecord};
