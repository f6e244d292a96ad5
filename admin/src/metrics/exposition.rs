//! Output formats of metrics: the text format of Prometheus, version 0.0.4, and JSON with the same values.
//!
//! Source: Prometheus documentation, "Exposition formats", text-based format.

use std::fmt::Write as _;

use cairn_api::{MetricBucket, MetricSample};
use cairn_model::HistogramSnapshot;
use cairn_observe::{Family, MetricValue};

/// The media type of the text.
pub(crate) const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The bound of the last bucket.
const INFINITE: &str = "+Inf";
/// Nanoseconds per second.
const SECOND: u64 = 1_000_000_000;

/// The unit of a number: a count, or nanoseconds that are shown as seconds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    One,
    Nanosecond,
}

impl Unit {
    /// Formats a number exactly.
    fn format(self, number: u64) -> String {
        match self {
            Self::One => number.to_string(),
            Self::Nanosecond => {
                let text = format!("{}.{:09}", number / SECOND, number % SECOND);
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "seconds are shown to nanoseconds for 52 days, then to microseconds"
    )]
    fn number(self, number: u64) -> serde_json::Number {
        let seconds = || serde_json::Number::from_f64(number as f64 / SECOND as f64);
        match self {
            Self::One => number.into(),
            Self::Nanosecond => seconds().expect("an integer divided by a constant is finite"),
        }
    }
}

fn as_histogram(value: &MetricValue) -> Option<(Unit, &HistogramSnapshot)> {
    match value {
        MetricValue::Counts(histogram) => Some((Unit::One, histogram)),
        MetricValue::Durations(histogram) => Some((Unit::Nanosecond, histogram)),
        MetricValue::Whole(_) | MetricValue::Nanoseconds(_) => None,
    }
}

/// Returns the bounds as text with the number of values at or below each. The last bound is infinite.
fn buckets(unit: Unit, histogram: &HistogramSnapshot) -> impl Iterator<Item = (String, u64)> {
    let bounds = histogram.bounds.iter().map(move |bound| unit.format(*bound));
    let bounds = bounds.chain([INFINITE.to_owned()]);
    let below = histogram.counts.iter().scan(0, |below, count| {
        *below += count;
        Some(*below)
    });
    bounds.zip(below)
}

/// Returns the text of all families, each after its help and type.
pub(crate) fn text(families: &[Family]) -> String {
    let mut out = String::new();
    for Family { metric, samples } in families {
        let (name, help) = (metric.name, metric.help.replace('\\', "\\\\").replace('\n', "\\n"));
        // Writing to a string cannot fail.
        let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {}\n", metric.kind.name());
        for sample in samples {
            let labels = &sample.labels;
            match as_histogram(&sample.value) {
                None => push_sample(&mut out, name, "", labels, None, &scalar_text(&sample.value)),
                Some((unit, histogram)) => {
                    for (bound, below) in buckets(unit, histogram) {
                        push_sample(&mut out, name, "_bucket", labels, Some(&bound), &below.to_string());
                    }
                    push_sample(&mut out, name, "_sum", labels, None, &unit.format(histogram.sum));
                    push_sample(&mut out, name, "_count", labels, None, &histogram.count().to_string());
                }
            }
        }
    }
    out
}

fn scalar_text(value: &MetricValue) -> String {
    match value {
        MetricValue::Whole(number) => Unit::One.format(*number),
        MetricValue::Nanoseconds(number) => Unit::Nanosecond.format(*number),
        MetricValue::Counts(_) | MetricValue::Durations(_) => String::new(),
    }
}

fn push_sample(
    out: &mut String,
    name: &str,
    suffix: &str,
    labels: &[(&'static str, String)],
    bound: Option<&str>,
    value: &str,
) {
    out.push_str(name);
    out.push_str(suffix);
    let labels = labels.iter().map(|(label, value)| (*label, value.as_str()));
    let mut separator = '{';
    for (label, value) in labels.chain(bound.map(|bound| ("le", bound))) {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(out, "{separator}{label}=\"{value}\"");
        separator = ',';
    }
    let end = if separator == ',' { "}" } else { "" };
    let _ = writeln!(out, "{end} {value}");
}

/// Returns the samples of all families, in the order of the text.
pub(crate) fn json(families: Vec<Family>) -> Vec<MetricSample> {
    let samples = families.into_iter().flat_map(|Family { metric, samples }| {
        samples.into_iter().map(move |sample| {
            let mut body = MetricSample {
                name: metric.name.to_owned(),
                kind: metric.kind.name().into(),
                help: metric.help.to_owned(),
                labels: sample.labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
                ..MetricSample::default()
            };
            match &sample.value {
                MetricValue::Whole(number) => body.value = Some(Unit::One.number(*number)),
                MetricValue::Nanoseconds(number) => body.value = Some(Unit::Nanosecond.number(*number)),
                MetricValue::Counts(histogram) => add_histogram(&mut body, Unit::One, histogram),
                MetricValue::Durations(histogram) => add_histogram(&mut body, Unit::Nanosecond, histogram),
            }
            body
        })
    });
    samples.collect()
}

fn add_histogram(body: &mut MetricSample, unit: Unit, histogram: &HistogramSnapshot) {
    body.count = Some(histogram.count());
    body.sum = Some(unit.number(histogram.sum));
    body.buckets = Some(buckets(unit, histogram).map(|(le, count)| MetricBucket { le, count }).collect());
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_observe::{MetricKind, MetricName, Sample};
    use serde_json::json;

    static BOUNDS: [u64; 2] = [50_000, 1_000_000_000];

    fn families() -> Vec<Family> {
        let metric = |name, kind| MetricName { name, kind, help: "Help \\ on\ntwo lines." };
        let histogram = HistogramSnapshot { bounds: &BOUNDS, counts: vec![1, 0, 2], sum: 4_000_000_025 };
        vec![
            Family {
                metric: metric("service_a_total", MetricKind::Counter),
                samples: vec![
                    Sample::plain(MetricValue::Whole(7)),
                    Sample::labelled("path", "a\"b\\c\nd", MetricValue::Whole(u64::MAX)),
                ],
            },
            Family {
                metric: metric("service_b_seconds", MetricKind::Histogram),
                samples: vec![Sample::labelled("plane", "data", MetricValue::Durations(histogram))],
            },
            Family {
                metric: metric("service_c_seconds", MetricKind::Gauge),
                samples: vec![Sample::plain(MetricValue::Nanoseconds(1_500_000_000))],
            },
        ]
    }

    #[test]
    fn text_has_help_type_and_escaped_labels_of_each_family() {
        let expected = r#"# HELP service_a_total Help \\ on\ntwo lines.
# TYPE service_a_total counter
service_a_total 7
service_a_total{path="a\"b\\c\nd"} 18446744073709551615
# HELP service_b_seconds Help \\ on\ntwo lines.
# TYPE service_b_seconds histogram
service_b_seconds_bucket{plane="data",le="0.00005"} 1
service_b_seconds_bucket{plane="data",le="1"} 1
service_b_seconds_bucket{plane="data",le="+Inf"} 3
service_b_seconds_sum{plane="data"} 4.000000025
service_b_seconds_count{plane="data"} 3
# HELP service_c_seconds Help \\ on\ntwo lines.
# TYPE service_c_seconds gauge
service_c_seconds 1.5
"#;
        assert_eq!(text(&families()), expected);
    }

    #[test]
    fn json_has_the_same_values_as_text() {
        let samples = serde_json::to_value(json(families())).unwrap();
        assert_eq!(samples[0]["value"], json!(7));
        assert_eq!(samples[1]["labels"], json!({"path": "a\"b\\c\nd"}));
        let buckets =
            json!([{"le": "0.00005", "count": 1}, {"le": "1", "count": 1}, {"le": "+Inf", "count": 3}]);
        assert_eq!(samples[2]["buckets"], buckets);
        assert_eq!((&samples[2]["count"], &samples[2]["sum"]), (&json!(3), &json!(4.000_000_025)));
        assert_eq!(samples[2].get("value"), None);
        assert_eq!(samples[3]["value"], json!(1.5));
    }
}
