//! The engine's hot paths: commits by batch size, reads from the record, the cache and the device, block checks, list merges.

use cairn_benches::Bench;
use cairn_engine::{ListObjects, block_check};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::rc::Rc;
use std::time::Duration;

/// Durable puts, with as many concurrent puts as the batch size. Each round writes new keys.
fn commits(criterion: &mut Criterion) {
    for (what, size) in [("inline 4 KiB", 4096), ("volume 64 KiB", 65_536)] {
        let mut group = criterion.benchmark_group(format!("durable puts, {what}"));
        let bench = Bench::new(0);
        let bytes = Rc::new(vec![7u8; size]);
        let mut next = 0;
        for at_once in [1u64, 16, 64, 256] {
            group.throughput(Throughput::Elements(at_once));
            group.bench_function(BenchmarkId::from_parameter(at_once), |bencher| {
                bencher.iter(|| {
                    bench.put_all(next..next + at_once, &bytes);
                    next = (next + at_once) % 100_000;
                });
            });
        }
        group.finish();
    }
}

/// Reads of one object: inline from the record, from the cache, and from the device.
fn reads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reads");
    for (what, size, cache) in [
        ("inline 4 KiB", 4096, 0),
        ("cached 1 MiB", 1 << 20, 64 << 20),
        ("device 64 KiB", 1 << 16, 0),
        ("device 1 MiB", 1 << 20, 0),
    ] {
        let bench = Bench::new(cache);
        bench.put_all(0..1, &Rc::new(vec![7u8; size]));
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(what, |bencher| bencher.iter(|| black_box(bench.get(0))));
    }
    group.finish();
}

fn block_checks(criterion: &mut Criterion) {
    let block = vec![7u8; 65_536];
    let mut group = criterion.benchmark_group("block checks");
    group.throughput(Throughput::Bytes(65_536));
    group.bench_function("CRC-64/NVME of 64 KiB", |bencher| bencher.iter(|| block_check(black_box(&block))));
    group.finish();
}

/// A page of 1000 of 20 000 keys, and a page of their 100 common prefixes.
fn lists(criterion: &mut Criterion) {
    let bench = Bench::new(0);
    let bytes = Rc::new(vec![7u8; 100]);
    for first in (0..20_000).step_by(500) {
        bench.put_all(first..first + 500, &bytes);
    }
    let mut group = criterion.benchmark_group("list merge of 20 000 keys");
    for (what, delimiter) in [("page of 1000 keys", None), ("100 common prefixes", Some(&b"/"[..]))] {
        group.bench_function(what, |bencher| {
            bencher.iter(|| {
                let list = ListObjects { prefix: b"", delimiter, after: None, max: 1000 };
                bench.engine().list_objects(bench.bucket(), &list).map(|page| page.objects.len())
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3));
    targets = commits, reads, block_checks, lists
}
criterion_main!(benches);
