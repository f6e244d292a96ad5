//! `cairn verify store`: verifies every bucket, one after the other.

use cairn_api::{Bucket, BucketList, VerifiedBucket};
use cairn_http1::encode_strict;
use serde_json::json;

use super::verification::{damage_text, proof_file, store_proofs, verify};
use crate::client::{Request, read};
use crate::commands::macros::command;
use crate::commands::parallel::Batch;
use crate::commands::resources::BUCKETS;
use crate::failure::{Failure, Outcome};
use crate::output::new_file::OutputPath;
use crate::output::table::{Columns, bytes, labelled, table, text};
use crate::quantity::bytes_text;

command! {
    /// Verify every version of every object in all buckets.
    struct Store("store") {
        /// the file for the signed proofs (JSON), one for each bucket
        #[argh(option, arg_name = "file")]
        proof: Option<OutputPath>,
    }
}

const BY_BUCKET: Columns<VerifiedBucket> = &[
    ("bucket", |found| text(&found.bucket)),
    ("versions", |found| text(&found.versions_verified)),
    ("size", |found| bytes(&found.bytes_verified)),
    ("damaged", |found| text(&found.corrupt_count)),
];

impl Store {
    /// Prints the results and writes the proofs. Fails if anything is damaged or a bucket was refused.
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        let file = self.proof.as_ref().map(proof_file).transpose()?;
        let BucketList { buckets } = read(&client.call(&Request::get(BUCKETS.path))?)?;
        let (mut bodies, mut found, mut proofs) = (Vec::new(), Vec::<VerifiedBucket>::new(), Vec::new());
        let mut batch = Batch::default();
        for Bucket { name, .. } in &buckets {
            let path = format!("/api/v1/verify/buckets/{}", encode_strict(&**name));
            match verify(&client, &path, name, None) {
                Ok(mut body) => {
                    found.push(read(&body)?);
                    proofs.push(body["proof"].take());
                    bodies.push(body);
                }
                Err(failure @ Failure::Failed(_)) => batch.refuse(name, &failure),
                Err(failure) => return Err(failure),
            }
        }
        let sum = |number: fn(&VerifiedBucket) -> u64| found.iter().map(number).fold(0, u64::saturating_add);
        let damaged = sum(|one| one.corrupt_count);
        let (versions, bytes) = (sum(|one| one.versions_verified), sum(|one| one.bytes_verified));
        let all = json!({
            "buckets_verified": found.len(),
            "versions_verified": versions,
            "bytes_verified": bytes,
            "corrupt_count": damaged,
            "refused": batch.refused,
            "buckets": bodies,
        });
        let printed = client.print(&all, || {
            let damage: String = found.iter().map(damage_text).collect();
            let totals = [
                ("buckets verified", found.len().to_string()),
                ("versions verified", versions.to_string()),
                ("size verified", bytes_text(bytes)),
                ("damaged versions", damaged.to_string()),
                ("buckets refused", batch.refused.to_string()),
            ];
            table(BY_BUCKET, &found)
                + &damage
                + "\n"
                + &labelled(&totals.map(|(label, text)| (label.to_owned(), text)))
        });
        printed.and(file.map_or(Ok(()), |file| store_proofs(file, &json!({"proofs": proofs}))))?;
        match damaged {
            0 => batch.result("bucket", "verified"),
            count => Err(format!("damaged versions: {count}").into()),
        }
    }
}
