//! The route that reads storage events, and waits for new ones.
//!
//! One read of the engine examines a limited number of events. A page is made of several reads, with other requests in between,
//! and ends early after [`EVENT_READS_MAX`] of them: the client continues from the position that was reached.

use std::time::{Duration, Instant};

use cairn_engine::limits::EVENT_PAGE_EVENTS_MAX;
use cairn_engine::{EventId, EventPage, EventQuery, EventType, EventTypes, LatestEventPage, Store, Tick};
use cairn_model::{u64_of, usize_of};
use cairn_net::timeout;
use cairn_webhooks::event_body;
use futures_lite::future::{pending, yield_now};
use http::StatusCode;

use crate::call::Call;
use crate::error::AdminError;
use crate::limits::{EVENT_PAGE_EVENTS_DEFAULT, EVENT_READS_MAX, EVENT_WAIT_SECONDS_MAX};
use crate::reply::Reply;
use crate::request::query::{AFTER, BEFORE, Parameters, contained};

/// The interval at which a waiting request looks for a new event.
const WAIT_STEP: Duration = Duration::from_millis(25);
/// The interval at which it reads in any case. An event may become final without a new one: when an older transaction has
/// failed.
const READ_STEP: Duration = Duration::from_secs(1);

/// A parsed query.
#[derive(Clone, Debug)]
struct Request {
    query: EventQuery,
    wait: Duration,
    /// Whether the latest event comes first.
    is_backwards: bool,
}

/// `GET /api/v1/events` (specification, "Reading events").
pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let Request { query, wait, is_backwards } = parse_query(&call.parameters)?;
    let store = call.store()?;
    if is_backwards {
        return latest(store, query).await;
    }
    let mut page = read(store, &query).await?;
    if page.events.is_empty() && !page.is_truncated && !wait.is_zero() && !is_over(&query, &page) {
        let _waiting = call.context.waits.begin(call.caller()?.credential())?;
        page = call.until_disconnect(wait_for(&call, &query, page, wait)).await?;
    }
    let next = next_position(store, &query, &page);
    let body = cairn_api::EventPage {
        events: page.events.iter().map(event_body).collect(),
        next_time: next.map(|id| id.tick().time().into()),
        next_id: next.map(|id| id.to_string().into()),
    };
    Reply::json(StatusCode::OK, &body)
}

/// Answers with a page of the latest events. Other requests are served between the reads of the engine.
async fn latest(store: &Store, mut query: EventQuery) -> Result<Reply, AdminError> {
    let (mut events, limit) = (Vec::new(), query.limit);
    let mut next = None;
    for _ in 0..EVENT_READS_MAX {
        query.limit = limit - events.len();
        let LatestEventPage { events: more, examined, is_truncated } = store.latest_events(&query)?;
        events.extend(more);
        next = is_truncated.then(|| store.event_id(examined));
        if !is_truncated || events.len() >= limit {
            break;
        }
        query.until = examined;
        yield_now().await;
    }
    let body = cairn_api::EventPage {
        events: events.iter().map(event_body).collect(),
        next_time: next.map(|id| id.tick().time().into()),
        next_id: next.map(|id| id.to_string().into()),
    };
    Reply::json(StatusCode::OK, &body)
}

/// Returns whether no event of the query can occur any more.
fn is_over(query: &EventQuery, page: &EventPage) -> bool {
    page.examined >= query.until
}

/// Returns the position after which the client continues: that of the last event of a full page, or else that of the last
/// tick that was examined.
fn next_position(store: &Store, query: &EventQuery, page: &EventPage) -> Option<EventId> {
    if !page.is_truncated {
        return None;
    }
    let last = page.events.last().filter(|_| page.events.len() >= query.limit).map(|event| event.id);
    Some(last.unwrap_or_else(|| store.event_id(Tick(page.examined.0.saturating_sub(1)))))
}

