//! A receiver for tests: answers each request with what it is told to, and remembers what came.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cairn_sync::Mutex;

/// A request, as it was received.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// The number of the connection that it came over, counted from 1.
    pub(crate) connection: usize,
    /// The address that it was sent to.
    pub(crate) to: IpAddr,
    /// The request line.
    pub(crate) line: String,
    /// The headers in their order, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: Vec<u8>,
}

impl Received {
    /// The value of a header, which must be there once.
    pub(crate) fn header(&self, name: &str) -> &str {
        let mut values =
            self.headers.iter().filter(|(found, _)| found == name).map(|(_, value)| value.as_str());
        let value = values.next().unwrap_or_else(|| panic!("no {name} in {:?}", self.headers));
        assert_eq!(values.next(), None, "{name} is there once");
        value
    }
}

/// The connections and requests that a receiver has seen.
#[derive(Default, Debug)]
pub(crate) struct Seen {
    /// Connections that were accepted.
    pub(crate) connections: usize,
    /// Requests.
    pub(crate) requests: Vec<Received>,
}

/// A receiver on a port of its own.
pub(crate) struct Receiver {
    /// The port.
    pub(crate) port: u16,
    seen: Arc<Mutex<Seen>>,
}

/// A receiver's answer to a request, on the connection. `false` closes it.
type Answer = dyn Fn(&Received, &mut dyn Connection) -> bool + Send + Sync;

/// A connection, with or without TLS.
pub(crate) trait Connection: Read + Write + Send {}
impl<T: Read + Write + Send> Connection for T {}

impl Receiver {
    /// Answers every request with the same bytes and keeps the connection.
    pub(crate) fn answering(bytes: &'static str) -> Self {
        Self::with(move |_, connection| connection.write_all(bytes.as_bytes()).is_ok())
    }

    /// Answers as the function does.
    pub(crate) fn with(
        answer: impl Fn(&Received, &mut dyn Connection) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::start("0.0.0.0:0", |stream| Some(Box::new(stream)), answer)
    }

    /// As [`Self::with`], with TLS.
    pub(crate) fn with_tls(
        config: Arc<rustls::ServerConfig>,
        answer: impl Fn(&Received, &mut dyn Connection) -> bool + Send + Sync + 'static,
    ) -> Self {
        let secure = move |stream: TcpStream| -> Option<Box<dyn Connection>> {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).ok()?;
            Some(Box::new(rustls::StreamOwned::new(connection, stream)))
        };
        Self::start("0.0.0.0:0", secure, answer)
    }

    fn start(
        address: &str,
        secure: impl Fn(TcpStream) -> Option<Box<dyn Connection>> + Send + Sync + 'static,
        answer: impl Fn(&Received, &mut dyn Connection) -> bool + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let shared: Arc<(_, Arc<Answer>)> = Arc::new((secure, Arc::new(answer)));
        let recorded = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let number = {
                    let mut seen = recorded.lock();
                    seen.connections += 1;
                    seen.connections
                };
                let (shared, recorded) = (Arc::clone(&shared), Arc::clone(&recorded));
                thread::spawn(move || {
                    let to = stream.local_addr().expect("an address").ip();
                    if let Some(connection) = (shared.0)(stream) {
                        serve(number, to, connection, &*shared.1, &recorded);
                    }
                });
            }
        });
        Self { port, seen }
    }

    /// A URL of the receiver.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook?a=b", self.port)
    }

    /// The address of the receiver at an address of this host.
    pub(crate) fn at(&self, address: [u8; 4]) -> SocketAddr {
        (address, self.port).into()
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.lock().connections
    }

    pub(crate) fn requests(&self) -> Vec<Received> {
        self.seen.lock().requests.clone()
    }

    /// Waits for the first request. A client that has given up may be ahead of the receiver.
    pub(crate) fn wait_for_request(&self) -> Vec<Received> {
        let until = Instant::now() + Duration::from_secs(120);
        while self.requests().is_empty() {
            assert!(Instant::now() < until, "no request comes");
            thread::park_timeout(Duration::from_millis(5));
        }
        self.requests()
    }
}

/// Serves one connection until it ends.
fn serve(number: usize, to: IpAddr, connection: Box<dyn Connection>, answer: &Answer, seen: &Mutex<Seen>) {
    let mut connection = BufReader::new(connection);
    while let Some(request) = read_request(number, to, &mut connection) {
        seen.lock().requests.push(request.clone());
        if !answer(&request, connection.get_mut()) {
            return;
        }
    }
}

fn read_request(connection: usize, to: IpAddr, from: &mut impl BufRead) -> Option<Received> {
    let mut read_line = || -> Option<String> {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|length| *length > 0)?;
        Some(line.trim_end_matches("\r\n").to_owned())
    };
    let line = read_line()?;
    let mut headers = Vec::new();
    loop {
        let header = read_line()?;
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(": ").expect("a header");
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, value)| value.parse().expect("a length"));
    let mut body = vec![0; length];
    from.read_exact(&mut body).ok()?;
    Some(Received { connection, to, line, headers, body })
}
