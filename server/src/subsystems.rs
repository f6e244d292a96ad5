//! What must work before requests should be sent to this service: one line for each subsystem that `/ready` looks at.

use std::sync::Arc;

use cairn_admin::{SubsystemChecks, Subsystems};
use cairn_engine::Store;
use cairn_identity::directory::Directory;
use cairn_net::Drain;
use cairn_observe::AuditLog;

use crate::certificates::Certificates;
use crate::error::ServeError;

/// Starts the threads that look at the subsystems.
pub(crate) fn watch(
    store: &Arc<Store>,
    audit: &Arc<AuditLog>,
    directory: &Arc<Directory>,
    drain: &Drain,
    certificates: Certificates,
) -> Result<SubsystemChecks, ServeError> {
    let (storage, metadata, audit) = (Arc::clone(store), Arc::clone(store), Arc::clone(audit));
    let (directory, drain) = (Arc::clone(directory), drain.clone());
    let listening =
        move || if drain.is_begun() { Err("the service is shutting down".to_owned()) } else { Ok(()) };
    Subsystems::default()
        .checked("storage", move || storage.check_storage())
        .checked("metadata", move || metadata.check_metadata())
        .checked("audit", move || audit.check())
        .checked("identity", move || directory.health())
        .known("listeners", listening)
        .noticed("certificates", move || certificates.notice())
        .start()
        .map_err(ServeError::Threads)
}
