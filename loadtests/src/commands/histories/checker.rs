//! Checks whether a history of one key is linearizable.
//!
//! A history is linearizable if every operation can be assigned a moment between its request and its response, so that in the
//! order of these moments every operation returns its recorded response.
//!
//! The search is the algorithm of Wing and Gong with Lowe's cache of visited states ("Testing for linearizability", 2017): it
//! tries the operations that no other operation must precede, and does not repeat a set of operations that led to the same
//! state. Each key is checked separately, which is sound because linearizability is local (Herlihy and Wing, 1990, theorem 1).

use std::collections::HashSet;

use super::history::{Answer, Operation, Tag};

/// Maximum number of operations of a history of one key: a set of them is one integer.
pub const OPERATIONS_MAX: usize = 128;

/// Maximum number of visited states. Histories of a few hundred operations need some thousands.
const VISITS_MAX: usize = 5_000_000;

/// The result of the search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A linear order exists.
    Linearizable,
    /// None exists. The longest partial order has these operations, as indexes into the history.
    Not {
        /// In order.
        longest: Vec<usize>,
    },
    /// The history is too long to decide.
    Undecided,
}

/// A state of the search: the operations so far, the content of the key, and the last operation.
struct Place {
    done: u128,
    state: Option<Tag>,
    path: Vec<usize>,
}

/// Searches a linear order of `history`. At its beginning the key does not exist.
#[must_use]
pub fn check(history: &[Operation]) -> Outcome {
    if history.len() > OPERATIONS_MAX {
        return Outcome::Undecided;
    }
    // Operations without a response may take effect at any later time, or never.
    let must: u128 = (0..history.len())
        .filter(|at| history[*at].answer != Answer::Unknown)
        .fold(0, |set, at| set | 1 << at);
    let mut visited: HashSet<(u128, Option<Tag>)> = HashSet::new();
    let mut longest = Vec::new();
    let mut open = vec![Place { done: 0, state: None, path: Vec::new() }];
    while let Some(place) = open.pop() {
        if place.done & must == must {
            return Outcome::Linearizable;
        }
        if !visited.insert((place.done, place.state)) {
            continue;
        }
        if visited.len() > VISITS_MAX {
            return Outcome::Undecided;
        }
        let waiting = || (0..history.len()).filter(|at| place.done & (1 << at) == 0);
        let first_return = waiting()
            .filter(|at| must & (1 << at) != 0)
            .map(|at| history[at].returned)
            .min()
            .unwrap_or(u64::MAX);
        for at in waiting().filter(|at| history[*at].invoked <= first_return) {
            let Some(state) = history[at].apply(place.state) else { continue };
            let mut path = place.path.clone();
            path.push(at);
            open.push(Place { done: place.done | 1 << at, state, path });
        }
        if place.path.len() > longest.len() {
            longest = place.path;
        }
    }
    Outcome::Not { longest }
}

#[cfg(test)]
mod tests {
    use super::super::history::{Call, Condition};
    use super::*;
    use proptest::prelude::*;

    const A: Tag = Tag(1);
    const B: Tag = Tag(2);

    fn operation(invoked: u64, returned: u64, call: Call, answer: Answer) -> Operation {
        Operation { client: 0, invoked, returned, call, answer }
    }

    fn put(invoked: u64, returned: u64, tag: Tag) -> Operation {
        operation(invoked, returned, Call::Put { tag, condition: Condition::Always }, Answer::Done)
    }

    fn put_if(invoked: u64, returned: u64, tag: Tag, condition: Condition, answer: Answer) -> Operation {
        operation(invoked, returned, Call::Put { tag, condition }, answer)
    }

    fn read(invoked: u64, returned: u64, found: Option<Tag>) -> Operation {
        operation(invoked, returned, Call::Read, found.map_or(Answer::Nothing, Answer::Found))
    }

    fn delete(invoked: u64, returned: u64) -> Operation {
        operation(invoked, returned, Call::Delete { condition: Condition::Always }, Answer::Done)
    }

    fn accepted(history: &[Operation]) -> bool {
        match check(history) {
            Outcome::Linearizable => true,
            Outcome::Not { .. } => false,
            Outcome::Undecided => panic!("it is short"),
        }
    }

    #[test]
    fn sequential_reads_return_the_last_write() {
        assert!(accepted(&[]));
        assert!(accepted(&[
            read(0, 1, None),
            put(2, 3, A),
            read(4, 5, Some(A)),
            delete(6, 7),
            read(8, 9, None)
        ]));
        assert!(!accepted(&[put(0, 1, A), put(2, 3, B), read(4, 5, Some(A))]), "a stale read");
        assert!(!accepted(&[put(0, 1, A), read(2, 3, None)]), "a lost write");
        assert!(!accepted(&[put(0, 1, A), delete(2, 3), read(4, 5, Some(A))]), "it came back");
        assert!(!accepted(&[read(0, 1, Some(A)), put(2, 3, A)]), "read before it was written");
    }

