//! The call that the current thread makes: its target, the judged addresses, and how far it has come.
//!
//! ureq asks our resolver, its pool and our connectors one after the other, all in the thread that makes the request, but gives
//! the pool no way to ask for which request a connection would be used. This is where they find it. Without a call there is no
//! judged address: then nothing is connected, and no pooled connection is used.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::attempt::Failure;
use super::probe::{Step, StepReport};
use crate::destination::TargetUrl;

thread_local! {
    static CURRENT: RefCell<Option<Call>> = const { RefCell::new(None) };
}

/// Numbers calls, so that a connection knows which one made it.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// One request.
#[derive(Debug)]
pub(super) struct Call {
    id: u64,
    /// The target.
    pub(super) target: TargetUrl,
    /// Whether pooled connections are left alone.
    only_new_connection: bool,
    /// The addresses that were judged for this request.
    pub(super) judged: Vec<SocketAddr>,
    /// Whether a connection was made. Otherwise a pooled one is used.
    pub(super) has_connected: bool,
    /// The failure of the request, if our own code knows it better than ureq.
    pub(super) failure: Option<Failure>,
    /// The current step.
    pub(super) step: Step,
    step_began: Instant,
    /// The steps that are done, if anybody wants to know.
    pub(super) reports: Option<Vec<StepReport>>,
}

impl Call {
    /// A call that may use pooled connections.
    pub(super) fn new(target: &TargetUrl) -> Self {
        Self {
            id: CALLS.fetch_add(1, Ordering::Relaxed),
            target: target.clone(),
            only_new_connection: false,
            judged: Vec::new(),
            has_connected: false,
            failure: None,
            step: Step::Resolve,
            step_began: Instant::now(),
            reports: None,
        }
    }

    /// A call that makes a connection of its own.
    pub(super) fn with_new_connection(target: &TargetUrl) -> Self {
        Self { only_new_connection: true, ..Self::new(target) }
    }

    /// A call that makes a connection of its own and reports its steps.
    pub(super) fn reporting(target: &TargetUrl) -> Self {
        Self { reports: Some(Vec::new()), ..Self::with_new_connection(target) }
    }

    /// Begins a step.
    pub(super) fn begin(&mut self, step: Step) {
        (self.step, self.step_began) = (step, Instant::now());
    }

    /// Ends the current step. The detail is only made if it is wanted.
    pub(super) fn end(&mut self, ok: bool, detail: impl FnOnce() -> String) {
        if let Some(reports) = &mut self.reports {
            let (step, duration) = (self.step, self.step_began.elapsed());
            reports.push(StepReport { step, ok, detail: detail(), duration });
        }
    }

    /// The number that marks connections of this call.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Returns whether the call may use a connection to this address that another call made.
    fn may_reuse(&self, peer: SocketAddr) -> bool {
        !self.only_new_connection && self.judged.contains(&peer)
    }
}

/// Makes a call in the current thread, and returns it with the result.
pub(super) fn run<R>(call: Call, request: impl FnOnce() -> R) -> (R, Call) {
    let id = call.id;
    CURRENT.set(Some(call));
    let result = request();
    let call = CURRENT.take().filter(|call| call.id == id);
    (result, call.expect("a request makes no other calls, and this thread runs only the request"))
}

/// Does something with the current call; `None` if there is none.
pub(super) fn with<R>(action: impl FnOnce(&mut Call) -> R) -> Option<R> {
    CURRENT.with_borrow_mut(|call| call.as_mut().map(action))
}

/// Returns whether the current call may use a connection: one that it made, or one to an address that was judged for it.
pub(super) fn may_use(peer: SocketAddr, made_by: u64) -> bool {
    with(|call| call.id == made_by || call.may_reuse(peer)).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::{Call, TargetUrl, may_use, run, with};

    #[test]
    fn a_pooled_connection_is_used_only_if_its_address_was_judged_for_the_call() {
        let target = TargetUrl::parse("https://example.com/").expect("a URL");
        let [judged, other] =
            ["192.0.2.1:443", "192.0.2.2:443"].map(|text| text.parse().expect("an address"));
        assert!(!may_use(judged, 0), "without a call");
        let own = Call::with_new_connection(&target);
        let id = own.id();
        run(own, || {
            with(|call| call.judged.push(judged));
            assert!(may_use(judged, id) && !may_use(judged, id + 1_000_000));
        });
        run(Call::new(&target), || {
            with(|call| call.judged.push(judged));
            assert!(may_use(judged, u64::MAX) && !may_use(other, u64::MAX));
        });
        assert!(with(|_| ()).is_none(), "the call is over");
    }
}
