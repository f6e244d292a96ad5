//! [`PublicLinks`]: answers visitors on one executor.

use crate::links::Links;
use crate::types::link::LinkObject;
use cairn_engine::{Bucket, Engine, EngineError};
use cairn_observe::AuditLog;
use std::rc::Rc;
use std::sync::Arc;

/// Answers the requests of visitors on one executor.
pub struct PublicLinks {
    pub(super) links: Arc<Links>,
    pub(super) engine: Rc<Engine>,
    pub(super) audit: Arc<AuditLog>,
}

impl PublicLinks {
    /// Returns what answers visitors on this executor.
    #[must_use]
    pub fn new(links: Arc<Links>, engine: Rc<Engine>, audit: Arc<AuditLog>) -> Rc<Self> {
        Rc::new(Self { links, engine, audit })
    }

    /// Returns the bucket of a link's object.
    ///
    /// # Errors
    /// [`EngineError::NoSuchBucket`], also if the bucket is a later one of the same name.
    pub(super) fn bucket_of(&self, object: &LinkObject) -> Result<Arc<Bucket>, EngineError> {
        let bucket = self.engine.store().bucket(&object.bucket);
        bucket.filter(|bucket| object.is_in(bucket)).ok_or(EngineError::NoSuchBucket)
    }
}
