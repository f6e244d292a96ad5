//! Request log: one line per request, formatted directly into the thread's log buffer.
//!
//! Every request pays for it, so it bypasses `tracing`. Whether it is enabled is decided once, when logging starts, and a line
//! costs a few hundred nanoseconds. A line has the route pattern and never the raw path, because paths contain object keys and
//! capability tokens. Bucket and key are added only if the operator asks for them.

use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use cairn_net::Exchange;

use crate::log::format::{
    LogFormat, push_decimal, push_field_name, push_line_end, push_line_start, push_message,
    push_number_field, push_padded, push_text_field,
};
use crate::log::{REQUEST_TARGET, RequestLog, active};
use crate::metrics;
use crate::request_record::{LoggedResource, Plane, RequestOutcome, RequestRecord};

/// Returns whether request lines name bucket and key, so that planes parse paths only if they are wanted.
#[must_use]
pub fn paths_are_logged() -> bool {
    active().is_some_and(|logging| logging.paths && logging.request_log != RequestLog::Off)
}

/// Counts and logs an exchange that has ended on a plane's listener, see [`log_request`]. `resource` is its bucket and key, if
/// [`paths_are_logged`].
pub fn log_exchange(plane: Plane, exchange: &Exchange<'_>, resource: Option<LoggedResource<'_>>) {
    log_request(&RequestRecord {
        request_id: &exchange.response.request_id,
        plane,
        method: exchange.request.map_or("", |request| request.head.method().as_str()),
        addresses: exchange.request.map(|request| (request.client, request.peer.ip())),
        route: exchange.response.route,
        principal: exchange.response.principal.as_deref(),
        resource,
        operation: exchange.response.operation,
        status: exchange.response.status.as_u16(),
        latency: exchange.latency,
        bytes_in: exchange.bytes_in,
        bytes_out: exchange.bytes_out,
        outcome: exchange.outcome.into(),
        error_code: exchange.response.error_code,
    });
}

/// Counts a finished request and logs it if its line is enabled.
pub fn log_request(record: &RequestRecord<'_>) {
    count(record);
    if let Some(logging) = active()
        && is_logged(logging.request_log, record)
    {
        logging.sink.append(|out| push_request_line(out, logging.format, record));
    }
}

fn is_logged(request_log: RequestLog, record: &RequestRecord<'_>) -> bool {
    match request_log {
        RequestLog::All => true,
        RequestLog::Errors => record.status >= 400 || record.outcome != RequestOutcome::Complete,
        RequestLog::Off => false,
    }
}

fn count(record: &RequestRecord<'_>) {
    metrics::record_request(record);
    if is_failure_of_service(record) {
        metrics::ERRORS.add(1);
    }
    metrics::record_cut_short(record.outcome);
}

/// Returns whether the service failed a request: by the status of the response, or after the status, within the response body.
///
/// 501 and 505 refuse an unsupported request, and 503 and 507 report a state. None of them is a defect of the service.
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
    if let Some(principal) = record.principal {
        push_text_field(out, format, "principal", principal);
    }
    push_text_field(out, format, "route", record.route);
    if let Some(LoggedResource { bucket, key }) = record.resource {
        for (name, value) in [("bucket", bucket), ("key", key)] {
            if !value.is_empty() {
                push_text_field(out, format, name, value);
            }
        }
    }
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

/// Appends a field whose value is an address, which needs no escaping.
fn push_address(out: &mut Vec<u8>, format: LogFormat, name: &'static str, address: IpAddr) {
    push_field_name(out, format, name);
    // Writing to a vector cannot fail.
    let _ = match format {
        LogFormat::Text => write!(out, "{address}"),
        LogFormat::Json => write!(out, "\"{address}\""),
    };
}

