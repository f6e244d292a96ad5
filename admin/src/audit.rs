//! The audit trail on the management plane: the route that shows it, and what the plane leaves in it.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use cairn_http1::{decode, iso8601_millis, parse_rfc3339_millis};
use cairn_observe::{
    AUDIT_PAGE_EVENTS_DEFAULT, AUDIT_PAGE_EVENTS_MAX, AuditError, AuditEvent, AuditId, AuditLog, AuditQuery,
    AuditRecord, AuditResult, Intent, Source,
};
use http::StatusCode;
use serde::Serialize;

use crate::access::Caller;
use crate::call::Call;
use crate::error::AdminError;
use crate::query::Parameters;
use crate::reply::{Record, Reply};
use crate::routes::Segments;

/// One event. What is not known is null.
#[derive(Serialize)]
struct EventBody<'e> {
    id: String,
    time: String,
    principal: Option<&'e str>,
    role: Option<&'e str>,
    operation: Option<&'e str>,
    resource: Option<&'e str>,
    result: &'static str,
    source_ip: Option<String>,
    request_id: Option<&'e str>,
    detail: Option<&'e str>,
}

impl<'e> EventBody<'e> {
    fn new(event: &'e AuditEvent) -> Self {
        let known = |text: &'e String| Some(text.as_str()).filter(|text| !text.is_empty());
        let record = &event.record;
        Self {
            id: event.id.to_string(),
            time: time_text(event.id),
            principal: known(&record.principal),
            role: known(&record.role),
            operation: known(&record.operation),
            resource: known(&record.resource),
            result: record.result.name(),
            source_ip: record.source_ip.map(|address| address.to_string()),
            request_id: known(&record.request_id),
            detail: known(&record.detail),
        }
    }
}

/// A page. Both of the last are null when there are no more events.
#[derive(Serialize)]
struct PageBody<'e> {
    events: Vec<EventBody<'e>>,
    next_time: Option<String>,
    next_id: Option<String>,
}

fn time_text(id: AuditId) -> String {
    iso8601_millis(id.time().0)
}

/// `GET /api/v1/audit/events` (specification, "Audit").
pub(crate) async fn events(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let log = call.service.options.audit.as_ref().ok_or(AdminError::NotReady("the store is not open"))?;
    let page = log.page(read_query(call.head.query())?).await.map_err(|error| match error {
        AuditError::Overloaded => {
            AdminError::TooManyRequests("as many audit queries as may wait are waiting")
        }
        AuditError::ShuttingDown => AdminError::NotReady("the service is shutting down"),
        // The log has the reason.
        AuditError::Failed(_) | AuditError::Full => AdminError::Internal,
    })?;
    let body = PageBody {
        events: page.events.iter().map(EventBody::new).collect(),
        next_time: page.next.map(time_text),
        next_id: page.next.map(|id| id.to_string()),
    };
    Reply::json(StatusCode::OK, &body)
}

/// The parameters of the route.
const PARAMETERS: [&str; 11] = [
    "since",
    "until",
    "principal",
    "operation",
    "resource",
    "result",
    "source_ip",
    "request_id",
    "after_time",
    "after_id",
    "limit",
];

/// The filters, as a query says them.
fn read_query(query: Option<&str>) -> Result<AuditQuery, AdminError> {
    let given = Parameters::read(query, &PARAMETERS)?;
    let text = |name| given.text(name).map(str::to_owned);
    let limit = given.number("limit", 1..=AUDIT_PAGE_EVENTS_MAX as u64)?;
    let source_ip = given
        .text("source_ip")
        .map(|address| address.parse().map_err(|_| AdminError::invalid("source_ip must be an IP address")));
    Ok(AuditQuery {
        since: given.time("since")?,
        until: given.time("until")?,
        principal: text("principal"),
        operation: text("operation"),
        resource: text("resource"),
        result: given.text("result").map(parse_result).transpose()?,
        source_ip: source_ip.transpose()?,
        request_id: text("request_id"),
        after: parse_cursor(given.text("after_time"), given.text("after_id"))?,
        limit: limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(AUDIT_PAGE_EVENTS_DEFAULT),
    })
}

