//! On-disk records of the directory: tables, keys and bodies.
//!
//! ```text
//! table         key                                  body, version 1
//! directory     identity                             16 bytes store id (lmdb/src/store_identity.rs)
//! accounts      account id (16)                      JSON: AccountRecord
//! credentials   account id (16), credential id (16)  JSON: CredentialRecord
//! last_used     account id (16), credential id (16)  u64 milliseconds since the Unix epoch, little-endian
//! policies      policy id (16)                       JSON: PolicyRecord
//! bindings      account id (16), policy id (16)      u64 time of the attachment, as above
//! tokens        token id (16)                        JSON: TokenRecord
//! ```
//! In JSON, times are milliseconds since the Unix epoch and bytes are hexadecimal digits. Unknown fields are refused, because a
//! program that does not know them must not guess what they allow.

use super::secret::TokenHash;
use super::state::{CredentialState, TokenState};
use crate::id::{AccountId, CredentialId, ID_BYTES, PolicyId, TokenId};
use crate::policy::{Policy, PolicyDraft, StatementDraft};
use crate::role::Role;
use cairn_lmdb::Record;
use cairn_model::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::sync::Arc;

/// Version of all records.
pub(super) const RECORD_VERSION: u8 = 1;

/// A service account.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AccountRecord {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) enabled: bool,
    pub(super) created_at: u64,
}

/// A credential. Its secret is sealed (`seal.rs`).
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CredentialRecord {
    access_key: String,
    sealed_secret: String,
    enabled: bool,
    created_at: u64,
    /// Set for temporary credentials only.
    expires_at: Option<u64>,
}

/// A policy.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyRecord {
    name: String,
    description: String,
    statements: Vec<StatementDraft>,
    created_at: u64,
}

/// A management token.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenRecord {
    name: String,
    role: String,
    sha256: String,
    created_at: u64,
    expires_at: Option<u64>,
}

fn to_json(record: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(record).expect("a record of texts, numbers and lists can be written as JSON")
}

/// Decodes the body of a JSON record. Returns `None` if its version or form is unknown.
fn from_json<T: DeserializeOwned>(record: &Record<'_>) -> Option<T> {
    (record.version == RECORD_VERSION).then(|| serde_json::from_slice(record.body).ok())?
}

impl AccountRecord {
    pub(super) fn encode(&self) -> Vec<u8> {
        to_json(self)
    }

    pub(super) fn decode(record: &Record<'_>) -> Option<Self> {
        from_json(record)
    }
}

pub(super) fn encode_credential(credential: &CredentialState) -> Vec<u8> {
    to_json(&CredentialRecord {
        access_key: credential.access_key.to_string(),
        sealed_secret: hex::encode(&credential.sealed_secret),
        enabled: credential.enabled,
        created_at: credential.created_at.0,
        expires_at: credential.expires_at.map(|time| time.0),
    })
}

pub(super) fn decode_credential(record: &Record<'_>) -> Option<CredentialState> {
    let read: CredentialRecord = from_json(record)?;
    Some(CredentialState {
        access_key: read.access_key.into(),
        sealed_secret: hex::decode(read.sealed_secret).ok()?.into(),
        enabled: read.enabled,
        created_at: Timestamp(read.created_at),
        expires_at: read.expires_at.map(Timestamp),
        last_used: Arc::default(),
        marked_expired: false,
    })
}

pub(super) fn encode_policy(policy: &Policy, created_at: Timestamp) -> Vec<u8> {
    let PolicyDraft { name, description, statements } = policy.to_draft();
    to_json(&PolicyRecord { name, description, statements, created_at: created_at.0 })
}

pub(super) fn decode_policy(record: &Record<'_>) -> Option<(Policy, Timestamp)> {
    let PolicyRecord { name, description, statements, created_at } = from_json(record)?;
    let policy = Policy::from_draft(&PolicyDraft { name, description, statements }).ok()?;
    Some((policy, Timestamp(created_at)))
}

pub(super) fn encode_token(token: &TokenState) -> Vec<u8> {
    to_json(&TokenRecord {
        name: token.name.to_string(),
        role: token.role.name().to_owned(),
        sha256: hex::encode(token.hash),
        created_at: token.created_at.0,
        expires_at: token.expires_at.map(|time| time.0),
    })
}

pub(super) fn decode_token(record: &Record<'_>) -> Option<TokenState> {
    let read: TokenRecord = from_json(record)?;
    let mut hash = TokenHash::default();
    hex::decode_to_slice(read.sha256, &mut hash).ok()?;
    Some(TokenState {
        name: read.name.into(),
        role: Role::parse(&read.role)?,
        hash,
        created_at: Timestamp(read.created_at),
        expires_at: read.expires_at.map(Timestamp),
        marked_expired: false,
    })
}

/// Encodes the body of a record that only holds a time: of a use or of a binding.
pub(super) fn encode_time(time: Timestamp) -> [u8; 8] {
    time.0.to_le_bytes()
}

pub(super) fn decode_time(record: &Record<'_>) -> Option<Timestamp> {
    let body = (record.version == RECORD_VERSION).then_some(record.body)?;
    body.try_into().ok().map(u64::from_le_bytes).map(Timestamp)
}