/// Appends milliseconds with three decimals.
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
            principal: Some("root"),
            resource: None,
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
    fn text_lines_have_all_fields() {
        let text = line(LogFormat::Text, &record());
        let (_, rest) = text.split_once('Z').unwrap();
        assert_eq!(
            rest,
            "  INFO service::request: request request_id=0123456789ABCDEF0123456789ABCDEF plane=data method=GET \
             client=198.51.100.7 principal=root route=/{bucket}/{key} status=200 latency_ms=12.007 bytes_in=0 bytes_out=4096 outcome=complete\n"
        );
    }

    #[test]
    fn json_lines_are_objects_with_numbers() {
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
    fn requests_through_a_proxy_name_client_and_proxy() {
        let proxy = IpAddr::V6(std::net::Ipv6Addr::LOCALHOST);
        let forwarded = RequestRecord { addresses: Some((CLIENT, proxy)), ..record() };
        let text = line(LogFormat::Text, &forwarded);
        assert!(text.contains(" client=198.51.100.7 proxy=::1 principal="), "{text}");
        let value: serde_json::Value = serde_json::from_str(&line(LogFormat::Json, &forwarded)).unwrap();
        assert_eq!((&value["client"], &value["proxy"]), (&"198.51.100.7".into(), &"::1".into()));
        let headless = line(LogFormat::Text, &RequestRecord { addresses: None, ..record() });
        assert!(!headless.contains("client=") && !headless.contains("proxy="), "{headless}");
    }

    #[test]
    fn bucket_and_key_are_fields_of_their_own() {
        let resource = Some(LoggedResource { bucket: "photos", key: "a b\n\"c\"" });
        let named = RequestRecord { resource, principal: None, ..record() };
        let text = line(LogFormat::Text, &named);
        assert!(
            text.contains(" route=/{bucket}/{key} bucket=photos key=\"a b\\n\\\"c\\\"\" status="),
            "{text}"
        );
        assert!(!text.contains("principal"), "{text}");
        let value: serde_json::Value = serde_json::from_str(&line(LogFormat::Json, &named)).unwrap();
        assert_eq!((&value["bucket"], &value["key"]), (&"photos".into(), &"a b\n\"c\"".into()));
        let bucket =
            RequestRecord { resource: Some(LoggedResource { bucket: "photos", key: "" }), ..record() };
        assert!(!line(LogFormat::Text, &bucket).contains("key="));
    }

    #[test]
    fn errors_are_refused_failed_and_cut_short_requests() {
        let logged = |request_log, status, outcome| {
            is_logged(request_log, &RequestRecord { status, outcome, ..record() })
        };
        for (status, outcome, is_error) in [
            (200, RequestOutcome::Complete, false),
            (304, RequestOutcome::Complete, false),
            (404, RequestOutcome::Complete, true),
            (503, RequestOutcome::Complete, true),
            (200, RequestOutcome::ClientGone, true),
            (200, RequestOutcome::BodyFailed, true),
        ] {
            assert!(logged(RequestLog::All, status, outcome));
            assert_eq!(logged(RequestLog::Errors, status, outcome), is_error, "{status} {outcome:?}");
            assert!(!logged(RequestLog::Off, status, outcome));
        }
    }

    /// Regression: 505 was counted, so any client could raise the operators' alarm with an unsupported version of HTTP. 507
    /// was counted, so a full disk also raised the alarm for defects.
    #[test]
    fn unsupported_requests_and_states_are_not_failures() {
        let fails = |status: &u16| is_failure_of_service(&RequestRecord { status: *status, ..record() });
        let failures: Vec<u16> = (200..600).filter(fails).take(5).collect();
        assert_eq!(failures, [500, 502, 504, 506, 508]);
    }

    /// Regression: a GET that read a damaged block after status 200 was sent counted as a success, and as cut short in the
    /// same way as requests whose client had disconnected.
    #[test]
    fn failed_bodies_are_failures_but_disconnected_clients_are_not() {
        let fails = |outcome| is_failure_of_service(&RequestRecord { outcome, ..record() });
        assert!(fails(RequestOutcome::BodyFailed));
        for outcome in [RequestOutcome::Complete, RequestOutcome::ClientGone, RequestOutcome::DeadlinePassed]
        {
            assert!(!fails(outcome), "{outcome:?}");
        }
    }

    proptest! {
        #[test]
        fn values_never_add_lines_or_fields(id in any::<String>(), method in any::<String>(), micros in any::<u64>()) {
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
