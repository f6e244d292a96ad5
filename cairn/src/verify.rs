//! `cairn verify`: has a server check what its device holds, and shows how far it is.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use cairn_http1::{encode_path, encode_strict};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use serde_json::Value;

use crate::arguments::{command, noun};
use crate::client::{Client, Request};
use crate::failure::{Failure, Outcome};
use crate::output::{plain, word};

noun! {
    /// Have a server read stored data from its device and check it. The exit code is 0 when nothing is damaged.
    struct Verify("verify"): VerifyCommand { VerifyBucket, VerifyObject }
}

command! {
    /// Verify every version of every object in a bucket.
    struct VerifyBucket("bucket") {
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
    struct VerifyObject("object") {
        /// the bucket's name
        #[argh(positional)]
        bucket: String,
        /// the object's key
        #[argh(positional)]
        key: String,
        /// the version; else the current one
        #[argh(option, arg_name = "id")]
        version_id: Option<String>,
        /// where to write the signed proof (JSON)
        #[argh(option, arg_name = "file")]
        proof: Option<String>,
    }
}

/// How often the progress is asked for.
const LOOK: Duration = Duration::from_millis(500);

impl VerifyBucket {
    /// Verifies, prints what was found and keeps the proof; fails when anything is damaged.
    fn run(&self) -> Outcome {
        let client = self.client();
        let path = format!("/api/v1/verify/buckets/{}", encode_strict(&self.bucket));
        let proof = self.proof.as_deref().map(ProofFile::create).transpose()?;
        let body = verify(&client, &path, &self.bucket, None)?;
        let printed = client.print(&body, || bucket_text(&body));
        printed.and(proof.map_or(Ok(()), |file| file.keep(&body)))?;
        match body["corrupt_count"].as_u64() {
            Some(0) => Ok(()),
            Some(count) => Err(format!("damaged versions: {count}").into()),
            None => Err("the answer is not one of a verification".into()),
        }
    }
}

impl VerifyObject {
    /// As of a bucket, of one version.
    fn run(&self) -> Outcome {
        let client = self.client();
        let (bucket, key) = (encode_strict(&self.bucket), encode_path(&self.key));
        let mut path = format!("/api/v1/verify/objects/{bucket}/{key}");
        if let Some(version) = &self.version_id {
            // Writing to a string does not fail.
            let _ = write!(path, "?version_id={}", encode_strict(version));
        }
        let proof = self.proof.as_deref().map(ProofFile::create).transpose()?;
        let body = verify(&client, &path, &self.bucket, Some(&self.key))?;
        let printed = client.print(&body, || object_text(&body));
        printed.and(proof.map_or(Ok(()), |file| file.keep(&body)))?;
        match body["status"].as_str() {
            Some("ok") => Ok(()),
            Some(status) => Err(format!("the object is {}", plain(status)).into()),
            None => Err("the answer is not one of a verification".into()),
        }
    }
}

/// Asks for the verification and shows its progress until it is answered.
fn verify(client: &Client, path: &str, bucket: &str, key: Option<&str>) -> Result<Value, Failure> {
    let (done, waiting) = channel();
    thread::scope(|scope| {
        scope.spawn(move || show_progress(client, bucket, key, &waiting));
        let answer = client.call(&Request::post(path).patiently());
        drop(done);
        answer
    })
}

/// Shows a bar on standard error, and only if that is a terminal, until the other end of the channel is dropped.
fn show_progress(client: &Client, bucket: &str, key: Option<&str>, done: &Receiver<()>) {
    let template = "{wide_bar} {percent}% {msg}";
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(1).with_style(style);
    while !bar.is_hidden() && done.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        // What is only for show may fail.
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

/// The file for a proof. It is opened before a verification begins, which may take days: what cannot be written is known
/// then, and what was there stays until there is something to replace it.
struct ProofFile {
    path: PathBuf,
    /// The name beside it that the file has until it is whole; none when it is a terminal, a pipe or another device.
    temporary: Option<PathBuf>,
    file: File,
}

impl ProofFile {
    fn create(path: &str) -> Result<Self, Failure> {
        let failed = |error| not_written(Path::new(path), error);
        // Behind symbolic links, which stay.
        let found = std::fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
        if std::fs::metadata(&found).is_ok_and(|there| !there.is_file()) {
            let file = File::options().write(true).open(&found).map_err(failed)?;
            return Ok(Self { path: found, temporary: None, file });
        }
        let mut temporary = found.clone().into_os_string();
        temporary.push(format!(".{}.tmp", std::process::id()));
        let file = File::options().write(true).create_new(true).open(&temporary).map_err(failed)?;
        Ok(Self { path: found, temporary: Some(temporary.into()), file })
    }

    /// Writes the proof that an answer holds, and gives the file its name.
    fn keep(mut self, body: &Value) -> Outcome {
        if !body["proof"].is_object() {
            return Err(not_written(&self.path, "the answer holds none"));
        }
        let mut written = self.file.write_all(format!("{:#}\n", body["proof"]).as_bytes());
        if let Some(temporary) = &self.temporary {
            written = written
                .and_then(|()| self.file.sync_all())
                .and_then(|()| std::fs::rename(temporary, &self.path));
        }
        written.map_err(|error| not_written(&self.path, error))?;
        self.temporary = None;
        Ok(())
    }
}

impl Drop for ProofFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // It holds nothing that anybody needs.
            let _ = std::fs::remove_file(temporary);
        }
    }
}

fn not_written(path: &Path, why: impl std::fmt::Display) -> Failure {
    format!("the proof could not be written to {}: {why}", path.display()).into()
}

fn object_text(body: &Value) -> String {
    let mut text = String::new();
    for name in ["status", "version_id", "size", "blocks_checked", "detail"] {
        if !body[name].is_null() {
            let _ = writeln!(text, "{name}: {}", word(&body[name]));
        }
    }
    text
}

fn bucket_text(body: &Value) -> String {
    let mut text = format!(
        "versions verified: {}\nbytes verified: {}\ndamaged: {}\n",
        word(&body["versions_verified"]),
        word(&body["bytes_verified"]),
        word(&body["corrupt_count"])
    );
    let listed = body["corrupt"].as_array().map_or(&[][..], Vec::as_slice);
    for version in listed {
        let [key, id, status, detail] =
            ["key", "version_id", "status", "detail"].map(|name| word(&version[name]));
        let _ = writeln!(text, "  {key} version {id}: {status}: {detail}");
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
    fn damage_is_listed_and_cannot_drive_the_terminal() {
        let corrupt =
            json!([{"key": "a\u{1b}[2J", "version_id": "7", "status": "corrupt", "detail": "block 3"}]);
        let body =
            json!({"versions_verified": 9, "bytes_verified": 70, "corrupt_count": 3, "corrupt": corrupt});
        let expected = "versions verified: 9\nbytes verified: 70\ndamaged: 3\n  a[2J version 7: corrupt: block 3\n  and 2 more\n";
        assert_eq!(bucket_text(&body), expected);
        let body = json!({"status": "ok", "version_id": "7", "size": 5, "blocks_checked": 1, "detail": null});
        assert_eq!(object_text(&body), "status: ok\nversion_id: 7\nsize: 5\nblocks_checked: 1\n");
    }
}