/// Returns the key of a credential and of its last use.
pub(super) fn credential_key(account: AccountId, credential: CredentialId) -> [u8; 2 * ID_BYTES] {
    pair_key(account.0, credential.0)
}

/// Returns the key of a binding.
pub(super) fn binding_key(account: AccountId, policy: PolicyId) -> [u8; 2 * ID_BYTES] {
    pair_key(account.0, policy.0)
}

fn pair_key(first: [u8; ID_BYTES], second: [u8; ID_BYTES]) -> [u8; 2 * ID_BYTES] {
    let mut key = [0; 2 * ID_BYTES];
    key[..ID_BYTES].copy_from_slice(&first);
    key[ID_BYTES..].copy_from_slice(&second);
    key
}

/// Splits a key of two ids.
fn pair_of(key: &[u8]) -> Option<([u8; ID_BYTES], [u8; ID_BYTES])> {
    let (first, second) = key.split_first_chunk()?;
    Some((*first, second.try_into().ok()?))
}

pub(super) fn credential_of(key: &[u8]) -> Option<(AccountId, CredentialId)> {
    pair_of(key).map(|(account, credential)| (AccountId(account), CredentialId(credential)))
}

pub(super) fn binding_of(key: &[u8]) -> Option<(AccountId, PolicyId)> {
    pair_of(key).map(|(account, policy)| (AccountId(account), PolicyId(policy)))
}

pub(super) fn account_of(key: &[u8]) -> Option<AccountId> {
    key.try_into().ok().map(AccountId)
}

pub(super) fn policy_of(key: &[u8]) -> Option<PolicyId> {
    key.try_into().ok().map(PolicyId)
}

pub(super) fn token_of(key: &[u8]) -> Option<TokenId> {
    key.try_into().ok().map(TokenId)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &[u8]) -> Record<'_> {
        Record { version: RECORD_VERSION, body, tail: &[] }
    }

    /// Golden bytes: a change here is a change of the on-disk format.
    #[test]
    fn record_formats_do_not_change() {
        let account = AccountRecord {
            name: "web \"1\"".to_owned(),
            description: "é".to_owned(),
            enabled: true,
            created_at: 7,
        };
        let text = r#"{"name":"web \"1\"","description":"é","enabled":true,"created_at":7}"#;
        assert_eq!(account.encode(), text.as_bytes());
        assert_eq!(AccountRecord::decode(&read(text.as_bytes())).expect("reads").encode(), text.as_bytes());

        let text =
            r#"{"access_key":"AK","sealed_secret":"00ff","enabled":false,"created_at":1,"expires_at":2}"#;
        let credential = decode_credential(&read(text.as_bytes())).expect("reads");
        assert_eq!((&*credential.access_key, &*credential.sealed_secret), ("AK", &[0, 0xFF][..]));
        assert_eq!((credential.enabled, credential.expires_at), (false, Some(Timestamp(2))));
        assert_eq!(encode_credential(&credential), text.as_bytes());

        let text = concat!(
            r#"{"name":"p","description":"","statements":[{"effect":"deny","actions":["s3:GetObject"],"#,
            r#""resources":["bucket:photos/*"]}],"created_at":3}"#
        );
        let (policy, created_at) = decode_policy(&read(text.as_bytes())).expect("reads");
        assert_eq!(encode_policy(&policy, created_at), text.as_bytes());

        let hash = "0123456789abcdef".repeat(4);
        let text =
            format!(r#"{{"name":"t","role":"auditor","sha256":"{hash}","created_at":4,"expires_at":null}}"#);
        let token = decode_token(&read(text.as_bytes())).expect("reads");
        assert_eq!((token.role, token.expires_at), (Role::Auditor, None));
        assert_eq!(encode_token(&token), text.as_bytes());

        assert_eq!(encode_time(Timestamp(0x0102)), [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(decode_time(&read(&[2, 1, 0, 0, 0, 0, 0, 0])), Some(Timestamp(0x0102)));
        let key = credential_key(AccountId([1; 16]), CredentialId([2; 16]));
        assert_eq!((&key[..16], &key[16..]), (&[1; 16][..], &[2; 16][..]));
        assert_eq!(credential_of(&key), Some((AccountId([1; 16]), CredentialId([2; 16]))));
    }

    #[test]
    fn unknown_record_formats_are_refused() {
        for text in [
            "",
            "{}",
            r#"{"name":"a","description":"","enabled":true,"created_at":7,"more":1}"#,
            r#"{"name":"a","description":"","enabled":1,"created_at":7}"#,
        ] {
            assert!(AccountRecord::decode(&read(text.as_bytes())).is_none(), "{text}");
        }
        let text = r#"{"name":"a","description":"","enabled":true,"created_at":7}"#;
        let later = Record { version: RECORD_VERSION + 1, body: text.as_bytes(), tail: &[] };
        assert!(AccountRecord::decode(&later).is_none());
        assert_eq!(decode_time(&read(&[1; 7])), None);
        assert_eq!((binding_of(&[1; 31]), account_of(&[1; 17])), (None, None));
    }
}
