//! A campaign of power cuts: stores under load lose their power at every flush and on both sides of every commit.
//!
//! A campaign is a series of sessions. A session opens a store and runs tasks that change it, while the store's threads are
//! stepped in an order that depends on the seed. After every step the driver records a cut point: LMDB as of the last commit,
//! the disk with what was not flushed, and the history of the workload. When the session has ended, the power is cut several
//! times at some of these points, each time with another subset of the un-flushed writes, and every resulting store is opened
//! and checked (`recovery.rs`). A later session starts with the store that one of the cuts left. The same seed gives the same
//! campaign.

use crate::api::engine::Engine;
use crate::fault::{
    Effect, Fault, Flaw, Kept, Operation, Random, SimulatedDisk, Simulation, StopPoint, StoreThread,
};
use crate::simulation::bucket_contents::Contents;
use crate::simulation::buckets::{self, StoppedClock};
use crate::simulation::history::History;
use crate::simulation::recovery::{CutPoint, MetadataFiles, StaticFiles, read_metadata};
use crate::simulation::violation::Violation;
use crate::simulation::workload::{Workload, poll_continuously};
use crate::slice::Slice;
use crate::store::Store;
use crate::store::options::{CommitMode, StoreOptions};
use cairn_fixtures::on_executor;
use futures_lite::future::yield_now;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// Steps of the store's threads in one session.
const STEPS: usize = 160;
/// The executor yields fewer times than this between two steps.
const YIELDS_BOUND: u64 = 16;
/// Tasks of a session that only read, slowly.
const READERS: u64 = 3;
/// One in so many cut points of a session is checked: more sessions find more than more cut points of one session.
const CHECKED_ONE_IN: u64 = 8;
/// One in so many pauses is longer: uploads begin and end while a commit is stopped.
const LONG_PAUSE_ONE_IN: u64 = 5;
const LONG_PAUSE_YIELDS_BOUND: u64 = 120;
/// Cuts with torn writes at a cut point with un-flushed changes, besides those that keep all and nothing.
const TORN_CUTS: u64 = 3;
/// One in so many sessions starts with a new store; the others with what a cut left.
const NEW_STORE_ONE_IN: u64 = 4;
/// One in so many sessions runs on a disk with planned failures.
const FAILING_DISK_ONE_IN: u64 = 5;

/// The options of a campaign.
#[derive(Clone, Debug)]
pub struct CampaignOptions {
    /// An empty folder for the metadata of the stores, preferably in memory.
    pub folder: PathBuf,
    /// Number of power cuts.
    pub cuts: u64,
    /// The seed of everything that happens.
    pub seed: u64,
    /// A mistake that the engine makes on purpose.
    pub flaw: Option<Flaw>,
    /// Failures of the disk in every session, in addition to those that the campaign plans itself.
    pub faults: Vec<Fault>,
}

/// The report of a campaign: its counts, and the first violation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CampaignReport {
    /// Power cuts. The store of each was checked.
    pub cuts: u64,
    /// Cuts that left a torn subset of the un-flushed writes.
    pub torn: u64,
    /// Cut points at which the power was cut.
    pub cut_points: u64,
    /// Sessions.
    pub sessions: u64,
    /// Sessions that encrypted new payloads.
    pub encrypted_sessions: u64,
    /// Changes that were acknowledged.
    pub acknowledged: u64,
    /// Objects that were read while they were changed.
    pub reads: u64,
    /// Flushes of volumes, including those that were planned to fail.
    pub flushes: u64,
    /// Growth steps of volumes, including new volumes.
    pub growths: u64,
    /// Holes that were punched.
    pub punches: u64,
    /// The violation that ended the campaign.
    pub violation: Option<Violation>,
}

/// The parameters of a session.
#[derive(Clone, Debug)]
struct Session {
    number: u64,
    seed: u64,
    folder: PathBuf,
    slices: u16,
    encrypts: bool,
    commit: CommitMode,
    reclaims: bool,
    tasks: u64,
    flaw: Option<Flaw>,
    faults: Vec<Fault>,
}

