//! Verifications of stored content, and their signed proofs.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::text::{Time, text};

text! {
    /// The status of verified content: whether it is what was stored.
    VerificationStatus("enum" = ["ok", "corrupt", "missing"]);
    /// The algorithm of a signature.
    ProofAlgorithm("const" = "ed25519");
}

/// A running verification.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct RunningVerification {
    pub bucket: String,
    /// Null if the whole bucket is verified.
    pub key: Option<String>,
    pub started_at: Time,
    pub versions_verified: u64,
    pub versions_expected: u64,
    pub bytes_verified: u64,
    pub bytes_expected: u64,
    pub corrupt_versions: u64,
}

/// The running verifications.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct VerificationProgress {
    pub verifications: Vec<RunningVerification>,
}

/// The proof of a verification: what was verified, when, and by which store; signed with the key of the store.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// The members of the response, and more.
    pub payload: Map<String, Value>,
    pub algorithm: ProofAlgorithm,
    pub public_key: String,
    pub signature: String,
}

/// The result of a comparison with another store, for a signature. Members and values are those of the one who compared.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignImportReport {
    /// Numbers must be whole.
    #[serde(deserialize_with = "object")]
    pub report: Map<String, Value>,
}

/// Reads an object. `Map` alone would take null for an empty one.
fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Object(members) => Ok(members),
        _ => Err(D::Error::custom("expected an object")),
    }
}

/// The manifest of a backup, for a signature.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignBackupManifest {
    /// Numbers must be whole.
    #[serde(deserialize_with = "object")]
    pub manifest: Map<String, Value>,
}

/// A signed report.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct SignedImportReport {
    pub proof: Proof,
}

/// The result of the verification of one version.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct VerifiedObject {
    pub bucket: String,
    pub key: String,
    pub version_id: String,
    pub size: u64,
    pub status: VerificationStatus,
    pub blocks_checked: u64,
    pub detail: Option<String>,
}

/// The verification of one version.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ObjectVerification {
    #[serde(flatten)]
    pub found: VerifiedObject,
    pub proof: Proof,
}

/// The scope of a verification of a bucket. All members are optional.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyBucket {
    #[schemars(range(min = 1, max = u64::MAX))]
    pub maximum_versions: Option<u64>,
    /// next_continuation_token of the previous response; null to begin.
    pub continuation_token: Option<String>,
}

/// A version whose content is not what was stored.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct CorruptVersion {
    pub key: String,
    pub version_id: String,
    pub status: VerificationStatus,
    pub detail: Option<String>,
}

/// The result of a verification of versions of a bucket.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct VerifiedBucket {
    pub bucket: String,
    pub complete: bool,
    pub versions_verified: u64,
    pub bytes_verified: u64,
    pub corrupt_count: u64,
    pub corrupt: Vec<CorruptVersion>,
    /// Null if the verification is complete.
    pub next_continuation_token: Option<String>,
    /// The token with which this verification began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// The verification of versions of a bucket.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct BucketVerification {
    #[serde(flatten)]
    pub found: VerifiedBucket,
    pub proof: Proof,
}
