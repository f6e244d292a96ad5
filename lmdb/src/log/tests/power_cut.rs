//! Tests of power cuts.
//!
//! The power is cut at the moments of commits, checkpoints, openings, compactions and rebuilds. A recorder follows what was
//! flushed of the data file. At chosen moments it makes the files that a power cut could leave: of the data file, each sector
//! as it was last flushed or as it is; of the log, a torn record if one is being written. While a copy gets the name of the
//! data file, either of the two files may have it. A process of its own opens the result, because a damaged LMDB file can end
//! the process. What it finds must be the acknowledged state, or the one of the transaction that was in progress. With a
//! planted mistake, some cut must show another state.

use super::{COPYING, Contents, LOG, OPTIONS, Random, change, contents, leave_free_pages, tables};
use crate::log::faults::{LogFaults, LogFlaw, Moment};
use crate::{Environment, Error, FlushFailures};
use cairn_sync::Mutex;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SECTOR: usize = 512;
/// Names a folder that the process of a cut opens.
const CUT_FOLDER: &str = "CAIRN_TEST_LOG_CUT";
/// The ranges of the checkpoint's copies in a data file.
const SLOTS: [std::ops::Range<usize>; 2] = [2048..2560, 6144..6656];

/// The result of a power cut, and what it may contain.
struct Cut {
    folder: PathBuf,
    moment: Moment,
    allowed: [Arc<Contents>; 2],
}

/// A data file: what is durable of it, what becomes so with the flush in progress, and what it contained last.
#[derive(Clone, Default)]
struct DataFile {
    durable: Vec<u8>,
    flushing: Vec<u8>,
    last: Vec<u8>,
}

struct Recorder {
    folder: PathBuf,
    random: Random,
    data: DataFile,
    /// The copy that is about to replace the data file, as it was flushed.
    copy: Option<Vec<u8>>,
    /// The file that had the name until now. A power cut may bring it back.
    earlier: Option<DataFile>,
    /// The bytes of the log that the record in progress replaces.
    replaced: Option<(usize, Vec<u8>)>,
    /// The acknowledged contents, and those after the transaction in progress.
    acknowledged: Arc<Contents>,
    in_progress: Arc<Contents>,
    cuts: Vec<Cut>,
    scratch: PathBuf,
    cuts_max: usize,
    /// One of so many moments has a cut.
    rarity: usize,
}

