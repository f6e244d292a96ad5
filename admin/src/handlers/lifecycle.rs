//! The routes of lifecycle rules: list, create, replace, delete, preview; status and resumption of the worker.

use cairn_api::{LifecycleRuleList, LifecycleRuleStatus, LifecycleStatus, SetLifecycleRule, Tag, Time};
use cairn_engine::limits::{
    LIFECYCLE_DAYS_MAX, LIFECYCLE_RULES_MAX, NEWER_NONCURRENT_VERSIONS_MAX, OBJECT_TAGS_MAX,
    TAG_KEY_UNITS_MAX, TAG_VALUE_UNITS_MAX,
};
use cairn_engine::{
    Bucket, BucketChange, EngineError, FilterForm, InvalidTags, LifecycleChange, LifecyclePreview,
    LifecycleRule, PlannedAction, PlannedRemoval, RuleId, RuleStatus, Store, Tags,
};
use cairn_model::{Clock, OBJECT_KEY_BYTES_MAX, SystemClock, Timestamp};
use http::StatusCode;

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

/// Validates the tags of a rule.
fn tags(bodies: Vec<Tag>) -> Result<Tags, AdminError> {
    let tags = bodies.into_iter().map(|tag| (tag.key, tag.value)).collect();
    Tags::new(tags, OBJECT_TAGS_MAX).map_err(|invalid| {
        AdminError::invalid(match invalid {
            InvalidTags::TooMany(max) => {
                format!("tags must be at most {max}: no object has more")
            }
            InvalidTags::Duplicate(key) => {
                format!("tags has the key {key:?} twice: an object has each key once")
            }
            InvalidTags::Key(key) => format!(
                "the key {key:?} of a tag must have 1 to {TAG_KEY_UNITS_MAX} characters, letters, digits, spaces and \
                 + - = . _ : / @, and not begin with aws:"
            ),
            InvalidTags::Value { value, .. } => format!(
                "the value {value:?} of a tag must have up to {TAG_VALUE_UNITS_MAX} characters, letters, digits, spaces \
                 and + - = . _ : / @"
            ),
        })
    })
}

/// Validates the rule of a request. A replacement gives every member again.
pub(crate) fn rule_of(
    request: SetLifecycleRule,
    id: RuleId,
    created_at: Timestamp,
) -> Result<LifecycleRule, AdminError> {
    let days = |name: &str, days: Option<u32>| match days {
        Some(days) if !(1..=LIFECYCLE_DAYS_MAX).contains(&days) => {
            Err(AdminError::invalid(format!("{name} must be 1 to {LIFECYCLE_DAYS_MAX} days")))
        }
        days => Ok(days),
    };
    let rule = LifecycleRule {
        id,
        s3_id: None,
        prefix: request.prefix,
        tags: tags(request.tags.unwrap_or_default())?,
        form: FilterForm::default(),
        expiration_days: days("expiration", request.expiration)?,
        noncurrent_days: days("noncurrent_version_expiration", request.noncurrent_version_expiration)?,
        newer_noncurrent_versions: request.newer_noncurrent_versions.unwrap_or_default(),
        expired_delete_markers: request.expired_delete_markers.unwrap_or_default(),
        abort_uploads_days: days(
            "abort_incomplete_multipart_upload",
            request.abort_incomplete_multipart_upload,
        )?,
        is_enabled: request.enabled.unwrap_or(true),
        created_at,
    };
    if rule.prefix.len() > OBJECT_KEY_BYTES_MAX {
        return Err(AdminError::invalid(format!(
            "prefix must have at most {OBJECT_KEY_BYTES_MAX} bytes: no key is longer"
        )));
    }
    if rule.newer_noncurrent_versions > NEWER_NONCURRENT_VERSIONS_MAX {
        return Err(AdminError::invalid(format!(
            "newer_noncurrent_versions must be at most {NEWER_NONCURRENT_VERSIONS_MAX}"
        )));
    }
    if !rule.has_action() {
        return Err(AdminError::invalid(
            "the rule does nothing: set expiration, noncurrent_version_expiration, expired_delete_markers or \
             abort_incomplete_multipart_upload",
        ));
    }
    if rule.expired_delete_markers && !rule.tags.is_empty() {
        return Err(AdminError::invalid(
            "expired_delete_markers has no effect in a rule with tags, because delete markers have none: make two rules",
        ));
    }
    if rule.abort_uploads_days.is_some() && !rule.tags.is_empty() {
        return Err(AdminError::invalid(
            "abort_incomplete_multipart_upload has no effect in a rule with tags, because uploads are selected by prefix: \
             make two rules",
        ));
    }
    if rule.newer_noncurrent_versions > 0 && rule.noncurrent_days.is_none() {
        return Err(AdminError::invalid(
            "newer_noncurrent_versions has an effect only with noncurrent_version_expiration: set that too",
        ));
    }
    Ok(rule)
}

