//! Accepted and refused request heads, however the bytes are cut.

use cairn_http1::{BodyFraming, HeadError, HeadLimits, HeadParser, RequestHead, StatusCode, parse_head};
use proptest::prelude::*;

fn parse(text: impl AsRef<[u8]>) -> Result<Option<(RequestHead, usize)>, HeadError> {
    parse_head(text.as_ref(), &HeadLimits::default())
}

fn accepted(text: &str) -> RequestHead {
    match parse(text) {
        Ok(Some((head, length))) => {
            assert_eq!(length, text.len(), "{text:?}");
            head
        }
        other => panic!("{text:?} gave {other:?}"),
    }
}

/// Returns the status with which `text` is refused.
fn refused(text: impl AsRef<[u8]>) -> StatusCode {
    match parse(text.as_ref()) {
        Err(error) => error.status(),
        other => panic!("{:?} gave {other:?}", String::from_utf8_lossy(text.as_ref())),
    }
}

/// Returns a GET with these additional header lines.
fn with_fields(lines: &str) -> String {
    format!("GET /b/k HTTP/1.1\r\nHost: h\r\n{lines}\r\n")
}

#[test]
fn all_parts_of_a_head_are_parsed() {
    let head = accepted(
        "PUT /b/a%20b//../c?x=1&y HTTP/1.1\r\nHost: localhost:7600\r\nX-Amz-Meta-A: \t v w \t\r\nETag:\r\nx-amz-meta-a: 2\r\n\
         Content-Length: 12\r\n\r\n",
    );
    assert_eq!(head.method(), "PUT");
    assert_eq!(head.path(), "/b/a%20b//../c");
    assert_eq!(head.query(), Some("x=1&y"));
    assert_eq!(head.header("x-amz-meta-a"), Some(&b"v w"[..]));
    assert_eq!(head.header_values("x-amz-meta-a").count(), 2);
    assert_eq!(head.header("etag"), Some(&b""[..]));
    assert_eq!(head.header("missing"), None);
    assert_eq!(head.framing(), BodyFraming::Length(12));
    assert!(head.keep_alive() && !head.expects_continue() && head.is_version_1_1());
    let names: Vec<&str> = head.headers().map(|(name, _)| name).collect();
    assert_eq!(names, ["host", "x-amz-meta-a", "etag", "x-amz-meta-a", "content-length"]);
}

/// Any token was accepted as a method, even one as long as the whole head: 20 KB of it were repeated in the error body
/// and in the log.
#[test]
fn a_very_long_method_is_refused() {
    let with_method = |length| format!("{} / HTTP/1.1\r\nHost: h\r\n\r\n", "M".repeat(length));
    assert_eq!(accepted(&with_method(32)).method().as_str().len(), 32);
    assert_eq!(refused(with_method(33)), StatusCode::BAD_REQUEST);
    assert_eq!(refused(with_method(20_000)), StatusCode::BAD_REQUEST);
}

#[test]
fn an_empty_query_is_not_a_missing_one() {
    assert_eq!(accepted("GET /? HTTP/1.1\r\nHost: h\r\n\r\n").query(), Some(""));
    assert_eq!(accepted("GET / HTTP/1.1\r\nHost: h\r\n\r\n").query(), None);
    assert_eq!(accepted("GET /?a?b HTTP/1.1\r\nHost: h\r\n\r\n").query(), Some("a?b"));
}

#[test]
fn the_head_ends_where_the_body_begins() {
    let text = with_fields("Content-Length: 5\r\n");
    let (_, length) = parse(format!("{text}hello")).unwrap().unwrap();
    assert_eq!(length, text.len());
}

#[test]
fn values_above_ascii_are_kept() {
    let head = accepted(&with_fields("x-amz-meta-a: é\r\n"));
    assert_eq!(head.header("x-amz-meta-a"), Some("é".as_bytes()));
    assert_eq!(head.header_str("x-amz-meta-a"), None);
}

#[test]
fn version_and_header_decide_about_keep_alive() {
    let keeps = |version: &str, lines: &str| {
        accepted(&format!("GET / HTTP/{version}\r\nHost: h\r\n{lines}\r\n")).keep_alive()
    };
    assert!(keeps("1.1", ""));
    assert!(!keeps("1.1", "Connection: close\r\n"));
    assert!(!keeps("1.1", "Connection: keep-alive, Close\r\n"));
    assert!(!keeps("1.1", "Connection: keep-alive\r\nConnection: close\r\n"));
    assert!(!keeps("1.0", ""));
    assert!(keeps("1.0", "Connection: Keep-Alive\r\n"));
}

