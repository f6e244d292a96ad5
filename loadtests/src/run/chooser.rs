//! Chooses the next operation of a connection.
//!
//! In a mixed run, each connection owns the keys whose number is its own modulo the number of connections. Only it changes
//! them, so it knows what a GET must return: a lost acknowledged upload, or a deleted object that still exists, is a
//! verification failure and not a race.

use crate::plan::Plan;
use crate::random::{Random, mix};
use crate::units::index;
use crate::workload::{Operation, Order, Ratio, Workload};

/// The presence of a key, as far as its connection knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Presence {
    Unknown,
    Present,
    Absent,
}

/// A request to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) operation: Operation,
    /// The number of the key; for a list, of the first key of the page.
    pub(crate) number: u64,
    /// First and last byte of a range.
    pub(crate) range: Option<(u64, u64)>,
    /// The expected presence of the key.
    pub(crate) presence: Presence,
}

/// Chooses the operations of one connection.
#[derive(Debug)]
pub(crate) struct Chooser {
    random: Random,
    own: Option<OwnKeys>,
}

/// The keys that one connection of a mixed run owns, and what it knows about them.
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

    /// Returns the next step, or `None` at the end of the run. `ticket` returns the next number of the whole run.
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

    /// Records the presence of a key after a request; `None` if it is unknown.
    pub(crate) fn record(&mut self, step: &Step, done: Option<Presence>) {
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

    /// Returns the first key of a page; a whole page follows it if there are enough keys.
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
    fn each_once_uses_every_key_once() {
        let plan = plan(Workload::EachOnce(Operation::Put));
        let mut chooser = Chooser::new(&plan, 0);
        let mut tickets = 0..;
        let numbers: Vec<u64> = std::iter::from_fn(|| chooser.next(&plan, || tickets.next().unwrap()))
            .map(|step| step.number)
            .collect();
        assert_eq!(numbers, (0..plan.keys.count).collect::<Vec<_>>());
    }

    #[test]
    fn mixed_connections_divide_all_keys() {
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
    fn the_recorded_presence_is_expected() {
        let mut plan = plan(Workload::Mixed);
        plan.keys.count = plan.connections as u64;
        plan.ratio = "1:0:0:0:0".parse().unwrap();
        let mut chooser = Chooser::new(&plan, 2);
        let step = chooser.next(&plan, || 0).unwrap();
        assert_eq!((step.number, step.presence), (2, Presence::Unknown));
        chooser.record(&step, Some(Presence::Absent));
        assert_eq!(chooser.next(&plan, || 0).unwrap().presence, Presence::Absent);
        chooser.record(&step, None);
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
