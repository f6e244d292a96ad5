//! The table of this crate's metrics. They follow those that `cairn_observe` counts itself.
//!
//! A scrape does no I/O on an executor: counters are read from memory, and a separate thread reads the metrics of the
//! process. `docs/metrics.md` lists every metric.

use cairn_engine::{
    DiskState, EventType, LifecycleStatus, ScrubRecord, Store, StoreMetrics, StoreUsage, Usage,
};
use cairn_model::{DURATION_BOUNDS, HistogramSnapshot, Timestamp, u64_of};
use cairn_net::PortSnapshot;
use cairn_observe::MetricKind::{Counter as COUNTER, Gauge as GAUGE, Histogram as HISTOGRAM};
use cairn_observe::MetricValue::{self, Counts, Durations, Nanoseconds, Whole};
use cairn_observe::{AuditLog, Family, MetricKind, MetricName, Plane, Sample, metrics};
use cairn_sharing::{LinkMetrics, Links};
use cairn_webhooks::{WebhookMetrics, Webhooks};

use super::buckets::{self, LargestBucket};
use super::ports;
use super::process::ProcessMetrics;
use super::sharing;
use super::sources::{CertificateSnapshot, MetricSources};

/// All values that one scrape needs.
struct Snapshot<'s> {
    store: &'s Store,
    usage: StoreUsage,
    largest_buckets: Vec<LargestBucket>,
    scrub: ScrubRecord,
    lifecycle: LifecycleStatus,
    store_metrics: StoreMetrics,
    ports: Vec<(Plane, PortSnapshot)>,
    certificates: Vec<CertificateSnapshot>,
    audit_queue: u64,
    webhooks: WebhookMetrics,
    sharing: LinkMetrics,
    process: Option<ProcessMetrics>,
}

impl<'s> Snapshot<'s> {
    async fn take(
        store: &'s Store,
        sources: &MetricSources,
        audit: &AuditLog,
        webhooks: &Webhooks,
        sharing: &Links,
    ) -> Self {
        let process = sources.process().await;
        Self {
            store,
            usage: store.usage(),
            largest_buckets: buckets::largest(&store.buckets(), sources.buckets_max),
            scrub: store.scrub().record(),
            lifecycle: store.lifecycle_status(),
            store_metrics: store.metrics(),
            ports: sources.ports.iter().map(|(plane, port)| (*plane, port.snapshot())).collect(),
            certificates: sources.certificates(),
            audit_queue: u64_of(audit.queue_length()),
            webhooks: webhooks.metrics(),
            sharing: sharing.metrics(),
            process,
        }
    }
}

/// A row of the table: a metric and the source of its values.
struct Metric {
    metric: MetricName,
    source: Source,
}

