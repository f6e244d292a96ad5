//! Request metrics by plane, method, route, operation and class of status.
//!
//! Each thread counts in its own *shard*, on cache lines that no other thread writes, and a scrape sums the shards. Recording a
//! request takes a lookup in a small table and a few relaxed additions. Only the first request of its kind on a thread
//! allocates and takes the shard's lock.
//!
//! Invariant: routes and operations are static texts from tables, and methods come from a fixed list, so clients cannot create
//! new series.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use cairn_model::{Counter, DURATION_BOUNDS, DurationHistogram, HistogramSnapshot};
use cairn_sync::Mutex;

use super::family::{Family, MetricKind, MetricName, MetricValue, Sample};
use crate::request_record::{Plane, RequestRecord};

const REQUESTS: MetricName = MetricName::counter(
    "service_requests_total",
    "Requests answered or given up, by plane, method, route pattern, operation and class of status.",
);
const REQUEST_DURATION: MetricName = MetricName {
    name: "service_request_duration_seconds",
    kind: MetricKind::Histogram,
    help: "Time from the last byte of a request's head until its response was handed to the socket.",
};
const REQUEST_BYTES: MetricName =
    MetricName::counter("service_request_bytes_total", "Bytes of request bodies received.");
const RESPONSE_BYTES: MetricName =
    MetricName::counter("service_response_bytes_total", "Bytes of response bodies sent.");

/// Label values for the classes of status.
const STATUS_CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"];
/// The label value for a missing method, route or operation.
const NONE: &str = "none";
/// Label values for methods.
const METHODS: [&str; 8] = ["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH", "other"];
/// Index of `other` in [`METHODS`].
const OTHER_METHOD: u8 = 7;
/// The method of a request whose head could not be read. Its latency is unknown too.
const NO_METHOD: u8 = 8;

/// Identifies a series of a thread. Texts are compared by address: equal texts at two addresses make two series, which the
/// scrape sums.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    route: (*const u8, usize),
    operation: (*const u8, usize),
    plane: Plane,
    method: u8,
}

impl std::hash::Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.route.0.addr());
        state.write_usize(self.operation.0.addr());
        state.write_usize(usize::from(self.method) << 2 | self.plane as usize);
    }
}

