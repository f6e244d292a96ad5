//! `cairn verify proof`: checks the signature of a proof, without a server.
//!
//! The signature covers the canonical JSON of the payload (docs/management-api.md, "Proofs").

use std::fs::File;
use std::io::Read;

use argh::{ArgsInfo, FromArgs};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::output::table::{Columns, record, text, words};
use crate::quantity::counted;
use crate::terminal;
use crate::terminal::word;

/// Check the signatures of a file of proofs, without a server, and show what they prove. The exit code is 0 if all signatures
/// are valid.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "proof", help_triggers("-h", "--help"))]
pub(crate) struct Proof {
    /// the file that `verify --proof` wrote; - means standard input
    #[argh(positional)]
    file: String,
    /// the store's public key in Base64, from an earlier proof or from its owner; without it, any key is accepted and shown
    #[argh(option, arg_name = "key")]
    public_key: Option<String>,
    /// print the results as JSON
    #[argh(switch)]
    json: bool,
}

/// Maximum length of a file: a thousand damaged versions in each of some ten thousand buckets.
const FILE_BYTES_MAX: u64 = 1 << 30;

const SHOWN: Columns<Value> = &[
    ("signature", |proof| match proof["reason"].as_str() {
        None => "valid".to_owned(),
        Some(reason) => format!("not valid: {}", terminal::plain(reason)),
    }),
    ("public key", |proof| text(&proof["public_key"])),
    ("store", |proof| text(&proof["payload"]["store_id"])),
    ("verified", |proof| verified(&proof["payload"])),
    ("result", |proof| result(&proof["payload"])),
    ("completed", |proof| match &proof["payload"]["completed_at"] {
        Value::Null => text(&proof["payload"]["signed_at"]),
        completed => text(completed),
    }),
];

fn verified(payload: &Value) -> String {
    match payload["kind"].as_str() {
        Some("object") => {
            let [bucket, key, version] = ["bucket", "key", "version_id"].map(|name| word(&payload[name]));
            format!("object {bucket}/{key}, version {version}")
        }
        Some("bucket") => format!("bucket {}", word(&payload["bucket"])),
        Some("import") => {
            format!("import from {}, part {}", word(&payload["source"]), word(&payload["part"]))
        }
        Some("backup") => format!("backup {}", word(&payload["backup"])),
        _ => text(&Value::Null),
    }
}

fn result(payload: &Value) -> String {
    match payload["kind"].as_str() {
        Some("bucket") => {
            let damaged = word(&payload["corrupt_count"]);
            let versions = payload["versions_verified"].as_u64().map(|count| counted(count, "version"));
            format!("{} verified, {damaged} damaged", versions.as_deref().unwrap_or("unknown versions"))
        }
        Some("backup") => format!("copied, {} damaged", word(&payload["damaged"])),
        Some("import") => match payload["results"]["differences"].as_u64() {
            Some(count) => counted(count, "difference"),
            None => format!("{} of this part", counted(listed(payload), "difference")),
        },
        _ => words(&payload["status"]),
    }
}

/// Returns the number of differences that a part of a report lists.
fn listed(payload: &Value) -> u64 {
    payload["differences"].as_array().map_or(0, Vec::len) as u64
}

