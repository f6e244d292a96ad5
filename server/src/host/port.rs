//! Checks whether this process could listen on a port.
//!
//! Executors share a port with `SO_REUSEPORT`, which would hide that another process uses it.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};

use super::port_holder::{self, Holder};

/// A port on which this process cannot listen.
#[derive(Debug)]
pub struct PortError {
    /// The address, as the user knows it.
    shown: String,
    /// The place where the address is configured: a variable, an option or a key of the file.
    setting: String,
    error: io::Error,
    /// The process that uses the port, if it is in use.
    holder: Holder,
}

impl PortError {
    /// Returns the error of listening on `address`.
    pub(crate) fn new(address: SocketAddr, setting: String, error: io::Error) -> Self {
        let is_taken = error.kind() == ErrorKind::AddrInUse;
        let holder = if is_taken { port_holder::find(address) } else { Holder::Unknown };
        Self { shown: address.to_string(), setting, error, holder }
    }

    /// Shows the address as it is configured, for example with a host name.
    pub(crate) fn shown_as(self, shown: String) -> Self {
        Self { shown, ..self }
    }

    /// Returns whether another process uses the port.
    pub(crate) fn is_in_use(&self) -> bool {
        self.error.kind() == ErrorKind::AddrInUse
    }

    /// Returns whether a running process was found that uses the port.
    pub(crate) fn has_known_holder(&self) -> bool {
        self.holder != Holder::Unknown
    }

    /// Returns what is wrong.
    pub(crate) fn message(&self) -> String {
        let Self { shown, error, .. } = self;
        match &self.holder {
            Holder::Unknown => format!("cannot listen on {shown}: {error}"),
            known => format!("cannot listen on {shown}: {error}; {known} uses it"),
        }
    }

    /// Returns how to fix it.
    pub(crate) fn fix(&self) -> String {
        let setting = &self.setting;
        match self.error.kind() {
            ErrorKind::AddrInUse => {
                format!("stop the other program (`ss -ltnp` shows it), or set {setting} to another port")
            }
            ErrorKind::AddrNotAvailable => {
                format!("set {setting} to an address of this host, or to 0.0.0.0")
            }
            ErrorKind::PermissionDenied => {
                format!("set {setting} to a port of 1024 or higher, or give the service CAP_NET_BIND_SERVICE")
            }
            _ => format!("set {setting} to another address"),
        }
    }
}

impl fmt::Display for PortError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}\n  fix: {}", self.message(), self.fix())
    }
}

/// Listens on the address for a moment, without sharing the port.
///
/// # Errors
/// The system's error if that is not possible.
pub(crate) fn try_listen(address: SocketAddr) -> io::Result<()> {
    if address.port() == 0 {
        return Ok(());
    }
    TcpListener::bind(address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_refused_with_its_holder_and_a_fix() {
        let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = taken.local_addr().unwrap();
        let error = PortError::new(address, "SERVICE_S3_BIND".to_owned(), try_listen(address).unwrap_err());
        assert!(error.is_in_use() && error.has_known_holder());
        let text = error.to_string();
        for part in [
            address.to_string(),
            format!("(process {})", std::process::id()),
            "set SERVICE_S3_BIND".to_owned(),
        ] {
            assert!(text.contains(&part), "{part} is missing: {text}");
        }
    }

    /// Tries several ports, because another process may take one right after it was closed, as happened on a busy machine.
    #[test]
    fn a_closed_port_is_accepted() {
        let closed = || TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
        assert!((0..20).any(|_| try_listen(closed()).is_ok()));
    }
}
