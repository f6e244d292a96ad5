//! Value types that several crates share: names, keys, entity tags, version ids, patterns of keys, texts to find, time,
//! calendar, networks, metrics. Also the reader of JSON from clients.
//!
//! Names are validated where they enter the program and trusted afterwards. Nothing here does I/O.
#![forbid(unsafe_code)]

mod bucket_name;
pub mod calendar;
mod client_network;
mod etag;
mod glob;
mod highest_time;
mod integers;
mod ip_network;
pub mod iso8601;
pub mod json;
mod metrics;
mod named_enum;
mod object_key;
mod text_search;
mod time;
pub mod time_id;
mod version_id;
mod xml_char;

pub use bucket_name::{BUCKET_NAME_BYTES_MAX, BucketName, InvalidBucketName};
pub use client_network::client_network;
pub use etag::Etag;
pub use glob::Glob;
pub use highest_time::HighestTime;
pub use integers::{u64_of, usize_of};
pub use ip_network::IpNetwork;
pub use metrics::{Counter, DURATION_BOUNDS, DurationHistogram, Histogram, HistogramSnapshot};
pub use object_key::{InvalidObjectKey, OBJECT_KEY_BYTES_MAX, ObjectKey};
pub use text_search::TextSearch;
pub use time::{AgeLimit, Clock, SystemClock, Timestamp};
pub use version_id::{ImportedId, UploadId, VersionId, VersionName};
pub use xml_char::is_xml_char;