impl Recorder {
    /// Begins with an environment whose files are durable.
    fn new(folder: &Path, scratch: &Path, seed: u64, cuts_max: usize, rarity: usize) -> Arc<Mutex<Self>> {
        let read = std::fs::read(folder.join("data.mdb")).expect("reads");
        Arc::new(Mutex::new(Self {
            folder: folder.to_owned(),
            random: Random(seed),
            data: DataFile { durable: read.clone(), flushing: read.clone(), last: read },
            copy: None,
            earlier: None,
            replaced: None,
            acknowledged: Arc::default(),
            in_progress: Arc::default(),
            cuts: Vec::new(),
            scratch: scratch.to_owned(),
            cuts_max,
            rarity,
        }))
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.join(name)).expect("reads")
    }

    /// Returns the content of the copy that a compaction or a rebuild makes.
    fn read_copy(&self) -> Vec<u8> {
        let entries =
            std::fs::read_dir(&self.folder).expect("lists").map(|entry| entry.expect("an entry").path());
        let mut copies = entries.map(|path| path.join("data.mdb")).filter(|path| path.exists());
        std::fs::read(copies.next().expect("there is a copy")).expect("reads")
    }

    fn pass(&mut self, moment: Moment) {
        match moment {
            Moment::WritesRecord { offset, bytes } => {
                let log = self.read("commit.log");
                let offset = usize::try_from(offset).expect("small");
                self.replaced = Some((offset, log[offset..offset + bytes].to_vec()));
            }
            Moment::FlushesData | Moment::WroteCheckpoint => self.data.flushing = self.read("data.mdb"),
            Moment::FlushedData | Moment::FlushedCheckpoint => self.data.durable = self.data.flushing.clone(),
            Moment::FlushedCopy => self.copy = Some(self.read_copy()),
            Moment::ReplacesData => {
                if self.copy.is_none() {
                    // LMDB has flushed all of it, except for the checkpoint.
                    let mut durable = self.read_copy();
                    SLOTS.into_iter().for_each(|slot| durable[slot].fill(0));
                    self.copy = Some(durable);
                }
                self.data.last = self.read("data.mdb");
            }
            Moment::ReplacedData => {
                let durable = self.copy.take().expect("it had no name before");
                let replacing = DataFile { flushing: durable.clone(), durable, last: Vec::new() };
                self.earlier = Some(std::mem::replace(&mut self.data, replacing));
            }
            Moment::FlushedFolder => self.earlier = None,
            Moment::WroteRecord | Moment::Committed | Moment::ReleasedEarly => {}
        }
        if self.cuts.len() < self.cuts_max && self.random.below(self.rarity) == 0 {
            self.cut(moment);
        }
        if matches!(moment, Moment::WroteRecord) {
            self.replaced = None;
        }
    }

    /// Returns the bytes of `now` in which sectors chosen at random are those of `before`.
    fn torn(&mut self, before: &[u8], now: &[u8]) -> Vec<u8> {
        let mode = self.random.below(3);
        let mut torn = now.to_vec();
        for at in (0..now.len()).step_by(SECTOR) {
            let end = (at + SECTOR).min(now.len());
            let is_kept = match mode {
                0 => false,
                1 => true,
                _ => self.random.below(2) == 0,
            };
            if !is_kept {
                match before.get(at..end) {
                    Some(sector) => torn[at..end].copy_from_slice(sector),
                    // The file was shorter.
                    None => torn[at..end].fill(0),
                }
            }
        }
        torn
    }

    fn cut(&mut self, moment: Moment) {
        let folder = self.scratch.join(format!("cut-{}", self.cuts.len()));
        std::fs::create_dir(&folder).expect("a folder");
        let (durable, now) = match self.earlier.clone() {
            Some(earlier) if self.random.below(2) == 0 => (earlier.durable, earlier.last),
            _ => (self.data.durable.clone(), self.read("data.mdb")),
        };
        let mut data = self.torn(&durable, &now);
        if self.random.below(2) == 0 {
            data.truncate(durable.len());
        }
        std::fs::write(folder.join("data.mdb"), data).expect("writes");
        let mut log = self.read("commit.log");
        if let (Moment::WroteRecord, Some((offset, replaced))) = (moment, self.replaced.clone()) {
            let range = offset..offset + replaced.len();
            let torn = self.torn(&replaced, &log[range.clone()]);
            log[range].copy_from_slice(&torn);
        }
        std::fs::write(folder.join("commit.log"), log).expect("writes");
        let allowed = [Arc::clone(&self.acknowledged), Arc::clone(&self.in_progress)];
        self.cuts.push(Cut { folder, moment, allowed });
    }
}

/// Commits a random transaction, which the recorder knows in advance. Returns the contents after it.
fn change_recorded(
    environment: &Environment,
    recorder: &Mutex<Recorder>,
    random: &mut Random,
    before: &Contents,
) -> Contents {
    // The same random numbers lead to them.
    let after = Arc::new(predict(&mut Random(random.0), before));
    recorder.lock().in_progress = Arc::clone(&after);
    let state = change(environment, random, before).expect("commits");
    assert_eq!(state, *after);
    recorder.lock().acknowledged = after;
    state
}

/// Ends the recording. Returns what is wrong after the first cut that left something else, and the number of cuts.
fn check_all(recorder: &Mutex<Recorder>) -> (Option<String>, usize) {
    let cuts = {
        let mut recorder = recorder.lock();
        recorder.cuts_max = 0;
        std::mem::take(&mut recorder.cuts)
    };
    (cuts.iter().find_map(check), cuts.len())
}

/// Ends the waits for commits when it is dropped: there are no more of them.
struct EndsWaits(Arc<AtomicU64>);

impl Drop for EndsWaits {
    fn drop(&mut self) {
        self.0.store(u64::MAX, Ordering::SeqCst);
    }
}

