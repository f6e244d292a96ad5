//! Finds the process that listens on a port (proc(5)).
//!
//! `/proc/net/tcp` has one line for each socket, with its address, user and inode. The files that a process has open name the
//! same inode. Only root can see the files of other users' processes; then the user is all that is known. A socket of a
//! killed process, which the kernel has not destroyed yet, belongs to no process.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// The process that listens on a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Holder {
    /// A running process.
    Process { name: String, id: u32 },
    /// A process of another user.
    User(u32),
    /// It cannot be found.
    Unknown,
}

impl fmt::Display for Holder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { name, id } => write!(out, "{name} (process {id})"),
            Self::User(id) => write!(out, "a program of the user with id {id}"),
            Self::Unknown => out.write_str("an unknown program"),
        }
    }
}

/// Most processes that are examined, so that a start never takes long.
const PROCESSES_MAX: usize = 65_536;

/// Returns the process that listens on `address`, or on its port for all addresses.
pub(crate) fn find(address: SocketAddr) -> Holder {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let Some(socket) = tables.iter().flat_map(|table| table.lines()).find_map(|line| listener(line, address))
    else {
        return Holder::Unknown;
    };
    if let Some(found) = process_with(socket.inode) {
        return found;
    }
    let is_other_user = socket.user != rustix::process::geteuid().as_raw();
    if is_other_user { Holder::User(socket.user) } else { Holder::Unknown }
}

/// A listening socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Socket {
    user: u32,
    inode: u64,
}

/// Reads one line of the table. `None` unless its socket listens where `wanted` cannot be bound.
fn listener(line: &str, wanted: SocketAddr) -> Option<Socket> {
    /// The state of a listening socket (`TCP_LISTEN`, net/tcp_states.h).
    const LISTEN: &str = "0A";
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, local, _, LISTEN, _, _, _, user, _, inode, ..] = fields[..] else { return None };
    let (address, port) = local.split_once(':')?;
    let (address, port) = (address_of(address)?, u16::from_str_radix(port, 16).ok()?);
    let same_address = address == wanted.ip() || address.is_unspecified() || wanted.ip().is_unspecified();
    (port == wanted.port() && same_address)
        .then_some(())
        .and_then(|()| Some(Socket { user: user.parse().ok()?, inode: inode.parse().ok()? }))
}

/// Reads an address of the table: words of 32 bits in hexadecimal, each in the host's byte order, which is
/// little-endian.
fn address_of(text: &str) -> Option<IpAddr> {
    let words: Vec<[u8; 4]> = text
        .as_bytes()
        .chunks(8)
        .map(|word| u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok().map(u32::to_le_bytes))
        .collect::<Option<_>>()?;
    match words[..] {
        [word] => Some(Ipv4Addr::from(word).into()),
        [_, _, _, _] => {
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            Some(Ipv6Addr::from(bytes).to_canonical())
        }
        _ => None,
    }
}

/// Returns the process that has the socket open.
fn process_with(inode: u64) -> Option<Holder> {
    let wanted = format!("socket:[{inode}]");
    let has_it = |folder: &Path| {
        let files = fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|target| target.as_os_str() == &*wanted)
    };
    let processes = fs::read_dir("/proc").ok()?.flatten().take(PROCESSES_MAX);
    processes
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .find(|(_, folder): &(u32, _)| has_it(folder))
        .map(|(id, folder)| {
            let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
            Holder::Process { name: name.trim_end().to_owned(), id }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_table_are_read() {
        // Listens on 127.0.0.1:7600 with user 1000; the second line is the same address in a connected state.
        let listening = "   0: 0100007F:1DB0 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0";
        let connected = listening.replace(" 0A ", " 01 ");
        let on = |text: &str| text.parse::<SocketAddr>().unwrap();
        let socket = Some(Socket { user: 1000, inode: 4711 });
        assert_eq!(listener(listening, on("127.0.0.1:7600")), socket);
        assert_eq!(listener(listening, on("0.0.0.0:7600")), socket, "all addresses include this one");
        assert_eq!(listener(listening, on("127.0.0.2:7600")), None);
        assert_eq!(listener(listening, on("127.0.0.1:7601")), None);
        assert_eq!(listener(&connected, on("127.0.0.1:7600")), None);
        let all = "   1: 00000000000000000000000000000000:1DB0 00000000000000000000000000000000:0000 0A 0:0 00:0 0  0  0 9 1";
        assert_eq!(listener(all, on("127.0.0.1:7600")), Some(Socket { user: 0, inode: 9 }));
        assert_eq!(address_of("00000000000000000000000001000000"), "::1".parse().ok());
        assert_eq!(listener("  sl  local_address rem_address   st tx_queue", on("127.0.0.1:7600")), None);
    }
}
