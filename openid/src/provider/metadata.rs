//! The metadata of a provider (OpenID Connect Discovery, section 4).

use serde::Deserialize;

use super::client::{Client, Transport};
use crate::limits::QUOTED_BYTES_MAX;
use crate::text::harmless;

/// The metadata of a provider, as far as a sign-in needs it.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    issuer: String,
    pub(crate) authorization_endpoint: String,
    pub(crate) token_endpoint: String,
    pub(crate) jwks_uri: String,
    pub(crate) userinfo_endpoint: Option<String>,
    pub(crate) end_session_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl Metadata {
    /// Reads the metadata of an issuer.
    ///
    /// # Errors
    /// The failure, or the problem with them.
    pub(crate) fn read(client: &Client, issuer: &str) -> Result<Self, String> {
        let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        Self::parse(&client.get(&url, None)?, issuer).map_err(|why| format!("{url}: {why}"))
    }

    fn parse(json: &[u8], issuer: &str) -> Result<Self, String> {
        let found: Self = serde_json::from_slice(json)
            .map_err(|error| harmless(&error.to_string(), QUOTED_BYTES_MAX))
            .map_err(|error| format!("not the metadata of a provider: {error}"))?;
        if found.issuer != issuer {
            let named = harmless(&found.issuer, QUOTED_BYTES_MAX);
            return Err(format!("the provider calls itself {named}, console.openid.issuer is {issuer}"));
        }
        let transport = Transport::of(issuer);
        for (name, url) in [
            ("authorization_endpoint", Some(&found.authorization_endpoint)),
            ("token_endpoint", Some(&found.token_endpoint)),
            ("jwks_uri", Some(&found.jwks_uri)),
            ("userinfo_endpoint", found.userinfo_endpoint.as_ref()),
            ("end_session_endpoint", found.end_session_endpoint.as_ref()),
        ] {
            let is_good = |url: &String| {
                transport.allows(url) && url.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')
            };
            if !url.is_none_or(is_good) {
                return Err(format!("{name} is not an https URL"));
            }
        }
        let methods = found.code_challenge_methods_supported.as_ref();
        if methods.is_some_and(|methods| !methods.iter().any(|method| method == "S256")) {
            return Err("the provider does not support PKCE with S256".to_owned());
        }
        Ok(found)
    }

    /// Returns whether answers to the browser name the issuer (RFC 9207).
    pub(crate) fn names_itself(&self) -> bool {
        self.authorization_response_iss_parameter_supported
    }

    /// Returns whether the secret of the client is sent in the form. The default is HTTP Basic.
    pub(crate) fn takes_secret_in_form(&self) -> bool {
        self.token_endpoint_auth_methods_supported.as_ref().is_some_and(|methods| {
            let has = |wanted: &str| methods.iter().any(|method| method == wanted);
            has("client_secret_post") && !has("client_secret_basic")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parsed(changes: &Value) -> Result<Metadata, String> {
        let mut document = json!({
            "issuer": "https://p.example", "authorization_endpoint": "https://p.example/a",
            "token_endpoint": "https://p.example/t", "jwks_uri": "https://p.example/k",
        });
        for (name, value) in changes.as_object().expect("an object") {
            document[name] = value.clone();
        }
        Metadata::parse(document.to_string().as_bytes(), "https://p.example")
    }

    #[test]
    fn metadata_of_another_issuer_or_without_tls_are_refused() {
        assert!(parsed(&json!({})).is_ok());
        for (changes, reason) in [
            (json!({"issuer": "https://p.example/"}), "calls itself https://p.example/"),
            (json!({"issuer": 1}), "not the metadata"),
            (json!({"token_endpoint": "http://p.example/t"}), "token_endpoint is not an https URL"),
            (json!({"jwks_uri": "file:///etc/passwd"}), "jwks_uri"),
            (json!({"authorization_endpoint": "javascript:alert(1)"}), "authorization_endpoint"),
            (json!({"authorization_endpoint": "https://p.example/a#b"}), "authorization_endpoint"),
            (json!({"end_session_endpoint": "https://p.example/\r\nx: y"}), "end_session_endpoint"),
            (json!({"code_challenge_methods_supported": ["plain"]}), "S256"),
        ] {
            let refused = parsed(&changes).expect_err("refused");
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[test]
    fn the_secret_is_sent_as_the_provider_takes_it() {
        for (methods, is_in_form) in [
            (json!(null), false),
            (json!(["client_secret_basic", "client_secret_post"]), false),
            (json!(["client_secret_post"]), true),
            (json!(["private_key_jwt"]), false),
        ] {
            let found = parsed(&json!({"token_endpoint_auth_methods_supported": methods})).expect("parses");
            assert_eq!(found.takes_secret_in_form(), is_in_form, "{methods}");
        }
    }
}
