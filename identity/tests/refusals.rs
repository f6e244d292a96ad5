//! Every refusal of the signature layer, by the code and status that S3 clients look for.

mod common;

use cairn_identity::{AuthError, Authenticator, Credential, Credentials, PayloadDigest, RootCredential};
use cairn_model::Timestamp;
use common::{ACCESS_KEY, DATE, EMPTY_SHA256, NOW, Request, SECRET_KEY, Signer, authenticator};
use std::cell::Cell;

/// A GET with every header that header authentication needs, not yet signed.
fn unsigned() -> Request {
    Request::new(
        "GET",
        "/bucket/key",
        "",
        &[("host", "localhost:7600"), ("x-amz-content-sha256", EMPTY_SHA256), ("x-amz-date", DATE)],
    )
}

fn signed() -> Request {
    let mut request = unsigned();
    Signer::default().sign(&mut request);
    request
}

fn presigned() -> Request {
    let mut request = Request::new("GET", "/bucket/key", "", &[("host", "localhost:7600")]);
    Signer::default().presign(&mut request, "host", "60", "UNSIGNED-PAYLOAD");
    request
}

/// Replaces a piece of the `Authorization` header.
fn with_authorization(from: &str, to: &str) -> Request {
    let mut request = signed();
    let authorization = request.get("authorization").replace(from, to);
    request.set("authorization", &authorization);
    request
}

#[test]
fn what_the_other_tests_break_is_sound() {
    signed().verdict().expect("signed");
    presigned().verdict().expect("presigned");
}

#[test]
fn a_request_without_authentication_is_denied() {
    assert_eq!(unsigned().refusal(), (403, "AccessDenied"));
    assert_eq!(unsigned().header("authorization", "").refusal(), (403, "AccessDenied"));
}

#[test]
fn header_and_query_authentication_together_are_refused() {
    let mut both = presigned();
    both.header("authorization", &signed().get("authorization"));
    assert_eq!(both.refusal(), (400, "InvalidArgument"));
    let mut with_version_2 = signed();
    with_version_2.append_query("AWSAccessKeyId=a&Signature=b&Expires=1");
    assert_eq!(with_version_2.refusal(), (400, "InvalidArgument"));
}

#[test]
fn signature_version_2_is_refused_in_header_and_query() {
    let mut header = unsigned();
    assert_eq!(header.header("authorization", "AWS AKID:c2lnbmF0dXJl").refusal(), (400, "InvalidRequest"));
    let mut query = unsigned();
    assert_eq!(
        query.append_query("AWSAccessKeyId=a&Signature=b&Expires=1").refusal(),
        (400, "InvalidRequest")
    );
}

#[test]
fn security_tokens_are_not_implemented_in_header_or_query() {
    let mut header = unsigned();
    header.header("x-amz-security-token", "t");
    Signer::default().sign(&mut header);
    assert_eq!(header.refusal(), (501, "NotImplemented"));
    for name in ["X-Amz-Security-Token", "x-amz-security-token"] {
        let mut query = Request::new("GET", "/b/k", &format!("{name}=t"), &[("host", "h")]);
        Signer::default().presign(&mut query, "host", "60", "UNSIGNED-PAYLOAD");
        assert_eq!(query.refusal(), (501, "NotImplemented"));
        assert!(query.verdict().expect_err("refused").message().contains("AWS_SESSION_TOKEN"));
    }
}

#[test]
fn a_malformed_authorization_header_says_what_is_wrong() {
    for (from, to, message) in [
        ("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA1", "only supports"),
        ("Signature=", "Sig=", "three components"),
        ("/s3/", "/ec2/", "incorrect service \"ec2\""),
        ("aws4_request", "aws3_request", "incorrect terminal \"aws3_request\""),
        ("/20130524/", "/2013-05-24/", "incorrect date format"),
        ("/20130524/", "/20130523/", "invalid credential date \"20130523\""),
        ("/us-east-1", "", "expecting \"<YOUR-AKID>/YYYYMMDD/REGION/s3/aws4_request\""),
        ("=host;", "=Host;", "SignedHeaders"),
    ] {
        let request = with_authorization(from, to);
        let error = request.verdict().expect_err(to);
        assert_eq!((error.status(), error.code()), (400, "AuthorizationHeaderMalformed"), "{to}");
        assert!(error.message().contains(message), "{to}: {error}");
    }
}