/// The outcome of a session.
#[derive(Default)]
struct SessionOutcome {
    cut_points: Vec<CutPoint>,
    acknowledged: u64,
    reads: u64,
    flushes: u64,
    growths: u64,
    punches: u64,
    violation: Option<Violation>,
}

/// A power cut whose store the next session starts with.
struct StartingPoint {
    cut_point: CutPoint,
    kept: Kept,
    contents: Contents,
    slices: u16,
}

fn store_options(session: &Session, folder: PathBuf) -> StoreOptions {
    StoreOptions {
        slices: Some(session.slices),
        encryption_at_rest: session.encrypts,
        commit: session.commit,
        // In some sessions at once, so that power cuts hit hole punching.
        reclaim_after: session.reclaims.then_some(std::time::Duration::ZERO),
        clock: Arc::new(StoppedClock),
        ..StoreOptions::new(folder, b"a master key of the campaign, long enough".to_vec().into())
    }
}

/// Runs a campaign. Blocks.
///
/// # Errors
/// An error when the executor or the folder does not work. Violations are in the report instead.
pub fn run(options: &CampaignOptions) -> Result<CampaignReport, String> {
    let mut report = CampaignReport::default();
    let mut random = Random::new(options.seed);
    let mut start: Option<StartingPoint> = None;
    while report.cuts < options.cuts && report.violation.is_none() {
        if random.below(NEW_STORE_ONE_IN) == 0 {
            start = None;
        }
        let has_failing_disk = random.below(FAILING_DISK_ONE_IN) == 0;
        let mut faults = options.faults.clone();
        if has_failing_disk {
            faults.extend(random_faults(&mut random));
        }
        let session = Session {
            number: report.sessions,
            seed: random.next(),
            folder: options.folder.join(format!("session-{}", report.sessions)),
            slices: start.as_ref().map_or_else(|| 1 + u16::from(random.below(3) == 0), |start| start.slices),
            encrypts: random.below(2) == 0,
            commit: CommitMode::ALL[random.index(2)],
            reclaims: random.below(2) == 0,
            tasks: 3 + random.below(3),
            flaw: options.flaw,
            faults,
        };
        report.sessions += 1;
        report.encrypted_sessions += u64::from(session.encrypts);
        let (parameters, started_with) = (session.clone(), start.take());
        let outcome = on_executor(move || run_session(parameters, started_with))?;
        report.acknowledged += outcome.acknowledged;
        report.reads += outcome.reads;
        report.flushes += outcome.flushes;
        report.growths += outcome.growths;
        report.punches += outcome.punches;
        if let Some(violation) = outcome.violation {
            let place = format!("seed {}, session {}", options.seed, session.number);
            report.violation = Some(violation.found_at(&place));
        } else {
            let (so_far, options) = (std::mem::take(&mut report), options.clone());
            let check = move || check_cuts(session, outcome.cut_points, so_far, options);
            (report, start) = on_executor(check)?;
        }
    }
    Ok(report)
}

/// Plans one failure of each kind, at random times.
fn random_faults(random: &mut Random) -> Vec<Fault> {
    let kinds = [
        (Operation::Read, Effect::Error(libc::EIO)),
        (Operation::Read, Effect::Short),
        (Operation::Write, Effect::Error(libc::EIO)),
        (Operation::Write, Effect::Short),
        (Operation::Grow, Effect::Error(libc::ENOSPC)),
        (Operation::Flush, Effect::Error(libc::EIO)),
    ];
    let fault = |(operation, effect)| {
        let (skip, times) = (random.below(120), 1 + random.below(3));
        Fault { operation, skip, times, effect }
    };
    kinds.map(fault).to_vec()
}

