//! Metrics as a scrape finds them: families of samples, whoever counted them. How they are written is the management
//! plane's matter.

use cairn_model::HistogramReading;

/// What kind of metric a family is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricKind {
    /// Only grows, from the start of the process on. Its name ends in `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How often values fell between bounds.
    Histogram,
}

impl MetricKind {
    /// The word for it in the exposition format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// What a metric is called and what it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MetricName {
    /// Its name, in snake case, with its unit: seconds, bytes, or nothing for what is counted.
    pub name: &'static str,
    /// Its kind.
    pub kind: MetricKind,
    /// One sentence on what it says.
    pub help: &'static str,
}

/// One value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MetricValue {
    /// A whole number.
    Whole(u64),
    /// A duration in nanoseconds, shown in seconds.
    Nanoseconds(u64),
    /// A histogram of whole numbers.
    Counts(HistogramReading),
    /// A histogram of nanoseconds, shown in seconds.
    Durations(HistogramReading),
}

/// One value with the labels that tell it from the others of its family.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Names and values of the labels.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: MetricValue,
}

impl Sample {
    /// A value without labels.
    #[must_use]
    pub const fn plain(value: MetricValue) -> Self {
        Self { labels: Vec::new(), value }
    }

    /// A value with one label.
    #[must_use]
    pub fn labelled(label: &'static str, label_value: impl Into<String>, value: MetricValue) -> Self {
        Self { labels: vec![(label, label_value.into())], value }
    }
}

/// All values of one metric.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Family {
    /// What it is called.
    pub metric: MetricName,
    /// Its values.
    pub samples: Vec<Sample>,
}
