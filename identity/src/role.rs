//! Roles of the management plane. They are apart from S3 policies: a role opens routes, a policy opens buckets.

use std::fmt;

/// What a caller of the management plane may do (specification, "Authentication").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Everything.
    SystemAdmin,
    /// Buckets, objects and the store; no accounts, policies, tokens or audit.
    StorageAdmin,
    /// Reads everything that is no object's content and no capability.
    Auditor,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 3] = [Self::SystemAdmin, Self::StorageAdmin, Self::Auditor];

    /// Its name in requests, answers and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SystemAdmin => "system_admin",
            Self::StorageAdmin => "storage_admin",
            Self::Auditor => "auditor",
        }
    }

    /// The role of this name.
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

#[cfg(test)]
mod tests {
    use super::Role;

    #[test]
    fn only_the_exact_name_is_a_role() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.name()), Some(role));
        }
        for other in ["", "System_admin", "system_admin ", "root"] {
            assert_eq!(Role::parse(other), None, "{other}");
        }
    }
}
