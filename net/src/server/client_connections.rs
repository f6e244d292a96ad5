//! Counts the open connections of each client of a port.
//!
//! The count is shared by all executors, because the kernel spreads the connections of one client over them. Its lock is
//! taken when a connection opens and closes, never for a request.
//!
//! Invariant: the table has one entry per client with an open connection, so the limit on connections bounds it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::Arc;

use cairn_model::client_network;
use cairn_sync::Mutex;

/// The open connections of each client. Clones share the counts.
#[derive(Clone, Default, Debug)]
pub(crate) struct ClientConnections(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// Counts one connection of a client until it is dropped.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    counts: ClientConnections,
    client: IpAddr,
}

impl ClientConnections {
    /// Counts a connection. Returns `None` when its client already has `max` of them.
    pub(crate) fn count(&self, peer: IpAddr, max: usize) -> Option<ClientConnection> {
        let client = client_network(peer);
        let mut counts = self.0.lock();
        let count = counts.get(&client).copied().unwrap_or(0);
        if count >= max {
            return None;
        }
        counts.insert(client, count + 1);
        drop(counts);
        Some(ClientConnection { counts: self.clone(), client })
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        let mut counts = self.counts.0.lock();
        let Entry::Occupied(mut count) = counts.entry(self.client) else {
            unreachable!("a client with an open connection is in the table");
        };
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_own_count_and_leaves_nothing_behind() {
        let counts = ClientConnections::default();
        let count = |text: &str| counts.count(text.parse().expect("an address"), 2);
        let mut open =
            vec![count("192.0.2.1"), count("::ffff:192.0.2.1"), count("2001:db8::1"), count("2001:db8::2")];
        assert!(open.iter().all(Option::is_some));
        assert!(count("192.0.2.1").is_none() && count("2001:db8::3").is_none());
        assert!(count("192.0.2.2").is_some());
        open.pop();
        assert!(count("2001:db8::3").is_some());
        drop(open);
        assert_eq!(counts.0.lock().len(), 0);
    }
}
