//! The kinds of audit records: who can cause them, and how often.
//!
//! Each kind has its own table and its own retention. So whoever can cause many records of one kind removes none of another.

/// The kind of an audit record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AuditKind {
    /// A change through the management plane, and what the service itself does.
    Change,
    /// A change of a bucket through S3.
    BucketChange,
    /// A change of an object or an upload.
    ObjectChange,
    /// A refused request, and a fault that a request or the service found.
    Refusal,
    /// A login, the end of a session, or the disclosure of a secret.
    Access,
    /// A read of an object or a list.
    Read,
}

impl AuditKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Change, Self::BucketChange, Self::ObjectChange, Self::Refusal, Self::Access, Self::Read];

    /// Returns the name of the table. That of changes also has the records of all kinds of programs without kinds.
    pub(crate) const fn table_name(self) -> &'static str {
        match self {
            Self::Change => "events",
            Self::BucketChange => "bucket_changes",
            Self::ObjectChange => "object_changes",
            Self::Refusal => "refusals",
            Self::Access => "accesses",
            Self::Read => "reads",
        }
    }

    /// Returns whether the record is about something that was done and changed nothing.
    pub(crate) const fn is_without_change(self) -> bool {
        matches!(self, Self::Access | Self::Read)
    }
}
