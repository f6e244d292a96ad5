//! TCP connections to judged addresses, for ureq.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use std::{fmt, io};

use rustix::net::RecvFlags;
use ureq::unversioned::transport::time::Duration as UreqDuration;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, RustlsConnector, ShutdownHandle,
    Transport,
};
use ureq::{Error, Timeout};

use super::call;
use super::probe::Step;
use crate::limits::{ADDRESSES_MAX, INPUT_BUFFER_BYTES, OUTPUT_BUFFER_BYTES, UNSENT_BYTES_MAX};

/// Opens connections to the judged addresses of the current call, and to nothing else.
#[derive(Debug)]
pub(super) struct JudgedConnector;

impl Connector for JudgedConnector {
    type Out = TcpTransport;

    fn connect(&self, details: &ConnectionDetails<'_>, _: Option<()>) -> Result<Option<TcpTransport>, Error> {
        let begun = call::with(|call| {
            call.begin(Step::Connect);
            call.has_connected = true;
            let tried: Vec<SocketAddr> = call.judged.iter().copied().take(ADDRESSES_MAX).collect();
            (tried, call.id())
        });
        let Some((tried, made_by)) = begun else {
            return Err(Error::ConnectionFailed);
        };
        let (stream, peer) = connect_to_one(&tried, details.timeout)?;
        call::with(|call| {
            call.end(true, || format!("connected to {peer}"));
            call.begin(Step::Response);
        });
        let stream = Arc::new(Stream(stream));
        let handle: Weak<dyn ShutdownHandle> =
            Arc::downgrade(&(Arc::clone(&stream) as Arc<dyn ShutdownHandle>));
        (details.register_shutdown)(handle)?;
        let buffers = LazyBuffers::new(INPUT_BUFFER_BYTES, OUTPUT_BUFFER_BYTES);
        let (unsent, read_limit, write_limit) = (Vec::new(), None, None);
        Ok(Some(TcpTransport { stream, peer, made_by, buffers, unsent, read_limit, write_limit }))
    }
}

/// Tries the addresses one after the other. Each gets an equal share of the time that is left.
fn connect_to_one(judged: &[SocketAddr], timeout: NextTimeout) -> Result<(TcpStream, SocketAddr), Error> {
    let end = match timeout.after {
        UreqDuration::Exact(left) => Some(Instant::now() + left),
        UreqDuration::NotHappening => None,
    };
    let mut failed = Error::ConnectionFailed;
    for (number, address) in judged.iter().enumerate() {
        let shares = u32::try_from(judged.len() - number).unwrap_or(u32::MAX);
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(Error::Timeout(timeout.reason));
        }
        match connect_to(*address, left.map(|left| left / shares)) {
            Ok(stream) => return Ok((stream, *address)),
            Err(error) if error.kind() == ErrorKind::TimedOut => failed = Error::Timeout(Timeout::Connect),
            Err(error) => failed = Error::Io(io::Error::new(error.kind(), format!("{address}: {error}"))),
        }
    }
    Err(failed)
}