/// Reads a page. Other requests are served between the reads of the engine.
async fn read(store: &Store, query: &EventQuery) -> Result<EventPage, AdminError> {
    let mut page = EventPage { examined: query.from, ..EventPage::default() };
    for _ in 0..EVENT_READS_MAX {
        let rest =
            EventQuery { from: page.examined, limit: query.limit - page.events.len(), ..query.clone() };
        let more = store.events(&rest)?;
        (page.examined, page.is_truncated) = (more.examined, more.is_truncated);
        page.events.extend(more.events);
        if !page.is_truncated || page.events.len() >= query.limit {
            break;
        }
        yield_now().await;
    }
    Ok(page)
}

/// Waits for the first event after an empty page. Returns an empty page when the time is over.
///
/// # Errors
/// `UNAUTHENTICATED` when the caller's token or session has ended meanwhile, and those of the reads.
async fn wait_for(
    call: &Call<'_, '_>,
    query: &EventQuery,
    mut page: EventPage,
    wait: Duration,
) -> Result<EventPage, AdminError> {
    let store = call.store()?;
    let begun = Instant::now();
    let mut query = query.clone();
    let (mut seen, mut last_read) = (None, begun);
    loop {
        let generation = store.event_signal().generation();
        if seen != Some(generation) || last_read.elapsed() >= READ_STEP {
            (seen, last_read) = (Some(generation), Instant::now());
            query.from = page.examined;
            page = read(store, &query).await?;
            if !page.events.is_empty() || page.is_truncated || is_over(&query, &page) {
                return Ok(page);
            }
        }
        let left = wait.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Ok(page);
        }
        let _: Option<()> = timeout(left.min(WAIT_STEP), pending()).await;
        call.authenticate_again()?;
    }
}

fn parse_query(query: &Parameters) -> Result<Request, AdminError> {
    let limit = query.number("limit", 1..=u64_of(EVENT_PAGE_EVENTS_MAX))?;
    let wait = query.number("wait_seconds", 0..=EVENT_WAIT_SECONDS_MAX)?.unwrap_or_default();
    let types = query.texts("type").map(parse_type).collect::<Result<EventTypes, _>>()?;
    let since = query.time("since")?.map_or_else(Tick::default, Tick::first_at);
    let is_backwards = match query.text("order") {
        None | Some("asc") => false,
        Some("desc") => true,
        Some(_) => return Err(AdminError::invalid("order must be asc or desc")),
    };
    let cursor =
        |names| query.cursor(names, EventId::parse, |id| id.tick().time(), AdminError::InvalidEventCursor);
    let (after, before) = (cursor(AFTER)?, cursor(BEFORE)?);
    if is_backwards && (after.is_some() || wait > 0) {
        return Err(AdminError::invalid("order=desc cannot be given with after_time or wait_seconds"));
    }
    if !is_backwards && before.is_some() {
        return Err(AdminError::invalid("before_time and before_id need order=desc"));
    }
    let until = query.time("until")?.map_or(Tick(u64::MAX), Tick::first_at);
    let text = |name| query.text(name).map(str::to_owned);
    let query = EventQuery {
        from: after.map_or(since, |id| since.max(id.tick().next())),
        until: before.map_or(until, |id| until.min(id.tick())),
        types: if types.is_empty() { EventTypes::ALL } else { types },
        bucket: text("bucket"),
        prefix: text("prefix"),
        principal: text("principal"),
        contains: contained(query)?,
        limit: limit.map_or(EVENT_PAGE_EVENTS_DEFAULT, usize_of),
    };
    Ok(Request { query, wait: Duration::from_secs(wait), is_backwards })
}