/// Runs transactions and records power cuts. Returns what is wrong after the first cut that left something else.
#[expect(clippy::disallowed_methods, reason = "a planted mistake needs time to show")]
fn run(seed: u64, cuts_max: usize, flaw: Option<LogFlaw>) -> Option<String> {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let scratch = tempfile::tempdir_in(".").expect("a folder");
    let environment =
        Environment::open_with_log(folder.path(), OPTIONS, LOG, &FlushFailures::default()).expect("opens");
    tables(&environment);
    environment.checkpoint().expect("makes a checkpoint");
    let recorder = Recorder::new(folder.path(), scratch.path(), seed, cuts_max, 5);
    let observer = Arc::clone(&recorder);
    let commits = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&commits);
    let _no_more_commits = EndsWaits(Arc::clone(&commits));
    let log = environment.log().expect("there is one");
    let own = environment.downgraded_log();
    if let Some(flaw) = flaw {
        log.faults.plant(flaw);
    }
    let waits = AtomicU64::new(0);
    let waits_now = move || own.upgrade().map_or(0, |log| log.status().waits);
    log.faults.observe(Box::new(move |moment| {
        if matches!(moment, Moment::WritesRecord { .. }) {
            waits.store(waits_now(), Ordering::SeqCst);
        }
        if moment == Moment::ReleasedEarly {
            // Transactions may overwrite what was released meanwhile. One that waits for room waits for this checkpoint.
            let until = count.load(Ordering::SeqCst).saturating_add(40);
            let is_full = || waits_now() > waits.load(Ordering::SeqCst);
            while count.load(Ordering::SeqCst) < until && !is_full() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        observer.lock().pass(moment);
    }));
    let mut random = Random(seed ^ 1);
    let mut state = Contents::new();
    for step in 0..2000 {
        if recorder.lock().cuts.len() >= cuts_max {
            break;
        }
        state = change_recorded(&environment, &recorder, &mut random, &state);
        commits.fetch_add(1, Ordering::SeqCst);
        if flaw.is_none() && step % 7 == 0 {
            environment.checkpoint().expect("makes a checkpoint");
        }
    }
    let (wrong, cuts) = check_all(&recorder);
    assert_eq!(cuts, cuts_max);
    wrong
}

/// Cuts the power while an environment is opened after a crash, and at the commits after that.
fn run_opening(seed: u64, flaw: Option<LogFlaw>) -> Option<String> {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let scratch = tempfile::tempdir_in(".").expect("a folder");
    // Without the thread that makes checkpoints: after one, there would be nothing to apply.
    let environment =
        Environment::open_log(folder.path(), OPTIONS, LOG, &FlushFailures::default(), LogFaults::default())
            .expect("opens");
    let mut random = Random(seed);
    let state =
        (0..6).fold(Contents::new(), |state, _| change(&environment, &mut random, &state).expect("commits"));
    assert_eq!(environment.log().expect("there is one").status().checkpoints, 0);
    drop(environment);
    let recorder = Recorder::new(folder.path(), scratch.path(), seed, usize::MAX, 1);
    recorder.lock().acknowledged = Arc::new(state.clone());
    recorder.lock().in_progress = Arc::new(state.clone());
    let faults = LogFaults::default();
    flaw.into_iter().for_each(|flaw| faults.plant(flaw));
    let observer = Arc::clone(&recorder);
    faults.observe(Box::new(move |moment| observer.lock().pass(moment)));
    let environment =
        Environment::open_log(folder.path(), OPTIONS, LOG, &FlushFailures::default(), faults).expect("opens");
    assert_eq!(contents(&environment), state);
    change_recorded(&environment, &recorder, &mut random, &state);
    let (wrong, cuts) = check_all(&recorder);
    assert!(cuts >= 8, "only {cuts} cuts");
    wrong
}

/// Cuts the power while a copy replaces the data file, and at the commits after that: by a compaction, or by a rebuild after a
/// failure.
fn run_replacement(seed: u64, is_rebuild: bool, flaw: Option<LogFlaw>) -> Option<String> {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let scratch = tempfile::tempdir_in(".").expect("a folder");
    let environment =
        Environment::open_with_log(folder.path(), OPTIONS, LOG, &FlushFailures::default()).expect("opens");
    if !is_rebuild {
        leave_free_pages(&environment);
    }
    let mut random = Random(seed);
    let mut state = contents(&environment);
    for _ in 0..10 {
        state = change(&environment, &mut random, &state).expect("commits");
    }
    environment.checkpoint().expect("makes a checkpoint");
    let recorder = Recorder::new(folder.path(), scratch.path(), seed, usize::MAX, 1);
    let observer = Arc::clone(&recorder);
    let log = environment.log().expect("there is one");
    flaw.into_iter().for_each(|flaw| log.faults.plant(flaw));
    log.faults.observe(Box::new(move |moment| observer.lock().pass(moment)));
    // Commits alone are the subject of other tests.
    recorder.lock().rarity = usize::MAX;
    for _ in 0..5 {
        state = change_recorded(&environment, &recorder, &mut random, &state);
    }
    recorder.lock().rarity = 1;
    if is_rebuild {
        log.fail_with(&Error::Io(std::io::Error::other("the device failed")));
        environment.renew(&COPYING).expect("is rebuilt");
    } else {
        environment.compact(&COPYING).expect("compacts");
    }
    for _ in 0..2 {
        state = change_recorded(&environment, &recorder, &mut random, &state);
    }
    let (wrong, cuts) = check_all(&recorder);
    assert!(cuts >= 9 || flaw.is_some(), "only {cuts} cuts");
    wrong
}

