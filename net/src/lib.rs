//! (interface sketch; the crate's author replaces this file)
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;
use std::future::Future;
use std::pin::Pin;
use cairn_http1::{RequestHead, ResponseHead, HeadError};

/// What serves the requests of one listener. One value per executor, never shared between cores.
pub trait Service: 'static {
    /// Answers one request. Reading from `body` for the first time sends `100 Continue` when the client waits for it;
    /// what the service leaves unread is drained when small, else the connection is closed after the response.
    fn call(&self, request: &Request, body: &mut RequestBody<'_>) -> impl Future<Output = Response>;
    /// The answer to a head that could not be parsed, to a panic, or to a deadline passed.
    fn reject(&self, reason: Rejection, request_id: &RequestIdText) -> Response;
    /// Called once when the response has been sent or the connection was lost: for the request log and metrics.
    fn completed(&self, exchange: &Exchange<'_>);
}
pub type RequestIdText = str;
pub struct Request { pub head: RequestHead, pub peer: SocketAddr, pub local: SocketAddr, pub started: Instant }
pub enum Rejection { Head(HeadError), HeadTimeout, BodyTimeout, Panic, TooManyConnections }
pub struct Exchange<'a> { pub request: Option<&'a Request>, pub response: &'a ResponseMeta, pub bytes_in: u64, pub bytes_out: u64, pub latency: std::time::Duration, pub outcome: Outcome }
pub enum Outcome { Complete, ClientGone, BodyFailed, DeadlinePassed }

/// The request's body as it arrives from the socket.
pub struct RequestBody<'c> { _c: std::marker::PhantomData<&'c ()> }
#[derive(Debug)]
pub enum BodyError { /// connection closed or reset before the declared length
    Incomplete, /// no progress within the deadline
    TimedOut, Io(std::io::Error) }
impl RequestBody<'_> {
    /// Bytes of the declared length that have not been read yet.
    pub fn remaining(&self) -> u64 { todo!() }
    /// Reads up to `out.len()` bytes straight from the socket into `out`; 0 only when nothing remains.
    pub async fn read(&mut self, _out: &mut [u8]) -> Result<usize, BodyError> { todo!() }
}

/// Facts about a response that the log wants.
pub struct ResponseMeta { pub status: http::StatusCode, /// route pattern, never the raw path
    pub route: &'static str, pub request_id: String, /// S3 or management error code, if any
    pub error_code: Option<&'static str> }
pub struct Response { pub head: ResponseHead, pub body: ResponseBody, pub meta: ResponseMeta, /// close the connection afterwards
    pub close: bool }
pub enum ResponseBody {
    Empty,
    Full(Vec<u8>),
    /// An answer to HEAD (or 304): `Content-Length` is sent when given, never a body.
    Omitted { length: Option<u64> },
    /// Exactly `length` bytes from a source; an error cuts the connection.
    Stream { length: u64, source: Box<dyn BodySource> },
}
/// A piece of a response body, written to the socket without another copy.
pub type Chunk = Box<dyn AsRef<[u8]>>;
pub trait BodySource { fn next<'a>(&'a mut self) -> Pin<Box<dyn Future<Output = std::io::Result<Option<Chunk>>> + 'a>>; }

/// Serves `service` on this executor's own SO_REUSEPORT listener until the drain ends. (shape to be refined by the author)
pub async fn serve<S: Service>(_listener: std::net::TcpListener, _service: Rc<S>, _limits: Limits, _drain: Drain) {}
pub struct Limits { /* head, idle, body-progress deadlines, connections_max */ }
/// The signal to stop: shared by all executors; also says when the grace period is over.
#[derive(Clone)]
pub struct Drain {}
