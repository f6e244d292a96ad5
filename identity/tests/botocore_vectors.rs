//! Verifies requests that botocore, an independent implementation, has signed.
//!
//! The vectors are in the committed file, or in the file that `CAIRN_BOTOCORE_VECTORS` names. `botocore_differential.py`
//! generates them and describes the fields.

use crate::signer::{Request, authenticator};
use cairn_identity::{AuthError, Authentication, PayloadDigest};
use cairn_model::Timestamp;
use serde::Deserialize;

/// The committed vectors.
const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/botocore.jsonl");

#[derive(Deserialize)]
struct Vector {
    name: String,
    method: String,
    path: String,
    query: Option<String>,
    headers: Vec<(String, String)>,
    now: u64,
    verdict: String,
    payload: Option<String>,
}

impl Vector {
    fn verify(&self) -> Result<Authentication, AuthError> {
        let headers =
            self.headers.iter().map(|(name, value)| (name.to_lowercase(), value.trim().as_bytes().to_vec()));
        let request = Request {
            method: self.method.clone(),
            path: self.path.clone(),
            query: self.query.clone(),
            headers: headers.collect(),
        };
        request.authenticate(&authenticator(), Timestamp(self.now * 1000))
    }

    /// Describes how the outcome differs from the expected one, if it does.
    fn mismatch(&self) -> Option<String> {
        let outcome = self.verify();
        let (verdict, payload) = match &outcome {
            Ok(authentication) => ("ok", authentication.payload),
            Err(error) => (error.code(), PayloadDigest::Unsigned),
        };
        let payload = match payload {
            PayloadDigest::Unsigned | PayloadDigest::Chunked(_) => None,
            PayloadDigest::Sha256(digest) => Some(hex::encode(digest)),
        };
        let matches = verdict == self.verdict && payload == self.payload;
        (!matches).then(|| format!("{} {} {:?}: {outcome:#?}", self.name, self.path, self.query))
    }
}

#[test]
fn botocore_signatures_verify_and_altered_requests_are_refused() {
    let path = std::env::var("CAIRN_BOTOCORE_VECTORS").unwrap_or_else(|_| COMMITTED.to_owned());
    let text = std::fs::read_to_string(&path).expect("the vectors can be read");
    let vectors: Vec<Vector> =
        text.lines().map(|line| serde_json::from_str(line).expect("a vector")).collect();
    assert!(vectors.len() >= 100, "{path} has only {} vectors", vectors.len());
    let mismatches: Vec<String> = vectors.iter().filter_map(Vector::mismatch).collect();
    let shown = mismatches.iter().take(5).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(mismatches.is_empty(), "{} of {} are wrong:\n{shown}", mismatches.len(), vectors.len());
}
