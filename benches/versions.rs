//! Versions and parts: keys with many versions and with one, pages of versions and of keys, completions by number of parts,
//! copies.

use cairn_benches::Bench;
use cairn_engine::{
    BucketChange, CompleteUpload, ListObjects, ListVersions, NewUpload, Origin, PutPart, Versioning,
    WriteCondition,
};
use cairn_md5::md5_digest;
use cairn_model::ObjectKey;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const MANY: u64 = 100_000;
const BATCH: u64 = 500;

fn versioned(bench: &Bench) {
    let change = BucketChange::Versioning(Versioning::Enabled);
    let changed = bench.run(bench.engine().store().change_bucket(bench.bucket(), change));
    changed.expect("versioning");
}

/// The current version of a key with one version among 100 000 such keys, and of a key with 100 000 versions.
fn current_versions(criterion: &mut Criterion) {
    let bench = Bench::new(0);
    versioned(&bench);
    let bytes = Rc::new(vec![7u8; 100]);
    for first in (0..MANY).step_by(500) {
        bench.put_all(first..first + BATCH, &bytes);
        bench.put_again(MANY, BATCH, &bytes);
    }
    let mut group = criterion.benchmark_group("current version of a key");
    for (number, versions) in [(MANY / 2, 1), (MANY, MANY)] {
        let key = Bench::key(number);
        group.bench_function(BenchmarkId::new("head, versions", versions), |bencher| {
            bencher.iter(|| bench.engine().head_object(bench.bucket(), &key, None).map(|info| info.size));
        });
        group.bench_function(BenchmarkId::new("get, versions", versions), |bencher| {
            bencher.iter(|| black_box(bench.get(number)));
        });
    }
    group.finish();
    let many = Bench::key(MANY);
    criterion.bench_function("list with a key of 100 000 versions in it", |bencher| {
        bencher.iter(|| {
            let list = ListObjects { prefix: many.as_bytes(), delimiter: None, after: None, max: 1000 };
            bench.engine().list_objects(bench.bucket(), &list).map(|page| page.objects.len())
        });
    });
}

/// Pages of 1000 of 20 000 keys: of keys, and of versions.
fn pages(criterion: &mut Criterion) {
    let bench = Bench::new(0);
    versioned(&bench);
    let bytes = Rc::new(vec![7u8; 100]);
    for first in (0..20_000).step_by(500) {
        bench.put_all(first..first + 500, &bytes);
    }
    let mut group = criterion.benchmark_group("pages of 1000 among 20 000");
    group.bench_function("keys", |bencher| {
        bencher.iter(|| {
            let list = ListObjects { prefix: b"", delimiter: None, after: None, max: 1000 };
            bench.engine().list_objects(bench.bucket(), &list).map(|page| page.objects.len())
        });
    });
    group.bench_function("versions", |bencher| {
        bencher.iter(|| {
            let list = ListVersions { prefix: b"", delimiter: None, after: None, max: 1000 };
            bench.engine().list_versions(bench.bucket(), &list).map(|page| page.versions.len())
        });
    });
    group.finish();
}

/// A durable completion by the number of its parts. The parts are small, because their size does not matter.
fn completions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("completions by parts");
    for parts in [10u16, 1000, 10_000] {
        let bench = Bench::new(0);
        let mut number = 0;
        group.bench_function(BenchmarkId::from_parameter(parts), |bencher| {
            bencher.iter_batched(
                || {
                    number += 1;
                    bench.run(uploaded(&bench, Bench::key(number), parts))
                },
                |complete| bench.run(bench.engine().complete_upload(complete)).expect("completes"),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

/// Returns an upload with this many parts of 20 000 bytes, ready to be completed.
async fn uploaded(bench: &Bench, key: ObjectKey, parts: u16) -> CompleteUpload {
    let (engine, bucket) = (bench.engine(), bench.bucket());
    let upload = engine.create_upload(bucket, &key, NewUpload::default()).await.expect("begins").id;
    let bytes = Rc::new(vec![7u8; 20_000]);
    for first in (1..=parts).step_by(500) {
        let tasks: Vec<_> = (first..=parts.min(first + 499))
            .map(|number| {
                let (engine, bucket, key) = (Rc::clone(engine), Arc::clone(bucket), key.clone());
                let bytes = Rc::clone(&bytes);
                glommio::spawn_local(async move {
                    let payload = cairn_benches::stage(&engine, &bucket, &key, &bytes).await.expect("writes");
                    let part = PutPart { bucket, key, upload, number, payload, checksum: None };
                    engine.put_part(part).await.expect("uploads");
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
    }
    let md5 = md5_digest(&bytes);
    CompleteUpload {
        bucket: Arc::clone(bucket),
        key,
        upload,
        parts: (1..=parts).map(|number| (number, md5)).collect(),
        checksums: Vec::new(),
        condition: WriteCondition::default(),
        origin: Origin::default(),
    }
}

/// A copy of 64 MiB, without its commit.
fn copies(criterion: &mut Criterion) {
    const SIZE: u64 = 64 << 20;
    let bench = Bench::new(0);
    bench.put_all(0..1, &Rc::new(vec![7u8; 64 << 20]));
    let mut group = criterion.benchmark_group("copies");
    group.throughput(Throughput::Bytes(SIZE));
    group.bench_function("64 MiB", |bencher| {
        bencher.iter(|| {
            bench.run(async {
                let (engine, bucket) = (bench.engine(), bench.bucket());
                let source = engine.open_whole(bucket, &Bench::key(0), None).expect("opens");
                let permit = engine.admit_copy("bench", bucket, &Bench::key(1), SIZE).await;
                let mut permit = permit.expect("is admitted");
                engine.copy_payload(&mut permit, source, bucket, &Bench::key(1)).await.expect("copies");
            });
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(2));
    targets = current_versions, pages, completions, copies
}
criterion_main!(benches);