/// A multiplicative hasher for a few addresses, which clients cannot choose. The factor is 2^64 divided by the golden ratio.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_usize(usize::from(*byte)));
    }

    fn write_usize(&mut self, number: usize) {
        self.0 = (self.0.rotate_left(5) ^ number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// Names of the labels, in the order of [`Labels`].
const LABELS: [&str; 4] = ["plane", "method", "route", "operation"];
/// The values of [`LABELS`] that identify a series.
pub(super) type Labels = [&'static str; LABELS.len()];

/// The requests of one thread with the same labels.
#[derive(Debug)]
#[repr(align(64))]
struct Series {
    labels: Labels,
    by_class: [Counter; STATUS_CLASSES.len()],
    latency: DurationHistogram,
}

/// The counters of one thread.
#[derive(Default, Debug)]
#[repr(align(64))]
struct Shard {
    bytes_in: [Counter; Plane::ALL.len()],
    bytes_out: [Counter; Plane::ALL.len()],
    series: Mutex<Vec<Arc<Series>>>,
}

/// A thread's shard, and the lookup table for its series.
struct Recorder {
    shard: Arc<Shard>,
    series: HashMap<Key, Arc<Series>, BuildHasherDefault<AddressHasher>>,
}

/// All shards, including those of ended threads, so that their counts are kept.
static SHARDS: Mutex<Vec<Arc<Shard>>> = Mutex::new(Vec::new());

thread_local! {
    static RECORDER: RefCell<Recorder> = RefCell::new(Recorder::registered());
}

/// Counts a request that has ended.
pub(crate) fn record_request(record: &RequestRecord<'_>) {
    // An ending thread has lost its recorder; its last requests are not counted.
    let _ = RECORDER.try_with(|recorder| recorder.borrow_mut().record(record));
}

fn method_index(method: &str) -> u8 {
    let known = METHODS.iter().position(|known| *known == method);
    match known.and_then(|index| u8::try_from(index).ok()) {
        Some(index) => index,
        None if method.is_empty() => NO_METHOD,
        None => OTHER_METHOD,
    }
}

impl Recorder {
    fn registered() -> Self {
        let shard = Arc::<Shard>::default();
        SHARDS.lock().push(Arc::clone(&shard));
        Self { shard, series: HashMap::default() }
    }

    fn record(&mut self, record: &RequestRecord<'_>) {
        let address = |text: &'static str| (text.as_ptr(), text.len());
        let (plane, method) = (record.plane, method_index(record.method));
        let key = Key { route: address(record.route), operation: address(record.operation), plane, method };
        let shard = &self.shard;
        let series = self.series.entry(key).or_insert_with(|| shard.add_series(record, method));
        let class = usize::from(record.status / 100).wrapping_sub(1).min(STATUS_CLASSES.len() - 1);
        series.by_class[class].add(1);
        if method != NO_METHOD {
            series.latency.record_duration(record.latency);
        }
        if record.bytes_in > 0 {
            shard.bytes_in[plane as usize].add(record.bytes_in);
        }
        if record.bytes_out > 0 {
            shard.bytes_out[plane as usize].add(record.bytes_out);
        }
    }
}

impl Shard {
    fn add_series(&self, record: &RequestRecord<'_>, method: u8) -> Arc<Series> {
        let or_none = |text: &'static str| if text.is_empty() { NONE } else { text };
        let method = METHODS.get(usize::from(method)).copied().unwrap_or(NONE);
        let labels = [record.plane.name(), method, or_none(record.route), or_none(record.operation)];
        let (by_class, latency) = Default::default();
        let series = Arc::new(Series { labels, by_class, latency });
        self.series.lock().push(Arc::clone(&series));
        series
    }
}

/// The sums over all threads.
pub(super) struct Totals {
    pub(super) by_class: [u64; STATUS_CLASSES.len()],
    pub(super) latency: HistogramSnapshot,
}

fn totals(shards: &[Arc<Shard>]) -> BTreeMap<Labels, Totals> {
    let mut totals = BTreeMap::new();
    for shard in shards {
        for series in &*shard.series.lock() {
            let total = totals.entry(series.labels).or_insert_with(|| Totals {
                by_class: Default::default(),
                latency: HistogramSnapshot::sum_of(&DURATION_BOUNDS, std::iter::empty()),
            });
            for (sum, counter) in total.by_class.iter_mut().zip(&series.by_class) {
                *sum += counter.value();
            }
            total.latency.add(&series.latency.snapshot());
        }
    }
    totals
}

/// Returns the sums of all series, and the bytes of each plane that were received and sent.
pub(super) fn all_totals() -> (BTreeMap<Labels, Totals>, [[u64; 2]; Plane::ALL.len()]) {
    let shards = SHARDS.lock().clone();
    let sum = |plane: Plane, of: fn(&Shard) -> &[Counter; Plane::ALL.len()]| {
        shards.iter().map(|shard| of(shard)[plane as usize].value()).sum()
    };
    let bytes =
        Plane::ALL.map(|plane| [sum(plane, |shard| &shard.bytes_in), sum(plane, |shard| &shard.bytes_out)]);
    (totals(&shards), bytes)
}

/// Returns the families of all request metrics.
pub(super) fn families() -> Vec<Family> {
    families_of(&SHARDS.lock().clone())
}

fn families_of(shards: &[Arc<Shard>]) -> Vec<Family> {
    let totals = totals(shards);
    let labelled = |labels: &Labels| -> Vec<(&'static str, String)> {
        LABELS.into_iter().zip(labels.iter().map(|value| (*value).to_owned())).collect()
    };
    let mut requests = Family { metric: REQUESTS, samples: Vec::new() };
    let mut durations = Family { metric: REQUEST_DURATION, samples: Vec::new() };
    for (labels, total) in totals {
        for (class, count) in STATUS_CLASSES.iter().zip(total.by_class).filter(|(_, count)| *count > 0) {
            let mut labels = labelled(&labels);
            labels.push(("status_class", (*class).to_owned()));
            requests.samples.push(Sample { labels, value: MetricValue::Whole(count) });
        }
        if total.latency.count() == 0 {
            continue;
        }
        let value = MetricValue::Durations(total.latency);
        durations.samples.push(Sample { labels: labelled(&labels), value });
    }
    let bytes = |metric: MetricName, of: fn(&Shard) -> &[Counter; Plane::ALL.len()]| Family {
        metric,
        samples: Plane::ALL
            .map(|plane| {
                let sum = shards.iter().map(|shard| of(shard)[plane as usize].value()).sum();
                Sample::labelled("plane", plane.name(), MetricValue::Whole(sum))
            })
            .into(),
    };
    vec![
        requests,
        durations,
        bytes(REQUEST_BYTES, |shard| &shard.bytes_in),
        bytes(RESPONSE_BYTES, |shard| &shard.bytes_out),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_record::RequestOutcome;
    use proptest::prelude::*;
    use std::time::Duration;

    fn record(method: &'static str, route: &'static str, status: u16, micros: u64) -> RequestRecord<'static> {
        RequestRecord {
            request_id: "0",
            plane: Plane::Data,
            method,
            addresses: None,
            route,
            principal: None,
            resource: None,
            operation: "GetObject",
            status,
            latency: Duration::from_micros(micros),
            bytes_in: 3,
            bytes_out: 5,
            outcome: RequestOutcome::Complete,
            error_code: None,
        }
    }

    /// Makes a recorder that scrapes of the process do not see.
    fn unregistered() -> Recorder {
        Recorder { shard: Arc::default(), series: HashMap::default() }
    }

    fn requests_of(families: &[Family]) -> Vec<(String, MetricValue)> {
        let joined = |sample: &Sample| {
            let values: Vec<_> = sample.labels.iter().map(|(_, value)| value.as_str()).collect();
            (values.join(" "), sample.value.clone())
        };
        families[0].samples.iter().map(joined).collect()
    }

    #[test]
    fn a_scrape_sums_the_series_of_threads() {
        let (mut one, mut other) = (unregistered(), unregistered());
        one.record(&record("GET", "/{bucket}/{key}", 200, 70));
        one.record(&record("GET", "/{bucket}/{key}", 404, 70));
        other.record(&record("GET", "/{bucket}/{key}", 200, 3_000_000));
        let families = families_of(&[one.shard, other.shard]);
        let expected = [
            ("data GET /{bucket}/{key} GetObject 2xx".to_owned(), MetricValue::Whole(2)),
            ("data GET /{bucket}/{key} GetObject 4xx".to_owned(), MetricValue::Whole(1)),
        ];
        assert_eq!(requests_of(&families), expected);
        let [Sample { value: MetricValue::Durations(latency), .. }] = &families[1].samples[..] else {
            panic!("one histogram")
        };
        assert_eq!((latency.count(), latency.sum), (3, 3_000_140_000));
        let bytes: Vec<_> = families[2..].iter().map(|family| family.samples[0].value.clone()).collect();
        assert_eq!(bytes, [MetricValue::Whole(9), MetricValue::Whole(15)]);
    }

    #[test]
    fn equal_texts_at_two_addresses_are_one_series() {
        let copy: &'static str = Box::leak("/{bucket}/{key}".to_owned().into_boxed_str());
        let mut recorder = unregistered();
        recorder.record(&record("GET", "/{bucket}/{key}", 200, 1));
        recorder.record(&record("GET", copy, 200, 1));
        assert_eq!(requests_of(&families_of(&[recorder.shard])).len(), 1);
    }

    #[test]
    fn unreadable_requests_are_labelled_none() {
        let mut recorder = unregistered();
        recorder.record(&RequestRecord { operation: "", ..record("", "", 400, 1) });
        assert_eq!(requests_of(&families_of(&[recorder.shard]))[0].0, "data none none none 4xx");
    }

    /// Regression: refused connections entered the histogram with 0 s each, so the latency quantiles were best while the
    /// service refused everything.
    #[test]
    fn unreadable_requests_do_not_enter_the_latency_histogram() {
        let mut recorder = unregistered();
        recorder.record(&record("GET", "/{bucket}", 200, 3_000_000));
        for _ in 0..1000 {
            recorder.record(&RequestRecord { operation: "", ..record("", "", 503, 0) });
        }
        let families = families_of(&[recorder.shard]);
        let refused = ("data none none none 5xx".to_owned(), MetricValue::Whole(1000));
        assert!(requests_of(&families).contains(&refused));
        let [Sample { labels, value: MetricValue::Durations(latency) }] = &families[1].samples[..] else {
            panic!("{:?}", families[1])
        };
        assert_eq!((latency.count(), labels[2].1.as_str()), (1, "/{bucket}"));
    }

    proptest! {
        /// Methods that clients make up must not become new series.
        #[test]
        fn methods_and_statuses_make_a_bounded_number_of_series(
            requests in proptest::collection::vec(("[A-Z]{0,12}", any::<u16>()), 1..400)
        ) {
            let mut recorder = unregistered();
            for (method, status) in &requests {
                recorder.record(&RequestRecord { method, status: *status, ..record("GET", "/", 200, 1) });
            }
            let samples_max = (METHODS.len() + 1) * STATUS_CLASSES.len();
            let samples = requests_of(&families_of(&[recorder.shard]));
            prop_assert!(samples.len() <= samples_max);
            let total: u64 = samples.iter().map(|(_, value)| match value {
                MetricValue::Whole(count) => *count,
                _ => 0,
            }).sum();
            prop_assert_eq!(total, requests.len() as u64);
        }
    }
}
