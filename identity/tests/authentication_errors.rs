//! Authentication errors, by the status and code that S3 clients check.

use crate::signer::{ACCESS_KEY, DATE, EMPTY_SHA256, NOW, Request, SECRET_KEY, Signer, authenticator};
use cairn_identity::{
    AuthError, Authenticator, Credential, Credentials, Generation, PayloadDigest, Principal, RootCredential,
};
use cairn_model::Timestamp;
use std::cell::Cell;

/// Makes an unsigned GET with every header that header authentication needs.
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

/// Replaces a part of the `Authorization` header.
fn with_authorization(from: &str, to: &str) -> Request {
    let mut request = signed();
    let authorization = request.get("authorization").replace(from, to);
    request.set("authorization", &authorization);
    request
}

#[test]
fn requests_that_other_tests_alter_are_valid() {
    signed().verify().expect("signed");
    presigned().verify().expect("presigned");
}

#[test]
fn unauthenticated_requests_are_denied() {
    assert_eq!(unsigned().error_code(), (403, "AccessDenied"));
    assert_eq!(unsigned().header("authorization", "").error_code(), (403, "AccessDenied"));
}

#[test]
fn header_and_query_authentication_together_are_refused() {
    let mut both = presigned();
    both.header("authorization", &signed().get("authorization"));
    assert_eq!(both.error_code(), (400, "InvalidArgument"));
    let mut with_version_2 = signed();
    with_version_2.append_query("AWSAccessKeyId=a&Signature=b&Expires=1");
    assert_eq!(with_version_2.error_code(), (400, "InvalidArgument"));
}

#[test]
fn signature_version_2_is_refused_in_header_and_query() {
    let mut header = unsigned();
    assert_eq!(header.header("authorization", "AWS AKID:c2lnbmF0dXJl").error_code(), (400, "InvalidRequest"));
    let mut query = unsigned();
    assert_eq!(
        query.append_query("AWSAccessKeyId=a&Signature=b&Expires=1").error_code(),
        (400, "InvalidRequest")
    );
}

#[test]
fn security_tokens_are_not_implemented_in_header_or_query() {
    let mut header = unsigned();
    header.header("x-amz-security-token", "t");
    Signer::default().sign(&mut header);
    assert_eq!(header.error_code(), (501, "NotImplemented"));
    for name in ["X-Amz-Security-Token", "x-amz-security-token"] {
        let mut query = Request::new("GET", "/b/k", &format!("{name}=t"), &[("host", "h")]);
        Signer::default().presign(&mut query, "host", "60", "UNSIGNED-PAYLOAD");
        assert_eq!(query.error_code(), (501, "NotImplemented"));
        assert!(query.verify().expect_err("refused").message().contains("AWS_SESSION_TOKEN"));
    }
}

#[test]
fn errors_describe_malformed_authorization_headers() {
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
        let error = request.verify().expect_err(to);
        assert_eq!((error.status(), error.code()), (400, "AuthorizationHeaderMalformed"), "{to}");
        assert!(error.message().contains(message), "{to}: {error}");
    }
}

#[test]
fn errors_describe_malformed_presigned_parameters() {
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
        let error = request.verify().expect_err(to);
        assert_eq!((error.status(), error.code()), (400, "AuthorizationQueryParametersError"), "{to}");
        assert!(error.message().contains(message), "{to}: {error}");
    }
}

#[test]
fn requests_without_a_valid_date_are_denied() {
    let mut none = signed();
    assert_eq!(none.remove("x-amz-date").error_code(), (403, "AccessDenied"));
    let mut garbled = signed();
    assert_eq!(garbled.set("x-amz-date", "yesterday").error_code(), (403, "AccessDenied"));
    let mut query = presigned();
    query.query = query.query.map(|query| query.replace(&format!("X-Amz-Date={DATE}&"), ""));
    assert_eq!(query.error_code(), (403, "AccessDenied"));
}

#[test]
fn a_date_header_can_replace_amz_date() {
    let mut request = unsigned();
    request.remove("x-amz-date").header("date", "Fri, 24 May 2013 00:00:00 GMT");
    Signer::default().sign(&mut request);
    request.verify().expect("RFC 7231 dates are accepted");
}

