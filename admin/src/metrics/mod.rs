//! The metrics of the service: where their values come from, the table of all metrics, and their text and JSON forms.
//!
//! `docs/metrics.md` lists every metric.

mod buckets;
mod exposition;
mod history;
mod ports;
mod process;
mod sharing;
mod sources;
mod table;

pub(crate) use exposition::{TEXT_FORMAT, json, text};
pub(crate) use history::{MetricSample, Period, PlaneSample};
pub use sources::{CertificateSnapshot, CertificateSource, MetricSources};
pub(crate) use table::families;
