//! The interface between a plane and the network layer: [`Service`], its requests and its responses.
//!
//! It knows nothing of sockets. A service lives on one executor and is never shared between cores.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cairn_http1::{HeadError, RequestHead, ResponseHead};

use crate::service::request_body::RequestBody;

/// Answers the requests of one listener. Each executor has its own value.
pub trait Service: 'static {
    /// Answers one request. The first read from `body` sends `100 Continue` when the client waits for it. An unread
    /// rest of the body is discarded when it is small; otherwise the connection is closed after the response.
    ///
    /// A panic in here is contained: the client gets [`Service::reject`] with [`Rejection::Panic`]. The future is
    /// dropped before it finishes only when the process ends.
    fn call(&self, request: &Request, body: &mut RequestBody<'_>) -> impl Future<Output = Response>;

    /// Returns whether nobody has signed this request, and yet it may be granted: one for a link. Such requests hold at most
    /// [`Limits::unsigned_max`](crate::Limits::unsigned_max) connections. Decide it by what is asked for, because a client can
    /// send any signature.
    fn is_unsigned(&self, _request: &Request) -> bool {
        false
    }

    /// Returns the response to an invalid head, a panic or a timeout. Must not panic.
    fn reject(&self, reason: Rejection, request_id: &str) -> Response;

    /// Records an exchange in the request log and the metrics. Called once per exchange, after the response was sent or
    /// the connection was lost.
    fn completed(&self, exchange: &Exchange<'_>);
}

/// The head of one request and the facts about its connection.
#[derive(Debug)]
pub struct Request {
    /// The parsed head.
    pub head: RequestHead,
    /// The address of the connection's other end: the client, or a proxy in front of it.
    pub peer: SocketAddr,
    /// The client's address: the peer's, or the one that a trusted proxy forwards
    /// ([`TrustedProxies`](crate::TrustedProxies)).
    pub client: IpAddr,
    /// The address that the peer connected to.
    pub local: SocketAddr,
    /// Whether it came through TLS.
    pub is_secure: bool,
    /// The time when its head had been read.
    pub started: Instant,
    /// A unique request id for the response header, error body, log and audit: 16 upper-case hexadecimal digits.
    /// [`Service::reject`] gets the same id when the call for this request panics.
    pub id: String,
}

/// The reason why a request is answered without calling the service, or instead of its response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rejection {
    /// The head is invalid; [`HeadError::status`] gives the status.
    Head(HeadError),
    /// The head did not arrive in time: 408.
    HeadTimeout,
    /// The body did not arrive in time: 408. This crate never passes it. A service that gets
    /// [`BodyError::TimedOut`](crate::BodyError::TimedOut) may answer with it, so that all timeouts look alike.
    BodyTimeout,
    /// The port accepts only TLS, and the client sent plain HTTP: 400. The response is sent without TLS too.
    PlainHttp,
    /// The service panicked: 500.
    Panic,
    /// [`Limits::connections_max`](crate::Limits::connections_max) connections are open: 503.
    TooManyConnections,
}

/// A finished exchange, for the log and the metrics.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// The request, or `None` when its head was invalid.
    pub request: Option<&'a Request>,
    /// Facts about the response.
    pub response: &'a ResponseMeta,
    /// Bytes of the request body that the service read.
    pub bytes_in: u64,
    /// Bytes of the response body that the socket took.
    pub bytes_out: u64,
    /// Time from [`Request::started`] until the response was handed to the socket; zero without a request.
    pub latency: Duration,
    /// The outcome of the exchange.
    pub outcome: ExchangeOutcome,
}

/// The outcome of an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExchangeOutcome {
    /// The whole response was handed to the socket.
    Complete,
    /// The client closed or reset the connection before that.
    ClientDisconnected,
    /// The source of the response body failed or gave the wrong number of bytes. The connection was cut.
    BodyFailed,
    /// The client received the response too slowly, the grace period of a drain ended, or an unsigned request had to make room
    /// for another one.
    DeadlinePassed,
}

/// Facts about a response for the log.
#[derive(Clone, Debug)]
pub struct ResponseMeta {
    /// The status, as in the head.
    pub status: http::StatusCode,
    /// The route's pattern, never the raw path.
    pub route: &'static str,
    /// The service's name of the operation, from a fixed table; empty when the route identifies it.
    pub operation: &'static str,
    /// The request id that the response carries.
    pub request_id: String,
    /// The principal that made the request, as in the audit trail; `None` if nobody was authenticated.
    pub principal: Option<Arc<str>>,
    /// The S3 or management error code, if it is an error.
    pub error_code: Option<&'static str>,
}

/// A response.
pub struct Response {
    /// Status and headers. `Content-Length`, `Connection` and `Date` are added when it is sent.
    pub head: ResponseHead,
    /// The body.
    pub body: ResponseBody,
    /// Facts for the log.
    pub meta: ResponseMeta,
    /// Whether to close the connection afterwards.
    pub close: bool,
}

impl Response {
    /// Returns a response that names no route, operation and error, and after which the connection stays open.
    #[must_use]
    pub fn new(head: ResponseHead, body: ResponseBody, request_id: &str) -> Self {
        let meta = ResponseMeta {
            status: head.status,
            route: "",
            operation: "",
            request_id: request_id.to_owned(),
            principal: None,
            error_code: None,
        };
        Self { head, body, meta, close: false }
    }

    /// Sets the route's pattern and the service's name of the operation.
    #[must_use]
    pub const fn of(mut self, route: &'static str, operation: &'static str) -> Self {
        self.meta.route = route;
        self.meta.operation = operation;
        self
    }

    /// Sets the error code, if the response is an error.
    #[must_use]
    pub const fn with_error(mut self, code: Option<&'static str>) -> Self {
        self.meta.error_code = code;
        self
    }
}

/// The body of a response. Responses to HEAD, 204 and 304 never send body bytes, whichever variant this is.
pub enum ResponseBody {
    /// No body. Sends `Content-Length: 0` where a length is allowed; responses to HEAD get no length.
    Empty,
    /// The whole body, sent together with the head. Of a response to HEAD, its length is sent.
    Full(Vec<u8>),
    /// A response to HEAD whose body was not made, or a 304. `Content-Length` is sent when `length` is given, a body never.
    Omitted {
        /// The length that the response to GET would have, in bytes.
        length: Option<u64>,
    },
    /// Exactly `length` bytes from a source. An error cuts the connection.
    Stream {
        /// Bytes that the source gives in all.
        length: u64,
        /// The source of the bytes.
        source: Box<dyn BodySource>,
    },
    /// As many bytes as the source gives, in chunks. An error cuts the connection. HTTP/1.0 has no chunks, so a client
    /// of it cannot tell a cut from the end: use another variant for it.
    Chunked {
        /// The source of the bytes.
        source: Box<dyn BodySource>,
    },
}

/// A piece of a response body, written to the socket without another copy. An empty piece is skipped.
pub type Chunk = Box<dyn AsRef<[u8]>>;

/// The source of a streamed response body.
pub trait BodySource {
    /// Returns the next piece, or `None` at the end. It is called again only after the socket took the previous piece,
    /// so a slow client slows the source. Prefetch inside the source where that pays.
    fn next<'a>(&'a mut self) -> Pin<Box<dyn Future<Output = std::io::Result<Option<Chunk>>> + 'a>>;
}
