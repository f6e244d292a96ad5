//! Requests by plane, method, route, operation and class of status, with their latencies.
//!
//! Each thread counts in a *shard* of its own, on cache lines that no other thread writes; a scrape sums the shards. To note a
//! request is a look into a small table and a handful of relaxed additions. Only the first request of its kind on a thread
//! allocates and takes the shard's lock.
//!
//! Invariant: routes and operations are static texts from tables, and methods an enum, so no client can make a new series.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_model::{DURATION_BOUNDS, Durations, HistogramReading, Tally};

use crate::exposition::{Family, MetricName, MetricValue, Sample};
use crate::metrics::{REQUEST_BYTES, REQUEST_DURATION, REQUESTS, RESPONSE_BYTES};
use crate::request_log::{Plane, RequestRecord};

/// Label values for the classes of status, from 1xx on; the last stands for none of them.
const STATUS_CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"];
/// The label value where there is no route or operation.
const NONE: &str = "none";
/// Methods that have a label value of their own.
const METHODS: [&str; 8] = ["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH", "other"];
const OTHER_METHOD: u8 = 7;
/// Where there is no readable head there is no method, and no time that the service took either.
const NO_METHOD: u8 = 8;

/// What tells the series of a thread apart. Texts are told apart by where they lie: equal texts in two places make two series
/// of a thread, which the scrape sums.
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
        state.write_usize(usize::from(self.method) << 1 | usize::from(self.plane == Plane::Data));
    }
}

