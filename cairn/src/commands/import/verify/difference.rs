//! Differences between a version at the source and the imported one.

use cairn_api::{ObjectRecord, ObjectVersion};
use cairn_http1::{iso8601_millis, parse_rfc3339_millis};
use serde::Serialize;

use crate::commands::import::target::settings_of;
use crate::commands::remote::{Checksum, Entry, Lock, Settings};

/// A difference, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    pub(crate) bucket: String,
    pub(crate) key: String,
    pub(crate) version_id: String,
    /// `missing`, `gone`, `bucket`, `marker`, `size`, `date`, `etag`, `headers`, `metadata`, `tags`, `lock`, `checksum`,
    /// `order`, `content` or `unreadable`.
    pub(crate) kind: &'static str,
    pub(crate) source: String,
    pub(crate) here: String,
}

/// The version that is compared.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) bucket: &'a str,
    pub(crate) key: &'a str,
    pub(crate) id: &'a str,
}

impl Subject<'_> {
    pub(crate) fn difference(
        self,
        kind: &'static str,
        source: impl Into<String>,
        here: impl Into<String>,
    ) -> Difference {
        let Self { bucket, key, id } = self;
        let [bucket, key, version_id] = [bucket, key, id].map(str::to_owned);
        Difference { bucket, key, version_id, kind, source: source.into(), here: here.into() }
    }

    /// Compares what both lists say: kind, size, date to the second, tag.
    pub(crate) fn listed(self, entry: &Entry, here: &ObjectVersion) -> Vec<Difference> {
        let mut found = Vec::new();
        if entry.is_marker != here.is_delete_marker {
            let what = |is_marker| if is_marker { "a delete marker" } else { "an object" };
            return vec![self.difference("marker", what(entry.is_marker), what(here.is_delete_marker))];
        }
        let date = parse_rfc3339_millis(&here.last_modified).unwrap_or_default();
        if date / 1000 != entry.modified / 1000 {
            found.push(self.difference("date", iso8601_millis(entry.modified), &*here.last_modified));
        }
        if entry.is_marker {
            return found;
        }
        if here.size != entry.size {
            found.push(self.difference("size", entry.size.to_string(), here.size.to_string()));
        }
        let etag = here.etag.as_deref().unwrap_or_default();
        // A tag of another form cannot be kept: the plan has said so.
        if entry.has_usual_tag() && etag != entry.etag {
            found.push(self.difference("etag", &entry.etag, etag));
        }
        found
    }

    /// Compares headers, metadata, tags and lock.
    pub(crate) fn stored(
        self,
        headers: &[(String, String)],
        settings: &Settings,
        here: &ObjectRecord,
    ) -> Vec<Difference> {
        let mut found = Vec::new();
        let (mut content, mut metadata) = (Vec::new(), Vec::new());
        for (name, value) in headers {
            match name.strip_prefix("x-amz-meta-") {
                Some(name) => metadata.push((name.to_owned(), value.clone())),
                None => content.push((name.clone(), value.clone())),
            }
        }
        let mut content_here: Vec<_> =
            here.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        // Every object has a type here.
        if content.iter().any(|(name, _)| name == "content-type") {
            content_here.push(("content-type".to_owned(), here.object.content_type.clone()));
        }
        let metadata_here = here.metadata.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let here_settings = settings_of(here);
        let pairs = [
            ("headers", content, content_here),
            ("metadata", metadata, metadata_here),
            ("tags", settings.tags.clone(), here_settings.tags),
        ];
        for (kind, mut source, mut here) in pairs {
            source.sort_unstable();
            here.sort_unstable();
            if source != here {
                found.push(self.difference(kind, pairs_text(&source), pairs_text(&here)));
            }
        }
        let (lock_source, lock_here) = (lock_text(&settings.lock), lock_text(&here_settings.lock));
        if lock_source != lock_here {
            found.push(self.difference("lock", lock_source, lock_here));
        }
        found
    }

    /// Compares the checksums that the source declares.
    pub(crate) fn checksums(self, source: &[Checksum], here: &ObjectRecord) -> Option<Difference> {
        let lacks = |one: &&Checksum| here.checksums.get(one.algorithm) != Some(&one.value);
        source.iter().any(|one| lacks(&one)).then(|| {
            let source: Vec<_> =
                source.iter().map(|one| (one.algorithm.to_owned(), one.value.clone())).collect();
            let here: Vec<_> =
                here.checksums.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            self.difference("checksum", pairs_text(&source), pairs_text(&here))
        })
    }
}