#[test]
fn malformed_presigned_parameters_say_what_is_wrong() {
    for (from, to, message) in [
        ("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA1", "X-Amz-Algorithm only supports"),
        ("X-Amz-Signature", "X-Amz-Sig", "requires the X-Amz-Algorithm"),
        ("X-Amz-Expires=60", "X-Amz-Expires=0", "between 1 and 604800"),
        ("X-Amz-Expires=60", "X-Amz-Expires=604801", "between 1 and 604800"),
        ("X-Amz-Expires=60", "X-Amz-Expires=soon", "between 1 and 604800"),
        ("%2Fs3%2F", "%2Fsqs%2F", "incorrect service \"sqs\""),
        ("X-Amz-Date=20130524T", "X-Amz-Date=20130524 ", "X-Amz-Date must be"),
        ("X-Amz-Date=20130524T", "X-Amz-Date=20130525T", "invalid credential date"),
    ] {
        let mut request = presigned();
        request.query = request.query.map(|query| query.replace(from, to));
        let error = request.verdict().expect_err(to);
        assert_eq!((error.status(), error.code()), (400, "AuthorizationQueryParametersError"), "{to}");
        assert!(error.message().contains(message), "{to}: {error}");
    }
}

#[test]
fn a_request_without_any_readable_date_is_denied() {
    let mut none = signed();
    assert_eq!(none.remove("x-amz-date").refusal(), (403, "AccessDenied"));
    let mut garbled = signed();
    assert_eq!(garbled.set("x-amz-date", "yesterday").refusal(), (403, "AccessDenied"));
    let mut query = presigned();
    query.query = query.query.map(|query| query.replace(&format!("X-Amz-Date={DATE}&"), ""));
    assert_eq!(query.refusal(), (403, "AccessDenied"));
}

#[test]
fn a_date_header_stands_in_for_amz_date() {
    let mut request = unsigned();
    request.remove("x-amz-date").header("date", "Fri, 24 May 2013 00:00:00 GMT");
    Signer::default().sign(&mut request);
    request.verdict().expect("RFC 7231 dates are accepted");
}

#[test]
fn amz_date_wins_over_a_date_header_that_disagrees() {
    let mut request = unsigned();
    request.header("date", "Sat, 01 Jan 2000 00:00:00 GMT");
    Signer::default().sign(&mut request);
    request.verdict().expect("x-amz-date counts");
}

#[test]
fn clocks_may_differ_by_fifteen_minutes_and_no_more() {
    let request = signed();
    let at = |seconds: i64| {
        request.authenticate(&authenticator(), Timestamp(NOW.0.saturating_add_signed(seconds * 1000)))
    };
    for seconds in [-900, 0, 900] {
        at(seconds).expect("within 15 minutes");
    }
    for seconds in [-901, 901] {
        let error = at(seconds).expect_err("more than 15 minutes");
        assert_eq!((error.status(), error.code()), (403, "RequestTimeTooSkewed"));
        let details = error.details();
        assert_eq!(details[0], ("RequestTime", DATE.to_owned()));
        assert!(details[1].1.starts_with("2013-05-2"), "{details:?}");
        assert_eq!(details[2], ("MaxAllowedSkewMilliseconds", "900000".to_owned()));
    }
}

#[test]
fn presigned_urls_hold_from_fifteen_minutes_before_their_date_to_their_end() {
    let request = presigned();
    let at = |seconds: i64| {
        request.authenticate(&authenticator(), Timestamp(NOW.0.saturating_add_signed(seconds * 1000)))
    };
    for seconds in [-900, 0, 60] {
        at(seconds).expect("valid");
    }
    let early = at(-901).expect_err("too early");
    assert_eq!(
        (early.status(), early.code(), &*early.message()),
        (403, "AccessDenied", "Request is not yet valid")
    );
    let late = at(61).expect_err("too late");
    assert_eq!((late.status(), late.code(), &*late.message()), (403, "AccessDenied", "Request has expired"));
    assert_eq!(late.details()[1], ("Expires", "2013-05-24T00:01:00Z".to_owned()));
}

#[test]
fn an_unknown_access_key_is_named() {
    let error = with_authorization(ACCESS_KEY, "NOBODY").verdict().expect_err("unknown");
    assert_eq!((error.status(), error.code()), (403, "InvalidAccessKeyId"));
    assert_eq!(error.details(), [("AWSAccessKeyId", "NOBODY".to_owned())]);
}