fn status_body(status: RuleStatus, next_run_at: Option<Timestamp>) -> LifecycleRuleStatus {
    let counts = status.counts;
    LifecycleRuleStatus {
        last_run_started_at: status.last_run_started_at.map(Time::from),
        last_run_finished_at: status.last_run_finished_at.map(Time::from),
        next_run_at: next_run_at.map(Time::from),
        next_due_at: status.next_due_at.map(Time::from),
        examined: counts.examined,
        expired_objects: counts.expired_objects,
        delete_markers_written: counts.delete_markers_written,
        noncurrent_versions_removed: counts.noncurrent_versions_removed,
        delete_markers_removed: counts.delete_markers_removed,
        multipart_uploads_aborted: counts.multipart_uploads_aborted,
        skipped_locked: counts.skipped_locked,
        failed: counts.failed,
        bytes_freed: counts.bytes_freed,
        last_error: status.last_error,
    }
}

fn rule_body(store: &Store, rule: &LifecycleRule) -> cairn_api::LifecycleRule {
    let next_run_at = store.lifecycle_status().next_run_at.filter(|_| rule.is_enabled);
    let tag = |(key, value): (&str, &str)| Tag { key: key.to_owned(), value: value.to_owned() };
    cairn_api::LifecycleRule {
        id: rule.id.to_string().into(),
        s3_id: rule.s3_id.clone(),
        prefix: rule.prefix.clone(),
        tags: rule.tags.iter().map(tag).collect(),
        expiration: rule.expiration_days,
        noncurrent_version_expiration: rule.noncurrent_days,
        newer_noncurrent_versions: rule.newer_noncurrent_versions,
        expired_delete_markers: rule.expired_delete_markers,
        abort_incomplete_multipart_upload: rule.abort_uploads_days,
        enabled: rule.is_enabled,
        created_at: rule.created_at.into(),
        status: status_body(store.lifecycle_rule_status(rule.id), next_run_at),
    }
}

/// Describes a rule for the audit trail.
fn describe(rule: &LifecycleRule) -> String {
    let days = |days: Option<u32>| days.map_or_else(|| "never".to_owned(), |days| format!("{days} days"));
    let tags: Vec<String> = rule.tags.iter().map(|(key, value)| format!(", tag {key}={value}")).collect();
    format!(
        "rule {}: prefix {:?}{}, expiration {}, noncurrent versions {} (keeping {}), expired delete markers {}, \
         unfinished uploads {}, enabled {}",
        rule.id,
        rule.prefix,
        tags.concat(),
        days(rule.expiration_days),
        days(rule.noncurrent_days),
        rule.newer_noncurrent_versions,
        rule.expired_delete_markers,
        days(rule.abort_uploads_days),
        rule.is_enabled,
    )
}

/// Makes a change of a bucket's rules durable.
async fn change(store: &Store, bucket: &Bucket, change: LifecycleChange) -> Result<(), AdminError> {
    let changed = store.change_bucket(bucket, BucketChange::Lifecycle(change)).await;
    changed.map_err(|error| match error {
        EngineError::TooManyLifecycleRules => {
            AdminError::LimitReached(format!("a bucket can have {LIFECYCLE_RULES_MAX} lifecycle rules"))
        }
        error => error.into(),
    })
}

/// `GET /api/v1/buckets/{bucket}/lifecycle`.
pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (bucket, store) = (call.bucket()?, call.store()?);
    let settings = bucket.settings();
    let rules = settings.lifecycle.iter().flat_map(|rules| rules.iter());
    let rules = rules.map(|rule| rule_body(store, rule)).collect();
    Reply::json(StatusCode::OK, &LifecycleRuleList { rules })
}

/// `POST /api/v1/buckets/{bucket}/lifecycle`.
pub(crate) async fn create(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let request: SetLifecycleRule = call.json().await?;
    let now = SystemClock.now();
    let rule = rule_of(request, RuleId::new(now)?, now)?;
    let store = call.store()?;
    change(store, &bucket, LifecycleChange::Add(rule.clone())).await?;
    Ok(Reply::json(StatusCode::CREATED, &rule_body(store, &rule))?.detail(describe(&rule)))
}

