//! A campaign of power cuts: stores under load that lose their power at every flush and on both sides of every commit.
//!
//! A campaign is a row of lives. A life is a store with a few tasks that change it, its threads on the stage, stepped in an
//! order that follows from the seed. After every step, what a cut would find is noted: LMDB as of the last commit, the disk
//! with what was not flushed, and what had been acknowledged. Then the power is cut at each of these moments several times
//! over, with another subset of the writes each time, and each store is opened and looked at as a whole. A later life begins
//! with the store that one of the cuts left. The same seed gives the same campaign.

use crate::engine::Engine;
use crate::simulation::buckets::{self, StoppedClock};
use crate::simulation::disk::{Effect, Fault, Kept, Operation, SimulatedDisk};
use crate::simulation::examine::{CutPoint, FixedFiles, metadata_of};
use crate::simulation::history::History;
use crate::simulation::look::Found;
use crate::simulation::stage::{Actor, Point};
use crate::simulation::workload::{Workload, each_turn, ended};
use crate::simulation::{Flaw, Random, Simulation};
use crate::store::{Store, StoreOptions};
use futures_lite::future::yield_now;
use glommio::{LocalExecutorBuilder, Placement};
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// Steps of the threads of one life.
const STEPS: usize = 160;
/// Turns of the executor between two steps at most.
const TURNS_MAX: u64 = 16;
/// Tasks of a life that only read, slowly.
const READERS: u64 = 3;
/// One moment of a life in so many is examined: more lives show more than more moments of one.
const EXAMINED_IN: u64 = 8;
/// One pause in so many is longer: uploads begin and end while a commit is held.
const LONG_PAUSE_IN: u64 = 5;
const LONG_PAUSE_TURNS_MAX: u64 = 120;
/// Cuts at a moment at which something has not been flushed: all of it kept, nothing, and torn subsets.
const TORN_CUTS: u64 = 3;
/// One life in so many begins with a new store; the others with what a cut left.
const NEW_STORE_IN: u64 = 4;
/// One life in so many is led on a disk that fails now and then.
const FAILING_IN: u64 = 5;

/// What to do.
#[derive(Clone, Debug)]
pub struct CampaignOptions {
    /// Where the stores' metadata goes, best in memory: an empty folder.
    pub folder: PathBuf,
    /// How many cuts.
    pub cuts: u64,
    /// What everything follows from.
    pub seed: u64,
    /// A mistake that the engine makes on purpose.
    pub flaw: Option<Flaw>,
    /// Failures of every life's disk, beside those of the campaign's own.
    pub faults: Vec<Fault>,
}

/// What a campaign did and found.
#[derive(Clone, Debug, Default)]
pub struct CampaignReport {
    /// Power cuts, each examined.
    pub cuts: u64,
    /// Those of them that left a torn subset of the writes.
    pub torn: u64,
    /// Moments at which the power was cut.
    pub moments: u64,
    /// Stores that were under load.
    pub lives: u64,
    /// Those of them that seal new payloads.
    pub sealed: u64,
    /// Changes that were acknowledged.
    pub acknowledged: u64,
    /// Objects that were read while they were changed.
    pub reads: u64,
    /// Flushes of volumes, those that failed by plan among them.
    pub flushes: u64,
    /// Growth steps of volumes, new volumes among them.
    pub growths: u64,
    /// Runs of free space that were given back to the file system.
    pub punches: u64,
    /// What was lost, torn or leaked: the campaign ends with the first.
    pub finding: Option<String>,
}

/// How one life goes.
#[derive(Clone, Debug)]
struct Life {
    number: u64,
    seed: u64,
    folder: PathBuf,
    slices: u16,
    sealed: bool,
    reclaims: bool,
    tasks: u64,
    flaw: Option<Flaw>,
    faults: Vec<Fault>,
}

/// What a life leaves for its examination.
#[derive(Default)]
struct Outcome {
    points: Vec<CutPoint>,
    acknowledged: u64,
    reads: u64,
    /// Flushes, growth steps, runs given back.
    counts: [u64; 3],
    finding: Option<String>,
}

/// The store that the next life begins with.
struct Left {
    point: CutPoint,
    kept: Kept,
    found: Found,
    slices: u16,
}

fn options(life: &Life, folder: PathBuf) -> StoreOptions {
    StoreOptions {
        data_dir: folder,
        slices: Some(life.slices),
        master_key: b"a master key of the campaign, long enough".to_vec(),
        cache_bytes: 0,
        buffers: crate::limits::BufferLimits::default(),
        reserve_bytes: 0,
        encryption_at_rest: life.sealed,
        // At once, in some lives: holes are punched while the power may go.
        reclaim_after: life.reclaims.then_some(std::time::Duration::ZERO),
        clock: Arc::new(StoppedClock),
    }
}

