//! The settings of sign-ins.

use std::collections::BTreeSet;
use std::fmt;

use cairn_identity::{Role, Standing};
use cairn_trust::Authorities;
use zeroize::Zeroizing;

/// The provider, and what its claims mean. The configuration has validated it. Its `Debug` has no secret.
#[derive(Clone)]
pub struct OpenIdSettings {
    /// The name of the provider, for people.
    pub name: String,
    /// The issuer, exactly as the provider writes it.
    pub issuer: String,
    /// The client that this console is.
    pub client_id: String,
    /// Its secret. Without one it is a public client, which only PKCE protects.
    pub client_secret: Option<Zeroizing<String>>,
    /// The scopes that are asked for, separated by spaces; `openid` is one.
    pub scopes: String,
    /// The claim with the values that give a role: a name, or a JSON pointer (RFC 6901), which begins with a slash.
    pub role_claim: String,
    /// The roles that the values give.
    pub roles: RoleValues,
    /// The claim with the name of a person.
    pub name_claim: String,
    /// The URL by which browsers reach the console, without a slash at its end.
    pub console_url: String,
    /// The certificate authorities of the provider.
    pub authorities: Authorities,
}

/// The values of the role claim that give each role, or policies.
#[derive(Clone, Default, Debug)]
pub struct RoleValues {
    /// Those of system administrators.
    pub system_admins: Vec<String>,
    /// Those of storage administrators.
    pub storage_admins: Vec<String>,
    /// Those of auditors.
    pub auditors: Vec<String>,
    /// Those of members, each with the name of a policy. A value may be in several.
    pub members: Vec<(String, String)>,
}

impl RoleValues {
    /// Returns what the values of a person give: the role with most rights, or else all policies of its values.
    pub(crate) fn standing_of(&self, has: impl Fn(&str) -> bool) -> Option<Standing> {
        let rows = [
            (Role::SystemAdmin, &self.system_admins),
            (Role::StorageAdmin, &self.storage_admins),
            (Role::Auditor, &self.auditors),
        ];
        let role = rows.into_iter().find(|(_, values)| values.iter().any(|value| has(value)));
        if let Some((role, _)) = role {
            return Some(Standing::Role(role));
        }
        let own = self.members.iter().filter(|(value, _)| has(value));
        let policies: BTreeSet<_> = own.map(|(_, policy)| policy.clone()).collect();
        (!policies.is_empty()).then(|| Standing::Member(policies.into_iter().collect()))
    }
}

impl OpenIdSettings {
    /// Returns where the provider sends the browser back to. The provider compares it exactly.
    #[must_use]
    pub fn redirect_uri(&self) -> String {
        format!("{}/sign-in/callback", self.console_url)
    }
}

impl fmt::Debug for OpenIdSettings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { issuer, client_id, .. } = self;
        out.debug_struct("OpenIdSettings")
            .field("issuer", issuer)
            .field("client_id", client_id)
            .finish_non_exhaustive()
    }
}
