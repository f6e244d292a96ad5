//! What a plane implements to be served: one trait, the request it is given and the response it gives back.
//!
//! Knows nothing of sockets. A [`Service`] lives on one executor and is never shared between cores.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::time::{Duration, Instant};

use cairn_http1::{HeadError, RequestHead, ResponseHead};

use crate::body::RequestBody;

/// What serves the requests of one listener. One value per executor, never shared between cores.
pub trait Service: 'static {
    /// Answers one request. Reading from `body` for the first time sends `100 Continue` when the client waits for it;
    /// what the service leaves unread is drained when small, else the connection is closed after the response.
    ///
    /// A panic in here is contained: the client gets [`Service::reject`] with [`Rejection::Panic`]. The future is
    /// dropped, wherever it waits, only when the process ends.
    fn call(&self, request: &Request, body: &mut RequestBody<'_>) -> impl Future<Output = Response>;

    /// The answer to a head that could not be parsed, to a panic, or to a deadline passed. Must not panic.
    fn reject(&self, reason: Rejection, request_id: &RequestIdText) -> Response;

    /// Called once when the response has been sent or the connection was lost: for the request log and metrics.
    fn completed(&self, exchange: &Exchange<'_>);
}

/// A request id as text: 16 upper-case hexadecimal digits when it was made here.
pub type RequestIdText = str;

/// One request, as far as its head tells.
#[derive(Debug)]
pub struct Request {
    /// The parsed head.
    pub head: RequestHead,
    /// Who has connected: the client, or a proxy in front of it.
    pub peer: SocketAddr,
    /// The client's address: the peer's, or what a trusted proxy tells ([`TrustedProxies`](crate::TrustedProxies)).
    pub client: IpAddr,
    /// The address that the peer connected to.
    pub local: SocketAddr,
    /// Whether it came through TLS.
    pub is_secure: bool,
    /// When the head had been read.
    pub started: Instant,
    /// An id that no other request has, for header, error body, log and audit. [`Service::reject`] is given the same
    /// one when the call for this request panics.
    pub id: String,
}

/// Why a request is answered without the service having been called, or instead of its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rejection {
    /// The head was refused; [`HeadError::status`] says with which status.
    Head(HeadError),
    /// The head did not arrive whole in time: 408.
    HeadTimeout,
    /// The body stopped arriving: 408. Not given by this crate: a service that gets
    /// [`BodyError::TimedOut`](crate::BodyError::TimedOut) may answer with it, so that all deadlines look alike.
    BodyTimeout,
    /// The port takes TLS alone, and this was plain HTTP: 400. The answer goes out without TLS too.
    PlainHttp,
    /// The service panicked: 500.
    Panic,
    /// [`Limits::connections_max`](crate::Limits::connections_max) connections are open: 503.
    TooManyConnections,
}

/// One exchange that has ended, for the log and the metrics.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// The request; None when its head could not be read.
    pub request: Option<&'a Request>,
    /// Facts about the response.
    pub response: &'a ResponseMeta,
    /// Bytes of the request's body that the service read.
    pub bytes_in: u64,
    /// Bytes of the response's body that the socket took.
    pub bytes_out: u64,
    /// From [`Request::started`] until the response had been handed to the socket; zero when there is no request.
    pub latency: Duration,
    /// How it ended.
    pub outcome: Outcome,
}

/// How an exchange ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The response was handed to the socket whole.
    Complete,
    /// The client closed or reset the connection before the response was out.
    ClientGone,
    /// The source of the response's body failed or gave the wrong number of bytes; the connection was cut.
    BodyFailed,
    /// The client took the response too slowly, or the grace period of a drain ended.
    DeadlinePassed,
}

/// Facts about a response that the log wants.
#[derive(Clone, Debug)]
pub struct ResponseMeta {
    /// The status, as in the head.
    pub status: http::StatusCode,
    /// The route's pattern, never the raw path.
    pub route: &'static str,
    /// What the service calls what was asked for, from a table of its own; empty where the route says all.
    pub operation: &'static str,
    /// The request id that the response carries.
    pub request_id: String,
    /// The S3 or management error code, if it is an error.
    pub error_code: Option<&'static str>,
}

/// A response.
pub struct Response {
    /// Status and header lines. `Content-Length`, `Connection` and `Date` are added when it is sent.
    pub head: ResponseHead,
    /// The body.
    pub body: ResponseBody,
    /// Facts for the log.
    pub meta: ResponseMeta,
    /// Close the connection afterwards.
    pub close: bool,
}

/// The body of a response. Whatever it is, no bytes follow the head of an answer to HEAD, a 204 or a 304.
pub enum ResponseBody {
    /// None: `Content-Length: 0` where a length may stand, nothing in answers to HEAD.
    Empty,
    /// All of it, sent together with the head.
    Full(Vec<u8>),
    /// An answer to HEAD (or 304): `Content-Length` is sent when given, never a body.
    Omitted {
        /// The length that a GET would have, in bytes.
        length: Option<u64>,
    },
    /// Exactly `length` bytes from a source; an error cuts the connection.
    Stream {
        /// Bytes that the source gives in all.
        length: u64,
        /// Where they come from.
        source: Box<dyn BodySource>,
    },
    /// As many bytes as the source gives, in chunks; an error cuts the connection. A client of HTTP/1.0, which knows no
    /// chunks, cannot tell a cut from the end: give it another form.
    Chunked {
        /// Where they come from.
        source: Box<dyn BodySource>,
    },
}

/// A piece of a response body, written to the socket without another copy. An empty one says nothing.
pub type Chunk = Box<dyn AsRef<[u8]>>;

/// Where the bytes of a streamed response come from.
pub trait BodySource {
    /// The next piece; None at the end. Asked for again only when the piece before has been handed to the socket, so
    /// a slow client slows the source: read ahead inside if that pays.
    fn next<'a>(&'a mut self) -> Pin<Box<dyn Future<Output = std::io::Result<Option<Chunk>>> + 'a>>;
}
