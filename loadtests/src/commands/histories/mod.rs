//! Records concurrent histories on few keys and checks that they are linearizable.
//!
//! [`history`] defines the operations, `client` sends requests, and [`checker`] decides. Each history has its own keys, which
//! do not exist at its beginning, several concurrent clients, and at its end one read of every key without concurrency. A
//! failing history is saved. Its seed repeats it as far as the scheduling of threads allows.
//!
//! The checker is our own, in 80 lines, because the existing Rust crates depend on a whole model checker or simulator. Its
//! tests compare it with a search of all orders.

pub mod checker;
mod client;
pub mod history;

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use checker::{OPERATIONS_MAX, Outcome, check};
use client::{Client, Notes, Task};
use history::{Answer, Call, Operation, Tag};

use crate::arguments::HistoriesCommand;
use crate::commands::clean;
use crate::failure::{LoadError, while_doing};
use crate::http::request::{Auth, Target};
use crate::plan::{credentials_of, resolve};
use crate::random::{Random, mix};
use crate::report::Verdict;

/// Time limit of a request. A request without a response may still take effect later.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The result of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HistoriesReport {
    /// Histories recorded and checked.
    pub histories: u64,
    /// Operations in them; a list counts once for each key.
    pub operations: u64,
    /// Writes that were refused because their condition was not met.
    pub refused: u64,
    /// Writes with an unknown outcome.
    pub unknown: u64,
    /// Histories without a linear order.
    pub not_linearizable: u64,
    /// Histories that were too long to decide, or contain a version that may come from a write without a response.
    pub undecided: u64,
    /// Responses that are wrong in any history.
    pub wrong: Vec<String>,
    /// Files of the histories that failed.
    pub saved: Vec<PathBuf>,
    /// The seed that repeats the run.
    pub seed: u64,
    /// Duration of the run.
    pub seconds: f64,
}

impl HistoriesReport {
    /// Returns the outcome of the run.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.not_linearizable > 0 || !self.wrong.is_empty() {
            Verdict::Corrupt
        } else if self.undecided > 0 {
            Verdict::Errors
        } else {
            Verdict::Good
        }
    }
}

/// A saved history: the operations of each key.
#[derive(Serialize)]
struct Saved<'h> {
    seed: u64,
    history: u64,
    key: usize,
    longest: Vec<usize>,
    operations: &'h [Operation],
}

/// Records and checks histories.
///
/// # Errors
/// [`LoadError`] if there is no server or no bucket, or a history cannot be saved.
pub fn run(command: &HistoriesCommand) -> Result<HistoriesReport, LoadError> {
    let (host, address) = resolve(&command.endpoint)?;
    let credentials = credentials_of(command.access_key.clone(), command.secret_key.clone())?;
    let region = "us-east-1".to_owned();
    let target = Target { host, bucket: command.bucket.clone(), auth: Auth::Header, credentials, region };
    // The number of operations per key varies, and lists count for every key.
    if command.clients * command.operations * 2 > OPERATIONS_MAX as u64 * command.keys {
        let message = "--clients times --operations is too much for so few --keys: histories of a key are too long to decide";
        return Err(LoadError::Usage(message.to_owned()));
    }
    clean::create_bucket_at(&address.into(), &target, REQUEST_TIMEOUT)?;
    let seed = command.seed.unwrap_or_else(|| mix(u64::from(std::process::id()) ^ nanoseconds()));
    let clients = u32::try_from(command.clients).unwrap_or(u32::MAX);
    let mut clients: Vec<Client> =
        (0..clients).map(|number| Client::new(number, address, &target, REQUEST_TIMEOUT)).collect();
    let mut report = HistoriesReport { seed, ..HistoriesReport::default() };
    let begun = Instant::now();
    // The keys of a history must not exist at its beginning, even if the seed was used on this bucket before.
    let folder = format!("histories/{seed:016x}-{:016x}", nanoseconds());
    for number in 0..command.histories {
        let prefix = format!("{folder}/{number:06}/");
        record(command, (number, &prefix), seed, &mut clients, &mut report)?;
        report.histories += 1;
    }
    report.seconds = begun.elapsed().as_secs_f64();
    Ok(report)
}

