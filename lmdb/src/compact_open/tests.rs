//! Tests of the compaction of an open environment: concurrent reads and writes, crashes, refusals.

use super::{CopyProgress, OpenCompactOptions, OpenCompaction};
use crate::limits::COMPACTION_GAIN_MIN;
use crate::{Environment, EnvironmentOptions, Error, Table};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const OPTIONS: EnvironmentOptions = EnvironmentOptions { map_bytes: 1 << 30, tables_max: 4 };
const GO_ON: &dyn Fn(CopyProgress) -> bool = &|_| true;

fn compact(
    environment: &Environment,
    proceed: &dyn Fn(CopyProgress) -> bool,
) -> Result<OpenCompaction, Error> {
    environment.compact(&OpenCompactOptions { headroom_bytes: 1 << 20, available_bytes: u64::MAX, proceed })
}

struct Opened {
    environment: Environment,
    small: Table,
    large: Table,
}

fn open(folder: &Path) -> Opened {
    let environment = Environment::open(folder, OPTIONS).expect("opens");
    let (small, large) =
        (environment.table("small").expect("a table"), environment.table("large").expect("a table"));
    Opened { environment, small, large }
}

/// Makes an environment with `records` records of 3000 bytes, after as many others were removed.
fn make(folder: &Path, records: u32) -> Opened {
    let opened = open(folder);
    for (step, change) in [true, false].into_iter().enumerate() {
        let mut txn = opened.environment.write().expect("writes");
        for n in 0..records * 2 {
            if change {
                txn.put(opened.large, &n.to_be_bytes(), 1, &[n.to_be_bytes()[3]; 3000], b"tail")
                    .expect("puts");
            } else if n % 2 == 0 {
                assert!(txn.remove(opened.large, &n.to_be_bytes()).expect("removes"), "{step}");
            }
        }
        txn.commit().expect("commits");
    }
    opened
}

type Contents = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

fn contents(opened: &Opened) -> Contents {
    let read = opened.environment.read().expect("reads");
    let mut found = BTreeMap::new();
    for table in [opened.small, opened.large] {
        for item in read.scan(table, &[]).expect("scans") {
            let (key, record) = item.expect("valid");
            found.insert((table, key.to_vec()), [record.body, record.tail].concat());
        }
    }
    assert_eq!(
        read.compute_totals(&[opened.small, opened.large]).expect("whole"),
        read.totals().expect("totals")
    );
    found
}