/// Mixes a few addresses; nobody outside chooses them. The factor is 2^64 divided by the golden ratio.
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
type Labels = [&'static str; LABELS.len()];

/// The requests of one kind on one thread.
#[derive(Debug)]
#[repr(align(64))]
struct Series {
    labels: Labels,
    by_class: [Tally; STATUS_CLASSES.len()],
    latency: Durations,
}

/// What one thread counts.
#[derive(Default, Debug)]
#[repr(align(64))]
struct Shard {
    bytes_in: [Tally; Plane::ALL.len()],
    bytes_out: [Tally; Plane::ALL.len()],
    series: Mutex<Vec<Arc<Series>>>,
}

/// A thread's shard, and the way to its series.
struct Recorder {
    shard: Arc<Shard>,
    series: HashMap<Key, Arc<Series>, BuildHasherDefault<AddressHasher>>,
}

/// All shards, also of threads that have ended: what they counted stays counted.
static SHARDS: Mutex<Vec<Arc<Shard>>> = Mutex::new(Vec::new());

thread_local! {
    static RECORDER: RefCell<Recorder> = RefCell::new(Recorder::registered());
}

/// Nothing is left half-changed by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a request that has ended.
pub(crate) fn note(record: &RequestRecord<'_>) {
    // A thread that is ending has lost its recorder; what it says then is not counted.
    let _ = RECORDER.try_with(|recorder| recorder.borrow_mut().note(record));
}

fn method_index(method: &str) -> u8 {
    let known = METHODS.iter().position(|known| *known == method);
    match known.and_then(|place| u8::try_from(place).ok()) {
        Some(place) => place,
        None if method.is_empty() => NO_METHOD,
        None => OTHER_METHOD,
    }
}

impl Recorder {
    fn registered() -> Self {
        let shard = Arc::<Shard>::default();
        lock(&SHARDS).push(Arc::clone(&shard));
        Self { shard, series: HashMap::default() }
    }

    fn note(&mut self, record: &RequestRecord<'_>) {
        let place = |text: &'static str| (text.as_ptr(), text.len());
        let (plane, method) = (record.plane, method_index(record.method));
        let key = Key { route: place(record.route), operation: place(record.operation), plane, method };
        let shard = &self.shard;
        let series = self.series.entry(key).or_insert_with(|| shard.add_series(record, method));
        let class = usize::from(record.status / 100).wrapping_sub(1).min(STATUS_CLASSES.len() - 1);
        series.by_class[class].add(1);
        if method != NO_METHOD {
            series.latency.note_time(record.latency);
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
        let named = |text: &'static str| if text.is_empty() { NONE } else { text };
        let method = METHODS.get(usize::from(method)).copied().unwrap_or(NONE);
        let labels = [record.plane.name(), method, named(record.route), named(record.operation)];
        let (by_class, latency) = Default::default();
        let series = Arc::new(Series { labels, by_class, latency });
        lock(&self.series).push(Arc::clone(&series));
        series
    }
}

/// The sums over all threads.
struct Totals {
    by_class: [u64; STATUS_CLASSES.len()],
    latency: HistogramReading,
}

fn totals(shards: &[Arc<Shard>]) -> BTreeMap<Labels, Totals> {
    let mut totals = BTreeMap::new();
    for shard in shards {
        for series in &*lock(&shard.series) {
            let total = totals.entry(series.labels).or_insert_with(|| Totals {
                by_class: Default::default(),
                latency: HistogramReading::sum_of(&DURATION_BOUNDS, std::iter::empty()),
            });
            for (sum, tally) in total.by_class.iter_mut().zip(&series.by_class) {
                *sum += tally.value();
            }
            total.latency.add(&series.latency.read());
        }
    }
    totals
}

/// The families of all that is counted of requests.
pub(crate) fn families() -> Vec<Family> {
    families_of(&lock(&SHARDS).clone())
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
    let bytes = |metric: MetricName, of: fn(&Shard) -> &[Tally; Plane::ALL.len()]| Family {
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
    use crate::request_log::RequestOutcome;
    use proptest::prelude::*;
    use std::time::Duration;

    fn record(method: &'static str, route: &'static str, status: u16, micros: u64) -> RequestRecord<'static> {
        RequestRecord {
            request_id: "0",
            plane: Plane::Data,
            method,
            addresses: None,
            route,
            operation: "GetObject",
            status,
            latency: Duration::from_micros(micros),
            bytes_in: 3,
            bytes_out: 5,
            outcome: RequestOutcome::Complete,
            error_code: None,
        }
    }

    /// A recorder that no scrape of the process sees.
    fn apart() -> Recorder {
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
    fn two_threads_count_into_one_series_of_a_scrape() {
        let (mut one, mut other) = (apart(), apart());
        one.note(&record("GET", "/{bucket}/{key}", 200, 70));
        one.note(&record("GET", "/{bucket}/{key}", 404, 70));
        other.note(&record("GET", "/{bucket}/{key}", 200, 3_000_000));
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
    fn texts_of_equal_words_in_two_places_are_one_series() {
        let copy: &'static str = Box::leak("/{bucket}/{key}".to_owned().into_boxed_str());
        let mut recorder = apart();
        recorder.note(&record("GET", "/{bucket}/{key}", 200, 1));
        recorder.note(&record("GET", copy, 200, 1));
        assert_eq!(requests_of(&families_of(&[recorder.shard])).len(), 1);
    }

    #[test]
    fn what_could_not_be_read_has_labels_that_say_so() {
        let mut recorder = apart();
        recorder.note(&RequestRecord { operation: "", ..record("", "", 400, 1) });
        assert_eq!(requests_of(&families_of(&[recorder.shard]))[0].0, "data none none none 4xx");
    }

    /// A flood of refused connections entered the histogram with 0 s each: the quantiles over all requests were best when
    /// the service turned everybody away.
    #[test]
    fn what_could_not_be_read_is_counted_but_makes_no_latency_better() {
        let mut recorder = apart();
        recorder.note(&record("GET", "/{bucket}", 200, 3_000_000));
        for _ in 0..1000 {
            recorder.note(&RequestRecord { operation: "", ..record("", "", 503, 0) });
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
        /// Each method that a client made up must not become a series of its own.
        #[test]
        fn no_method_and_no_status_makes_more_series_than_there_are_labels(
            asked in proptest::collection::vec(("[A-Z]{0,12}", any::<u16>()), 1..400)
        ) {
            let mut recorder = apart();
            for (method, status) in &asked {
                recorder.note(&RequestRecord { method, status: *status, ..record("GET", "/", 200, 1) });
            }
            let most = (METHODS.len() + 1) * STATUS_CLASSES.len();
            let samples = requests_of(&families_of(&[recorder.shard]));
            prop_assert!(samples.len() <= most);
            let total: u64 = samples.iter().map(|(_, value)| match value {
                MetricValue::Whole(count) => *count,
                _ => 0,
            }).sum();
            prop_assert_eq!(total, asked.len() as u64);
        }
    }
}