fn parse_result(value: &str) -> Result<AuditResult, AdminError> {
    let known = AuditResult::ALL.into_iter().find(|result| result.name() == value);
    known.ok_or_else(|| AdminError::invalid("result must be allowed, denied or failed"))
}

/// The place that `next_time` and `next_id` of a page named. Both come from the same event, so both must agree.
fn parse_cursor(time: Option<&str>, id: Option<&str>) -> Result<Option<AuditId>, AdminError> {
    let refused = AdminError::InvalidAuditCursor;
    let (time, id) = match (time, id) {
        (None, None) => return Ok(None),
        (Some(time), Some(id)) => (time, id),
        _ => return Err(refused("after_time and after_id must be given together")),
    };
    let id = AuditId::parse(id).ok_or(refused("after_id is not the id of an event"))?;
    match parse_rfc3339_millis(time) {
        None => Err(refused("after_time must be a time such as 2026-11-21T05:00:00.000Z")),
        Some(time) if time != id.time().0 => Err(refused("after_time is not the time of the event after_id")),
        Some(_) => Ok(Some(id)),
    }
}

/// What of a request goes into its record.
pub(crate) struct Trail<'r> {
    pub(crate) operation: &'static str,
    pub(crate) segments: Segments<'r>,
    pub(crate) caller: Option<&'r Caller>,
    pub(crate) request_id: &'r str,
    pub(crate) client: IpAddr,
}

impl Trail<'_> {
    /// A record that says more, and which management token it was, if it was one.
    fn detailed(&self, result: AuditResult, detail: &str) -> AuditRecord {
        let token = self.caller.and_then(|caller| caller.token).map(|id| format!("token {id}"));
        let parts = [Some(detail.to_owned()).filter(|detail| !detail.is_empty()), token];
        let detail = parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
        AuditRecord { detail, ..self.record(result) }
    }

    fn record(&self, result: AuditResult) -> AuditRecord {
        let principal = self.caller.map_or(AuditRecord::ANONYMOUS, |caller| &caller.principal);
        AuditRecord {
            role: self.caller.map(|caller| caller.role.name().to_owned()).unwrap_or_default(),
            resource: self.resource(),
            source_ip: Some(self.client),
            request_id: self.request_id.to_owned(),
            ..AuditRecord::new(principal, self.operation, result)
        }
    }

    /// What the path names, joined by slashes: `bucket/key`, an id.
    fn resource(&self) -> String {
        let decoded = self.segments.iter().map(|(_, sent)| decode(sent).unwrap_or(Cow::Borrowed(sent)));
        decoded.collect::<Vec<_>>().join("/")
    }

    /// Records that a change is about to be made. Durable when it returns: what cannot be recorded is not begun.
    ///
    /// # Errors
    /// `STORAGE_FULL`, and `NOT_READY` when the trail records nothing.
    pub(crate) async fn intend(&self, log: &Arc<AuditLog>) -> Result<Intent, AdminError> {
        log.intend(self.detailed(AuditResult::Allowed, "")).await.map_err(|error| match error {
            AuditError::Full => AdminError::StorageFull,
            AuditError::Overloaded => AdminError::NotReady("too many records wait for the audit trail"),
            AuditError::Failed(_) => AdminError::NotReady("the audit trail records nothing"),
            AuditError::ShuttingDown => AdminError::NotReady("the service is shutting down"),
        })
    }

    /// Records what came of a change: `Ok` was carried out, of an `Err` that is worth it the reason. Durable when it returns, or
    /// on a full disk as its intent.
    pub(crate) async fn settle(&self, intent: Intent, outcome: Result<Record, &AdminError>) {
        let event = match outcome {
            Ok(Record { is_without_change: true, .. }) => None,
            Ok(Record { resource, detail, .. }) => {
                let made = self.detailed(AuditResult::Allowed, &detail);
                Some(AuditRecord { resource: resource.unwrap_or(made.resource.clone()), ..made })
            }
            Err(error) if is_outcome(error) => Some(self.failed(error)),
            Err(_) => None,
        };
        intent.settle(event).await;
    }

    fn failed(&self, error: &AdminError) -> AuditRecord {
        self.detailed(AuditResult::Failed, &format!("{}: {}", error.code(), error.message()))
    }

    /// Records that a request was refused for who sent it. Of a wrong credential nothing is recorded: it may be a secret in
    /// the wrong place.
    pub(crate) fn refused(&self, log: &AuditLog, has_credential: bool) {
        let detail = match (self.caller, has_credential) {
            (Some(_), _) => AdminError::Forbidden.code(),
            (None, true) => "the credential is not right",
            (None, false) => "no credential",
        };
        log.offer(Source::Client(self.client), self.detailed(AuditResult::Denied, detail));
    }
}

