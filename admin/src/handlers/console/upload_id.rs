//! Ids of uploads from browsers: everything that a request about the upload needs to know.
//!
//! An id is base64url of JSON: bucket, key, the engine's upload, size, and whether an existing object is kept. So nothing is
//! stored besides the engine's upload, and an upload can go on after a restart. The id gives no right: every request needs a
//! session whose role may write.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_model::UploadId;
use serde::{Deserialize, Serialize};

use crate::error::AdminError;

const MIB: u64 = 1 << 20;
/// Smallest part: large enough for few requests, and small enough for proxies and retries.
const PART_BYTES_MIN: u64 = 8 * MIB;
/// Most parts of an upload (AWS: "Amazon S3 multipart upload limits").
pub(crate) const PARTS_MAX: u64 = 10_000;

/// The content of the id of an upload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BrowserUpload {
    #[serde(rename = "b")]
    pub(crate) bucket: String,
    #[serde(rename = "k")]
    pub(crate) key: String,
    #[serde(rename = "u")]
    pub(crate) upload: String,
    /// Bytes of the file.
    #[serde(rename = "s")]
    pub(crate) size: u64,
    /// Whether an object that exists by then is kept, and the completion refused.
    #[serde(rename = "a")]
    pub(crate) if_absent: bool,
}

impl BrowserUpload {
    /// Returns the id.
    pub(crate) fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).expect("texts and numbers can be serialized"))
    }

    /// Reads an id.
    ///
    /// # Errors
    /// `NOT_FOUND`: no upload can have this id.
    pub(crate) fn decode(id: &str) -> Result<Self, AdminError> {
        let json = URL_SAFE_NO_PAD.decode(id).map_err(|_| AdminError::UploadNotFound)?;
        serde_json::from_slice(&json).map_err(|_| AdminError::UploadNotFound)
    }

    /// Returns the engine's upload.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub(crate) fn upload_id(&self) -> Result<UploadId, AdminError> {
        UploadId::parse(&self.upload).ok_or(AdminError::UploadNotFound)
    }

    /// Bytes of every part except for the last.
    pub(crate) fn part_bytes(&self) -> u64 {
        self.size.div_ceil(PARTS_MAX).next_multiple_of(MIB).max(PART_BYTES_MIN)
    }

    /// Number of parts: at least one, which is empty for an empty file.
    pub(crate) fn part_count(&self) -> u64 {
        self.size.div_ceil(self.part_bytes()).max(1)
    }

    /// Bytes of a part, if the upload has it.
    pub(crate) fn size_of(&self, number: u16) -> Option<u64> {
        let number = u64::from(number);
        if number == 0 || number > self.part_count() {
            return None;
        }
        let begin = (number - 1) * self.part_bytes();
        Some((self.size - begin).min(self.part_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_engine::limits::{OBJECT_BYTES_MAX, PAYLOAD_BYTES_MAX};

    fn upload(size: u64) -> BrowserUpload {
        let (bucket, key) = ("photos".to_owned(), "ä/🙂".to_owned());
        BrowserUpload { bucket, key, upload: UploadId(7).to_string(), size, if_absent: true }
    }

    #[test]
    fn ids_are_read_as_they_were_made() {
        let made = upload(5);
        assert_eq!(BrowserUpload::decode(&made.encode()), Ok(made.clone()));
        assert_eq!(made.upload_id(), Ok(UploadId(7)));
        for wrong in ["", "x", "e30", &made.encode()[1..]] {
            assert_eq!(BrowserUpload::decode(wrong), Err(AdminError::UploadNotFound), "{wrong}");
        }
    }

    #[test]
    fn parts_cover_the_file_and_are_never_too_many() {
        for size in
            [0, 1, PART_BYTES_MIN, PART_BYTES_MIN + 1, 5 << 30, (5 << 40) - 1, 5 << 40, OBJECT_BYTES_MAX]
        {
            let upload = upload(size);
            assert!(upload.part_count() <= PARTS_MAX, "{size}");
            let count = u16::try_from(upload.part_count()).expect("at most 10 000");
            let sizes: u64 = (1..=count).filter_map(|number| upload.size_of(number)).sum();
            assert_eq!((sizes, upload.size_of(0), upload.size_of(count + 1)), (size, None, None));
        }
        assert_eq!(upload(5 << 40).part_bytes() % MIB, 0);
        assert_eq!(upload(OBJECT_BYTES_MAX).part_bytes(), PAYLOAD_BYTES_MAX);
    }
}