fn no_folder_is_left(folder: &Path) {
    let left = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let left: Vec<_> =
        left.filter(|name| name.to_str().is_some_and(|name| name.starts_with("compact"))).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Stops the other threads of a test, also when it fails.
struct StopAtEnd<'t>(&'t AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A writer changes both tables all the time, also keys that were copied already. Two readers check that every snapshot shows
/// one transaction as a whole and never an earlier one than before. After three compactions the environment has what was
/// written.
#[test]
fn nothing_is_lost_while_others_read_and_write() {
    let folder = tempfile::tempdir().expect("a folder");
    let opened = make(folder.path(), 6000);
    let Opened { environment, small, large } = &opened;
    let (stop, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut written = contents(&opened);
    std::thread::scope(|scope| {
        let stop_at_end = StopAtEnd(&stop);
        let writer = scope.spawn(|| {
            for round in 1u64.. {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let mut txn = environment.write().expect("writes");
                for name in [b"first".as_slice(), b"second"] {
                    txn.put(*small, name, 1, &round.to_be_bytes(), b"").expect("puts");
                    written.insert((*small, name.to_vec()), round.to_be_bytes().to_vec());
                }
                for change in 0..8u64 {
                    let number = round.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17) ^ change;
                    let key = u32::try_from(number % 14_000).expect("small").to_be_bytes().to_vec();
                    if number % 3 == 0 {
                        txn.remove(*large, &key).expect("removes");
                        written.remove(&(*large, key));
                    } else {
                        let body = vec![number.to_be_bytes()[1]; 500 + usize::from(number.to_be_bytes()[2])];
                        txn.put(*large, &key, 1, &body, b"end").expect("puts");
                        written.insert((*large, key), [&body[..], b"end"].concat());
                    }
                }
                txn.commit().expect("commits");
                acknowledged.store(round, Ordering::SeqCst);
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let (mut last_round, mut last_number) = (0, 0);
                while !stop.load(Ordering::SeqCst) {
                    let before = acknowledged.load(Ordering::SeqCst);
                    let read = environment.read().expect("reads");
                    let round = |name: &[u8]| {
                        let record = read.get(*small, name).expect("reads");
                        record
                            .map_or(0, |record| u64::from_be_bytes(record.body.try_into().expect("8 bytes")))
                    };
                    let (first, second) = (round(b"first"), round(b"second"));
                    assert_eq!(first, second, "a snapshot shows a part of a transaction");
                    assert!(first >= before, "an acknowledged change is missing: {first} {before}");
                    assert!(
                        first >= last_round && read.id() >= last_number,
                        "an earlier snapshot: round {first} after {last_round}, number {} after {last_number}",
                        read.id()
                    );
                    (last_round, last_number) = (first, read.id());
                }
            });
        }
        for _ in 0..3 {
            let done = compact(environment, GO_ON).expect("compacts");
            assert!(done.compaction.bytes_after < done.compaction.bytes_before, "{done:?}");
            assert!(done.pause > Duration::ZERO);
            environment.check_file().expect("the data file is the one that is open");
            environment.extend(COMPACTION_GAIN_MIN + (4 << 20)).expect("there is something to gain");
        }
        drop(stop_at_end);
        writer.join().expect("the writer ends");
    });
    no_folder_is_left(folder.path());
    assert_eq!(contents(&opened), written);
    opened.environment.close();
    assert_eq!(contents(&open(folder.path())), written, "the file that the next start finds");
}

/// After each step, the files are what a crash would leave. The last step is followed by the replacement.
#[test]
fn a_crash_at_any_moment_leaves_every_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let opened = make(folder.path(), 6000);
    let steps = Cell::new(0u32);
    let done = compact(&opened.environment, &|_| {
        steps.set(steps.get() + 1);
        let mut txn = opened.environment.write().expect("writes");
        txn.put(opened.large, &(steps.get() * 90).to_be_bytes(), 1, &steps.get().to_be_bytes(), b"")
            .expect("puts");
        txn.commit().expect("commits");
        let crashed = tempfile::tempdir().expect("a folder");
        copy_folder(folder.path(), crashed.path());
        let found = open(crashed.path());
        assert_eq!(contents(&found), contents(&opened), "step {}", steps.get());
        found.environment.close();
        no_folder_is_left(crashed.path());
        true
    });
    assert!(done.is_ok() && steps.get() > 5, "{done:?} {}", steps.get());
    let crashed = tempfile::tempdir().expect("a folder");
    copy_folder(folder.path(), crashed.path());
    assert_eq!(contents(&open(crashed.path())), contents(&opened));
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        if entry.file_type().expect("a type").is_dir() {
            std::fs::create_dir(to.join(entry.file_name())).expect("a folder");
            copy_folder(&entry.path(), &to.join(entry.file_name()));
        } else if entry.file_name() != "lock.mdb" {
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copies");
        }
    }
}

