//! What `/metrics` and `GET /api/v1/system/metrics` show: the one table of this crate's metrics, behind those that
//! `cairn_observe` counts itself.
//!
//! Nothing here takes I/O on an executor: counters are read where they stand, and what the kernel knows of the process comes
//! from a thread of its own (`process.rs`). `docs/metrics.md` lists every metric.

use std::io;
use std::time::Duration;

use cairn_engine::{ScrubRecord, Store, StoreFigures, StoreUsage};
use cairn_model::{DURATION_BOUNDS, HistogramReading};
use cairn_net::{HandshakeEnd, PortFigures, PortReading, TimeoutPhase, within};
use cairn_observe::MetricKind::{Counter as COUNTER, Gauge as GAUGE, Histogram as HISTOGRAM};
use cairn_observe::MetricValue::{self, Counts, Durations, Nanoseconds, Whole};
use cairn_observe::{Family, MetricKind, MetricName, Plane, Sample, metrics};
use http::StatusCode;
use serde::Serialize;

use crate::call::Call;
use crate::errand::Errand;
use crate::error::AdminError;
use crate::exposition::{self, JsonSample, TEXT_FORMAT};
use crate::process::{self, ProcessFigures};
use crate::reply::Reply;

/// Figures of the process that take longer are left out of a scrape: scrapers wait for 10 s by default, and the others count.
const PROCESS_READ_TIME_MAX: Duration = Duration::from_secs(2);

/// The certificate of one plane's listeners.
#[derive(Clone, Debug)]
pub struct CertificateReading {
    /// Which plane.
    pub plane: Plane,
    /// When it ends to be valid, in seconds since 1970; None when it does not say.
    pub not_after: Option<u64>,
    /// How often another one took its place since the start.
    pub replaced: u64,
    /// How often one that was to take its place could not be used.
    pub refused: u64,
    /// Whether what is in its files now cannot be used.
    pub is_refused: bool,
}

/// Tells of the certificates that are presented.
pub type CertificateReadings = Box<dyn Fn() -> Vec<CertificateReading> + Send + Sync>;

/// Where figures come from that no request brings along; shared by all executors.
#[derive(Default)]
pub struct MetricSources {
    ports: Vec<(Plane, PortFigures)>,
    certificates: Option<CertificateReadings>,
    process: Option<Errand<Option<ProcessFigures>>>,
}

impl MetricSources {
    /// The figures of these ports, of their certificates, and of the process.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(ports: Vec<(Plane, PortFigures)>, certificates: CertificateReadings) -> io::Result<Self> {
        let process = Errand::start("process-figures", process::READS_APART, process::read)?;
        Ok(Self { ports, certificates: Some(certificates), process: Some(process) })
    }

    /// What is known of the process; nothing when its thread has died, or gives no answer in time.
    async fn process(&self, time_max: Duration) -> Option<ProcessFigures> {
        within(time_max, self.process.as_ref()?.ask()).await.flatten().flatten()
    }
}

/// What one scrape looks at.
struct Snapshot<'s> {
    store: &'s Store,
    usage: StoreUsage,
    scrub: ScrubRecord,
    figures: StoreFigures,
    ports: Vec<(Plane, PortReading)>,
    certificates: Vec<CertificateReading>,
    audit_queue: Option<u64>,
    process: Option<ProcessFigures>,
}

impl<'s> Snapshot<'s> {
    async fn take(call: &'s Call<'_, '_>) -> Result<Self, AdminError> {
        let store = call.store()?;
        let options = &call.service.options;
        let process = options.metrics.process(PROCESS_READ_TIME_MAX).await;
        Ok(Self {
            store,
            usage: store.usage(),
            scrub: store.scrub().record(),
            figures: store.figures(),
            ports: options.metrics.ports.iter().map(|(plane, port)| (*plane, port.read())).collect(),
            certificates: options.metrics.certificates.as_ref().map_or_else(Vec::new, |read| read()),
            audit_queue: options.audit.as_ref().map(|log| log.queue_length() as u64),
            process,
        })
    }
}