/// Runs a campaign. Blocks.
///
/// # Errors
/// When the executor or the folder does not work; what the cuts show is in the report.
pub fn run(options: &CampaignOptions) -> Result<CampaignReport, String> {
    let mut report = CampaignReport::default();
    let mut random = Random::new(options.seed);
    let mut left: Option<Left> = None;
    while report.cuts < options.cuts && report.finding.is_none() {
        if random.below(NEW_STORE_IN) == 0 {
            left = None;
        }
        let failing = random.below(FAILING_IN) == 0;
        let mut faults = options.faults.clone();
        if failing {
            faults.extend(planned(&mut random));
        }
        let life = Life {
            number: report.lives,
            seed: random.next(),
            folder: options.folder.join(format!("life-{}", report.lives)),
            slices: left.as_ref().map_or_else(|| 1 + u16::from(random.below(3) == 0), |left| left.slices),
            sealed: random.below(2) == 0,
            reclaims: random.below(2) == 0,
            tasks: 3 + random.below(3),
            flaw: options.flaw,
            faults,
        };
        report.lives += 1;
        report.sealed += u64::from(life.sealed);
        let begun_with = left.take();
        let (led, at) = (life.clone(), options.seed);
        let outcome = on_executor(move || lead(led, begun_with))??;
        report.acknowledged += outcome.acknowledged;
        report.reads += outcome.reads;
        let [flushes, growths, punches] = outcome.counts;
        report.flushes += flushes;
        report.growths += growths;
        report.punches += punches;
        report.finding = outcome.finding.map(|what| format!("seed {at}, life {}: {what}", life.number));
        if report.finding.is_none() {
            let so_far = std::mem::take(&mut report);
            let most = options.cuts;
            (report, left) = on_executor(move || examine_all(life, outcome.points, so_far, most, at))?;
        }
    }
    Ok(report)
}

/// Failures of the disk at moments that follow from the seed.
fn planned(random: &mut Random) -> Vec<Fault> {
    let kinds = [
        (Operation::Read, Effect::Error(libc::EIO)),
        (Operation::Read, Effect::Short),
        (Operation::Write, Effect::Error(libc::EIO)),
        (Operation::Write, Effect::Short),
        (Operation::Grow, Effect::Error(libc::ENOSPC)),
        (Operation::Flush, Effect::Error(libc::EIO)),
    ];
    let one = |(operation, effect)| {
        let (skip, times) = (random.below(120), 1 + random.below(3));
        Fault { operation, skip, times, effect }
    };
    kinds.map(one).to_vec()
}

fn on_executor<T: Send + 'static, F: Future<Output = T> + 'static>(
    body: impl FnOnce() -> F + Send + 'static,
) -> Result<T, String> {
    let builder = LocalExecutorBuilder::new(Placement::Unbound).io_memory(1 << 20);
    let running = builder.spawn(|| async move { body().await }).map_err(|error| error.to_string())?;
    running.join().map_err(|error| error.to_string())
}

/// Leads one life on the executor that runs this.
async fn lead(life: Life, begun_with: Option<Left>) -> Result<Outcome, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let _ = std::fs::remove_dir_all(&life.folder);
    std::fs::create_dir_all(&life.folder).map_err(|error| text(&error))?;
    let (disk, found) = match begun_with {
        None => (SimulatedDisk::new(&life.folder, life.seed), Found::new()),
        Some(left) => {
            left.point.restore(&life.folder).map_err(|error| text(&error))?;
            (left.point.disk.cut(&life.folder, left.kept), left.found)
        }
    };
    let simulation = Simulation::staged(disk, life.flaw);
    let store = simulation.open_store(options(&life, life.folder.clone())).map_err(|error| text(&error))?;
    let engine = Engine::open(Arc::clone(&store)).await.map_err(|error| text(&error))?;
    let buckets = buckets::of_new(&store).await.map_err(|error| text(&error))?;
    let versioning = std::array::from_fn(|number| buckets[number].versioning());
    let fixed = FixedFiles::of(&life.folder).map_err(|error| text(&error))?;
    let workload = Rc::new(Workload {
        engine,
        buckets,
        history: RefCell::new(History::found(found, versioning)),
        fixed: RefCell::new(Arc::new(fixed)),
        tasks: life.tasks,
        failing: !life.faults.is_empty(),
        stopped: Cell::new(false),
        running: Cell::new(0),
        acknowledged: Cell::new(0),
        reads: Cell::new(0),
        finding: RefCell::default(),
    });
    life.faults.iter().for_each(|fault| simulation.disk.plan(*fault));
    let mut driver = Driver::new(&life, &simulation, &store, &workload)?;
    for task in 0..life.tasks + READERS {
        workload.spawn(task, driver.random.next());
    }
    each_turn(driver.run()).await?;
    let mut outcome = Outcome {
        points: driver.points,
        acknowledged: workload.acknowledged.get(),
        reads: workload.reads.get(),
        // Counted before the threads are let go: from then on they run as the machine lets them, in batches of any size.
        counts: [Operation::Flush, Operation::Grow, Operation::Punch].map(|kind| simulation.disk.count(kind)),
        finding: None,
    };
    workload.stopped.set(true);
    simulation.stage.release();
    ended(&workload).await;
    outcome.finding = workload.finding.take();
    drop(workload);
    store.close();
    drop(store);
    std::fs::remove_dir_all(&life.folder).map_err(|error| text(&error))?;
    Ok(outcome)
}

