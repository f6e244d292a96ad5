//! Refused methods, hosts, owners and digests.

use crate::common::{Call, Server};

#[test]
fn wrong_methods_hosts_owners_and_repeated_headers_are_refused() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let mut send = |call: Call| client.send(call);
    assert_eq!(
        send(Call::new("POST", "/photos/a")).refused(405, "MethodNotAllowed").header("allow"),
        Some("PUT, GET, HEAD, DELETE, OPTIONS")
    );
    assert_eq!(
        send(Call::new("PATCH", "/photos")).expect(405).header("allow"),
        Some("PUT, HEAD, DELETE, GET, OPTIONS")
    );
    assert_eq!(send(Call::new("PUT", "/")).expect(405).header("allow"), Some("GET, OPTIONS"));
    send(Call::new("GET", "/a").header("host", "photos.s3.test")).refused(501, "NotImplemented");
    send(Call::new("GET", "/a").header("host", "photos.127.0.0.1:7600")).refused(501, "NotImplemented");
    send(Call::new("HEAD", "/photos").header("host", "any.other.test")).expect(200);
    let owner = |id: &str| Call::new("GET", "/photos?location").header("x-amz-expected-bucket-owner", id);
    send(owner("111122223333")).refused(403, "AccessDenied");
    send(owner("000000000000")).expect(200);
    let twice = Call::new("PUT", "/photos/a").header("content-md5", "x").header("content-md5", "y").body("x");
    send(twice).expect(400);
}

/// The digest in `x-amz-content-sha256` was compared with the body only if the operation reads one. A DELETE with the
/// digest of another body, or with a body that was replaced on the way, was carried out.
#[test]
fn wrong_signed_digest_changes_nothing() {
    const SHA256_OF_EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    client.send(Call::new("PUT", "/photos/a").body("kept")).expect(200);
    client.send(Call::new("PUT", "/empty")).expect(200);
    for (method, target) in [
        ("DELETE", "/photos/a"),
        ("DELETE", "/empty"),
        ("GET", "/photos/a"),
        ("GET", "/photos?list-type=2"),
        ("GET", "/photos?location"),
        ("GET", "/"),
    ] {
        let call = Call::new(method, target);
        let other = call.clone().payload(&"0".repeat(64));
        let refused = client.send(other.clone()).refused(400, "XAmzContentSHA256Mismatch");
        assert_eq!(refused.element("S3ComputedContentSHA256").as_deref(), Some(SHA256_OF_EMPTY));
        client.send(other.length("0")).refused(400, "XAmzContentSHA256Mismatch");
        let swapped = call.payload(SHA256_OF_EMPTY).body("x".repeat(100_000));
        client.send(swapped).refused(400, "XAmzContentSHA256Mismatch");
    }
    for target in ["/photos", "/photos/a"] {
        client.send(Call::new("HEAD", target).payload(&"0".repeat(64))).expect(400);
    }
    let long = Call::new("DELETE", "/photos/a").length("1048577");
    server.client().send(long).refused(400, "InvalidRequest");

    // Valid requests: no body with its digest, a body with its digest, an unsigned body.
    assert_eq!(client.send(Call::new("GET", "/photos/a").length("0")).expect(200).body, b"kept");
    client.send(Call::new("GET", "/photos/a").body("x".repeat(100_000))).expect(200);
    client.send(Call::new("DELETE", "/empty").body("x")).expect(204);
    client.send(Call::new("DELETE", "/photos/a").payload("UNSIGNED-PAYLOAD").body("x")).expect(204);
    client.send(Call::new("GET", "/photos/a")).refused(404, "NoSuchKey");
}
