//! Checks one object record against its key, its slice and itself.

use super::FindingKind;
use crate::format::block::CheckKind;
use crate::format::codec::{BlockChecks, Payload, PayloadForm, VolumePayload};
use crate::format::extent::blocks_for;
use crate::format::keys;
use crate::format::object_record::{Content, ObjectRecord};
use crate::limits::{BLOCK_UNITS, INLINE_BYTES_MAX};

/// Facts about the slice that its records are compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct SliceFacts {
    /// Number of the slice.
    pub(super) slice: u16,
    /// Number of slices of the store.
    pub(super) slices: u16,
    /// The last sequence that the slice has issued.
    pub(super) sequence: u64,
}

/// Calls `found` with each inconsistency of a record.
pub(super) fn check_record(
    facts: SliceFacts,
    key: &[u8],
    record: &ObjectRecord,
    tail_bytes: u64,
    mut found: impl FnMut(FindingKind, String),
) {
    let version = record.info.version.0;
    match keys::decode(key) {
        None => found(FindingKind::KeyUndecodable, format!("a key of slice {} does not decode", facts.slice)),
        Some((bucket, object, sequence)) => {
            if sequence != version {
                let what = format!("the key names version {sequence}, the record version {version}");
                found(FindingKind::VersionMismatch, what);
            }
            let home = keys::slice_of(bucket, &object, facts.slices);
            if home != facts.slice {
                let what =
                    format!("the record lies in slice {}, its key belongs to slice {home}", facts.slice);
                found(FindingKind::WrongSlice, what);
            }
            if std::str::from_utf8(&object).is_err() || object.is_empty() {
                found(FindingKind::KeyUndecodable, format!("a key of slice {} is no text", facts.slice));
            }
        }
    }
    let is_imported = record.info.version.is_imported();
    if record.info.imported.is_some() != (is_imported && !record.info.is_null) {
        let what = format!("version {version} has the number or the id of an imported version, but not both");
        found(FindingKind::ImportedIdMismatch, what);
    }
    if !is_imported && version > facts.sequence {
        let what = format!(
            "version {version} in slice {}, which has issued sequences up to {}",
            facts.slice, facts.sequence
        );
        found(FindingKind::SequenceBehind, what);
    }
    let misfit = match &record.content {
        Content::Payload(payload) => geometry(record.info.size, payload, tail_bytes),
        Content::DeleteMarker if record.info.size != 0 => Some("a delete marker with a size".to_owned()),
        Content::DeleteMarker | Content::Parts { .. } if tail_bytes != 0 => {
            Some(format!("{tail_bytes} bytes follow a record without inline payload"))
        }
        Content::DeleteMarker | Content::Parts { .. } => None,
    };
    if let Some(what) = misfit {
        found(FindingKind::GeometryMismatch, what);
    }
}

/// Checks the form of a payload; returns the first inconsistency. Decoding has already compared the extents with the size.
pub(super) fn geometry(size: u64, payload: &Payload, tail_bytes: u64) -> Option<String> {
    match &payload.form {
        PayloadForm::Inline { .. } if size > INLINE_BYTES_MAX => {
            Some(format!("{size} bytes are stored inline"))
        }
        PayloadForm::Inline { .. } if tail_bytes != size => {
            Some(format!("{tail_bytes} bytes are stored inline for a payload of {size} bytes"))
        }
        PayloadForm::Volume(_) if tail_bytes != 0 => {
            Some(format!("{tail_bytes} bytes follow a record whose payload is in volumes"))
        }
        PayloadForm::Volume(volume) => extents(size, volume, CheckKind::of(payload.sealed.is_some())),
        PayloadForm::Inline { .. } => None,
    }
}

fn extents(size: u64, payload: &VolumePayload, kind: CheckKind) -> Option<String> {
    let front = payload.extents.split_last().map_or(&[][..], |(_, front)| front);
    if let Some(extent) = front.iter().find(|extent| u64::from(extent.units) % BLOCK_UNITS != 0) {
        return Some(format!("an extent of {} units is not whole blocks and not the last", extent.units));
    }
    let BlockChecks::Table(table) = &payload.checks else { return None };
    let (found, needed) =
        (table.iter().map(|extent| u64::from(extent.units)).sum::<u64>(), kind.table_pages(blocks_for(size)));
    (found != needed).then(|| format!("the check table has {found} units; {needed} are needed"))
}
