//! Tests of environments with a commit log. Those of power cuts are in a module of their own.

mod power_cut;

use crate::log::commit_log::LogOptions;
use crate::log::faults::{LogFaults, Moment};
use crate::{Environment, EnvironmentOptions, Error, FlushFailures, OpenCompactOptions, Table};
use cairn_sync::Mutex;
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::sync::Arc;

const OPTIONS: EnvironmentOptions = EnvironmentOptions { map_bytes: 1 << 30, tables_max: 4 };
const LOG: LogOptions = LogOptions { bytes_max: 256 << 10, checkpoint_bytes: 96 << 10 };
/// For compactions and rebuilds of open environments.
const COPYING: OpenCompactOptions<'static> =
    OpenCompactOptions { headroom_bytes: 1 << 20, available_bytes: u64::MAX, proceed: &|_| true };

/// Set in a process whose files are limited.
const IN_CHILD: &str = "CAIRN_TEST_LIMITED_LOG";

type Contents = BTreeMap<(String, Vec<u8>), Vec<u8>>;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("64 bits") % bound
    }
}

fn tables(environment: &Environment) -> [(Table, &'static str); 2] {
    ["one", "two"].map(|name| (environment.table(name).expect("a table"), name))
}

fn contents(environment: &Environment) -> Contents {
    let tables = tables(environment);
    let read = environment.read().expect("reads");
    let mut found = Contents::new();
    for (table, name) in tables {
        for item in read.scan(table, &[]).expect("scans") {
            let (key, record) = item.expect("valid");
            found.insert((name.to_owned(), key.to_vec()), [record.body, record.tail].concat());
        }
    }
    let counted = read.compute_totals(&tables.map(|(table, _)| table)).expect("valid");
    assert_eq!(counted, read.totals().expect("totals"));
    found
}

/// Commits a random transaction. Returns the contents after it.
fn change(environment: &Environment, random: &mut Random, before: &Contents) -> Result<Contents, Error> {
    let tables = tables(environment);
    let mut after = before.clone();
    let mut txn = environment.write()?;
    for _ in 0..=random.below(12) {
        let (table, name) = tables[random.below(2)];
        let key = format!("key {}", random.below(60)).into_bytes();
        if random.below(4) == 0 {
            txn.remove(table, &key)?;
            after.remove(&(name.to_owned(), key));
        } else {
            // Values of more than a page are stored in pages of their own.
            let length = if random.below(8) == 0 { random.below(20_000) } else { random.below(400) };
            let body = vec![u8::try_from(random.below(256)).expect("a byte"); length];
            txn.put(table, &key, 1, &body, b"tail")?;
            after.insert((name.to_owned(), key), [&body[..], b"tail"].concat());
        }
    }
    txn.commit()?;
    Ok(after)
}

/// Otherwise a client could act on a change that a power cut takes away.
#[test]
fn nobody_reads_a_change_before_it_is_in_the_log() {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let environment =
        Environment::open_with_log(folder.path(), OPTIONS, LOG, &FlushFailures::default()).expect("opens");
    let environment = Arc::new(environment);
    let (table, _) = tables(&environment)[0];
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (own, found) = (Arc::downgrade(&environment), Arc::clone(&seen));
    let observe = move |moment| {
        if matches!(moment, Moment::WritesRecord { .. } | Moment::WroteRecord | Moment::Committed) {
            let environment = own.upgrade().expect("it is open");
            let is_there = environment.read().expect("reads").get(table, b"a").expect("valid").is_some();
            found.lock().push(is_there);
        }
    };
    environment.log().expect("there is one").faults.observe(Box::new(observe));
    let mut txn = environment.write().expect("writes");
    txn.put(table, b"a", 1, b"", b"").expect("puts");
    txn.commit().expect("commits");
    assert_eq!(*seen.lock(), [false, false, true]);
}

#[test]
fn everything_is_there_after_a_close_and_after_none() {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let mut random = Random(5);
    let mut state = Contents::new();
    for is_closed in [true, false, true, false] {
        let environment = Environment::open_with_log(folder.path(), OPTIONS, LOG, &FlushFailures::default())
            .expect("opens");
        assert_eq!(contents(&environment), state);
        for _ in 0..300 {
            state = change(&environment, &mut random, &state).expect("commits");
        }
        if is_closed { environment.close() } else { drop(environment) }
    }
}

/// Puts and removes as much as a compaction needs to make a copy.
fn leave_free_pages(environment: &Environment) {
    let (table, _) = tables(environment)[0];
    for is_put in [true, false] {
        let mut txn = environment.write().expect("writes");
        for n in 0..2500u32 {
            if is_put {
                txn.put(table, &n.to_be_bytes(), 1, &[7; 3000], b"").expect("puts");
            } else {
                txn.remove(table, &n.to_be_bytes()).expect("removes");
            }
        }
        txn.commit().expect("commits");
    }
}

/// The name of the data file goes to a copy, whose checkpoint continues the same log.
#[test]
fn a_compaction_continues_the_log() {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let environment =
        Environment::open_with_log(folder.path(), OPTIONS, LOG, &FlushFailures::default()).expect("opens");
    leave_free_pages(&environment);
    let mut random = Random(1);
    let mut state = Contents::new();
    for _ in 0..50 {
        state = change(&environment, &mut random, &state).expect("commits");
    }
    let done = environment.compact(&COPYING).expect("compacts").compaction;
    assert!(done.bytes_after < done.bytes_before / 2, "{done:?}");
    for _ in 0..50 {
        state = change(&environment, &mut random, &state).expect("commits");
    }
    assert_eq!(contents(&environment), state);
    drop(environment);
    let environment =
        Environment::open_with_log(folder.path(), OPTIONS, LOG, &FlushFailures::default()).expect("opens");
    assert_eq!(contents(&environment), state);
    environment.close();
}

/// A failed flush of the data file, and then a device that works again.
#[test]
fn after_a_failure_the_file_is_rebuilt_from_the_log() {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let environment =
        Environment::open_with_log(folder.path(), OPTIONS, LOG, &FlushFailures::default()).expect("opens");
    let mut random = Random(3);
    let mut state = Contents::new();
    let mut spoiled = 0;
    for round in 0..5 {
        for _ in 0..30 {
            state = change(&environment, &mut random, &state).expect("commits");
        }
        // New records, until pages are added that no checkpoint contains.
        let log = environment.log().expect("there is one");
        let kept = || log.lock_saved().pin.as_ref().expect("pinned").snapshot.meta.file_bytes();
        let (table, name) = tables(&environment)[0];
        for number in 0..10_000 {
            let key = format!("added {round} {number}").into_bytes();
            let mut txn = environment.write().expect("writes");
            txn.put(table, &key, 1, &[7; 3000], b"tail").expect("puts");
            txn.commit().expect("commits");
            state.insert((name.to_owned(), key), [&[7; 3000][..], b"tail"].concat());
            if environment.used() > kept() {
                break;
            }
        }
        let before_failure = random.0;
        environment
            .log()
            .expect("there is one")
            .fail_with(&Error::Io(std::io::Error::other("the device failed")));
        assert!(matches!(change(&environment, &mut random, &state), Err(Error::Io(_))));
        assert!(environment.log_failure().is_some_and(|why| why.contains("the device failed")));
        random.0 = before_failure;
        // What the kernel may have dropped: everything that was added after the last checkpoint.
        let data = std::fs::File::options().write(true).open(folder.path().join("data.mdb")).expect("opens");
        let (from, end) = (kept(), environment.used());
        let added = usize::try_from(end.saturating_sub(from)).expect("small");
        data.write_all_at(&vec![0xee; added], from).expect("spoils");
        spoiled += added;
        environment.renew(&COPYING).expect("is rebuilt");
        assert_eq!(environment.log_failure(), None);
        assert_eq!(contents(&environment), state, "round {round}");
    }
    assert!(spoiled > 0, "pages were added after a checkpoint");
    state = change(&environment, &mut random, &state).expect("commits");
    drop(environment);
    let environment =
        Environment::open_with_log(folder.path(), OPTIONS, LOG, &FlushFailures::default()).expect("opens");
    assert_eq!(contents(&environment), state);
}

/// The log of another environment would have been removed as unnecessary.
#[test]
fn the_log_of_another_environment_is_refused() {
    let folders = [(); 2].map(|()| tempfile::tempdir_in(".").expect("a folder"));
    for folder in &folders {
        let environment = Environment::open_with_log(folder.path(), OPTIONS, LOG, &FlushFailures::default())
            .expect("opens");
        change(&environment, &mut Random(1), &Contents::new()).expect("commits");
        environment.close();
    }
    let [own, other] = folders.each_ref().map(|folder| folder.path().join("commit.log"));
    std::fs::copy(&other, &own).expect("copies");
    let log = std::fs::read(&own).expect("reads");
    for _ in 0..2 {
        assert!(matches!(Environment::open(folders[0].path(), OPTIONS), Err(Error::DamagedLog(_))));
        assert!(matches!(
            Environment::open_with_log(folders[0].path(), OPTIONS, LOG, &FlushFailures::default()),
            Err(Error::DamagedLog(_))
        ));
    }
    assert_eq!(std::fs::read(&own).expect("reads"), log);
}

/// The numbers of checkpoints began again, so after a power cut the copy of the given-up log was newer. The log was removed.
#[test]
fn a_log_after_one_that_was_given_up_has_the_newer_checkpoint() {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let path = folder.path().join("data.mdb");
    let data = || std::fs::File::options().read(true).write(true).open(&path).expect("opens");
    let environment =
        Environment::open_with_log(folder.path(), OPTIONS, LOG, &FlushFailures::default()).expect("opens");
    let mut random = Random(9);
    let mut state = change(&environment, &mut random, &Contents::new()).expect("commits");
    for _ in 0..5 {
        environment.checkpoint().expect("makes a checkpoint");
        state = change(&environment, &mut random, &state).expect("commits");
    }
    environment.close();
    Environment::open(folder.path(), OPTIONS).expect("gives the log up").close();
    let mut given_up = [0; 512];
    data().read_exact_at(&mut given_up, 2048).expect("reads");
    let environment =
        Environment::open_log(folder.path(), OPTIONS, LOG, &FlushFailures::default(), LogFaults::default())
            .expect("opens");
    for _ in 0..5 {
        state = change(&environment, &mut random, &state).expect("commits");
    }
    drop(environment);
    // The copy in the first page was not flushed before the power was cut.
    data().write_all_at(&given_up, 2048).expect("writes");
    let environment =
        Environment::open_with_log(folder.path(), OPTIONS, LOG, &FlushFailures::default()).expect("opens");
    assert_eq!(contents(&environment), state);
}

/// Otherwise unflushed pages would be taken for the state of the environment.
#[test]
fn a_log_without_a_checkpoint_is_refused() {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let environment =
        Environment::open_with_log(folder.path(), OPTIONS, LOG, &FlushFailures::default()).expect("opens");
    change(&environment, &mut Random(1), &Contents::new()).expect("commits");
    drop(environment);
    let path = folder.path().join("data.mdb");
    let mut data = std::fs::read(&path).expect("reads");
    data[2100] ^= 1;
    std::fs::write(&path, &data).expect("damages one copy");
    let environment = Environment::open_with_log(folder.path(), OPTIONS, LOG, &FlushFailures::default())
        .expect("opens with the other copy");
    drop(environment);
    let mut data = std::fs::read(&path).expect("reads");
    data[2100] ^= 1;
    data[4096 + 2100] ^= 1;
    std::fs::write(&path, &data).expect("damages both copies");
    for _ in 0..2 {
        let refused = Environment::open_with_log(folder.path(), OPTIONS, LOG, &FlushFailures::default());
        assert!(matches!(refused, Err(Error::DamagedLog(_))), "{refused:?}");
        let refused = Environment::open(folder.path(), OPTIONS);
        assert!(matches!(refused, Err(Error::DamagedLog(_))), "{refused:?}");
    }
    assert_eq!(std::fs::read(&path).expect("reads"), data, "nothing is changed");
}

#[test]
fn a_missing_log_is_refused_and_nothing_is_changed() {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let environment =
        Environment::open_with_log(folder.path(), OPTIONS, LOG, &FlushFailures::default()).expect("opens");
    change(&environment, &mut Random(1), &Contents::new()).expect("commits");
    drop(environment);
    let data = std::fs::read(folder.path().join("data.mdb")).expect("reads");
    std::fs::remove_file(folder.path().join("commit.log")).expect("removes");
    for _ in 0..2 {
        let refused = Environment::open_with_log(folder.path(), OPTIONS, LOG, &FlushFailures::default());
        assert!(matches!(refused, Err(Error::DamagedLog(_))), "{refused:?}");
    }
    assert_eq!(std::fs::read(folder.path().join("data.mdb")).expect("reads"), data);
}

/// The limit is a share of the disk, and need not be a multiple of a block.
#[test]
fn a_log_grows_to_a_limit_that_is_no_whole_block() {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let (failures, blocks) = (FlushFailures::default(), 300 << 10);
    let options = LogOptions { bytes_max: blocks + 100, ..LOG };
    // Without the thread, which would make the log longer itself.
    let environment = Environment::open_log(folder.path(), OPTIONS, options, &failures, LogFaults::default())
        .expect("opens");
    let (table, _) = tables(&environment)[0];
    let mut txn = environment.write().expect("writes");
    txn.put(table, b"a", 1, &[1; 100 << 10], b"").expect("puts");
    txn.commit().expect("commits");
    environment.log().expect("there is one").grow();
    let length = std::fs::metadata(folder.path().join("commit.log")).expect("a log").len();
    assert_eq!((length, failures.count(), environment.log_failure()), (blocks, 0, None));
}

/// The device may have dropped its cache, with pages that no checkpoint contains. A later flush of the data file succeeds.
#[test]
fn a_failed_flush_of_another_file_ends_the_log_until_the_data_file_is_rebuilt() {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let failures = FlushFailures::default();
    // Without the thread, which may be making a checkpoint.
    let open = || {
        Environment::open_log(folder.path(), OPTIONS, LOG, &failures, LogFaults::default()).expect("opens")
    };
    let mut random = Random(4);
    let mut state = Contents::new();
    for is_rebuilt in [false, true, false] {
        let environment = open();
        assert_eq!(contents(&environment), state);
        for _ in 0..10 {
            state = change(&environment, &mut random, &state).expect("commits");
        }
        assert_eq!(environment.log_failure(), None);
        let checkpoints = environment.log_status().checkpoints;
        failures.add("of a test");
        assert!(environment.log_failure().is_some_and(|failure| failure.contains("flush")));
        environment.checkpoint().expect_err("the pages may be lost");
        change(&environment, &mut random, &state).expect_err("nothing is committed any more");
        assert_eq!(environment.log_status().checkpoints, checkpoints);
        if is_rebuilt {
            environment.renew(&COPYING).expect("is rebuilt");
            assert_eq!((contents(&environment), environment.log_failure()), (state.clone(), None));
            state = change(&environment, &mut random, &state).expect("commits again");
            environment.checkpoint().expect("makes a checkpoint");
        }
        // Without a last checkpoint, unless it was rebuilt.
        environment.close();
    }
    assert_eq!(contents(&open()), state);
}

/// The record may have been in the device's cache when the flush failed.
#[test]
fn a_record_is_not_acknowledged_if_another_flush_fails_meanwhile() {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let failures = FlushFailures::default();
    let environment = Environment::open_with_log(folder.path(), OPTIONS, LOG, &failures).expect("opens");
    let mut random = Random(6);
    let state = change(&environment, &mut random, &Contents::new()).expect("commits");
    let other = failures.clone();
    let fails = move |moment| {
        if matches!(moment, Moment::WritesRecord { .. }) {
            other.add("of a test");
        }
    };
    environment.log().expect("there is one").faults.observe(Box::new(fails));
    change(&environment, &mut random, &state).expect_err("a flush failed meanwhile");
    assert_eq!(contents(&environment), state);
}

/// Regression: the record of the refused change was written, and the next start applied it.
#[test]
fn nothing_is_left_of_a_change_that_is_refused_after_a_failed_flush() {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let failures = FlushFailures::default();
    let mut random = Random(7);
    // Without the thread, which may notice the failure first.
    let open = || {
        Environment::open_log(folder.path(), OPTIONS, LOG, &failures, LogFaults::default()).expect("opens")
    };
    let environment = open();
    let state = change(&environment, &mut random, &Contents::new()).expect("commits");
    failures.add("of a test");
    change(&environment, &mut random, &state).expect_err("the device has failed");
    drop(environment);
    assert_eq!(contents(&open()), state);
}

/// The copy may be incomplete on the device.
#[test]
fn a_copy_does_not_replace_the_data_file_if_a_flush_fails_meanwhile() {
    for is_rebuild in [false, true] {
        let folder = tempfile::tempdir_in(".").expect("a folder");
        let failures = FlushFailures::default();
        let environment = Environment::open_with_log(folder.path(), OPTIONS, LOG, &failures).expect("opens");
        leave_free_pages(&environment);
        let state = change(&environment, &mut Random(8), &Contents::new()).expect("commits");
        let (log, other) = (environment.log().expect("there is one"), failures.clone());
        log.faults.observe(Box::new(move |moment| {
            assert_ne!(moment, Moment::ReplacesData);
            if moment == Moment::FlushedCopy {
                other.add("of a test");
            }
        }));
        if is_rebuild {
            log.fail_with(&Error::Io(std::io::Error::other("the device failed")));
            environment.renew(&COPYING).expect_err("a flush failed meanwhile");
        } else {
            environment.compact(&COPYING).expect_err("a flush failed meanwhile");
        }
        assert_eq!(contents(&environment), state);
    }
}

/// Otherwise deletes of many keys are refused for as long as the disk is full.
#[test]
fn a_transaction_that_is_longer_than_the_log_is_durable_on_a_full_disk() {
    if std::env::var_os(IN_CHILD).is_none() {
        // The limit on the size of files applies to a whole process: 2 or 4 MiB, as the shell counts blocks.
        let this_test = "log::tests::a_transaction_that_is_longer_than_the_log_is_durable_on_a_full_disk";
        let limited = "trap '' XFSZ; ulimit -f 4096; exec \"$0\" --exact \"$1\"";
        let program = std::env::current_exe().expect("a path");
        let status =
            Command::new("sh").args(["-c", limited]).arg(program).arg(this_test).env(IN_CHILD, "1").status();
        assert!(status.expect("a shell").success());
        return;
    }
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let failures = FlushFailures::default();
    let mut random = Random(3);
    let mut state = Contents::new();
    for is_renewed in [false, true, false] {
        let environment = Environment::open_with_log(folder.path(), OPTIONS, LOG, &failures).expect("opens");
        assert_eq!(contents(&environment), state);
        state = change(&environment, &mut random, &state).expect("commits");
        let checkpoints = environment.log_status().checkpoints;
        let (table, name) = tables(&environment)[0];
        let mut txn = environment.write().expect("writes");
        // Each of them is in the record, only the last one in the data file.
        for value in 0..60 {
            txn.put(table, b"many times", 1, &[value; 100_000], b"").expect("puts");
            state.insert((name.to_owned(), b"many times".to_vec()), vec![value; 100_000]);
        }
        txn.commit().expect("commits");
        assert!(environment.log_status().checkpoints > checkpoints);
        if is_renewed {
            environment.log().expect("there is one").fail_with(&Error::Lmdb("a failure".to_owned()));
            let options = OpenCompactOptions { headroom_bytes: 0, ..COPYING };
            environment.renew(&options).expect("is rebuilt");
        }
        for _ in 0..3 {
            state = change(&environment, &mut random, &state).expect("commits");
        }
        // Without a last checkpoint.
        drop(environment);
    }
}