enum Source {
    /// One integer.
    Whole(fn(&Snapshot<'_>) -> u64),
    /// One duration in nanoseconds.
    Nanoseconds(fn(&Snapshot<'_>) -> u64),
    /// One histogram of durations.
    Durations(fn(&Snapshot<'_>) -> HistogramSnapshot),
    /// Any number of samples with labels.
    Samples(fn(&Snapshot<'_>) -> Vec<Sample>),
}

const fn gauge(name: &'static str, help: &'static str, value: fn(&Snapshot<'_>) -> u64) -> Metric {
    Metric { metric: MetricName { name, kind: GAUGE, help }, source: Source::Whole(value) }
}

const fn counter(name: &'static str, help: &'static str, value: fn(&Snapshot<'_>) -> u64) -> Metric {
    Metric { metric: MetricName { name, kind: COUNTER, help }, source: Source::Whole(value) }
}

const fn seconds(name: &'static str, help: &'static str, value: fn(&Snapshot<'_>) -> u64) -> Metric {
    Metric { metric: MetricName { name, kind: GAUGE, help }, source: Source::Nanoseconds(value) }
}

const fn durations(
    name: &'static str,
    help: &'static str,
    value: fn(&Snapshot<'_>) -> HistogramSnapshot,
) -> Metric {
    Metric { metric: MetricName { name, kind: HISTOGRAM, help }, source: Source::Durations(value) }
}

const fn by(
    kind: MetricKind,
    name: &'static str,
    help: &'static str,
    values: fn(&Snapshot<'_>) -> Vec<Sample>,
) -> Metric {
    Metric { metric: MetricName { name, kind, help }, source: Source::Samples(values) }
}

fn plain(value: MetricValue) -> Vec<Sample> {
    vec![Sample::plain(value)]
}

fn by_plane(now: &Snapshot<'_>, value: fn(&PortSnapshot) -> u64) -> Vec<Sample> {
    let ports = now.ports.iter();
    ports.map(|(plane, port)| Sample::labelled("plane", plane.name(), Whole(value(port)))).collect()
}

fn of_process(now: &Snapshot<'_>, value: fn(&ProcessMetrics) -> Option<MetricValue>) -> Vec<Sample> {
    now.process.as_ref().and_then(value).map_or_else(Vec::new, plain)
}

fn lifecycle_removed(now: &Snapshot<'_>) -> Vec<Sample> {
    let counts = now.lifecycle.counts;
    [
        ("expired_object", counts.expired_objects),
        ("delete_marker_written", counts.delete_markers_written),
        ("noncurrent_version", counts.noncurrent_versions_removed),
        ("delete_marker_removed", counts.delete_markers_removed),
        ("multipart_upload_aborted", counts.multipart_uploads_aborted),
    ]
    .map(|(kind, count)| Sample::labelled("kind", kind, Whole(count)))
    .into()
}

/// All metrics of this crate, in the order in which they are shown.
static METRICS: &[Metric] = &[
    gauge("service_storage_objects", "Current objects in all buckets.", |now| now.usage.held.objects),
    gauge("service_storage_logical_bytes", "Bytes of all current objects.", |now| now.usage.held.bytes),
    gauge(
        "service_storage_physical_bytes",
        "Bytes of all stored payloads: of every version, and of the parts of unfinished uploads.",
        |now| now.usage.held.physical_bytes(),
    ),
    gauge("service_storage_versions", "Versions with a payload, current ones included.", |now| {
        now.usage.held.versions
    }),
    gauge("service_storage_delete_markers", "Delete markers.", |now| now.usage.held.delete_markers),
    gauge("service_multipart_uploads", "Multipart uploads that are neither completed nor aborted.", |now| {
        now.usage.held.uploads
    }),
    gauge("service_multipart_bytes", "Bytes of the parts of unfinished multipart uploads.", |now| {
        now.usage.held.part_bytes
    }),
    gauge(
        "service_storage_used_bytes",
        "Bytes on the device used by payloads and metadata: allocated units of the volumes and used pages of the metadata.",
        |now| now.usage.volume_bytes.saturating_sub(now.usage.free_volume_bytes) + now.usage.metadata_bytes,
    ),
    gauge(
        "service_storage_volume_bytes",
        "Bytes of the volume files that are allocated on the disk, including free space in them.",
        |now| now.usage.volume_bytes,
    ),
    gauge(
        "service_storage_reclaimed_bytes",
        "Bytes of the volume files that were returned to the file system and not allocated again.",
        |now| now.usage.reclaimed_bytes,
    ),
    gauge("service_storage_capacity_bytes", "Size of the file system that holds the store.", |now| {
        now.usage.capacity_bytes
    }),
    gauge(
        "service_storage_available_bytes",
        "Free bytes of the file system that holds the store; storage.reserve_bytes of them are not used.",
        |now| now.usage.available_bytes,
    ),
    by(
        GAUGE,
        "service_bucket_logical_bytes",
        "Bytes of the current objects of each of the metrics.buckets_max largest buckets.",
        |now| buckets::samples(&now.largest_buckets, |usage| usage.bytes),
    ),
    by(
        GAUGE,
        "service_bucket_objects",
        "Current objects of each of the metrics.buckets_max largest buckets.",
        |now| buckets::samples(&now.largest_buckets, |usage| usage.objects),
    ),
    by(
        GAUGE,
        "service_bucket_physical_bytes",
        "Bytes of all stored payloads of each of the metrics.buckets_max largest buckets: of every version, and of the parts of unfinished uploads.",
        |now| buckets::samples(&now.largest_buckets, Usage::physical_bytes),
    ),
    seconds(
        "service_metadata_oldest_read_seconds",
        "Age of the oldest open metadata read transaction; pages freed since it began cannot be reused.",
        |now| u64::try_from(now.usage.oldest_read.as_nanos()).unwrap_or(u64::MAX),
    ),
    counter(
        "service_metadata_stale_readers_total",
        "Stale reader slots of the metadata that were cleared since the start.",
        |now| now.usage.stale_readers,
    ),
    gauge("service_cache_bytes", "Bytes of blocks in the cache.", |now| now.usage.cached_bytes),
    counter(
        "service_corruptions_total",
        "Blocks, inline payloads, check pages and records that failed their checks, in requests and in verifications.",
        |now| now.store.corruptions(),
    ),
    by(
        COUNTER,
        "service_lifecycle_removed_total",
        "What lifecycle rules have done since the process started: objects that expired, delete markers written over them, \
         non-current versions and delete markers removed, unfinished uploads aborted.",
        lifecycle_removed,
    ),
    counter(
        "service_lifecycle_freed_bytes_total",
        "Bytes of the versions and uploads that lifecycle rules have removed since the process started.",
        |now| now.lifecycle.counts.bytes_freed,
    ),
    counter(
        "service_lifecycle_skipped_locked_total",
        "Versions that lifecycle rules skipped because they are locked, in each run.",
        |now| now.lifecycle.counts.skipped_locked,
    ),
    counter(
        "service_lifecycle_failed_total",
        "Versions that lifecycle rules could not remove, in each run.",
        |now| now.lifecycle.counts.failed,
    ),
    gauge(
        "service_lifecycle_oldest_overdue_seconds",
        "For how long the oldest version has been due that is still there; 0 when none is.",
        |now| now.store.lifecycle_overdue_seconds(),
    ),
    gauge(
        "service_lifecycle_paused",
        "1 while lifecycle rules are paused after a jump of the clock.",
        |now| u64::from(now.lifecycle.paused.is_some()),
    ),
    gauge(
        "service_lifecycle_last_run_timestamp_seconds",
        "When the last lifecycle run ended, in seconds since the Unix epoch; 0 when there was none.",
        |now| now.lifecycle.last_run_finished_at.map_or(0, Timestamp::seconds),
    ),
    gauge("service_scrub_running", "1 while a scrub is running.", |now| {
        u64::from(now.store.scrub().is_running())
    }),
    gauge(
        "service_scrub_last_completed_timestamp_seconds",
        "When the last complete scrub ended, in seconds since the Unix epoch; 0 when there was none.",
        |now| now.scrub.completed.seconds(),
    ),
    gauge(
        "service_scrub_pass_versions",
        "Versions verified by the running scrub, or by the last one.",
        |now| now.scrub.versions,
    ),
    gauge("service_scrub_pass_bytes", "Bytes verified by the running scrub, or by the last one.", |now| {
        now.scrub.bytes
    }),
    gauge(
        "service_scrub_pass_corrupt_versions",
        "Versions found damaged by the running scrub, or by the last one.",
        |now| now.scrub.corrupt,
    ),
    gauge(
        "service_scrub_last_completed_corrupt_versions",
        "Versions found damaged by the last complete scrub.",
        |now| now.scrub.last_corrupt,
    ),
    gauge(
        "service_scrub_position_slice",
        "The slice that the running scrub has reached; slices are scrubbed in order from 0.",
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
    by(
        GAUGE,
        "service_committer_queue_length",
        "Changes that are waiting for the committer, by slice.",
        |now| {
            let lengths = now.store_metrics.queue_lengths.iter().enumerate();
            lengths
                .map(|(slice, length)| Sample::labelled("slice", format!("{slice:02}"), Whole(*length)))
                .collect()
        },
    ),
    by(HISTOGRAM, "service_commit_batch_changes", "Changes per transaction of a committer.", |now| {
        plain(Counts(now.store_metrics.batches.clone()))
    }),
    durations(
        "service_commit_duration_seconds",
        "Duration of the committers' transactions from their begin to the replies, including the flush of metadata.",
        |now| now.store_metrics.commits.clone(),
    ),
    durations(
        "service_volume_flush_duration_seconds",
        "Duration of the flushes that make payloads durable before a commit.",
        |now| now.store_metrics.flushes.clone(),
    ),
    gauge(
        "service_commit_log_bytes",
        "Bytes in the commit logs since their last checkpoints. A start after a crash applies them again.",
        |now| now.store_metrics.log.unsaved_bytes,
    ),
    gauge(
        "service_commit_log_replayed_records",
        "Records of the commit logs that the start of the process has applied again.",
        |now| now.store_metrics.log.replayed_records,
    ),
    counter("service_checkpoints_total", "Checkpoints of the commit logs.", |now| {
        now.store_metrics.log.checkpoints
    }),
    counter(
        "service_commit_log_waits_total",
        "Transactions that waited for a checkpoint because their commit log was full.",
        |now| now.store_metrics.log.waits,
    ),
    by(
        GAUGE,
        "service_storage_disk_state",
        "Whether the disk has room for new data: 1 for the present state (ok, low, refusing), 0 for the others.",
        |now| {
            let present = now.store.disk_state();
            let sample = |state: DiskState| {
                Sample::labelled("state", state.name(), Whole(u64::from(state == present)))
            };
            DiskState::ALL.map(sample).into()
        },
    ),
    by(
        COUNTER,
        "service_writes_refused_total",
        "Changes refused, by reason: full (no space is left), quota, overloaded (too many are waiting for a committer, or too many copies for their turn).",
        |now| {
            let StoreMetrics { refused_full, refused_quota, refused_overloaded, .. } = now.store_metrics;
            [("full", refused_full), ("quota", refused_quota), ("overloaded", refused_overloaded)]
                .map(|(reason, count)| Sample::labelled("reason", reason, Whole(count)))
                .into()
        },
    ),
    counter("service_cache_hits_total", "Blocks that reads found in the cache.", |now| {
        now.store_metrics.cache_hits
    }),
    counter("service_cache_misses_total", "Blocks that reads did not find in the cache.", |now| {
        now.store_metrics.cache_misses
    }),
    counter(
        "service_blocks_read_total",
        "Blocks read from volumes that passed their checks, including those of verifications.",
        |now| now.store_metrics.blocks_read,
    ),
    counter("service_device_read_bytes_total", "Bytes read from volumes by direct reads.", |now| {
        now.store_metrics.read_bytes
    }),
    counter("service_device_written_bytes_total", "Bytes written to volumes by direct writes.", |now| {
        now.store_metrics.written_bytes
    }),
    durations(
        "service_device_read_duration_seconds",
        "Duration of each direct read of a volume, as seen by the executor.",
        |now| now.store_metrics.reads.clone(),
    ),
    durations(
        "service_device_write_duration_seconds",
        "Duration of each direct write to a volume, as seen by the executor.",
        |now| now.store_metrics.writes.clone(),
    ),
    by(GAUGE, "service_connections_open", "Open connections.", |now| {
        by_plane(now, |port| port.connections_open)
    }),
    by(
        COUNTER,
        "service_connections_accepted_total",
        "Connections accepted, including refused ones.",
        |now| by_plane(now, |port| port.accepted),
    ),
    by(
        COUNTER,
        "service_connections_refused_total",
        "Connections refused because too many were open or no file descriptor was left.",
        |now| by_plane(now, |port| port.refused),
    ),
    by(
        COUNTER,
        "service_connections_evicted_total",
        "Idle connections closed to make room for new ones, because too many were open.",
        |now| by_plane(now, |port| port.evicted),
    ),
    by(
        COUNTER,
        "service_unsigned_requests_ended_total",
        "Requests without a signature, such as those for links, that were ended to make room for others.",
        |now| by_plane(now, |port| port.unsigned_ended),
    ),
    by(
        COUNTER,
        "service_client_timeouts_total",
        "Client timeouts, by phase: handshake, idle (between requests), head, body, response.",
        |now| ports::client_timeouts(&now.ports),
    ),
    by(
        COUNTER,
        "service_tls_handshakes_total",
        "TLS handshakes, by outcome: full, resumed, plain_http, refused (not TLS, or no common parameters), timed_out, \
         gone.",
        |now| ports::tls_handshakes(&now.ports, &now.certificates),
    ),
    by(
        GAUGE,
        "service_tls_certificate_not_after_seconds",
        "When the presented certificate expires, in seconds since the Unix epoch.",
        |now| ports::by_certificate(&now.certificates, |certificate| certificate.not_after),
    ),
    by(
        COUNTER,
        "service_tls_certificate_reloads_total",
        "Certificate reloads after a change, by result: replaced, refused.",
        |now| ports::certificate_reloads(&now.certificates),
    ),
    by(
        GAUGE,
        "service_tls_certificate_refused",
        "1 while the files of a certificate are unusable and the previous one is presented.",
        |now| ports::by_certificate(&now.certificates, |certificate| Some(u64::from(certificate.is_refused))),
    ),
    by(GAUGE, "service_requests_open", "Requests between their head and the end of their response.", |now| {
        by_plane(now, |port| port.requests_open)
    }),
    durations(
        "service_executor_delay_seconds",
        "Delay of the executors in a timer that runs four times a second for each port.",
        |now| {
            let delays = now.ports.iter().map(|(_, port)| port.delay.clone());
            HistogramSnapshot::sum_of(&DURATION_BOUNDS, delays)
        },
    ),
    by(
        GAUGE,
        "service_audit_queue_length",
        "Audit records and queries that are waiting for the writer of the audit trail.",
        |now| plain(Whole(now.audit_queue)),
    ),
    by(COUNTER, "service_events_total", "Storage events that were recorded since the start.", |now| {
        let signal = now.store.event_signal();
        let sample = |kind: EventType| Sample::labelled("type", kind.name(), Whole(signal.committed(kind)));
        EventType::ALL.map(sample).into()
    }),
    by(
        COUNTER,
        "service_webhook_deliveries_total",
        "Deliveries that ended (succeeded, failed, dropped), and attempts that failed and are repeated (retried).",
        |now| {
            let WebhookMetrics { succeeded, failed, dropped, retried, .. } = now.webhooks;
            let counts =
                [("succeeded", succeeded), ("failed", failed), ("dropped", dropped), ("retried", retried)];
            counts.map(|(result, count)| Sample::labelled("result", result, Whole(count))).into()
        },
    ),
    by(
        GAUGE,
        "service_webhook_pending",
        "Deliveries that wait for an attempt, or for the end of one.",
        |now| plain(Whole(now.webhooks.pending)),
    ),
    by(
        GAUGE,
        "service_webhook_lost",
        "Events whose last attempt failed, and that were not delivered since.",
        |now| plain(Whole(now.webhooks.lost)),
    ),
    by(
        GAUGE,
        "service_webhook_oldest_pending_seconds",
        "Age of the oldest pending delivery; 0 when none is pending.",
        |now| {
            let age = now.webhooks.oldest_pending.as_nanos();
            plain(Nanoseconds(u64::try_from(age).unwrap_or(u64::MAX)))
        },
    ),
    by(GAUGE, "service_share_links", "Shares and embeds that exist, in any state.", |now| {
        sharing::links(&now.sharing)
    }),
    by(
        COUNTER,
        "service_share_downloads_total",
        "Downloads of shares and embeds that were counted since the start: one an hour for each visitor.",
        |now| sharing::downloads(&now.sharing),
    ),
    by(
        COUNTER,
        "service_share_unlock_attempts_total",
        "Passwords that visitors of shares sent since the start, by result: unlocked, wrong, refused (not checked).",
        |now| sharing::unlock_attempts(&now.sharing),
    ),
    by(
        COUNTER,
        "service_share_access_denied_total",
        "Requests for shares and embeds that were denied since the start, by reason.",
        |now| sharing::denied(&now.sharing),
    ),
    by(GAUGE, "service_build_info", "1, with the version of the program.", |_| {
        vec![Sample::labelled("version", env!("CARGO_PKG_VERSION"), Whole(1))]
    }),
    by(COUNTER, "process_cpu_seconds_total", "CPU time of the process in user and kernel mode.", |now| {
        of_process(now, |process| Some(Nanoseconds(process.cpu_nanoseconds)))
    }),
    by(GAUGE, "process_resident_memory_bytes", "Resident memory of the process.", |now| {
        of_process(now, |process| Some(Whole(process.resident_bytes)))
    }),
    by(
        GAUGE,
        "process_virtual_memory_bytes",
        "Virtual memory of the process, including the maps of metadata.",
        |now| of_process(now, |process| Some(Whole(process.virtual_bytes))),
    ),
    by(GAUGE, "process_open_fds", "Open file descriptors.", |now| {
        of_process(now, |process| Some(Whole(process.open_descriptors)))
    }),
    by(GAUGE, "process_max_fds", "Maximum number of open file descriptors.", |now| {
        of_process(now, |process| process.descriptors_max.map(Whole))
    }),
    by(
        GAUGE,
        "process_start_time_seconds",
        "When the process started, in seconds since the Unix epoch.",
        |now| of_process(now, |process| Some(Nanoseconds(process.started))),
    ),
];

impl Metric {
    fn family(&self, now: &Snapshot<'_>) -> Family {
        let samples = match self.source {
            Source::Whole(value) => plain(Whole(value(now))),
            Source::Nanoseconds(value) => plain(Nanoseconds(value(now))),
            Source::Durations(value) => plain(Durations(value(now))),
            Source::Samples(samples) => samples(now),
        };
        Family { metric: self.metric, samples }
    }
}

/// Returns all metrics with their current values. Metrics without any value are left out.
pub(crate) async fn families(
    store: &Store,
    sources: &MetricSources,
    audit: &AuditLog,
    webhooks: &Webhooks,
    sharing: &Links,
) -> Vec<Family> {
    let now = Snapshot::take(store, sources, audit, webhooks, sharing).await;
    let own = METRICS.iter().map(|metric| metric.family(&now));
    metrics::families().into_iter().chain(own).filter(|family| !family.samples.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_names_are_unique_and_show_kind_and_unit() {
        let own = METRICS.iter().map(|row| row.metric);
        let all: Vec<_> = metrics::families().iter().map(|family| family.metric).chain(own).collect();
        for (index, MetricName { name, kind, help }) in all.iter().enumerate() {
            assert!(name.starts_with("service_") || name.starts_with("process_"), "{name}");
            assert!(help.ends_with('.') && !help.contains('\n'), "{name}: {help}");
            assert!(!all[..index].iter().any(|other| other.name == *name), "{name} is not unique");
            assert_eq!(*kind == COUNTER, name.ends_with("_total"), "{name}");
        }
        for row in METRICS {
            let shows_seconds = matches!(row.source, Source::Nanoseconds(_) | Source::Durations(_));
            assert!(!shows_seconds || row.metric.name.ends_with("_seconds"), "{}", row.metric.name);
        }
    }
}