#[test]
fn amz_date_overrides_a_different_date_header() {
    let mut request = unsigned();
    request.header("date", "Sat, 01 Jan 2000 00:00:00 GMT");
    Signer::default().sign(&mut request);
    request.verify().expect("x-amz-date is used");
}

#[test]
fn clocks_may_differ_by_at_most_fifteen_minutes() {
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
fn presigned_urls_are_valid_until_their_lifetime_ends() {
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
fn unknown_access_keys_are_named() {
    let error = with_authorization(ACCESS_KEY, "NOBODY").verify().expect_err("unknown");
    assert_eq!((error.status(), error.code()), (403, "InvalidAccessKeyId"));
    assert_eq!(error.details(), [("AWSAccessKeyId", "NOBODY".to_owned())]);
}

#[test]
fn wrong_signatures_are_answered_with_diagnostic_details() {
    let mut request = signed();
    request.method = "PUT".into();
    let error = request.verify().expect_err("another method");
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
fn signatures_that_are_not_hexadecimal_do_not_match() {
    let signature = signed().get("authorization").rsplit_once('=').expect("a signature").1.to_owned();
    for wrong in ["bogus", &signature.to_uppercase(), &signature[..63], &format!("{signature}0")] {
        assert_eq!(
            with_authorization(&signature, wrong).error_code(),
            (403, "SignatureDoesNotMatch"),
            "{wrong}"
        );
    }
}

#[test]
fn host_and_all_amz_headers_must_be_signed() {
    let mut request = signed();
    request.header("x-amz-meta-added", "1").header("x-amz-meta-added", "2").header("x-amz-acl", "private");
    let error = request.verify().expect_err("unsigned headers");
    assert_eq!((error.status(), error.code()), (403, "AccessDenied"));
    assert_eq!(error.message(), "There were headers present in the request which were not signed");
    assert_eq!(error.details(), [("HeadersNotSigned", "x-amz-meta-added, x-amz-acl".to_owned())]);

    let mut without_host = unsigned();
    Signer::default().sign_headers(&mut without_host, "x-amz-content-sha256;x-amz-date");
    let error = without_host.verify().expect_err("unsigned host");
    assert_eq!(error.details(), [("HeadersNotSigned", "host".to_owned())]);
}

#[test]
fn presigned_urls_refuse_an_added_copy_source() {
    let mut request = presigned();
    let error = request.header("x-amz-copy-source", "/secret/key").verify().expect_err("unsigned header");
    assert_eq!(error, AuthError::HeadersNotSigned { names: "x-amz-copy-source".to_owned() });
}

#[test]
fn other_headers_may_be_unsigned_but_are_verified_if_signed() {
    let mut request = signed();
    request.header("content-type", "text/plain").header("x-amzn-trace-id", "1").header("user-agent", "x");
    request.verify().expect("unsigned content-type is fine");

    let mut signed_type = unsigned();
    signed_type.header("content-type", "text/plain").header("expect", "100-continue");
    Signer::default().sign(&mut signed_type);
    signed_type.verify().expect("as signed");
    assert_eq!(
        signed_type.clone().set("content-type", "text/html").error_code(),
        (403, "SignatureDoesNotMatch")
    );
    assert_eq!(signed_type.remove("expect").error_code(), (403, "SignatureDoesNotMatch"));
}

#[test]
fn header_signatures_require_content_sha256() {
    let mut request = signed();
    assert_eq!(request.remove("x-amz-content-sha256").error_code(), (400, "InvalidRequest"));
    let mut odd = signed();
    assert_eq!(odd.set("x-amz-content-sha256", "abc").error_code(), (400, "InvalidArgument"));
}

#[test]
fn streaming_payloads_are_not_implemented() {
    for value in ["STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"] {
        let mut header = unsigned();
        header.set("x-amz-content-sha256", value);
        Signer::default().sign(&mut header);
        assert_eq!(header.error_code(), (501, "NotImplemented"));
        assert_eq!(presigned().header("x-amz-content-sha256", value).error_code(), (501, "NotImplemented"));
        let mut hoisted =
            Request::new("PUT", "/b/k", &format!("X-Amz-Content-Sha256={value}"), &[("host", "h")]);
        Signer::default().presign(&mut hoisted, "host", "60", value);
        assert_eq!(hoisted.error_code(), (501, "NotImplemented"));
    }
}

#[test]
fn presigned_digests_bind_the_body() {
    let mut header =
        Request::new("PUT", "/b/k", "", &[("host", "h"), ("x-amz-content-sha256", EMPTY_SHA256)]);
    Signer::default().presign(&mut header, "host;x-amz-content-sha256", "60", EMPTY_SHA256);
    let authentication = header.verify().expect("signed digest");
    assert!(matches!(authentication.payload, PayloadDigest::Sha256([0xe3, ..])));

    for (value, unsigned) in [(EMPTY_SHA256, false), ("UNSIGNED-PAYLOAD", true)] {
        let query = format!("X-Amz-Content-Sha256={value}");
        let mut hoisted = Request::new("PUT", "/b/k", &query, &[("host", "h")]);
        Signer::default().presign(&mut hoisted, "host", "60", value);
        let authentication = hoisted.verify().expect("hoisted digest");
        assert_eq!(authentication.payload == PayloadDigest::Unsigned, unsigned);
    }

    let mut added = presigned();
    added.header("x-amz-content-sha256", EMPTY_SHA256);
    assert_eq!(added.error_code(), (403, "AccessDenied"));
}

#[test]
fn headers_of_the_signature_may_occur_only_once() {
    for name in ["authorization", "x-amz-date", "x-amz-content-sha256", "date"] {
        let mut request = unsigned();
        request.header("date", "Fri, 24 May 2013 00:00:00 GMT");
        Signer::default().sign(&mut request);
        let value = request.get(name);
        assert_eq!(request.header(name, &value).error_code(), (400, "InvalidRequest"), "{name}");
    }
}

#[test]
fn invalid_percent_encoding_is_an_invalid_uri() {
    let mut path = signed();
    path.path = "/bucket/%zz".into();
    assert_eq!(path.error_code(), (400, "InvalidURI"));
    let mut query = signed();
    assert_eq!(query.append_query("prefix=%").error_code(), (400, "InvalidURI"));
}

#[test]
fn every_region_is_accepted() {
    for region in ["us-east-1", "auto", "eu west", &"r".repeat(500)] {
        let mut request = unsigned();
        Signer { region: region.into(), ..Signer::default() }.sign(&mut request);
        request.verify().expect(region);
    }
}

#[test]
fn disabled_root_is_denied_before_its_signature_is_checked() {
    let disabled = Authenticator::new(RootCredential::new(ACCESS_KEY, SECRET_KEY).s3_enabled(false));
    let error = signed().authenticate(&disabled, NOW).expect_err("disabled");
    assert_eq!(error, AuthError::DataPlaneRefused);
    assert_eq!((error.status(), error.code()), (403, "AccessDenied"));
    // Otherwise the response to a guess would say whether the secret is right.
    let mut wrong = signed();
    wrong.method = "PUT".into();
    assert_eq!(wrong.authenticate(&disabled, NOW).expect_err("wrong signature"), error);
    assert_eq!(error.failed_credential(), None);
}

/// A credential whose secret can be changed.
struct Rotating {
    secret_key: Cell<&'static str>,
    generation: Cell<Generation>,
}

impl Credentials for Rotating {
    fn find(&self, _access_key: &str, now: Timestamp) -> Option<Credential> {
        let root = RootCredential::new(ACCESS_KEY, self.secret_key.get()).find(ACCESS_KEY, now)?;
        Some(Credential { generation: self.generation.get(), ..root })
    }

    fn version(&self) -> u64 {
        0
    }

    fn principal(&self, _access_key: &str, _generation: Generation) -> Option<Principal> {
        None
    }
}

#[test]
fn a_rotated_secret_is_in_force_for_the_next_request() {
    let credentials = Rotating { secret_key: Cell::new(SECRET_KEY), generation: Cell::new(1) };
    let authenticator = Authenticator::new(&credentials);
    let old = signed();
    for _ in 0..2 {
        old.authenticate(&authenticator, NOW).expect("the old secret is valid");
    }
    credentials.secret_key.set("another");
    credentials.generation.set(2);
    let mut new = unsigned();
    Signer { secret_key: "another".into(), ..Signer::default() }.sign(&mut new);
    for _ in 0..2 {
        assert_eq!(old.authenticate(&authenticator, NOW).expect_err("old").code(), "SignatureDoesNotMatch");
        new.authenticate(&authenticator, NOW).expect("the new secret is valid");
    }
}
