//! Roles of the management plane. They are independent of S3 policies: roles control routes, policies control buckets.

use std::fmt;
use std::sync::Arc;

cairn_model::named_enum! {
    /// The role of a caller of the management plane (specification, "Authentication").
    ///
    /// Named as in requests, responses and records.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Role {
        /// Everything.
        SystemAdmin => "system_admin",
        /// Buckets, objects and the store, but not accounts, policies, tokens or the audit trail.
        StorageAdmin => "storage_admin",
        /// Reads everything except the contents of objects and capabilities.
        Auditor => "auditor",
    }
}

impl Role {
    /// Returns the role of this name. Names are case-sensitive.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The standing of a caller of the management plane: a role, or the policies of a member.
///
/// A member has no role, so code that checks for a role refuses members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Standing {
    /// The operations of a role.
    Role(Role),
    /// The rights of the policies with these names on buckets and objects. Of people only, never of tokens.
    Member(Arc<[String]>),
}

impl Standing {
    /// Returns the name in responses and records.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Role(role) => role.name(),
            Self::Member(_) => "member",
        }
    }

    /// Returns the role; members have none.
    #[must_use]
    pub const fn role(&self) -> Option<Role> {
        match self {
            Self::Role(role) => Some(*role),
            Self::Member(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Role, Standing};

    #[test]
    fn role_names_are_exact() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.name()), Some(role));
        }
        for other in ["", "System_admin", "system_admin ", "root"] {
            assert_eq!(Role::parse(other), None, "{other}");
        }
    }

    /// A token, also one whose record was changed, can therefore never be a member.
    #[test]
    fn members_have_no_role() {
        let member = Standing::Member(["readers".to_owned()].into());
        assert_eq!((member.role(), Role::parse(member.name())), (None, None));
        assert_eq!(Standing::Role(Role::Auditor).role(), Some(Role::Auditor));
    }
}
