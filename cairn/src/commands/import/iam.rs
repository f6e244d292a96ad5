//! Reads the documents of an IAM export (`mc admin cluster iam export`).
//!
//! Source: MinIO, `cmd/admin-handlers-users.go`, and exports of a server. All documents are objects with the names of things
//! as members. Secrets are in clear, so no message quotes a value.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::archive::Files;
use crate::failure::Failure;

/// The folder of the documents in the archive.
const FOLDER: &str = "iam-assets/";
/// The times by which MinIO says that something never expires.
const NEVER: [&str; 2] = ["1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z"];

/// An exported IAM store.
#[derive(Default)]
pub(super) struct Iam {
    /// AWS policy documents by name.
    pub(super) policies: BTreeMap<String, Value>,
    /// Users by access key.
    pub(super) users: BTreeMap<String, User>,
    pub(super) groups: BTreeMap<String, Group>,
    /// Service accounts by access key.
    pub(super) service_accounts: BTreeMap<String, ServiceAccount>,
    /// The policies of users, of groups, and of users that another system knows.
    pub(super) user_policies: BTreeMap<String, Mapping>,
    pub(super) group_policies: BTreeMap<String, Mapping>,
    pub(super) external_policies: BTreeMap<String, Mapping>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct User {
    #[serde(default)]
    pub(super) secret_key: String,
    #[serde(default)]
    status: String,
}

#[derive(Deserialize)]
pub(super) struct Group {
    #[serde(default)]
    status: String,
    #[serde(default)]
    pub(super) members: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServiceAccount {
    #[serde(default)]
    pub(super) parent: String,
    #[serde(default)]
    pub(super) secret_key: String,
    #[serde(default)]
    claims: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    session_policy: Option<Value>,
    #[serde(default)]
    status: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    expiration: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Mapping {
    #[serde(default)]
    policy: String,
}

/// The session policy of a service account, which restricts the rights of its parent.
pub(super) enum Session<'s> {
    /// Nothing.
    Inherited,
    /// This policy.
    Embedded(&'s Value),
    /// A policy that the export does not contain.
    Missing,
}

fn is_on(status: &str) -> bool {
    matches!(status, "enabled" | "on" | "")
}

impl User {
    pub(super) fn is_enabled(&self) -> bool {
        is_on(&self.status)
    }
}

impl Group {
    pub(super) fn is_enabled(&self) -> bool {
        is_on(&self.status)
    }
}

impl ServiceAccount {
    pub(super) fn is_enabled(&self) -> bool {
        is_on(&self.status)
    }

    /// Returns the time at which it expires (RFC 3339).
    pub(super) fn expires_at(&self) -> Option<&str> {
        self.expiration.as_deref().filter(|time| !time.is_empty() && !NEVER.contains(time))
    }

    pub(super) fn session(&self) -> Session<'_> {
        match &self.session_policy {
            Some(policy) if !policy.is_null() => Session::Embedded(policy),
            _ => {
                let kind = self.claims.as_ref().and_then(|claims| claims.get("sa-policy"));
                match kind.and_then(Value::as_str) {
                    None | Some("inherited-policy") => Session::Inherited,
                    Some(_) => Session::Missing,
                }
            }
        }
    }
}

impl Mapping {
    /// Returns the names of the policies.
    pub(super) fn policies(&self) -> impl Iterator<Item = &str> {
        self.policy.split(',').map(str::trim).filter(|name| !name.is_empty())
    }
}

impl Iam {
    /// Reads the documents of an archive.
    ///
    /// # Errors
    /// The archive is no IAM export, or a document is not as MinIO writes it.
    pub(super) fn read(files: &Files) -> Result<Self, Failure> {
        if !files.keys().any(|name| name.starts_with(FOLDER)) {
            let advice = "`mc admin cluster iam export ALIAS` writes one";
            return Err(format!("the archive is no IAM export: it has no folder {FOLDER}\n  {advice}").into());
        }
        Ok(Self {
            policies: document(files, "policies.json")?,
            users: document(files, "users.json")?,
            groups: document(files, "groups.json")?,
            service_accounts: document(files, "svcaccts.json")?,
            user_policies: document(files, "user_mappings.json")?,
            group_policies: document(files, "group_mappings.json")?,
            external_policies: document(files, "stsuser_mappings.json")?,
        })
    }
}

/// Reads a document. One that is not there is empty.
fn document<T: DeserializeOwned>(files: &Files, name: &str) -> Result<BTreeMap<String, T>, Failure> {
    let Some(bytes) = files.get(&format!("{FOLDER}{name}")) else { return Ok(BTreeMap::new()) };
    // The parser's own message may quote a value, which may be a secret.
    let read: Result<Option<BTreeMap<String, T>>, _> = serde_json::from_slice(bytes);
    let read = read.map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Failure::from(format!("{FOLDER}{name} is not as MinIO writes it (line {line}, column {column})"))
    });
    read.map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(entries: &[(&str, &str)]) -> Files {
        entries.iter().map(|(name, text)| (format!("{FOLDER}{name}"), text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn documents_are_read_as_minio_writes_them() {
        let iam = Iam::read(&files(&[
            (
                "users.json",
                r#"{"alice":{"secretKey":"s","status":"enabled"},"bob":{"secretKey":"t","status":"disabled"}}"#,
            ),
            (
                "svcaccts.json",
                r#"{"A":{"parent":"alice","accessKey":"A","secretKey":"x","groups":null,
                    "claims":{"accessKey":"A","parent":"alice","sa-policy":"inherited-policy"},"sessionPolicy":null,
                    "status":"on","name":"","description":"","expiration":"1970-01-01T00:00:00Z"},
                    "B":{"parent":"alice","claims":{"sa-policy":"embedded-policy"},"sessionPolicy":null,"status":"off",
                    "expiration":"2027-06-01T00:00:00Z"}}"#,
            ),
            (
                "user_mappings.json",
                r#"{"alice":{"version":1,"policy":"a, b,","updatedAt":"2026-11-26T12:08:23Z"}}"#,
            ),
            ("groups.json", "null"),
        ]));
        let iam = iam.unwrap_or_else(|failure| panic!("{failure:?}"));
        assert!(iam.users["alice"].is_enabled() && !iam.users["bob"].is_enabled());
        let [a, b] = ["A", "B"].map(|key| &iam.service_accounts[key]);
        assert!(a.is_enabled() && a.expires_at().is_none() && matches!(a.session(), Session::Inherited));
        assert!(!b.is_enabled() && matches!(b.session(), Session::Missing));
        assert_eq!(b.expires_at(), Some("2027-06-01T00:00:00Z"));
        assert_eq!(iam.user_policies["alice"].policies().collect::<Vec<_>>(), ["a", "b"]);
        assert!(iam.groups.is_empty() && iam.policies.is_empty());
    }

    #[test]
    fn errors_do_not_quote_secrets() {
        for wrong in [r#"{"alice":{"secretKey":["hush"]}}"#, r#"{"alice":"hush"}"#, r#"["hush"]"#, "hush"] {
            let Err(failure) = Iam::read(&files(&[("users.json", wrong)])) else { panic!("{wrong}") };
            assert!(
                failure.message().contains("users.json") && !failure.message().contains("hush"),
                "{failure:?}"
            );
        }
        assert!(Iam::read(&Files::new()).is_err());
    }
}
