//! `cairn import objects`: copies versions, delete markers, tags and locks from another store.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cairn_http1::decode;
use indicatif::{HumanBytes, HumanDuration};
use serde_json::{Value, json};

use super::buckets::{SourceBucket, chosen, failure};
use super::fitting::bucket_loss;
use super::groups::{Groups, Settings};
use super::journal::Journal;
use super::run::Run;
use super::tally::{Tally, get};
use super::target::{Refused, Target};
use super::throttle::Throttle;
use crate::client::Client;
use crate::commands::macros::command;
use crate::commands::remote::{Remote, Trouble, Variables};
use crate::commands::signals::{nap, stop_flag};
use crate::failure::{Failure, Outcome};
use crate::output::progress::Progress;
use crate::output::table::labelled;
use crate::quantity::{ByteLimit, Duration as Span, Whole, bytes_text};
use crate::s3::endpoint::Endpoint;
use crate::terminal;

/// Versions at a time.
const WORKERS: u64 = 16;
/// The interval at which the progress is shown.
const SHOWN_EVERY: Duration = Duration::from_millis(500);
/// The interval at which a wait looks whether the command ends.
const GLANCE: Duration = Duration::from_millis(100);
/// Default of `--interval`, in seconds.
const INTERVAL: u64 = 30;

command! {
    /// Copy objects from another store: every version and delete marker with its id, date, entity tag, headers, metadata, tags
    /// and lock. It can be interrupted and repeated; what was copied before is not copied again. Versions that a client has
    /// written or deleted on this server stay as they are. The source is only read. The exit code is 0 if everything arrived,
    /// and no version of the source was left out because a client wrote another one on this server.
    struct Objects("objects") {
        /// the address of the source's S3 interface, such as https://minio:9000. SOURCE_ACCESS_KEY and SOURCE_SECRET_KEY hold
        /// a credential that may list and read
        #[argh(option, arg_name = "url")]
        from: Endpoint,
        /// a bucket; may be repeated (default: all buckets)
        #[argh(option, arg_name = "bucket")]
        bucket: Vec<String>,
        /// keep copying new changes of the source, until it is interrupted
        #[argh(switch)]
        follow: bool,
        /// with --follow, the pause between two rounds (default: 30s)
        #[argh(option, arg_name = "duration")]
        interval: Option<Span>,
        /// number of versions that are copied at a time (default: 16)
        #[argh(option, arg_name = "n")]
        concurrency: Option<Whole<1, 256>>,
        /// the most that is copied in a second, such as 50MB (default: unlimited)
        #[argh(option, arg_name = "size")]
        bytes_per_second: Option<ByteLimit>,
        /// the folder that remembers what was copied (default: ./cairn-import)
        #[argh(option, arg_name = "dir")]
        journal: Option<String>,
        /// write storage events for what is copied
        #[argh(switch)]
        events: bool,
        /// also delete imported versions that are gone at the source
        #[argh(switch)]
        delete: bool,
    }
}

impl Objects {
    pub(super) fn run(&self) -> Outcome {
        let workers = self.concurrency.map_or(WORKERS, |number| number.0);
        let workers = usize::try_from(workers).unwrap_or(usize::MAX);
        let rate = self.bytes_per_second.and_then(|limit| limit.0);
        // A worker and as many helpers share the permits, and lists are beside them.
        let connections = 2 * workers + 2;
        let patience =
            rate.map_or(1, |rate| u32::try_from((100 << 20) / rate.max(1)).unwrap_or(u32::MAX).max(8));
        let source =
            Remote::new(&Variables::SOURCE, &self.from, connections, stop_flag()?)?.with_patience(patience);
        let client = self.client()?.with_connections(connections);
        let target = Target::new(&client, &source, self.events);
        target.check_role()?;
        let journal = Journal::open(self.journal.as_deref().unwrap_or("cairn-import"), &self.from.url())?;
        let throttle = Throttle::new(rate.unwrap_or(0));
        remove_uploads(&journal, &target)?;
        let mut run = Run {
            source: &source,
            target: &target,
            journal: &journal,
            throttle: &throttle,
            workers,
            deletes: self.delete,
            looks: true,
        };
        loop {
            let begun = Instant::now();
            let before = throttle.passed();
            let round = self.round(&run)?;
            let bytes = throttle.passed() - before;
            self.print(&client, &round, bytes, begun.elapsed(), &journal)?;
            if !self.follow {
                return round.total.outcome(&journal);
            }
            let end =
                Instant::now() + Duration::from_secs(self.interval.map_or(INTERVAL, |span| span.seconds));
            while Instant::now() < end && !source.is_stopped() {
                nap(GLANCE);
            }
            if source.is_stopped() {
                return Err(failure(&Trouble::Stopped));
            }
            // Only the first round asks for each version; later ones rely on what the source lists.
            run.looks = false;
        }
    }

