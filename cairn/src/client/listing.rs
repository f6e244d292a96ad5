//! Reads a list of a bucket page by page.

use cairn_http1::encode_strict;
use serde_json::Value;

use crate::client::{Client, Request, rows};
use crate::failure::Failure;

/// A parameter of the next page, and the member of a page that contains its value.
type Cursor = &'static [(&'static str, &'static str)];

/// One list of a bucket: the end of its route, the name of the list, and how its pages continue.
pub(crate) struct Kind {
    route: &'static str,
    pub(crate) list: &'static str,
    cursor: Cursor,
}

/// The current objects.
pub(crate) const OBJECTS: Kind =
    Kind { route: "objects", list: "objects", cursor: &[("continuation_token", "next_continuation_token")] };
/// All versions and delete markers.
pub(crate) const VERSIONS: Kind = Kind {
    route: "object-versions",
    list: "versions",
    cursor: &[("key_marker", "next_key_marker"), ("version_id_marker", "next_version_id_marker")],
};
/// All unfinished multipart uploads.
pub(crate) const UPLOADS: Kind = Kind {
    route: "multipart-uploads",
    list: "multipart_uploads",
    cursor: &[("key_marker", "next_key_marker"), ("upload_id_marker", "next_upload_id_marker")],
};

/// The pages of a list, in order.
pub(crate) struct Listing<'c> {
    client: &'c Client,
    kind: &'static Kind,
    /// The route with the parameters that all pages have.
    path: String,
    /// The parameters of the next page; `None` after the last one.
    next: Option<String>,
}

impl<'c> Listing<'c> {
    /// Starts a list of the keys that begin with a prefix. Keys with a delimiter after the prefix are grouped.
    pub(crate) fn new(
        client: &'c Client,
        kind: &'static Kind,
        bucket: &str,
        prefix: &str,
        delimiter: Option<&str>,
    ) -> Self {
        let (bucket, prefix) = (encode_strict(bucket), encode_strict(prefix));
        let delimiter =
            delimiter.map_or_else(String::new, |text| format!("&delimiter={}", encode_strict(text)));
        let path = format!("/api/v1/buckets/{bucket}/{}?prefix={prefix}{delimiter}", kind.route);
        Self { client, kind, path, next: Some(String::new()) }
    }

    /// Returns the next page: the whole response and its list. `None` after the last page.
    pub(crate) fn next_page(&mut self) -> Result<Option<(Value, Vec<Value>)>, Failure> {
        let Some(parameters) = self.next.take() else { return Ok(None) };
        let mut body = self.client.call(&Request::get(format!("{}{parameters}", self.path)))?;
        let found = rows(&body, self.kind.list)?.len();
        let mut next = String::new();
        for (parameter, member) in self.kind.cursor {
            if let Some(value) = body[member].as_str() {
                next.push_str(&format!("&{parameter}={}", encode_strict(value)));
            }
        }
        if next == parameters && !next.is_empty() {
            return Err("the server returned the same page twice".into());
        }
        self.next = Some(next).filter(|next| !next.is_empty());
        let list = body[self.kind.list].take();
        let Value::Array(list) = list else {
            unreachable!("`rows` has checked that {found} rows are a list")
        };
        Ok(Some((body, list)))
    }
}
