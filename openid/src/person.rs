//! The person who signed in: subject, name and role from the claims of the provider.

use cairn_identity::Standing;
use serde_json::Value;

use crate::error::SignInError;
use crate::limits::NAME_BYTES_MAX;
use crate::settings::OpenIdSettings;
use crate::text::harmless;
use crate::token::Claims;

/// A person whom the provider has identified, with a role or with policies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Person {
    /// The identifier of the person at this issuer. It never changes, and is never given to another.
    pub subject: String,
    /// The name that is shown. People may have equal ones.
    pub name: String,
    /// The standing that the claims give.
    pub standing: Standing,
    /// The session at the provider (`sid`), if it names one. The end of that session ends the one here.
    pub session: Option<String>,
}

/// Returns the value of a claim: by its name, or by a JSON pointer that begins with a slash.
fn claim<'c>(claims: &'c Claims, name: &str) -> Option<&'c Value> {
    if let Some(found) = claims.get(name) {
        return Some(found);
    }
    let (first, rest) = name.strip_prefix('/')?.split_once('/')?;
    claims.get(&first.replace("~1", "/").replace("~0", "~"))?.pointer(&format!("/{rest}"))
}

/// Returns whether all claims that the console needs are present. Some providers return them only from the user info endpoint.
pub(crate) fn is_complete(claims: &Claims, settings: &OpenIdSettings) -> bool {
    has_role_claim(claims, settings) && claim(claims, &settings.name_claim).is_some()
}

/// Returns whether the claim is present that decides on the role.
pub(crate) fn has_role_claim(claims: &Claims, settings: &OpenIdSettings) -> bool {
    claim(claims, &settings.role_claim).is_some()
}

