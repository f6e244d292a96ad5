//! The threads of a run: one connection per thread with blocking reads, or many connections per thread with `epoll`.
//!
//! Large transfers get a thread per connection, because most of their cost is copying. Small requests share a few threads: a
//! blocking read costs a context switch per request, about a third of the generator's cost of such a request, which the server
//! under test would lose. A shared thread reads a response only when it is complete in the buffers (see
//! [`Connection::is_ready`]), so that a slow response does not delay other connections.
//!
//! [`Connection::is_ready`]: crate::http::connection::Connection::is_ready

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::thread::set_current_timer_slack;

use super::connection_loop::{Begun, ConnectionLoop};
use super::shared::Shared;
use crate::failure::Failure;
use crate::measure::statistics::{Statistics, Window};

/// The interval at which a shared thread checks for timeouts.
const TIMEOUT_CHECK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The delay with which the kernel may wake a thread of an open loop.
const TIMER_SLACK_NANOSECONDS: NonZeroU64 = NonZeroU64::new(1_000).expect("not zero");

/// Runs the connections of one thread to the end of the run.
pub(crate) fn work(shared: &Shared, numbers: impl Iterator<Item = usize>) -> Statistics {
    let mut statistics = Statistics::default();
    let mut loops: Vec<ConnectionLoop<'_>> =
        numbers.map(|number| ConnectionLoop::new(shared, number, &mut statistics)).collect();
    shared.barrier.wait();
    shared.barrier.wait();
    let window = *shared.window.get().expect("set before the second wait");
    if shared.arrivals.is_some() {
        // Requests are sent when they are due, not up to 50 us later.
        let _ = set_current_timer_slack(Some(TIMER_SLACK_NANOSECONDS));
    }
    match &mut loops[..] {
        [connection_loop] => loop {
            match connection_loop.begin(&mut statistics, &window) {
                Begun::Sent => connection_loop.finish(&mut statistics, &window),
                Begun::NotBefore(due) => rest_until(due),
                Begun::Ended => break,
            }
        },
        loops => {
            let timeout = shared.plan.timeout;
            let idle = VecDeque::with_capacity(loops.len());
            MultiplexedConnections { loops, statistics: &mut statistics, window, timeout, idle }
                .work()
                .expect("epoll works on sockets");
        }
    }
    statistics
}

#[expect(clippy::disallowed_methods, reason = "a plain thread, not an executor")]
fn rest_until(due: Instant) {
    std::thread::sleep(due.saturating_duration_since(Instant::now()));
}

/// Several connections on one thread, multiplexed with `epoll`.
struct MultiplexedConnections<'a, 'b> {
    loops: &'b mut [ConnectionLoop<'a>],
    statistics: &'b mut Statistics,
    window: Window,
    timeout: Duration,
    /// Open loop: connections that wait until their next request is due, in the order of these times.
    idle: VecDeque<(Instant, usize)>,
}

impl MultiplexedConnections<'_, '_> {
    fn work(&mut self) -> Result<(), Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (index, connection_loop) in self.loops.iter().enumerate() {
            register(&epoll, connection_loop, index)?;
        }
        let mut active = 0;
        for index in 0..self.loops.len() {
            active += usize::from(self.begin(&epoll, index)?);
        }
        let mut events = Vec::with_capacity(self.loops.len());
        let mut checked = Instant::now();
        while active > 0 {
            match epoll::wait(&epoll, spare_capacity(&mut events), Some(&self.wait_limit())) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            for event in events.drain(..) {
                active -= usize::from(self.advance(&epoll, crate::units::index(event.data.u64()))?);
            }
            while let Some((_, index)) = self.idle.pop_front_if(|(due, _)| *due <= Instant::now()) {
                active -= usize::from(!self.begin(&epoll, index)?);
            }
            if checked.elapsed() >= Duration::from_secs(1) {
                checked = Instant::now();
                for index in 0..self.loops.len() {
                    active -= usize::from(self.expire(&epoll, index)?);
                }
            }
        }
        Ok(())
    }

    /// Returns how long to wait for responses: until a request is due, or a check for timeouts.
    fn wait_limit(&self) -> Timespec {
        let Some((due, _)) = self.idle.front() else { return TIMEOUT_CHECK };
        let left = due.saturating_duration_since(Instant::now()).min(Duration::from_secs(1));
        Timespec::try_from(left).unwrap_or(TIMEOUT_CHECK)
    }

    /// Handles a readable connection. Returns `true` if it has sent its last request.
    fn advance(&mut self, epoll: &OwnedFd, index: usize) -> Result<bool, Errno> {
        let connection_loop = &mut self.loops[index];
        if connection_loop.waiting_since().is_none() {
            // The server closed it between requests, or after the last one.
            connection_loop.connection = None;
            return Ok(false);
        }
        if !connection_loop.is_ready(self.statistics, &self.window) {
            return Ok(false);
        }
        connection_loop.finish(self.statistics, &self.window);
        self.begin(epoll, index).map(|more| !more)
    }

    /// Fails a request that has timed out. Returns `true` if it was the last one of its connection.
    fn expire(&mut self, epoll: &OwnedFd, index: usize) -> Result<bool, Errno> {
        let connection_loop = &mut self.loops[index];
        if connection_loop.waiting_since().is_none_or(|since| since.elapsed() < self.timeout) {
            return Ok(false);
        }
        connection_loop.fail(Failure::Io(std::io::ErrorKind::TimedOut), self.statistics, &self.window);
        self.begin(epoll, index).map(|more| !more)
    }

    /// Sends the next request, or makes the connection idle until one is due. Registers the connection if it is new. Returns
    /// `false` at the end of the run.
    fn begin(&mut self, epoll: &OwnedFd, index: usize) -> Result<bool, Errno> {
        let connection_loop = &mut self.loops[index];
        let had = connection_loop.connection.is_some();
        let reconnects = self.statistics.reconnects;
        let begun = connection_loop.begin(self.statistics, &self.window);
        if !had || self.statistics.reconnects != reconnects {
            register(epoll, connection_loop, index)?;
        }
        if let Begun::NotBefore(due) = begun {
            self.idle.push_back((due, index));
        }
        Ok(begun != Begun::Ended)
    }
}

/// Adds a connection to the set. Closing its socket removes it.
fn register(epoll: &OwnedFd, connection_loop: &ConnectionLoop<'_>, index: usize) -> Result<(), Errno> {
    match &connection_loop.connection {
        Some(connection) => {
            let data = epoll::EventData::new_u64(index as u64);
            epoll::add(epoll, connection.socket(), data, epoll::EventFlags::IN)
        }
        None => Ok(()),
    }
}