/// Steps the threads of a life, and notes what a cut would find.
struct Driver<'l> {
    simulation: &'l Simulation,
    store: &'l Arc<Store>,
    workload: &'l Rc<Workload>,
    random: Random,
    metadata: Vec<Arc<Vec<u8>>>,
    points: Vec<CutPoint>,
}

impl<'l> Driver<'l> {
    fn new(
        life: &'l Life,
        simulation: &'l Simulation,
        store: &'l Arc<Store>,
        workload: &'l Rc<Workload>,
    ) -> Result<Self, String> {
        let read = |slice| metadata_of(store, slice);
        let metadata = (0..store.slices.len()).map(read).collect::<std::io::Result<_>>();
        Ok(Self {
            simulation,
            store,
            workload,
            random: Random::new(life.seed),
            metadata: metadata.map_err(|error| error.to_string())?,
            points: Vec::new(),
        })
    }

    async fn run(&mut self) -> Result<(), String> {
        for step in 0..STEPS {
            let most = if self.random.below(LONG_PAUSE_IN) == 0 { LONG_PAUSE_TURNS_MAX } else { TURNS_MAX };
            for _ in 0..self.random.below(most) {
                yield_now().await;
            }
            let actors = self.ready();
            if actors.is_empty() {
                continue;
            }
            let actor = actors[self.random.index(actors.len())];
            let from = self.simulation.stage.at(actor);
            self.note(format!("step {step}, {actor:?} at {from:?}"));
            let to = self.simulation.stage.step(actor);
            if let (Actor::Committer(slice), Point::Committing) = (actor, from) {
                let read = metadata_of(self.store, usize::from(slice));
                self.metadata[usize::from(slice)] = read.map_err(|error| error.to_string())?;
            }
            self.note(format!("step {step}, {actor:?} from {from:?} to {to:?}"));
            if self.workload.finding.borrow().is_some() {
                break;
            }
        }
        Ok(())
    }

    /// The threads that have something to do. A keeper may wait for LMDB's writer lock, or for that of a neighbour that
    /// grows: it is stepped only while nobody who is held has it.
    fn ready(&self) -> Vec<Actor> {
        let stage = &self.simulation.stage;
        let mut ready = Vec::new();
        let keepers = self.store.slices.iter().map(|slice| stage.at(Actor::Keeper(slice.number)));
        let busy = keepers.filter(|point| *point != Point::Idle).count();
        for slice in &self.store.slices {
            let (committer, keeper) = (Actor::Committer(slice.number), Actor::Keeper(slice.number));
            let at = stage.at(committer);
            if at != Point::Idle || slice.queue.waiting() > 0 {
                ready.push(committer);
            }
            let (mid_way, free) = (stage.at(keeper) != Point::Idle, at != Point::Committing);
            if free && (mid_way || (busy == 0 && slice.keeper_has_work())) {
                ready.push(keeper);
            }
        }
        ready
    }

    fn note(&mut self, moment: String) {
        self.points.push(CutPoint {
            disk: self.simulation.disk.snapshot(),
            metadata: self.metadata.clone(),
            fixed: Arc::clone(&self.workload.fixed.borrow()),
            history: Arc::new(self.workload.history.borrow().clone()),
            moment,
        });
    }
}

/// Cuts the power at every moment of a life, over and over; with what the next life may begin.
async fn examine_all(
    life: Life,
    points: Vec<CutPoint>,
    mut report: CampaignReport,
    most: u64,
    seed: u64,
) -> (CampaignReport, Option<Left>) {
    let mut random = Random::new(life.seed ^ 1);
    let chosen = random.index(points.len().max(1));
    let mut left = None;
    for (number, point) in points.into_iter().enumerate() {
        if random.below(EXAMINED_IN) > 0 && number != chosen {
            continue;
        }
        report.moments += 1;
        let mut kept = vec![Kept::All];
        if !point.disk.is_settled() {
            kept.push(Kept::Nothing);
            kept.extend((0..TORN_CUTS).map(|_| Kept::Torn(random.next())));
        }
        let mut last = None;
        for kept in kept {
            if report.cuts >= most {
                return (report, left);
            }
            report.cuts += 1;
            report.torn += u64::from(matches!(kept, Kept::Torn(_)));
            let folder = cut_folder(&life.folder, report.cuts);
            match point.examine(kept, options(&life, folder)).await {
                Ok(found) => last = Some((kept, found)),
                Err(what) => {
                    report.finding = Some(format!(
                        "seed {seed}, life {}, {}, {kept:?}: {what}",
                        life.number, point.moment
                    ));
                    return (report, None);
                }
            }
        }
        if let Some((kept, found)) = last.filter(|_| number == chosen) {
            left = Some(Left { point, kept, found, slices: life.slices });
        }
    }
    (report, left)
}

fn cut_folder(life: &Path, number: u64) -> PathBuf {
    life.with_file_name(format!("cut-{number}"))
}