/// A row of the table: a metric, and where its values come from.
struct Metric {
    metric: MetricName,
    source: Source,
}

enum Source {
    /// One whole number.
    Whole(fn(&Snapshot<'_>) -> u64),
    /// One duration in nanoseconds.
    Nanoseconds(fn(&Snapshot<'_>) -> u64),
    /// One histogram of durations.
    Durations(fn(&Snapshot<'_>) -> HistogramReading),
    /// Samples with labels, or none.
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
    value: fn(&Snapshot<'_>) -> HistogramReading,
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

fn by_plane(now: &Snapshot<'_>, value: fn(&PortReading) -> u64) -> Vec<Sample> {
    let ports = now.ports.iter();
    ports.map(|(plane, port)| Sample::labelled("plane", plane.name(), Whole(value(port)))).collect()
}

/// A count of one plane, by one more label.
fn of_plane_by(plane: Plane, label: &'static str, name: &str, count: u64) -> Sample {
    Sample { labels: vec![("plane", plane.name().to_owned()), (label, name.to_owned())], value: Whole(count) }
}

fn client_timeouts(now: &Snapshot<'_>) -> Vec<Sample> {
    let of_port = |(plane, port): &(Plane, PortReading)| {
        let plane = *plane;
        let phases = TimeoutPhase::ALL.into_iter().zip(port.timeouts);
        phases.map(move |(phase, count)| of_plane_by(plane, "phase", phase.name(), count))
    };
    now.ports.iter().flat_map(of_port).collect()
}

fn tls_handshakes(now: &Snapshot<'_>) -> Vec<Sample> {
    let of_port = |plane: Plane, port: &PortReading| {
        let ends = HandshakeEnd::ALL.into_iter().zip(port.handshakes);
        ends.map(move |(end, count)| of_plane_by(plane, "outcome", end.name(), count))
    };
    let has_tls = |plane: &Plane| now.certificates.iter().any(|certificate| certificate.plane == *plane);
    let ports = now.ports.iter().filter(|(plane, _)| has_tls(plane));
    ports.flat_map(|(plane, port)| of_port(*plane, port)).collect()
}

fn by_certificate(now: &Snapshot<'_>, value: fn(&CertificateReading) -> Option<u64>) -> Vec<Sample> {
    let sample = |certificate: &CertificateReading| {
        Some(Sample::labelled("plane", certificate.plane.name(), Whole(value(certificate)?)))
    };
    now.certificates.iter().filter_map(sample).collect()
}

fn certificate_reloads(now: &Snapshot<'_>) -> Vec<Sample> {
    let of_certificate = |certificate: &CertificateReading| {
        [("replaced", certificate.replaced), ("refused", certificate.refused)]
            .map(|(result, count)| of_plane_by(certificate.plane, "result", result, count))
    };
    now.certificates.iter().flat_map(of_certificate).collect()
}

fn of_process(now: &Snapshot<'_>, value: fn(&ProcessFigures) -> Option<MetricValue>) -> Vec<Sample> {
    now.process.as_ref().and_then(value).map_or_else(Vec::new, plain)
}

/// Every metric of this crate, in the order in which they are shown.
static METRICS: &[Metric] = &[
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
    seconds(
        "service_metadata_oldest_read_seconds",
        "Age of the oldest open read of metadata; pages freed since it began cannot be used.",
        |now| u64::try_from(now.usage.oldest_read.as_nanos()).unwrap_or(u64::MAX),
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
        "service_scrub_last_completed_corrupt_versions",
        "Versions found damaged in the last whole scrub.",
        |now| now.scrub.last_corrupt,
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
    by(GAUGE, "service_committer_queue_length", "Changes that wait for the committer, by slice.", |now| {
        let lengths = now.figures.queue_lengths.iter().enumerate();
        lengths
            .map(|(slice, length)| Sample::labelled("slice", format!("{slice:02}"), Whole(*length)))
            .collect()
    }),
    by(
        HISTOGRAM,
        "service_commit_batch_changes",
        "Changes that the committers put into one transaction.",
        |now| plain(Counts(now.figures.batches.clone())),
    ),
    durations(
        "service_commit_duration_seconds",
        "Time of the committers' transactions from their begin to the answers, the flush of metadata included.",
        |now| now.figures.commits.clone(),
    ),
    durations(
        "service_volume_flush_duration_seconds",
        "Time of the flushes that make payloads durable before a commit.",
        |now| now.figures.flushes.clone(),
    ),
    by(
        COUNTER,
        "service_writes_refused_total",
        "Changes refused, by reason: full (no space is left), quota, overloaded (too many wait for a committer).",
        |now| {
            let StoreFigures { refused_full, refused_quota, refused_overloaded, .. } = now.figures;
            [("full", refused_full), ("quota", refused_quota), ("overloaded", refused_overloaded)]
                .map(|(reason, count)| Sample::labelled("reason", reason, Whole(count)))
                .into()
        },
    ),
    counter("service_cache_hits_total", "Blocks that reads found in the cache.", |now| {
        now.figures.cache_hits
    }),
    counter("service_cache_misses_total", "Blocks that reads looked for in the cache in vain.", |now| {
        now.figures.cache_misses
    }),
    counter(
        "service_blocks_read_total",
        "Blocks read from volumes that passed their checks, those of verifications included.",
        |now| now.figures.blocks_read,
    ),
    counter("service_device_read_bytes_total", "Bytes that direct reads of volumes have brought.", |now| {
        now.figures.read_bytes
    }),
    counter(
        "service_device_written_bytes_total",
        "Bytes that direct writes of payloads have put into volumes.",
        |now| now.figures.written_bytes,
    ),
    durations(
        "service_device_read_duration_seconds",
        "Time of each direct read of a volume, as the executor saw it.",
        |now| now.figures.reads.clone(),
    ),
    durations(
        "service_device_write_duration_seconds",
        "Time of each direct write to a volume, as the executor saw it.",
        |now| now.figures.writes.clone(),
    ),
    by(GAUGE, "service_connections_open", "Connections that are open.", |now| {
        by_plane(now, |port| port.connections_open)
    }),
    by(
        COUNTER,
        "service_connections_accepted_total",
        "Connections accepted, refused ones included.",
        |now| by_plane(now, |port| port.accepted),
    ),
    by(
        COUNTER,
        "service_connections_refused_total",
        "Connections turned away because too many were open or no descriptor was left.",
        |now| by_plane(now, |port| port.refused),
    ),
    by(
        COUNTER,
        "service_client_timeouts_total",
        "Clients that let a deadline pass, by phase: handshake, idle (between requests), head, body, response.",
        client_timeouts,
    ),
    by(
        COUNTER,
        "service_tls_handshakes_total",
        "Beginnings of connections with TLS, by outcome: full, resumed, plain_http, refused (no TLS, or none in common), \
         timed_out, gone.",
        tls_handshakes,
    ),
    by(
        GAUGE,
        "service_tls_certificate_not_after_seconds",
        "When the certificate that is presented ends to be valid, in seconds since the Unix epoch.",
        |now| by_certificate(now, |certificate| certificate.not_after),
    ),
    by(
        COUNTER,
        "service_tls_certificate_reloads_total",
        "Certificates read again after a change, by result: replaced, refused.",
        certificate_reloads,
    ),
    by(
        GAUGE,
        "service_tls_certificate_refused",
        "1 while the files of a certificate cannot be used and the one before is presented.",
        |now| by_certificate(now, |certificate| Some(u64::from(certificate.is_refused))),
    ),
    by(GAUGE, "service_requests_open", "Requests between their head and the end of their response.", |now| {
        by_plane(now, |port| port.requests_open)
    }),
    durations(
        "service_executor_delay_seconds",
        "By how much executors were late at a look that they take four times a second for each port.",
        |now| {
            let delays = now.ports.iter().map(|(_, port)| port.delay.clone());
            HistogramReading::sum_of(&DURATION_BOUNDS, delays)
        },
    ),
    by(
        GAUGE,
        "service_audit_queue_length",
        "Audit records and queries that wait for the trail's writer.",
        |now| now.audit_queue.map_or_else(Vec::new, |length| plain(Whole(length))),
    ),
    by(GAUGE, "service_build_info", "1, with the version of the program.", |_| {
        vec![Sample::labelled("version", env!("CARGO_PKG_VERSION"), Whole(1))]
    }),
    by(
        COUNTER,
        "process_cpu_seconds_total",
        "Processor time of the process in user and kernel mode.",
        |now| of_process(now, |process| Some(Nanoseconds(process.cpu_nanoseconds))),
    ),
    by(GAUGE, "process_resident_memory_bytes", "Memory of the process that is resident.", |now| {
        of_process(now, |process| Some(Whole(process.resident_bytes)))
    }),
    by(
        GAUGE,
        "process_virtual_memory_bytes",
        "Address space of the process, the maps of metadata included.",
        |now| of_process(now, |process| Some(Whole(process.virtual_bytes))),
    ),
    by(GAUGE, "process_open_fds", "Open file descriptors.", |now| {
        of_process(now, |process| Some(Whole(process.open_descriptors)))
    }),
    by(GAUGE, "process_max_fds", "Most file descriptors that the process may have open.", |now| {
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

/// All metrics with their values now; those that nothing is known of are left out.
async fn families(call: &Call<'_, '_>) -> Result<Vec<Family>, AdminError> {
    let now = Snapshot::take(call).await?;
    let own = METRICS.iter().map(|metric| metric.family(&now));
    Ok(metrics::families().into_iter().chain(own).filter(|family| !family.samples.is_empty()).collect())
}

/// `GET /metrics`.
pub(crate) async fn text(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let text = exposition::text(&families(&call).await?);
    Ok(Reply::bytes(StatusCode::OK, TEXT_FORMAT, text.into_bytes()))
}

#[derive(Serialize)]
struct AllMetrics {
    metrics: Vec<JsonSample>,
}

/// `GET /api/v1/system/metrics`.
pub(crate) async fn json(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let metrics = exposition::json(families(&call).await?);
    Reply::json(StatusCode::OK, &AllMetrics { metrics })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    /// A scrape waited for the process's figures however long they took, so that one read of `/proc` that hung took all
    /// metrics with it.
    #[test]
    fn figures_of_the_process_that_do_not_come_are_left_out() {
        let (release, released) = sync_channel::<()>(0);
        let hanging = Errand::start("hanging", Duration::ZERO, move || {
            // Hangs until the other end is dropped.
            let _ = released.recv();
            process::read()
        });
        let sources = MetricSources { process: Some(hanging.unwrap()), ..MetricSources::default() };
        let executor = glommio::LocalExecutor::default();
        executor.run(async {
            assert_eq!(sources.process(Duration::from_millis(50)).await, None);
            drop(release);
            assert!(sources.process(Duration::from_secs(60)).await.is_some());
        });
    }

    #[test]
    fn every_name_stands_once_and_tells_kind_and_unit() {
        let own = METRICS.iter().map(|row| row.metric);
        let all: Vec<_> = metrics::families().iter().map(|family| family.metric).chain(own).collect();
        for (index, MetricName { name, kind, help }) in all.iter().enumerate() {
            assert!(name.starts_with("service_") || name.starts_with("process_"), "{name}");
            assert!(help.ends_with('.') && !help.contains('\n'), "{name}: {help}");
            assert!(!all[..index].iter().any(|other| other.name == *name), "{name} stands twice");
            assert_eq!(*kind == COUNTER, name.ends_with("_total"), "{name}");
        }
        for row in METRICS {
            let shows_seconds = matches!(row.source, Source::Nanoseconds(_) | Source::Durations(_));
            assert!(!shows_seconds || row.metric.name.ends_with("_seconds"), "{}", row.metric.name);
        }
    }
}
