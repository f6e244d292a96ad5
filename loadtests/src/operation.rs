//! The five operations, and the choice of what a connection does next.
//!
//! In a mixed run each connection owns the keys whose number is its own modulo the number of connections. Only it
//! changes them, so it knows what a GET must find: an acknowledged upload that is gone, or a deleted object that is
//! still there, is a verification failure and not a race.

use crate::plan::{Order, Plan, Ratio, Workload};
use crate::random::{Random, mix};
use crate::units::index;

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "named as S3 names them")]
pub enum Operation {
    Put,
    Get,
    RangeGet,
    List,
    Delete,
}

impl Operation {
    /// Number of operations.
    pub const COUNT: usize = 5;
    /// All of them, in the order of reports.
    pub const ALL: [Self; Self::COUNT] = [Self::Put, Self::Get, Self::RangeGet, Self::List, Self::Delete];

    /// The name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::RangeGet => "range-get",
            Self::List => "list",
            Self::Delete => "delete",
        }
    }

    /// Whether this status means success.
    #[must_use]
    pub const fn succeeds_with(self, status: u16) -> bool {
        match self {
            Self::Put | Self::Get | Self::List => status == 200,
            Self::RangeGet => status == 206,
            Self::Delete => status == 204 || status == 200,
        }
    }
}

/// What a connection knows of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Presence {
    Unknown,
    Present,
    Absent,
}

/// One request to make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) operation: Operation,
    /// The key; of a list, the first key of the page.
    pub(crate) number: u64,
    /// First and last byte of a range.
    pub(crate) range: Option<(u64, u64)>,
    /// Whether the key is there.
    pub(crate) presence: Presence,
}

/// Decides what one connection does next.
#[derive(Debug)]
pub(crate) struct Chooser {
    random: Random,
    own: Option<OwnKeys>,
}

/// The keys that one connection of a mixed run owns, and what it knows of them.
#[derive(Debug)]
struct OwnKeys {
    first: u64,
    stride: u64,
    presence: Vec<Presence>,
}

impl Chooser {
    pub(crate) fn new(plan: &Plan, connection: usize) -> Self {
        let (first, stride) = (connection as u64, plan.connections as u64);
        let own = (plan.workload == Workload::Mixed).then(|| OwnKeys {
            first,
            stride,
            presence: vec![Presence::Unknown; index((plan.keys.count - first).div_ceil(stride))],
        });
        Self { random: Random::new(mix(plan.seed ^ (first + 1))), own }
    }

    /// The next step, or `None` when the run has none left. `ticket` yields the next number of the whole run.
    pub(crate) fn next(&mut self, plan: &Plan, ticket: impl FnOnce() -> u64) -> Option<Step> {
        let (operation, number) = match plan.workload {
            Workload::EachOnce(operation) => {
                (operation, Some(ticket()).filter(|number| *number < plan.keys.count)?)
            }
            Workload::Repeat(Operation::List) => (Operation::List, self.page_start(plan)),
            Workload::Repeat(operation) => match plan.order {
                Order::Sequential => (operation, ticket() % plan.keys.count),
                Order::Random => (operation, self.random.below(plan.keys.count)),
            },
            Workload::Mixed => {
                let operation = self.draw(&plan.ratio);
                let number = match (&self.own, operation) {
                    (_, Operation::List) | (None, _) => self.page_start(plan),
                    (Some(own), _) => own.first + own.stride * self.random.below(own.presence.len() as u64),
                };
                (operation, number)
            }
        };
        let range = (operation == Operation::RangeGet).then(|| self.range(plan, number));
        Some(Step { operation, number, range, presence: self.presence(operation, number) })
    }

    /// Takes note of what a request has done to its key; `None` if nobody knows.
    pub(crate) fn learn(&mut self, step: &Step, done: Option<Presence>) {
        if let Some(own) = &mut self.own
            && step.operation != Operation::List
        {
            let place = index((step.number - own.first) / own.stride);
            own.presence[place] = done.unwrap_or(Presence::Unknown);
        }
    }

    fn presence(&self, operation: Operation, number: u64) -> Presence {
        match &self.own {
            Some(own) if operation != Operation::List => {
                own.presence[index((number - own.first) / own.stride)]
            }
            _ => Presence::Unknown,
        }
    }

    fn draw(&mut self, ratio: &Ratio) -> Operation {
        let mut left = self.random.below(ratio.total());
        for (operation, weight) in Ratio::ORDER.into_iter().zip(ratio.0) {
            if left < u64::from(weight) {
                return operation;
            }
            left -= u64::from(weight);
        }
        unreachable!("the draw is below the sum of the weights")
    }

    /// A first key after which a whole page follows, where there are so many.
    fn page_start(&mut self, plan: &Plan) -> u64 {
        self.random.below(plan.keys.count.saturating_sub(u64::from(plan.page.max_keys)) + 1)
    }

    fn range(&mut self, plan: &Plan, number: u64) -> (u64, u64) {
        let size = plan.keys.size(number).0;
        let length = plan.range_size.0.min(size).max(1);
        let first = self.random.below(size.saturating_sub(length) + 1);
        (first, first + length - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::test_plans::plan;

    #[test]
    fn each_once_means_every_key_once() {
        let plan = plan(Workload::EachOnce(Operation::Put));
        let mut chooser = Chooser::new(&plan, 0);
        let mut tickets = 0..;
        let numbers: Vec<u64> = std::iter::from_fn(|| chooser.next(&plan, || tickets.next().unwrap()))
            .map(|step| step.number)
            .collect();
        assert_eq!(numbers, (0..plan.keys.count).collect::<Vec<_>>());
    }

    #[test]
    fn the_connections_of_a_mixed_run_share_no_key_and_leave_none_out() {
        let plan = plan(Workload::Mixed);
        let mut all = BTreeSet::new();
        for connection in 0..plan.connections {
            let mut chooser = Chooser::new(&plan, connection);
            let mut own = BTreeSet::new();
            for _ in 0..5_000 {
                let step = chooser.next(&plan, || unreachable!("mixed keys are drawn")).unwrap();
                assert!(step.number < plan.keys.count);
                if step.operation != Operation::List {
                    own.insert(step.number);
                }
            }
            assert!(all.is_disjoint(&own));
            all.extend(own);
        }
        assert_eq!(all.len() as u64, plan.keys.count);
    }

    #[test]
    fn what_was_learnt_of_a_key_is_expected_of_it() {
        let mut plan = plan(Workload::Mixed);
        plan.keys.count = plan.connections as u64;
        plan.ratio = "1:0:0:0:0".parse().unwrap();
        let mut chooser = Chooser::new(&plan, 2);
        let step = chooser.next(&plan, || 0).unwrap();
        assert_eq!((step.number, step.presence), (2, Presence::Unknown));
        chooser.learn(&step, Some(Presence::Absent));
        assert_eq!(chooser.next(&plan, || 0).unwrap().presence, Presence::Absent);
        chooser.learn(&step, None);
        assert_eq!(chooser.next(&plan, || 0).unwrap().presence, Presence::Unknown);
    }

    #[test]
    fn ranges_lie_within_their_object() {
        let mut plan = plan(Workload::Repeat(Operation::RangeGet));
        plan.keys.sizes = "1..100".parse().unwrap();
        plan.range_size = crate::units::ByteCount(50);
        let mut chooser = Chooser::new(&plan, 0);
        for _ in 0..1_000 {
            let step = chooser.next(&plan, || 0).unwrap();
            let (first, last) = step.range.unwrap();
            assert!(first <= last && last < plan.keys.size(step.number).0);
        }
    }
}
