//! Notifies the service manager, such as systemd: ready, alive, reloading, stopping, and a status line.
//!
//! Implements the protocol of sd_notify(3): datagrams to the socket that `NOTIFY_SOCKET` names, by path or, after an `@`, by
//! abstract name. If the variable is not set, nothing is sent. The service does not depend on it: a manager that does not
//! listen causes a warning in the log and delays the caller by at most [`SEND_TIMEOUT`]. Nothing here runs on an executor.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::config::Environment;

/// Names the manager's socket.
const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";
/// The time for which sending may block if the manager's queue is full.
const SEND_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum length of a status. systemd drops datagrams of more than 4096 bytes, and a status has other fields beside it.
const STATUS_BYTES_MAX: usize = 2048;
/// Time that a shutdown may take beyond the grace period: closing the store, and a slow host.
const STOP_MARGIN: Duration = Duration::from_secs(15);
const MICROSECONDS_PER_SECOND: i64 = 1_000_000;
const NANOSECONDS_PER_MICROSECOND: i64 = 1000;

/// The connection to the service manager, if there is one. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServiceManager {
    socket: Option<Arc<UnixDatagram>>,
    /// The status to restore after a reload.
    ready: Arc<OnceLock<String>>,
}

impl ServiceManager {
    /// Connects to the manager that the environment names.
    pub(crate) fn of(environment: &Environment) -> Self {
        let Some(address) = environment.get(SOCKET_VARIABLE) else { return Self::default() };
        match connect(address) {
            Ok(socket) => Self { socket: Some(Arc::new(socket)), ready: Arc::default() },
            Err(error) => {
                tracing::warn!(target: "service", %error, "{SOCKET_VARIABLE} cannot be used: the service manager is not notified");
                Self::default()
            }
        }
    }

    /// Sends a line that describes what the service is doing.
    pub(crate) fn status(&self, text: &str) {
        self.send(&status_line(text));
    }

    /// Reports that requests are accepted.
    pub(crate) fn ready(&self, text: &str) {
        let line = status_line(text);
        self.send(&format!("READY=1\n{line}"));
        // Fails only if it is already set, and the service becomes ready once.
        let _ = self.ready.set(line);
    }

    /// Reports that the drain begins. Asks the manager for the time that it may take, whatever the manager's own limit.
    pub(crate) fn stopping(&self, grace: Duration) {
        let (seconds, timeout) = (grace.as_secs(), grace.saturating_add(STOP_MARGIN).as_micros());
        let line = status_line(&format!("Draining: requests in flight have {seconds} s to finish"));
        self.send(&format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={timeout}\n{line}"));
    }

    /// Reports that every executor runs, for the manager's watchdog.
    pub(crate) fn alive(&self) {
        self.send("WATCHDOG=1");
    }

    /// Runs `work`, the reload, and reports its beginning and its end.
    pub(crate) fn reload<T>(&self, work: impl FnOnce() -> T) -> T {
        // The time distinguishes this reload from an earlier one.
        let line = status_line("Reloading");
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={}\n{line}", monotonic_microseconds()));
        let done = work();
        let line = self.ready.get().map_or("", String::as_str);
        self.send(&format!("READY=1\n{line}"));
        done
    }

    fn send(&self, message: &str) {
        let Some(socket) = &self.socket else { return };
        if let Err(error) = socket.send(message.as_bytes()) {
            tracing::warn!(target: "service", %error, "the service manager could not be notified");
        }
    }
}

fn connect(address: &OsStr) -> io::Result<UnixDatagram> {
    let address = match address.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(Path::new(address))?,
        _ => {
            let text = "expected an absolute path, or an abstract name that begins with @";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_write_timeout(Some(SEND_TIMEOUT))?;
    Ok(socket)
}

/// Returns the `STATUS=` line. Control characters are replaced, so that the text cannot add another line to the message.
fn status_line(text: &str) -> String {
    let end = text.floor_char_boundary(STATUS_BYTES_MAX);
    let text: String =
        text[..end].chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    format!("STATUS={text}")
}

/// The clock that systemd uses to order reloads.
fn monotonic_microseconds() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.saturating_mul(MICROSECONDS_PER_SECOND) + now.tv_nsec / NANOSECONDS_PER_MICROSECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A manager's socket, and the connection to it.
    fn manager(socket: UnixDatagram, address: &str) -> (UnixDatagram, ServiceManager) {
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        (socket, ServiceManager::of(&[(SOCKET_VARIABLE, address)].into_iter().collect()))
    }

    fn received(manager: &UnixDatagram) -> Vec<String> {
        let mut buffer = [0; 4096];
        let count = manager.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..count]).lines().map(str::to_owned).collect()
    }

    #[test]
    fn ready_reload_and_stop_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let (manager, supervisor) = manager(UnixDatagram::bind(&path).unwrap(), path.to_str().unwrap());
        supervisor.ready("Ready on 7600");
        assert_eq!(received(&manager), ["READY=1", "STATUS=Ready on 7600"]);
        let before = monotonic_microseconds();
        let announced = supervisor.reload(|| received(&manager));
        let [reloading, time, status] = &announced[..] else { panic!("{announced:?}") };
        let time: i64 = time.strip_prefix("MONOTONIC_USEC=").unwrap().parse().unwrap();
        assert!(reloading == "RELOADING=1" && status == "STATUS=Reloading");
        assert!(before <= time && time <= monotonic_microseconds());
        assert_eq!(received(&manager), ["READY=1", "STATUS=Ready on 7600"]);
        supervisor.stopping(Duration::from_secs(300));
        let [stopping, extend, status] = &received(&manager)[..] else { panic!() };
        assert_eq!((stopping.as_str(), extend.as_str()), ("STOPPING=1", "EXTEND_TIMEOUT_USEC=315000000"));
        assert!(status.starts_with("STATUS=Draining") && status.contains("300 s"));
    }

    #[test]
    fn an_abstract_name_is_reached() {
        let name = format!("cairn-supervisor-test-{}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let (manager, supervisor) = manager(socket, &format!("@{name}"));
        supervisor.status("Opening the store");
        assert_eq!(received(&manager), ["STATUS=Opening the store"]);
    }

    /// A path in an error may hold any character.
    #[test]
    fn a_status_cannot_inject_another_field() {
        assert_eq!(status_line("no folder /a\nREADY=1\r\0"), "STATUS=no folder /a READY=1  ");
        assert!(status_line(&"é".repeat(STATUS_BYTES_MAX)).len() <= "STATUS=".len() + STATUS_BYTES_MAX);
    }

    #[test]
    fn an_unreachable_manager_is_ignored() {
        for address in ["relative", "vsock:2:1234", "/nonexistent/notify", "@", ""] {
            let supervisor = ServiceManager::of(&[(SOCKET_VARIABLE, address)].into_iter().collect());
            supervisor.ready("Ready");
            assert_eq!(supervisor.reload(|| 7), 7);
        }
    }
}
