//! The memory of many idle connections. Alone in its process, because it measures resident memory.

mod support;

use support::{HttpClient, TestServer, patient};

/// Connections that are opened before the measurement, so that one-time allocations do not count, and during it.
const CONNECTIONS: usize = 1000;
/// The server's share was measured at 2.9 KB. The rest is the client's, in the same process, and the allocator's.
const BYTES_PER_CONNECTION_MAX: usize = 8 * 1024;

#[test]
fn idle_connections_are_cheap_and_keep_working() {
    raise_descriptor_limit();
    // A busy machine may take minutes to open them.
    let server = TestServer::with(patient(), 2);
    let mut first = open(&server);
    let before = resident_bytes();
    let mut second = open(&server);
    let each = resident_bytes().saturating_sub(before) / CONNECTIONS;
    assert!(each <= BYTES_PER_CONNECTION_MAX, "an idle connection costs {each} bytes");
    assert_eq!(server.connect().get("/stream?1000000").body.len(), 1_000_000);
    for client in first.iter_mut().chain(&mut second) {
        assert_eq!(client.get("/y").text(), "/y");
    }
}

/// Opens connections and makes one request on each.
fn open(server: &TestServer) -> Vec<HttpClient> {
    let open_one = |_| {
        let mut client = server.connect();
        assert_eq!(client.get("/x").status, 200);
        client
    };
    (0..CONNECTIONS).map(open_one).collect()
}

#[expect(clippy::unwrap_used, reason = "without the descriptors there is no test")]
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
}

#[expect(clippy::unwrap_used, reason = "without the number there is no test")]
fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