/// Runs one session on the executor that calls this.
async fn run_session(session: Session, start: Option<StartingPoint>) -> Result<SessionOutcome, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let _ = std::fs::remove_dir_all(&session.folder);
    std::fs::create_dir_all(&session.folder).map_err(|error| text(&error))?;
    let (disk, contents) = match start {
        None => (SimulatedDisk::new(&session.folder, session.seed), Contents::new()),
        Some(start) => {
            start.cut_point.restore(&session.folder).map_err(|error| text(&error))?;
            (start.cut_point.disk.cut(&session.folder, start.kept), start.contents)
        }
    };
    let simulation = Simulation::stepped(disk, session.flaw);
    let options = store_options(&session, session.folder.clone());
    let store = Store::open_simulated(&simulation, options).map_err(|error| text(&error))?;
    let engine = Engine::open(Arc::clone(&store)).await.map_err(|error| text(&error))?;
    let buckets = buckets::existing_or_new(&store).await.map_err(|error| text(&error))?;
    let versioning = std::array::from_fn(|number| buckets[number].versioning());
    let static_files = StaticFiles::read(&session.folder).map_err(|error| text(&error))?;
    let workload = Rc::new(Workload {
        engine,
        buckets,
        history: RefCell::new(History::new(contents, versioning)),
        static_files: RefCell::new(Arc::new(static_files)),
        tasks: session.tasks,
        has_failing_disk: !session.faults.is_empty(),
        stopped: Cell::new(false),
        running: Cell::new(0),
        acknowledged: Cell::new(0),
        reads: Cell::new(0),
        violation: RefCell::default(),
    });
    session.faults.iter().for_each(|fault| simulation.disk.plan(*fault));
    let mut driver = Driver::new(&session, &simulation, &store, &workload)?;
    for task in 0..session.tasks + READERS {
        workload.spawn(task, driver.random.next());
    }
    poll_continuously(driver.run()).await?;
    // Counted before the threads are released: from then on their course depends on the machine.
    let mut outcome = SessionOutcome {
        cut_points: driver.cut_points,
        acknowledged: workload.acknowledged.get(),
        reads: workload.reads.get(),
        flushes: simulation.disk.count(Operation::Flush),
        growths: simulation.disk.count(Operation::Grow),
        punches: simulation.disk.count(Operation::Punch),
        violation: None,
    };
    workload.stopped.set(true);
    simulation.scheduler.release();
    workload.wait_for_tasks().await;
    outcome.violation = workload.violation.take();
    drop(workload);
    store.close();
    drop(store);
    std::fs::remove_dir_all(&session.folder).map_err(|error| text(&error))?;
    Ok(outcome)
}

/// Steps the store's threads of a session and records cut points.
struct Driver<'s> {
    simulation: &'s Simulation,
    store: &'s Arc<Store>,
    workload: &'s Rc<Workload>,
    random: Random,
    /// The metadata of each slice, as of its last commit.
    metadata: Vec<Arc<MetadataFiles>>,
    cut_points: Vec<CutPoint>,
}

impl<'s> Driver<'s> {
    fn new(
        session: &Session,
        simulation: &'s Simulation,
        store: &'s Arc<Store>,
        workload: &'s Rc<Workload>,
    ) -> Result<Self, String> {
        let read = |slice| read_metadata(store, slice);
        let metadata = (0..store.slices.len()).map(read).collect::<std::io::Result<_>>();
        Ok(Self {
            simulation,
            store,
            workload,
            random: Random::new(session.seed),
            metadata: metadata.map_err(|error| error.to_string())?,
            cut_points: Vec::new(),
        })
    }

