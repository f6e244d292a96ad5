//! `PATCH /api/v1/buckets/{bucket}/imported-objects/{key}`: tags, retention and legal hold that changed at the source.

use std::rc::Rc;

use cairn_api::{ChangeImported, ImportOutcome};
use cairn_engine::limits::OBJECT_TAGS_MAX;
use cairn_engine::{EngineError, Retention, Tags, VersionChange};
use cairn_http1::parse_rfc3339_millis;
use cairn_model::Timestamp;

use super::run::Import;
use super::version::{answer, version_name};
use crate::call::Call;
use crate::error::AdminError;
use crate::handlers::object_lock::mode_of;
use crate::reply::Reply;

pub(crate) async fn change(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let import = Import::of(&mut call)?;
    let version = version_name(&import)?;
    let ChangeImported { tags, retention, legal_hold } = call.json().await?;
    let tags = tags.map(|tags| {
        let pairs = tags.into_iter().map(|tag| (tag.key, tag.value)).collect();
        Tags::new(pairs, OBJECT_TAGS_MAX).map_err(|_| AdminError::invalid("tags: they are not valid in S3"))
    });
    let retention = retention.map(|body| {
        let until = parse_rfc3339_millis(&body.retain_until).map(Timestamp);
        let until = until.filter(|until| *until <= Retention::UNTIL_MAX);
        let until =
            until.ok_or_else(|| AdminError::invalid("retention.retain_until: must be a time (RFC 3339)"))?;
        Ok::<_, AdminError>(Retention { mode: mode_of(body.mode), until })
    });
    let (tags, retention) = (tags.transpose()?, retention.transpose()?);
    let engine = Rc::clone(call.engine()?);
    let (bucket, key) = (&import.bucket, &import.key);
    let info = engine.head_object(bucket, key, Some(version))?;
    if !info.version.is_imported() {
        return Err(EngineError::ImportConflict("a client has written this version here").into());
    }
    if (retention.is_some() || legal_hold.is_some()) && !bucket.settings().object_lock {
        return Err(AdminError::ObjectLockNotEnabled);
    }
    let tags = tags.filter(|tags| *tags != info.attributes.tags);
    let retention = retention.filter(|retention| Some(*retention) != info.lock.retention);
    let hold = legal_hold.filter(|hold| *hold != info.lock.legal_hold.unwrap_or(false));
    let of_retention =
        |retention| VersionChange::Retention { retention: Some(retention), bypass_governance: false };
    let changes =
        [tags.map(VersionChange::Tags), retention.map(of_retention), hold.map(VersionChange::LegalHold)];
    let mut outcome = ImportOutcome::Unchanged;
    for change in changes.into_iter().flatten() {
        engine.change_imported(bucket, key, version, change).await?;
        outcome = ImportOutcome::Changed;
    }
    answer(outcome)
}
