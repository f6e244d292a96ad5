//! Merges repeated accesses: logins, ended sessions, disclosures of secrets.
//!
//! A caller may repeat an access without end, and each repetition tells the same. The first one is recorded at once. Those
//! that follow within [`ACCESS_INTERVAL`] are counted, and one record at the end of the interval states their number. Accesses
//! to different resources are recorded one by one, up to a limit.

use super::limits::{ACCESS_INTERVAL, ACCESS_RESOURCES_MAX, ACCESSES_TRACKED_MAX};
use super::record::AuditRecord;
use crate::metrics;
use cairn_model::client_network;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::time::{Duration, Instant};

/// The accesses of one caller from one source by one operation, in one interval.
struct Repeated {
    until: Instant,
    /// Hashes of the resources and details of the accesses that have records.
    recorded: HashSet<u64>,
    /// The number of accesses that have no record.
    more: u64,
    /// The credential of the caller.
    credential: String,
    /// The first access.
    first: AuditRecord,
}

/// The accesses of the last interval.
#[derive(Default)]
pub(crate) struct Accesses {
    table: HashMap<u64, Repeated>,
    /// Number of recorded resources in the table.
    tracked: usize,
    /// No interval in the table ends earlier. `None` if the table is empty.
    first_end: Option<Instant>,
    /// Summaries that the writer has not taken yet.
    due: Vec<AuditRecord>,
}

/// The decision about an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Merged {
    /// It needs a record of its own.
    Recorded,
    /// It was counted.
    Counted,
}

impl Accesses {
    /// Decides on an access with a credential.
    pub(crate) fn admit(&mut self, credential: &str, record: &AuditRecord, now: Instant) -> Merged {
        let (key, resource) = (key_of(credential, record), resource_of(record));
        if self.table.get(&key).is_some_and(|repeated| repeated.until <= now) {
            self.end_intervals(now);
        }
        if let Some(repeated) = self.table.get_mut(&key)
            && (repeated.recorded.len() >= ACCESS_RESOURCES_MAX || repeated.recorded.contains(&resource))
        {
            repeated.more += 1;
            return Merged::Counted;
        }
        if self.tracked >= ACCESSES_TRACKED_MAX {
            self.end_all();
        }
        self.first_end.get_or_insert(now + ACCESS_INTERVAL);
        let repeated = self.table.entry(key).or_insert_with(|| Repeated {
            until: now + ACCESS_INTERVAL,
            recorded: HashSet::new(),
            more: 0,
            credential: credential.to_owned(),
            first: record.clone(),
        });
        repeated.recorded.insert(resource);
        self.tracked += 1;
        Merged::Recorded
    }

    /// Forgets an access whose record could not be written, so that the next one is recorded.
    pub(crate) fn revert(&mut self, credential: &str, record: &AuditRecord) {
        if let Some(repeated) = self.table.get_mut(&key_of(credential, record))
            && repeated.recorded.remove(&resource_of(record))
        {
            self.tracked -= 1;
        }
    }

    /// Takes the records of the accesses that were counted in ended intervals.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<AuditRecord> {
        self.end_intervals(now);
        std::mem::take(&mut self.due)
    }

    /// As [`Self::take_due`], and ends all intervals.
    pub(crate) fn take_all(&mut self) -> Vec<AuditRecord> {
        self.end_all();
        std::mem::take(&mut self.due)
    }

    /// Returns the time until the first interval may end. `None` if no interval has begun.
    pub(crate) fn due_in(&self, now: Instant) -> Option<Duration> {
        if !self.due.is_empty() {
            return Some(Duration::ZERO);
        }
        self.first_end.map(|end| end.saturating_duration_since(now))
    }

    fn end_intervals(&mut self, now: Instant) {
        if self.first_end.is_none_or(|end| end > now) {
            return;
        }
        for (_, ended) in self.table.extract_if(|_, repeated| repeated.until <= now) {
            self.tracked -= ended.recorded.len();
            push_summary(&mut self.due, ended);
        }
        self.first_end = self.table.values().map(|repeated| repeated.until).min();
    }

    fn end_all(&mut self) {
        (self.tracked, self.first_end) = (0, None);
        for (_, ended) in self.table.drain() {
            push_summary(&mut self.due, ended);
        }
    }
}

/// Adds the summary of an ended interval, unless the writer has been unable to take any for long.
fn push_summary(due: &mut Vec<AuditRecord>, ended: Repeated) {
    match ended.summary() {
        Some(summary) if due.len() < ACCESSES_TRACKED_MAX => due.push(summary),
        Some(_) => metrics::AUDIT_RECORDS_LEFT_OUT.add(1),
        None => {}
    }
}