/// Does what [`change`] does, on the contents alone.
fn predict(random: &mut Random, before: &Contents) -> Contents {
    let mut after = before.clone();
    for _ in 0..=random.below(12) {
        let name = ["one", "two"][random.below(2)].to_owned();
        let key = format!("key {}", random.below(60)).into_bytes();
        if random.below(4) == 0 {
            after.remove(&(name, key));
        } else {
            let length = if random.below(8) == 0 { random.below(20_000) } else { random.below(400) };
            let body = vec![u8::try_from(random.below(256)).expect("a byte"); length];
            after.insert((name, key), [&body[..], b"tail"].concat());
        }
    }
    after
}

/// Opens what a cut left, in a process of its own. Returns what is wrong.
fn check(cut: &Cut) -> Option<String> {
    let program = std::env::current_exe().expect("a path");
    let arguments = ["--exact", "log::tests::power_cut::process_of_a_cut", "--quiet"];
    let output = Command::new(program)
        .args(arguments)
        .env(CUT_FOLDER, &cut.folder)
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("starts");
    if !output.status.success() {
        return Some(format!(
            "{:?}: {:?} {}",
            cut.moment,
            output.status,
            String::from_utf8_lossy(&output.stdout)
        ));
    }
    let found = std::fs::read_to_string(cut.folder.join("found")).expect("the process has written it");
    let is_allowed = cut.allowed.iter().any(|allowed| found == format!("{allowed:?}"));
    (!is_allowed).then(|| format!("{:?}: the contents are others", cut.moment))
}

/// The process of a cut: opens its folder, writes what it contains to a file, and goes on to use it.
#[test]
fn process_of_a_cut() {
    let Some(folder) = std::env::var_os(CUT_FOLDER) else { return };
    let folder = Path::new(&folder);
    let environment =
        Environment::open_with_log(folder, OPTIONS, LOG, &FlushFailures::default()).expect("opens");
    let found = contents(&environment);
    std::fs::write(folder.join("found"), format!("{found:?}")).expect("writes");
    let mut random = Random(7);
    let state = (0..20).fold(found, |state, _| change(&environment, &mut random, &state).expect("commits"));
    assert_eq!(contents(&environment), state);
    // Without a last checkpoint.
    drop(environment);
    let environment = Environment::open(folder, OPTIONS).expect("opens without a log");
    assert_eq!(contents(&environment), state);
    assert!(!folder.join("commit.log").exists());
    let state = change(&environment, &mut random, &state).expect("commits");
    environment.close();
    let environment =
        Environment::open_with_log(folder, OPTIONS, LOG, &FlushFailures::default()).expect("opens");
    assert_eq!(contents(&environment), state);
    environment.close();
}

#[test]
fn power_cuts_lose_nothing_that_was_acknowledged() {
    for seed in 0..3 {
        assert_eq!(run(seed, 40, None), None, "seed {seed}");
    }
}

#[test]
fn power_cuts_during_an_opening_lose_nothing() {
    for seed in 0..4 {
        assert_eq!(run_opening(seed, None), None, "seed {seed}");
    }
}

#[test]
fn power_cuts_while_a_copy_replaces_the_data_file_lose_nothing() {
    for seed in 0..3 {
        for is_rebuild in [false, true] {
            assert_eq!(run_replacement(seed, is_rebuild, None), None, "seed {seed}, rebuild {is_rebuild}");
        }
    }
}

/// Otherwise the tests above would prove little.
#[test]
fn planted_mistakes_are_found() {
    let flaws = [
        LogFlaw::NoFlush,
        LogFlaw::EarlyRelease,
        LogFlaw::EarlierRoots,
        LogFlaw::EarlyFree,
        LogFlaw::UnflushedRecord,
    ];
    for flaw in flaws {
        let found = (0..8).find_map(|seed| run(seed, 60, Some(flaw)));
        assert!(found.is_some(), "{flaw:?} is not found");
    }
    let found = (0..8).find_map(|seed| run_opening(seed, Some(LogFlaw::NoFlush)));
    assert!(found.is_some(), "an opening without a flush is not found");
    for is_rebuild in [false, true] {
        let found = (0..8).find_map(|seed| run_replacement(seed, is_rebuild, Some(LogFlaw::UnflushedCopy)));
        assert!(found.is_some(), "a copy without a flush is not found, rebuild {is_rebuild}");
    }
}
