//! Sources of metrics outside the registry: ports, certificates and the process.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cairn_engine::Store;
use cairn_net::{PortMetrics, timeout};
use cairn_observe::Plane;

use super::history::MetricHistory;
use super::process::{self, ProcessMetrics};
use crate::health::CoalescedQuery;

/// Longest wait for the metrics of the process. After it they are left out of a scrape: scrapers wait for 10 s by
/// default, and the other metrics must not be lost.
const PROCESS_READ_TIME_MAX: Duration = Duration::from_secs(2);

/// State of the certificate that one plane's listeners present.
#[derive(Clone, Debug)]
pub struct CertificateSnapshot {
    /// The plane.
    pub plane: Plane,
    /// The expiry of the certificate, in seconds since the Unix epoch; `None` when it does not say.
    pub not_after: Option<u64>,
    /// Number of replacements since the start.
    pub replaced: u64,
    /// Number of replacements that were refused because the new certificate was unusable.
    pub refused: u64,
    /// Whether the certificate in the files is unusable now.
    pub is_refused: bool,
}

/// Returns the state of all certificates.
pub type CertificateSource = Box<dyn Fn() -> Vec<CertificateSnapshot> + Send + Sync>;

/// Sources of metrics that are not counted in a registry. Shared by all executors.
#[derive(Default)]
pub struct MetricSources {
    pub(super) ports: Vec<(Plane, PortMetrics)>,
    certificates: Option<CertificateSource>,
    process: Option<CoalescedQuery<Option<ProcessMetrics>>>,
    history: Option<MetricHistory>,
    /// Maximum number of buckets that have metrics of their own.
    pub(super) buckets_max: usize,
}

impl MetricSources {
    /// Starts the threads that read the metrics of the process, and that write the history into the data folder. At most
    /// `buckets_max` buckets, the largest, have metrics of their own.
    ///
    /// # Errors
    /// An error when a thread cannot be started.
    pub fn start(
        ports: Vec<(Plane, PortMetrics)>,
        certificates: CertificateSource,
        store: &Arc<Store>,
        data_dir: &Path,
        buckets_max: usize,
    ) -> io::Result<Self> {
        let process = CoalescedQuery::start("process-metrics", process::READ_INTERVAL_MIN, process::read)?;
        let history = MetricHistory::start(store, data_dir)?;
        Ok(Self {
            ports,
            certificates: Some(certificates),
            process: Some(process),
            history: Some(history),
            buckets_max,
        })
    }

    /// Writes the figures over time, before the store is closed. Blocks for a few milliseconds.
    pub fn close(&self) {
        self.history.iter().for_each(MetricHistory::close);
    }

    /// Returns the figures over time; `None` in a process without a store.
    pub(crate) fn history(&self) -> Option<&MetricHistory> {
        self.history.as_ref()
    }

    /// Returns the state of all certificates.
    pub(crate) fn certificates(&self) -> Vec<CertificateSnapshot> {
        self.certificates.as_ref().map_or_else(Vec::new, |read| read())
    }

    /// Returns the metrics of the process; `None` when its thread has died or does not answer in time.
    pub(super) async fn process(&self) -> Option<ProcessMetrics> {
        self.process_within(PROCESS_READ_TIME_MAX).await
    }

    async fn process_within(&self, time_max: Duration) -> Option<ProcessMetrics> {
        timeout(time_max, self.process.as_ref()?.run()).await.flatten().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    /// A scrape used to wait for the metrics of the process without a limit. When a read of `/proc` hung, all metrics
    /// were lost.
    #[test]
    fn process_metrics_that_take_too_long_are_left_out() {
        let (release, released) = sync_channel::<()>(0);
        let hanging = CoalescedQuery::start("hanging", Duration::ZERO, move || {
            // Hangs until the other end is dropped.
            let _ = released.recv();
            process::read()
        });
        let sources = MetricSources { process: Some(hanging.unwrap()), ..MetricSources::default() };
        let executor = glommio::LocalExecutor::default();
        executor.run(async {
            assert_eq!(sources.process_within(Duration::from_millis(50)).await, None);
            drop(release);
            assert!(sources.process_within(Duration::from_secs(60)).await.is_some());
        });
    }
}