fn lock_text(Lock { retention, legal_hold }: &Lock) -> String {
    let retention = match retention {
        None => "no retention".to_owned(),
        Some((mode, until)) => format!("{mode} until {}", iso8601_millis(until - until % 1000)),
    };
    if *legal_hold { format!("{retention}, legal hold") } else { retention }
}

fn pairs_text(pairs: &[(String, String)]) -> String {
    let pair = |(name, value): &(String, String)| format!("{name}={value}");
    pairs.iter().map(pair).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SUBJECT: Subject<'static> = Subject { bucket: "b", key: "k", id: "1" };

    fn kinds(found: &[Difference]) -> Vec<&'static str> {
        found.iter().map(|one| one.kind).collect()
    }

    #[test]
    fn what_lists_say_is_compared_to_the_second() {
        let entry = Entry {
            key: "k".to_owned(),
            version_id: Some("1".to_owned()),
            is_marker: false,
            is_latest: true,
            etag: "900150983cd24fb0d6963f7d28e17f72".to_owned(),
            size: 3,
            modified: 1_795_694_996_878,
            has_client_key: false,
            settings: None,
        };
        let here = |changes: serde_json::Value| {
            let mut body = json!({"key": "k", "version_id": "1", "is_latest": true, "is_delete_marker": false, "size": 3,
                "etag": "900150983cd24fb0d6963f7d28e17f72", "last_modified": "2026-11-26T12:09:56.000Z", "legal_hold": false});
            for (name, value) in changes.as_object().expect("an object") {
                body[name] = value.clone();
            }
            serde_json::from_value(body).expect("a version")
        };
        assert_eq!(SUBJECT.listed(&entry, &here(json!({}))), []);
        let other = json!({"size": 4, "etag": "y", "last_modified": "2026-11-26T12:09:57.000Z"});
        assert_eq!(kinds(&SUBJECT.listed(&entry, &here(other))), ["date", "size", "etag"]);
        // A tag of another form is not kept.
        let unusual = Entry { etag: "crc64nvme-AAAA".to_owned(), ..entry.clone() };
        assert_eq!(SUBJECT.listed(&unusual, &here(json!({}))), []);
        assert_eq!(kinds(&SUBJECT.listed(&entry, &here(json!({"is_delete_marker": true})))), ["marker"]);
    }

    #[test]
    fn headers_metadata_tags_and_locks_are_compared() {
        let record = || -> ObjectRecord {
            serde_json::from_value(json!({"key": "k", "size": 3, "etag": "x", "last_modified": "2026-11-26T12:09:56.000Z",
                "content_type": "text/plain", "legal_hold": true, "metadata": {"a": "1"}, "headers": {"expires": "never"},
                "checksums": {}, "tags": [{"key": "t", "value": "1"}], "encrypted": false,
                "retention": {"mode": "GOVERNANCE", "retain_until": "2027-01-01T00:00:00.000Z"}}))
            .expect("a record")
        };
        let text = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers =
            [text("content-type", "text/plain"), text("expires", "never"), text("x-amz-meta-a", "1")];
        let lock = Lock { retention: Some(("GOVERNANCE".to_owned(), 1_798_761_600_000)), legal_hold: true };
        let settings = Settings { tags: vec![text("t", "1")], lock };
        assert_eq!(SUBJECT.stored(&headers, &settings, &record()), []);
        let other = Settings { tags: vec![text("t", "2")], lock: Lock::default() };
        assert_eq!(kinds(&SUBJECT.stored(&[], &other, &record())), ["headers", "metadata", "tags", "lock"]);
        let declared = [Checksum { algorithm: "crc32", value: "AAAAAQ==".to_owned() }];
        assert_eq!(SUBJECT.checksums(&declared, &record()).map(|one| one.kind), Some("checksum"));
        let mut same = record();
        same.checksums.insert("crc32".to_owned(), "AAAAAQ==".to_owned());
        assert_eq!(SUBJECT.checksums(&declared, &same), None);
        assert_eq!(SUBJECT.checksums(&[], &same), None);
        // A source without a type says nothing about it.
        assert_eq!(kinds(&SUBJECT.stored(&headers[1..], &settings, &record())), [""; 0]);
    }
}
