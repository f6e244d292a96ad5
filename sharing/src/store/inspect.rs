//! Inspection of the records: every record can be read, and the indexes agree with the links.

use super::record::{self, LinkRecord, Usage, id_of};
use super::state::Shared;
use crate::error::SharingError;
use crate::limits::FINDINGS_MAX;
use crate::types::embed::Embed;
use crate::types::id::LinkId;
use crate::types::link::LinkKind;
use crate::types::share::Share;
use cairn_lmdb::{ReadTxn, Table};

/// Something wrong with a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkFinding {
    /// The bucket of the link, if it is known.
    pub bucket: Option<String>,
    /// The object's key, if it is known.
    pub key: Option<String>,
    /// What is wrong, for people.
    pub detail: String,
}

impl LinkFinding {
    fn new(detail: String) -> Self {
        Self { bucket: None, key: None, detail }
    }
}

impl Shared {
    /// Examines every record. Returns the number of records, and what is wrong with them, at most [`FINDINGS_MAX`]. Blocks.
    ///
    /// # Errors
    /// Those of LMDB.
    pub(crate) fn inspect(&self) -> Result<(u64, Vec<LinkFinding>), SharingError> {
        let txn = self.store.environment.read()?;
        let mut examination = Examination { shared: self, txn, records: 0, findings: Vec::new() };
        examination.links::<Share>()?;
        examination.links::<Embed>()?;
        examination.tokens()?;
        for kind in LinkKind::ALL {
            let tables = self.store.of(kind);
            examination.index(kind, tables.by_object, "index of objects")?;
            examination.index(kind, tables.by_bucket, "index of buckets")?;
            examination.usage(kind)?;
        }
        let Examination { records, mut findings, .. } = examination;
        findings.truncate(FINDINGS_MAX);
        Ok((records, findings))
    }
}

/// An inspection of one snapshot.
struct Examination<'s> {
    shared: &'s Shared,
    txn: ReadTxn<'s>,
    records: u64,
    findings: Vec<LinkFinding>,
}

impl Examination<'_> {
    fn report(&mut self, detail: String) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(LinkFinding::new(detail));
        }
    }

    fn exists(&self, table: Table, key: &[u8]) -> bool {
        matches!(self.txn.get(table, key), Ok(Some(_)))
    }

    fn links<T: LinkRecord>(&mut self) -> Result<(), SharingError> {
        let (store, name) = (&self.shared.store, T::KIND.name());
        let tables = store.of(T::KIND);
        let mut found = Vec::new();
        for entry in self.txn.scan(tables.links, &[])? {
            self.records += 1;
            let (key, record) = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    found.push(LinkFinding::new(format!("a record of a {name} cannot be read: {error}")));
                    continue;
                }
            };
            let decoded = id_of(key).and_then(|id| record::decode::<T>(id, record.version, record.body));
            let Some((link, token)) = decoded else {
                let id = hex::encode(key);
                found.push(LinkFinding::new(format!("the record of {name} {id} has an unknown form")));
                continue;
            };
            let link = link.link();
            let wrong = [
                (
                    self.shared
                        .sealing
                        .open(T::KIND, link.id, &token.sealed)
                        .is_none_or(|open| open.hash() != token.hash),
                    "its sealed token cannot be opened",
                ),
                (!self.exists(store.tokens, &token.hash.0), "its token is not in the index of tokens"),
                (
                    !self.exists(tables.by_object, &record::object_key(&link.object, link.id)),
                    "it is not in the index of objects",
                ),
                (
                    !self.exists(tables.by_bucket, &record::bucket_key(link.object.bucket_id, link.id)),
                    "it is not in the index of buckets",
                ),
            ];
            for (_, what) in wrong.into_iter().filter(|(is_wrong, _)| *is_wrong) {
                found.push(LinkFinding {
                    bucket: Some(link.object.bucket.to_string()),
                    key: Some(link.object.key.to_string()),
                    detail: format!("{name} {}: {what}", link.id),
                });
            }
            if found.len() >= FINDINGS_MAX {
                break;
            }
        }
        self.findings.append(&mut found);
        Ok(())
    }

    fn tokens(&mut self) -> Result<(), SharingError> {
        let store = &self.shared.store;
        let mut found = Vec::new();
        for entry in self.txn.scan(store.tokens, &[])? {
            self.records += 1;
            let target =
                entry.ok().and_then(|(_, record)| record::decode_token_body(record.version, record.body));
            if !target.is_some_and(|(kind, id)| self.exists(store.of(kind).links, &id.0)) {
                found.push("an entry of the index of tokens belongs to no link".to_owned());
            }
        }
        found.into_iter().for_each(|detail| self.report(detail));
        Ok(())
    }

    fn index(&mut self, kind: LinkKind, table: Table, name: &str) -> Result<(), SharingError> {
        let links = self.shared.store.of(kind).links;
        let mut lost: Vec<LinkId> = Vec::new();
        for key in self.txn.keys(table, &[])? {
            self.records += 1;
            let id = id_of(key?);
            lost.extend(id.filter(|id| !self.exists(links, &id.0)));
        }
        for id in lost {
            self.report(format!("the {name} of {}s contains {id}, which does not exist", kind.name()));
        }
        Ok(())
    }

    fn usage(&mut self, kind: LinkKind) -> Result<(), SharingError> {
        let tables = self.shared.store.of(kind);
        let mut wrong = Vec::new();
        for entry in self.txn.scan(tables.usage, &[])? {
            self.records += 1;
            let Ok((key, record)) = entry else {
                wrong.push("unknown".to_owned());
                continue;
            };
            if Usage::decode(record.version, record.body).is_none() || !self.exists(tables.links, key) {
                wrong.push(id_of(key).map_or_else(|| hex::encode(key), |id| id.to_string()));
            }
        }
        for id in wrong {
            self.report(format!(
                "the downloads of {} {id} are damaged, or the link does not exist",
                kind.name()
            ));
        }
        Ok(())
    }
}
