//! The threads of a run: one connection each with blocking reads, or many connections each by `epoll`.
//!
//! Large transfers get a thread per connection, for there the copying is the work. Small requests share a few threads:
//! a blocking read costs a switch between threads per request, which is about a third of what such a request costs the
//! generator, and that third would be taken from the server under test. A shared thread reads a response only when it is
//! whole in the buffers (see [`Connection::is_ready`]), so that a slow one does not hold up its neighbours.
//!
//! [`Connection::is_ready`]: crate::connection::Connection::is_ready

use std::sync::atomic::AtomicU64;
use std::sync::{Barrier, OnceLock};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use crate::content::Content;
use crate::failure::Failure;
use crate::lane::Lane;
use crate::plan::Plan;
use crate::request::PresignedHeads;
use crate::tally::{Live, Tally, Window};

/// How often a shared thread looks for requests that have waited too long.
const TIMEOUT_CHECK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// What all connections of a run share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) plan: Plan,
    pub(crate) content: Content,
    pub(crate) prepared: Option<PresignedHeads>,
    /// Counts keys off over all connections.
    pub(crate) tickets: AtomicU64,
    /// Counts requests off, for `--requests`.
    pub(crate) requests: AtomicU64,
    pub(crate) live: Vec<Live>,
    /// Waited on twice: when all connections are open, and when the window is set.
    pub(crate) barrier: Barrier,
    pub(crate) window: OnceLock<Window>,
}

/// Runs the connections of one thread to the end of the run.
pub(crate) fn work(shared: &Shared, numbers: impl Iterator<Item = usize>) -> Tally {
    let mut tally = Tally::default();
    let mut lanes: Vec<Lane<'_>> = numbers.map(|number| Lane::new(shared, number, &mut tally)).collect();
    shared.barrier.wait();
    shared.barrier.wait();
    let window = *shared.window.get().expect("set before the second wait");
    match &mut lanes[..] {
        [lane] => {
            while lane.begin(&mut tally, &window) {
                lane.finish(&mut tally, &window);
            }
        }
        lanes => {
            let timeout = shared.plan.timeout;
            Together { lanes, tally: &mut tally, window, timeout }.work().expect("epoll works on sockets");
        }
    }
    tally
}

/// Several lanes on one thread.
struct Together<'a, 'b> {
    lanes: &'b mut [Lane<'a>],
    tally: &'b mut Tally,
    window: Window,
    timeout: Duration,
}

impl Together<'_, '_> {
    fn work(&mut self) -> Result<(), Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (place, lane) in self.lanes.iter().enumerate() {
            register(&epoll, lane, place)?;
        }
        let mut active = 0;
        for place in 0..self.lanes.len() {
            active += usize::from(self.begin(&epoll, place)?);
        }
        let mut events = Vec::with_capacity(self.lanes.len());
        let mut checked = Instant::now();
        while active > 0 {
            match epoll::wait(&epoll, spare_capacity(&mut events), Some(&TIMEOUT_CHECK)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            for event in events.drain(..) {
                active -= usize::from(self.advance(&epoll, crate::units::index(event.data.u64()))?);
            }
            if checked.elapsed() >= Duration::from_secs(1) {
                checked = Instant::now();
                for place in 0..self.lanes.len() {
                    active -= usize::from(self.expire(&epoll, place)?);
                }
            }
        }
        Ok(())
    }

    /// Goes on with a lane that has something to read; `true` if that was its last request.
    fn advance(&mut self, epoll: &OwnedFd, place: usize) -> Result<bool, Errno> {
        let lane = &mut self.lanes[place];
        if lane.waiting_since().is_none() {
            // Closed by the server between requests, or after the last one.
            lane.connection = None;
            return Ok(false);
        }
        if !lane.is_ready(self.tally, &self.window) {
            return Ok(false);
        }
        lane.finish(self.tally, &self.window);
        self.begin(epoll, place).map(|more| !more)
    }

    /// Gives up a request that has waited too long; `true` if that was the lane's last.
    fn expire(&mut self, epoll: &OwnedFd, place: usize) -> Result<bool, Errno> {
        let lane = &mut self.lanes[place];
        if lane.waiting_since().is_none_or(|since| since.elapsed() < self.timeout) {
            return Ok(false);
        }
        lane.fail(Failure::Io(std::io::ErrorKind::TimedOut), self.tally, &self.window);
        self.begin(epoll, place).map(|more| !more)
    }

    /// Sends a lane's next request, and watches its connection if that is a new one.
    fn begin(&mut self, epoll: &OwnedFd, place: usize) -> Result<bool, Errno> {
        let lane = &mut self.lanes[place];
        let had = lane.connection.is_some();
        let reconnects = self.tally.reconnects;
        let more = lane.begin(self.tally, &self.window);
        if !had || self.tally.reconnects != reconnects {
            register(epoll, lane, place)?;
        }
        Ok(more)
    }
}

/// A socket leaves the set by itself when it is closed.
fn register(epoll: &OwnedFd, lane: &Lane<'_>, place: usize) -> Result<(), Errno> {
    match &lane.connection {
        Some(connection) => {
            let data = epoll::EventData::new_u64(place as u64);
            epoll::add(epoll, connection.socket(), data, epoll::EventFlags::IN)
        }
        None => Ok(()),
    }
}
