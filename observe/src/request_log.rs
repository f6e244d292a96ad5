//! The request log: one line per request, formatted by hand straight into the thread's log buffer.
//!
//! This is on the path of every request, so it passes by the event machinery: whether it is on is decided once,
//! when logging starts, and a line costs a few hundred nanoseconds. It carries the route's pattern and never the
//! raw path, for paths hold object keys and capability tokens.

use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use cairn_net::{Exchange, Outcome};
use tracing::Level;

use crate::format::{
    LogFormat, push_decimal, push_field_name, push_line_end, push_line_start, push_message,
    push_number_field, push_padded, push_text_field,
};
use crate::logging::active;
use crate::{metrics, request_figures};

/// The target of request lines, so that a filter can tell them from the rest.
pub(crate) const REQUEST_TARGET: &str = "service::request";
/// The level of request lines.
pub(crate) const REQUEST_LEVEL: Level = Level::INFO;

/// Which listener a request came in on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plane {
    /// The S3 data plane.
    Data,
    /// The management plane.
    Management,
}

impl Plane {
    /// All planes.
    pub const ALL: [Self; 2] = [Self::Data, Self::Management];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Management => "management",
        }
    }
}

/// How an exchange ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestOutcome {
    /// The response was sent to its last byte.
    Complete,
    /// The client closed or reset the connection first.
    ClientGone,
    /// The response's body could not be produced to its end; the connection was cut.
    BodyFailed,
    /// A deadline ended the exchange.
    DeadlinePassed,
}

impl RequestOutcome {
    /// The word for it, in the log and as a label.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::ClientGone => "client_gone",
            Self::BodyFailed => "body_failed",
            Self::DeadlinePassed => "deadline_passed",
        }
    }
}

impl From<Outcome> for RequestOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Complete => Self::Complete,
            Outcome::ClientGone => Self::ClientGone,
            Outcome::BodyFailed => Self::BodyFailed,
            Outcome::DeadlinePassed => Self::DeadlinePassed,
        }
    }
}

/// Writes the line of an exchange that has ended on a plane's listener, and counts it: see [`log_request`].
pub fn log_exchange(plane: Plane, exchange: &Exchange<'_>) {
    log_request(&RequestRecord {
        request_id: &exchange.response.request_id,
        plane,
        method: exchange.request.map_or("", |request| request.head.method().as_str()),
        addresses: exchange.request.map(|request| (request.client, request.peer.ip())),
        route: exchange.response.route,
        operation: exchange.response.operation,
        status: exchange.response.status.as_u16(),
        latency: exchange.latency,
        bytes_in: exchange.bytes_in,
        bytes_out: exchange.bytes_out,
        outcome: exchange.outcome.into(),
        error_code: exchange.response.error_code,
    });
}

/// What the log says about one request.
#[derive(Clone, Copy, Debug)]
pub struct RequestRecord<'a> {
    /// The id that the response carried.
    pub request_id: &'a str,
    /// The listener.
    pub plane: Plane,
    /// The method as sent, or empty when there was no readable head.
    pub method: &'a str,
    /// The client's address and that of who has connected; none without a readable head.
    pub addresses: Option<(IpAddr, IpAddr)>,
    /// The route's pattern, never the raw path.
    pub route: &'static str,
    /// What the service calls what was asked for, from a table; empty where the route says all.
    pub operation: &'static str,
    /// The status of the response.
    pub status: u16,
    /// From the last byte of the head until the response was handed to the socket; zero without a readable head.
    pub latency: Duration,
    /// Bytes of the request's body that were read.
    pub bytes_in: u64,
    /// Bytes of the response's body that were sent.
    pub bytes_out: u64,
    /// How the exchange ended.
    pub outcome: RequestOutcome,
    /// The error code that the response named.
    pub error_code: Option<&'a str>,
}

/// Counts a finished request and writes its line, if the log filter lets request lines through.
pub fn log_request(record: &RequestRecord<'_>) {
    count(record);
    if let Some(logging) = active()
        && logging.request_lines
    {
        logging.sink.append(|out| push_request_line(out, logging.format, record));
    }
}

fn count(record: &RequestRecord<'_>) {
    request_figures::note(record);
    if is_failure_of_service(record) {
        metrics::ERRORS.add(1);
    }
    metrics::note_cut_short(record.outcome);
}

/// Whether the service failed a request: by the status of its response, or in the middle of the response's body, when the
/// status was sent already. 501 and 505 refuse what the client asked for, 503 and 507 are states; none of them is a defect
/// of the service.
fn is_failure_of_service(record: &RequestRecord<'_>) -> bool {
    let by_status = record.status >= 500 && !matches!(record.status, 501 | 503 | 505 | 507);
    by_status || record.outcome == RequestOutcome::BodyFailed
}

fn push_request_line(out: &mut Vec<u8>, format: LogFormat, record: &RequestRecord<'_>) {
    push_line_start(out, format, "INFO", REQUEST_TARGET);
    push_message(out, format, "request");
    push_text_field(out, format, "request_id", record.request_id);
    push_text_field(out, format, "plane", record.plane.name());
    push_text_field(out, format, "method", record.method);
    if let Some((client, peer)) = record.addresses {
        push_address(out, format, "client", client);
        if peer != client {
            push_address(out, format, "proxy", peer);
        }
    }
    push_text_field(out, format, "route", record.route);
    push_number_field(out, format, "status", u64::from(record.status));
    push_field_name(out, format, "latency_ms");
    push_milliseconds(out, record.latency);
    push_number_field(out, format, "bytes_in", record.bytes_in);
    push_number_field(out, format, "bytes_out", record.bytes_out);
    push_text_field(out, format, "outcome", record.outcome.name());
    if let Some(code) = record.error_code {
        push_text_field(out, format, "error_code", code);
    }
    push_line_end(out, format);
}