impl Proof {
    /// Prints each proof. Fails if a signature is not valid.
    pub(super) fn run(&self) -> Outcome {
        let is_stdin = self.file == "-";
        let named = if is_stdin { "standard input" } else { &self.file };
        let failed = |error: String| Failure::Failed(format!("{named} could not be read: {error}"));
        let mut content = String::new();
        let source: Box<dyn Read> = if is_stdin {
            Box::new(std::io::stdin())
        } else {
            Box::new(File::open(&self.file).map_err(|error| failed(error.to_string()))?)
        };
        let read = source.take(FILE_BYTES_MAX + 1).read_to_string(&mut content);
        read.map_err(|error| failed(error.to_string()))?;
        if content.len() as u64 > FILE_BYTES_MAX {
            return Err(failed(format!("it is longer than {FILE_BYTES_MAX} bytes")));
        }
        let document: Value =
            serde_json::from_str(&content).map_err(|error| failed(format!("it is not JSON: {error}")))?;
        let proofs = match document["proofs"].as_array() {
            Some(proofs) => proofs.as_slice(),
            None => std::slice::from_ref(&document),
        };
        if proofs.is_empty() {
            return Err(failed("it contains no proofs".to_owned()));
        }
        let checked: Vec<Value> = proofs
            .iter()
            .map(|proof| {
                let reason = check_proof(proof, self.public_key.as_deref()).err();
                json!({
                    "valid": reason.is_none(), "reason": reason,
                    "public_key": proof["public_key"], "payload": proof["payload"],
                })
            })
            .collect();
        let wrong = checked.iter().filter(|one| one["valid"] == false).count();
        output::print(&if self.json {
            terminal::json(&json!({"valid": wrong == 0, "proofs": checked}))
        } else {
            checked.iter().map(|one| record(SHOWN, one)).collect::<Vec<_>>().join("\n")
        })?;
        if wrong == 0 {
            Ok(())
        } else {
            let are = if wrong == 1 { "is" } else { "are" };
            Err(format!("{wrong} of {} {are} not valid", counted(checked.len() as u64, "signature")).into())
        }
    }
}

/// Checks one proof.
///
/// # Errors
/// The problem of the proof, as a sentence.
pub(crate) fn check_proof(proof: &Value, expected_key: Option<&str>) -> Result<(), &'static str> {
    let decoded = |name: &str| STANDARD.decode(proof[name].as_str()?).ok();
    if !proof["payload"].is_object() || proof["algorithm"] != "ed25519" {
        return Err("it is not a proof of this program");
    }
    let key = decoded("public_key").ok_or("the public key is not Base64")?;
    let signature = decoded("signature").ok_or("the signature is not Base64")?;
    if expected_key.is_some_and(|expected| STANDARD.decode(expected).ok() != Some(key.clone())) {
        return Err("another key than the given one signed it");
    }
    // Objects are sorted by the bytes of their names, so this is the canonical form.
    let message = proof["payload"].to_string();
    let verified = UnparsedPublicKey::new(&ED25519, &key).verify(message.as_bytes(), &signature);
    verified.map_err(|_| "payload and signature do not match")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{Ed25519KeyPair, KeyPair};

    #[test]
    fn only_an_unchanged_proof_of_the_expected_key_is_valid() {
        // The canonical form of docs/management-api.md, not the output of a library.
        let message = "{\"a\u{e4}\":\"\\u0001\\n\\\"\\\\ \u{e4}\u{7f}\",\"b\":[1,{\"a\":true,\"z\":null}],\"kind\":\"bucket\"}";
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a key");
        let key = STANDARD.encode(pair.public_key().as_ref());
        let payload = json!({"kind": "bucket", "b": [1, {"z": null, "a": true}], "a\u{e4}": "\u{1}\n\"\\ \u{e4}\u{7f}"});
        let signature = STANDARD.encode(pair.sign(message.as_bytes()));
        let proof =
            json!({"payload": payload, "algorithm": "ed25519", "public_key": key, "signature": signature});
        assert_eq!(check_proof(&proof, None), Ok(()));
        assert_eq!(check_proof(&proof, Some(&key)), Ok(()));
        let other = STANDARD.encode([1; 32]);
        assert!(check_proof(&proof, Some(&other)).is_err() && check_proof(&proof, Some("x")).is_err());
        for (name, value) in [
            ("payload", json!({"kind": "bucket"})),
            ("payload", json!([])),
            ("algorithm", json!("none")),
            ("public_key", json!(other)),
            ("signature", json!(STANDARD.encode([0; 64]))),
            ("signature", json!("?")),
            ("signature", Value::Null),
        ] {
            let mut changed = proof.clone();
            changed[name] = value;
            assert!(check_proof(&changed, None).is_err(), "{name}");
        }
    }
}
