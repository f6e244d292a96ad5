//! Audit records of requests that are carried out: bucket changes, and the data events that the operator asks for.
//!
//! A change has a durable intent before it begins, as on the management plane. The outcome of a bucket change is durable
//! before the response. The outcome of an object change is written later: after a crash the record says that the outcome
//! is unknown. A read has one record, which the response does not wait for.

use crate::access::audit::AuditContext;
use crate::errors::{S3Error, S3Result};
use crate::headers::object_lock;
use crate::headers::version::{MARKER_HEADER, VERSION_HEADER};
use crate::request::fields::Fields;
use cairn_http1::ResponseHead;
use cairn_observe::{AuditKind, AuditResult, DataEvents, Intent};
use std::cell::Cell;

/// The effect of an operation, for the audit trail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// It reads an object or a bucket, or lists.
    Read,
    /// It changes an object or an upload.
    ObjectChange,
    /// It changes objects that its document names. The operation records each of them.
    NamedObjectChanges,
    /// It changes a bucket.
    BucketChange,
}

/// The kind of a request's audit record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RecordKind {
    /// Not at all, unless it is refused or fails.
    Nothing,
    /// As a read.
    Read,
    /// As an object change.
    ObjectChange,
    /// As an object change that bypasses governance retention. Recorded like a bucket change.
    GovernanceBypass,
    /// As a bucket change.
    BucketChange,
}

impl RecordKind {
    /// Returns how a request with this effect is recorded. `may_bypass`: its operation can bypass governance retention.
    pub(crate) fn of(effect: Effect, may_bypass: bool, fields: Fields<'_>, data_events: DataEvents) -> Self {
        match effect {
            Effect::BucketChange => Self::BucketChange,
            Effect::ObjectChange if may_bypass && object_lock::requests_bypass(fields) => {
                Self::GovernanceBypass
            }
            Effect::ObjectChange if data_events >= DataEvents::Writes => Self::ObjectChange,
            Effect::Read if data_events >= DataEvents::All => Self::Read,
            Effect::ObjectChange | Effect::NamedObjectChanges | Effect::Read => Self::Nothing,
        }
    }
}

/// The record of a request that is being carried out. Usually there is none.
#[derive(Default)]
pub(crate) struct Recording(Cell<Option<Box<Begun>>>);

/// A record that was begun and has no outcome yet. Dropping it records a change with an unknown outcome.
pub(crate) struct Begun {
    kind: RecordKind,
    context: AuditContext,
    /// `None` for a read.
    intent: Option<Intent>,
    /// Further information about the change.
    detail: String,
}

impl Recording {
    /// Begins the record of a request. A change may begin when this returns: its intent is durable.
    ///
    /// # Errors
    /// `InsufficientStorage`, `SlowDown` or `ServiceUnavailable` if a change cannot be recorded. It must not begin.
    pub(crate) async fn begin(kind: RecordKind, context: impl FnOnce() -> AuditContext) -> S3Result<Self> {
        if kind == RecordKind::Nothing {
            return Ok(Self::default());
        }
        let context = context();
        let intent = match kind {
            RecordKind::Read => None,
            RecordKind::BucketChange => Some(context.record_intent(AuditKind::BucketChange).await?),
            _ => Some(context.record_intent(AuditKind::ObjectChange).await?),
        };
        let detail = match kind {
            RecordKind::GovernanceBypass => "asked to bypass governance retention".to_owned(),
            _ => String::new(),
        };
        Ok(Self(Cell::new(Some(Box::new(Begun { kind, context, intent, detail })))))
    }

    /// Adds to the record what a change did. Costs nothing if there is no record.
    pub(crate) fn describe(&self, detail: impl FnOnce() -> String) {
        if let Some(mut begun) = self.0.take() {
            begun.add_detail(&detail());
            self.0.set(Some(begun));
        }
    }

    /// Takes the record, to end it.
    pub(crate) fn take(&self) -> Option<Box<Begun>> {
        self.0.take()
    }
}

impl Begun {
    /// Records the outcome. Returns whether a failure was recorded.
    ///
    /// # Errors
    /// `SlowDown` or `ServiceUnavailable` if a read cannot be recorded. It must not be answered.
    pub(crate) async fn end(mut self: Box<Self>, outcome: Result<&ResponseHead, &S3Error>) -> S3Result<bool> {
        match outcome {
            Ok(head) => self.add_detail(&version_detail(head)),
            Err(error) => self.add_detail(&error.cause_text()),
        }
        let Self { kind, context, intent, detail } = *self;
        let Some(intent) = intent else {
            if outcome.is_ok() {
                context.record_read().await?;
            }
            return Ok(false);
        };
        let (event, is_failure) = match outcome {
            Ok(_) => (Some(context.record(AuditResult::Allowed, detail)), false),
            // The change may have been made in part.
            Err(error) if error.is_internal() => (Some(context.record(AuditResult::Failed, detail)), true),
            Err(error) => {
                // Nothing was changed. Attempts are limited by client, because clients may repeat them in a loop.
                if is_refused_by_state(error) {
                    context.offer(AuditResult::Failed, detail);
                }
                (None, false)
            }
        };
        if kind == RecordKind::ObjectChange || event.is_none() {
            intent.complete_later(event);
        } else {
            intent.complete(event).await;
        }
        Ok(is_failure)
    }

    fn add_detail(&mut self, detail: &str) {
        if !self.detail.is_empty() && !detail.is_empty() {
            self.detail.push_str("; ");
        }
        self.detail.push_str(detail);
    }
}

/// Returns whether the state of the store refused the request: a lock, a quota, a conflict. Denials have their own record.
fn is_refused_by_state(error: &S3Error) -> bool {
    matches!(error.status(), 403 | 409) && error.denied_because().is_none()
}

/// Returns which version a response names: `version <id>`, `delete marker <id>`, or nothing.
fn version_detail(head: &ResponseHead) -> String {
    let text = |name| head.get(name).and_then(|value| std::str::from_utf8(value).ok());
    let kind = if text(MARKER_HEADER).is_some() { "delete marker" } else { "version" };
    text(VERSION_HEADER).map(|version| format!("{kind} {version}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Effect, RecordKind};
    use crate::request::fields::Fields;
    use crate::request::query::Query;
    use cairn_observe::DataEvents;

    #[test]
    fn bucket_changes_and_bypasses_are_always_recorded_and_objects_as_configured() {
        use Effect::{BucketChange, ObjectChange, Read};
        let query = Query::default();
        let kind = |effect, bypass: Option<&str>, data_events| {
            let headers = bypass.map(|value| [("x-amz-bypass-governance-retention", value.as_bytes())]);
            let headers = headers.as_ref().map_or(&[][..], |headers| &headers[..]);
            RecordKind::of(effect, bypass.is_some(), Fields::new(headers, &query), data_events)
        };
        for (data_events, change, read) in [
            (DataEvents::Off, RecordKind::Nothing, RecordKind::Nothing),
            (DataEvents::Writes, RecordKind::ObjectChange, RecordKind::Nothing),
            (DataEvents::All, RecordKind::ObjectChange, RecordKind::Read),
        ] {
            assert_eq!(kind(BucketChange, None, data_events), RecordKind::BucketChange);
            assert_eq!(kind(ObjectChange, None, data_events), change);
            assert_eq!(kind(ObjectChange, Some("false"), data_events), change);
            assert_eq!(kind(ObjectChange, Some("True"), data_events), RecordKind::GovernanceBypass);
            assert_eq!(kind(Read, None, data_events), read);
        }
    }
}
