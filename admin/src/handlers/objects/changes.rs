//! `GET /api/v1/buckets/{bucket}/changes` and `GET /api/v1/events/changes`: how much changed when, from storage events.
//!
//! The newest interval is counted first. Each one examines a bounded number of events, and the whole takes a bounded time:
//! an interval that was not counted to its end says so, and its numbers are the least.

use std::collections::HashMap;
use std::time::Instant;

use cairn_api::{ChangeStep, Changes, LargeDeletion};
use cairn_engine::limits::EVENT_PAGE_EVENTS_MAX;
use cairn_engine::{EventQuery, EventType, StorageEvent, Store, Tick};
use cairn_model::{Clock, SystemClock, Timestamp};
use futures_lite::future::yield_now;
use http::StatusCode;

use crate::call::Call;
use crate::error::AdminError;
use crate::limits::{
    CHANGE_ACTORS_MAX, CHANGE_DELETED_MIN, CHANGE_DELETIONS_MAX, CHANGE_READS_MAX, CHANGE_STEPS_DEFAULT,
    CHANGE_STEPS_MAX, CHANGE_TIME_MAX,
};
use crate::reply::Reply;
use crate::request::query::given;

/// The types of events that are counted.
const TYPES: [EventType; 4] =
    [EventType::ObjectCreated, EventType::ObjectUpdated, EventType::ObjectRestored, EventType::ObjectDeleted];

/// The author of deletions: a principal, and the lifecycle rule if one acted.
type Actor = (String, Option<String>);

/// Deletions of one actor in an interval: the time of the first one, and how many.
type Deletions = HashMap<Actor, (Timestamp, u64)>;

/// Counts the changes of a bucket.
pub(crate) async fn of_bucket(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?.name.to_string();
    count_changes(call, Some(bucket)).await
}

/// Counts the changes of all buckets.
pub(crate) async fn of_store(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    count_changes(call, None).await
}

async fn count_changes(call: Call<'_, '_>, bucket: Option<String>) -> Result<Reply, AdminError> {
    let parameters = &call.parameters;
    let since = given("since", parameters.time("since")?)?.0;
    let until = parameters.time("until")?.unwrap_or_else(|| SystemClock.now()).0;
    let steps = parameters.number("steps", 1..=CHANGE_STEPS_MAX)?.unwrap_or(CHANGE_STEPS_DEFAULT);
    if until <= since || until - since < steps {
        return Err(AdminError::invalid("until must be after since, by a millisecond for each step"));
    }
    // Keys of different buckets have no prefix in common.
    let prefix = bucket.as_ref().and_then(|_| parameters.text("prefix"));
    let prefix = prefix.filter(|prefix| !prefix.is_empty()).map(str::to_owned);
    let all = EventQuery {
        types: TYPES.into_iter().collect(),
        bucket,
        prefix,
        limit: EVENT_PAGE_EVENTS_MAX,
        ..EventQuery::default()
    };
    let (store, begun) = (call.store()?, Instant::now());
    // Without an overflow, whatever the times are.
    let bound = |step: u64| {
        let offset = u128::from(until - since) * u128::from(step) / u128::from(steps);
        Timestamp(since + u64::try_from(offset).unwrap_or(until - since))
    };
    let (mut counted, mut deletions) = (Vec::new(), Vec::new());
    for step in (0..steps).rev() {
        let work = count(store, bound(step), bound(step + 1), all.clone(), begun, &mut deletions);
        counted.push(call.until_disconnect(work).await?);
    }
    counted.reverse();
    deletions.sort_by_key(|deletion: &LargeDeletion| std::cmp::Reverse(deletion.objects));
    deletions.truncate(CHANGE_DELETIONS_MAX);
    Reply::json(StatusCode::OK, &Changes { until: Timestamp(until).into(), steps: counted, deletions })
}

/// Counts what was written and deleted in an interval.
async fn count(
    store: &Store,
    since: Timestamp,
    until: Timestamp,
    mut query: EventQuery,
    begun: Instant,
    large: &mut Vec<LargeDeletion>,
) -> Result<ChangeStep, AdminError> {
    (query.from, query.until) = (Tick::first_at(since), Tick::first_at(until));
    let (mut written, mut deleted, mut deleted_by_rules, mut complete) = (0, 0, 0, false);
    let mut of_actor = Deletions::new();
    for _ in 0..CHANGE_READS_MAX {
        if begun.elapsed() >= CHANGE_TIME_MAX {
            break;
        }
        let page = store.events(&query)?;
        for event in page.events {
            if event.kind == EventType::ObjectDeleted {
                deleted += 1;
                deleted_by_rules += u64::from(event.lifecycle_rule.is_some());
                note(&mut of_actor, event);
            } else {
                written += 1;
            }
        }
        if !page.is_truncated {
            complete = true;
            break;
        }
        query.from = page.examined;
        yield_now().await;
    }
    let of_interval = of_actor.into_iter().filter(|(_, (_, objects))| *objects >= CHANGE_DELETED_MIN);
    large.extend(of_interval.map(|((principal, rule_id), (time, objects))| LargeDeletion {
        time: time.into(),
        principal: Some(principal).filter(|principal| !principal.is_empty()),
        rule_id,
        objects,
        complete,
    }));
    Ok(ChangeStep { since: since.into(), written, deleted, deleted_by_rules, complete })
}

fn note(of_actor: &mut Deletions, event: StorageEvent) {
    let time = event.time();
    let actor = (event.principal, event.lifecycle_rule);
    if let Some((_, objects)) = of_actor.get_mut(&actor) {
        *objects += 1;
    } else if of_actor.len() < CHANGE_ACTORS_MAX {
        of_actor.insert(actor, (time, 1));
    }
}
