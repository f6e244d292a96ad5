//! `cairn verify store`: verifies every bucket, one after the other.

use cairn_http1::encode_strict;
use serde_json::json;

use super::verification::{damage_text, proof_file, store_proofs, verify};
use crate::client::{Request, rows};
use crate::commands::macros::command;
use crate::commands::parallel::Batch;
use crate::failure::{Failure, Outcome};
use crate::output::table::{Columns, bytes, record, table, text};

command! {
    /// Verify every version of every object in all buckets.
    struct Store("store") {
        /// where to write the signed proofs, one for each bucket (JSON)
        #[argh(option, arg_name = "file")]
        proof: Option<String>,
    }
}

const BY_BUCKET: Columns = &[
    ("bucket", |found| text(&found["bucket"])),
    ("versions", |found| text(&found["versions_verified"])),
    ("size", |found| bytes(&found["bytes_verified"])),
    ("damaged", |found| text(&found["corrupt_count"])),
];

const TOTALS: Columns = &[
    ("buckets verified", |all| text(&all["buckets_verified"])),
    ("versions verified", |all| text(&all["versions_verified"])),
    ("size verified", |all| bytes(&all["bytes_verified"])),
    ("damaged versions", |all| text(&all["corrupt_count"])),
    ("buckets refused", |all| text(&all["refused"])),
];

impl Store {
    /// Prints the results and writes the proofs. Fails if anything is damaged or a bucket was refused.
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        let file = self.proof.as_deref().map(proof_file).transpose()?;
        let body = client.call(&Request::get("/api/v1/buckets"))?;
        let (mut found, mut proofs, mut batch) = (Vec::new(), Vec::new(), Batch::default());
        for bucket in rows(&body, "buckets")? {
            let name = bucket["name"].as_str().ok_or("the response contains a bucket without a name")?;
            let path = format!("/api/v1/verify/buckets/{}", encode_strict(name));
            match verify(&client, &path, name, None) {
                Ok(mut result) => {
                    proofs.push(result["proof"].take());
                    found.push(result);
                }
                Err(failure @ Failure::Failed(_)) => batch.refuse(name, &failure),
                Err(failure) => return Err(failure),
            }
        }
        let sum = |name: &str| found.iter().filter_map(|one| one[name].as_u64()).fold(0, u64::saturating_add);
        let damaged = sum("corrupt_count");
        let all = json!({
            "buckets_verified": found.len(),
            "versions_verified": sum("versions_verified"),
            "bytes_verified": sum("bytes_verified"),
            "corrupt_count": damaged,
            "refused": batch.refused,
            "buckets": found,
        });
        let printed = client.print(&all, || {
            let damage: String = found.iter().map(damage_text).collect();
            table(BY_BUCKET, &found) + &damage + "\n" + &record(TOTALS, &all)
        });
        printed.and(file.map_or(Ok(()), |file| store_proofs(file, &json!({"proofs": proofs}))))?;
        match damaged {
            0 => batch.result("bucket", "verified"),
            count => Err(format!("damaged versions: {count}").into()),
        }
    }
}