    /// Imports all buckets once.
    fn round(&self, run: &Run<'_>) -> Result<Round, Failure> {
        let names = chosen(run.source, &self.bucket)?;
        let mut round = Round::default();
        let shown = Shown::default();
        let progress = Progress::described();
        thread::scope(|scope| {
            if !progress.is_hidden() {
                scope.spawn(|| count(run.source, &names, &shown));
                scope.spawn(|| show(&progress, &shown, run));
            }
            let done = names.iter().try_for_each(|name| {
                let tally = Tally::default();
                let done = one_bucket(run, name, &tally, &shown);
                round.total.add(&tally);
                round.buckets.push((name.clone(), tally));
                done
            });
            shown.is_over.store(true, Ordering::Relaxed);
            done
        })?;
        Ok(round)
    }

    fn print(
        &self,
        client: &Client,
        round: &Round,
        bytes: u64,
        elapsed: Duration,
        journal: &Journal,
    ) -> Outcome {
        let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let buckets: Vec<Value> = round
            .buckets
            .iter()
            .map(|(name, tally)| {
                let mut body = tally.json();
                body["bucket"] = name.as_str().into();
                body
            })
            .collect();
        let body = json!({
            "source": self.from.url(),
            "buckets": buckets,
            "total": round.total.json(),
            "bytes": bytes,
            "milliseconds": millis,
            "failures": journal.failures_path(),
            "kept": journal.kept_path(),
        });
        let text = || {
            let mut rows = round.total.rows();
            rows.push(("bytes copied".to_owned(), bytes_text(bytes)));
            rows.push(("time".to_owned(), format!("{}.{:03} s", millis / 1000, millis % 1000)));
            rows.push((
                "rate".to_owned(),
                format!("{} versions/s", round.total.copied().saturating_mul(1000) / millis.max(1)),
            ));
            labelled(&rows)
        };
        if self.follow && self.json {
            return crate::output::print(&terminal::json_line(&body));
        }
        client.print(&body, text)
    }
}

/// The result of a round.
#[derive(Default)]
struct Round {
    buckets: Vec<(String, Tally)>,
    total: Tally,
}

/// The values of the progress display.
#[derive(Default)]
struct Shown {
    /// Versions of the buckets that are done.
    done: AtomicU64,
    total: AtomicU64,
    is_counted: AtomicBool,
    is_over: AtomicBool,
}