/// A field whose value is an address, which needs no escapes.
fn push_address(out: &mut Vec<u8>, format: LogFormat, name: &'static str, address: IpAddr) {
    push_field_name(out, format, name);
    // Writing to a vector does not fail.
    let _ = match format {
        LogFormat::Text => write!(out, "{address}"),
        LogFormat::Json => write!(out, "\"{address}\""),
    };
}

/// Milliseconds with three decimals, that is, to the microsecond.
fn push_milliseconds(out: &mut Vec<u8>, latency: Duration) {
    let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
    push_decimal(out, micros / 1000);
    out.push(b'.');
    push_padded(out, micros % 1000, 3);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 7));

    fn record() -> RequestRecord<'static> {
        RequestRecord {
            request_id: "0123456789ABCDEF0123456789ABCDEF",
            plane: Plane::Data,
            method: "GET",
            addresses: Some((CLIENT, CLIENT)),
            route: "/{bucket}/{key}",
            operation: "GetObject",
            status: 200,
            latency: Duration::from_micros(12_007),
            bytes_in: 0,
            bytes_out: 4096,
            outcome: RequestOutcome::Complete,
            error_code: None,
        }
    }

    fn line(format: LogFormat, record: &RequestRecord<'_>) -> String {
        let mut out = Vec::new();
        push_request_line(&mut out, format, record);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_text_line_has_everything_once() {
        let text = line(LogFormat::Text, &record());
        let (_, rest) = text.split_once('Z').unwrap();
        assert_eq!(
            rest,
            "  INFO service::request: request request_id=0123456789ABCDEF0123456789ABCDEF plane=data method=GET \
             client=198.51.100.7 route=/{bucket}/{key} status=200 latency_ms=12.007 bytes_in=0 bytes_out=4096 outcome=complete\n"
        );
    }

    #[test]
    fn a_json_line_is_one_object_with_numbers_as_numbers() {
        let failed = RequestRecord { status: 404, error_code: Some("NoSuchKey"), ..record() };
        let value: serde_json::Value = serde_json::from_str(&line(LogFormat::Json, &failed)).unwrap();
        assert_eq!(value["level"], "INFO");
        assert_eq!(value["target"], "service::request");
        assert_eq!(value["status"], 404);
        assert_eq!(value["latency_ms"], 12.007);
        assert_eq!(value["error_code"], "NoSuchKey");
        assert_eq!(value["bytes_out"], 4096);
    }

    #[test]
    fn a_request_that_came_through_a_proxy_names_both() {
        let proxy = IpAddr::V6(std::net::Ipv6Addr::LOCALHOST);
        let forwarded = RequestRecord { addresses: Some((CLIENT, proxy)), ..record() };
        let text = line(LogFormat::Text, &forwarded);
        assert!(text.contains(" client=198.51.100.7 proxy=::1 route="), "{text}");
        let value: serde_json::Value = serde_json::from_str(&line(LogFormat::Json, &forwarded)).unwrap();
        assert_eq!((&value["client"], &value["proxy"]), (&"198.51.100.7".into(), &"::1".into()));
        let headless = line(LogFormat::Text, &RequestRecord { addresses: None, ..record() });
        assert!(!headless.contains("client=") && !headless.contains("proxy="), "{headless}");
    }

    /// 505 was counted, so that anyone could raise the alarm of the operators by asking in a version of HTTP that is
    /// not spoken here; and 507, so that a full disk raised the alarm of defects beside its own.
    #[test]
    fn neither_what_a_client_asks_for_nor_a_state_is_a_failure_of_the_service() {
        let fails = |status: &u16| is_failure_of_service(&RequestRecord { status: *status, ..record() });
        let failures: Vec<u16> = (200..600).filter(fails).take(5).collect();
        assert_eq!(failures, [500, 502, 504, 506, 508]);
    }

    /// A GET that met a damaged block in its second half had said 200 by then: it counted as a success, and as cut short
    /// like those whose client had gone.
    #[test]
    fn a_body_that_failed_in_its_middle_is_a_failure_of_the_service_and_a_client_that_went_is_none() {
        let fails = |outcome| is_failure_of_service(&RequestRecord { outcome, ..record() });
        assert!(fails(RequestOutcome::BodyFailed));
        for outcome in [RequestOutcome::Complete, RequestOutcome::ClientGone, RequestOutcome::DeadlinePassed]
        {
            assert!(!fails(outcome), "{outcome:?}");
        }
    }

    proptest! {
        #[test]
        fn no_value_makes_a_second_line_or_field(id in any::<String>(), method in any::<String>(), micros in any::<u64>()) {
            let record = RequestRecord { request_id: &id, method: &method, latency: Duration::from_micros(micros), ..record() };
            for format in [LogFormat::Text, LogFormat::Json] {
                prop_assert_eq!(line(format, &record).matches('\n').count(), 1);
            }
            let value: serde_json::Value = serde_json::from_str(&line(LogFormat::Json, &record)).unwrap();
            prop_assert_eq!(value["request_id"].as_str(), Some(id.as_str()));
            prop_assert_eq!(value["method"].as_str(), Some(method.as_str()));
        }
    }
}
