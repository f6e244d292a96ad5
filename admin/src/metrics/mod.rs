//! The metrics of the service: where their values come from, the table of all metrics, and their text and JSON forms.
//!
//! `docs/metrics.md` lists every metric.

mod bucket_days;
mod buckets;
mod dismissals;
mod exposition;
mod history;
mod history_file;
mod ports;
mod process;
mod series;
mod sharing;
mod sources;
mod table;

pub(crate) use dismissals::Dismissal;
pub(crate) use exposition::{TEXT_FORMAT, json, text};
pub(crate) use history::MetricHistory;
pub(crate) use series::{MetricSample, Period, PlaneSample};
pub use sources::{CertificateSnapshot, CertificateSource, MetricSources};
pub(crate) use table::families;
