//! The fields that shares and embeds have in common.

use crate::types::id::LinkId;
use cairn_engine::Bucket;
use cairn_model::{BucketName, ObjectKey, Timestamp, VersionName};

cairn_model::named_enum! {
    /// The kind of a link. Named as in messages, metrics and labels.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum LinkKind {
        /// For people: `/s/{token}`.
        Share => "share",
        /// For pages of other sites: `/e/{token}`.
        Embed => "embed",
    }
}

impl LinkKind {
    /// Returns the place of the kind in [`Self::ALL`], for arrays with an entry for each kind.
    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// The object that a link gives access to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkObject {
    /// The bucket's name.
    pub bucket: BucketName,
    /// The bucket's number ([`Bucket::id`]). A link never gives access to a later bucket of the same name.
    pub bucket_id: u64,
    /// The object's key.
    pub key: ObjectKey,
    /// The pinned version. `None`: the link follows the current version.
    pub version: Option<VersionName>,
}

impl LinkObject {
    /// Returns whether this is the bucket of the object.
    #[must_use]
    pub fn is_in(&self, bucket: &Bucket) -> bool {
        self.bucket_id == bucket.id()
    }
}

cairn_model::named_enum! {
    /// The disposition of content: whether a browser shows or saves it. Named as in requests, responses and records.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Disposition {
        /// It is shown, if its type allows that; other types are downloaded.
        Inline => "inline",
        /// It is downloaded.
        Attachment => "attachment",
    }
}

impl Disposition {
    /// Returns the disposition with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Inline, Self::Attachment].into_iter().find(|disposition| disposition.name() == name)
    }
}

cairn_model::named_enum! {
    /// The status of a link. Named as in requests and responses.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum LinkStatus {
        /// It can be used.
        Active => "active",
        /// It was revoked, which is permanent.
        Revoked => "revoked",
        /// Its time has passed.
        Expired => "expired",
        /// It was downloaded as often as allowed. Shares only.
        Exhausted => "exhausted",
    }
}

impl LinkStatus {
    /// Returns the status with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// The common fields of every link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// The id.
    pub id: LinkId,
    /// The object.
    pub object: LinkObject,
    /// Free text for people; empty if not set.
    pub label: String,
    /// The time when it was created.
    pub created_at: Timestamp,
    /// The principal that created it, as in the audit trail.
    pub created_by: String,
    /// The time when it stops working; `None`: never.
    pub expires_at: Option<Timestamp>,
    /// The time when it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// Downloads that were counted.
    pub access_count: u64,
    /// The time when the last download was counted.
    pub last_accessed_at: Option<Timestamp>,
}

impl Link {
    /// Returns the status at `now`, without regard to a limit of downloads.
    pub(crate) fn status_at(&self, now: Timestamp) -> LinkStatus {
        if self.revoked_at.is_some() {
            LinkStatus::Revoked
        } else if self.expires_at.is_some_and(|end| now >= end) {
            LinkStatus::Expired
        } else {
            LinkStatus::Active
        }
    }
}

/// The values that a caller chooses for every new link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewLink {
    /// The object, which exists.
    pub object: LinkObject,
    /// Free text for people; empty if not set.
    pub label: String,
    /// The principal that creates it, as in the audit trail.
    pub created_by: String,
    /// The time when it stops working; `None`: never.
    pub expires_at: Option<Timestamp>,
}
