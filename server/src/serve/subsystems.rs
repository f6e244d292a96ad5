//! The subsystems of the service: opened in order, closed in reverse order.

use std::sync::Arc;

use cairn_engine::Store;
use cairn_identity::directory::Directory;
use cairn_observe::AuditLog;
use cairn_sharing::Links;
use cairn_webhooks::Webhooks;

use super::listeners::Ports;
use super::plan::Plan;
use super::{audit, directory, sharing, webhooks};
use crate::certificates::CertificatesRead;
use crate::error::ServeError;

/// Everything that is stored, for all executors.
#[derive(Clone)]
pub(super) struct Subsystems {
    pub(super) store: Arc<Store>,
    pub(super) audit: Arc<AuditLog>,
    pub(super) directory: Arc<Directory>,
    pub(super) webhooks: Arc<Webhooks>,
    pub(super) sharing: Arc<Links>,
}

impl Subsystems {
    /// Opens the subsystems of an open store and binds the ports, before webhooks and links, which contain the addresses.
    ///
    /// What was opened has a closer in `closers`, also after an error.
    ///
    /// # Errors
    /// The first one.
    pub(super) fn open(
        plan: &Plan,
        store: Arc<Store>,
        certificates: CertificatesRead,
        closers: &mut Closers,
    ) -> Result<(Self, Ports), ServeError> {
        let settings = &plan.settings;
        closers.add(&store, |store, served| {
            // Acknowledged changes are durable in any case, but a clean close leaves nothing to recover. If an executor died,
            // others may still write; then the end of the process releases the store.
            if !matches!(served, Err(ServeError::Executor(_) | ServeError::Died(_))) {
                store.close();
            }
        });
        let audit = audit::open(settings, &store)?;
        closers.add(&audit, audit::close);
        let directory = directory::open(settings, &store)?;
        closers.add(&directory, |directory, _| directory.close());
        let ports = Ports::open(plan, certificates)?;
        let webhooks = webhooks::open(settings, &store, ports.addresses.all().collect())?;
        let drain = plan.shutdown.data.clone();
        closers.add(&webhooks, move |webhooks, _| webhooks.close(drain.time_left().unwrap_or_default()));
        let sharing = sharing::open(settings, &store, ports.urls_of_links())?;
        sharing.limit_password_hashes(plan.budget.password_hashes);
        closers.add(&sharing, |sharing, _| sharing.close());
        let others =
            [audit.environment(), directory.environment(), webhooks.environment(), sharing.environment()];
        others.iter().for_each(|other| store.count_flush_failures_of(other));
        Ok((Self { store, audit, directory, webhooks, sharing }, ports))
    }
}

/// Closes a subsystem. Gets how the service has ended.
type Closer = Box<dyn FnOnce(&Result<(), ServeError>)>;

/// Closers of what is open, in the order of opening.
#[derive(Default)]
pub(super) struct Closers(Vec<Closer>);

impl Closers {
    /// Adds the closer of what has just been opened.
    pub(super) fn add<T: 'static>(
        &mut self,
        opened: &Arc<T>,
        close: impl FnOnce(&T, &Result<(), ServeError>) + 'static,
    ) {
        let opened = Arc::clone(opened);
        self.0.push(Box::new(move |served| close(&opened, served)));
    }

    /// Closes what is open, the last opened first. Blocks.
    pub(super) fn close(self, served: &Result<(), ServeError>) {
        for close in self.0.into_iter().rev() {
            close(served);
        }
    }
}

#[cfg(test)]
mod tests {
    use cairn_sync::Mutex;

    use super::*;

    #[test]
    fn the_last_opened_is_closed_first() {
        let closed = Arc::new(Mutex::new(Vec::new()));
        let mut closers = Closers::default();
        for name in ["store", "audit", "directory"] {
            closers.add(&closed, move |closed: &Mutex<Vec<&str>>, served| {
                assert!(served.is_ok());
                closed.lock().push(name);
            });
        }
        closers.close(&Ok(()));
        assert_eq!(*closed.lock(), ["directory", "audit", "store"]);
    }
}
