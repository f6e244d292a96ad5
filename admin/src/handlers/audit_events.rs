//! The route that queries the audit trail.

use cairn_api::AuditPage;
use cairn_model::{u64_of, usize_of};
use cairn_observe::{
    AUDIT_PAGE_EVENTS_DEFAULT, AUDIT_PAGE_EVENTS_MAX, AuditEvent, AuditId, AuditQuery, AuditRecord,
    AuditResult,
};
use http::StatusCode;

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;
use crate::request::query::{AFTER, Parameters, contained};

/// Returns the JSON form of an event. Unknown values are null.
fn event_body(event: AuditEvent) -> cairn_api::AuditEvent {
    let known = |text: String| Some(text).filter(|text| !text.is_empty());
    let detail = detail_text(&event.record);
    let record = event.record;
    cairn_api::AuditEvent {
        id: event.id.to_string().into(),
        time: event.id.time().into(),
        principal: known(record.principal),
        role: known(record.role),
        operation: known(record.operation),
        resource: known(record.resource),
        result: record.result.name().into(),
        source_ip: record.source_ip.map(|address| address.to_string().into()),
        request_id: known(record.request_id),
        detail: known(detail),
    }
}

/// Returns the detail, with the source of a copy. The source has no field of its own, because clients know the fields.
fn detail_text(record: &AuditRecord) -> String {
    match (record.detail.as_str(), record.copy_source.as_str()) {
        (detail, "") => detail.to_owned(),
        ("", source) => format!("copy source {source}"),
        (detail, source) => format!("{detail}; copy source {source}"),
    }
}

/// `GET /api/v1/audit/events` (specification, "Audit").
pub(crate) async fn events(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let log = call.audit_log()?;
    let page = log.page(parse_query(&call.parameters)?).await?;
    let body = AuditPage {
        events: page.events.into_iter().map(event_body).collect(),
        next_time: page.next.map(|id| id.time().into()),
        next_id: page.next.map(|id| id.to_string().into()),
    };
    Reply::json(StatusCode::OK, &body)
}

/// Parses the filters and the cursor.
fn parse_query(query: &Parameters) -> Result<AuditQuery, AdminError> {
    let text = |name| query.text(name).map(str::to_owned);
    let limit = query.number("limit", 1..=u64_of(AUDIT_PAGE_EVENTS_MAX))?;
    let source_ip = query
        .text("source_ip")
        .map(|address| address.parse().map_err(|_| AdminError::invalid("source_ip must be an IP address")));
    Ok(AuditQuery {
        since: query.time("since")?,
        until: query.time("until")?,
        principal: text("principal"),
        operations: query.texts("operation").map(str::to_owned).collect(),
        resource: text("resource"),
        bucket: text("bucket"),
        key: text("key"),
        result: query.text("result").map(parse_result).transpose()?,
        source_ip: source_ip.transpose()?,
        request_id: text("request_id"),
        contains: contained(query)?,
        after: query.cursor(AFTER, AuditId::parse, |id| id.time(), AdminError::InvalidAuditCursor)?,
        limit: limit.map_or(AUDIT_PAGE_EVENTS_DEFAULT, usize_of),
    })
}

fn parse_result(value: &str) -> Result<AuditResult, AdminError> {
    let known = AuditResult::ALL.into_iter().find(|result| result.name() == value);
    known.ok_or_else(|| AdminError::invalid("result must be allowed, denied or failed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::query_of;
    use cairn_http1::iso8601_millis;
    use cairn_model::{TextSearch, Timestamp};

    const ID: &str = "00010203-0405-7000-bfff-ffffffffffff";

    fn parse(query: &str) -> Result<AuditQuery, AdminError> {
        parse_query(&query_of("list_audit_events", query)?)
    }

    fn code(query: &str) -> &'static str {
        parse(query).err().map_or("", |error| error.code())
    }

    #[test]
    fn every_filter_is_parsed() {
        let time = iso8601_millis(0x0001_0203_0405);
        let query = format!(
            "since=2026-11-21T05:00:00.000Z&until=2026-11-22T05:00:00%2B01:00&principal=a%20b&operation=o&operation=p&resource=b/k\
             &bucket=b&key=k&result=denied&source_ip=::1&request_id=q&contains=C&limit=7&after_time={time}&after_id={ID}"
        );
        let expected = AuditQuery {
            since: Some(Timestamp(1_795_237_200_000)),
            until: Some(Timestamp(1_795_237_200_000 + 23 * 3_600_000)),
            principal: Some("a b".to_owned()),
            operations: vec!["o".to_owned(), "p".to_owned()],
            resource: Some("b/k".to_owned()),
            bucket: Some("b".to_owned()),
            key: Some("k".to_owned()),
            result: Some(AuditResult::Denied),
            source_ip: Some("::1".parse().unwrap()),
            request_id: Some("q".to_owned()),
            contains: Some(TextSearch::new("c")),
            after: AuditId::parse(ID),
            limit: 7,
        };
        assert_eq!(parse(&query), Ok(expected));
        assert_eq!(parse(""), Ok(AuditQuery { limit: 100, ..AuditQuery::default() }));
    }

    #[test]
    fn invalid_parameters_are_refused() {
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
    fn cursor_needs_time_and_id_of_same_event() {
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
