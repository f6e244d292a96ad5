//! `cairn verify`: makes a server verify stored data against its checksums, and shows the progress.

mod proof;
mod store;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use cairn_http1::{encode_path, encode_strict};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use serde_json::Value;

use crate::client::{Client, Request};
use crate::commands::macros::{command, noun};
use crate::failure::{Failure, Outcome};
use crate::output::new_file::NewFile;
use crate::output::table::{Columns, bytes, record, text, words};
use crate::terminal::{plain, word};
use proof::Proof;
use store::Store;

noun! {
    /// Verify stored data: the server reads it from its device and checks it. The exit code is 0 if nothing is damaged. Or check
    /// a proof without a server.
    struct Verify("verify"): VerifyCommand { Store, Bucket, Object, Proof }
}

command! {
    /// Verify every version of every object in a bucket.
    struct Bucket("bucket") {
        /// the bucket's name
        #[argh(positional)]
        bucket: String,
        /// where to write the signed proof (JSON)
        #[argh(option, arg_name = "file")]
        proof: Option<String>,
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
        /// where to write the signed proof (JSON)
        #[argh(option, arg_name = "file")]
        proof: Option<String>,
    }
}

/// How often the progress is requested.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

impl Bucket {
    /// Verifies, prints the result and writes the proof. Fails if anything is damaged.
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let path = format!("/api/v1/verify/buckets/{}", encode_strict(&self.bucket));
        let proof = self.proof.as_deref().map(proof_file).transpose()?;
        let body = verify(&client, &path, &self.bucket, None)?;
        let printed = client.print(&body, || record(BUCKET, &body) + &damage_text(&body));
        printed.and(proof.map_or(Ok(()), |file| store_proof(file, &body)))?;
        match body["corrupt_count"].as_u64() {
            Some(0) => Ok(()),
            Some(count) => Err(format!("damaged versions: {count}").into()),
            None => Err("the response is not the result of a verification".into()),
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
            // Writing to a string does not fail.
            let _ = write!(path, "?version_id={}", encode_strict(version));
        }
        let proof = self.proof.as_deref().map(proof_file).transpose()?;
        let body = verify(&client, &path, &self.bucket, Some(&self.key))?;
        let printed = client.print(&body, || record(OBJECT, &body));
        printed.and(proof.map_or(Ok(()), |file| store_proof(file, &body)))?;
        match body["status"].as_str() {
            Some("ok") => Ok(()),
            Some(status) => Err(format!("the object is {}", plain(status)).into()),
            None => Err("the response is not the result of a verification".into()),
        }
    }
}

/// Requests the verification and shows its progress until the response arrives.
fn verify(client: &Client, path: &str, bucket: &str, key: Option<&str>) -> Result<Value, Failure> {
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
        let all = body["verifications"].as_array().map_or(&[][..], Vec::as_slice);
        let mine = all.iter().find(|one| one["bucket"] == bucket && one["key"].as_str() == key);
        if let Some(mine) = mine {
            let number = |name: &str| mine[name].as_u64().unwrap_or(0);
            bar.set_length(number("bytes_expected").max(number("bytes_verified")).max(1));
            bar.set_position(number("bytes_verified"));
            bar.set_message(format!(
                "{} versions, {}, {} damaged",
                number("versions_verified"),
                HumanBytes(number("bytes_verified")),
                number("corrupt_versions")
            ));
        }
    }
    bar.finish_and_clear();
}

/// The file of a proof. It is opened before the verification, which may take days, so that an unwritable file is reported at
/// once.
fn proof_file(path: &str) -> Result<NewFile, Failure> {
    NewFile::create(Path::new(path)).map_err(|error| not_written(Path::new(path), error))
}

/// Writes the proof from a response, and gives the file its final name.
fn store_proof(file: NewFile, body: &Value) -> Outcome {
    if !body["proof"].is_object() {
        return Err(not_written(file.path(), "the response contains none"));
    }
    store_proofs(file, &body["proof"])
}

/// Writes a document, and gives the file its final name.
fn store_proofs(mut file: NewFile, document: &Value) -> Outcome {
    let path = file.path().to_path_buf();
    let written = file.write_all(format!("{document:#}\n").as_bytes()).and_then(|()| file.finish());
    written.map_err(|error| not_written(&path, error))
}

fn not_written(path: &Path, why: impl std::fmt::Display) -> Failure {
    format!("the proof could not be written to {}: {why}", path.display()).into()
}

const OBJECT: Columns = &[
    ("result", |found| words(&found["status"])),
    ("version id", |found| text(&found["version_id"])),
    ("size", |found| bytes(&found["size"])),
    ("blocks checked", |found| text(&found["blocks_checked"])),
    ("damage", |found| text(&found["detail"])),
];

const BUCKET: Columns = &[
    ("versions verified", |found| text(&found["versions_verified"])),
    ("size verified", |found| bytes(&found["bytes_verified"])),
    ("damaged versions", |found| text(&found["corrupt_count"])),
];

/// Returns a line for each damaged version of a bucket.
fn damage_text(body: &Value) -> String {
    let mut text = String::new();
    let bucket = body["bucket"].as_str().map_or_else(String::new, |bucket| plain(bucket) + "/");
    let listed = body["corrupt"].as_array().map_or(&[][..], Vec::as_slice);
    for version in listed {
        let [key, id, status, detail] =
            ["key", "version_id", "status", "detail"].map(|name| word(&version[name]));
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {bucket}{key} version {id}: {status}: {detail}");
    }
    let unlisted = body["corrupt_count"].as_u64().unwrap_or(0).saturating_sub(listed.len() as u64);
    if unlisted > 0 {
        let _ = writeln!(text, "  and {unlisted} more");
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
        let body = json!({"bucket": "b", "corrupt_count": 3, "corrupt": corrupt});
        assert_eq!(damage_text(&body), "  b/a[2J version 7: corrupt: block 3\n  and 2 more\n");
        let body = json!({"status": "ok", "version_id": "7", "size": 5, "blocks_checked": 1, "detail": null});
        let expected = "result:         ok\nversion id:     7\nsize:           5 B\nblocks checked: 1\ndamage:         -\n";
        assert_eq!(record(OBJECT, &body), expected);
    }
}