    #[test]
    fn a_read_of_the_old_version_after_the_new_is_refused() {
        let (first, second) = (put(0, 1, A), put(2, 9, B));
        assert!(accepted(&[first, second, read(3, 4, Some(A)), read(5, 6, Some(B))]));
        assert!(!accepted(&[first, second, read(3, 4, Some(B)), read(5, 6, Some(A))]));
        assert!(accepted(&[first, second, read(3, 6, Some(B)), read(5, 8, Some(A))]), "they overlap");
    }

    #[test]
    fn a_condition_is_evaluated_with_the_write() {
        let absent = |at, tag, answer| put_if(0, at, tag, Condition::Absent, answer);
        assert!(accepted(&[absent(5, A, Answer::Done), absent(6, B, Answer::Refused)]));
        assert!(!accepted(&[absent(5, A, Answer::Done), absent(6, B, Answer::Done)]), "two creations won");
        assert!(!accepted(&[absent(5, A, Answer::Refused)]), "refused by nothing");
        let swap = |invoked, tag, answer| put_if(invoked, 9, tag, Condition::Is(A), answer);
        let other = Tag(3);
        assert!(accepted(&[put(0, 1, A), swap(2, B, Answer::Done), swap(2, other, Answer::Refused)]));
        assert!(
            !accepted(&[put(0, 1, A), swap(2, B, Answer::Done), swap(2, other, Answer::Done)]),
            "a lost update"
        );
        assert!(accepted(&[swap(0, B, Answer::Nothing), put(2, 9, A)]));
        let delete_if = operation(2, 3, Call::Delete { condition: Condition::Is(B) }, Answer::Done);
        assert!(accepted(&[delete_if]) && !accepted(&[put(0, 1, A), delete_if]));
    }

    #[test]
    fn a_write_without_a_response_takes_effect_once_or_never() {
        let unknown = put_if(0, 0, A, Condition::Always, Answer::Unknown);
        assert!(accepted(&[unknown, read(1, 2, None), read(3, 4, Some(A))]));
        assert!(accepted(&[unknown, read(1, 2, None)]));
        assert!(!accepted(&[unknown, read(1, 2, Some(A)), read(3, 4, None)]));
    }

    #[test]
    fn the_longest_partial_order_is_returned() {
        let history = [put(0, 1, A), read(2, 3, Some(A)), read(4, 5, Some(B))];
        assert_eq!(check(&history), Outcome::Not { longest: vec![0, 1] });
    }

    /// Reference implementation: tries all orders.
    fn by_brute_force(history: &[Operation], done: &mut Vec<usize>, state: Option<Tag>) -> bool {
        let waiting: Vec<usize> = (0..history.len()).filter(|at| !done.contains(at)).collect();
        if waiting.iter().all(|at| history[*at].answer == Answer::Unknown) {
            return true;
        }
        waiting.iter().any(|&at| {
            let overtaken = waiting.iter().any(|&other| {
                history[other].answer != Answer::Unknown && history[other].returned < history[at].invoked
            });
            let Some(after) = history[at].apply(state).filter(|_| !overtaken) else { return false };
            done.push(at);
            let found = by_brute_force(history, done, after);
            done.pop();
            found
        })
    }

    fn operations() -> impl Strategy<Value = Vec<Operation>> {
        let tag = || (1_u128..3).prop_map(Tag);
        let condition =
            || prop_oneof![Just(Condition::Always), Just(Condition::Absent), tag().prop_map(Condition::Is)];
        let call = prop_oneof![
            (tag(), condition()).prop_map(|(tag, condition)| Call::Put { tag, condition }),
            condition().prop_map(|condition| Call::Delete { condition }),
            Just(Call::Read),
            Just(Call::Read),
        ];
        let answer = prop_oneof![
            Just(Answer::Done),
            Just(Answer::Refused),
            Just(Answer::Nothing),
            Just(Answer::Unknown),
            tag().prop_map(Answer::Found),
        ];
        let one = (0_u64..12, 1_u64..8, call, answer)
            .prop_map(|(invoked, length, call, answer)| operation(invoked, invoked + length, call, answer));
        prop::collection::vec(one, 0..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn the_search_decides_as_trying_all_orders_does(history in operations()) {
            prop_assert_eq!(accepted(&history), by_brute_force(&history, &mut Vec::new(), None));
        }
    }
}
