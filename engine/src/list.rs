//! Lists: a merge of the slices' sorted records, with seeks past finished common prefixes.
//!
//! A page costs in proportion to what it returns: a common prefix takes one seek in each slice, however many keys it
//! stands for. Each slice is read in one snapshot; the page holds no snapshot when it returns.

use crate::error::EngineError;
use crate::keys;
use crate::limits::LIST_STEPS_MAX;
use crate::object::{ChecksumAlgorithm, ListObjects, ListPage, ListPosition, ListedObject};
use crate::record::RecordHead;
use crate::slice::Slice;
use cairn_lmdb::{ReadTxn, Record, Scan, Table};
use cairn_model::VersionId;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// One slice's records from a place on, with the next one in hand.
struct SliceCursor<'t> {
    txn: &'t ReadTxn<'t>,
    table: Table,
    scan: Scan<'t>,
    head: Option<(&'t [u8], Record<'t>)>,
}

impl<'t> SliceCursor<'t> {
    fn seek(txn: &'t ReadTxn<'t>, table: Table, from: &[u8]) -> Result<Self, EngineError> {
        let mut cursor = Self { txn, table, scan: txn.scan(table, from)?, head: None };
        cursor.advance()?;
        Ok(cursor)
    }

    fn advance(&mut self) -> Result<(), EngineError> {
        self.head = self.scan.next().transpose()?;
        Ok(())
    }

    /// Leaves records in front of `place` behind, with a seek.
    fn skip_to(&mut self, place: &[u8]) -> Result<(), EngineError> {
        if self.head.is_some_and(|(key, _)| key < place) {
            self.scan = self.txn.scan(self.table, place)?;
            self.advance()?;
        }
        Ok(())
    }
}

/// Orders cursors by their next key, smallest first out of the heap.
struct ByKey<'t>(SliceCursor<'t>);

impl ByKey<'_> {
    fn key(&self) -> &[u8] {
        self.0.head.map_or(&[], |(key, _)| key)
    }
}

impl PartialEq for ByKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for ByKey<'_> {}
impl PartialOrd for ByKey<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for ByKey<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(self.key())
    }
}

/// The first place that a list looks at; `None`: nothing can follow.
fn first_place(bucket: u64, list: &ListObjects<'_>) -> Option<Vec<u8>> {
    let prefix = keys::prefix_of(bucket, list.prefix);
    match &list.after {
        None => Some(prefix),
        Some(ListPosition::AfterKey(key)) => Some(prefix.max(keys::after_key(bucket, key))),
        Some(ListPosition::AfterPrefix(before)) => {
            keys::after_prefix(bucket, before).map(|place| prefix.max(place))
        }
    }
}

/// The common prefix of a key, if the delimiter occurs behind the list's prefix.
fn common_prefix<'k>(key: &'k [u8], list: &ListObjects<'_>) -> Option<&'k [u8]> {
    let delimiter = list.delimiter.filter(|delimiter| !delimiter.is_empty())?;
    let rest = key.get(list.prefix.len()..)?;
    let at = rest.windows(delimiter.len()).position(|window| window == delimiter)?;
    key.get(..list.prefix.len() + at + delimiter.len())
}

/// One page of the current objects of a bucket.
pub(crate) fn list_objects(
    slices: &[Arc<Slice>],
    bucket: u64,
    list: &ListObjects<'_>,
) -> Result<ListPage, EngineError> {
    let mut page = ListPage::default();
    let Some(place) = first_place(bucket, list).filter(|_| list.max > 0) else { return Ok(page) };
    let bucket_prefix = keys::prefix_of(bucket, list.prefix);
    let txns = slices.iter().map(|slice| slice.environment.read()).collect::<Result<Vec<_>, _>>()?;
    let mut heap = BinaryHeap::with_capacity(slices.len());
    for (slice, txn) in slices.iter().zip(&txns) {
        push(&mut heap, SliceCursor::seek(txn, slice.tables.objects, &place)?, &bucket_prefix);
    }
    let mut position = None;
    let mut steps = 0;
    while let Some(ByKey(mut cursor)) = heap.pop() {
        let Some((encoded, record)) = cursor.head else { continue };
        if page.objects.len() + page.common_prefixes.len() >= list.max || steps >= LIST_STEPS_MAX {
            page.next = position;
            return Ok(page);
        }
        let (_, key, _) =
            keys::decode(encoded).ok_or_else(|| EngineError::Corrupt("an object key".to_owned()))?;
        if let Some(common) = common_prefix(&key, list) {
            page.common_prefixes.push(common.to_vec());
            position = Some(ListPosition::AfterPrefix(common.to_vec()));
            let Some(place) = keys::after_prefix(bucket, common) else { break };
            cursor.skip_to(&place)?;
            steps += 1;
            push(&mut heap, cursor, &bucket_prefix);
            // Other slices may hold keys of the same prefix.
            let behind = |cursor: &ByKey<'_>| cursor.key() < place.as_slice();
            while heap.peek().is_some_and(behind) {
                let Some(ByKey(mut cursor)) = heap.pop() else { break };
                cursor.skip_to(&place)?;
                steps += 1;
                push(&mut heap, cursor, &bucket_prefix);
            }
            continue;
        }
        page.objects.push(listed(&key, record)?);
        // Older versions of the key stand right behind it, in the same slice.
        let shared = encoded.get(..keys::shared_length(encoded)).unwrap_or_default();
        cursor.advance()?;
        steps += 1;
        while cursor.head.is_some_and(|(key, _)| key.starts_with(shared)) {
            cursor.advance()?;
            steps += 1;
        }
        push(&mut heap, cursor, &bucket_prefix);
        position = Some(ListPosition::AfterKey(key));
    }
    Ok(page)
}

/// Puts a cursor back while it has records that the list may show.
fn push<'t>(heap: &mut BinaryHeap<ByKey<'t>>, cursor: SliceCursor<'t>, prefix: &[u8]) {
    if cursor.head.is_some_and(|(key, _)| key.starts_with(prefix)) {
        heap.push(ByKey(cursor));
    }
}

fn listed(key: &[u8], record: Record<'_>) -> Result<ListedObject, EngineError> {
    let head = RecordHead::decode(record.version, record.body)?;
    let key = std::str::from_utf8(key).map_err(|_| EngineError::Corrupt("an object key".to_owned()))?;
    Ok(ListedObject {
        key: key.to_owned(),
        size: head.size,
        etag: head.etag,
        last_modified: head.last_modified,
        version: VersionId(head.sequence),
        checksum_algorithms: ChecksumAlgorithm::ALL
            .into_iter()
            .filter(|algorithm| head.checksum_bits & algorithm.bit() != 0)
            .collect(),
        checksum_kind: Default::default(),
    })
}