/// What a record needs of a request whose answer may still fail when its head is out.
pub(crate) struct ReadTrail {
    log: Option<Arc<AuditLog>>,
    record: AuditRecord,
}

impl ReadTrail {
    /// Of this request.
    pub(crate) fn new(trail: &Trail<'_>, log: Option<&Arc<AuditLog>>) -> Self {
        Self { log: log.cloned(), record: trail.record(AuditResult::Failed) }
    }

    /// Stored data or the device failed the request.
    pub(crate) fn failed(&self, cause: String) {
        let AuditRecord { operation, resource, request_id, .. } = &self.record;
        tracing::error!(target: "service", request_id, operation, cause, "an object could not be read");
        if let Some(log) = &self.log {
            let finding = format!("{operation} {resource}");
            log.offer(Source::Finding(&finding), AuditRecord { detail: cause, ..self.record.clone() });
        }
    }
}

/// Whether a failed change is worth a record: refused by how things stand, or ended on its way, so that it may have been made in
/// part. What is wrong in the request itself changed nothing.
fn is_outcome(error: &AdminError) -> bool {
    let status = error.status();
    status.is_server_error() || matches!(status, StatusCode::FORBIDDEN | StatusCode::CONFLICT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_model::Timestamp;

    const ID: &str = "00010203-0405-7000-bfff-ffffffffffff";

    fn code(query: &str) -> &'static str {
        read_query(Some(query)).err().map_or("", |error| error.code())
    }

    #[test]
    fn every_filter_is_read() {
        let time = iso8601_millis(0x0001_0203_0405);
        let query = format!(
            "since=2026-11-21T05:00:00.000Z&until=2026-11-22T05:00:00%2B01:00&principal=a%20b&operation=o&resource=b/k\
             &result=denied&source_ip=::1&request_id=q&limit=7&after_time={time}&after_id={ID}"
        );
        let expected = AuditQuery {
            since: Some(Timestamp(1_795_237_200_000)),
            until: Some(Timestamp(1_795_237_200_000 + 23 * 3_600_000)),
            principal: Some("a b".to_owned()),
            operation: Some("o".to_owned()),
            resource: Some("b/k".to_owned()),
            result: Some(AuditResult::Denied),
            source_ip: Some("::1".parse().unwrap()),
            request_id: Some("q".to_owned()),
            after: AuditId::parse(ID),
            limit: 7,
        };
        assert_eq!(read_query(Some(&query)), Ok(expected));
        assert_eq!(read_query(None), Ok(AuditQuery { limit: 100, ..AuditQuery::default() }));
    }

    #[test]
    fn what_cannot_be_understood_is_refused() {
        for query in [
            "limit=0",
            "limit=1001",
            "limit=",
            "limit=+5",
            "limit=1e2",
            "since=yesterday",
            "until=2026-13-01T00:00:00Z",
            "result=Denied",
            "source_ip=localhost",
            "sinse=2026-11-21T05:00:00Z",
            "principal=a&principal=a",
            "principal=%zz",
        ] {
            assert_eq!(code(query), "INVALID_REQUEST", "{query}");
        }
    }

    #[test]
    fn a_cursor_is_both_of_one_event_or_refused() {
        let time = iso8601_millis(0x0001_0203_0405);
        for query in [
            format!("after_id={ID}"),
            format!("after_time={time}"),
            format!("after_time={time}&after_id=x"),
            format!("after_time=x&after_id={ID}"),
            format!("after_time=2026-11-21T05:00:00.000Z&after_id={ID}"),
            format!("after_time={time}&after_id="),
        ] {
            assert_eq!(code(&query), "INVALID_AUDIT_CURSOR", "{query}");
        }
    }
}
