//! The audit trail on the management plane: the route that shows it, and what the plane leaves in it.

use std::net::IpAddr;
use std::sync::Arc;

use cairn_http1::{RequestHead, iso8601_millis, parse_rfc3339_millis, query_pairs};
use cairn_model::Timestamp;
use cairn_observe::{
    AUDIT_PAGE_EVENTS_DEFAULT, AUDIT_PAGE_EVENTS_MAX, AuditError, AuditEvent, AuditId, AuditLog, AuditQuery,
    AuditRecord, AuditResult, Source,
};
use http::StatusCode;
use serde::Serialize;

use crate::error::AdminError;
use crate::reply::Reply;

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
pub(crate) async fn events(head: &RequestHead, log: &AuditLog) -> Result<Reply, AdminError> {
    let page =
        log.page(parse_query(head.query().unwrap_or_default())?).await.map_err(|error| match error {
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

/// The filters, as a query says them. A parameter that is not known, or given twice, is refused.
fn parse_query(query: &str) -> Result<AuditQuery, AdminError> {
    let mut asked = AuditQuery { limit: AUDIT_PAGE_EVENTS_DEFAULT, ..AuditQuery::default() };
    let (mut after_time, mut after_id) = (None, None);
    let mut seen = Vec::new();
    for pair in query_pairs(query) {
        let (name, value) = pair.map_err(|error| AdminError::invalid(error.to_string()))?;
        if seen.contains(&name) {
            return Err(AdminError::invalid(format!("{name} is given twice")));
        }
        match &*name {
            "since" => asked.since = Some(parse_time("since", &value)?),
            "until" => asked.until = Some(parse_time("until", &value)?),
            "principal" => asked.principal = Some(value.into_owned()),
            "operation" => asked.operation = Some(value.into_owned()),
            "resource" => asked.resource = Some(value.into_owned()),
            "result" => asked.result = Some(parse_result(&value)?),
            "source_ip" => {
                let address =
                    value.parse().map_err(|_| AdminError::invalid("source_ip must be an IP address"));
                asked.source_ip = Some(address?);
            }
            "request_id" => asked.request_id = Some(value.into_owned()),
            "after_time" => after_time = Some(value.into_owned()),
            "after_id" => after_id = Some(value.into_owned()),
            "limit" => asked.limit = parse_limit(&value)?,
            _ => return Err(AdminError::invalid(format!("the route has no query parameter {name}"))),
        }
        seen.push(name);
    }
    asked.after = parse_cursor(after_time.as_deref(), after_id.as_deref())?;
    Ok(asked)
}

fn parse_time(name: &str, value: &str) -> Result<Timestamp, AdminError> {
    let time = parse_rfc3339_millis(value).map(Timestamp);
    time.ok_or_else(|| AdminError::invalid(format!("{name} must be a time such as 2026-11-21T05:00:00.000Z")))
}

fn parse_result(value: &str) -> Result<AuditResult, AdminError> {
    let known = AuditResult::ALL.into_iter().find(|result| result.name() == value);
    known.ok_or_else(|| AdminError::invalid("result must be allowed, denied or failed"))
}

fn parse_limit(value: &str) -> Result<usize, AdminError> {
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let limit = if digits { value.parse().ok() } else { None };
    limit.filter(|limit| (1..=AUDIT_PAGE_EVENTS_MAX).contains(limit)).ok_or_else(|| {
        AdminError::invalid(format!("limit must be a whole number from 1 to {AUDIT_PAGE_EVENTS_MAX}"))
    })
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

/// Records that a caller could not be authenticated. What was sent as a credential is left out: it may be a secret in
/// the wrong place.
pub(crate) fn refused(log: &Arc<AuditLog>, head: &RequestHead, route: &str, id: &str, peer: IpAddr) {
    let detail =
        if head.header("authorization").is_some() { "the credential is not right" } else { "no credential" };
    let operation = format!("{} {route}", head.method());
    let record = AuditRecord {
        source_ip: Some(peer),
        request_id: id.to_owned(),
        detail: detail.to_owned(),
        ..AuditRecord::new(AuditRecord::ANONYMOUS, &operation, AuditResult::Denied)
    };
    log.offer(Source::Client(peer), record);
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "00010203-0405-7000-bfff-ffffffffffff";

    fn code(query: &str) -> &'static str {
        parse_query(query).err().map_or("", |error| error.code())
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
        assert_eq!(parse_query(&query), Ok(expected));
        assert_eq!(parse_query(""), Ok(AuditQuery { limit: 100, ..AuditQuery::default() }));
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
