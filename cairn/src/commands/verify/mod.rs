//! `cairn verify`: makes a server verify stored data against its checksums, and shows the progress.

mod proof;
mod store;
mod verification;

use cairn_api::{VerifiedBucket, VerifiedObject};
use cairn_http1::{encode_path, encode_strict};

use crate::client::read;
use crate::commands::macros::{command, noun};
use crate::failure::Outcome;
use crate::output::new_file::OutputPath;
use crate::output::table::{Columns, bytes, record, text, words};
use crate::terminal::plain;
use proof::Proof;
pub(crate) use proof::check_proof;
use store::Store;
use verification::{damage_text, proof_file, store_proof, verify};

noun! {
    /// Verify stored data: the server reads it from its device and checks it. The exit code is 0 if nothing is damaged. Or
    /// check a proof without a server.
    struct Verify("verify"): VerifyCommand { Store, Bucket, Object, Proof }
}

command! {
    /// Verify every version of every object in a bucket.
    struct Bucket("bucket") {
        /// the bucket's name
        #[argh(positional)]
        bucket: String,
        /// the file for the signed proof (JSON)
        #[argh(option, arg_name = "file")]
        proof: Option<OutputPath>,
    }
}

command! {
    /// Verify one object.
    struct Object("object") {
        /// the bucket's name
        #[argh(positional)]
        bucket: String,
        /// the object's key
        #[argh(positional)]
        key: String,
        /// the version (default: the current one)
        #[argh(option, arg_name = "id")]
        version_id: Option<String>,
        /// the file for the signed proof (JSON)
        #[argh(option, arg_name = "file")]
        proof: Option<OutputPath>,
    }
}

impl Bucket {
    /// Verifies, prints the result and writes the proof. Fails if anything is damaged.
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let path = format!("/api/v1/verify/buckets/{}", encode_strict(&self.bucket));
        let proof = self.proof.as_ref().map(proof_file).transpose()?;
        let body = verify(&client, &path, &self.bucket, None)?;
        let found: VerifiedBucket = read(&body)?;
        let printed = client.print(&body, || record(BUCKET, &found) + &damage_text(&found));
        printed.and(proof.map_or(Ok(()), |file| store_proof(file, &body)))?;
        match found.corrupt_count {
            0 => Ok(()),
            count => Err(format!("damaged versions: {count}").into()),
        }
    }
}

impl Object {
    /// Like the verification of a bucket, for one version.
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let (bucket, key) = (encode_strict(&self.bucket), encode_path(&self.key));
        let mut path = format!("/api/v1/verify/objects/{bucket}/{key}");
        if let Some(version) = &self.version_id {
            path += &format!("?version_id={}", encode_strict(version));
        }
        let proof = self.proof.as_ref().map(proof_file).transpose()?;
        let body = verify(&client, &path, &self.bucket, Some(&self.key))?;
        let found: VerifiedObject = read(&body)?;
        let printed = client.print(&body, || record(OBJECT, &found));
        printed.and(proof.map_or(Ok(()), |file| store_proof(file, &body)))?;
        match &*found.status {
            "ok" => Ok(()),
            status => Err(format!("the object is {}", plain(status)).into()),
        }
    }
}

const OBJECT: Columns<VerifiedObject> = &[
    ("result", |found| words(&found.status)),
    ("version id", |found| text(&found.version_id)),
    ("size", |found| bytes(&found.size)),
    ("blocks checked", |found| text(&found.blocks_checked)),
    ("damage", |found| text(&found.detail)),
];

const BUCKET: Columns<VerifiedBucket> = &[
    ("versions verified", |found| text(&found.versions_verified)),
    ("size verified", |found| bytes(&found.bytes_verified)),
    ("damaged versions", |found| text(&found.corrupt_count)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_is_shown_with_what_is_known_of_it() {
        let proof = json!({"payload": {}, "algorithm": "ed25519", "public_key": "", "signature": ""});
        let body = json!({
            "bucket": "b", "key": "k", "status": "ok", "version_id": "7", "size": 5, "blocks_checked": 1, "detail": null,
            "proof": proof,
        });
        let expected = "result:         ok\nversion id:     7\nsize:           5 B\nblocks checked: 1\ndamage:         -\n";
        assert_eq!(record(OBJECT, &read(&body).expect("a verification")), expected);
    }
}