impl Repeated {
    /// Returns the record that states how often the access was repeated.
    fn summary(self) -> Option<AuditRecord> {
        let Self { recorded, more, credential, mut first, .. } = self;
        if more == 0 {
            return None;
        }
        if recorded.len() > 1 {
            first.resource.clear();
            first.detail = credential;
        }
        let separator = if first.detail.is_empty() { "" } else { "; " };
        first.detail = format!(
            "{more} more since the record of request {}{separator}{}",
            first.request_id, first.detail
        );
        first.request_id.clear();
        Some(first)
    }
}

/// Returns the key of a caller, a source and an operation.
fn key_of(credential: &str, record: &AuditRecord) -> u64 {
    let AuditRecord { principal, role, operation, source_ip, .. } = record;
    hash_of(&(principal, role, credential, operation, source_ip.map(client_network)))
}

fn resource_of(record: &AuditRecord) -> u64 {
    hash_of(&(&record.resource, &record.detail))
}

fn hash_of(value: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::{Accesses, Merged};
    use crate::audit::limits::{ACCESS_INTERVAL, ACCESS_RESOURCES_MAX, ACCESSES_TRACKED_MAX};
    use crate::audit::record::{AuditRecord, AuditResult};
    use std::net::IpAddr;
    use std::time::{Duration, Instant};

    fn access(source: u32, resource: &str) -> AuditRecord {
        AuditRecord {
            resource: resource.to_owned(),
            source_ip: Some(IpAddr::from(source.to_be_bytes())),
            request_id: "r1".to_owned(),
            detail: "token t".to_owned(),
            ..AuditRecord::new("token:a", "begin_console_session", AuditResult::Allowed)
        }
    }

    #[test]
    fn repetitions_are_one_record_at_the_end_of_the_interval() {
        let (mut accesses, begun) = (Accesses::default(), Instant::now());
        assert_eq!(accesses.admit("token t", &access(1, ""), begun), Merged::Recorded);
        assert_eq!(accesses.due_in(begun), Some(ACCESS_INTERVAL));
        for _ in 0..99 {
            assert_eq!(accesses.admit("token t", &access(1, ""), begun), Merged::Counted);
        }
        assert_eq!(accesses.admit("token t", &access(2, ""), begun), Merged::Recorded, "another source");
        let almost = begun + ACCESS_INTERVAL - Duration::from_secs(1);
        assert!(accesses.take_due(almost).is_empty());
        assert_eq!(accesses.due_in(almost), Some(Duration::from_secs(1)));
        let due = accesses.take_due(begun + ACCESS_INTERVAL);
        assert_eq!(due.len(), 1, "the other source repeated nothing");
        assert_eq!(due[0].detail, "99 more since the record of request r1; token t");
        assert_eq!(accesses.due_in(begun + ACCESS_INTERVAL), None);
        assert_eq!(accesses.admit("token t", &access(1, ""), begun + ACCESS_INTERVAL), Merged::Recorded);
    }

    #[test]
    fn different_resources_are_recorded_one_by_one_up_to_a_limit() {
        let (mut accesses, now) = (Accesses::default(), Instant::now());
        let admitted =
            |accesses: &mut Accesses, n: usize| accesses.admit("token t", &access(1, &n.to_string()), now);
        for n in 0..ACCESS_RESOURCES_MAX {
            assert_eq!(admitted(&mut accesses, n), Merged::Recorded);
        }
        assert_eq!(admitted(&mut accesses, ACCESS_RESOURCES_MAX), Merged::Counted);
        let [summary] = &accesses.take_all()[..] else { panic!("one") };
        assert!(summary.resource.is_empty() && summary.detail.starts_with("1 more"), "{summary:?}");
    }

    #[test]
    fn the_table_has_a_limit_and_forgets_no_count() {
        let (mut accesses, now) = (Accesses::default(), Instant::now());
        let mut summaries = 0;
        for source in 0..u32::try_from(ACCESSES_TRACKED_MAX).expect("small") + 10 {
            for expected in [Merged::Recorded, Merged::Counted] {
                assert_eq!(accesses.admit("token t", &access(source, ""), now), expected);
            }
            assert!(accesses.tracked <= ACCESSES_TRACKED_MAX && accesses.table.len() <= ACCESSES_TRACKED_MAX);
            summaries += accesses.take_due(now).len();
        }
        summaries += accesses.take_all().len();
        assert_eq!(summaries, ACCESSES_TRACKED_MAX + 10);
    }

    #[test]
    fn an_access_without_a_record_is_recorded_the_next_time() {
        let (mut accesses, now) = (Accesses::default(), Instant::now());
        assert_eq!(accesses.admit("token t", &access(1, ""), now), Merged::Recorded);
        accesses.revert("token t", &access(1, ""));
        assert_eq!(accesses.admit("token t", &access(1, ""), now), Merged::Recorded);
    }
}
