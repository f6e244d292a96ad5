//! Lists the keys to export, each with its versions, oldest first.

use std::collections::VecDeque;

use cairn_api::{ObjectEntry, ObjectRecord, ObjectVersion};
use cairn_http1::{encode_strict, parse_rfc3339_millis};

use crate::client::pages::{OBJECTS, Pages, VERSIONS};
use crate::client::{Client, Request, read};
use crate::commands::object::place::route;
use crate::failure::Failure;

/// Versions that are handled before others are listed.
const BATCH_VERSIONS: usize = 1000;
/// Most versions of one key, which are in memory while it is exported.
const KEY_VERSIONS_MAX: usize = 1_000_000;

/// A version or delete marker in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    /// `None` for an object of a bucket that never had versioning.
    pub(super) id: Option<String>,
    pub(super) is_latest: bool,
    pub(super) is_marker: bool,
    /// Empty for a delete marker.
    pub(super) etag: String,
    pub(super) size: u64,
    pub(super) last_modified: String,
}

/// A key and its versions.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) key: String,
    /// Oldest first.
    pub(super) versions: Vec<Listed>,
}

/// A version with all its metadata.
pub(super) struct Version {
    pub(super) key: String,
    pub(super) id: Option<String>,
    pub(super) record: ObjectRecord,
    /// Runs of parts: how many, and their length. Empty if it was not uploaded in parts.
    pub(super) parts: Vec<(u64, u64)>,
}

impl Version {
    /// Reads the metadata of a listed version.
    pub(super) fn of(client: &Client, bucket: &str, key: &str, listed: &Listed) -> Result<Self, Failure> {
        let path = route(bucket, "object", key) + &query(listed.id.as_deref());
        let record: ObjectRecord = read(&client.call(&Request::get(path))?)?;
        if *record.object.etag != *listed.etag || record.object.size != listed.size {
            return Err("it was overwritten while it was exported: run the export again".into());
        }
        let mut parts: Vec<(u64, u64)> = Vec::new();
        for part in &record.parts {
            match parts.last_mut().filter(|(_, size)| *size == part.size) {
                Some((count, _)) => *count += 1,
                None => parts.push((1, part.size)),
            }
        }
        Ok(Self { key: key.to_owned(), id: listed.id.clone(), record, parts })
    }

    pub(super) fn etag(&self) -> &str {
        &self.record.object.etag
    }

    pub(super) const fn size(&self) -> u64 {
        self.record.object.size
    }

    /// Returns the date in milliseconds since the Unix epoch.
    pub(super) fn modified(&self) -> u64 {
        parse_rfc3339_millis(&self.record.object.last_modified).unwrap_or_default()
    }

    /// Returns the route of its content.
    pub(super) fn content_route(&self, bucket: &str) -> String {
        route(bucket, "object-content", &self.key) + &query(self.id.as_deref())
    }
}

fn query(version: Option<&str>) -> String {
    version.map_or_else(String::new, |version| format!("?version_id={}", encode_strict(version)))
}

/// The keys of a bucket, batch by batch.
pub(super) struct Groups<'c> {
    pages: Pages<'c>,
    versions: bool,
    /// Groups that are complete.
    ready: VecDeque<Group>,
    /// The last group, whose versions may go on in the next page, newest first.
    open: Option<Group>,
}

impl<'c> Groups<'c> {
    pub(super) fn new(client: &'c Client, bucket: &str, prefix: &str, versions: bool) -> Self {
        let list = if versions { VERSIONS } else { OBJECTS };
        let pages = Pages::of_bucket(client, list, bucket, prefix, None);
        Self { pages, versions, ready: VecDeque::new(), open: None }
    }

    /// Returns the next keys; none at the end.
    pub(super) fn next_batch(&mut self) -> Result<Vec<Group>, Failure> {
        let count = |groups: &VecDeque<Group>| groups.iter().map(|group| group.versions.len()).sum::<usize>();
        while count(&self.ready) < BATCH_VERSIONS {
            if !self.read_page()? {
                self.close();
                break;
            }
        }
        Ok(std::mem::take(&mut self.ready).into())
    }

    /// Reads a page. Returns false after the last one.
    fn read_page(&mut self) -> Result<bool, Failure> {
        if self.versions {
            let Some(page) = self.pages.next_entries::<ObjectVersion>()? else { return Ok(false) };
            for one in page {
                let etag = one.etag.map(|etag| etag.to_string()).unwrap_or_default();
                let listed = Listed {
                    id: Some(one.version_id.to_string()),
                    is_latest: one.is_latest,
                    is_marker: one.is_delete_marker,
                    etag,
                    size: one.size,
                    last_modified: one.last_modified.to_string(),
                };
                self.add(one.key.to_string(), listed)?;
            }
        } else {
            let Some(page) = self.pages.next_entries::<ObjectEntry>()? else { return Ok(false) };
            for one in page {
                let listed = Listed {
                    id: one.version_id.map(|id| id.to_string()),
                    is_latest: true,
                    is_marker: false,
                    etag: one.etag.to_string(),
                    size: one.size,
                    last_modified: one.last_modified.to_string(),
                };
                self.add(one.key.to_string(), listed)?;
            }
        }
        Ok(true)
    }

    fn add(&mut self, key: String, listed: Listed) -> Result<(), Failure> {
        match &mut self.open {
            Some(group) if group.key == key => {
                if group.versions.len() >= KEY_VERSIONS_MAX {
                    let text = format!("a key has more than {KEY_VERSIONS_MAX} versions");
                    return Err(text.into());
                }
                group.versions.push(listed);
            }
            _ => {
                self.close();
                self.open = Some(Group { key, versions: vec![listed] });
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        if let Some(mut group) = self.open.take() {
            group.versions.reverse();
            self.ready.push_back(group);
        }
    }
}