/// Parses the name of an event type.
///
/// # Errors
/// `INVALID_REQUEST`, with all names.
pub(crate) fn parse_type(name: &str) -> Result<EventType, AdminError> {
    EventType::from_name(name).ok_or_else(|| {
        let names = EventType::ALL.map(EventType::name).join(", ");
        AdminError::invalid(format!("an event type must be one of {names}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::query_of;
    use cairn_http1::iso8601_millis;
    use cairn_model::{TextSearch, Timestamp};

    const ID: &str = "019b76da-a87b-7abc-8707-070707070707";

    fn parse(query: &str) -> Result<Request, AdminError> {
        parse_query(&query_of("list_events", query)?)
    }

    fn code(query: &str) -> &'static str {
        parse(query).err().map_or("", |error| error.code())
    }

    #[test]
    fn every_filter_is_parsed() {
        let id = EventId::parse(ID).expect("an id");
        let time = iso8601_millis(id.tick().time().0);
        let query = format!(
            "since=2026-01-01T00:00:00Z&until=2026-11-22T05:00:00%2B01:00&type=object.created&type=bucket.deleted\
             &bucket=b&prefix=a%2F&after_time={time}&after_id={ID}&limit=7&wait_seconds=30"
        );
        let Request { query, wait, .. } = parse(&query).expect("valid");
        assert_eq!(query.from, id.tick().next(), "events after the cursor");
        assert_eq!(query.until, Tick::first_at(Timestamp(1_795_237_200_000 + 23 * 3_600_000)));
        assert_eq!(query.types, [EventType::BucketDeleted, EventType::ObjectCreated].into_iter().collect());
        assert_eq!((query.bucket.as_deref(), query.prefix.as_deref()), (Some("b"), Some("a/")));
        assert_eq!((query.limit, wait), (7, Duration::from_secs(30)));

        let Request { query, wait, is_backwards } = parse("").expect("valid");
        assert!(!is_backwards && query.principal.is_none() && query.contains.is_none());
        assert_eq!((query.from, query.until, query.limit), (Tick(0), Tick(u64::MAX), 100));
        assert_eq!((query.types, wait), (EventTypes::ALL, Duration::ZERO));
        let since = "since=2027-01-01T00:00:00Z";
        let later = parse(&format!("{since}&after_time={time}&after_id={ID}")).expect("valid");
        assert_eq!(later.query.from, parse(since).expect("valid").query.from);
    }

    #[test]
    fn latest_events_are_those_before_a_cursor() {
        let id = EventId::parse(ID).expect("an id");
        let time = iso8601_millis(id.tick().time().0);
        let query = format!("order=desc&before_time={time}&before_id={ID}&contains=Apollo&principal=a");
        let Request { query, is_backwards, .. } = parse(&query).expect("valid");
        assert_eq!((query.until, is_backwards), (id.tick(), true));
        assert_eq!(
            (query.principal.as_deref(), query.contains),
            (Some("a"), Some(TextSearch::new("apollo")))
        );
        for query in [format!("before_id={ID}"), format!("order=desc&before_time={time}")] {
            assert_eq!(code(&query), "INVALID_EVENT_CURSOR", "{query}");
        }
        for query in [
            format!("before_time={time}&before_id={ID}"),
            format!("order=desc&after_time={time}&after_id={ID}"),
            "order=desc&wait_seconds=1".to_owned(),
            "order=down".to_owned(),
            "contains=".to_owned(),
            format!("contains={}", "a".repeat(257)),
        ] {
            assert_eq!(code(&query), "INVALID_REQUEST", "{query}");
        }
    }

    #[test]
    fn invalid_parameters_are_refused() {
        for query in [
            "limit=0",
            "limit=1001",
            "wait_seconds=31",
            "wait_seconds=-1",
            "since=yesterday",
            "type=object",
            "type=object.created,object.deleted",
            "types=object.created",
            "bucket=a&bucket=b",
        ] {
            assert_eq!(code(query), "INVALID_REQUEST", "{query}");
        }
    }

    #[test]
    fn cursor_needs_time_and_id_of_same_event() {
        let time = iso8601_millis(EventId::parse(ID).expect("an id").tick().time().0);
        for query in [
            format!("after_id={ID}"),
            format!("after_time={time}"),
            format!("after_time={time}&after_id=x"),
            format!("after_time=x&after_id={ID}"),
            format!("after_time=2026-11-21T05:00:00.000Z&after_id={ID}"),
            format!("after_time={time}&after_id={}", ID.replace("-7abc-", "-4abc-")),
        ] {
            assert_eq!(code(&query), "INVALID_EVENT_CURSOR", "{query}");
        }
    }
}
