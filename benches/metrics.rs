//! The cost of recording a request and a duration: alone, with many kinds of requests, and concurrently with another thread.

use cairn_model::DurationHistogram;
use cairn_observe::{Plane, RequestOutcome, RequestRecord, log_request};
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const fn record(operation: &'static str) -> RequestRecord<'static> {
    RequestRecord {
        request_id: "0123456789ABCDEF",
        plane: Plane::Data,
        method: "GET",
        addresses: None,
        route: "/{bucket}/{key}",
        principal: None,
        resource: None,
        operation,
        status: 200,
        latency: Duration::from_micros(70),
        bytes_in: 0,
        bytes_out: 4096,
        outcome: RequestOutcome::Complete,
        error_code: None,
    }
}

/// Number of kinds of requests on a busy server.
const KINDS: usize = 64;

fn requests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("metrics");
    // The log is not started, so a request is counted but no line is written.
    let one = record("GetObject");
    group.bench_function("a request", |bencher| bencher.iter(|| log_request(black_box(&one))));

    let names = (0..KINDS).map(|number| &*Box::leak(format!("Operation{number}").into_boxed_str()));
    let kinds: Vec<_> = names.map(record).collect();
    let mut turn = 0;
    group.bench_function("a request of one of 64 kinds", |bencher| {
        bencher.iter(|| {
            turn = (turn + 1) % KINDS;
            log_request(black_box(&kinds[turn]));
        });
    });

    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let other = std::thread::spawn(move || {
        while !seen.load(Ordering::Relaxed) {
            log_request(black_box(&record("GetObject")));
        }
    });
    group.bench_function("a request beside another thread", |bencher| {
        bencher.iter(|| log_request(black_box(&one)));
    });
    stop.store(true, Ordering::Relaxed);
    other.join().expect("it counts until it is told to stop");

    let durations = DurationHistogram::default();
    let time = Duration::from_micros(130);
    group.bench_function("a duration", |bencher| bencher.iter(|| durations.record_duration(black_box(time))));
    group.finish();
}

criterion_group!(benches, requests);
criterion_main!(benches);
