//! The destination of an export: a folder, or a bucket of another store.

use std::path::PathBuf;
use std::str::FromStr;

/// The destination of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Folder(PathBuf),
    /// A bucket of another store.
    Bucket(String),
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(bucket) = text.strip_prefix("s3://") {
            let bucket = bucket.strip_suffix('/').unwrap_or(bucket);
            if bucket.is_empty() || bucket.contains('/') {
                return Err("expected s3://<bucket>: keys stay as they are".to_owned());
            }
            return Ok(Self::Bucket(bucket.to_owned()));
        }
        if text.is_empty() || text.contains("://") {
            return Err("expected a folder or s3://<bucket>".to_owned());
        }
        Ok(Self::Folder(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_a_folder_or_a_bucket() {
        for (text, bucket) in [("s3://b", "b"), ("s3://b/", "b")] {
            assert_eq!(text.parse(), Ok(Destination::Bucket(bucket.to_owned())));
        }
        for text in ["out", "/out", "./s3:/b"] {
            assert_eq!(text.parse(), Ok(Destination::Folder(text.into())));
        }
        for wrong in ["", "s3://", "s3:///", "s3://b/prefix", "http://h/b"] {
            assert!(wrong.parse::<Destination>().is_err(), "{wrong}");
        }
    }
}