#[test]
fn only_100_continue_is_an_accepted_expectation() {
    assert!(accepted(&with_fields("Expect: 100-Continue\r\n")).expects_continue());
    assert!(!accepted("GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").expects_continue());
    assert_eq!(refused(with_fields("Expect: tea\r\n")), StatusCode::EXPECTATION_FAILED);
}

#[test]
fn chunked_bodies_are_recognised() {
    assert_eq!(accepted(&with_fields("Transfer-Encoding: Chunked\r\n")).framing(), BodyFraming::Chunked);
    assert_eq!(refused(with_fields("Transfer-Encoding: gzip, chunked\r\n")), StatusCode::NOT_IMPLEMENTED);
    assert_eq!(refused(with_fields("Transfer-Encoding: chunked, gzip\r\n")), StatusCode::BAD_REQUEST);
    assert_eq!(refused(with_fields("Transfer-Encoding: xchunked\r\n")), StatusCode::BAD_REQUEST);
    assert_eq!(refused(with_fields("Transfer-Encoding:\r\n")), StatusCode::BAD_REQUEST);
    assert_eq!(refused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), StatusCode::BAD_REQUEST);
}

#[test]
fn smuggling_is_refused() {
    for lines in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\ncontent-length: 6\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length:\r\n",
        "Content-Length: 18446744073709551616\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\nContent-Length: 1\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Content-Length : 5\r\n",
        " Content-Length: 5\r\n",
        "A: b\r\n c\r\n",
        "A: b\r\n\tc\r\n",
        "A: b\0c\r\n",
        "A: b\x01c\r\n",
        "A: b\x7fc\r\n",
        "A: b\rc\r\n",
        "A\0: b\r\n",
        "A b: c\r\n",
        ": c\r\n",
        "no colon\r\n",
        "é: c\r\n",
        "Host: other\r\n",
        "Range: bytes=0-1\r\nRange: bytes=0-1\r\n",
        "If-Match: a\r\nIf-Match: b\r\n",
        "If-None-Match: a\r\nIf-None-Match: b\r\n",
        "If-Modified-Since: a\r\nIf-Modified-Since: b\r\n",
        "If-Unmodified-Since: a\r\nIf-Unmodified-Since: b\r\n",
        "If-Range: a\r\nIf-Range: b\r\n",
        "Authorization: a\r\nAuthorization: b\r\n",
    ] {
        assert_eq!(refused(with_fields(lines)), StatusCode::BAD_REQUEST, "{lines:?}");
    }
}

#[test]
fn line_ends_other_than_cr_lf_are_refused() {
    for text in [
        "GET / HTTP/1.1\nHost: h\n\n",
        "GET / HTTP/1.1\r\nHost: h\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nA: b\n\n",
        "GET / HTTP/1.1\r\nHost: h\r\n\n",
        "\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\r\n\r\n",
    ] {
        assert_eq!(refused(text), StatusCode::BAD_REQUEST, "{text:?}");
    }
}

#[test]
fn ambiguous_targets_are_refused() {
    for target in [
        "http://h/b",
        "h:443",
        "*",
        "b",
        "/a#b",
        "/a\"b",
        "/a<b",
        "/a>b",
        "/é",
        "/a b",
        "/a\tb",
        "/a\x7fb",
        "",
    ] {
        let text = format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(refused(&text), StatusCode::BAD_REQUEST, "{text:?}");
    }
    for target in ["/", "//", "/a|b", "/a{b}^c", "/a%zz", "/a/../b", "/a;b=c"] {
        let text = format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(accepted(&text).path(), target);
    }
}

