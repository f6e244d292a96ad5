//! What is not built is refused, changes nothing, and leaves the connection in a state that both sides agree on.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Call, Server};

#[test]
fn what_is_not_built_is_501_and_changes_nothing() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    client.send(Call::new("PUT", "/photos/a").body("kept")).expect(200);
    for (method, target) in [
        ("GET", "/photos"),
        ("GET", "/photos?list-type=1"),
        ("POST", "/photos?delete"),
        ("PUT", "/photos?acl"),
        ("PUT", "/photos?policy"),
        ("DELETE", "/photos?policy"),
        ("PUT", "/photos/a?tagging"),
        ("DELETE", "/photos/a?tagging"),
        ("GET", "/photos/a?attributes"),
    ] {
        let refused = client.send(Call::new(method, target).body("x")).refused(501, "NotImplemented");
        assert!(refused.element("Message").unwrap().contains(": "), "{method} {target}");
    }
    for (name, value) in [
        ("x-amz-acl", "public-read"),
        ("x-amz-tagging", "a=b"),
        ("x-amz-server-side-encryption", "AES256"),
        ("x-amz-storage-class", "GLACIER"),
        ("x-amz-copy-source-range", "bytes=0-1"),
        ("x-amz-bucket-object-lock-token", "t"),
        ("x-amz-checksum-xxhash3", "AAAAAAAAAAA="),
        ("content-encoding", "aws-chunked"),
        ("x-amz-trailer", "x-amz-checksum-crc32"),
    ] {
        client
            .send(Call::new("PUT", "/photos/a").header(name, value).body("lost"))
            .refused(501, "NotImplemented");
    }
    assert_eq!(client.send(Call::new("GET", "/photos/a")).expect(200).body, b"kept");
}

#[test]
fn streaming_bodies_are_named_before_their_missing_length() {
    let server = Server::with_bucket("photos");
    for payload in ["STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"] {
        let call = Call::new("PUT", "/photos/a").payload(payload).length("");
        server.client().send(call).refused(501, "NotImplemented");
    }
    let chunked =
        Call::new("PUT", "/photos/a").payload("UNSIGNED-PAYLOAD").header("transfer-encoding", "chunked");
    server.client().send(chunked).refused(501, "NotImplemented");
    let lengthless = Call::new("PUT", "/photos/a").length("");
    server.client().send(lengthless).refused(411, "MissingContentLength");
    let huge = Call::new("PUT", "/photos/a").payload("UNSIGNED-PAYLOAD").length("5368709121");
    server.client().send(huge).refused(400, "EntityTooLarge");
    server.client().send(Call::new("GET", "/photos/a")).refused(404, "NoSuchKey");
}

#[test]
fn nobody_is_told_anything_without_a_signature() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let host = client.host.clone();
    for target in ["/", "/photos", "/missing", "/photos/a", "/photos?acl"] {
        client
            .raw(format!("GET {target} HTTP/1.1\r\nhost: {host}\r\n\r\n"))
            .answer(false)
            .refused(403, "AccessDenied");
    }
    let head = client.raw(format!("HEAD /photos HTTP/1.1\r\nhost: {host}\r\n\r\n")).answer(true).expect(403);
    assert_eq!(head.header("x-amz-bucket-region"), Some("us-east-1"));
    let mut forged = client.signed(&Call::new("GET", "/photos/a"));
    let at = forged.windows(10).position(|window| window == b"Signature=").unwrap() + 10;
    forged[at] = if forged[at] == b'0' { b'1' } else { b'0' };
    let refused = client.raw(forged).answer(false).refused(403, "SignatureDoesNotMatch");
    assert!(refused.element("CanonicalRequest").is_some());
}

#[test]
fn methods_hosts_owners_and_repeated_headers() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let mut send = |call: Call| client.send(call);
    assert_eq!(
        send(Call::new("POST", "/photos/a")).refused(405, "MethodNotAllowed").header("allow"),
        Some("PUT, GET, HEAD, DELETE, OPTIONS")
    );
    assert_eq!(
        send(Call::new("PATCH", "/photos")).expect(405).header("allow"),
        Some("PUT, HEAD, DELETE, OPTIONS")
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

/// To a server on 127.0.0.1, `Host: photos.localhost` was any other host and the request path style, so that deleting
/// the object `other` of the bucket `photos` deleted the bucket `other`, and putting it created one. A dot at the end of
/// the host had the same effect for every own name.
#[test]
fn virtual_hosted_requests_to_localhost_touch_no_bucket() {
    let server = Server::with_bucket("other");
    let mut client = server.client();
    for host in ["photos.localhost:7700", "photos.LOCALHOST", "photos.127.0.0.1.:7700", "photos.s3.test."] {
        for (method, target) in [("DELETE", "/other"), ("PUT", "/created"), ("GET", "/other?location")] {
            client.send(Call::new(method, target).header("host", host)).refused(501, "NotImplemented");
        }
    }
    client.send(Call::new("HEAD", "/created").header("host", "localhost.:7700")).expect(404);
    client.send(Call::new("HEAD", "/other").header("host", "localhost:7700")).expect(200);
}

/// The digest in `x-amz-content-sha256` was signed, and compared with the body only where the operation reads one: a
/// DELETE with the digest of another body, or with a body that was swapped on the way, was carried out.
#[test]
fn a_signed_digest_that_is_not_the_bodys_changes_nothing() {
    const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
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
        assert_eq!(refused.element("S3ComputedContentSHA256").as_deref(), Some(NOTHING));
        client.send(other.length("0")).refused(400, "XAmzContentSHA256Mismatch");
        let swapped = call.payload(NOTHING).body("x".repeat(100_000));
        client.send(swapped).refused(400, "XAmzContentSHA256Mismatch");
    }
    for target in ["/photos", "/photos/a"] {
        client.send(Call::new("HEAD", target).payload(&"0".repeat(64))).expect(400);
    }
    let long = Call::new("DELETE", "/photos/a").length("1048577");
    server.client().send(long).refused(400, "InvalidRequest");

    // What clients send: no body with its digest, a body with its digest, a body that is not signed.
    assert_eq!(client.send(Call::new("GET", "/photos/a").length("0")).expect(200).body, b"kept");
    client.send(Call::new("GET", "/photos/a").body("x".repeat(100_000))).expect(200);
    client.send(Call::new("DELETE", "/empty").body("x")).expect(204);
    client.send(Call::new("DELETE", "/photos/a").payload("UNSIGNED-PAYLOAD").body("x")).expect(204);
    client.send(Call::new("GET", "/photos/a")).refused(404, "NoSuchKey");
}

#[test]
fn a_connection_survives_refusals_and_answers_in_order() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    client.send(Call::new("PUT", "/photos/a").body("a")).expect(200);
    client.send(Call::new("GET", "/photos/none")).refused(404, "NoSuchKey");
    client.send(Call::new("PUT", "/missing/a").body("small and drained")).refused(404, "NoSuchBucket");
    let mut pipeline = Vec::new();
    for target in ["/photos/a", "/photos/none", "/photos/a"] {
        pipeline.extend(client.signed(&Call::new("GET", target)));
    }
    client.raw(pipeline);
    assert_eq!(client.answer(false).expect(200).body, b"a");
    client.answer(false).refused(404, "NoSuchKey");
    assert_eq!(client.answer(false).expect(200).body, b"a");
}
