//! Counts what became of versions, and lists failures.

use std::sync::atomic::{AtomicU64, Ordering};

use cairn_api::ImportOutcome;
use serde_json::{Value, json};

use super::journal::{Journal, Record, State};
use crate::failure::{Failure, Outcome};
use crate::output::print_error;
use crate::quantity::{counted, were};
use crate::terminal::{json_line, plain};

/// Most failures that are shown, and most versions that were kept here. All of them are in the journal.
const SHOWN_MAX: u64 = 20;

/// Counts of one bucket, or of all.
#[derive(Default)]
pub(super) struct Tally {
    /// Versions and delete markers that were seen at the source.
    pub(super) listed: AtomicU64,
    pub(super) created: AtomicU64,
    pub(super) replaced: AtomicU64,
    pub(super) changed: AtomicU64,
    pub(super) unchanged: AtomicU64,
    /// Versions of the source in whose place a client has written others here.
    pub(super) kept: AtomicU64,
    /// Versions that were imported and then deleted here.
    pub(super) deleted_here: AtomicU64,
    pub(super) deleted: AtomicU64,
    /// Versions that went away at the source while they were to be copied.
    pub(super) vanished: AtomicU64,
    pub(super) opaque_etags: AtomicU64,
    /// Versions whose checksum was left out.
    pub(super) lacking_checksums: AtomicU64,
    pub(super) failed: AtomicU64,
}

impl Tally {
    fn all(&self) -> [(&'static str, &AtomicU64); 12] {
        [
            ("listed", &self.listed),
            ("created", &self.created),
            ("replaced", &self.replaced),
            ("changed", &self.changed),
            ("unchanged", &self.unchanged),
            ("kept", &self.kept),
            ("deleted_here", &self.deleted_here),
            ("deleted", &self.deleted),
            ("vanished", &self.vanished),
            ("opaque_etags", &self.opaque_etags),
            ("lacking_checksums", &self.lacking_checksums),
            ("failed", &self.failed),
        ]
    }

    /// Counts an outcome of the server other than `kept`.
    pub(super) fn count(&self, outcome: ImportOutcome) {
        let found = match outcome {
            ImportOutcome::Created => &self.created,
            ImportOutcome::Replaced => &self.replaced,
            ImportOutcome::Changed => &self.changed,
            ImportOutcome::Unchanged | ImportOutcome::Kept => &self.unchanged,
        };
        found.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a version to which nothing was done. One that a client has written another version for is listed.
    pub(super) fn note(&self, journal: &Journal, bucket: &str, record: &Record) -> Outcome {
        match record.state {
            State::Imported => self.count(ImportOutcome::Unchanged),
            State::Kept => return self.keep(journal, (bucket, &record.key, &record.id)),
            State::Deleted => drop(self.deleted_here.fetch_add(1, Ordering::Relaxed)),
            State::Gone => {}
        }
        Ok(())
    }

    fn keep(&self, journal: &Journal, at: (&str, &str, &str)) -> Outcome {
        let count = self.kept.fetch_add(1, Ordering::Relaxed) + 1;
        let (bucket, key, id) = at;
        journal.add_kept(&json_line(&json!({"bucket": bucket, "key": key, "version_id": id})))?;
        show(count, at, "a client has written another version here, which stays");
        Ok(())
    }

    /// Returns the end of a run with these counts.
    pub(super) fn outcome(&self, journal: &Journal) -> Outcome {
        let mut wrong = Vec::new();
        if get(&self.failed) > 0 {
            let failed = were(get(&self.failed), "version");
            wrong.push(format!("{failed} not imported; {} lists all", journal.failures_path()));
        }
        if get(&self.kept) > 0 {
            wrong.push(format!(
                "clients have written other versions here in place of {} of the source, and theirs stay; {} lists all",
                counted(get(&self.kept), "version"),
                journal.kept_path()
            ));
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
    }

    /// Returns how many versions were copied.
    pub(super) fn copied(&self) -> u64 {
        get(&self.created) + get(&self.replaced)
    }

    /// Returns how many versions are done.
    pub(super) fn done(&self) -> u64 {
        [
            &self.created,
            &self.replaced,
            &self.changed,
            &self.unchanged,
            &self.kept,
            &self.deleted_here,
            &self.vanished,
            &self.failed,
        ]
        .into_iter()
        .map(get)
        .sum()
    }

    /// Adds the counts of another.
    pub(super) fn add(&self, other: &Self) {
        for ((_, mine), (_, other)) in self.all().into_iter().zip(other.all()) {
            mine.fetch_add(get(other), Ordering::Relaxed);
        }
    }

    pub(super) fn json(&self) -> Value {
        self.all()
            .into_iter()
            .map(|(name, count)| (name.to_owned(), get(count).into()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    /// Returns the counts that are not 0, with their names.
    pub(super) fn rows(&self) -> Vec<(String, String)> {
        let shown =
            |(name, count): &(&str, &AtomicU64)| *name == "created" || *name == "failed" || get(count) > 0;
        let found = self.all().into_iter().filter(shown);
        let label = |name: &str| match name {
            "kept" => "written by clients here, kept".to_owned(),
            "deleted_here" => "deleted here, stays deleted".to_owned(),
            name => name.replace('_', " "),
        };
        found.map(|(name, count)| (label(name), get(count).to_string())).collect()
    }

    /// Notes a failure: counts it, writes it to the journal, and shows it if it is one of the first.
    pub(super) fn fail(
        &self,
        journal: &Journal,
        at: (&str, &str, &str),
        reason: &str,
    ) -> Result<(), Failure> {
        let (bucket, key, id) = at;
        let count = self.failed.fetch_add(1, Ordering::Relaxed) + 1;
        journal.add_failure(&json_line(
            &json!({"bucket": bucket, "key": key, "version_id": id, "reason": reason}),
        ))?;
        show(count, at, reason);
        Ok(())
    }
}

/// Says what became of a version, if it is one of the first.
fn show(count: u64, (bucket, key, id): (&str, &str, &str), what: &str) {
    if count <= SHOWN_MAX {
        print_error(&plain(&format!("cairn: {}: {what}", place(bucket, key, id))));
        print_error("\n");
    }
}

/// Names a version, or a bucket if there is no key.
pub(super) fn place(bucket: &str, key: &str, version: &str) -> String {
    if key.is_empty() { format!("the bucket {bucket}") } else { format!("{bucket}/{key} version {version}") }
}

pub(super) fn get(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}
