//! The threads of a run: one connection per thread with blocking reads, or many connections per thread with `epoll`.
//!
//! Large transfers get a thread per connection, because most of their cost is copying. Small requests share a few threads: a
//! blocking read costs a context switch per request, about a third of the generator's cost of such a request, which the server
//! under test would lose. A shared thread reads a response only when it is complete in the buffers (see
//! [`Connection::is_ready`]), so that a slow response does not delay other connections.
//!
//! [`Connection::is_ready`]: crate::http::connection::Connection::is_ready

use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::connection_loop::ConnectionLoop;
use super::shared::Shared;
use crate::failure::Failure;
use crate::measure::statistics::{Statistics, Window};

/// How often a shared thread checks for timeouts.
const TIMEOUT_CHECK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Runs the connections of one thread to the end of the run.
pub(crate) fn work(shared: &Shared, numbers: impl Iterator<Item = usize>) -> Statistics {
    let mut statistics = Statistics::default();
    let mut loops: Vec<ConnectionLoop<'_>> =
        numbers.map(|number| ConnectionLoop::new(shared, number, &mut statistics)).collect();
    shared.barrier.wait();
    shared.barrier.wait();
    let window = *shared.window.get().expect("set before the second wait");
    match &mut loops[..] {
        [connection_loop] => {
            while connection_loop.begin(&mut statistics, &window) {
                connection_loop.finish(&mut statistics, &window);
            }
        }
        loops => {
            let timeout = shared.plan.timeout;
            MultiplexedConnections { loops, statistics: &mut statistics, window, timeout }
                .work()
                .expect("epoll works on sockets");
        }
    }
    statistics
}

/// Several connections on one thread, multiplexed with `epoll`.
struct MultiplexedConnections<'a, 'b> {
    loops: &'b mut [ConnectionLoop<'a>],
    statistics: &'b mut Statistics,
    window: Window,
    timeout: Duration,
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
            match epoll::wait(&epoll, spare_capacity(&mut events), Some(&TIMEOUT_CHECK)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            for event in events.drain(..) {
                active -= usize::from(self.advance(&epoll, crate::units::index(event.data.u64()))?);
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

    /// Sends the next request, and registers the connection if it is new.
    fn begin(&mut self, epoll: &OwnedFd, index: usize) -> Result<bool, Errno> {
        let connection_loop = &mut self.loops[index];
        let had = connection_loop.connection.is_some();
        let reconnects = self.statistics.reconnects;
        let more = connection_loop.begin(self.statistics, &self.window);
        if !had || self.statistics.reconnects != reconnects {
            register(epoll, connection_loop, index)?;
        }
        Ok(more)
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
