//! The settings of sign-ins.

use std::fmt;

use cairn_identity::Role;
use cairn_trust::Authorities;
use zeroize::Zeroizing;

/// The provider, and what its claims mean. The configuration has validated it. Its `Debug` has no secret.
#[derive(Clone)]
pub struct OpenIdSettings {
    /// What people call the provider.
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
    /// The values that give each role.
    pub roles: RoleValues,
    /// The claim with the name of a person.
    pub name_claim: String,
    /// The URL by which browsers reach the console, without a slash at its end.
    pub console_url: String,
    /// The certificate authorities of the provider.
    pub authorities: Authorities,
}

/// The values of the role claim that give each role.
#[derive(Clone, Default, Debug)]
pub struct RoleValues {
    /// Those of system administrators.
    pub system_admins: Vec<String>,
    /// Those of storage administrators.
    pub storage_admins: Vec<String>,
    /// Those of auditors.
    pub auditors: Vec<String>,
}

impl RoleValues {
    /// Returns the role that a value gives. The role with most rights comes first.
    pub(crate) fn role_of(&self, has: impl Fn(&str) -> bool) -> Option<Role> {
        let rows = [
            (Role::SystemAdmin, &self.system_admins),
            (Role::StorageAdmin, &self.storage_admins),
            (Role::Auditor, &self.auditors),
        ];
        rows.into_iter().find(|(_, values)| values.iter().any(|value| has(value))).map(|(role, _)| role)
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
