//! CORS over a real socket: what a browser is told before and after it sends, and what it is never told.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Answer, Call, Client, Server, UNIT_BYTES, content, find};

const PAGE: &str = "https://app.example.com";
const VARY: &str = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers";

fn rule(inner: &str) -> String {
    format!("<CORSRule>{inner}</CORSRule>")
}

fn configure(client: &mut Client, rules: &str) -> Answer {
    let body = format!("<CORSConfiguration>{rules}</CORSConfiguration>");
    client.send(Call::new("PUT", "/photos?cors").body(body))
}

/// A server whose bucket lets [`PAGE`] read and write, and every page read.
fn sharing() -> (Server, Client) {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let own = rule(
        "<AllowedOrigin>https://app.example.com</AllowedOrigin><AllowedMethod>GET</AllowedMethod>\
         <AllowedMethod>PUT</AllowedMethod><AllowedHeader>content-type</AllowedHeader><AllowedHeader>X-Amz-*</AllowedHeader>\
         <ExposeHeader>ETag</ExposeHeader><ExposeHeader>x-amz-version-id</ExposeHeader><MaxAgeSeconds>600</MaxAgeSeconds>",
    );
    let all = rule("<AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod>");
    configure(&mut client, &format!("{own}{all}")).expect(200);
    (server, client)
}

/// An unsigned preflight.
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

/// What answers to [`PAGE`] carry.
const FOR_PAGE: [(&str, &str); 6] = [
    ("access-control-allow-credentials", "true"),
    ("access-control-allow-methods", "GET, PUT"),
    ("access-control-allow-origin", PAGE),
    ("access-control-expose-headers", "ETag, x-amz-version-id"),
    ("access-control-max-age", "600"),
    ("vary", VARY),
];

#[test]
fn a_configuration_is_put_read_replaced_and_deleted() {
    let (_server, mut client) = sharing();
    let read = client.send(Call::new("GET", "/photos?cors")).expect(200);
    assert_eq!(read.elements("AllowedOrigin"), [PAGE, "*"]);
    assert_eq!(read.elements("AllowedMethod"), ["GET", "PUT", "GET"]);
    assert_eq!(read.elements("AllowedHeader"), ["content-type", "X-Amz-*"]);
    assert_eq!(read.elements("ExposeHeader"), ["ETag", "x-amz-version-id"]);
    assert_eq!((read.elements("MaxAgeSeconds"), read.element("ID")), (vec!["600".to_owned()], None));
    configure(
        &mut client,
        &rule("<ID>a</ID><AllowedOrigin>http://b:8080</AllowedOrigin><AllowedMethod>HEAD</AllowedMethod>"),
    )
    .expect(200);
    let read = client.send(Call::new("GET", "/photos?cors")).expect(200);
    assert_eq!(
        (read.element("ID").as_deref(), read.elements("AllowedOrigin")),
        (Some("a"), vec!["http://b:8080".to_owned()])
    );
    client.send(Call::new("DELETE", "/photos?cors")).expect(204);
    client.send(Call::new("GET", "/photos?cors")).refused(404, "NoSuchCORSConfiguration");
    client.send(Call::new("DELETE", "/photos?cors")).expect(204);
    for method in ["GET", "PUT", "DELETE"] {
        client.send(Call::new(method, "/missing?cors")).refused(404, "NoSuchBucket");
    }
}

#[test]
fn rules_outlast_a_restart() {
    let (server, client) = sharing();
    drop(client);
    let server = server.restarted(|_| {});
    let answer = server.client().send(Call::new("GET", "/photos?cors")).expect(200);
    assert_eq!(answer.elements("AllowedOrigin"), [PAGE, "*"]);
}

#[test]
fn a_configuration_that_may_not_be_leaves_the_old_one() {
    let (_server, mut client) = sharing();
    let get = "<AllowedMethod>GET</AllowedMethod>";
    for (rules, code) in [
        (String::new(), "MalformedXML"),
        (rule(get), "MalformedXML"),
        (rule("<AllowedOrigin>*</AllowedOrigin>"), "MalformedXML"),
        (rule(&format!("{get}<AllowedOrigin>https://*.example.com</AllowedOrigin>")), "InvalidRequest"),
        (rule(&format!("{get}<AllowedOrigin>https://app.example.com/</AllowedOrigin>")), "InvalidRequest"),
        (rule("<AllowedOrigin>*</AllowedOrigin><AllowedMethod>PATCH</AllowedMethod>"), "InvalidRequest"),
        (rule(&format!("{get}<AllowedOrigin>*</AllowedOrigin>")).repeat(101), "InvalidRequest"),
        (
            format!("{}{}", rule(&format!("{get}<AllowedOrigin>*</AllowedOrigin>")), " ".repeat(64 << 10)),
            "InvalidRequest",
        ),
    ] {
        let refused = configure(&mut client, &rules).refused(400, code);
        assert!(code == "MalformedXML" || !refused.element("Message").unwrap().is_empty());
    }
    let wrong = Call::new("PUT", "/photos?cors").header("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==");
    client.send(wrong.body("<CORSConfiguration/>")).refused(400, "BadDigest");
    let read = client.send(Call::new("GET", "/photos?cors")).expect(200);
    assert_eq!(read.elements("AllowedOrigin"), [PAGE, "*"]);
}

