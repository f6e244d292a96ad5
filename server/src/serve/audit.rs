//! Opens the audit trail and records faults of the store.

use std::sync::Arc;

use cairn_engine::{FaultObserver, Store, StoreFault};
use cairn_model::SystemClock;
use cairn_observe::{AuditLog, AuditOptions, AuditRecord, AuditResult, Source};
use futures_lite::future::block_on;

use crate::config::Settings;
use crate::error::ServeError;

/// Opens the audit trail of an open store and records the start. The store's lock protects the trail too.
pub(crate) fn open(settings: &Settings, store: &Store) -> Result<Arc<AuditLog>, ServeError> {
    let log = AuditLog::open(AuditOptions {
        folder: settings.server.data_dir.join("audit"),
        store: store.id().0,
        age: store.age_limit(settings.audit.age_max),
        records_max: settings.audit.records_max,
        data_events: settings.audit.data_events,
        clock: Arc::new(SystemClock),
    })?;
    store.set_fault_observer(Box::new(Recorder(Arc::clone(&log))));
    let detail = format!("version {}, store {}", env!("CARGO_PKG_VERSION"), store.id().to_hex());
    record(&log, "service.start", AuditResult::Allowed, detail);
    Ok(log)
}

/// Records the end of the service and closes the trail. Nothing is recorded afterwards.
pub(crate) fn close(log: &AuditLog, served: &Result<(), ServeError>) {
    match served {
        Ok(()) => record(log, "service.stop", AuditResult::Allowed, String::new()),
        Err(error) => record(log, "service.stop", AuditResult::Failed, error.to_string()),
    }
    log.close();
}

/// Durably records an action of the service itself. A failure is only logged: a full disk must prevent neither a start nor a
/// stop, because the service must run for space to be freed.
fn record(log: &AuditLog, operation: &str, result: AuditResult, detail: String) {
    let record = AuditRecord { detail, ..AuditRecord::new(AuditRecord::SERVICE, operation, result) };
    if let Err(error) = block_on(log.append(record)) {
        tracing::error!(target: "service::audit", operation, %error, "the audit record could not be written");
    }
}

/// Records the faults of the store.
struct Recorder(Arc<AuditLog>);

impl FaultObserver for Recorder {
    fn observe(&self, event: &StoreFault<'_>) {
        let (operation, resource, detail) = match event {
            StoreFault::Damage { object, version, what, found_while } => {
                let version = version.map(|version| format!("version {version}: ")).unwrap_or_default();
                let detail = format!("{version}{what} failed its check; found while {}", found_while.name());
                ("storage.damage", *object, detail)
            }
            StoreFault::ReadFailed { object, version, what } => {
                ("storage.read_failed", *object, format!("version {version}: {what}"))
            }
            StoreFault::VolumeReadOnly { path } => {
                ("storage.volume_read_only", *path, "a flush of the volume failed".to_owned())
            }
            StoreFault::ChangesResumed { what } => {
                ("storage.changes_resumed", *what, "the device works again after a failure".to_owned())
            }
            StoreFault::ChangesStopped { reason } => ("storage.changes_stopped", "", (*reason).to_owned()),
        };
        let result = match event {
            StoreFault::ChangesResumed { .. } => AuditResult::Allowed,
            _ => AuditResult::Failed,
        };
        let record = AuditRecord::new(AuditRecord::SERVICE, operation, result);
        let source = format!("{operation} {resource}");
        self.0
            .offer(Source::Finding(&source), AuditRecord { resource: resource.to_owned(), detail, ..record });
    }
}
