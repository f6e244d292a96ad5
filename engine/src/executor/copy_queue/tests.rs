//! Order, bounds and cancellation of waiting copies.

use super::{CopyPermit, CopyQueue};
use crate::error::EngineError;
use crate::limits::{
    COPIES_MAX, COPIES_PER_CLIENT_MAX, COPIES_WAITING_MAX, COPIES_WAITING_PER_CLIENT_MAX, COPY_TURN_BYTES,
};
use crate::store::activity::Activities;
use futures_lite::future::{block_on, poll_once};
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

type Admission = Pin<Box<dyn Future<Output = Result<CopyPermit, EngineError>>>>;

/// Begins to wait for a copy of `client`.
fn ask(queue: &CopyQueue, client: &'static str) -> Admission {
    let (queue, activities) = (queue.clone(), Arc::<Activities>::default());
    let mut admission: Admission = Box::pin(async move { queue.admit(client, &activities).await });
    if let Some(done) = block_on(poll_once(&mut admission)) {
        return Box::pin(std::future::ready(done));
    }
    admission
}

fn now(admission: &mut Admission) -> Option<Result<CopyPermit, EngineError>> {
    block_on(poll_once(admission))
}

fn admitted(admission: &mut Admission) -> CopyPermit {
    now(admission).expect("admitted").expect("not refused")
}

fn counts(queue: &CopyQueue) -> (usize, usize, usize, usize) {
    let state = queue.0.borrow();
    (state.running, state.waiting, state.ready.len(), state.clients.len())
}

#[test]
fn copies_of_one_client_are_bounded_and_others_still_run() {
    let queue = CopyQueue::default();
    let mut many: Vec<_> = (0..COPIES_PER_CLIENT_MAX + 3).map(|_| ask(&queue, "many")).collect();
    let running: Vec<_> = many.drain(..COPIES_PER_CLIENT_MAX).map(|mut asked| admitted(&mut asked)).collect();
    assert!(many.iter_mut().all(|asked| now(asked).is_none()), "no more copies of this client");
    let other = admitted(&mut ask(&queue, "other"));
    assert_eq!(counts(&queue), (COPIES_PER_CLIENT_MAX + 1, 3, 0, 2));
    drop(running);
    let _next = admitted(&mut many[0]);
    drop((many, other));
    drop(_next);
    assert_eq!(counts(&queue), (0, 0, 0, 0));
}

/// A client with many waiting copies must not delay a client with one.
#[test]
fn waiting_clients_are_served_in_turn_and_each_in_order() {
    let queue = CopyQueue::default();
    let holders = ["h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8"];
    let mut running: Vec<_> =
        holders[..COPIES_MAX].iter().map(|name| admitted(&mut ask(&queue, name))).collect();
    let mut waiting = Vec::new();
    for name in ["a", "a", "a", "b", "c", "c"] {
        waiting.push((name, ask(&queue, name)));
    }
    let mut served = Vec::new();
    while !waiting.is_empty() {
        // One copy ends, so one may begin.
        drop(running.remove(0));
        let at = waiting.iter_mut().position(|(_, asked)| {
            now(asked).is_some_and(|permit| {
                running.push(permit.expect("not refused"));
                true
            })
        });
        served.push(waiting.remove(at.expect("the next copy runs")).0);
    }
    assert_eq!(served, ["a", "b", "c", "a", "c", "a"]);
    drop(running);
    assert_eq!(counts(&queue), (0, 0, 0, 0));
}

#[test]
fn full_queues_refuse_at_once() {
    let queue = CopyQueue::default();
    let running: Vec<_> = (0..COPIES_PER_CLIENT_MAX).map(|_| admitted(&mut ask(&queue, "a"))).collect();
    let waiting: Vec<_> = (0..COPIES_WAITING_PER_CLIENT_MAX).map(|_| ask(&queue, "a")).collect();
    assert!(matches!(now(&mut ask(&queue, "a")), Some(Err(EngineError::Overloaded))));
    drop(admitted(&mut ask(&queue, "other")));
    drop(waiting);
    assert!(now(&mut ask(&queue, "a")).is_none(), "places became free");
    drop(running);
    // The bound of all clients together.
    let names: Vec<&'static str> =
        (0..COPIES_WAITING_MAX + COPIES_MAX).map(|n| &*format!("c{n}").leak()).collect();
    let mut all: Vec<_> = names.iter().map(|name| ask(&queue, name)).collect();
    let permits: Vec<_> = all.iter_mut().filter_map(now).collect();
    assert_eq!(permits.len(), COPIES_MAX);
    assert!(matches!(now(&mut ask(&queue, "late")), Some(Err(EngineError::Overloaded))));
    drop(all);
    drop(permits);
    assert_eq!(counts(&queue), (0, 0, 0, 0));
}

#[test]
fn abandoned_places_and_admissions_are_given_up() {
    let queue = CopyQueue::default();
    let mut running: Vec<_> = (0..COPIES_PER_CLIENT_MAX).map(|_| admitted(&mut ask(&queue, "a"))).collect();
    let (first, mut second, third) = (ask(&queue, "a"), ask(&queue, "a"), ask(&queue, "a"));
    drop(first);
    running.pop();
    let permit = admitted(&mut second);
    drop(permit);
    // The third copy has been admitted, but its client disconnects before it runs.
    drop(third);
    assert_eq!(counts(&queue), (COPIES_PER_CLIENT_MAX - 1, 0, 0, 1));
    drop(running);
    assert_eq!(counts(&queue), (0, 0, 0, 0));
}

/// A few huge copies must not stop all others until they end.
#[test]
fn running_copy_gives_way_after_its_turn() {
    let queue = CopyQueue::default();
    let order = Rc::new(RefCell::new(Vec::new()));
    let copy = |name: &'static str, turns: usize| {
        let (queue, order) = (queue.clone(), Rc::clone(&order));
        async move {
            let mut permit = queue.admit(name, &Arc::default()).await.expect("not refused");
            for _ in 0..turns {
                order.borrow_mut().push(name);
                permit.make_room(COPY_TURN_BYTES).await;
            }
        }
    };
    let mut copies: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
    for _ in 0..COPIES_MAX {
        copies.push(Box::pin(copy("huge", 100)));
    }
    let names: Vec<&'static str> = (0..COPIES_MAX).map(|n| &*format!("huge{n}").leak()).collect();
    for name in names {
        copies.push(Box::pin(copy(name, 100)));
    }
    copies.push(Box::pin(copy("small", 1)));
    for _ in 0..20 {
        copies.retain_mut(|copy| block_on(poll_once(copy)).is_none());
    }
    assert!(order.borrow().contains(&"small"), "the small copy waits for the huge ones");
    // A dropped copy leaves nothing behind, whether it runs or waits for its turn.
    drop(copies);
    assert_eq!(counts(&queue), (0, 0, 0, 0));
}
