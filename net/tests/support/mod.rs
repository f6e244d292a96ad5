//! A test server and a client on plain sockets.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test binary uses a part of this; a failing helper fails its test"
)]

use std::future::Future;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cairn_sync::Mutex;

pub use cairn_fixtures::HttpClient;
use cairn_http1::{BodyFraming, Method, ResponseHead, StatusCode};
use cairn_net::{
    BodyError, BodySource, Chunk, Drain, Exchange, ExecutorIndex, Limits, Listener, PortMetrics, Rejection,
    Request, RequestBody, Response, ResponseBody, Service, Tls, bind, serve, start, timeout,
};
use socket2::{Domain, Protocol, Socket, Type};

/// Longer than anything that a test waits for. A read that takes this long is a failure.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The time for which the server certainly lingers after a response that came before the end of its request: half of its limit,
/// because its clock is read now and then only.
const LINGERS: Duration = Duration::from_secs(1);

/// Limits with timeouts that do not pass while a busy machine makes a connection wait.
pub fn patient() -> Limits {
    let forever = Duration::from_secs(3600);
    Limits {
        head_timeout: forever,
        first_request_timeout: forever,
        idle_timeout: forever,
        body_stall_timeout: forever,
        write_stall_timeout: forever,
        ..Limits::default()
    }
}

/// Sends to a server that responded, but not before `since`, and discards what it still gets. On a busy machine, this may take
/// longer than it does so. Then sending fails, but the response can be read all the same.
pub fn send_to_lingering(client: &mut HttpClient, bytes: &[u8], since: Instant) {
    if let Err(error) = client.stream.write_all(bytes) {
        assert!(since.elapsed() >= LINGERS, "the response cut the request off: {error}");
    }
}

pub struct TestServer {
    pub address: SocketAddr,
    pub drain: Drain,
    pub log: Arc<Mutex<Vec<String>>>,
    /// The number of calls of the service that have begun.
    pub begun: Arc<AtomicUsize>,
    metrics: PortMetrics,
    joined: Option<thread::JoinHandle<()>>,
}

impl TestServer {
    pub fn start() -> Self {
        Self::with(patient(), 1)
    }

    pub fn with(limits: Limits, executors: usize) -> Self {
        Self::listening(bind("127.0.0.1:0".parse().unwrap(), executors).unwrap(), limits)
    }

    pub fn with_tls(limits: Limits, tls: &Tls) -> Self {
        let listeners = bind("127.0.0.1:0".parse().unwrap(), 1).unwrap();
        Self::listening(
            listeners.into_iter().map(|listener| listener.with_tls(tls.clone())).collect(),
            limits,
        )
    }

    fn listening(listeners: Vec<Listener>, limits: Limits) -> Self {
        let executors = listeners.len();
        let (address, metrics) = (listeners[0].local_addr(), listeners[0].metrics());
        let listeners = Arc::new(Mutex::new(listeners));
        let (drain, log) = (Drain::new(), Arc::new(Mutex::new(Vec::new())));
        let begun = Arc::new(AtomicUsize::new(0));
        let (their_drain, their_log, their_begun) = (drain.clone(), Arc::clone(&log), Arc::clone(&begun));
        let running = start(executors, move |executor| {
            let listener = listeners.lock().pop().unwrap();
            let service =
                TestService { executor, log: Arc::clone(&their_log), begun: Arc::clone(&their_begun) };
            serve(listener, Rc::new(service), limits, their_drain.clone())
        })
        .unwrap();
        let joined = Some(thread::spawn(move || running.join().unwrap()));
        Self { address, drain, log, begun, metrics, joined }
    }

    pub fn connect(&self) -> HttpClient {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        HttpClient::over(stream)
    }

