//! [`PublicLinks`]: answers visitors on one executor.

use crate::links::Links;
use crate::types::link::LinkObject;
use crate::types::share::Share;
use cairn_engine::{Bucket, Engine, EngineError};
use cairn_identity::directory::Directory;
use cairn_identity::policy::{Action, Resource};
use cairn_observe::AuditLog;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

/// Answers the requests of visitors on one executor.
pub struct PublicLinks {
    pub(super) links: Arc<Links>,
    pub(super) engine: Rc<Engine>,
    pub(super) audit: Arc<AuditLog>,
    /// Has the policies of members.
    directory: Arc<Directory>,
}

impl PublicLinks {
    /// Returns what answers visitors on this executor.
    #[must_use]
    pub fn new(
        links: Arc<Links>,
        engine: Rc<Engine>,
        audit: Arc<AuditLog>,
        directory: Arc<Directory>,
    ) -> Rc<Self> {
        Rc::new(Self { links, engine, audit, directory })
    }

    /// Returns whether the policies of the author let this client read the object.
    ///
    /// A share without an author needs none. If a policy is missing, it may be one that denies, so nothing is allowed.
    pub(super) fn author_allows(&self, share: &Share, client: IpAddr) -> bool {
        let Some(author) = &share.author else { return true };
        let object = &share.link.object;
        let resource = Resource::Object(object.bucket.as_str(), object.key.as_str());
        match self.directory.rights_of_named(&author.policies) {
            Ok(rights) => rights.decide(Action::GetObject, resource, Some(client)).is_allowed(),
            Err(unusable) => {
                let share = share.link.id.to_string();
                tracing::warn!(target: "service::sharing", share, %unusable, "a share gives nothing");
                false
            }
        }
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
