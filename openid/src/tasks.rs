//! Runs blocking work on a few threads, from a bounded queue. Sign-ins and logouts have places of their own, and a network has
//! few of them.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cairn_model::client_network;
use cairn_sync::Mutex;
use futures_channel::oneshot;

use crate::error::SignInError;
use crate::limits::{
    LOGOUT_TASKS_MAX, LOGOUT_THREADS_MAX, SIGN_IN_TASKS_MAX, TASKS_OF_CLIENT_MAX, THREADS_MAX,
};

type Work = Box<dyn FnOnce() + Send>;

/// The request that a task belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// A sign-in from this network.
    SignIn(IpAddr),
    /// A logout of the provider, or of anybody who pretends to be it.
    Logout(IpAddr),
}

impl Origin {
    pub(crate) fn sign_in(client: IpAddr) -> Self {
        Self::SignIn(client_network(client))
    }

    pub(crate) fn logout(client: IpAddr) -> Self {
        Self::Logout(client_network(client))
    }

    fn is_logout(self) -> bool {
        matches!(self, Self::Logout(_))
    }
}

/// Threads that are started when there is work, and end without it.
#[derive(Clone, Default)]
pub(crate) struct Tasks(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    queue: VecDeque<(Origin, Work)>,
    /// What the threads do.
    running: Vec<Origin>,
    threads: usize,
}

impl Tasks {
    /// Runs `work` on a thread, and returns what it returns.
    ///
    /// # Errors
    /// As [`Self::submit`]; `Unavailable` if `work` panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        origin: Origin,
        work: impl FnOnce() -> Result<T, SignInError> + Send + 'static,
    ) -> Result<T, SignInError> {
        let (reply, answer) = oneshot::channel();
        // The caller may have gone.
        self.submit(origin, Box::new(move || drop(reply.send(work()))))?;
        let lost =
            |_| SignInError::Unavailable("the sign-in could not be processed; the log says why".to_owned());
        answer.await.map_err(lost)?
    }

    /// Queues work whose result nobody awaits.
    ///
    /// # Errors
    /// `Busy` if there is no place for it; `Unavailable` if no thread can be started.
    pub(crate) fn submit(&self, origin: Origin, work: Work) -> Result<(), SignInError> {
        let mut table = self.0.lock();
        if !table.has_place_for(origin) {
            return Err(SignInError::Busy);
        }
        table.queue.push_back((origin, work));
        if table.threads >= THREADS_MAX {
            return Ok(());
        }
        let own = self.clone();
        match std::thread::Builder::new().name("openid".to_owned()).spawn(move || own.work()) {
            Ok(_) => table.threads += 1,
            // The threads that run do it.
            Err(_) if table.threads > 0 => {}
            Err(error) => {
                table.queue.pop_back();
                return Err(SignInError::Unavailable(format!("no thread can be started: {error}")));
            }
        }
        Ok(())
    }

    /// Does what is queued, then ends.
    fn work(&self) {
        loop {
            let (origin, work) = {
                let mut table = self.0.lock();
                let Some(next) = table.next() else {
                    table.threads -= 1;
                    return;
                };
                table.running.push(next.0);
                next
            };
            // The panic itself is in the log. It ends this task and no other.
            let _ = catch_unwind(AssertUnwindSafe(work));
            let mut table = self.0.lock();
            let done = table.running.iter().position(|running| *running == origin);
            done.map(|index| table.running.swap_remove(index));
        }
    }
}

impl Table {
    /// Returns whether another task may wait: there is room for one of its kind, and for one of its network.
    fn has_place_for(&self, origin: Origin) -> bool {
        let all = || self.queue.iter().map(|(waiting, _)| waiting).chain(&self.running);
        let max = if origin.is_logout() { LOGOUT_TASKS_MAX } else { SIGN_IN_TASKS_MAX };
        all().filter(|other| other.is_logout() == origin.is_logout()).count() < max
            && all().filter(|other| **other == origin).count() < TASKS_OF_CLIENT_MAX
    }

