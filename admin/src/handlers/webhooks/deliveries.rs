//! The route that queries the delivery log.

use cairn_api::DeliveryPage;
use cairn_engine::EventId;
use cairn_http1::parse_rfc3339_millis;
use cairn_model::{Timestamp, u64_of, usize_of};
use cairn_webhooks::{DeliveryId, DeliveryQuery, DeliveryStatus, PAGE_DELIVERIES_MAX, WebhookId};
use http::StatusCode;

use super::body::delivery_body;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;
use crate::request::query::Parameters;

/// `GET /api/v1/webhook-deliveries`.
pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let query = parse_query(call.head.query())?;
    let page = call.webhooks()?.deliveries(query).await?;
    let body = DeliveryPage {
        deliveries: page.deliveries.into_iter().map(delivery_body).collect(),
        next_time: page.next.map(|(time, _)| time.into()),
        next_id: page.next.map(|(_, id)| id.to_string().into()),
    };
    Reply::json(StatusCode::OK, &body)
}

/// The query parameters of the route.
const PARAMETERS: [&str; 6] = ["limit", "webhook_id", "event_id", "status", "after_time", "after_id"];

fn parse_query(query: Option<&str>) -> Result<DeliveryQuery, AdminError> {
    let query = Parameters::parse(query, &PARAMETERS)?;
    let limit = query.number("limit", 1..=u64_of(PAGE_DELIVERIES_MAX))?;
    let not_an_id = |name| AdminError::invalid(format!("{name} is not an id"));
    let webhook = query.text("webhook_id").map(|id| WebhookId::parse(id).ok_or(not_an_id("webhook_id")));
    let event = query.text("event_id").map(|id| EventId::parse(id).ok_or(not_an_id("event_id")));
    let defaults = DeliveryQuery::default();
    Ok(DeliveryQuery {
        webhook: webhook.transpose()?,
        event: event.transpose()?,
        status: query.text("status").map(parse_status).transpose()?,
        after: parse_cursor(query.text("after_time"), query.text("after_id"))?,
        limit: limit.map_or(defaults.limit, usize_of),
    })
}

fn parse_status(name: &str) -> Result<DeliveryStatus, AdminError> {
    DeliveryStatus::from_name(name).ok_or_else(|| {
        let names = DeliveryStatus::ALL.map(DeliveryStatus::name).join(", ");
        AdminError::invalid(format!("status must be one of {names}"))
    })
}

/// Parses the cursor: `next_time` and `next_id` of a page.
fn parse_cursor(time: Option<&str>, id: Option<&str>) -> Result<Option<(Timestamp, DeliveryId)>, AdminError> {
    let invalid = AdminError::InvalidEventCursor;
    match (time, id) {
        (None, None) => Ok(None),
        (Some(time), Some(id)) => {
            let time = parse_rfc3339_millis(time)
                .ok_or(invalid("after_time must be a time such as 2026-11-21T05:00:00.000Z"))?;
            let id = DeliveryId::parse(id).ok_or(invalid("after_id is not the id of a delivery"))?;
            Ok(Some((Timestamp(time), id)))
        }
        _ => Err(invalid("after_time and after_id must be given together")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "019b76da-a87b-7abc-8707-070707070707";

    #[test]
    fn every_filter_is_parsed() {
        let query = format!(
            "limit=7&webhook_id={ID}&event_id={ID}&status=dropped&after_time=2026-01-01T00:00:00.123Z&after_id={ID}"
        );
        let query = parse_query(Some(&query)).expect("valid");
        assert_eq!((query.limit, query.status), (7, Some(DeliveryStatus::Dropped)));
        assert_eq!((query.webhook, query.event), (WebhookId::parse(ID), EventId::parse(ID)));
        assert_eq!(query.after, Some((Timestamp(1_767_225_600_123), DeliveryId::parse(ID).expect("an id"))));
        assert_eq!(parse_query(None).expect("valid").limit, 100);
    }

    #[test]
    fn invalid_parameters_are_refused() {
        let code = |query: &str| parse_query(Some(query)).err().map_or("", |error| error.code());
        for query in ["limit=0", "limit=1001", "webhook_id=x", "event_id=", "status=ok", "webhook=1"] {
            assert_eq!(code(query), "INVALID_REQUEST", "{query}");
        }
        for query in ["after_id=x", "after_time=2026-01-01T00:00:00Z", "after_time=x&after_id=y"] {
            assert_eq!(code(query), "INVALID_EVENT_CURSOR", "{query}");
        }
    }
}
