//! Tests: whole files, and files with random damage.

use super::SalvagedEnvironment;
use crate::{Environment, EnvironmentOptions, FlushFailures, LogOptions, Record};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

const OPTIONS: EnvironmentOptions = EnvironmentOptions { map_bytes: 1 << 30, tables_max: 4 };
const LOG: LogOptions = LogOptions { bytes_max: 16 << 20, checkpoint_bytes: 1 << 20 };
const RECORDS: u32 = 2000;

type Records = BTreeMap<Vec<u8>, (Vec<u8>, Vec<u8>)>;

fn key(number: u32) -> Vec<u8> {
    format!("key {number:06}").into_bytes()
}

/// Fills a table with records of all sizes, a second one with others, and removes some.
fn fill(environment: &Environment) -> Records {
    let (table, other) = (environment.table("table"), environment.table("other"));
    let (table, other) = (table.expect("a table"), other.expect("a table"));
    let mut records = Records::new();
    for round in 0..20 {
        let mut txn = environment.write().expect("writes");
        for number in (round..RECORDS).step_by(20) {
            let body = vec![number.to_le_bytes()[0]; 20 + (number as usize * 37) % 300];
            let tail = vec![!number.to_le_bytes()[0]; if number.is_multiple_of(50) { 9000 } else { 0 }];
            txn.put(table, &key(number), 1, &body, &tail).expect("puts");
            txn.put(other, &key(number), 2, b"other", b"").expect("puts");
            records.insert(key(number), (body, tail));
        }
        if round > 2 {
            txn.remove(table, &key(round - 2)).expect("removes");
            records.remove(&key(round - 2));
        }
        txn.commit().expect("commits");
    }
    records
}

fn is_record(key: &[u8], record: &Record<'_>) -> bool {
    record.version == 1 && key.starts_with(b"key ")
}

/// Returns what is found, and which of it was searched.
fn salvage(folder: &Path) -> (Records, Vec<Vec<u8>>, super::LostRanges, Vec<String>) {
    let mut environment = SalvagedEnvironment::open(folder);
    let faults = environment.faults().to_vec();
    let table = environment.table("table", &is_record);
    let (mut found, mut searched) = (Records::new(), Vec::new());
    table.each(&environment, &mut |one| {
        let tail = one.tail(tail_of(one.key)).unwrap_or_default();
        let before = found.insert(one.key.to_vec(), (one.record.body.to_vec(), tail));
        assert!(before.is_none(), "each key once");
        if one.is_searched {
            searched.push(one.key.to_vec());
        }
    });
    assert!(found.keys().is_sorted());
    (found, searched, table.lost.clone(), faults)
}

fn tail_of(key: &[u8]) -> usize {
    let number: u32 = std::str::from_utf8(&key[4..]).expect("digits").parse().expect("a number");
    if number.is_multiple_of(50) { 9000 } else { 0 }
}

#[test]
fn whole_file_gives_every_record() {
    for has_log in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let environment = if has_log {
            Environment::open_with_log(folder.path(), OPTIONS, LOG, &FlushFailures::default()).expect("opens")
        } else {
            Environment::open(folder.path(), OPTIONS).expect("opens")
        };
        let records = fill(&environment);
        // While it is open, as after a kill: the log counts.
        for _ in 0..2 {
            let (found, searched, lost, faults) = salvage(folder.path());
            assert!(found == records && searched.is_empty() && lost.all().is_empty() && faults.is_empty());
        }
        environment.close();
        let (found, _, lost, faults) = salvage(folder.path());
        assert!(found == records && lost.all().is_empty() && faults.is_empty(), "{faults:?}");
        let mut salvaged = SalvagedEnvironment::open(folder.path());
        let table = salvaged.table("table", &is_record);
        let mut keys = Vec::new();
        table.with_prefix(&salvaged, b"key 0010", &mut |one| keys.push(one.key.to_vec()));
        assert_eq!(keys, (1000..1100).map(key).collect::<Vec<_>>());
    }
}

/// Whatever is damaged, a record is found as it was, or its key is in a lost range. None is made up.
#[test]
fn random_damage_hides_no_record_that_it_does_not_touch() {
    let folder = tempfile::tempdir().expect("a folder");
    let environment = Environment::open(folder.path(), OPTIONS).expect("opens");
    let records = fill(&environment);
    environment.close();
    let path = folder.path().join("data.mdb");
    let whole = std::fs::read(&path).expect("reads");
    let mut state = 88_172_645_463_325_252u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).expect("below a usize")
    };
    for round in 0..300 {
        let mut damaged = whole.clone();
        match round % 4 {
            0 => damaged.truncate(random(whole.len())),
            1 => {
                let from = random(whole.len());
                let to = (from + 1 + random(20_000)).min(whole.len());
                damaged[from..to].fill(0);
            }
            _ => {
                for _ in 0..=random(8) {
                    let at = random(whole.len());
                    damaged[at] ^= 1 << random(8);
                }
            }
        }
        let file = File::create(&path).expect("creates");
        file.write_all_at(&damaged, 0).expect("writes");
        let (found, searched, lost, _) = salvage(folder.path());
        for (key, (body, tail)) in &records {
            match found.get(key) {
                // The tail has a check of its own.
                Some((found, _)) => assert_eq!(found, body, "{round}"),
                None => {
                    assert!(lost.contains(key), "round {round}: {:?} {tail:?}", String::from_utf8_lossy(key))
                }
            }
        }
        for key in found.keys().filter(|key| !records.contains_key(*key)) {
            assert!(searched.contains(key), "round {round}: a removed record came back");
        }
    }
}
