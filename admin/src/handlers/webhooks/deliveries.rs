//! The route that queries the delivery log.

use cairn_api::{Delivery, DeliveryPage};
use cairn_engine::{EventId, EventQuery, StorageEvent, Store};
use cairn_http1::parse_rfc3339_millis;
use cairn_model::{Timestamp, u64_of, usize_of};
use cairn_webhooks::{
    DeliveryEntry, DeliveryId, DeliveryQuery, DeliveryStatus, PAGE_DELIVERIES_MAX, WebhookId,
};
use futures_lite::future::yield_now;
use http::StatusCode;

use super::body::delivery_body;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;
use crate::request::query::Parameters;

/// `GET /api/v1/webhook-deliveries`.
pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (query, has_details) = parse_query(&call.parameters)?;
    let page = call.webhooks()?.deliveries(query).await?;
    let deliveries = if has_details {
        with_details(call.store()?, page.deliveries).await?
    } else {
        page.deliveries.into_iter().map(delivery_body).collect()
    };
    let body = DeliveryPage {
        deliveries,
        next_time: page.next.map(|(time, _)| time.into()),
        next_id: page.next.map(|(_, id)| id.to_string().into()),
    };
    Reply::json(StatusCode::OK, &body)
}

/// Returns the bodies with bucket and object of their events, and whether these are lost.
async fn with_details(store: &Store, entries: Vec<DeliveryEntry>) -> Result<Vec<Delivery>, AdminError> {
    let mut bodies = Vec::with_capacity(entries.len());
    // The attempts of one event are often next to each other.
    let mut last: Option<(EventId, Option<StorageEvent>)> = None;
    for (index, entry) in entries.into_iter().enumerate() {
        let id = entry.event_id;
        if last.as_ref().is_none_or(|(known, _)| *known != id) {
            let tick = id.tick();
            let query = EventQuery { from: tick, until: tick.next(), limit: 1, ..EventQuery::default() };
            last = Some((id, store.events(&query)?.events.pop()));
        }
        if index % EVENTS_READ_AT_ONCE == EVENTS_READ_AT_ONCE - 1 {
            yield_now().await;
        }
        let event = last.as_ref().and_then(|(_, event)| event.as_ref());
        let event_lost = Some(entry.event_lost);
        let bucket = event.map(|event| event.bucket.clone());
        let object = event.and_then(|event| event.object.as_ref()).map(|object| object.key.clone());
        bodies.push(Delivery { event_lost, bucket, object, ..delivery_body(entry) });
    }
    Ok(bodies)
}

/// Events that are read before other requests are served.
const EVENTS_READ_AT_ONCE: usize = 32;

/// Returns the query, and whether the answer has details.
fn parse_query(query: &Parameters) -> Result<(DeliveryQuery, bool), AdminError> {
    let limit = query.number("limit", 1..=u64_of(PAGE_DELIVERIES_MAX))?;
    let not_an_id = |name| AdminError::invalid(format!("{name} is not an id"));
    let webhook = query.text("webhook_id").map(|id| WebhookId::parse(id).ok_or(not_an_id("webhook_id")));
    let event = query.text("event_id").map(|id| EventId::parse(id).ok_or(not_an_id("event_id")));
    let defaults = DeliveryQuery::default();
    let lost = query.flag("lost")?;
    let status = query.text("status").map(parse_status).transpose()?;
    if lost && status.is_some() {
        return Err(AdminError::invalid("lost and status cannot be given together"));
    }
    let parsed = DeliveryQuery {
        webhook: webhook.transpose()?,
        event: event.transpose()?,
        status,
        lost,
        after: parse_cursor(query.text("after_time"), query.text("after_id"))?,
        limit: limit.map_or(defaults.limit, usize_of),
    };
    Ok((parsed, query.flag("details")?))
}

fn parse_status(name: &str) -> Result<DeliveryStatus, AdminError> {
    DeliveryStatus::from_name(name).ok_or_else(|| {
        let names = DeliveryStatus::ALL.map(DeliveryStatus::name).join(", ");
        AdminError::invalid(format!("status must be one of {names}"))
    })
}

/// Parses the cursor: `next_time` and `next_id` of a page.
fn parse_cursor(time: Option<&str>, id: Option<&str>) -> Result<Option<(Timestamp, DeliveryId)>, AdminError> {
    let invalid = |message: &str| AdminError::InvalidEventCursor(message.to_owned());
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
    use crate::routes::query_of;

    const ID: &str = "019b76da-a87b-7abc-8707-070707070707";

    fn parse(query: &str) -> Result<(DeliveryQuery, bool), AdminError> {
        parse_query(&query_of("list_webhook_deliveries", query)?)
    }

    #[test]
    fn every_filter_is_parsed() {
        let query = format!(
            "limit=7&webhook_id={ID}&event_id={ID}&status=dropped&details=true\
             &after_time=2026-01-01T00:00:00.123Z&after_id={ID}"
        );
        let (query, has_details) = parse(&query).expect("valid");
        assert!(has_details && !query.lost);
        assert!(parse("lost=true&details=false").is_ok_and(|(query, details)| query.lost && !details));
        assert_eq!((query.limit, query.status), (7, Some(DeliveryStatus::Dropped)));
        assert_eq!((query.webhook, query.event), (WebhookId::parse(ID), EventId::parse(ID)));
        assert_eq!(query.after, Some((Timestamp(1_767_225_600_123), DeliveryId::parse(ID).expect("an id"))));
        assert_eq!(parse("").expect("valid").0.limit, 100);
    }

    #[test]
    fn invalid_parameters_are_refused() {
        let code = |query: &str| parse(query).err().map_or("", |error| error.code());
        for query in [
            "limit=0",
            "limit=1001",
            "webhook_id=x",
            "event_id=",
            "status=ok",
            "webhook=1",
            "lost=1",
            "lost=true&status=failed",
        ] {
            assert_eq!(code(query), "INVALID_REQUEST", "{query}");
        }
        for query in ["after_id=x", "after_time=2026-01-01T00:00:00Z", "after_time=x&after_id=y"] {
            assert_eq!(code(query), "INVALID_EVENT_CURSOR", "{query}");
        }
    }
}
