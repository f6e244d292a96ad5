//! Pages of storage events: the cost of a page must not depend on the number of events.
//!
//! `CAIRN_BENCH_EVENTS` sets the larger number of events, a million by default. Events are made by overwriting few objects, so
//! the store holds little else. The pages begin at places spread over all events.

use cairn_benches::Bench;
use cairn_engine::{EventQuery, Tick};
use cairn_model::{Clock as _, SystemClock};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::rc::Rc;

/// Puts that wait for commits at a time.
const CONCURRENT: u64 = 512;
const KEYS: u64 = 4096;
const SMALL: u64 = 10_000;
const LARGE_DEFAULT: u64 = 1_000_000;
/// Places at which pages begin.
const PLACES: u64 = 64;

fn fill(bench: &Bench, from: u64, to: u64) {
    let empty = Rc::new(Vec::new());
    for batch in from / CONCURRENT..to / CONCURRENT {
        let first = batch * CONCURRENT % KEYS;
        bench.put_all(first..first + CONCURRENT, &empty);
    }
}

/// Returns ticks spread evenly over the time of the events.
fn places(bench: &Bench) -> Vec<Tick> {
    let first = EventQuery { limit: 1, ..EventQuery::default() };
    let first = bench.engine().store().events(&first).expect("reads").events[0].id.tick().0;
    let last = Tick::first_at(SystemClock.now()).0;
    (0..PLACES).map(|place| Tick(first + (last - first) / (PLACES + 1) * place)).collect()
}

fn pages(criterion: &mut Criterion) {
    let large =
        std::env::var("CAIRN_BENCH_EVENTS").map_or(LARGE_DEFAULT, |text| text.parse().expect("a number"));
    let bench = Bench::new(0);
    let mut group = criterion.benchmark_group("page of 1000 events");
    let mut filled = 0;
    for events in [SMALL, large] {
        fill(&bench, filled, events);
        filled = events;
        let places = places(&bench);
        group.bench_function(BenchmarkId::from_parameter(events), |runs| {
            let mut place = 0;
            runs.iter(|| {
                place = (place + 1) % places.len();
                let query = EventQuery { from: places[place], ..EventQuery::default() };
                black_box(bench.engine().store().events(&query).expect("reads").events.len())
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = events;
    config = Criterion::default().sample_size(30);
    targets = pages
}
criterion_main!(events);
