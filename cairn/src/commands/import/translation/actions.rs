//! The actions of the source that one of ours includes.
//!
//! Source: Service Authorization Reference, "Actions for Amazon S3"; MinIO's list of actions; `s3/src/operations.rs` for what
//! each of the five includes. MinIO compares names of actions with upper and lower case.

use cairn_identity::policy::Action;

/// The weight of a source's action in its translation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Weight {
    /// It is what the action here is for, so it is translated into it.
    Main,
    /// The action here includes it, but allows more than it. Alone it is not translated.
    Included,
}

/// The resource of an action: a bucket or an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    Bucket,
    Object,
}

/// An action of the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SourceAction {
    /// Its name.
    pub(super) name: &'static str,
    /// The action here that includes it.
    pub(super) here: Action,
    pub(super) weight: Weight,
    pub(super) target: Target,
    pub(super) rule: Rule,
}

/// The rule by which MinIO decides about an action. Some depend on another action; this was found out by probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    /// By statements about the action.
    Own,
    /// Statements about this other action count as well.
    SameAs(&'static str),
    /// It is also allowed if this other action is.
    OrAllowed(&'static str),
    /// It is allowed if this other action is, and no statement denies it.
    IfAllowed(&'static str),
}

/// Asks for the location of a bucket, which is the same for every bucket here.
pub(super) const WITHOUT_USE: &str = "s3:GetBucketLocation";
/// Lists the buckets. Every account may do so, and sees those in which it has a right.
pub(super) const LISTS_BUCKETS: [&str; 2] = ["s3:ListAllMyBuckets", "s3:ListBuckets"];

const fn action(name: &'static str, here: Action, weight: Weight) -> SourceAction {
    let target = if here.is_on_buckets() { Target::Bucket } else { Target::Object };
    SourceAction { name, here, weight, target, rule: Rule::Own }
}

const fn main(name: &'static str, here: Action) -> SourceAction {
    action(name, here, Weight::Main)
}

const fn included(name: &'static str, here: Action) -> SourceAction {
    action(name, here, Weight::Included)
}

impl SourceAction {
    const fn by(mut self, rule: Rule) -> Self {
        self.rule = rule;
        self
    }

    const fn on_objects(mut self) -> Self {
        self.target = Target::Object;
        self
    }
}

/// All actions with a counterpart.
pub(super) const ACTIONS: &[SourceAction] = &[
    main("s3:ListBucket", Action::ListBucket),
    main("s3:ListBucketVersions", Action::ListBucket).by(Rule::OrAllowed("s3:ListBucket")),
    included("s3:HeadBucket", Action::ListBucket).by(Rule::OrAllowed("s3:ListBucket")),
    included(WITHOUT_USE, Action::ListBucket),
    included("s3:ListBucketMultipartUploads", Action::ListBucket),
    main("s3:GetObject", Action::GetObject).by(Rule::SameAs("s3:GetObjectVersion")),
    main("s3:GetObjectVersion", Action::GetObject).by(Rule::SameAs("s3:GetObject")),
    included("s3:GetObjectAttributes", Action::GetObject),
    included("s3:GetObjectVersionAttributes", Action::GetObject),
    included("s3:GetObjectRetention", Action::GetObject),
    included("s3:GetObjectLegalHold", Action::GetObject),
    included("s3:GetObjectTagging", Action::GetObject),
    included("s3:GetObjectVersionTagging", Action::GetObject),
    included("s3:GetObjectAcl", Action::GetObject),
    included("s3:ListMultipartUploadParts", Action::GetObject),
    main("s3:PutObject", Action::PutObject),
    included("s3:PutObjectRetention", Action::PutObject),
    included("s3:PutObjectLegalHold", Action::PutObject),
    included("s3:PutObjectTagging", Action::PutObject),
    included("s3:PutObjectVersionTagging", Action::PutObject),
    included("s3:DeleteObjectTagging", Action::PutObject),
    included("s3:DeleteObjectVersionTagging", Action::PutObject),
    included("s3:PutObjectAcl", Action::PutObject),
    main("s3:DeleteObject", Action::DeleteObject),
    included("s3:DeleteObjectVersion", Action::DeleteObject).by(Rule::IfAllowed("s3:DeleteObject")),
    included("s3:AbortMultipartUpload", Action::DeleteObject),
    main("s3:CreateBucket", Action::ManageBucket),
    main("s3:DeleteBucket", Action::ManageBucket),
    main("s3:ForceDeleteBucket", Action::ManageBucket),
    main("s3:PutBucketVersioning", Action::ManageBucket),
    main("s3:PutBucketObjectLockConfiguration", Action::ManageBucket),
    main("s3:PutLifecycleConfiguration", Action::ManageBucket),
    main("s3:PutBucketPolicy", Action::ManageBucket),
    main("s3:DeleteBucketPolicy", Action::ManageBucket),
    main("s3:PutBucketTagging", Action::ManageBucket),
    main("s3:PutBucketCors", Action::ManageBucket),
    main("s3:PutBucketCORS", Action::ManageBucket),
    main("s3:DeleteBucketCors", Action::ManageBucket),
    main("s3:PutEncryptionConfiguration", Action::ManageBucket),
    included("s3:GetBucketVersioning", Action::ManageBucket),
    included("s3:GetBucketObjectLockConfiguration", Action::ManageBucket),
    included("s3:GetLifecycleConfiguration", Action::ManageBucket),
    included("s3:GetBucketPolicy", Action::ManageBucket),
    included("s3:GetBucketPolicyStatus", Action::ManageBucket),
    included("s3:GetBucketTagging", Action::ManageBucket),
    included("s3:GetBucketCors", Action::ManageBucket),
    included("s3:GetBucketCORS", Action::ManageBucket),
    included("s3:GetEncryptionConfiguration", Action::ManageBucket),
    included("s3:GetBucketNotification", Action::ManageBucket),
    included("s3:GetReplicationConfiguration", Action::ManageBucket),
    // Done to objects, and here a right on their bucket.
    included("s3:BypassGovernanceRetention", Action::ManageBucket).on_objects(),
];

/// Returns the action of this name.
pub(super) fn named(name: &str) -> Option<&'static SourceAction> {
    ACTIONS.iter().find(|action| action.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_others_are_known() {
        for (index, action) in ACTIONS.iter().enumerate() {
            assert!(!ACTIONS[..index].iter().any(|earlier| earlier.name == action.name), "{}", action.name);
            if let Rule::SameAs(other) | Rule::OrAllowed(other) | Rule::IfAllowed(other) = action.rule {
                let other = named(other).unwrap_or_else(|| panic!("{other}"));
                assert!(other.here == action.here && other.weight == Weight::Main, "{}", action.name);
            }
        }
    }

    #[test]
    fn each_action_here_is_for_something() {
        for here in Action::ALL {
            assert!(
                ACTIONS.iter().any(|action| action.here == here && action.weight == Weight::Main),
                "{here}"
            );
        }
    }
}