#[test]
fn a_wrong_signature_comes_with_everything_needed_to_find_out_why() {
    let mut request = signed();
    request.method = "PUT".into();
    let error = request.verdict().expect_err("another method");
    assert_eq!((error.status(), error.code()), (403, "SignatureDoesNotMatch"));
    let details = error.details();
    let detail = |name: &str| &details.iter().find(|(found, _)| *found == name).expect(name).1;
    assert_eq!(detail("AWSAccessKeyId"), ACCESS_KEY);
    assert!(detail("StringToSign").starts_with("AWS4-HMAC-SHA256\n20130524T000000Z\n20130524/us-east-1/s3/"));
    assert!(detail("CanonicalRequest").starts_with("PUT\n/bucket/key\n\nhost:localhost:7600\n"));
    assert!(request.get("authorization").ends_with(detail("SignatureProvided")));
    assert!(!format!("{error:?} {error}").contains(SECRET_KEY));
}

#[test]
fn a_signature_that_is_not_hexadecimal_is_just_wrong() {
    let signature = signed().get("authorization").rsplit_once('=').expect("a signature").1.to_owned();
    for wrong in ["bogus", &signature.to_uppercase(), &signature[..63], &format!("{signature}0")] {
        assert_eq!(
            with_authorization(&signature, wrong).refusal(),
            (403, "SignatureDoesNotMatch"),
            "{wrong}"
        );
    }
}

#[test]
fn every_amz_header_and_host_must_be_signed_in_the_header() {
    let mut request = signed();
    request.header("x-amz-meta-added", "1").header("x-amz-meta-added", "2").header("x-amz-acl", "private");
    let error = request.verdict().expect_err("unsigned headers");
    assert_eq!((error.status(), error.code()), (403, "AccessDenied"));
    assert_eq!(error.message(), "There were headers present in the request which were not signed");
    assert_eq!(error.details(), [("HeadersNotSigned", "x-amz-meta-added, x-amz-acl".to_owned())]);

    let mut without_host = unsigned();
    Signer::default().sign_headers(&mut without_host, "x-amz-content-sha256;x-amz-date");
    let error = without_host.verdict().expect_err("unsigned host");
    assert_eq!(error.details(), [("HeadersNotSigned", "host".to_owned())]);
}

#[test]
fn a_copy_source_cannot_be_added_to_a_presigned_url() {
    let mut request = presigned();
    let error = request.header("x-amz-copy-source", "/secret/key").verdict().expect_err("unsigned header");
    assert_eq!(error, AuthError::HeadersNotSigned { names: "x-amz-copy-source".to_owned() });
}

#[test]
fn headers_that_are_not_amz_may_stay_unsigned_but_count_once_signed() {
    let mut request = signed();
    request.header("content-type", "text/plain").header("x-amzn-trace-id", "1").header("user-agent", "x");
    request.verdict().expect("unsigned content-type is fine");

    let mut signed_type = unsigned();
    signed_type.header("content-type", "text/plain").header("expect", "100-continue");
    Signer::default().sign(&mut signed_type);
    signed_type.verdict().expect("as signed");
    assert_eq!(
        signed_type.clone().set("content-type", "text/html").refusal(),
        (403, "SignatureDoesNotMatch")
    );
    assert_eq!(signed_type.remove("expect").refusal(), (403, "SignatureDoesNotMatch"));
}

#[test]
fn content_sha256_is_necessary_in_header_authentication() {
    let mut request = signed();
    assert_eq!(request.remove("x-amz-content-sha256").refusal(), (400, "InvalidRequest"));
    let mut odd = signed();
    assert_eq!(odd.set("x-amz-content-sha256", "abc").refusal(), (400, "InvalidArgument"));
}

#[test]
fn streaming_payloads_are_not_implemented_in_header_or_presigned() {
    for value in ["STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"] {
        let mut header = unsigned();
        header.set("x-amz-content-sha256", value);
        Signer::default().sign(&mut header);
        assert_eq!(header.refusal(), (501, "NotImplemented"));
        assert_eq!(presigned().header("x-amz-content-sha256", value).refusal(), (501, "NotImplemented"));
        let mut hoisted =
            Request::new("PUT", "/b/k", &format!("X-Amz-Content-Sha256={value}"), &[("host", "h")]);
        Signer::default().presign(&mut hoisted, "host", "60", value);
        assert_eq!(hoisted.refusal(), (501, "NotImplemented"));
    }
}

