//! A line of a list: key, id, fingerprints of version and settings, and what became of it, separated by tabs.

use std::fmt;

use cairn_http1::{decode, encode_path};

use crate::commands::remote::{Entry, fingerprint};

/// The state of a version in the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// It is here.
    Imported,
    /// A client has written the null version of the key here, which stays.
    Kept,
    /// It was imported, and deleted here, where it stays deleted.
    Deleted,
    /// It was imported, and is not at the source any more.
    Gone,
}

/// A version that was imported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    pub(crate) key: String,
    pub(crate) id: String,
    /// Of entity tag, size and date.
    pub(crate) version: String,
    /// Of tags and lock; empty for a delete marker.
    pub(crate) settings: String,
    pub(crate) state: State,
}

/// Returns 16 hexadecimal digits that differ if another version has the same id.
pub(crate) fn version_fingerprint(etag: &str, size: u64, modified: u64) -> String {
    fingerprint(&format!("{etag} {size} {modified}"))
}

impl Record {
    /// Returns the record of a version of which nothing is known but its entry in the list.
    pub(crate) fn of(entry: &Entry, settings: String, state: State) -> Self {
        Self {
            key: entry.key.clone(),
            id: entry.id().to_owned(),
            version: version_fingerprint(&entry.etag, entry.size, entry.modified),
            settings,
            state,
        }
    }

    /// Returns whether the entry is the version that was imported.
    pub(crate) fn is_of(&self, entry: &Entry) -> bool {
        self.id == entry.id() && self.version == version_fingerprint(&entry.etag, entry.size, entry.modified)
    }

    /// Reads a line; `None` if it is damaged.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split('\t');
        let key = decode(fields.next()?).ok()?.into_owned();
        let [id, version, settings, state] = [(); 4].map(|()| fields.next());
        let state = match state? {
            "imported" => State::Imported,
            "kept" => State::Kept,
            "deleted" => State::Deleted,
            "gone" => State::Gone,
            _ => return None,
        };
        let [id, version, settings] = [id?, version?, settings?].map(str::to_owned);
        fields.next().is_none().then_some(Self { key, id, version, settings, state })
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Imported => "imported",
            State::Kept => "kept",
            State::Deleted => "deleted",
            State::Gone => "gone",
        };
        let Self { key, id, version, settings, .. } = self;
        writeln!(f, "{}\t{id}\t{version}\t{settings}\t{state}", encode_path(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let record = Record {
            key: "a b\t\n%ü/".to_owned(),
            id: "null".to_owned(),
            version: version_fingerprint("x", 1, 2),
            settings: String::new(),
            state: State::Kept,
        };
        let line = record.to_string();
        assert_eq!(line.lines().count(), 1);
        assert_eq!(Record::parse(line.trim_end_matches('\n')), Some(record));
        for damaged in ["", "a\tnull\tx", "a\tnull\tx\ty\timporte", "a\tnull\tx\ty\timported\tz"] {
            assert_eq!(Record::parse(damaged), None, "{damaged}");
        }
    }
}
