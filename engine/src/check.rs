//! Whether a store agrees with itself: records, free map, usage and totals of every slice, while nothing changes.
//!
//! Reads all metadata and no payload. Meant for tests after a crash and as the ground of inspection: it finds space that
//! is marked owned and that no record owns, space owned twice or not marked, and counters that do not fit.

use crate::error::EngineError;
use crate::extent::Extent;
use crate::free_map;
use crate::keys;
use crate::record::{ObjectRecord, PayloadForm};
use crate::slice::Slice;
use crate::store::Store;
use cairn_lmdb::ReadTxn;
use std::collections::BTreeMap;

/// Most findings that a check writes down; the count goes on.
const FINDINGS_MAX: usize = 100;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreCheck {
    /// Object records.
    pub objects: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Units that records own.
    pub owned_units: u64,
    /// Units that are marked owned and that no record owns.
    pub orphaned_units: u64,
    /// Number of inconsistencies.
    pub inconsistencies: u64,
    /// The first hundred of them, for people.
    pub findings: Vec<String>,
}

impl StoreCheck {
    fn find(&mut self, what: String) {
        self.inconsistencies += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(what);
        }
    }
}

impl Store {
    /// Compares all metadata of the store with itself. Blocks for as long as reading all of it takes; changes that
    /// happen meanwhile may show as findings.
    ///
    /// # Errors
    /// When metadata cannot be read at all; damaged records are findings.
    pub fn check(&self) -> Result<StoreCheck, EngineError> {
        let mut check = StoreCheck::default();
        for slice in &self.slices {
            check_slice(slice, &mut check)?;
        }
        Ok(check)
    }
}

fn check_slice(slice: &Slice, check: &mut StoreCheck) -> Result<(), EngineError> {
    let txn = slice.environment.read()?;
    let number = slice.number;
    let mut owned = Vec::new();
    let mut usage: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for item in txn.scan(slice.tables.objects, &[])? {
        let (key, record) = match item {
            Ok(item) => item,
            Err(error) => {
                check.find(format!("slice {number}: {error}"));
                continue;
            }
        };
        let decoded = keys::decode(key).zip(ObjectRecord::decode(record.version, record.body).ok());
        let Some(((bucket, _, _), record)) = decoded else {
            check.find(format!("slice {number}: an object record that cannot be decoded"));
            continue;
        };
        check.objects += 1;
        check.bytes += record.info.size;
        let sums = usage.entry(bucket).or_default();
        sums.0 += 1;
        sums.1 += record.info.size;
        if let PayloadForm::Volume(payload) = &record.payload {
            owned.extend(payload.owned());
        }
    }
    check_space(slice, &txn, check, owned)?;
    drop(txn);
    let mut stored = BTreeMap::new();
    slice.each_usage(|bucket, objects, bytes| {
        stored.insert(bucket, (objects, bytes));
    })?;
    if stored != usage {
        check.find(format!("slice {number}: usage is {stored:?}, the records sum up to {usage:?}"));
    }
    let txn = slice.environment.read()?;
    let (totals, counted) = (txn.totals(&slice.environment)?, txn.count(&slice.tables.all())?);
    if totals != counted {
        check.find(format!("slice {number}: totals are {totals:?}, the records give {counted:?}"));
    }
    Ok(())
}

/// Compares the space that records own with the free map.
fn check_space(
    slice: &Slice,
    txn: &ReadTxn<'_>,
    check: &mut StoreCheck,
    mut owned: Vec<Extent>,
) -> Result<(), EngineError> {
    owned.sort_unstable_by_key(Extent::address);
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for extent in &owned {
        let (start, units) = (extent.address(), u64::from(extent.units));
        check.owned_units += units;
        match merged.last_mut() {
            Some((s, n)) if *s + *n > start => {
                check.find(format!("slice {}: {extent:?} is owned by two payloads", slice.number));
                *n = (*n).max(start + units - *s);
            }
            Some((s, n)) if *s + *n == start => *n += units,
            _ => merged.push((start, units)),
        }
    }
    let mut marked: Vec<(u64, u64)> = Vec::new();
    free_map::owned_runs(txn, slice.tables.free_map, |volume, start, units| {
        marked.push(((u64::from(volume) << 32) | u64::from(start), u64::from(units)));
    })?;
    let (orphaned, unmarked) = (units_outside(&marked, &merged), units_outside(&merged, &marked));
    check.orphaned_units += orphaned;
    if orphaned > 0 {
        check.find(format!(
            "slice {}: {orphaned} units are marked owned and belong to no record",
            slice.number
        ));
    }
    if unmarked > 0 {
        check.find(format!("slice {}: {unmarked} units of records are not marked owned", slice.number));
    }
    Ok(())
}

/// Units of the runs `of` that no run of `within` covers; both sorted and disjoint.
fn units_outside(of: &[(u64, u64)], within: &[(u64, u64)]) -> u64 {
    let mut outside = 0;
    let mut candidates = within.iter().peekable();
    for (start, units) in of {
        let (mut at, end) = (*start, start + units);
        while at < end {
            while candidates.peek().is_some_and(|(s, n)| s + n <= at) {
                candidates.next();
            }
            match candidates.peek() {
                Some((s, n)) if *s <= at => at = end.min(s + n),
                Some((s, _)) if *s < end => {
                    outside += s - at;
                    at = *s;
                }
                _ => {
                    outside += end - at;
                    at = end;
                }
            }
        }
    }
    outside
}

#[cfg(test)]
mod tests {
    use super::units_outside;

    #[test]
    fn units_that_are_not_covered_are_counted() {
        assert_eq!(units_outside(&[(0, 10)], &[(0, 10)]), 0);
        assert_eq!(units_outside(&[(0, 10)], &[(2, 3), (7, 1)]), 6);
        assert_eq!(units_outside(&[(0, 10), (20, 5)], &[(5, 17)]), 5 + 3);
        assert_eq!(units_outside(&[(0, 10)], &[]), 10);
    }
}
