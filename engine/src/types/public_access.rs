//! Public access: what anybody may read and list in a bucket without a signature.

use cairn_model::Timestamp;
use std::sync::Arc;

/// Most rules of a bucket.
pub const PUBLIC_RULES_MAX: usize = 100;
/// Most bytes in the prefixes of a bucket's rules together. The record of a bucket holds them.
pub const PUBLIC_PREFIXES_BYTES_MAX: usize = 32 << 10;
/// Longest policy document, in bytes: that of AWS (Bucket policies, "Quotas").
pub const PUBLIC_POLICY_BYTES_MAX: usize = 20 << 10;
/// Longest name of who made a rule, in bytes. A longer one is cut.
const CREATOR_BYTES_MAX: usize = 255;

/// A rule: anybody may read the current objects whose keys begin with the prefix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublicRule {
    /// The beginning of the keys; empty for all keys.
    pub prefix: Box<str>,
    /// Whether anybody may also list the keys that begin so.
    pub list: bool,
    /// The time when the rule was made.
    pub created_at: Timestamp,
    /// The principal that made it, as audit records name it.
    pub created_by: Box<str>,
}

/// The rules that replace those of a bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewPublicRules {
    /// The prefixes that anybody may read, all different, each with whether it may be listed.
    pub prefixes: Vec<(Box<str>, bool)>,
    /// The time when they are made.
    pub created_at: Timestamp,
    /// The principal that makes them, as audit records name it.
    pub created_by: Arc<str>,
    /// The policy document that they are made of, if an S3 client put one.
    pub policy: Option<Box<str>>,
}

impl NewPublicRules {
    /// Returns the rules, in the order of the prefixes. A rule that is among those of `before` keeps its time and its maker.
    pub(crate) fn rules(&self, before: &[PublicRule]) -> Vec<PublicRule> {
        let created_by = &self.created_by[..self.created_by.floor_char_boundary(CREATOR_BYTES_MAX)];
        let rule = |(prefix, list): &(Box<str>, bool)| {
            let same = before.iter().find(|rule| rule.prefix == *prefix && rule.list == *list);
            same.cloned().unwrap_or_else(|| PublicRule {
                prefix: prefix.clone(),
                list: *list,
                created_at: self.created_at,
                created_by: created_by.into(),
            })
        };
        self.prefixes.iter().map(rule).collect()
    }
}

/// Describes rules for the audit trail: their prefixes, each with whether it may be listed.
pub fn public_rules_text(prefixes: &[(Box<str>, bool)]) -> String {
    let rule = |(prefix, list): &(Box<str>, bool)| {
        format!("{prefix:?} {}", if *list { "to read and list" } else { "to read" })
    };
    let rules: Vec<String> = prefixes.iter().map(rule).collect();
    format!("public: {}", if rules.is_empty() { "nothing".to_owned() } else { rules.join(", ") })
}

/// The block of public access, as S3 clients set it (API Reference, `PublicAccessBlockConfiguration`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PublicAccessBlock {
    /// No effect: there are no public ACLs.
    pub block_public_acls: bool,
    /// No effect: there are no public ACLs.
    pub ignore_public_acls: bool,
    /// Whether S3 clients may not put a policy that makes something public.
    pub block_public_policy: bool,
    /// Whether the rules of the bucket have no effect.
    pub restrict_public_buckets: bool,
}

impl PublicAccessBlock {
    /// The block that the management API sets.
    pub const ALL: Self = Self {
        block_public_acls: true,
        ignore_public_acls: true,
        block_public_policy: true,
        restrict_public_buckets: true,
    };
}

/// The rules of a bucket, and whether they are blocked. The default allows nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PublicAccess {
    /// At most [`PUBLIC_RULES_MAX`] rules with different prefixes.
    pub rules: Vec<PublicRule>,
    /// The block, if one was set.
    pub block: Option<PublicAccessBlock>,
    /// The policy document that the rules were made of, at most [`PUBLIC_POLICY_BYTES_MAX`] bytes. The engine does not
    /// interpret it.
    pub policy: Option<Box<str>>,
}

impl PublicAccess {
    /// Returns whether the rules have no effect.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.block.is_some_and(|block| block.restrict_public_buckets)
    }

    /// Returns whether anybody may read the current object of a key.
    #[must_use]
    pub fn may_read(&self, key: &str) -> bool {
        !self.is_blocked() && self.rules.iter().any(|rule| key.starts_with(&*rule.prefix))
    }

    /// Returns whether anybody may list the keys that begin with a prefix.
    #[must_use]
    pub fn may_list(&self, prefix: &str) -> bool {
        !self.is_blocked() && self.rules.iter().any(|rule| rule.list && prefix.starts_with(&*rule.prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::{NewPublicRules, PublicAccess, PublicAccessBlock};
    use cairn_model::Timestamp;

    fn new(prefixes: &[(&str, bool)], time: u64, created_by: &str) -> NewPublicRules {
        let prefixes = prefixes.iter().map(|(prefix, list)| ((*prefix).into(), *list)).collect();
        NewPublicRules { prefixes, created_at: Timestamp(time), created_by: created_by.into(), policy: None }
    }

    #[test]
    fn rules_are_about_prefixes_and_a_block_ends_them() {
        let rules = new(&[("assets/", false), ("open/", true)], 1, "root").rules(&[]);
        let mut access = PublicAccess { rules, ..PublicAccess::default() };
        for (key, read, list) in [
            ("assets/a", true, false),
            ("assets", false, false),
            ("open/", true, true),
            ("open/deeper/", true, true),
            ("ope", false, false),
            ("", false, false),
        ] {
            assert_eq!((access.may_read(key), access.may_list(key)), (read, list), "{key}");
        }
        let policy_only = PublicAccessBlock { block_public_policy: true, ..PublicAccessBlock::default() };
        access.block = Some(policy_only);
        assert!(access.may_read("assets/a"));
        access.block = Some(PublicAccessBlock::ALL);
        assert!(!access.may_read("assets/a") && !access.may_list("open/"));
    }

    #[test]
    fn a_rule_that_stays_keeps_its_maker() {
        let before = new(&[("a", false)], 1, "ann").rules(&[]);
        let now = new(&[("a", false), ("b", false)], 2, "bob").rules(&before);
        let made: Vec<_> = now.iter().map(|rule| (&*rule.created_by, rule.created_at.0)).collect();
        assert_eq!(made, [("ann", 1), ("bob", 2)]);
        let changed = new(&[("a", true)], 2, &"é".repeat(200)).rules(&before);
        assert_eq!((changed[0].created_by.len(), changed[0].created_at), (254, Timestamp(2)));
    }
}
