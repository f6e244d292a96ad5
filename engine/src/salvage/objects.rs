//! The versions of a damaged slice, each with its content.

use super::content::{StoredContent, Volumes};
use super::lost::{Given, report_lost};
use super::store_facts::StoreFacts;
use super::target::{ContentError, SalvageLoss, SalvageTarget, SalvagedVersion};
use crate::format::keys;
use crate::format::object_record::{Content, ObjectRecord};
use crate::format::part_record::PartRecord;
use crate::format::seal::{KeyOwner, WrappingKey};
use crate::types::object::ObjectInfo;
use cairn_lmdb::{Record, Salvaged, SalvagedEnvironment, SalvagedTable};
use cairn_model::{UploadId, usize_of};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

/// The salvage of one slice.
struct SliceSalvage<'s> {
    environment: &'s SalvagedEnvironment,
    objects: &'s SalvagedTable,
    parts: &'s SalvagedTable,
    wrapping: &'s [WrappingKey],
    volumes: Volumes,
}

/// Gives all versions of a slice to the target.
pub(super) fn salvage_slice(
    (number, folder): (u16, &Path),
    facts: &StoreFacts,
    wrapping: &[WrappingKey],
    only: Option<&str>,
    target: &mut dyn SalvageTarget,
) -> io::Result<()> {
    let mut environment = SalvagedEnvironment::open(&folder.join("meta"));
    for fault in environment.faults() {
        target.loss(SalvageLoss { slice: Some(number), reason: fault.clone(), ..SalvageLoss::default() })?;
    }
    let objects = environment.table("objects", &is_object);
    let parts = environment.table("parts", &is_part);
    let mut slice = SliceSalvage {
        environment: &environment,
        objects: &objects,
        parts: &parts,
        wrapping,
        volumes: Volumes::of(folder),
    };
    let mut given = Given::default();
    let mut done = Ok(());
    let mut before: Option<Vec<u8>> = None;
    objects.each(&environment, &mut |found| {
        if done.is_ok() {
            let is_latest = !before.as_deref().is_some_and(|before| is_same_object(before, found.key));
            before = Some(found.key.to_vec());
            done = slice.give(found, is_latest, facts, only, &mut given, target);
        }
    });
    done?;
    report_lost(number, &environment, &objects, facts, only, &given, target)
}

fn is_object(key: &[u8], record: &Record<'_>) -> bool {
    let sequence = keys::decode(key).map(|(_, _, sequence)| sequence);
    ObjectRecord::decode(record.version, record.body)
        .is_ok_and(|found| Some(found.info.version.0) == sequence)
}

fn is_part(key: &[u8], record: &Record<'_>) -> bool {
    keys::decode_part(key)
        .is_some_and(|(_, number)| PartRecord::decode(record.version, record.body, number).is_ok())
}

fn is_same_object(one: &[u8], other: &[u8]) -> bool {
    let name = |key| keys::decode(key).map(|(bucket, key, _)| (bucket, key));
    name(one) == name(other)
}

impl SliceSalvage<'_> {
    fn give(
        &mut self,
        found: &Salvaged<'_>,
        is_latest: bool,
        facts: &StoreFacts,
        only: Option<&str>,
        given: &mut Given,
        target: &mut dyn SalvageTarget,
    ) -> io::Result<()> {
        let decoded =
            keys::decode(found.key).zip(ObjectRecord::decode(found.record.version, found.record.body).ok());
        let Some(((bucket_id, key, _), record)) = decoded else {
            // It has the right check, so a later program wrote it.
            let reason = "a record cannot be understood by this program".to_owned();
            return target.loss(SalvageLoss { reason, ..SalvageLoss::default() });
        };
        let bucket = facts.name(bucket_id);
        if only.is_some_and(|only| only != bucket) || !facts.may_have(bucket_id) {
            return Ok(());
        }
        let versions = keys::versions_of(bucket_id, &key).unwrap_or_default();
        let is_complete = !self.objects.lost.overlap(&versions, &keys::after_all_of(&versions));
        if !is_complete {
            given.note(found.key);
        }
        let ObjectRecord { info, content } = record;
        let version = SalvagedVersion {
            bucket,
            bucket_id,
            is_delete_marker: matches!(content, Content::DeleteMarker),
            is_latest,
            is_certain: is_complete && !found.is_searched,
            info,
            key,
        };
        let (info, owner) = (&version.info, KeyOwner { bucket: bucket_id, object: &version.key });
        let mut write = |out: &mut dyn Write| match &content {
            Content::DeleteMarker => Ok(()),
            Content::Payload(payload) => {
                let inline = found.tail(usize_of(info.size)).filter(|_| payload.volume().is_none());
                let content =
                    StoredContent { payload, size: info.size, owner, wrapping: self.wrapping, inline };
                content.write(&mut self.volumes, out)
            }
            Content::Parts { upload, .. } => self.write_parts(info, owner, &versions, *upload, out),
        };
        target.version(&version, &mut write)
    }

    fn write_parts(
        &mut self,
        info: &ObjectInfo,
        owner: KeyOwner<'_>,
        versions: &[u8],
        upload: UploadId,
        out: &mut dyn Write,
    ) -> Result<(), ContentError> {
        let prefix = keys::with_upload(versions, upload);
        let mut found = BTreeMap::new();
        self.parts.with_prefix(self.environment, &prefix, &mut |one| {
            let number = keys::decode_part(one.key).map(|(_, number)| number);
            let part = number
                .and_then(|number| PartRecord::decode(one.record.version, one.record.body, number).ok());
            if let Some((number, part)) = number.zip(part) {
                let inline =
                    if part.payload.volume().is_none() { one.tail(usize_of(part.info.size)) } else { None };
                found.insert(number, (part, inline));
            }
        });
        for run in &info.parts {
            for number in run.first..run.first.saturating_add(run.count) {
                let damaged = |why: &str| ContentError::Damaged(format!("part {number}: {why}"));
                let part = found.remove(&number).filter(|(part, _)| part.info.size == run.size);
                let (part, inline) = part.ok_or_else(|| damaged("its record is damaged or missing"))?;
                let (payload, size, wrapping) = (&part.payload, run.size, self.wrapping);
                let content = StoredContent { payload, size, owner, wrapping, inline };
                content.write(&mut self.volumes, out).map_err(|error| match error {
                    ContentError::Damaged(why) => damaged(&why),
                    other => other,
                })?;
            }
        }
        Ok(())
    }
}