    async fn run(&mut self) -> Result<(), String> {
        for step in 0..STEPS {
            let is_long = self.random.below(LONG_PAUSE_ONE_IN) == 0;
            for _ in 0..self.random.below(if is_long { LONG_PAUSE_YIELDS_BOUND } else { YIELDS_BOUND }) {
                yield_now().await;
            }
            let threads = self.threads_with_work();
            if threads.is_empty() {
                continue;
            }
            let thread = threads[self.random.index(threads.len())];
            let from = self.simulation.scheduler.stop_of(thread);
            self.record_cut_point(format!("step {step}, {thread:?} at {from:?}"));
            let to = self.simulation.scheduler.step(thread);
            if let (StoreThread::Committer(slice), StopPoint::Committing) = (thread, from) {
                let read = read_metadata(self.store, usize::from(slice));
                self.metadata[usize::from(slice)] = read.map_err(|error| error.to_string())?;
            }
            self.record_cut_point(format!("step {step}, {thread:?} from {from:?} to {to:?}"));
            if self.workload.violation.borrow().is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the threads that can be stepped. A maintainer may need LMDB's writer lock, or wait for another maintainer that
    /// grows its volumes. So it is stepped only while no stopped thread holds these.
    fn threads_with_work(&self) -> Vec<StoreThread> {
        let scheduler = &self.simulation.scheduler;
        let mut threads = Vec::new();
        let maintainers = self.store.slices.iter();
        let maintainers = maintainers.map(|slice| scheduler.stop_of(StoreThread::Maintainer(slice.number)));
        let busy_maintainers = maintainers.filter(|point| *point != StopPoint::Idle).count();
        for slice in &self.store.slices {
            let committer = StoreThread::Committer(slice.number);
            let committer_at = scheduler.stop_of(committer);
            if committer_at != StopPoint::Idle || slice.commits.queue.waiting() > 0 {
                threads.push(committer);
            }
            let maintainer = StoreThread::Maintainer(slice.number);
            let is_busy = scheduler.stop_of(maintainer) != StopPoint::Idle;
            if committer_at != StopPoint::Committing
                && (is_busy || (busy_maintainers == 0 && maintainer_has_work(slice)))
            {
                threads.push(maintainer);
            }
        }
        threads
    }

    fn record_cut_point(&mut self, moment: String) {
        self.cut_points.push(CutPoint {
            disk: self.simulation.disk.snapshot(),
            metadata: self.metadata.clone(),
            static_files: Arc::clone(&self.workload.static_files.borrow()),
            history: Arc::new(self.workload.history.borrow().clone()),
            moment,
        });
    }
}

/// Returns whether a slice's maintainer would find something to do if it ran now.
fn maintainer_has_work(slice: &Slice) -> bool {
    let requests = slice.space.maintenance.lock();
    requests.woken || !requests.growth.is_empty()
}

/// Cuts the power at some cut points of a session and checks what is left. Returns the extended report, and what the next
/// session may start with.
async fn check_cuts(
    session: Session,
    cut_points: Vec<CutPoint>,
    mut report: CampaignReport,
    options: CampaignOptions,
) -> Result<(CampaignReport, Option<StartingPoint>), String> {
    let mut random = Random::new(session.seed ^ 1);
    let chosen = random.index(cut_points.len());
    let mut start = None;
    for (number, cut_point) in cut_points.into_iter().enumerate() {
        if random.below(CHECKED_ONE_IN) > 0 && number != chosen {
            continue;
        }
        report.cut_points += 1;
        let mut cuts = vec![Kept::All];
        if !cut_point.disk.is_flushed() {
            cuts.push(Kept::Nothing);
            cuts.extend((0..TORN_CUTS).map(|_| Kept::Torn(random.next())));
        }
        let mut last = None;
        for kept in cuts {
            if report.cuts >= options.cuts {
                return Ok((report, start));
            }
            report.cuts += 1;
            report.torn += u64::from(matches!(kept, Kept::Torn(_)));
            let folder = cut_folder(&session.folder, report.cuts);
            let checked = cut_point.check(kept, store_options(&session, folder)).await;
            match checked.map_err(|error| format!("a store cannot be written: {error}"))? {
                Ok(contents) => last = Some((kept, contents)),
                Err(violation) => {
                    let (seed, session, moment) = (options.seed, session.number, &cut_point.moment);
                    let place = format!("seed {seed}, session {session}, {moment}, {kept:?}");
                    report.violation = Some(violation.found_at(&place));
                    return Ok((report, None));
                }
            }
        }
        if let Some((kept, contents)) = last.filter(|_| number == chosen) {
            start = Some(StartingPoint { cut_point, kept, contents, slices: session.slices });
        }
    }
    Ok((report, start))
}

fn cut_folder(session: &Path, number: u64) -> PathBuf {
    session.with_file_name(format!("cut-{number}"))
}
