//! Removes everything that the round trip made, also after a failure.

use super::check::{Checked, Verdict};
use super::connection::Call;
use super::trip::Trip;
use crate::s3::xml;

/// Most versions and uploads that are looked for. The round trip makes fewer.
const LISTED_MAX: &str = "1000";

impl Trip<'_> {
    /// Removes objects with all their versions, uploads, and the bucket if it was made here.
    pub(super) fn remove_all(&mut self) {
        const NAME: &str = "clean-up";
        if self.keys.is_empty() && !self.owns_bucket {
            return;
        }
        // A stop ends the round trip, and leaves nothing behind, also when it comes during the removal. A second one ends the
        // program at once.
        self.connection.clean_up();
        let mut left = Vec::new();
        self.abort_uploads();
        for (key, version) in self.versions() {
            let query: Vec<(&str, &str)> =
                version.iter().map(|version| ("versionId", version.as_str())).collect();
            let call = Call::new("DELETE", &self.bucket, &key).query(&query);
            let is_gone =
                self.connection.call(&call).is_ok_and(|answer| answer.is_success() || answer.status == 404);
            if !is_gone {
                left.push(format!("{}/{key}", self.bucket));
            }
        }
        if self.owns_bucket {
            let removed = self.connection.call(&Call::new("DELETE", &self.bucket, ""));
            if !removed.is_ok_and(|answer| answer.is_success() || answer.status == 404) {
                left.push(format!("the bucket {}", self.bucket));
            }
        }
        self.checks.push(if left.is_empty() {
            Checked::ok(NAME, "everything that was made is removed")
        } else {
            let message = format!("could not be removed: {}", left.join(", "));
            Checked::new(NAME, Verdict::Failed, message)
                .fix("Remove it yourself: `cairn bucket empty` or `cairn object rm`. The credentials may not delete, or the server does not answer.")
        });
    }

    fn abort_uploads(&mut self) {
        let query = [("prefix", self.prefix.as_str()), ("uploads", "")];
        if let Ok(listed) = self.connection.call(&Call::new("GET", &self.bucket, "").query(&query)) {
            let text = listed.text();
            for upload in xml::elements(&text, "Upload") {
                if let (Some(key), Some(id)) = (upload.text_of("Key"), upload.text_of("UploadId")) {
                    self.uploads.push((key.to_owned(), id.to_owned()));
                }
            }
        }
        for (key, id) in std::mem::take(&mut self.uploads) {
            let query = [("uploadId", id.as_str())];
            // Nobody needs to know if it was completed or aborted before.
            let _ = self.connection.call(&Call::new("DELETE", &self.bucket, &key).query(&query));
        }
    }

    /// Returns all versions and delete markers below the prefix. If they cannot be listed, returns the keys.
    fn versions(&self) -> Vec<(String, Option<String>)> {
        let query = [("max-keys", LISTED_MAX), ("prefix", self.prefix.as_str()), ("versions", "")];
        let listed = self.connection.call(&Call::new("GET", &self.bucket, "").query(&query));
        let text = match listed {
            Ok(answer) if answer.is_success() => answer.text(),
            _ => return self.keys.iter().map(|key| (key.clone(), None)).collect(),
        };
        let found = ["Version", "DeleteMarker"].into_iter().flat_map(|name| xml::elements(&text, name));
        found
            .filter_map(|one| {
                Some((one.text_of("Key")?.to_owned(), one.text_of("VersionId").map(str::to_owned)))
            })
            .collect()
    }
}