impl Person {
    /// Returns the person of a verified ID token. Role and name may be in the claims of the user info endpoint instead.
    ///
    /// # Errors
    /// `Person` if no value of the role claim gives a role; the text names the claim.
    pub(crate) fn of(
        id_token: &Claims,
        user_info: &Claims,
        settings: &OpenIdSettings,
    ) -> Result<Self, SignInError> {
        let found = |name: &str| claim(id_token, name).or_else(|| claim(user_info, name));
        let text = |name: &str| {
            let text = found(name).and_then(Value::as_str).map(|text| harmless(text, NAME_BYTES_MAX));
            text.filter(|text| !text.is_empty())
        };
        let subject = id_token.get("sub").and_then(Value::as_str).unwrap_or_default();
        let named = text(&settings.name_claim).or_else(|| text("email"));
        let name = named.unwrap_or_else(|| harmless(subject, NAME_BYTES_MAX));
        let session = id_token.get("sid").and_then(Value::as_str).map(str::to_owned);
        let values = found(&settings.role_claim);
        let has = |wanted: &str| match values {
            Some(Value::String(value)) => value == wanted,
            Some(Value::Array(values)) => values.iter().any(|value| value.as_str() == Some(wanted)),
            _ => false,
        };
        let (shown, provider, subject) = (&settings.role_claim, &settings.name, subject.to_owned());
        let why = match (settings.roles.standing_of(has), values) {
            (Some(standing), _) => return Ok(Self { subject, name, standing, session }),
            (None, Some(_)) => {
                format!("no value of the claim \"{shown}\" gives {name} a role here; ask an administrator")
            }
            (None, None) => format!(
                "{provider} sent no claim \"{shown}\" for {name}, which would give a role here; ask an administrator"
            ),
        };
        Err(SignInError::Person { why, subject })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::RoleValues;
    use cairn_identity::Role;
    use cairn_trust::Authorities;
    use serde_json::json;

    fn settings(role_claim: &str) -> OpenIdSettings {
        let roles = RoleValues {
            system_admins: vec!["admins".to_owned()],
            storage_admins: vec!["ops".to_owned(), "cn=ops,dc=example".to_owned()],
            auditors: vec!["audit".to_owned()],
            members: [("team", "write"), ("team", "read"), ("readers", "read"), ("other", "x")]
                .map(|(value, policy)| (value.to_owned(), policy.to_owned()))
                .into(),
        };
        OpenIdSettings {
            name: "Example".to_owned(),
            issuer: "https://provider.example".to_owned(),
            client_id: "cairn".to_owned(),
            client_secret: None,
            scopes: "openid".to_owned(),
            role_claim: role_claim.to_owned(),
            roles,
            name_claim: "preferred_username".to_owned(),
            console_url: "https://console.example".to_owned(),
            authorities: Authorities::Host,
        }
    }

    fn person(role_claim: &str, claims: Value) -> Result<Person, SignInError> {
        Person::of(claims.as_object().expect("an object"), &Claims::new(), &settings(role_claim))
    }

    #[test]
    fn exact_values_give_a_role_and_the_highest_counts() {
        for (values, role) in [
            (json!(["audit", "ops", "admins"]), Some(Role::SystemAdmin)),
            (json!(["audit", "cn=ops,dc=example"]), Some(Role::StorageAdmin)),
            (json!("audit"), Some(Role::Auditor)),
            (json!(["Admins", "admins ", "admin", "", "*"]), None),
            (json!("audit,admins"), None),
            (json!([["admins"], {"name": "admins"}, 1]), None),
            (json!({"admins": true}), None),
            (json!(null), None),
        ] {
            let found = person("groups", json!({"sub": "1", "groups": values})).map(|person| person.standing);
            assert_eq!(found.ok(), role.map(Standing::Role), "{values}");
        }
    }

    #[test]
    fn members_have_the_policies_of_all_their_values_and_a_role_comes_first() {
        for (values, policies) in [
            (json!(["team"]), &["read", "write"][..]),
            (json!("readers"), &["read"]),
            (json!(["readers", "team", "unknown"]), &["read", "write"]),
        ] {
            let found = person("groups", json!({"sub": "1", "groups": values})).expect("a member").standing;
            let Standing::Member(named) = found else { panic!("{values} gives no role") };
            assert_eq!(*named, *policies, "{values}");
        }
        let both = person("groups", json!({"sub": "1", "groups": ["team", "audit"]})).expect("a role");
        assert_eq!(both.standing, Standing::Role(Role::Auditor));
        assert!(person("groups", json!({"sub": "1", "groups": ["Team", "team=read", "read", ""]})).is_err());
    }

    #[test]
    fn a_claim_may_be_inside_of_another() {
        let claims =
            json!({"sub": "1", "realm_access": {"roles": ["admins"]}, "https://a/b": ["ops"], "/x": "audit"});
        for (claim, role) in [
            ("/realm_access/roles", Some(Role::SystemAdmin)),
            ("https://a/b", Some(Role::StorageAdmin)),
            ("/x", Some(Role::Auditor)),
            ("/realm_access", None),
            ("/realm_access/roles/0", Some(Role::SystemAdmin)),
            ("/", None),
        ] {
            let found = person(claim, claims.clone()).map(|person| person.standing);
            assert_eq!(found.ok(), role.map(Standing::Role), "{claim}");
        }
    }

    /// Regression: a claim inside of another was not found in the user info if the ID token had the outer one.
    #[test]
    fn what_the_id_token_does_not_have_may_be_in_the_user_info() {
        let id_token = json!({"sub": "1", "realm_access": {"other": 1}, "email": "a@example.com"});
        let user_info = json!({
            "sub": "2", "sid": "s", "realm_access": {"roles": ["ops"], "other": "admins"}, "preferred_username": "ada",
        });
        let of = |role_claim| {
            let claims = [&id_token, &user_info].map(|claims| claims.as_object().expect("an object"));
            Person::of(claims[0], claims[1], &settings(role_claim))
        };
        let found = of("/realm_access/roles").expect("a role");
        assert_eq!((&*found.name, found.standing), ("ada", Standing::Role(Role::StorageAdmin)));
        assert_eq!((&*found.subject, found.session), ("1", None), "both are of the ID token alone");
        assert!(of("/realm_access/other").is_err(), "the ID token has the claim");
    }

    #[test]
    fn refusals_name_the_claim_and_the_person() {
        let refused = person("groups", json!({"sub": "7", "groups": ["x"]})).expect_err("refused");
        assert_eq!((refused.subject(), refused.code()), (Some("7"), "SIGN_IN_REFUSED"));
        let text = |claims| person("groups", claims).expect_err("refused").to_string();
        let refused = text(json!({"sub": "1", "preferred_username": "ada", "groups": ["x"]}));
        assert_eq!(refused, "no value of the claim \"groups\" gives ada a role here; ask an administrator");
        let refused = text(json!({"sub": "1", "email": "ada@example.com"}));
        assert!(refused.starts_with("Example sent no claim \"groups\" for ada@example.com"), "{refused}");
    }

    #[test]
    fn names_are_harmless_and_fall_back_to_the_subject() {
        let name = |claims: Value| person("groups", claims).expect("a role").name;
        assert_eq!(name(json!({"sub": "7", "groups": "ops"})), "7");
        assert_eq!(name(json!({"sub": "7", "groups": "ops", "preferred_username": " \n "})), "7");
        assert_eq!(
            name(json!({"sub": "7", "groups": "ops", "preferred_username": "a\u{202e}b"})),
            "a\u{fffd}b"
        );
        assert_eq!(
            name(json!({"sub": "7", "groups": "ops", "preferred_username": "x".repeat(1024)})).len(),
            128
        );
    }
}
