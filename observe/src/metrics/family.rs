//! Metric families and samples, as a scrape reads them. The management plane formats them.

use cairn_model::HistogramSnapshot;

/// The type of a metric family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricKind {
    /// Only grows while the process runs. Its name ends in `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts values by the bounds that they lie between.
    Histogram,
}

impl MetricKind {
    /// Returns the name in the exposition format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Name, kind and help text of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MetricName {
    /// The name in snake case, with the unit: seconds, bytes, or none for counts.
    pub name: &'static str,
    /// The kind.
    pub kind: MetricKind,
    /// One sentence that describes the metric.
    pub help: &'static str,
}

impl MetricName {
    pub(super) const fn counter(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: MetricKind::Counter, help }
    }
}

/// One value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MetricValue {
    /// A whole number.
    Whole(u64),
    /// A duration in nanoseconds, shown in seconds.
    Nanoseconds(u64),
    /// A histogram of whole numbers.
    Counts(HistogramSnapshot),
    /// A histogram of nanoseconds, shown in seconds.
    Durations(HistogramSnapshot),
}

/// A value with the labels that identify it within its family.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The labels as pairs of name and value.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: MetricValue,
}

impl Sample {
    /// Makes a sample without labels.
    #[must_use]
    pub const fn plain(value: MetricValue) -> Self {
        Self { labels: Vec::new(), value }
    }

    /// Makes a sample with one label.
    #[must_use]
    pub fn labelled(label: &'static str, label_value: impl Into<String>, value: MetricValue) -> Self {
        Self { labels: vec![(label, label_value.into())], value }
    }
}

/// All samples of one metric.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Family {
    /// Name, kind and help text.
    pub metric: MetricName,
    /// The samples.
    pub samples: Vec<Sample>,
}
