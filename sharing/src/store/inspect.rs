//! Inspection of the records: every record can be read, and the indexes agree with the links.

use super::record::{self, LinkRecord, StoredToken, Usage, id_of};
use super::state::LinkState;
use crate::error::LinkError;
use crate::limits::FINDINGS_MAX;
use crate::types::embed::Embed;
use crate::types::link::{Link, LinkKind};
use crate::types::share::Share;
use cairn_lmdb::{ReadTxn, Table};
use cairn_tables::StoreFailure;

/// The number of records after which an inspection looks whether somebody still waits for it.
const RECORDS_BETWEEN_CHECKS: u64 = 1024;

/// Something wrong with a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkFinding {
    /// The bucket of the link, if it is known.
    pub bucket: Option<String>,
    /// The object's key, if it is known.
    pub key: Option<String>,
    /// The problem, for people.
    pub detail: String,
}

/// The report of an examination so far.
struct Report<'w> {
    is_wanted: &'w dyn Fn() -> bool,
    records: u64,
    findings: Vec<LinkFinding>,
}

impl Report<'_> {
    /// Counts a record.
    fn examined(&mut self) -> Result<(), LinkError> {
        self.records += 1;
        let is_wanted = !self.records.is_multiple_of(RECORDS_BETWEEN_CHECKS) || (self.is_wanted)();
        if is_wanted { Ok(()) } else { Err(StoreFailure::Closing.into()) }
    }

    fn found(&mut self, link: Option<&Link>, detail: String) {
        if self.findings.len() < FINDINGS_MAX {
            let bucket = link.map(|link| link.object.bucket.to_string());
            let key = link.map(|link| link.object.key.to_string());
            self.findings.push(LinkFinding { bucket, key, detail });
        }
    }
}

impl LinkState {
    /// Examines every record. Returns the number of records, and what is wrong with them, at most [`FINDINGS_MAX`].
    /// Blocks.
    ///
    /// # Errors
    /// Those of LMDB, and [`StoreFailure::Closing`] when it is no longer wanted.
    pub(crate) fn inspect(&self, is_wanted: &dyn Fn() -> bool) -> Result<(u64, Vec<LinkFinding>), LinkError> {
        let snapshot = Snapshot { shared: self, txn: self.store.read()? };
        let mut report = Report { is_wanted, records: 0, findings: Vec::new() };
        snapshot.links::<Share>(&mut report)?;
        snapshot.links::<Embed>(&mut report)?;
        snapshot.tokens(&mut report)?;
        for kind in LinkKind::ALL {
            let tables = self.store.of(kind);
            snapshot.index(&mut report, kind, tables.by_object, "index of objects")?;
            snapshot.index(&mut report, kind, tables.by_bucket, "index of buckets")?;
            snapshot.usage(&mut report, kind)?;
        }
        Ok((report.records, report.findings))
    }
}

/// The state that is inspected.
struct Snapshot<'s> {
    shared: &'s LinkState,
    txn: ReadTxn<'s>,
}