#[test]
fn a_valid_host_is_required() {
    assert_eq!(refused("GET / HTTP/1.1\r\nA: b\r\n\r\n"), StatusCode::BAD_REQUEST);
    for host in [
        "",
        "a b",
        "a/b",
        "u@h",
        "h?x",
        "é",
        ":80",
        "[",
        "[]",
        "[::1",
        "::1",
        "[::1]7600",
        "[::1]]",
        "a[::1]",
        "[a]",
        "[1.2.3.4]",
        "[::1%a/b]",
        "a]",
        "h:x",
        "h:-1",
        "h:+1",
        "h:1:2",
        "h:99999",
        "h:65536",
        "h:18446744073709551617",
        "[::1]:65536",
        "127.0.0.1:abc",
    ] {
        assert_eq!(
            refused(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")),
            StatusCode::BAD_REQUEST,
            "{host}"
        );
    }
    for host in [
        "h",
        "h:7600",
        "h:",
        "h:0",
        "h:00080",
        "h:65535",
        "127.0.0.1:1",
        "[::1]",
        "[::1]:",
        "[::1]:7600",
        "[2001:db8::1.2.3.4]:1",
        "[fe80::1%eth0]:80",
        "a-b_c.example",
        "a%20b",
    ] {
        accepted(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    }
    accepted("GET / HTTP/1.0\r\n\r\n");
}

#[test]
fn other_versions_are_refused() {
    assert_eq!(refused("GET / HTTP/2.0\r\nHost: h\r\n\r\n"), StatusCode::HTTP_VERSION_NOT_SUPPORTED);
    assert_eq!(refused("GET / HTTP/1.2\r\nHost: h\r\n\r\n"), StatusCode::HTTP_VERSION_NOT_SUPPORTED);
    assert_eq!(refused("GET /\r\nHost: h\r\n\r\n"), StatusCode::BAD_REQUEST);
    assert_eq!(refused("GE(T / HTTP/1.1\r\nHost: h\r\n\r\n"), StatusCode::BAD_REQUEST);
}

#[test]
fn heads_beyond_the_limits_are_too_large() {
    let limits = HeadLimits::default();
    let fits =
        with_fields(&format!("A: {}\r\n", "x".repeat(limits.bytes_max - with_fields("A: \r\n").len())));
    assert_eq!(fits.len(), limits.bytes_max);
    accepted(&fits);
    let over = with_fields(&format!("A: {}\r\n", "x".repeat(limits.bytes_max)));
    assert_eq!(refused(&over), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    let endless = vec![b'x'; limits.bytes_max];
    assert_eq!(refused(&endless), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    accepted(&with_fields(&"a: b\r\n".repeat(limits.fields_max - 1)));
    assert_eq!(
        refused(with_fields(&"a: b\r\n".repeat(limits.fields_max))),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    );
}

#[test]
fn limits_beyond_the_parsers_own_are_reduced() {
    let limits = HeadLimits { bytes_max: usize::MAX, fields_max: usize::MAX };
    let over = with_fields(&format!("A: {}\r\n", "x".repeat(70_000)));
    assert_eq!(parse_head(over.as_bytes(), &limits).unwrap_err(), HeadError::TooLarge);
    let many = with_fields(&"a: b\r\n".repeat(300));
    assert_eq!(parse_head(many.as_bytes(), &limits).unwrap_err(), HeadError::TooLarge);
}

/// Returns the result of a head that arrives in pieces of these sizes. The last size is repeated.
fn outcome_in_pieces(bytes: &[u8], sizes: &[usize], limits: HeadLimits) -> Outcome {
    let mut parser = HeadParser::new(limits);
    let mut given = 0;
    for size in sizes.iter().copied().chain(std::iter::repeat(1)) {
        given = (given + size).min(bytes.len());
        match parser.parse(&bytes[..given]) {
            Ok(None) if given == bytes.len() => return Outcome::More,
            Ok(None) => {}
            Ok(Some((head, length))) => return Outcome::Head(format!("{head:?}"), length),
            Err(error) => return Outcome::Refused(error),
        }
    }
    Outcome::More
}

#[derive(PartialEq, Debug)]
enum Outcome {
    More,
    Head(String, usize),
    Refused(HeadError),
}

/// Generates bytes that look like heads, with typical faults.
fn head_like() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just("\r\n".to_owned()),
        1 => Just("\n".to_owned()),
        1 => Just("\r".to_owned()),
        2 => Just("\r\n\r\n".to_owned()),
        3 => Just("Host: h\r\n".to_owned()),
        2 => Just("Content-Length: 5\r\n".to_owned()),
        1 => Just("Transfer-Encoding: chunked\r\n".to_owned()),
        2 => "[a-zA-Z-]{1,8}: ?[ -~]{0,12}\r\n",
        1 => "[\\x00-\\xff]{0,6}",
    ];
    let request_line = prop_oneof![
        6 => Just("GET /a?b HTTP/1.1\r\n".to_owned()),
        1 => Just("GET http://h/ HTTP/1.1\r\n".to_owned()),
        1 => Just("GET / HTTP/1.0\r\n".to_owned()),
        1 => Just(String::new()),
    ];
    (request_line, prop::collection::vec(piece, 0..8))
        .prop_map(|(line, pieces)| (line + &pieces.concat()).into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn cutting_the_bytes_does_not_change_the_result(
        bytes in head_like(),
        sizes in prop::collection::vec(0_usize..20, 0..12),
        bytes_max in prop_oneof![Just(40_usize), Just(32 * 1024)],
    ) {
        let limits = HeadLimits { bytes_max, ..HeadLimits::default() };
        let whole = outcome_in_pieces(&bytes, &[bytes.len()], limits);
        prop_assert_eq!(outcome_in_pieces(&bytes, &sizes, limits), whole);
    }

    #[test]
    fn any_bytes_are_parsed_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes);
    }
}