fn rule_id(call: &Call<'_, '_>, segment: &str) -> Result<RuleId, AdminError> {
    RuleId::parse(&call.segment(segment)?).ok_or(AdminError::LifecycleRuleNotFound)
}

/// `PUT /api/v1/buckets/{bucket}/lifecycle/{rule_id}`: replaces the rule. Its ids, creation time and totals stay.
pub(crate) async fn replace(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (bucket, id) = (call.bucket()?, rule_id(&call, "rule_id")?);
    let request: SetLifecycleRule = call.json().await?;
    let found = bucket.settings().lifecycle.as_ref().and_then(|rules| rules.get(id).cloned());
    let found = found.ok_or(AdminError::LifecycleRuleNotFound)?;
    let rule = rule_of(request, id, found.created_at)?.in_place_of(&found);
    let store = call.store()?;
    change(store, &bucket, LifecycleChange::Replace(rule.clone())).await?;
    Ok(Reply::json(StatusCode::OK, &rule_body(store, &rule))?.detail(describe(&rule)))
}

/// `DELETE /api/v1/lifecycle-rules/{id}`.
pub(crate) async fn delete(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (id, store) = (rule_id(&call, "id")?, call.store()?);
    let bucket = store.bucket_of_rule(id).ok_or(AdminError::LifecycleRuleNotFound)?;
    match change(store, &bucket, LifecycleChange::Remove(id)).await {
        // The bucket was deleted meanwhile, with its rules.
        Err(AdminError::BucketNotFound) => Err(AdminError::LifecycleRuleNotFound),
        ended => ended.map(|()| Reply::no_content().detail(format!("rule {id} of bucket {}", bucket.name))),
    }
}

fn planned_body(planned: PlannedRemoval) -> cairn_api::PlannedRemoval {
    let action = match planned.action {
        PlannedAction::WriteDeleteMarker => "write_delete_marker",
        PlannedAction::RemoveObject => "remove_object",
        PlannedAction::RemoveVersion => "remove_version",
        PlannedAction::RemoveDeleteMarker => "remove_delete_marker",
    };
    cairn_api::PlannedRemoval {
        key: planned.key.into(),
        version_id: planned.version.to_string().into(),
        size: planned.size,
        due_at: planned.due_at.into(),
        action: action.into(),
    }
}

fn preview_body(preview: LifecyclePreview) -> cairn_api::LifecyclePreview {
    cairn_api::LifecyclePreview {
        complete: preview.is_complete,
        current_objects: preview.current_objects,
        current_bytes: preview.current_bytes,
        noncurrent_versions: preview.noncurrent_versions,
        noncurrent_bytes: preview.noncurrent_bytes,
        delete_markers: preview.delete_markers,
        locked: preview.locked,
        multipart_uploads: preview.multipart_uploads,
        multipart_bytes: preview.multipart_bytes,
        next_due_at: preview.next_due_at.map(Time::from),
        sample: preview.sample.into_iter().map(planned_body).collect(),
    }
}

/// `POST /api/v1/buckets/{bucket}/lifecycle/preview`: what the rule in the body would do now. Changes nothing.
pub(crate) async fn preview(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let request: SetLifecycleRule = call.json().await?;
    let now = SystemClock.now();
    let rule = rule_of(request, RuleId::new(now)?, now)?;
    let engine = call.engine()?;
    let preview = async { engine.preview_lifecycle(&bucket, rule).await.map_err(AdminError::from) };
    let preview = call.wait_for_read(preview).await?;
    Reply::json(StatusCode::OK, &preview_body(preview))
}

fn status_of(store: &Store) -> Result<Reply, AdminError> {
    let status = store.lifecycle_status();
    let body = LifecycleStatus {
        enabled: status.is_enabled,
        paused: status.paused.is_some(),
        last_run_started_at: status.last_run_started_at.map(Time::from),
        last_run_finished_at: status.last_run_finished_at.map(Time::from),
        next_run_at: status.next_run_at.map(Time::from),
        oldest_overdue_seconds: store.lifecycle_overdue_seconds(),
        indexes_in_progress: status.indexes_in_progress,
        reason: status.paused,
        last_error: status.last_error,
    };
    Reply::json(StatusCode::OK, &body)
}

/// `GET /api/v1/lifecycle/status`.
pub(crate) async fn status(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    status_of(call.store()?)
}

