//! Lists of links: those of an object, and pages over all of them.

use super::record::{self, LinkRecord, id_of};
use super::state::LinkState;
use crate::error::LinkError;
use crate::limits::{LINKS_PER_OBJECT_MAX, PAGE_RECORDS_READ_MAX, TXN_RECORDS_READ_MAX};
use crate::types::author::Author;
use crate::types::id::{ID_BYTES, LinkId};
use crate::types::link::{LinkKind, LinkObject, LinkStatus};

/// A query for a page of links. The newest come first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkQuery {
    /// Only links of the bucket with this number.
    pub bucket_id: Option<u64>,
    /// Only links with this status.
    pub status: Option<LinkStatus>,
    /// Only links of this creator.
    pub created_by: Option<String>,
    /// Only links that this member created.
    pub author: Option<Author>,
    /// Only links before this one: where the last page ended.
    pub before: Option<LinkId>,
    /// Most links of the page.
    pub limit: usize,
}

/// A page of links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkPage<T> {
    /// The links, the newest first. There may be fewer than the limit although more follow.
    pub links: Vec<T>,
    /// The start of the next page; `None`: this is the last one.
    pub next: Option<LinkId>,
}

impl LinkState {
    /// Returns the ids of an object's links, the oldest first, at most one more than are allowed.
    pub(super) fn ids_of_object(
        &self,
        kind: LinkKind,
        object: &LinkObject,
    ) -> Result<Vec<LinkId>, LinkError> {
        let prefix = record::object_prefix(object);
        let txn = self.store.read()?;
        let mut ids = Vec::new();
        for key in txn.keys(self.store.of(kind).by_object, &prefix)? {
            let key = key?;
            if !key.starts_with(&prefix) || ids.len() > LINKS_PER_OBJECT_MAX {
                break;
            }
            ids.extend(id_of(key));
        }
        Ok(ids)
    }

    /// Returns the links of an object, the newest first. Blocks for up to a millisecond or two.
    pub(crate) fn links_of_object<T: LinkRecord>(&self, object: &LinkObject) -> Result<Vec<T>, LinkError> {
        let mut links = Vec::new();
        for id in self.ids_of_object(T::KIND, object)?.into_iter().rev() {
            // One that was deleted in the meantime is left out, and a key with the same hash is another object.
            links.extend(self.get::<T>(id)?.filter(|link| link.link().object.key == object.key));
        }
        Ok(links)
    }

    /// Returns a page of links. Reads a bounded number of records. Blocks.
    pub(crate) fn page<T: LinkRecord>(&self, query: &LinkQuery) -> Result<LinkPage<T>, LinkError> {
        let mut page = LinkPage { links: Vec::new(), next: query.before };
        let mut examined = 0;
        while examined < PAGE_RECORDS_READ_MAX {
            let ids = self.ids_before(T::KIND, query.bucket_id, page.next)?;
            let is_last = ids.len() < TXN_RECORDS_READ_MAX;
            for id in ids {
                examined += 1;
                if let Some(link) = self.get::<T>(id)?.filter(|link| self.matches(query, link)) {
                    if page.links.len() >= query.limit {
                        // The page is full and another link matches, so there is a next page.
                        return Ok(page);
                    }
                    page.links.push(link);
                }
                page.next = Some(id);
            }
            if is_last {
                page.next = None;
                return Ok(page);
            }
        }
        Ok(page)
    }

    fn matches<T: LinkRecord>(&self, query: &LinkQuery, link: &T) -> bool {
        query.status.is_none_or(|status| link.status(self.now()) == status)
            && query.created_by.as_ref().is_none_or(|creator| *creator == link.link().created_by)
            && query.author.as_ref().is_none_or(|member| link.is_of(member))
    }

    /// Returns the ids before one, the greatest first.
    fn ids_before(
        &self,
        kind: LinkKind,
        bucket_id: Option<u64>,
        before: Option<LinkId>,
    ) -> Result<Vec<LinkId>, LinkError> {
        let tables = self.store.of(kind);
        let (table, prefix) = match bucket_id {
            Some(bucket_id) => (tables.by_bucket, bucket_id.to_be_bytes().to_vec()),
            None => (tables.links, Vec::new()),
        };
        // No id is as great as this one: it would have another version.
        let end = [&prefix[..], &before.map_or([0xFF; ID_BYTES], |id| id.0)].concat();
        let txn = self.store.read()?;
        let mut ids = Vec::new();
        for item in txn.scan_reverse(table, &end)? {
            let (key, _) = item?;
            if !key.starts_with(&prefix) || ids.len() >= TXN_RECORDS_READ_MAX {
                break;
            }
            ids.extend(id_of(key));
        }
        Ok(ids)
    }
}
