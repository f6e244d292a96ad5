//! Pure values that two or more crates share: bucket names, object keys, entity tags, version ids, time, meters.
//!
//! Names are parsed at the edge and trusted inside. Nothing here does I/O.
#![forbid(unsafe_code)]

mod bucket_name;
mod etag;
mod meter;
mod object_key;
mod time;
mod version_id;

pub use bucket_name::{BucketName, InvalidBucketName};
pub use etag::Etag;
pub use meter::{DURATION_BOUNDS, Durations, Histogram, HistogramReading, Tally};
pub use object_key::{InvalidObjectKey, OBJECT_KEY_BYTES_MAX, ObjectKey};
pub use time::{Clock, SystemClock, Timestamp};
pub use version_id::{UploadId, VersionId, VersionName};