    /// Connects from another address of this host.
    pub fn connect_from(&self, address: &str) -> HttpClient {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        socket.bind(&SocketAddr::new(address.parse().unwrap(), 0).into()).unwrap();
        socket.connect(&self.address.into()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        HttpClient::over(socket.into())
    }

    /// Waits until the executors have ended. Panics when one has panicked.
    pub fn join(&mut self) {
        if let Some(joined) = self.joined.take() {
            joined.join().unwrap();
        }
    }

    /// Returns how many unsigned requests were ended to make room for others.
    pub fn unsigned_ended(&self) -> u64 {
        self.metrics.snapshot().unsigned_ended
    }

    /// Waits until `count` calls of the service have begun.
    pub fn wait_for_calls(&self, count: usize) {
        let until = Instant::now() + PATIENCE;
        while self.begun.load(Ordering::Relaxed) < count {
            assert!(Instant::now() < until, "the calls do not begin");
            thread::yield_now();
        }
    }

    /// Waits until `count` connections are open.
    pub fn wait_for_connections(&self, count: usize) {
        let until = Instant::now() + PATIENCE;
        let open = || usize::try_from(self.metrics.snapshot().connections_open).unwrap();
        while open() != count {
            assert!(Instant::now() < until, "{} connections are open instead of {count}", open());
            thread::yield_now();
        }
    }

    /// Waits until `count` exchanges were reported and returns their log.
    pub fn exchanges(&self, count: usize) -> Vec<String> {
        let until = Instant::now() + PATIENCE;
        loop {
            let log = self.log.lock().clone();
            if log.len() >= count {
                return log;
            }
            assert!(Instant::now() < until, "only {log:?}");
            thread::yield_now();
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.drain.abort();
        if !thread::panicking() {
            self.join();
        }
    }
}

struct TestService {
    executor: ExecutorIndex,
    log: Arc<Mutex<Vec<String>>>,
    begun: Arc<AtomicUsize>,
}

fn response(status: StatusCode, body: ResponseBody, id: &str) -> Response {
    let mut head = ResponseHead::new(status);
    head.header("x-request-id", id);
    Response::new(head, body, id).of("/test", "")
}

impl Service for TestService {
    fn is_unsigned(&self, request: &Request) -> bool {
        request.head.path().starts_with("/visit")
    }

    async fn call(&self, request: &Request, body: &mut RequestBody<'_>) -> Response {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let id = request.id.as_str();
        let number = request.head.query().and_then(|query| query.parse().ok()).unwrap_or(0_u64);
        let full = |text: &str| response(StatusCode::OK, ResponseBody::Full(text.as_bytes().to_vec()), id);
        match request.head.path() {
            "/echo" | "/visit-echo" => match read_all(body).await {
                Ok(bytes) => response(StatusCode::OK, ResponseBody::Full(bytes), id),
                Err(BodyError::TimedOut) => self.reject(Rejection::BodyTimeout, id),
                Err(_) => response(StatusCode::BAD_REQUEST, ResponseBody::Empty, id),
            },
            "/echo-chunked" => response(StatusCode::OK, ResponseBody::Full(echo_chunked(body).await), id),
            "/refuse" => response(StatusCode::FORBIDDEN, ResponseBody::Full(b"no".to_vec()), id),
            "/stream" | "/visit" => {
                let source = Box::new(Counting { next: 0, end: number, fails: false });
                response(StatusCode::OK, ResponseBody::Stream { length: number, source }, id)
            }
            "/broken" => {
                let source = Box::new(Counting { next: 0, end: 200_000, fails: true });
                response(StatusCode::OK, ResponseBody::Stream { length: 1_000_000, source }, id)
            }
            "/short" => {
                let source = Box::new(Counting { next: 0, end: 1000, fails: false });
                response(StatusCode::OK, ResponseBody::Stream { length: 1_000_000, source }, id)
            }
            "/chunks" => {
                let source = Box::new(Counting { next: 0, end: number, fails: false });
                response(StatusCode::OK, ResponseBody::Chunked { source }, id)
            }
            "/gaps" => response(StatusCode::OK, Pieces::with_gaps(), id),
            "/broken-chunks" => {
                let source = Box::new(Counting { next: 0, end: 1000, fails: true });
                response(StatusCode::OK, ResponseBody::Chunked { source }, id)
            }
            "/waiting" => response(StatusCode::OK, ResponseBody::Chunked { source: Box::new(Waiting) }, id),
            "/timeout" => {
                let never = std::future::pending::<()>();
                let mut never = std::pin::pin!(never);
                let short = timeout(Duration::from_millis(number), &mut never).await;
                let again = timeout(Duration::from_millis(number), never).await;
                full(&format!("{short:?} {again:?} {:?}", timeout(PATIENCE, async { 7 }).await))
            }
            "/panic" => panic!("on purpose"),
            "/block" => {
                // Blocks the whole executor, so that it then sees several events at once.
                let until = Instant::now() + Duration::from_millis(number);
                while Instant::now() < until {
                    thread::park_timeout(Duration::from_millis(10));
                }
                full("blocked")
            }
            "/slow" => {
                glommio::timer::sleep(Duration::from_millis(number)).await;
                full("slow")
            }
            "/cancelled" => full(&format!("{:?}", body.cancelled(&Drain::new()).await)),
            "/omitted" => response(StatusCode::OK, ResponseBody::Omitted { length: Some(number) }, id),
            "/empty" => response(StatusCode::OK, ResponseBody::Empty, id),
            "/204" => response(StatusCode::NO_CONTENT, ResponseBody::Empty, id),
            "/304" => response(StatusCode::NOT_MODIFIED, ResponseBody::Omitted { length: Some(7) }, id),
            "/close" => Response { close: true, ..full("bye") },
            "/executor" => full(&self.executor.0.to_string()),
            "/chunked" if request.head.framing() == BodyFraming::Chunked => {
                response(StatusCode::NOT_IMPLEMENTED, ResponseBody::Empty, id)
            }
            path if *request.head.method() == Method::GET || *request.head.method() == Method::HEAD => {
                full(path)
            }
            _ => response(StatusCode::METHOD_NOT_ALLOWED, ResponseBody::Empty, id),
        }
    }

    fn reject(&self, reason: Rejection, request_id: &str) -> Response {
        let status = match reason {
            Rejection::Head(error) => error.status(),
            Rejection::HeadTimeout | Rejection::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Rejection::PlainHttp => StatusCode::BAD_REQUEST,
            Rejection::Panic => StatusCode::INTERNAL_SERVER_ERROR,
            Rejection::TooManyConnections => StatusCode::SERVICE_UNAVAILABLE,
        };
        response(status, ResponseBody::Full(format!("{reason:?}").into_bytes()), request_id)
    }

    fn completed(&self, exchange: &Exchange<'_>) {
        let path = exchange.request.map_or("-", |request| request.head.path());
        let line = format!(
            "{path} {} in={} out={} {:?}",
            exchange.response.status.as_str(),
            exchange.bytes_in,
            exchange.bytes_out,
            exchange.outcome
        );
        self.log.lock().push(line);
    }
}

/// Returns the body, which may have the chunked coding, or the error of reading it as text.
async fn echo_chunked(body: &mut RequestBody<'_>) -> Vec<u8> {
    body.accept_chunked();
    read_all(body).await.unwrap_or_else(|error| format!("{error:?}").into_bytes())
}

async fn read_all(body: &mut RequestBody<'_>) -> Result<Vec<u8>, BodyError> {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 10_000];
    loop {
        match body.read(&mut piece).await? {
            0 => return Ok(bytes),
            count => bytes.extend_from_slice(&piece[..count]),
        }
    }
}

/// Returns the bytes of [`pattern`] in pieces of uneven size.
struct Counting {
    next: u64,
    end: u64,
    fails: bool,
}

impl BodySource for Counting {
    fn next<'a>(&'a mut self) -> Pin<Box<dyn Future<Output = std::io::Result<Option<Chunk>>> + 'a>> {
        Box::pin(async move {
            if self.next == self.end {
                return if self.fails { Err(std::io::Error::other("broken")) } else { Ok(None) };
            }
            let count = (self.end - self.next).min(65_536 + self.next % 1000);
            let piece: Vec<u8> = (self.next..self.next + count).map(pattern).collect();
            self.next += count;
            Ok(Some(Box::new(piece) as Chunk))
        })
    }
}

/// A body whose first piece never comes.
struct Waiting;

impl BodySource for Waiting {
    fn next<'a>(&'a mut self) -> Pin<Box<dyn Future<Output = std::io::Result<Option<Chunk>>> + 'a>> {
        Box::pin(std::future::pending())
    }
}

/// Pieces of a body, in reverse order.
struct Pieces(Vec<&'static str>);

impl Pieces {
    fn with_gaps() -> ResponseBody {
        ResponseBody::Chunked { source: Box::new(Self(vec!["", "d", "", "", "abc", ""])) }
    }
}

impl BodySource for Pieces {
    fn next<'a>(&'a mut self) -> Pin<Box<dyn Future<Output = std::io::Result<Option<Chunk>>> + 'a>> {
        Box::pin(async move { Ok(self.0.pop().map(|piece| Box::new(piece.as_bytes().to_vec()) as Chunk)) })
    }
}

/// Returns the byte at a position of a streamed body. The period is prime, so lost or repeated pieces are noticed.
pub fn pattern(position: u64) -> u8 {
    u8::try_from(position % 251).unwrap()
}
