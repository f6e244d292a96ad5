//! The record of a request after its end.

use std::net::IpAddr;
use std::time::Duration;

use cairn_net::ExchangeOutcome;

cairn_model::named_enum! {
    /// The listener at which a request arrived. Named as in the log and in labels.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Plane {
        /// The S3 data plane.
        Data => "data",
        /// The management plane.
        Management => "management",
        /// The console's listener.
        Console => "console",
    }
}

/// The outcome of an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestOutcome {
    /// The response was sent completely.
    Complete,
    /// The client closed or reset the connection first.
    ClientGone,
    /// The response body could not be produced to its end; the connection was closed.
    BodyFailed,
    /// A deadline ended the exchange.
    DeadlinePassed,
}

impl RequestOutcome {
    /// Returns the name of the outcome in the log and in labels.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::ClientGone => "client_gone",
            Self::BodyFailed => "body_failed",
            Self::DeadlinePassed => "deadline_passed",
        }
    }
}

impl From<ExchangeOutcome> for RequestOutcome {
    fn from(outcome: ExchangeOutcome) -> Self {
        match outcome {
            ExchangeOutcome::Complete => Self::Complete,
            ExchangeOutcome::ClientDisconnected => Self::ClientGone,
            ExchangeOutcome::BodyFailed => Self::BodyFailed,
            ExchangeOutcome::DeadlinePassed => Self::DeadlinePassed,
        }
    }
}

/// The bucket and key that a request names, decoded.
#[derive(Clone, Copy, Debug)]
pub struct LoggedResource<'a> {
    /// The bucket; empty if the path has none.
    pub bucket: &'a str,
    /// The key; empty if the path has none.
    pub key: &'a str,
}

/// One finished request, as it is logged and counted.
#[derive(Clone, Copy, Debug)]
pub struct RequestRecord<'a> {
    /// The request id that the response carried.
    pub request_id: &'a str,
    /// The listener.
    pub plane: Plane,
    /// The method as sent. Empty if no request head could be read.
    pub method: &'a str,
    /// The addresses of the client and of the connected peer. `None` if no request head could be read.
    pub addresses: Option<(IpAddr, IpAddr)>,
    /// The route pattern, never the raw path.
    pub route: &'static str,
    /// The principal that made the request, as in the audit trail. `None` if nobody was authenticated.
    pub principal: Option<&'a str>,
    /// The bucket and key of the path, if they are logged. Empty if the path has none.
    pub resource: Option<LoggedResource<'a>>,
    /// The operation's name, from a static table. Empty if the route identifies the operation.
    pub operation: &'static str,
    /// The status of the response.
    pub status: u16,
    /// Time from the last byte of the head until the response was handed to the socket. Zero if no request head could be
    /// read.
    pub latency: Duration,
    /// Bytes of the request body that were read.
    pub bytes_in: u64,
    /// Bytes of the response body that were sent.
    pub bytes_out: u64,
    /// The outcome of the exchange.
    pub outcome: RequestOutcome,
    /// The error code in the response.
    pub error_code: Option<&'a str>,
}
