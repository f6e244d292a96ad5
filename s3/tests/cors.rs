//! CORS headers of refused preflights, streamed bodies and failures.

use crate::common::{Answer, Call, Client, Server, UNIT_BYTES, content, find};

const PAGE: &str = "https://app.example.com";
const VARY: &str = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers";

fn rule(inner: &str) -> String {
    format!("<CORSRule>{inner}</CORSRule>")
}

fn configure(client: &mut Client, rules: &str) -> Answer {
    let body = format!("<CORSConfiguration>{rules}</CORSConfiguration>");
    client.send(Call::new("PUT", "/photos?cors").body(body))
}

/// Starts a server whose bucket lets [`PAGE`] read and write, and every page read.
fn sharing() -> (Server, Client) {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let for_page = rule(
        "<AllowedOrigin>https://app.example.com</AllowedOrigin><AllowedMethod>GET</AllowedMethod>\
         <AllowedMethod>PUT</AllowedMethod><AllowedHeader>content-type</AllowedHeader><AllowedHeader>X-Amz-*</AllowedHeader>\
         <ExposeHeader>ETag</ExposeHeader><ExposeHeader>x-amz-version-id</ExposeHeader><MaxAgeSeconds>600</MaxAgeSeconds>",
    );
    let all = rule("<AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod>");
    configure(&mut client, &format!("{for_page}{all}")).expect(200);
    (server, client)
}

/// Sends an unsigned preflight.
fn preflight(client: &mut Client, target: &str, headers: &[(&str, &str)]) -> Answer {
    let host = client.host.clone();
    let mut request = format!("OPTIONS {target} HTTP/1.1\r\nhost: {host}\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    client.raw(format!("{request}\r\n")).answer(false)
}

fn cors_headers(answer: &Answer) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = answer
        .head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .filter(|(name, _)| name.starts_with("access-control-") || name == "vary")
        .collect();
    found.sort();
    found
}

#[track_caller]
fn assert_cors(answer: &Answer, expected: &[(&str, &str)]) {
    let expected: Vec<(String, String)> =
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    assert_eq!(cors_headers(answer), expected, "{}", answer.head);
}

/// The CORS headers of responses to [`PAGE`].
const FOR_PAGE: [(&str, &str); 6] = [
    ("access-control-allow-credentials", "true"),
    ("access-control-allow-methods", "GET, PUT"),
    ("access-control-allow-origin", PAGE),
    ("access-control-expose-headers", "ETag, x-amz-version-id"),
    ("access-control-max-age", "600"),
    ("vary", VARY),
];

#[test]
fn preflight_without_a_matching_rule_is_403() {
    let (_server, mut client) = sharing();
    client.send(Call::new("PUT", "/closed")).expect(200);
    for headers in [&[][..], &[("access-control-request-method", "GET")], &[("origin", PAGE)]] {
        preflight(&mut client, "/photos/a", headers).refused(400, "BadRequest");
    }
    let get = ("access-control-request-method", "GET");
    let put = ("access-control-request-method", "PUT");
    for (target, headers, resource) in [
        ("/photos/a", &[("origin", "http://app.example.com"), put][..], "OBJECT"),
        ("/photos/a", &[("origin", "https://app.example.com:8443"), put], "OBJECT"),
        ("/photos", &[("origin", "https://app.example.com.evil.test"), put], "BUCKET"),
        ("/photos/a", &[("origin", PAGE), ("access-control-request-method", "DELETE")], "OBJECT"),
        (
            "/photos/a",
            &[("origin", PAGE), put, ("access-control-request-headers", "authorization")],
            "OBJECT",
        ),
        ("/closed/a", &[("origin", PAGE), get], "BUCKET"),
        ("/missing/a", &[("origin", PAGE), get], "BUCKET"),
        ("/", &[("origin", PAGE), get], "BUCKET"),
    ] {
        let refused = preflight(&mut client, target, headers).refused(403, "AccessForbidden");
        assert_cors(&refused, &[]);
        assert_eq!(refused.element("ResourceType").as_deref(), Some(resource), "{target} {headers:?}");
        assert!(refused.element("Message").unwrap().starts_with("CORSResponse: "));
    }
    let twice = [("origin", PAGE), ("origin", "https://b"), get];
    preflight(&mut client, "/photos/a", &twice).refused(400, "InvalidRequest");
}

#[test]
fn streamed_bodies_and_failures_carry_cors_headers() {
    let (server, mut client) = sharing();
    let body = content(7, 3 << 20);
    client.send(Call::new("PUT", "/photos/large").body(body.clone())).expect(200);
    let get = || Call::new("GET", "/photos/large").header("origin", PAGE);
    let whole = client.send(get()).expect(200);
    assert_cors(&whole, &FOR_PAGE);
    assert_eq!(whole.body, body);
    drop(client);
    let server = server.restarted(|folder| {
        let (file, offset) = find(folder, &body[..UNIT_BYTES]);
        std::os::unix::fs::FileExt::write_all_at(&file, &[0; 64], offset).unwrap();
    });
    assert_cors(&server.client().send(get()).refused(500, "InternalError"), &FOR_PAGE);
}

/// Responses to preflights, which anyone may send, differed for a bucket without rules and a missing one.
#[test]
fn preflight_does_not_reveal_whether_a_bucket_exists() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let headers = [("origin", "https://a.example"), ("access-control-request-method", "GET")];
    let mut refusal = |target: &str| {
        let answer = preflight(&mut client, target, &headers).expect(403);
        ["Code", "Message", "Method", "ResourceType"].map(|name| answer.element(name).unwrap())
    };
    let existing = refusal("/photos/a");
    assert_eq!(existing[0], "AccessForbidden");
    for target in ["/nothing/a", "/nothing", "/photos", "/No_Name/a"] {
        assert_eq!(refusal(target), existing, "{target}");
    }
}
