//! Lifecycle rules: what is due among many objects, puts meanwhile, and what the due index costs.
//!
//! Not a criterion benchmark, because each removal happens once. `CAIRN_OBJECTS` is the number of objects (default 20 000), of
//! which `CAIRN_DUE` (default a tenth) are due. Prints one line for each figure.
#![expect(clippy::print_stdout, clippy::expect_used, reason = "a program that prints its figures")]

use cairn_benches::{Bench, put};
use cairn_engine::{
    BucketChange, FilterForm, LifecycleChange, LifecycleOptions, LifecycleRule, RuleId, Tags,
};
use cairn_fixtures::ManualClock;
use cairn_model::Timestamp;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

const DAY: u64 = 86_400_000;
const BATCH: u64 = 500;
/// Concurrent writers of the load.
const WRITERS: u64 = 8;
const LOAD: Duration = Duration::from_secs(6);
/// Rounds of puts with and without the index, in turn.
const ROUNDS: u64 = 6;
const ROUND_PUTS: u64 = 20_000;
const OPTIONS: LifecycleOptions = LifecycleOptions { interval: Duration::from_secs(3600), batch_size: 1000 };

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

fn change(bench: &Bench, change: LifecycleChange) {
    let change = BucketChange::Lifecycle(change);
    bench.run(bench.engine().store().change_bucket(bench.bucket(), change)).expect("changed");
}

/// Puts new objects from several writers until `is_done`, and returns their sorted durations.
async fn load(bench: &Bench, first: u64, is_done: impl Fn() -> bool + Clone + 'static) -> Vec<Duration> {
    let next = Rc::new(Cell::new(first));
    let durations = Rc::new(RefCell::new(Vec::new()));
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let (engine, bucket) = (Rc::clone(bench.engine()), Arc::clone(bench.bucket()));
            let (next, durations, is_done) = (Rc::clone(&next), Rc::clone(&durations), is_done.clone());
            glommio::spawn_local(async move {
                while !is_done() {
                    let number = next.replace(next.get() + 1);
                    let begun = Instant::now();
                    put(&engine, &bucket, number, &[7; 100]).await.expect("put");
                    durations.borrow_mut().push(begun.elapsed());
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await;
    }
    let mut durations = durations.take();
    durations.sort_unstable();
    durations
}

fn report(what: &str, durations: &[Duration]) {
    let at = |part: usize| durations.get(durations.len() * part / 1000).copied().unwrap_or_default();
    println!("{what}: {} puts, p50 {:?}, p99 {:?}", durations.len(), at(500), at(990));
}

/// Compares puts into two stores in turn, of which one keeps a due index.
fn compare_puts(rule: &LifecycleRule) {
    let (without, with) = (Bench::new(0), Bench::new(0));
    change(&with, LifecycleChange::Add(LifecycleRule { is_enabled: false, ..rule.clone() }));
    with.run(with.engine().apply_lifecycle(OPTIONS)).expect("applied");
    let bytes = Rc::new(vec![7u8; 100]);
    let mut rates = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        for (bench, rates) in [&without, &with].into_iter().zip(&mut rates) {
            let begun = Instant::now();
            for at in (round * ROUND_PUTS..(round + 1) * ROUND_PUTS).step_by(500) {
                bench.put_all(at..at + BATCH, &bytes);
            }
            rates.push(ROUND_PUTS as f64 / begun.elapsed().as_secs_f64());
        }
    }
    for (what, mut rates) in ["without an index", "with an index"].into_iter().zip(rates) {
        rates.sort_by(f64::total_cmp);
        println!("puts {what}: median {:.0}/s of {rates:.0?}", rates[rates.len() / 2]);
    }
}

fn main() {
    let objects = from_environment("CAIRN_OBJECTS", 20_000);
    let due = from_environment("CAIRN_DUE", objects / 10);
    let clock = ManualClock::at(20_000 * DAY + 1);
    let bench = Bench::with_clock(0, Arc::<ManualClock>::clone(&clock));
    let bytes = Rc::new(vec![7u8; 100]);
    let put_all = |first: u64, count: u64| {
        let begun = Instant::now();
        for at in (first..first + count).step_by(usize::try_from(BATCH).expect("small")) {
            bench.put_all(at..(at + BATCH).min(first + count), &bytes);
        }
        begun.elapsed()
    };
    let rule = LifecycleRule {
        id: RuleId::new(Timestamp(1)).expect("random numbers"),
        s3_id: None,
        prefix: String::new(),
        tags: Tags::default(),
        form: FilterForm::default(),
        expiration_days: Some(1),
        noncurrent_days: None,
        newer_noncurrent_versions: 0,
        expired_delete_markers: false,
        abort_uploads_days: None,
        is_enabled: true,
        created_at: Timestamp(1),
    };
    compare_puts(&rule);
    // The second day is over for these, and not for the others.
    put_all(0, due);
    clock.advance(Duration::from_millis(2 * DAY));
    let took = put_all(due, objects - due);
    println!(
        "{objects} objects, {due} of them due; puts without an index: {:.0}/s",
        (objects - due) as f64 / took.as_secs_f64()
    );
    change(&bench, LifecycleChange::Add(LifecycleRule { is_enabled: false, ..rule.clone() }));
    let begun = Instant::now();
    bench.run(bench.engine().apply_lifecycle(OPTIONS)).expect("applied");
    println!("the index was built in {:?}", begun.elapsed());

    let mut next = objects;
    let begun = Instant::now();
    let durations = bench.run(load(&bench, next, move || begun.elapsed() > LOAD));
    report("load alone", &durations);
    next += u64::try_from(durations.len()).expect("small");
    change(&bench, LifecycleChange::Replace(rule));
    // While the load runs, rules proceed slowly; the rest is removed afterwards at full speed.
    let engine = Rc::clone(bench.engine());
    let (durations, removed) = bench.run(async {
        let applying = glommio::spawn_local(async move { engine.apply_lifecycle(OPTIONS).await });
        let begun = Instant::now();
        let durations = load(&bench, next, move || begun.elapsed() > LOAD).await;
        let meanwhile = bench.engine().store().lifecycle_status().counts.expired_objects;
        let begun = Instant::now();
        let counts = applying.await.expect("applied");
        (durations, (meanwhile, counts.expired_objects - meanwhile, begun.elapsed()))
    });
    report("load while rules are applied", &durations);
    let (meanwhile, rest, took) = removed;
    println!(
        "removed during the load: {meanwhile}; then {rest} in {took:?} without load, {:.0}/s",
        rest as f64 / took.as_secs_f64()
    );
    let begun = Instant::now();
    bench.run(bench.engine().apply_lifecycle(OPTIONS)).expect("applied");
    println!("a run with nothing due: {:?}", begun.elapsed());
}
