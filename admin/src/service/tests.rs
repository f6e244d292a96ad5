//! Tests of the management plane without sockets: request heads in, responses out.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use base64::Engine as _;
use cairn_http1::{HeadLimits, parse_head};
use cairn_identity::CredentialThrottle;
use cairn_net::{Drain, Rejection, Response, ResponseBody, Service};
use serde_json::{Value, json};

use super::*;
use crate::access::ManagementCredentials;
use crate::archives::Archives;
use crate::health::{ProbeFuture, Readiness, SubsystemState};
use crate::import_runs::ImportRuns;
use crate::verification::Verifications;

const GENERATED_ID: &str = "0123456789ABCDEF";
const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));
const TOKEN: &str = "system-token-of-at-least-32-bytes";
const SCRAPE_TOKEN: &str = "scrape-token-of-16-bytes";

/// Subsystems whose states the test sets.
#[derive(Clone, Default)]
struct Subsystems(Rc<Cell<bool>>);

impl Readiness for Subsystems {
    fn probe(&self) -> ProbeFuture<'_> {
        let storage = if self.0.get() { Err("/data/volume failed".to_owned()) } else { Ok(()) };
        let states = vec![
            SubsystemState { name: "storage", state: storage },
            SubsystemState { name: "metadata", state: Ok(()) },
        ];
        Box::pin(async { states })
    }
}

fn s3_endpoint() -> crate::S3Endpoint {
    let address = (std::net::Ipv4Addr::UNSPECIFIED, 7600).into();
    crate::S3Endpoint { url: None, listener: cairn_sharing::ListenerUrl { address, is_secure: false } }
}

fn service() -> (Rc<AdminService>, Subsystems) {
    let subsystems = Subsystems::default();
    let credentials = ManagementCredentials {
        system_token: TOKEN.to_owned().into(),
        root_access_key: "ROOT".to_owned(),
        root_secret_key: "root:secret".to_owned().into(),
        scrape_token: Some(SCRAPE_TOKEN.to_owned().into()),
    };
    let context = AdminContext {
        credentials,
        readiness: Box::new(subsystems.clone()),
        open: None,
        sessions: None,
        sign_ins: None,
        throttle: CredentialThrottle::default(),
        verifications: Verifications::default(),
        imports: ImportRuns::default(),
        archives: Archives::default(),
        metrics: Arc::default(),
        refused: cairn_observe::RefusedRequests::new(1),
        setting_values: Arc::default(),
        waits: crate::Waits::default(),
        capabilities: crate::Capabilities::default(),
        s3_endpoint: s3_endpoint(),
        drain: Drain::new(),
    };
    (AdminService::new(context), subsystems)
}

fn send(service: &AdminService, line: &str, headers: &[(&str, &str)]) -> Response {
    let mut bytes = format!("{line} HTTP/1.1\r\nHost: localhost\r\n");
    for (name, value) in headers {
        bytes.push_str(&format!("{name}: {value}\r\n"));
    }
    bytes.push_str("\r\n");
    let (head, _) = parse_head(bytes.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
    // The executor has timers, because responses to wrong credentials are delayed.
    let incoming = Incoming { head: &head, generated_id: GENERATED_ID, client: CLIENT, body: None };
    glommio::LocalExecutor::default().run(service.answer(incoming))
}

fn body(response: &Response) -> Value {
    let ResponseBody::Full(bytes) = &response.body else { panic!("a body") };
    serde_json::from_slice(bytes).unwrap()
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    std::str::from_utf8(response.head.get(name).unwrap_or_default()).unwrap()
}

fn bearer() -> String {
    format!("Bearer {TOKEN}")
}

fn basic(credential: &str) -> String {
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(credential))
}

#[test]
fn health_ignores_failed_subsystems_and_ready_does_not() {
    let (service, subsystems) = service();
    for failing in [false, true] {
        subsystems.0.set(failing);
        let health = send(&service, "GET /health", &[]);
        assert_eq!((health.head.status.as_u16(), body(&health)), (200, json!({"status": "ok"})));
    }
    let ready = send(&service, "GET /ready", &[]);
    assert_eq!(ready.head.status, 503);
    let expected =
        json!({"status": "not_ready", "subsystems": {"storage": "not_ready", "metadata": "ready"}});
    assert_eq!(body(&ready), expected, "the response has no file name of the host");
    subsystems.0.set(false);
    let ready = send(&service, "GET /ready", &[]);
    assert_eq!((ready.head.status.as_u16(), body(&ready)), (200, json!({"status": "ready"})));
}

