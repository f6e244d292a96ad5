//! [`PublicLinks`]: answers visitors on one executor.

use crate::sharing::Sharing;
use cairn_engine::Engine;
use cairn_observe::AuditLog;
use std::rc::Rc;
use std::sync::Arc;

/// Answers the requests of visitors on one executor.
pub struct PublicLinks {
    pub(super) sharing: Arc<Sharing>,
    pub(super) engine: Rc<Engine>,
    pub(super) audit: Arc<AuditLog>,
}

impl PublicLinks {
    /// Returns what answers visitors on this executor.
    #[must_use]
    pub fn new(sharing: Arc<Sharing>, engine: Rc<Engine>, audit: Arc<AuditLog>) -> Rc<Self> {
        Rc::new(Self { sharing, engine, audit })
    }
}