    /// Takes the first task of the queue. Logouts leave threads to sign-ins, because anybody may send them. Those that are
    /// passed over are taken by the threads that have the other ones.
    fn next(&mut self) -> Option<(Origin, Work)> {
        let logouts = self.running.iter().filter(|running| running.is_logout()).count();
        let is_next = |origin: Origin| !origin.is_logout() || logouts < LOGOUT_THREADS_MAX;
        let index = self.queue.iter().position(|(origin, _)| is_next(*origin))?;
        self.queue.remove(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn sign_in(network: usize) -> Origin {
        Origin::SignIn(IpAddr::from([192, 0, 2, u8::try_from(network).expect("a few networks")]))
    }

    fn logout(network: usize) -> Origin {
        Origin::Logout(IpAddr::from([192, 0, 2, u8::try_from(network).expect("a few networks")]))
    }

    /// Returns tasks whose threads are all busy with sign-ins of a network, until what is returned as well is dropped.
    fn busy(network: usize, count: usize) -> (Tasks, impl Sized) {
        let tasks = Tasks::default();
        let (release, released) = channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let (begun, begins) = channel();
        for _ in 0..count {
            let (begun, released) = (begun.clone(), Arc::clone(&released));
            let wait = move || {
                begun.send(()).expect("the test waits");
                let _ = released.lock().recv();
            };
            tasks.submit(sign_in(network), Box::new(wait)).expect("a thread");
            begins.recv().expect("it begins");
        }
        (tasks, release)
    }

    #[test]
    fn threads_and_queue_are_bounded_and_a_panic_ends_only_its_task() {
        let (tasks, release) = busy(0, THREADS_MAX);
        tasks.submit(sign_in(1), Box::new(|| panic!("planted"))).expect("queued");
        let (done, dones) = channel();
        let others = SIGN_IN_TASKS_MAX - THREADS_MAX - 1;
        for number in 0..others {
            let done = done.clone();
            let origin = sign_in(2 + number / TASKS_OF_CLIENT_MAX);
            tasks.submit(origin, Box::new(move || done.send(()).expect("the test waits"))).expect("queued");
        }
        assert_eq!(tasks.submit(sign_in(99), Box::new(|| {})), Err(SignInError::Busy));
        assert_eq!(tasks.0.lock().threads, THREADS_MAX);
        drop(release);
        for _ in 0..others {
            dones.recv().expect("each is done");
        }
    }

    /// Regression: one network could take all places, so that the sign-ins and logouts of all others were refused.
    #[test]
    fn a_network_takes_few_places_and_sign_ins_take_none_of_logouts() {
        let (tasks, _release) = busy(0, THREADS_MAX);
        let submit = |origin| tasks.submit(origin, Box::new(|| {}));
        for _ in THREADS_MAX..TASKS_OF_CLIENT_MAX {
            assert_eq!(submit(sign_in(0)), Ok(()));
        }
        assert_eq!(submit(sign_in(0)), Err(SignInError::Busy), "what runs counts, too");
        for number in TASKS_OF_CLIENT_MAX..SIGN_IN_TASKS_MAX {
            assert_eq!(submit(sign_in(number / TASKS_OF_CLIENT_MAX)), Ok(()));
        }
        assert_eq!(submit(sign_in(99)), Err(SignInError::Busy));
        for number in 0..LOGOUT_TASKS_MAX {
            assert_eq!(submit(logout(number / TASKS_OF_CLIENT_MAX)), Ok(()));
        }
        assert_eq!(submit(logout(99)), Err(SignInError::Busy));
    }

    #[test]
    fn logouts_leave_threads_to_sign_ins() {
        let mut table = Table::default();
        for origin in [logout(1), logout(2), logout(3), sign_in(4)] {
            table.queue.push_back((origin, Box::new(|| {})));
        }
        let mut begin = || {
            let origin = table.next().map(|(origin, _)| origin);
            table.running.extend(origin);
            origin
        };
        let begun: Vec<_> = (0..LOGOUT_THREADS_MAX + 1).map(|_| begin()).collect();
        assert_eq!(begun, [Some(logout(1)), Some(logout(2)), Some(sign_in(4))]);
        assert_eq!(begin(), None, "a thread with a logout takes it");
        table.running.remove(0);
        assert_eq!(table.next().map(|(origin, _)| origin), Some(logout(3)));
    }
}