#[test]
fn head_is_answered_like_get_without_body() {
    let (service, _) = service();
    let response = send(&service, "HEAD /health", &[]);
    assert_eq!(response.head.status, 200);
    assert_eq!(response.meta.route, "/health");
    assert!(
        matches!(response.body, ResponseBody::Full(body) if body.len() == 15),
        "the connection sends its length"
    );
}

#[test]
fn session_requires_a_valid_credential() {
    let (service, _) = service();
    let token = bearer();
    let root = basic("ROOT:root:secret");
    let expected = json!({"role": "system_admin", "principal": "system", "authentication": "token"});
    for scheme in ["Bearer", "bearer", "BEARER  "] {
        let session =
            send(&service, "GET /api/v1/auth/session", &[("authorization", &format!("{scheme} {TOKEN}"))]);
        assert_eq!(body(&session), expected);
    }
    let session = send(&service, "GET /api/v1/auth/session", &[("authorization", &root)]);
    let expected = json!({"role": "system_admin", "principal": "root", "authentication": "basic"});
    assert_eq!(body(&session), expected);

    let longer = format!("{token}x");
    let refused: &[&[(&str, &str)]] = &[
        &[],
        &[("authorization", "")],
        &[("authorization", TOKEN)],
        &[("authorization", "Bearer")],
        &[("authorization", "Bearer ")],
        &[("authorization", &longer)],
        &[("authorization", &token[..token.len() - 1])],
        &[("authorization", &basic("ROOT:wrong"))],
        &[("authorization", &basic("WRONG:root:secret"))],
        &[("authorization", &basic("ROOT"))],
        &[("authorization", "Basic !!!")],
    ];
    for headers in refused {
        // A new service has no recorded failures, so the delay is short.
        let (service, _) = self::service();
        let response = send(&service, "GET /api/v1/auth/session", headers);
        assert_eq!(response.head.status, 401, "{headers:?}");
        assert!(header(&response, "www-authenticate").starts_with("Bearer"));
        assert_eq!(body(&response)["error"]["code"], "UNAUTHENTICATED");
        assert_eq!(response.meta.error_code, Some("UNAUTHENTICATED"));
    }
}

/// A browser that stores the root credential adds it to all requests that a page of another site posts.
#[test]
fn stored_root_credential_is_refused_from_other_sites() {
    let (service, _) = service();
    let (root, token) = (basic("ROOT:root:secret"), bearer());
    let status = |authorization: &str, more: (&str, &str)| {
        let headers = [("authorization", authorization), more];
        send(&service, "POST /api/v1/buckets", &headers).head.status.as_u16()
    };
    for foreign in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "https://evil.example"),
        ("origin", "http://localhost:7602"),
        ("origin", "null"),
    ] {
        assert_eq!(status(&root, foreign), 403, "{foreign:?}");
        assert_eq!(status(&token, foreign), 503, "a browser never adds a token on its own: {foreign:?}");
    }
    for same in
        [("sec-fetch-site", "same-origin"), ("sec-fetch-site", "none"), ("origin", "http://localhost")]
    {
        assert_eq!(status(&root, same), 503, "admitted, but no store is open: {same:?}");
    }
}

/// The scrape token allows nothing else, and the other credentials do not allow a scrape.
#[test]
fn scrape_token_is_valid_for_metrics_only() {
    let (service, _) = service();
    let scraper = format!("Bearer {SCRAPE_TOKEN}");
    let status = |path: &str, authorization: &str| {
        let (service, _) = self::service();
        send(&service, &format!("GET {path}"), &[("authorization", authorization)]).head.status.as_u16()
    };
    // Admitted, but no store is open.
    assert_eq!(status("/metrics", &scraper), 503);
    assert_eq!(status("/api/v1/system/metrics", &bearer()), 503);
    for (path, authorization) in [
        ("/metrics", bearer()),
        ("/metrics", basic("ROOT:root:secret")),
        ("/metrics", format!("Basic {SCRAPE_TOKEN}")),
        ("/metrics", format!("{scraper}x")),
        ("/metrics", "Bearer ".to_owned()),
        ("/api/v1/system/metrics", scraper.clone()),
        ("/api/v1/auth/session", scraper.clone()),
    ] {
        assert_eq!(status(path, &authorization), 401, "{path} {authorization}");
    }
    let without = AdminService::new(AdminContext {
        credentials: ManagementCredentials { scrape_token: None, ..service.context.credentials.clone() },
        readiness: Box::new(Subsystems::default()),
        open: None,
        sessions: None,
        sign_ins: None,
        throttle: CredentialThrottle::default(),
        verifications: Verifications::default(),
        imports: ImportRuns::default(),
        archives: Archives::default(),
        metrics: Arc::default(),
        refused: cairn_observe::RefusedRequests::new(1),
        setting_values: Arc::default(),
        waits: crate::Waits::default(),
        capabilities: crate::Capabilities::default(),
        s3_endpoint: s3_endpoint(),
        drain: Drain::new(),
    });
    for authorization in ["Bearer ", "Bearer x", &scraper] {
        let response = send(&without, "GET /metrics", &[("authorization", authorization)]);
        assert_eq!(response.head.status, 401, "{authorization}");
    }
}

