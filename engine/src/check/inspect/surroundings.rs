//! Checks outside of the slices' tables: superblock, buckets, volumes, metadata files.

use super::FindingKind;
use super::report::Report;
use crate::device::volume::VolumeFault;
use crate::error::EngineError;
use crate::format::bucket_record;
use crate::format::codec;
use crate::format::extent::Extent;
use crate::format::lifecycle_record;
use crate::format::superblock;
use crate::slice::Slice;
use crate::store::Store;
use crate::store::bucket_catalog::{BucketCatalog, IDENTITY_KEY, NEXT_ID_KEY};
use cairn_lmdb::{ReadTxn, Totals};

/// The sizes of a slice's volumes in units, by volume number.
#[derive(Debug, Default)]
pub(super) struct VolumeBounds(Vec<u64>);

impl VolumeBounds {
    /// Measures the volumes as they are now.
    pub(super) fn measure(&mut self, slice: &Slice) {
        let volumes = slice.space.volumes.read();
        self.0 = volumes.iter().map(|volume| u64::from(volume.units())).collect();
    }

    /// The part of an extent that lies within a volume, after its header.
    pub(super) fn within(&self, extent: Extent) -> Option<Extent> {
        let units = *self.0.get(usize::try_from(extent.volume).ok()?)?;
        let start = extent.start.max(1);
        let end = (u64::from(extent.start) + u64::from(extent.units)).min(units);
        let units = u32::try_from(end.checked_sub(u64::from(start))?).ok().filter(|units| *units > 0)?;
        Some(Extent { start, units, ..extent })
    }
}

/// Compares `superblock.json` with the store that was opened.
pub(super) fn inspect_superblock(store: &Store, report: &mut Report<'_>) {
    let Some(slice) = store.slices.first() else { return };
    if let Err(what) = superblock::inspect(store.disk.path(), slice.superblock, store.format_version()) {
        report.report(FindingKind::SuperblockDamaged, what);
    }
}

/// Checks the files of a slice's volumes.
pub(super) fn inspect_volumes(slice: &Slice, report: &mut Report<'_>) {
    let volumes = slice.space.volumes.read().clone();
    for volume in volumes {
        let place = format!("volume {} of slice {}", volume.number, slice.number);
        for fault in volume.inspect(slice.superblock.store, slice.number) {
            match fault {
                VolumeFault::Missing => {
                    report.report(
                        FindingKind::VolumeMissing,
                        format!("{place} is missing or was replaced by another file"),
                    );
                }
                VolumeFault::Truncated => {
                    report.report(FindingKind::VolumeTruncated, format!("{place} has been truncated"));
                }
                VolumeFault::Header => {
                    report.report(
                        FindingKind::VolumeHeaderDamaged,
                        format!("the header of {place} is damaged"),
                    );
                }
            }
        }
    }
}

/// Returns whether a slice's metadata can be read. Reading a truncated map would end the process with SIGBUS.
pub(super) fn metadata_is_readable(slice: &Slice, report: &mut Report<'_>) -> bool {
    let Err(error) = slice.environment.check_file() else { return true };
    report
        .report(FindingKind::MetadataUnreadable, format!("the metadata of slice {}: {error}", slice.number));
    report.leave_out();
    false
}

/// Checks the records of the buckets.
pub(super) fn inspect_buckets(store: &Store, report: &mut Report<'_>) {
    let control = &store.control.catalog;
    let read = control.environment.check_file().map_err(EngineError::from);
    let read = read.and_then(|()| Ok(control.environment.read()?));
    if let Err(error) = read.and_then(|txn| compare_buckets(control, &txn, report)) {
        report.report(FindingKind::MetadataUnreadable, format!("the records of the buckets: {error}"));
        report.leave_out();
    }
}

fn compare_buckets(
    control: &BucketCatalog,
    txn: &ReadTxn<'_>,
    report: &mut Report<'_>,
) -> Result<(), EngineError> {
    let mut counted = Totals::default();
    let mut is_damaged = false;
    let mut damaged = |what: &str, report: &mut Report<'_>| {
        is_damaged = true;
        report.report(FindingKind::BucketDamaged, what.to_owned());
    };
    let next = match txn.get(control.control_table, NEXT_ID_KEY) {
        Ok(Some(record)) => codec::decode_u64(record.body),
        _ => None,
    };
    if next.is_none() {
        damaged("the next id of a bucket is missing or damaged", report);
    }
    let identity = txn.get(control.control_table, IDENTITY_KEY);
    if !matches!(identity, Ok(Some(record)) if record.body == control.store.0) {
        damaged("the identity of the buckets' environment is missing or damaged", report);
    }
    for entry in txn.entries(control.buckets_table, None)? {
        let entry = entry?;
        let record = entry.record.as_ref().ok();
        let Some(bucket) = record.and_then(|record| bucket_record::decode(entry.key, record)) else {
            damaged(&format!("the record of bucket {}", String::from_utf8_lossy(entry.key)), report);
            continue;
        };
        if next.is_some_and(|next| bucket.id >= next) {
            let what = format!("bucket {} has id {}, which has not been issued yet", bucket.name, bucket.id);
            report.report(FindingKind::BucketIdInvalid, what);
        }
        if let Some(other) = report.buckets.insert(bucket.id, bucket.name.to_string()) {
            let what = format!("the buckets {other} and {} have the same id, {}", bucket.name, bucket.id);
            report.report(FindingKind::BucketIdInvalid, what);
        }
    }
    for entry in txn.entries(control.lifecycle_table, None)? {
        let entry = entry?;
        let record = entry.record.as_ref().ok();
        if record.is_none_or(|record| lifecycle_record::decode(record.version, record.body).is_err()) {
            damaged("the lifecycle rules of a bucket", report);
        }
    }
    let lifecycle_tables = [control.lifecycle_table, control.lifecycle_counts_table];
    let others = [control.buckets_table, control.control_table, control.events_table];
    for table in others.into_iter().chain(lifecycle_tables) {
        for entry in txn.entries(table, None)? {
            counted.records += 1;
            counted.hash = counted.hash.wrapping_add(entry?.stored_checksum);
        }
    }
    match txn.totals() {
        Err(error) => report.report(FindingKind::BucketDamaged, format!("the totals: {error}")),
        Ok(totals) if totals.records != counted.records || (totals.hash != counted.hash && !is_damaged) => {
            let what = format!("buckets: the totals are {totals:?}, the records give {counted:?}");
            report.report(FindingKind::TotalsMismatch, what);
        }
        Ok(_) => {}
    }
    Ok(())
}

/// Adds the buckets that exist now to the known ones. Buckets that were removed in the meantime stay known: they have no
/// records any more.
pub(super) fn refresh_buckets(report: &mut Report<'_>) {
    let control = &report.store.control.catalog;
    let Ok(txn) = control.environment.read() else { return };
    let Ok(entries) = txn.entries(control.buckets_table, None) else { return };
    for entry in entries.map_while(Result::ok) {
        let record = entry.record.as_ref().ok();
        if let Some(bucket) = record.and_then(|record| bucket_record::decode(entry.key, record)) {
            report.buckets.insert(bucket.id, bucket.name.to_string());
        }
    }
}
