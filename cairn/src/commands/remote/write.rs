//! Writes to another store: objects, parts, delete markers.

use super::answer::{Answer, Trouble};
use super::client::{Call, Query, Remote, path};
use super::payload::Payload;
use crate::s3::xml;

/// Headers of a request, not sorted.
type Headers<'a> = [(&'a str, &'a str)];

impl Remote {
    /// Stores an object. Returns the answer, whose headers have its entity tag and version.
    pub(crate) fn put(
        &self,
        (bucket, key): (&str, &str),
        headers: &Headers<'_>,
        mut payload: Payload<'_>,
    ) -> Result<Answer, Trouble> {
        self.write("PUT", (bucket, key), &[], headers, &mut payload)
    }

    /// Deletes the current object. Returns the answer, whose headers have the version of the delete marker.
    pub(crate) fn delete(&self, (bucket, key): (&str, &str)) -> Result<Answer, Trouble> {
        self.write("DELETE", (bucket, key), &[], &[], &mut Payload::Bytes(b""))
    }

    /// Begins an upload in parts. Returns its id.
    pub(crate) fn begin_upload(
        &self,
        (bucket, key): (&str, &str),
        headers: &Headers<'_>,
    ) -> Result<String, Trouble> {
        let answer =
            self.write("POST", (bucket, key), &[("uploads", "")], headers, &mut Payload::Bytes(b""))?;
        let id = answer.into_text().ok().and_then(|document| xml::text(&document, "UploadId"));
        id.ok_or_else(|| Trouble::Wrong("the answer to CreateMultipartUpload has no id".to_owned()))
    }

    /// Stores a part of an upload.
    pub(crate) fn put_part(
        &self,
        (bucket, key): (&str, &str),
        (upload, number): (&str, u32),
        mut payload: Payload<'_>,
    ) -> Result<Answer, Trouble> {
        let number = number.to_string();
        let query = [("partNumber", number.as_str()), ("uploadId", upload)];
        self.write("PUT", (bucket, key), &query, &[], &mut payload)
    }

    /// Completes an upload with the numbers and entity tags of its parts. Returns the entity tag and the version, if the
    /// answer has one.
    pub(crate) fn complete_upload(
        &self,
        (bucket, key): (&str, &str),
        upload: &str,
        parts: &[(u32, String)],
    ) -> Result<(String, Option<String>), Trouble> {
        let part = |(number, etag): &(u32, String)| {
            format!("<Part><PartNumber>{number}</PartNumber><ETag>\"{etag}\"</ETag></Part>")
        };
        let parts: String = parts.iter().map(part).collect();
        let document = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
        let mut payload = Payload::Bytes(document.as_bytes());
        let answer = self.write("POST", (bucket, key), &[("uploadId", upload)], &[], &mut payload)?;
        let version = answer.header("x-amz-version-id").map(str::to_owned);
        let document = answer.into_text().unwrap_or_default();
        // An error can come after the head of the answer.
        match (xml::text(&document, "ETag"), xml::text(&document, "Code")) {
            (Some(etag), None) => Ok((etag.trim_matches('"').to_owned(), version)),
            (_, code) => {
                let message = xml::text(&document, "Message").unwrap_or_default();
                Err(Trouble::Refused { status: 200, code: code.unwrap_or_default(), message })
            }
        }
    }

    /// Tries once to remove an upload, also when the command ends. What stays is an unfinished upload there.
    pub(crate) fn abort_upload(&self, (bucket, key): (&str, &str), upload: &str) {
        let query = [("uploadId", upload)];
        let call =
            Call { method: "DELETE", path: path(bucket, key), query: &query, headers: &[], body_max: 0 };
        let _ = self.send(&call, &mut Payload::Bytes(b""));
    }

    fn write(
        &self,
        method: &'static str,
        (bucket, key): (&str, &str),
        query: &Query<'_>,
        headers: &Headers<'_>,
        payload: &mut Payload<'_>,
    ) -> Result<Answer, Trouble> {
        let body_max = payload.size();
        self.call_with(&Call { method, path: path(bucket, key), query, headers, body_max }, payload)
    }
}
