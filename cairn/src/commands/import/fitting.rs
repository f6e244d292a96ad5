//! Finds buckets, keys and versions of a source that cannot be imported.

use cairn_model::{BucketName, ObjectKey, VersionName};

use super::loss::Loss;
use crate::commands::remote::{Entry, Unfinished};
use crate::quantity::{bytes_text, counted};
use crate::terminal::plain;

/// Returns why a bucket cannot exist here.
pub(super) fn bucket_loss(name: &str) -> Option<Loss> {
    if BucketName::parse(name).is_ok() {
        return None;
    }
    let why = "the name is not allowed here: rename the bucket at the source, or copy it with an S3 client";
    Some(Loss::new("bucket", plain(name), why))
}

/// Returns why a version cannot be imported as it is.
pub(super) fn version_loss(bucket: &str, entry: &Entry) -> Option<Loss> {
    let name = || plain(&format!("{bucket}/{}", entry.key));
    if ObjectKey::parse(&entry.key).is_err() {
        return Some(Loss::new("key", name(), "a key has 1 to 1024 bytes here"));
    }
    if VersionName::parse(entry.id()).is_none() {
        let what = format!("{} version {}", name(), plain(entry.id()));
        return Some(Loss::new("version", what, "an id of a version has 1 to 64 of A-Z a-z 0-9 . _ - here"));
    }
    if entry.has_client_key {
        let why = "only its client has the key that decrypts it (SSE-C): copy it with that client";
        return Some(Loss::new("object", format!("{} version {}", name(), entry.id()), why));
    }
    None
}

/// Returns the loss of a key that the source cannot list as it is. If it is its real name, it comes all the same.
pub(super) fn key_loss(bucket: &str, key: &str) -> Option<Loss> {
    let why = "the source lists the key with U+FFFD, as some do for characters that XML cannot hold: it comes only if that is \
               its name; rename it at the source";
    key.contains(char::REPLACEMENT_CHARACTER)
        .then(|| Loss::new("key", plain(&format!("{bucket}/{key}")), why))
}

/// Returns the loss of unfinished uploads, which nobody could complete here.
pub(super) fn uploads_loss(
    bucket: &str,
    Unfinished { uploads, bytes, is_least }: Unfinished,
) -> Option<Loss> {
    if uploads == 0 {
        return None;
    }
    let least = if is_least { "at least " } else { "" };
    let (uploads, bytes) = (counted(uploads, "unfinished upload"), bytes_text(bytes));
    let why =
        format!("{least}{uploads} with {bytes}: they do not come along; complete them at the source first");
    Some(Loss::new("uploads", plain(bucket), why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_named() {
        let entry = |key: &str, id: &str| Entry {
            key: key.to_owned(),
            version_id: Some(id.to_owned()),
            is_marker: false,
            is_latest: true,
            etag: String::new(),
            size: 0,
            modified: 0,
            has_client_key: false,
            settings: None,
        };
        assert_eq!(version_loss("b", &entry("k", "a55f7e1a-7fd0-4355-9db9-93ee4c207557")), None);
        assert_eq!(version_loss("b", &entry("k", "null")), None);
        for (key, id, kind) in
            [(&*"k".repeat(1025), "1", "key"), ("k", "a/b", "version"), ("k", &*"1".repeat(65), "version")]
        {
            assert_eq!(version_loss("b", &entry(key, id)).map(|loss| loss.kind), Some(kind));
        }
        let encrypted = Entry { has_client_key: true, ..entry("k", "1") };
        assert_eq!(version_loss("b", &encrypted).map(|loss| loss.name).as_deref(), Some("b/k version 1"));
        assert_eq!(key_loss("b", "a\u{fffd}").map(|loss| loss.kind), Some("key"));
        assert_eq!(key_loss("b", "a"), None);
        let unfinished = Unfinished { uploads: 2, bytes: 3, is_least: true };
        let reason = uploads_loss("b", unfinished).map(|loss| loss.reason).unwrap_or_default();
        assert!(reason.starts_with("at least 2 unfinished uploads with 3"), "{reason}");
        assert_eq!(uploads_loss("b", Unfinished::default()), None);
        assert!(bucket_loss("photos").is_none() && bucket_loss("Photos_2").is_some());
    }
}