impl Snapshot<'_> {
    fn exists(&self, table: Table, key: &[u8]) -> bool {
        matches!(self.txn.get(table, key), Ok(Some(_)))
    }

    fn links<T: LinkRecord>(&self, report: &mut Report<'_>) -> Result<(), LinkError> {
        let name = T::KIND.name();
        for entry in self.txn.scan(self.shared.store.of(T::KIND).links, &[])? {
            report.examined()?;
            let (key, record) = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    report.found(None, format!("a record of a {name} cannot be read: {error}"));
                    continue;
                }
            };
            let decoded = id_of(key).and_then(|id| record::decode::<T>(id, record.version, record.body));
            match decoded {
                Some((link, token)) => {
                    for what in self.contradictions::<T>(link.link(), &token) {
                        let id = link.link().id;
                        report.found(Some(link.link()), format!("{name} {id}: {what}"));
                    }
                }
                None => {
                    let id = hex::encode(key);
                    report.found(None, format!("the record of {name} {id} has an unknown form"));
                }
            }
        }
        Ok(())
    }

    /// Returns how the other records contradict that of a link.
    fn contradictions<T: LinkRecord>(&self, link: &Link, token: &StoredToken) -> Vec<&'static str> {
        let LinkState { store, sealing, .. } = self.shared;
        let (tables, object) = (store.of(T::KIND), &link.object);
        let opened = sealing.open(T::KIND, link.id, &token.sealed);
        let checks = [
            (
                opened.is_some_and(|opened| opened.hash() == token.hash),
                "its sealed token cannot be opened, or is another one",
            ),
            (self.exists(store.tokens, &token.hash.0), "its token is not in the index of tokens"),
            (
                self.exists(tables.by_object, &record::object_key(object, link.id)),
                "it is not in the index of objects",
            ),
            (
                self.exists(tables.by_bucket, &record::bucket_key(object.bucket_id, link.id)),
                "it is not in the index of buckets",
            ),
        ];
        checks.into_iter().filter(|(is_right, _)| !is_right).map(|(_, what)| what).collect()
    }

    fn tokens(&self, report: &mut Report<'_>) -> Result<(), LinkError> {
        let store = &self.shared.store;
        for entry in self.txn.scan(store.tokens, &[])? {
            report.examined()?;
            let target =
                entry.ok().and_then(|(_, record)| record::decode_token_body(record.version, record.body));
            if !target.is_some_and(|(kind, id)| self.exists(store.of(kind).links, &id.0)) {
                report.found(None, "an entry of the index of tokens belongs to no link".to_owned());
            }
        }
        Ok(())
    }

    fn index(
        &self,
        report: &mut Report<'_>,
        kind: LinkKind,
        table: Table,
        name: &str,
    ) -> Result<(), LinkError> {
        let links = self.shared.store.of(kind).links;
        for key in self.txn.keys(table, &[])? {
            report.examined()?;
            let key = key?;
            if !id_of(key).is_some_and(|id| self.exists(links, &id.0)) {
                report.found(None, format!("an entry of the {name} belongs to no {}", kind.name()));
            }
        }
        Ok(())
    }

    fn usage(&self, report: &mut Report<'_>, kind: LinkKind) -> Result<(), LinkError> {
        let tables = self.shared.store.of(kind);
        for entry in self.txn.scan(tables.usage, &[])? {
            report.examined()?;
            let read = entry.ok().filter(|(_, record)| Usage::decode(record.version, record.body).is_some());
            if !read.is_some_and(|(key, _)| self.exists(tables.links, key)) {
                let name = kind.name();
                report.found(None, format!("counted downloads of a {name} are damaged, or belong to none"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::LinkPolicy;
    use crate::store::{Changes, LinkLimits};
    use crate::types::link::{Disposition, LinkObject, NewLink};
    use cairn_model::{BucketName, ObjectKey, SystemClock};
    use futures_lite::future::block_on;
    use std::sync::Arc;

    fn new_link() -> NewLink {
        let object = LinkObject {
            bucket: BucketName::parse("abc").expect("a name"),
            bucket_id: 7,
            key: ObjectKey::parse("k").expect("a key"),
            version: None,
        };
        NewLink { object, label: String::new(), created_by: "root".to_owned(), expires_at: None }
    }

    /// Each record of a link is removed in turn.
    #[test]
    fn a_missing_record_is_found() {
        let folder = cairn_tables::testing::unmade_store();
        let policy = LinkPolicy::default();
        let opened = crate::store::open(folder.path(), [7; 16], b"master", policy, Arc::new(SystemClock));
        let (shared, writer) = opened.expect("opens");
        let create = || {
            let make = |link| Share {
                link,
                password: None,
                disposition: Disposition::Inline,
                maximum_downloads: None,
                author: None,
            };
            let create = move |changes: &mut Changes| changes.create(new_link(), LinkLimits::ROLES, make);
            block_on(writer.change(create)).expect("created")
        };
        let findings = || {
            let (_, findings) = shared.inspect(&|| true).expect("inspected");
            findings.into_iter().map(|finding| finding.detail).collect::<Vec<_>>()
        };
        let remove = |table: Table, key: &[u8]| {
            let mut txn = shared.store.tables.environment().write().expect("begins");
            assert!(txn.remove(table, key).expect("removed"));
            txn.commit().expect("commits");
        };
        let (tables, tokens) = (shared.store.of(LinkKind::Share), shared.store.tokens);
        for part in 0..4 {
            let (share, token) = create();
            let id = share.link.id;
            assert_eq!(findings(), Vec::<String>::new());
            let object_key = record::object_key(&share.link.object, id);
            let bucket_key = record::bucket_key(7, id);
            let records: [(Table, &[u8], &str); 4] = [
                (tokens, &token.hash().0, "not in the index of tokens"),
                (tables.by_object, &object_key, "not in the index of objects"),
                (tables.by_bucket, &bucket_key, "not in the index of buckets"),
                (tables.links, &id.0, "belongs to no"),
            ];
            let (table, key, expected) = records[part];
            remove(table, key);
            let found = findings();
            assert!(!found.is_empty() && found.iter().all(|detail| detail.contains(expected)), "{found:?}");
            for (number, (table, key, _)) in records.into_iter().enumerate() {
                if number != part {
                    remove(table, key);
                }
            }
        }
        assert!(shared.inspect(&|| false).is_ok(), "few records are examined without a look");
        writer.close();
    }
}
