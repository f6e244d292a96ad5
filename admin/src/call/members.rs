//! Requests of members: people without a role, whose policies decide.
//!
//! The compiled rights of the policies decide, as they do for accounts. They are asked before anything is looked up, so that a
//! refusal reveals nothing about what exists, and again before a change is made.

use std::sync::Arc;

use cairn_http1::query_pairs;
use cairn_identity::Standing;
use cairn_identity::policy::{Action, Decision, Permission, Resource, Rights};
use cairn_model::{BucketName, ObjectKey};
use cairn_sharing::{Author, LinkKind, Share};

use super::Call;
use crate::error::AdminError;
use crate::operation::MemberAccess;

const NO_PARAMETER: &str = "without a role, you cannot use this parameter: objects and their versions are open to you, but no earlier moment";
/// The parameters that members may use. Others name earlier moments, or are not known.
const PARAMETERS: [&str; 8] = [
    "prefix",
    "delimiter",
    "limit",
    "continuation_token",
    "version_id",
    "key_marker",
    "version_id_marker",
    "status",
];

impl Call<'_, '_> {
    fn is_member(&self) -> bool {
        self.caller.is_some_and(|caller| matches!(caller.standing, Standing::Member(_)))
    }

    /// Returns the current rights of a member, or `None` if the caller has a role.
    ///
    /// # Errors
    /// `FORBIDDEN` if a policy is missing, `NOT_READY`.
    pub(crate) fn member_rights(&self) -> Result<Option<Arc<Rights>>, AdminError> {
        let Some(Standing::Member(policies)) = self.caller.map(|caller| &caller.standing) else {
            return Ok(None);
        };
        let rights = self.directory()?.rights_of_named(policies).map_err(|unusable| {
            let principal = self.caller.map_or("", |caller| &caller.principal);
            tracing::warn!(target: "service", principal, %unusable, "a person has no rights: see console.openid.members");
            AdminError::MissingRight(format!("you have no rights here, because {unusable}; ask an administrator"))
        })?;
        Ok(Some(rights))
    }

    /// Checks that a member may make this request. Callers with a role may: their route has admitted them.
    ///
    /// # Errors
    /// `FORBIDDEN`, which says what is missing; `INVALID_REQUEST` and `INVALID_BUCKET_NAME` if the path names nothing.
    pub(crate) fn authorize_member(&self) -> Result<(), AdminError> {
        if !self.is_member() {
            return Ok(());
        }
        let access = self.member_access.ok_or(AdminError::Forbidden)?;
        let mut parameters = query_pairs(self.head.query().unwrap_or_default());
        if !parameters.all(|pair| pair.is_ok_and(|(name, _)| PARAMETERS.contains(&&*name))) {
            return Err(AdminError::MissingRight(NO_PARAMETER.to_owned()));
        }
        match access {
            MemberAccess::Session | MemberAccess::OwnShares => Ok(()),
            MemberAccess::OwnBuckets | MemberAccess::Upload(_) => self.member_rights().map(drop),
            MemberAccess::OwnShare => self.own_share().map(drop),
            MemberAccess::OwnShareOf(action) => {
                let object = self.own_share()?.link.object;
                self.require(action, Resource::Object(object.bucket.as_str(), object.key.as_str()))
            }
            MemberAccess::Bucket(action) => self.authorize_bucket(action, &self.bucket_name()?),
            MemberAccess::Object(action) => {
                self.authorize_object(action, &self.bucket_name()?, &self.key()?).map(|_| ())
            }
            MemberAccess::Existing(action) => {
                let (bucket, key) = (self.bucket_name()?, self.key()?);
                self.require(action, Resource::Object(bucket.as_str(), key.as_str()))
            }
        }
    }

    /// Returns the member who makes this request, as the author of shares; `None` if the caller has a role.
    ///
    /// # Errors
    /// `FORBIDDEN` if it is not known who the member is.
    pub(crate) fn author(&self) -> Result<Option<Author>, AdminError> {
        let Some(caller) = self.caller else { return Ok(None) };
        let Standing::Member(policies) = &caller.standing else { return Ok(None) };
        let (Some(subject), Some(provider)) = (&caller.subject, &self.context.sign_ins) else {
            return Err(AdminError::Forbidden);
        };
        let issuer = provider.sign_ins.settings().issuer.clone();
        Ok(Some(Author { issuer, subject: (**subject).to_owned(), policies: policies.to_vec() }))
    }

    /// Returns the share of the path if the member created it. Other shares do not exist for the member, and the attempt is
    /// recorded.
    fn own_share(&self) -> Result<Share, AdminError> {
        let share: Share = self.link()?;
        if self.author()?.is_some_and(|member| share.is_created_by(&member)) {
            return Ok(share);
        }
        if let Some(log) = self.context.audit() {
            self.audit.record_denial(log, "somebody else has created the share");
        }
        Err(AdminError::LinkNotFound(LinkKind::Share))
    }

    fn authorize_bucket(&self, action: Action, bucket: &BucketName) -> Result<(), AdminError> {
        self.require(action, Resource::Bucket(bucket.as_str()))
    }

    /// Checks that an action is allowed without a restriction.
    fn require(&self, action: Action, resource: Resource<'_>) -> Result<(), AdminError> {
        match self.decide(action, resource)? {
            Decision::Allowed => Ok(()),
            denied => Err(missing(action, denied)),
        }
    }

    /// Checks that a member may do this to an object. Callers with a role may.
    ///
    /// # Errors
    /// `FORBIDDEN`, which says what is missing.
    pub(crate) fn authorize_object(
        &self,
        action: Action,
        bucket: &BucketName,
        key: &ObjectKey,
    ) -> Result<Permission, AdminError> {
        let decision = self.decide(action, Resource::Object(bucket.as_str(), key.as_str()))?;
        decision.permission(action == Action::PutObject).map_err(|denied| missing(action, denied))
    }

    /// Returns what a member is told in place of a missing object of the path, if it may not list the bucket (AWS: GetObject,
    /// "Permissions").
    pub(crate) fn hiding_missing(&self) -> Option<AdminError> {
        let access = self.member_access.filter(|_| self.is_member())?;
        if !matches!(access, MemberAccess::Object(_) | MemberAccess::Existing(_)) {
            return None;
        }
        self.authorize_bucket(Action::ListBucket, &self.bucket_name().ok()?).err()
    }

    fn decide(&self, action: Action, resource: Resource<'_>) -> Result<Decision, AdminError> {
        let rights = self.member_rights()?;
        let client = Some(self.audit.client);
        Ok(rights.map_or(Decision::Allowed, |rights| rights.decide(action, resource, client)))
    }
}

/// Says which right is missing. The names are in the path and in the audit record; here they could be a token of a link.
fn missing(action: Action, decision: Decision) -> AdminError {
    let on = if action.is_on_buckets() { "bucket" } else { "object" };
    let why = match decision {
        Decision::DeniedExplicitly => "a policy denies it",
        _ => "no policy allows it",
    };
    AdminError::MissingRight(format!("you need {action} on this {on}, and {why}"))
}
