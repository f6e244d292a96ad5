//! The routes of metrics: as text for Prometheus, as JSON, and over time.

use cairn_api::{BucketDays, MetricHistory, Metrics, PlaneHistory, StorageDays, StorageHistory};
use cairn_model::{Clock, SystemClock};
use cairn_observe::{Family, Plane};
use http::StatusCode;

use crate::call::Call;
use crate::context::OpenStore;
use crate::error::AdminError;
use crate::metrics::{self, MetricSample, Period, PlaneSample, TEXT_FORMAT};
use crate::reply::Reply;

async fn families(call: &Call<'_, '_>) -> Result<Vec<Family>, AdminError> {
    let OpenStore { engine, audit, webhooks, sharing, .. } = call.context.open()?;
    Ok(metrics::families(engine.store(), &call.context.metrics, audit, webhooks, sharing).await)
}

/// `GET /metrics`.
pub(crate) async fn text(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let text = metrics::text(&families(&call).await?);
    Ok(Reply::bytes(StatusCode::OK, TEXT_FORMAT, text.into_bytes()))
}

/// `GET /api/v1/system/metrics`.
pub(crate) async fn json(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let metrics = metrics::json(families(&call).await?);
    Reply::json(StatusCode::OK, &Metrics { metrics })
}

fn plane_history(samples: &[MetricSample], plane: Plane) -> PlaneHistory {
    let of_plane = || samples.iter().map(|sample| &sample.planes[plane as usize]);
    let counts = |of: fn(&PlaneSample) -> u64| of_plane().map(of).collect();
    let latency = |of: fn(&PlaneSample) -> Option<u64>| {
        of_plane().map(|sample| of(sample).map(microsecond_precision)).collect()
    };
    PlaneHistory {
        reads: counts(|sample| sample.reads),
        writes: counts(|sample| sample.writes),
        lists: counts(|sample| sample.lists),
        other: counts(|sample| sample.other),
        client_errors: counts(|sample| sample.client_errors),
        server_errors: counts(|sample| sample.server_errors),
        bytes_in: counts(|sample| sample.bytes_in),
        bytes_out: counts(|sample| sample.bytes_out),
        latency_p50: latency(|sample| sample.latency_p50),
        latency_p99: latency(|sample| sample.latency_p99),
    }
}

/// Returns nanoseconds in seconds. A quantile of a histogram is not exact, so more digits would say nothing.
fn microsecond_precision(nanoseconds: u64) -> f64 {
    seconds(nanoseconds / 1000, 1_000_000)
}

#[expect(clippy::cast_precision_loss, reason = "numbers of a history are far below 2^53")]
fn seconds(count: u64, per_second: u64) -> f64 {
    count as f64 / per_second as f64
}

/// Returns the figures over time.
///
/// # Errors
/// `NOT_READY` when no store is open.
pub(crate) fn history_of<'c>(call: &'c Call<'_, '_>) -> Result<&'c metrics::MetricHistory, AdminError> {
    call.context.metrics.history().ok_or(AdminError::NotReady("the store is not open"))
}

/// `GET /api/v1/storage/history`: the space of each bucket on each of the last 90 days.
pub(crate) async fn days(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let days = history_of(&call)?.days();
    let (lines, others) = days.lines();
    let buckets = lines.into_iter().map(|line| BucketDays {
        bucket: line.bucket.as_ref().to_owned().into(),
        physical_bytes: line.days.iter().map(|held| held.map(|held| held.bytes)).collect(),
        objects: line.days.iter().map(|held| held.map(|held| held.objects)).collect(),
    });
    let body = StorageDays {
        time: days.iter().map(|day| day.at.into()).collect(),
        capacity_bytes: days.iter().map(|day| day.capacity).collect(),
        available_bytes: days.iter().map(|day| day.available).collect(),
        buckets: buckets.collect(),
        other_physical_bytes: others.iter().map(|held| held.bytes).collect(),
        other_objects: others.iter().map(|held| held.objects).collect(),
    };
    Reply::json(StatusCode::OK, &body)
}

/// `GET /api/v1/system/metrics/history`.
pub(crate) async fn history(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let query = &call.parameters;
    let name = query.text("period").unwrap_or(Period::Hour.name());
    let period = Period::ALL.into_iter().find(|period| period.name() == name);
    let period = period.ok_or_else(|| AdminError::invalid("period must be hour, day or month"))?;
    let history = history_of(&call)?;
    let samples = history.samples(period, SystemClock.now());
    let space = |of: fn(&MetricSample) -> u64| samples.iter().map(of).collect();
    let body = MetricHistory {
        period: period.name().into(),
        period_seconds: period.seconds(),
        interval_seconds: period.interval_seconds(),
        started_at: history.started().into(),
        time: samples.iter().map(|sample| sample.end.into()).collect(),
        seconds: samples.iter().map(|sample| seconds(sample.milliseconds, 1000)).collect(),
        planes: Plane::ALL.map(|plane| (plane.name().to_owned(), plane_history(&samples, plane))).into(),
        storage: StorageHistory {
            logical_bytes: space(|sample| sample.space.logical),
            physical_bytes: space(|sample| sample.space.physical),
            available_bytes: space(|sample| sample.space.available),
            capacity_bytes: space(|sample| sample.space.capacity),
        },
    };
    Reply::json(StatusCode::OK, &body)
}