#[test]
fn system_info_lists_only_existing_capabilities() {
    let (service, _) = service();
    let info = body(&send(&service, "GET /api/v1/system/info", &[("authorization", &bearer())]));
    assert_eq!((&info["name"], &info["status"]), (&json!("cairn"), &json!("ready")));
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    let capabilities = info["capabilities"].as_object().unwrap();
    for name in ["versioning", "lifecycle"] {
        assert_eq!(capabilities[name], true, "{name}");
    }
    for name in ["webhooks", "events", "sharing", "object_browser", "erasure_coding"] {
        assert_eq!(capabilities[name], false, "{name}");
    }
}

#[test]
fn unknown_routes_and_methods_are_refused() {
    let (service, _) = service();
    for path in
        ["/", "/api/v1/nothing", "/health/", "/Health", "/api/v1/system/info/", "/metrics/", "/api/v1/%2e"]
    {
        let response = send(&service, &format!("GET {path}"), &[("authorization", &bearer())]);
        assert_eq!(response.head.status, 404, "{path}");
        assert_eq!(body(&response)["error"]["code"], "NOT_FOUND");
        assert_eq!(response.meta.route, "", "the log has no raw path");
    }
    let response = send(&service, "POST /api/v1/system/info", &[]);
    assert_eq!((response.head.status.as_u16(), header(&response, "allow")), (405, "GET, HEAD"));
    assert_eq!(body(&response)["error"]["code"], "METHOD_NOT_ALLOWED");
    assert_eq!(response.meta.route, "/api/v1/system/info");
}

#[test]
fn valid_request_id_of_client_is_used_everywhere() {
    let (service, _) = service();
    let response = send(&service, "GET /nothing", &[("x-request-id", "from-the-client-1")]);
    assert_eq!(header(&response, "x-request-id"), "from-the-client-1");
    assert_eq!(body(&response)["error"]["request_id"], "from-the-client-1");
    assert_eq!(response.meta.request_id, "from-the-client-1");
    let quoted = send(&service, "GET /nothing", &[("x-request-id", "a\"}{\"b")]);
    assert_eq!(body(&quoted)["error"]["request_id"], "a\"}{\"b", "the id is escaped");

    let long = "x".repeat(1000);
    for headers in [
        &[][..],
        &[("x-request-id", "two words")],
        &[("x-request-id", long.as_str())],
        &[("x-request-id", "a"), ("x-request-id", "b")],
    ] {
        let response = send(&service, "GET /health", headers);
        assert_eq!(header(&response, "x-request-id"), GENERATED_ID, "{headers:?}");
    }
}

#[test]
fn rejected_connections_get_json_errors_and_are_closed() {
    let (service, _) = service();
    for (reason, status, code) in [
        (Rejection::Head(HeadError::BadRequest("a space too many")), 400, "INVALID_REQUEST"),
        (Rejection::Head(HeadError::TooLarge), 431, "INVALID_REQUEST"),
        (Rejection::HeadTimeout, 408, "INVALID_REQUEST"),
        (Rejection::PlainHttp, 400, "INVALID_REQUEST"),
        (Rejection::Panic, 500, "INTERNAL_ERROR"),
        (Rejection::TooManyConnections, 503, "NOT_READY"),
    ] {
        let response = service.reject(reason, "ID");
        assert_eq!(response.head.status, status);
        assert_eq!(body(&response)["error"]["code"], code);
        assert_eq!(header(&response, "x-request-id"), "ID");
        assert!(response.close);
    }
}
