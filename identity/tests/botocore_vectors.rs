//! Requests that botocore signed, and what has to come of each: the crate against an independent implementation.
//!
//! The vectors are the committed file, or the file that `CAIRN_BOTOCORE_VECTORS` names.
//! `botocore_differential.py` makes them and describes the fields.

mod common;

use cairn_identity::{AuthError, Authentication, PayloadDigest};
use cairn_model::Timestamp;
use common::{Request, authenticator};
use serde::Deserialize;

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

    /// What is wrong with the outcome, if anything is.
    fn complaint(&self) -> Option<String> {
        let outcome = self.verify();
        let (verdict, payload) = match &outcome {
            Ok(proven) => ("ok", proven.payload),
            Err(error) => (error.code(), PayloadDigest::Unsigned),
        };
        let payload = match payload {
            PayloadDigest::Unsigned => None,
            PayloadDigest::Sha256(digest) => Some(hex::encode(digest)),
        };
        let right = verdict == self.verdict && payload == self.payload;
        (!right).then(|| format!("{} {} {:?}: {outcome:#?}", self.name, self.path, self.query))
    }
}

#[test]
fn what_botocore_signs_verifies_and_what_is_changed_is_refused() {
    let path = std::env::var("CAIRN_BOTOCORE_VECTORS").unwrap_or_else(|_| COMMITTED.to_owned());
    let text = std::fs::read_to_string(&path).expect("the vectors can be read");
    let vectors: Vec<Vector> =
        text.lines().map(|line| serde_json::from_str(line).expect("a vector")).collect();
    assert!(vectors.len() >= 100, "{path} holds only {} vectors", vectors.len());
    let complaints: Vec<String> = vectors.iter().filter_map(Vector::complaint).collect();
    let shown = complaints.iter().take(5).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(complaints.is_empty(), "{} of {} are wrong:\n{shown}", complaints.len(), vectors.len());
}