fn nanoseconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos() & u128::from(u64::MAX)).unwrap_or(0)
}

/// Records one history, checks it and counts.
fn record(
    command: &HistoriesCommand,
    (number, prefix): (u64, &str),
    seed: u64,
    clients: &mut [Client],
    report: &mut HistoriesReport,
) -> Result<(), LoadError> {
    let keys = usize::try_from(command.keys).unwrap_or(usize::MAX);
    let mut seeds = Random::new(seed ^ mix(number));
    let begun = Instant::now();
    let mut task = |operations| Task { prefix, keys, operations, seed: seeds.next() >> 12, begun };
    let tasks: Vec<Task<'_>> = clients.iter().map(|_| task(command.operations)).collect();
    let mut notes: Vec<Notes> = std::thread::scope(|scope| {
        let working: Vec<_> =
            clients.iter_mut().zip(&tasks).map(|(client, task)| scope.spawn(|| client.work(task))).collect();
        working.into_iter().map(|thread| thread.join().expect("a client does not panic")).collect()
    });
    if let Some(first) = clients.first_mut() {
        notes.push(first.read_all(&task(0)));
    }
    let mut histories = assemble(notes, keys, report);
    if command.fault_stale_read {
        histories.iter_mut().for_each(add_stale_read);
    }
    let mut fails = false;
    for (key, operations) in histories.iter().enumerate() {
        report.operations += operations.len() as u64;
        match check(operations) {
            Outcome::Linearizable => {}
            // No client has read it, so its tag is unknown, and it may be the version that does not fit.
            Outcome::Not { .. } if operations.iter().any(is_nameless) => report.undecided += 1,
            Outcome::Undecided => report.undecided += 1,
            Outcome::Not { longest } => {
                fails = true;
                let saved = Saved { seed, history: number, key, longest, operations };
                report.saved.push(save(command, &saved)?);
            }
        }
    }
    report.not_linearizable += u64::from(fails);
    Ok(())
}

/// Returns whether an operation is a put without a response whose version no client has read.
fn is_nameless(operation: &Operation) -> bool {
    let Call::Put { tag, .. } = operation.call else { return false };
    operation.answer == Answer::Unknown && u64::try_from(tag.0).is_ok()
}

/// Returns the history of each key from the records of all clients. Puts without a response get the tags that GETs returned for
/// their versions.
fn assemble(notes: Vec<Notes>, keys: usize, report: &mut HistoriesReport) -> Vec<Vec<Operation>> {
    let shown: HashMap<u64, Tag> =
        notes.iter().flat_map(|notes| &notes.shown).map(|(tag, put)| (*put, *tag)).collect();
    let mut histories = vec![Vec::new(); keys];
    for mut notes in notes {
        for (at, put) in notes.unanswered {
            if let (Some(known), Call::Put { tag, .. }) = (shown.get(&put), &mut notes.operations[at].1.call)
            {
                *tag = *known;
            }
        }
        for (key, operation) in notes.operations {
            report.refused += u64::from(operation.answer == Answer::Refused);
            report.unknown += u64::from(operation.answer == Answer::Unknown);
            histories[key].push(operation);
        }
        report.wrong.extend(notes.wrong);
    }
    histories
}

/// Injects a stale read: after all other operations, a read that returns an old version.
fn add_stale_read(operations: &mut Vec<Operation>) {
    let Some(last) = operations.last().copied() else { return };
    let written = operations.iter().find_map(|operation| match (operation.call, operation.answer) {
        (Call::Put { tag, .. }, Answer::Done) if last.answer != Answer::Found(tag) => Some(tag),
        _ => None,
    });
    let answer = written.map_or(Answer::Found(Tag(0)), Answer::Found);
    operations.push(Operation { invoked: last.returned + 1, returned: last.returned + 2, answer, ..last });
}

fn save(command: &HistoriesCommand, saved: &Saved<'_>) -> Result<PathBuf, LoadError> {
    let name = format!("history-{:016x}-{}-key-{}.json", saved.seed, saved.history, saved.key);
    let path = command.save.join(name);
    let text = serde_json::to_string_pretty(saved).expect("histories are plain data");
    std::fs::create_dir_all(&command.save)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(while_doing(format!("saving {}", path.display())))?;
    Ok(path)
}
