//! Whether the service can do its work: asked by `/ready`, shown in the system information.

use std::sync::Arc;

use cairn_engine::Store;
use cairn_net::Drain;
use cairn_observe::AuditLog;

/// A part of the service that must work before requests should be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubsystemState {
    /// Its name in the answer.
    pub name: &'static str,
    /// What is wrong. It goes to the log: `/ready` is public, and the reason may name files of the host.
    pub state: Result<(), String>,
}

/// Looks at the subsystems. The looks take no I/O: `/ready` is public and must cost nothing.
pub trait Readiness {
    /// All subsystems and their states now.
    fn look(&self) -> Vec<SubsystemState>;

    /// What anybody may be told of why the service is not ready. Other reasons go to the log alone.
    fn public_reason(&self) -> Option<String> {
        None
    }
}

/// Readiness of object storage, metadata and the audit trail, and whether the process is on its way out.
pub struct StoreReadiness {
    /// The store.
    pub store: Arc<Store>,
    /// The audit trail.
    pub audit: Arc<AuditLog>,
    /// The signal to stop.
    pub drain: Drain,
}

impl Readiness for StoreReadiness {
    fn look(&self) -> Vec<SubsystemState> {
        let draining =
            if self.drain.is_begun() { Err("the service is shutting down".to_owned()) } else { Ok(()) };
        vec![
            SubsystemState { name: "storage", state: self.store.storage_health() },
            SubsystemState { name: "metadata", state: self.store.metadata_health() },
            SubsystemState { name: "audit", state: self.audit.health() },
            SubsystemState { name: "listeners", state: draining },
        ]
    }
}