/// `POST /api/v1/lifecycle/resume`: trusts the clock from now on.
pub(crate) async fn resume(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let store = call.store()?;
    store.resume_lifecycle();
    status_of(store)
}

#[cfg(test)]
mod tests {
    use super::{SetLifecycleRule, rule_of};
    use crate::error::AdminError;
    use cairn_engine::{LifecycleRule, RuleId};
    use cairn_model::Timestamp;

    fn parse(text: &str) -> Result<LifecycleRule, AdminError> {
        let request: SetLifecycleRule =
            serde_json::from_str(text).map_err(|error| AdminError::invalid(error.to_string()))?;
        rule_of(request, RuleId::new(Timestamp(1)).expect("random numbers"), Timestamp(1))
    }

    #[test]
    fn omitted_and_null_members_have_their_defaults() {
        let rule = parse(r#"{"prefix": "", "expiration": 3, "noncurrent_version_expiration": null}"#);
        let rule = rule.expect("is valid");
        assert_eq!((rule.expiration_days, rule.noncurrent_days), (Some(3), None));
        assert!(rule.is_enabled && !rule.expired_delete_markers && rule.newer_noncurrent_versions == 0);
        assert!(rule.tags.is_empty());
    }

    #[test]
    fn tags_are_those_that_objects_can_have() {
        let with = |tags: &str| parse(&format!(r#"{{"prefix": "", "expiration": 3, "tags": {tags}}}"#));
        let rule = with(r#"[{"key": "a", "value": "1"}, {"key": "b", "value": ""}]"#).expect("is valid");
        assert_eq!(rule.tags.iter().collect::<Vec<_>>(), [("a", "1"), ("b", "")]);
        assert!(with("[]").and(with("null")).is_ok());
        let eleven: Vec<String> = (0..11).map(|key| format!(r#"{{"key": "{key}", "value": ""}}"#)).collect();
        for wrong in [
            r#"{"a": "1"}"#,
            r#"[{"key": "a"}]"#,
            r#"[{"key": "", "value": "1"}]"#,
            r#"[{"key": "aws:a", "value": "1"}]"#,
            r#"[{"key": "a", "value": "!"}]"#,
            r#"[{"key": "a", "value": "1"}, {"key": "a", "value": "2"}]"#,
            &format!("[{}]", eleven.join(",")),
        ] {
            assert!(with(wrong).is_err(), "{wrong}");
        }
        let markers =
            r#"{"prefix": "", "expired_delete_markers": true, "tags": [{"key": "a", "value": "1"}]}"#;
        assert!(parse(markers).is_err());
        let uploads =
            r#"{"prefix": "", "abort_incomplete_multipart_upload": 1, "tags": [{"key": "a", "value": "1"}]}"#;
        assert!(parse(uploads).is_err());
    }

    #[test]
    fn rule_may_do_nothing_but_abort_uploads() {
        let rule = parse(r#"{"prefix": "a", "abort_incomplete_multipart_upload": 7}"#).expect("is valid");
        assert_eq!((rule.abort_uploads_days, rule.expiration_days), (Some(7), None));
    }

    #[test]
    fn rules_without_effect_or_with_impossible_numbers_are_refused() {
        for wrong in [
            r#"{"expiration": 1}"#,
            r#"{"prefix": ""}"#,
            r#"{"prefix": "", "expiration": 0}"#,
            r#"{"prefix": "", "expiration": -1}"#,
            r#"{"prefix": "", "expiration": 36501}"#,
            r#"{"prefix": "", "expiration": "1"}"#,
            r#"{"prefix": "", "noncurrent_version_expiration": 0}"#,
            r#"{"prefix": "", "newer_noncurrent_versions": 3}"#,
            r#"{"prefix": "", "abort_incomplete_multipart_upload": 0}"#,
            r#"{"prefix": "", "abort_incomplete_multipart_upload": 36501}"#,
            r#"{"prefix": "", "abort_incomplete_multipart_upload": null}"#,
            r#"{"prefix": "", "expiration": 1, "newer_noncurrent_versions": 3}"#,
            r#"{"prefix": "", "noncurrent_version_expiration": 1, "newer_noncurrent_versions": 1001}"#,
            r#"{"prefix": "", "expiration": 1, "days": 1}"#,
            r#"{"prefix": null, "expiration": 1}"#,
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let long = format!(r#"{{"prefix": "{}", "expiration": 1}}"#, "a".repeat(1025));
        assert!(parse(&long).is_err());
    }
}