#[test]
fn a_presigned_digest_binds_the_body_whether_in_header_or_query() {
    let mut header =
        Request::new("PUT", "/b/k", "", &[("host", "h"), ("x-amz-content-sha256", EMPTY_SHA256)]);
    Signer::default().presign(&mut header, "host;x-amz-content-sha256", "60", EMPTY_SHA256);
    let proven = header.verdict().expect("signed digest");
    assert!(matches!(proven.payload, PayloadDigest::Sha256([0xe3, ..])));

    for (value, unsigned) in [(EMPTY_SHA256, false), ("UNSIGNED-PAYLOAD", true)] {
        let query = format!("X-Amz-Content-Sha256={value}");
        let mut hoisted = Request::new("PUT", "/b/k", &query, &[("host", "h")]);
        Signer::default().presign(&mut hoisted, "host", "60", value);
        let proven = hoisted.verdict().expect("hoisted digest");
        assert_eq!(proven.payload == PayloadDigest::Unsigned, unsigned);
    }

    let mut added = presigned();
    added.header("x-amz-content-sha256", EMPTY_SHA256);
    assert_eq!(added.refusal(), (403, "AccessDenied"));
}

#[test]
fn headers_that_decide_about_the_signature_may_occur_once() {
    for name in ["authorization", "x-amz-date", "x-amz-content-sha256", "date"] {
        let mut request = unsigned();
        request.header("date", "Fri, 24 May 2013 00:00:00 GMT");
        Signer::default().sign(&mut request);
        let value = request.get(name);
        assert_eq!(request.header(name, &value).refusal(), (400, "InvalidRequest"), "{name}");
    }
}

#[test]
fn broken_percent_encoding_is_an_invalid_uri() {
    let mut path = signed();
    path.path = "/bucket/%zz".into();
    assert_eq!(path.refusal(), (400, "InvalidURI"));
    let mut query = signed();
    assert_eq!(query.append_query("prefix=%").refusal(), (400, "InvalidURI"));
}

#[test]
fn every_region_is_ours() {
    for region in ["us-east-1", "auto", "eu west", &"r".repeat(500)] {
        let mut request = unsigned();
        Signer { region: region.into(), ..Signer::default() }.sign(&mut request);
        request.verdict().expect(region);
    }
}

#[test]
fn root_switched_off_authenticates_and_is_then_denied() {
    let off = Authenticator::new(RootCredential::new(ACCESS_KEY, SECRET_KEY).s3_enabled(false));
    let error = signed().authenticate(&off, NOW).expect_err("switched off");
    assert_eq!(error, AuthError::DataPlaneRefused);
    assert_eq!((error.status(), error.code()), (403, "AccessDenied"));
    // Who cannot sign does not learn that the key is switched off.
    let mut wrong = signed();
    wrong.method = "PUT".into();
    let error = wrong.authenticate(&off, NOW).expect_err("wrong signature");
    assert_eq!(error.code(), "SignatureDoesNotMatch");
}

/// A credential whose secret can be changed, as rotation does.
struct Rotating {
    secret_key: Cell<&'static str>,
    generation: Cell<u64>,
}

impl Credentials for Rotating {
    fn find(&self, _access_key: &str, now: Timestamp) -> Option<Credential> {
        let root = RootCredential::new(ACCESS_KEY, self.secret_key.get()).find(ACCESS_KEY, now)?;
        Some(Credential { generation: self.generation.get(), ..root })
    }
}

#[test]
fn a_rotated_secret_counts_from_the_next_request_on() {
    let credentials = Rotating { secret_key: Cell::new(SECRET_KEY), generation: Cell::new(1) };
    let authenticator = Authenticator::new(&credentials);
    let old = signed();
    for _ in 0..2 {
        old.authenticate(&authenticator, NOW).expect("the old secret holds");
    }
    credentials.secret_key.set("another");
    credentials.generation.set(2);
    let mut new = unsigned();
    Signer { secret_key: "another".into(), ..Signer::default() }.sign(&mut new);
    for _ in 0..2 {
        assert_eq!(old.authenticate(&authenticator, NOW).expect_err("old").code(), "SignatureDoesNotMatch");
        new.authenticate(&authenticator, NOW).expect("the new secret holds");
    }
}
