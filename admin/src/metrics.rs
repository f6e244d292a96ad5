//! `/metrics` in the text format of Prometheus, and the same values as JSON.
//!
//! The counters of the process stand in `cairn_observe::metrics`; what is measured when it is asked for stands in the
//! table here. Nothing here takes I/O.

use std::fmt::Write as _;

use cairn_engine::{ScrubRecord, Store, StoreUsage};
use cairn_observe::metrics;
use http::StatusCode;
use serde::Serialize;

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

/// The exposition format, version 0.0.4.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Counter,
    Gauge,
}

/// What one scrape looks at.
struct Snapshot<'s> {
    store: &'s Store,
    usage: StoreUsage,
    scrub: ScrubRecord,
}

/// A metric of the store.
struct StoreMetric {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    value: fn(&Snapshot<'_>) -> u64,
}

const fn gauge(name: &'static str, help: &'static str, value: fn(&Snapshot<'_>) -> u64) -> StoreMetric {
    StoreMetric { name, kind: Kind::Gauge, help, value }
}

const fn counter(name: &'static str, help: &'static str, value: fn(&Snapshot<'_>) -> u64) -> StoreMetric {
    StoreMetric { name, kind: Kind::Counter, help, value }
}

/// Every metric of the store, in the order in which they are shown.
static STORE_METRICS: &[StoreMetric] = &[
    gauge("service_storage_objects", "Current objects of all buckets.", |now| now.usage.held.objects),
    gauge("service_storage_logical_bytes", "Bytes of all current objects.", |now| now.usage.held.bytes),
    gauge(
        "service_storage_physical_bytes",
        "Bytes of all payloads that are kept: of every version, and of the parts of unfinished uploads.",
        |now| now.usage.held.physical_bytes(),
    ),
    gauge("service_storage_versions", "Versions with a payload, current ones among them.", |now| {
        now.usage.held.versions
    }),
    gauge("service_storage_delete_markers", "Delete markers.", |now| now.usage.held.delete_markers),
    gauge(
        "service_multipart_uploads",
        "Multipart uploads that were begun and neither completed nor aborted.",
        |now| now.usage.held.uploads,
    ),
    gauge("service_multipart_bytes", "Bytes of their parts.", |now| now.usage.held.part_bytes),
    gauge(
        "service_storage_used_bytes",
        "Bytes on the device that payloads and metadata take: owned units of the volumes and used pages of the metadata.",
        |now| now.usage.volume_bytes.saturating_sub(now.usage.free_volume_bytes) + now.usage.metadata_bytes,
    ),
    gauge(
        "service_storage_volume_bytes",
        "Bytes of the volume files that are allocated on the disk, free space in them included.",
        |now| now.usage.volume_bytes,
    ),
    gauge(
        "service_storage_reclaimed_bytes",
        "Bytes of the volume files that were given back to the file system and not taken again.",
        |now| now.usage.reclaimed_bytes,
    ),
    gauge(
        "service_metadata_oldest_read_milliseconds",
        "Age of the oldest open read of metadata; pages freed since it began cannot be used.",
        |now| u64::try_from(now.usage.oldest_read.as_millis()).unwrap_or(u64::MAX),
    ),
    counter(
        "service_metadata_stale_readers_total",
        "Slots of metadata readers that ended without giving them back, cleared since the start.",
        |now| now.usage.stale_readers,
    ),
    gauge("service_cache_bytes", "Bytes of the cached blocks.", |now| now.usage.cached_bytes),
    counter(
        "service_corruptions_total",
        "Blocks, inline payloads, check pages and records that failed their checks, in requests and in verifications.",
        |now| now.store.corruptions(),
    ),
    gauge("service_scrub_running", "1 while the scrub verifies the store.", |now| {
        u64::from(now.store.scrub().is_running())
    }),
    gauge(
        "service_scrub_last_completed_timestamp_seconds",
        "When the last whole scrub ended, in seconds since the Unix epoch; 0 when there was none.",
        |now| now.scrub.completed.seconds(),
    ),
    gauge(
        "service_scrub_pass_versions",
        "Versions verified in the scrub under way, or in the last one.",
        |now| now.scrub.versions,
    ),
    gauge("service_scrub_pass_bytes", "Bytes verified in the scrub under way, or in the last one.", |now| {
        now.scrub.bytes
    }),
    gauge(
        "service_scrub_pass_corrupt_versions",
        "Versions found damaged in the scrub under way, or in the last one.",
        |now| now.scrub.corrupt,
    ),
    gauge(
        "service_scrub_position_slice",
        "The slice that the scrub under way is in; they are scrubbed from 0 on.",
        |now| now.scrub.position.slice.into(),
    ),
    counter(
        "service_scrub_verified_bytes_total",
        "Bytes that scrubs have verified since the process started.",
        |now| now.store.scrub().total().bytes(),
    ),
    counter(
        "service_scrub_corrupt_versions_total",
        "Versions that scrubs have found damaged since the process started.",
        |now| now.store.scrub().total().corrupt(),
    ),
];

/// One value.
#[derive(Serialize)]
struct Sample {
    name: &'static str,
    #[serde(rename = "type")]
    kind: Kind,
    help: &'static str,
    labels: std::collections::BTreeMap<&'static str, &'static str>,
    value: u64,
}

fn samples(store: &Store) -> Vec<Sample> {
    let of_process = metrics::ALL.iter().map(|counter| Sample {
        name: counter.name(),
        kind: Kind::Counter,
        help: counter.help(),
        labels: counter.label().into_iter().collect(),
        value: counter.value(),
    });
    let now = Snapshot { store, usage: store.usage(), scrub: store.scrub().record() };
    let of_store = STORE_METRICS.iter().map(|metric| Sample {
        name: metric.name,
        kind: metric.kind,
        help: metric.help,
        labels: std::collections::BTreeMap::new(),
        value: (metric.value)(&now),
    });
    of_process.chain(of_store).collect()
}

/// `GET /metrics`.
pub(crate) async fn text(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let mut out = String::new();
    let mut last = "";
    for sample in samples(call.store()?) {
        // Metrics of one name stand together; name and help are said once. Writing to a string does not fail.
        if sample.name != last {
            last = sample.name;
            let kind = match sample.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            };
            let _ = write!(out, "# HELP {last} {}\n# TYPE {last} {kind}\n", sample.help);
        }
        out.push_str(sample.name);
        for (index, (label, value)) in sample.labels.iter().enumerate() {
            let _ = write!(out, "{}{label}=\"{value}\"", if index == 0 { '{' } else { ',' });
        }
        let end = if sample.labels.is_empty() { "" } else { "}" };
        let _ = writeln!(out, "{end} {}", sample.value);
    }
    Ok(Reply::bytes(StatusCode::OK, TEXT_FORMAT, out.into_bytes()))
}

#[derive(Serialize)]
struct Metrics {
    metrics: Vec<Sample>,
}

/// `GET /api/v1/system/metrics`.
pub(crate) async fn json(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    Reply::json(StatusCode::OK, &Metrics { metrics: samples(call.store()?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_one_name_stand_together_and_say_the_same() {
        let names: Vec<_> = metrics::ALL
            .iter()
            .map(|counter| (counter.name(), counter.help()))
            .chain(STORE_METRICS.iter().map(|metric| (metric.name, metric.help)))
            .collect();
        for (index, (name, help)) in names.iter().enumerate() {
            assert!(name.starts_with("service_") && help.ends_with('.') && !help.contains('\n'), "{name}");
            if let Some(earlier) = names[..index].iter().rposition(|(other, _)| other == name) {
                assert_eq!((earlier, names[earlier].1), (index - 1, *help), "{name}");
            }
        }
        for metric in STORE_METRICS {
            assert_eq!(metric.kind == Kind::Counter, metric.name.ends_with("_total"), "{}", metric.name);
        }
    }
}