/// With the default of newer SDKs this arrives with a checksum, also when they compute it only where it is required.
#[test]
fn a_configuration_with_a_checksum_is_checked_and_taken() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let body = "<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>";
    let crc32 = crc32_base64(body.as_bytes());
    let call = Call::new("PUT", "/photos?cors")
        .header("x-amz-sdk-checksum-algorithm", "CRC32")
        .header("x-amz-checksum-crc32", &crc32)
        .body(body);
    client.send(call).expect(200);
    client.send(Call::new("GET", "/photos?cors")).expect(200);
}

/// CRC-32 of the ISO catalogue, bit by bit.
fn crc32_base64(bytes: &[u8]) -> String {
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xEDB8_8320 & 0_u32.wrapping_sub(crc & 1));
        }
    }
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode((!crc).to_be_bytes())
}

#[test]
fn a_preflight_is_answered_unsigned_by_the_first_rule_that_fits() {
    let (_server, mut client) = sharing();
    // The target of the request that is to follow, whatever it is: none of it is looked at.
    for target in
        ["/photos/a", "/photos", "/photos/a?uploadId=u&partNumber=1&X-Amz-Signature=0", "/photos/a?acl"]
    {
        let asked = [("origin", PAGE), ("access-control-request-method", "PUT")];
        let answer = preflight(&mut client, target, &asked).expect(200);
        assert_cors(&answer, &FOR_PAGE);
        assert_eq!(answer.body, b"");
    }
    let asked = [
        ("origin", "HTTPS://App.Example.com:443"),
        ("access-control-request-method", "PUT"),
        ("access-control-request-headers", "Content-Type,X-AMZ-meta-a"),
    ];
    let answer = preflight(&mut client, "/photos/a", &asked).expect(200);
    assert_eq!(answer.header("access-control-allow-headers"), Some("content-type, x-amz-meta-a"));
    assert_eq!(answer.header("access-control-allow-origin"), Some("HTTPS://App.Example.com:443"));
    let asked = [("origin", "http://other"), ("access-control-request-method", "GET")];
    let answer = preflight(&mut client, "/photos/a", &asked).expect(200);
    assert_cors(
        &answer,
        &[("access-control-allow-methods", "GET"), ("access-control-allow-origin", "*"), ("vary", VARY)],
    );
}

#[test]
fn a_preflight_that_no_rule_allows_is_403_without_cors_headers() {
    let (_server, mut client) = sharing();
    client.send(Call::new("PUT", "/closed")).expect(200);
    for asked in [&[][..], &[("access-control-request-method", "GET")], &[("origin", PAGE)]] {
        preflight(&mut client, "/photos/a", asked).refused(400, "BadRequest");
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
fn answers_carry_the_headers_whatever_they_say() {
    let (_server, mut client) = sharing();
    let mut send = |call: Call| client.send(call.header("origin", PAGE));
    assert_cors(&send(Call::new("PUT", "/photos/a").body("content")).expect(200), &FOR_PAGE);
    assert_cors(&send(Call::new("GET", "/photos/a")).expect(200), &FOR_PAGE);
    assert_cors(&send(Call::new("GET", "/photos/none")).refused(404, "NoSuchKey"), &FOR_PAGE);
    assert_cors(&send(Call::new("GET", "/photos?acl")).refused(501, "NotImplemented"), &FOR_PAGE);
    assert_cors(&send(Call::new("GET", "/photos?list-type=2")).expect(200), &FOR_PAGE);
    assert_cors(&send(Call::new("GET", "/missing/a")).refused(404, "NoSuchBucket"), &[]);
    // No rule for the method: it is done all the same, and the browser tells the page nothing.
    assert_cors(&send(Call::new("DELETE", "/photos/none")).expect(204), &[("vary", VARY)]);
    let unsigned = format!("GET /photos/a HTTP/1.1\r\nhost: {}\r\norigin: {PAGE}\r\n\r\n", client.host);
    assert_cors(&client.raw(unsigned).answer(false).refused(403, "AccessDenied"), &FOR_PAGE);
    assert_cors(&client.send(Call::new("GET", "/photos/a")).expect(200), &[]);
}

/// A presigned PUT from a page of another origin: the preflight with the names that a browser sends, then the upload.
#[test]
fn a_browser_uploads_by_a_presigned_url() {
    let (_server, mut client) = sharing();
    let target = client.presigned(&Call::new("PUT", "/photos/a"));
    let asked = [
        ("origin", PAGE),
        ("access-control-request-method", "PUT"),
        ("access-control-request-headers", "content-type"),
    ];
    preflight(&mut client, &target, &asked).expect(200);
    let request = format!(
        "PUT {target} HTTP/1.1\r\nhost: {}\r\norigin: {PAGE}\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nkept",
        client.host
    );
    let stored = client.raw(request).answer(false).expect(200);
    assert_cors(&stored, &FOR_PAGE);
    assert_eq!(client.send(Call::new("GET", "/photos/a")).expect(200).text(), "kept");
}

#[test]
fn a_streamed_body_and_a_failure_inside_carry_the_headers() {
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

/// Preflights are answered to anyone, and told a bucket without rules from one that does not exist.
#[test]
fn a_preflight_tells_nobody_whether_a_bucket_exists() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let headers = [("origin", "https://a.example"), ("access-control-request-method", "GET")];
    let mut told = |target: &str| {
        let answer = preflight(&mut client, target, &headers).expect(403);
        ["Code", "Message", "Method", "ResourceType"].map(|name| answer.element(name).unwrap())
    };
    let there = told("/photos/a");
    assert_eq!(there[0], "AccessForbidden");
    for target in ["/nothing/a", "/nothing", "/photos", "/No_Name/a"] {
        assert_eq!(told(target), there, "{target}");
    }
}
