//! The cause of a refusal, as fields: right, quota, lock, rules or setting.
//!
//! All of it is read when the request is refused, except for the statement of a policy: finding one takes time in
//! proportion to the policies of the account, so it is looked up when somebody asks. [`RefusedRight`] says which
//! account to ask about, and whether its policies are still those that decided.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Weak};

use cairn_model::Timestamp;

/// Identifies the compiled policies that decided about a request, without keeping them.
#[derive(Clone)]
pub struct RightsMark(Weak<dyn Any + Send + Sync>);

impl RightsMark {
    /// Returns the mark of these rights.
    #[must_use]
    pub fn of<R: Any + Send + Sync>(rights: &Arc<R>) -> Self {
        Self(Arc::downgrade(rights) as Weak<dyn Any + Send + Sync>)
    }

    /// Returns whether the mark is that of these rights. While a mark exists, no other rights get its address.
    #[must_use]
    pub fn is_of<R>(&self, rights: &Arc<R>) -> bool {
        std::ptr::addr_eq(self.0.as_ptr(), Arc::as_ptr(rights))
    }
}

impl fmt::Debug for RightsMark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RightsMark")
    }
}

/// The account whose policies decided.
#[derive(Clone, Debug)]
pub struct RefusedAccount {
    /// The id of the account.
    pub id: String,
    /// Its policies at that time.
    pub rights: RightsMark,
}

/// The right that a policy would have to allow.
#[derive(Clone, Debug)]
pub struct RefusedRight {
    /// The action, as policies name it.
    pub action: &'static str,
    /// The bucket.
    pub bucket: String,
    /// The key; `None` for the bucket itself. Shown only if `shows_key`.
    pub key: Option<String>,
    /// Whether keys may be shown. Otherwise the key serves only to find the statement.
    pub shows_key: bool,
    /// Whether a policy denies it. Otherwise none allows it.
    pub is_denied_explicitly: bool,
    /// Whether policies allow it for objects that do not exist yet.
    pub is_for_new_objects: bool,
    /// The account whose policies decided.
    pub account: Option<RefusedAccount>,
}

impl RefusedRight {
    /// Returns the resource as policies name it. Without keys, it is all objects of the bucket.
    #[must_use]
    pub fn resource(&self) -> String {
        match &self.key {
            None => format!("bucket:{}", self.bucket),
            Some(key) if self.shows_key => format!("bucket:{}/{key}", self.bucket),
            Some(_) => format!("bucket:{}/*", self.bucket),
        }
    }
}

/// One limit of a quota, with what counted against it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuotaFact {
    /// The limit; `None` if there is none.
    pub limit: Option<u64>,
    /// The usage of the current objects.
    pub used: u64,
}

cairn_model::named_enum! {
    /// The part of a cross-origin request that no rule of the bucket allows. Named as in the API.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum CorsMismatch {
        /// The bucket does not exist.
        Bucket => "bucket",
        /// No rule allows the origin.
        Origin => "origin",
        /// No rule that allows the origin allows the method.
        Method => "method",
        /// No rule that allows origin and method allows all headers.
        Headers => "headers",
    }
}

/// The rule that decided, where it is not a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DecidingRule {
    /// The bucket's quota, when the request was refused.
    Quota {
        /// Bytes of current objects.
        bytes: QuotaFact,
        /// Number of current objects.
        objects: QuotaFact,
    },
    /// The lock of a version, when the request was refused.
    ObjectLock {
        /// The version.
        version_id: String,
        /// The mode of its retention and when it ends.
        retention: Option<(&'static str, Timestamp)>,
        /// Whether there is a legal hold.
        legal_hold: bool,
    },
    /// The bucket's list of CORS rules.
    CorsRules {
        /// Number of rules.
        rules: usize,
        /// The first part that none of them allows; `None` without rules.
        mismatch: Option<CorsMismatch>,
    },
    /// The credential of an account may not be used.
    Credential {
        /// The reason: `account_disabled`, `credential_disabled` or `credential_expired`.
        state: &'static str,
    },
    /// A header or query parameter.
    Argument(String),
}

cairn_model::named_enum! {
    /// A key of the configuration whose value can be why a request is refused. Named as the key.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum RefusingSetting {
        /// `s3.compatibility`.
        Compatibility => "s3.compatibility",
        /// `server.base_hosts`.
        BaseHosts => "server.base_hosts",
        /// `auth.root_s3_enabled`.
        RootS3Enabled => "auth.root_s3_enabled",
        /// `server.body_timeout_seconds`.
        BodyTimeout => "server.body_timeout_seconds",
        /// `storage.reserve_bytes`.
        ReserveBytes => "storage.reserve_bytes",
        /// `storage.encryption_enabled`.
        EncryptionAtRest => "storage.encryption_enabled",
        /// `s3.sosapi`.
        Sosapi => "s3.sosapi",
    }
}

impl RefusingSetting {
    /// Returns the value that would help, in words where there is more than one.
    #[must_use]
    pub const fn would_help(self) -> &'static str {
        match self {
            Self::Compatibility => "extended",
            Self::BaseHosts => "a host name of the server that clients put the bucket in front of",
            Self::RootS3Enabled | Self::EncryptionAtRest => "true",
            Self::Sosapi => "false",
            Self::BodyTimeout => "a greater number, if the client is slow and not stuck",
            Self::ReserveBytes => "a smaller number, until the file system is enlarged",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right(key: Option<&str>, shows_key: bool) -> RefusedRight {
        RefusedRight {
            action: "s3:GetObject",
            bucket: "b".to_owned(),
            key: key.map(str::to_owned),
            shows_key,
            is_denied_explicitly: false,
            is_for_new_objects: false,
            account: None,
        }
    }

    #[test]
    fn resources_are_named_as_in_policies() {
        assert_eq!(right(None, true).resource(), "bucket:b");
        assert_eq!(right(Some("k/l"), true).resource(), "bucket:b/k/l");
        assert_eq!(right(Some("k/l"), false).resource(), "bucket:b/*");
    }

    /// A mark keeps the address of its rights, so that other rights never look like them.
    #[test]
    fn a_mark_is_of_one_value_only_also_after_its_end() {
        let first = Arc::new(7_u64);
        let mark = RightsMark::of(&first);
        assert!(mark.is_of(&first) && mark.is_of(&Arc::clone(&first)));
        drop(first);
        let later: Vec<_> = (0..100).map(|_| Arc::new(7_u64)).collect();
        assert!(!later.iter().any(|other| mark.is_of(other)));
    }
}