/// Connects to an address, and makes sure that it is the one at the other end.
fn connect_to(address: SocketAddr, time_limit: Option<Duration>) -> io::Result<TcpStream> {
    // A limit of zero would be an error.
    let stream = match time_limit {
        Some(limit) => TcpStream::connect_timeout(&address, limit.max(Duration::from_millis(1)))?,
        None => TcpStream::connect(address)?,
    };
    let peer = stream.peer_addr()?;
    if (peer.ip(), peer.port()) != (address.ip(), address.port()) {
        return Err(io::Error::other(format!("the connection is to {peer} instead")));
    }
    // A connection to a port of this host that nobody listens at can be made to itself.
    if stream.local_addr()? == peer {
        return Err(io::Error::from(ErrorKind::ConnectionRefused));
    }
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A socket that the end of the client interrupts.
#[derive(Debug)]
struct Stream(TcpStream);

impl ShutdownHandle for Stream {
    fn shutdown(&self) {
        // It fails only if the connection is closed already.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// A TCP connection.
///
/// ureq's own one sends head and body in two packets and sets time limits anew for every read and write. This one sends what
/// was written when an answer is awaited. It also knows to which address it is connected.
pub(super) struct TcpTransport {
    stream: Arc<Stream>,
    peer: SocketAddr,
    made_by: u64,
    buffers: LazyBuffers,
    unsent: Vec<u8>,
    read_limit: Option<Duration>,
    write_limit: Option<Duration>,
}

impl TcpTransport {
    /// Sends what was written.
    fn send(&mut self, timeout: NextTimeout) -> Result<(), Error> {
        let limit = left(timeout)?;
        if let Some(limit) = new_limit(self.write_limit, limit) {
            self.stream.0.set_write_timeout(Some(limit))?;
            self.write_limit = Some(limit);
        }
        let sent = (&self.stream.0).write_all(&self.unsent);
        self.unsent.clear();
        sent.map_err(|error| io_failure(error, timeout))
    }
}

impl Transport for TcpTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.unsent.extend_from_slice(&self.buffers.output()[..amount]);
        if self.unsent.len() > UNSENT_BYTES_MAX { self.send(timeout.for_write()) } else { Ok(()) }
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        if !self.unsent.is_empty() {
            self.send(timeout.for_write())?;
        }
        let timeout = timeout.for_read();
        let limit = left(timeout)?;
        if let Some(limit) = new_limit(self.read_limit, limit) {
            self.stream.0.set_read_timeout(Some(limit))?;
            self.read_limit = Some(limit);
        }
        let input = self.buffers.input_append_buf();
        let amount = loop {
            match (&self.stream.0).read(input) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => break result.map_err(|error| io_failure(error, timeout))?,
            }
        };
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    /// Returns whether the current call may use the connection, and the receiver has neither closed it nor sent anything.
    fn is_open(&mut self) -> bool {
        if !call::may_use(self.peer, self.made_by) || !self.unsent.is_empty() {
            return false;
        }
        let seen =
            rustix::net::recv(&self.stream.0, &mut [0_u8; 1][..], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        seen.is_err_and(|error| error == rustix::io::Errno::AGAIN)
    }
}

impl fmt::Debug for TcpTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TcpTransport").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// The time that is left; an error if there is none. `None` means no limit.
fn left(timeout: NextTimeout) -> Result<Option<Duration>, Error> {
    match timeout.after {
        UreqDuration::Exact(left) if left.is_zero() => Err(Error::Timeout(timeout.reason)),
        UreqDuration::Exact(left) => Ok(Some(left)),
        UreqDuration::NotHappening => Ok(None),
    }
}

/// Returns the limit to set, or `None` if the present one is longer than what is wanted, by at most a sixteenth.
fn new_limit(present: Option<Duration>, wanted: Option<Duration>) -> Option<Duration> {
    let wanted = wanted?;
    let is_close = present.is_some_and(|present| present >= wanted && present - wanted <= wanted / 16);
    // A limit below a microsecond would mean none.
    (!is_close).then(|| wanted.max(Duration::from_millis(1)))
}

fn io_failure(error: io::Error, timeout: NextTimeout) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Error::Timeout(timeout.reason),
        _ => Error::Io(error),
    }
}

/// The TLS of both agents: one configuration, so that the certificate authorities are read once and sessions are resumed.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedTls(Arc<RustlsConnector>);

impl<In: Transport> Connector<In> for SharedTls {
    type Out = <RustlsConnector as Connector<In>>::Out;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        if details.needs_tls() {
            call::with(|call| call.begin(Step::Tls));
        }
        let connected = self.0.connect(details, chained)?;
        if details.needs_tls() {
            call::with(|call| {
                call.end(true, || format!("the certificate is valid for {}", call_host(details)));
                call.begin(Step::Response);
            });
        }
        Ok(connected)
    }
}

fn call_host(details: &ConnectionDetails<'_>) -> String {
    details.uri.host().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Duration, new_limit};

    #[test]
    fn a_time_limit_is_never_shorter_and_hardly_longer_than_wanted() {
        let ms = Duration::from_millis;
        assert_eq!(new_limit(None, None), None);
        assert_eq!(new_limit(None, Some(ms(100))), Some(ms(100)));
        assert_eq!(new_limit(Some(ms(100)), Some(ms(100))), None);
        assert_eq!(new_limit(Some(ms(106)), Some(ms(100))), None);
        assert_eq!(new_limit(Some(ms(107)), Some(ms(100))), Some(ms(100)));
        assert_eq!(new_limit(Some(ms(99)), Some(ms(100))), Some(ms(100)));
        assert_eq!(new_limit(None, Some(Duration::from_nanos(1))), Some(ms(1)));
    }
}
