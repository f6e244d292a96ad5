//! Verifications: request, progress, proof and damage.

use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use cairn_api::{CorruptVersion, VerificationProgress, VerifiedBucket};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use serde_json::Value;

use crate::client::{Client, Request, read};
use crate::failure::{Failure, Outcome};
use crate::output::new_file::{NewFile, OutputPath};
use crate::terminal::plain;

/// The interval at which the progress is requested.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Requests the verification and shows its progress until the response arrives.
pub(super) fn verify(client: &Client, path: &str, bucket: &str, key: Option<&str>) -> Result<Value, Failure> {
    let (done, waiting) = channel();
    thread::scope(|scope| {
        scope.spawn(move || show_progress(client, bucket, key, &waiting));
        let response = client.call(&Request::post(path).long_running());
        drop(done);
        response
    })
}

/// Shows a progress bar on standard error, if it is a terminal, until the other end of the channel is dropped.
fn show_progress(client: &Client, bucket: &str, key: Option<&str>, done: &Receiver<()>) {
    let template = "{wide_bar} {percent}% {msg}";
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(1).with_style(style);
    while !bar.is_hidden() && done.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        // Only the display depends on it, so a failure is ignored.
        let Ok(body) = client.call(&Request::get("/api/v1/verify/progress")) else { continue };
        let Ok(VerificationProgress { verifications }) = read(&body) else { continue };
        let mine = verifications.iter().find(|one| one.bucket == bucket && one.key.as_deref() == key);
        if let Some(mine) = mine {
            bar.set_length(mine.bytes_expected.max(mine.bytes_verified).max(1));
            bar.set_position(mine.bytes_verified);
            bar.set_message(format!(
                "{} versions, {}, {} damaged",
                mine.versions_verified,
                HumanBytes(mine.bytes_verified),
                mine.corrupt_versions
            ));
        }
    }
    bar.finish_and_clear();
}

/// The file of a proof. It is opened before the verification, which may take days, so that an unwritable file is reported at
/// once.
pub(super) fn proof_file(OutputPath(path): &OutputPath) -> Result<NewFile, Failure> {
    NewFile::create(path).map_err(|error| not_written(path, error))
}

/// Writes the proof from a response, and gives the file its final name.
pub(super) fn store_proof(file: NewFile, body: &Value) -> Outcome {
    if !body["proof"].is_object() {
        return Err(not_written(file.path(), "the response contains none"));
    }
    store_proofs(file, &body["proof"])
}

/// Writes a document, and gives the file its final name.
pub(super) fn store_proofs(mut file: NewFile, document: &Value) -> Outcome {
    let path = file.path().to_path_buf();
    let written = file.write_all(format!("{document:#}\n").as_bytes()).and_then(|()| file.finish());
    written.map_err(|error| not_written(&path, error))
}

fn not_written(path: &Path, why: impl std::fmt::Display) -> Failure {
    format!("the proof could not be written to {}: {why}", path.display()).into()
}

/// Returns a line for each damaged version of a bucket.
pub(super) fn damage_text(found: &VerifiedBucket) -> String {
    let bucket = &found.bucket;
    let line = |CorruptVersion { key, version_id, status, detail }: &CorruptVersion| {
        let detail = detail.as_deref().unwrap_or("null");
        plain(&format!("  {bucket}/{key} version {version_id}: {status}: {detail}")) + "\n"
    };
    let mut text: String = found.corrupt.iter().map(line).collect();
    let unlisted = found.corrupt_count.saturating_sub(found.corrupt.len() as u64);
    if unlisted > 0 {
        text += &format!("  and {unlisted} more\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn damage_is_listed_without_control_characters() {
        let corrupt =
            json!([{"key": "a\u{1b}[2J", "version_id": "7", "status": "corrupt", "detail": "block 3"}]);
        let proof = json!({"payload": {}, "algorithm": "ed25519", "public_key": "", "signature": ""});
        let body = json!({
            "bucket": "b", "complete": true, "versions_verified": 9, "bytes_verified": 9, "corrupt_count": 3,
            "corrupt": corrupt, "next_continuation_token": null, "proof": proof,
        });
        assert_eq!(
            damage_text(&read(&body).expect("a verification")),
            "  b/a[2J version 7: corrupt: block 3\n  and 2 more\n"
        );
    }
}