#[test]
fn an_open_read_transaction_keeps_its_snapshot() {
    let folder = tempfile::tempdir().expect("a folder");
    let opened = make(folder.path(), 6000);
    let (begun, wait) = std::sync::mpsc::channel();
    let (ended, may_end) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let Opened { environment, large, .. } = &opened;
        let reader = scope.spawn(move || {
            let read = environment.read().expect("reads");
            let before = read.totals().expect("totals");
            begun.send(()).expect("the test waits");
            may_end.recv().expect("the test answers");
            assert_eq!(read.compute_totals(&[*large]).expect("whole"), before);
        });
        wait.recv().expect("begun");
        let compaction = scope.spawn(|| compact(environment, GO_ON));
        // The file is replaced while the reader's transaction is open: a change is not in the old file.
        while environment.compactions.load(Ordering::SeqCst) == 0 || environment.headroom() > 2 << 20 {
            std::thread::yield_now();
        }
        let mut txn = environment.write().expect("writes");
        txn.put(*large, b"after", 1, b"", b"").expect("puts");
        txn.commit().expect("commits");
        ended.send(()).expect("the reader waits");
        reader.join().expect("the snapshot is whole");
        compaction.join().expect("ends").expect("compacts");
    });
    assert!(contents(&opened).contains_key(&(opened.large, b"after".to_vec())));
}

#[test]
fn refused_and_cancelled_compactions_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let opened = make(folder.path(), 6000);
    let before = contents(&opened);
    let small = OpenCompactOptions { headroom_bytes: 0, available_bytes: 1 << 20, proceed: GO_ON };
    let refused = opened.environment.compact(&small);
    assert!(matches!(refused, Err(Error::NoSpaceForCopy { available: 1_048_576, .. })), "{refused:?}");
    let nested = Cell::new(false);
    let cancelled = compact(&opened.environment, &|progress| {
        let second = compact(&opened.environment, GO_ON);
        nested.set(matches!(second, Err(Error::CompactionRunning)));
        progress.copied_bytes < 4 << 20
    });
    assert!(matches!(cancelled, Err(Error::Cancelled)), "{cancelled:?}");
    assert!(nested.get(), "one compaction at a time");
    no_folder_is_left(folder.path());
    assert_eq!(contents(&opened), before);
    {
        // A table of a later version of the program.
        let generation = opened.environment.current.get();
        let mut txn = generation.env.write_txn().expect("writes");
        let _: heed::Database<heed::types::Bytes, heed::types::Bytes> =
            generation.env.create_database(&mut txn, Some("later")).expect("a table");
        txn.commit().expect("commits");
    }
    let refused = compact(&opened.environment, GO_ON);
    assert!(matches!(&refused, Err(Error::UnknownTable(name)) if name == "later"), "{refused:?}");
}

/// A flipped bit would be copied and then be the only version.
#[test]
fn damaged_records_end_a_compaction() {
    let folder = tempfile::tempdir().expect("a folder");
    make(folder.path(), 6000).environment.close();
    let data = folder.path().join("data.mdb");
    let mut bytes = std::fs::read(&data).expect("reads");
    for at in 0..bytes.len() - 3000 {
        if bytes[at..at + 3000] == [61; 3000] {
            bytes[at + 1000] ^= 1;
        }
    }
    std::fs::write(&data, &bytes).expect("writes");
    let opened = open(folder.path());
    let refused = compact(&opened.environment, GO_ON);
    assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
    no_folder_is_left(folder.path());
}

#[test]
fn renewal_keeps_the_acknowledged_state_and_the_numbers() {
    let folder = tempfile::tempdir().expect("a folder");
    let opened = make(folder.path(), 3000);
    let before = contents(&opened);
    let number = opened.environment.read().expect("reads").id();
    let options = OpenCompactOptions { headroom_bytes: 1 << 20, available_bytes: u64::MAX, proceed: GO_ON };
    let inode = || {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::metadata(folder.path().join("data.mdb")).expect("a file").ino()
    };
    let inode_before = inode();
    opened.environment.renew(&options).expect("renews");
    assert_ne!(inode(), inode_before, "the file is a new one");
    no_folder_is_left(folder.path());
    assert_eq!(contents(&opened), before);
    assert_eq!(opened.environment.read().expect("reads").id(), number);
    let mut txn = opened.environment.write().expect("writes");
    txn.put(opened.small, b"after", 1, b"", b"").expect("puts");
    txn.commit().expect("commits");
    assert_eq!(opened.environment.read().expect("reads").id(), number + 1);
    opened.environment.close();
    assert_eq!(contents(&open(folder.path())).len(), before.len() + 1);
}