/// Imports a bucket. A bucket that cannot be imported is a failure of the round, not its end.
fn one_bucket(run: &Run<'_>, name: &str, tally: &Tally, shown: &Shown) -> Outcome {
    let refused = |reason: &str| tally.fail(run.journal, (name, "", ""), reason);
    if let Some(loss) = bucket_loss(name) {
        return refused(&loss.reason);
    }
    let bucket = match SourceBucket::of(run.source, name) {
        Ok(bucket) => bucket,
        Err(trouble @ (Trouble::NoAnswer(_) | Trouble::Stopped)) => return Err(failure(&trouble)),
        Err(trouble) => return refused(&trouble.text()),
    };
    let born = match run.target.prepare(&bucket) {
        Ok(born) => born,
        Err(Refused::Version { code, message }) => return refused(&format!("{code}: {message}")),
        Err(Refused::Command(failure)) => return Err(failure),
    };
    let is_over = AtomicBool::new(false);
    let look = || run.target.look(name);
    // An earlier round may have begun the run, and it may be paused since.
    look();
    thread::scope(|scope| {
        let watching = scope.spawn(|| run.target.watch.keep(look, &is_over));
        let counting = scope.spawn(|| {
            let mut counted = 0;
            loop {
                let ends = is_over.load(Ordering::Relaxed);
                let done = tally.done();
                shown.done.fetch_add(done - counted, Ordering::Relaxed);
                counted = done;
                if ends {
                    return;
                }
                thread::park_timeout(SHOWN_EVERY);
            }
        });
        let done = match run.bucket(&bucket, &born, tally) {
            // The other buckets may work.
            Err(Failure::Failed(why)) => refused(&why),
            done => done,
        };
        is_over.store(true, Ordering::Relaxed);
        counting.thread().unpark();
        watching.thread().unpark();
        done
    })
}

/// Counts what there is, so that the time that is left can be shown.
fn count(source: &Remote, names: &[String], shown: &Shown) {
    for name in names {
        // How objects are listed makes no difference to their number.
        let bucket =
            SourceBucket { name: name.clone(), versioning: Some(String::new()), has_object_lock: false };
        let counted = thread::scope(|scope| {
            let mut groups = Groups::begin(scope, source, &bucket, Settings::Never, Vec::new());
            while let Some(group) = groups.next_group()? {
                shown.total.fetch_add(group.entries.len() as u64, Ordering::Relaxed);
                if shown.is_over.load(Ordering::Relaxed) {
                    return Err(Trouble::Stopped);
                }
            }
            Ok(())
        });
        // The import itself will say what is wrong.
        if counted.is_err() {
            return;
        }
    }
    shown.is_counted.store(true, Ordering::Relaxed);
}

/// Shows the progress until the round is over.
fn show(progress: &Progress, shown: &Shown, run: &Run<'_>) {
    let bytes = run.throttle.passed();
    // Pauses are no part of the time that rates are about.
    let (mut looked, mut active) = (Instant::now(), Duration::ZERO);
    while !shown.is_over.load(Ordering::Relaxed) {
        let (done, total) = (get(&shown.done), get(&shown.total));
        let (is_paused, passed_time) = (run.target.watch.is_paused(), looked.elapsed());
        looked += passed_time;
        if !is_paused {
            active += passed_time;
        }
        let seconds = active.as_secs_f64().max(0.001);
        let passed = run.throttle.passed() - bytes;
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a display"
        )]
        let (rate, byte_rate) = ((done as f64 / seconds) as u64, (passed as f64 / seconds) as u64);
        let left = match (shown.is_counted.load(Ordering::Relaxed), rate) {
            (true, 1..) => {
                format!(", {} left", HumanDuration(Duration::from_secs(total.saturating_sub(done) / rate)))
            }
            _ => String::new(),
        };
        let text = format!(
            "{}{done}/{total} versions, {rate}/s, {}, {}/s{left}",
            if is_paused { "paused, " } else { "" },
            HumanBytes(passed),
            HumanBytes(byte_rate)
        );
        progress.show(done, total.max(done), text);
        nap(SHOWN_EVERY);
    }
}

/// Removes uploads that an earlier run has left, because it was killed.
fn remove_uploads(journal: &Journal, target: &Target<'_>) -> Outcome {
    for line in journal.take_uploads()? {
        let mut fields = line.split('\t');
        let (Some(bucket), Some(key), Some(upload)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let Ok(key) = decode(key) else { continue };
        match target.abort_upload(bucket, &key, upload) {
            Ok(()) | Err(Refused::Version { .. }) => {}
            // The bucket was deleted.
            Err(Refused::Command(Failure::Failed(_))) => {}
            Err(Refused::Command(failure)) => return Err(failure),
        }
    }
    Ok(())
}
