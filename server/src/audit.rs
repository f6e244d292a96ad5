//! The audit trail in the life of the process: opened with the store, told of what the store finds, closed before it.

use std::sync::Arc;

use cairn_engine::{Store, StoreEvent, StoreObserver};
use cairn_model::SystemClock;
use cairn_observe::{AuditLog, AuditOptions, AuditRecord, AuditResult, Source};
use futures_lite::future::block_on;

use crate::config::Settings;
use crate::error::ServeError;

/// Opens the trail of an open store, whose lock keeps others away from it, and records the start.
pub(crate) fn open(settings: &Settings, store: &Store) -> Result<Arc<AuditLog>, ServeError> {
    let log = AuditLog::open(AuditOptions {
        folder: settings.server.data_dir.join("audit"),
        store: store.id().0,
        age_max: settings.audit.age_max,
        records_max: settings.audit.records_max,
        clock: Arc::new(SystemClock),
    })?;
    store.set_observer(Box::new(Recorder(Arc::clone(&log))));
    let detail = format!("version {}, store {}", env!("CARGO_PKG_VERSION"), store.id().to_hex());
    record(&log, "service.start", AuditResult::Allowed, detail);
    Ok(log)
}

/// Records the end of the service and closes the trail. After this nothing is recorded.
pub(crate) fn close(log: &AuditLog, served: &Result<(), ServeError>) {
    match served {
        Ok(()) => record(log, "service.stop", AuditResult::Allowed, String::new()),
        Err(error) => record(log, "service.stop", AuditResult::Failed, error.to_string()),
    }
    log.close();
}

/// Records what the service does by itself, durably. A full disk keeps neither a start nor a stop from happening: the
/// start is how space is made again.
fn record(log: &AuditLog, operation: &str, result: AuditResult, detail: String) {
    let record = AuditRecord { detail, ..AuditRecord::new(AuditRecord::SERVICE, operation, result) };
    if let Err(error) = block_on(log.append(record)) {
        tracing::error!(target: "service::audit", operation, %error, "this could not be recorded in the audit trail");
    }
}

/// Records what the store finds wrong.
struct Recorder(Arc<AuditLog>);

impl StoreObserver for Recorder {
    fn happened(&self, event: &StoreEvent<'_>) {
        let (operation, resource, detail) = match event {
            StoreEvent::Damage { object, version, what, found_while } => {
                let version = version.map(|version| format!("version {version}: ")).unwrap_or_default();
                let detail = format!("{version}{what} failed its check; found while {}", found_while.name());
                ("storage.damage", *object, detail)
            }
            StoreEvent::ReadFailed { object, version, what } => {
                ("storage.read_failed", *object, format!("version {version}: {what}"))
            }
            StoreEvent::VolumeReadOnly { path } => {
                ("storage.volume_read_only", *path, "a flush of the volume failed".to_owned())
            }
            StoreEvent::ChangesStopped { reason } => ("storage.changes_stopped", "", (*reason).to_owned()),
        };
        let record = AuditRecord::new(AuditRecord::SERVICE, operation, AuditResult::Failed);
        let source = format!("{operation} {resource}");
        self.0
            .offer(Source::Finding(&source), AuditRecord { resource: resource.to_owned(), detail, ..record });
    }
}
