//! Objects over a real socket and the real engine: what is put comes out, in whole, in part, and under conditions.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Answer, Call, Server, content};

fn put(server: &Server, target: &str, body: &[u8]) -> Answer {
    server.client().send(Call::new("PUT", target).body(body)).expect(200)
}

#[test]
fn objects_of_every_form_come_out_as_they_went_in() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    for (seed, size) in
        [0, 1, 4096, 16 * 1024, 16 * 1024 + 1, 65_536, 300_000, 5 << 20].into_iter().enumerate()
    {
        let body = content(seed as u64, size);
        let target = format!("/photos/dir/{size}");
        let put = client.send(Call::new("PUT", &target).body(body.clone())).expect(200);
        let got = client.send(Call::new("GET", &target)).expect(200);
        assert!(got.body == body, "{size} bytes differ");
        assert_eq!(got.header("etag"), put.header("etag"));
        assert_eq!(got.header("accept-ranges"), Some("bytes"));
        assert_eq!(got.header("content-type"), Some("binary/octet-stream"));
        assert_eq!(got.header("server"), Some("Cairn"));
        assert!(got.header("x-amz-request-id").is_some() && got.header("x-amz-id-2").is_some());
        assert!(got.header("last-modified").is_some() && got.header("date").is_some());
        let head = client.send(Call::new("HEAD", &target)).expect(200);
        assert_eq!(head.header("content-length"), Some(&*size.to_string()));
        assert_eq!(head.header("etag"), put.header("etag"));
    }
    assert_eq!(
        client.send(Call::new("GET", "/photos/dir/0")).header("etag"),
        Some("\"d41d8cd98f00b204e9800998ecf8427e\"")
    );
}

#[test]
fn metadata_system_headers_and_overrides_are_returned() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let call = Call::new("PUT", "/photos/a")
        .header("content-type", "text/plain")
        .header("cache-control", "max-age=5")
        .header("expires", "whenever")
        .header("x-amz-meta-colour", "red")
        .header("x-amz-meta-colour", "blue")
        .header("x-amz-meta-raw", b"caf\xc3\xa9")
        .body("hello");
    client.send(call).expect(200);
    let got = client.send(Call::new("GET", "/photos/a")).expect(200);
    assert_eq!(got.header("content-type"), Some("text/plain"));
    assert_eq!(got.header("cache-control"), Some("max-age=5"));
    assert_eq!(got.header("expires"), Some("whenever"));
    assert_eq!(got.header("x-amz-meta-colour"), Some("red,blue"));
    assert_eq!(got.header("x-amz-meta-raw"), Some("caf\u{e9}"));
    let query = "response-content-type=image%2Fpng&response-content-disposition=attachment%3B%20filename%3Dx";
    let overridden = client.send(Call::new("HEAD", &format!("/photos/a?{query}"))).expect(200);
    assert_eq!(overridden.header("content-type"), Some("image/png"));
    assert_eq!(overridden.header("content-disposition"), Some("attachment; filename=x"));
    // Empty ones took the stored headers away: `response-content-type=` gave an answer without a type.
    let empty = "response-content-type=&response-cache-control&response-expires=";
    let kept = client.send(Call::new("GET", &format!("/photos/a?{empty}"))).expect(200);
    assert_eq!(kept.header("content-type"), Some("text/plain"));
    assert_eq!(kept.header("cache-control"), Some("max-age=5"));
    assert_eq!(kept.header("expires"), Some("whenever"));
    let large = Call::new("PUT", "/photos/b").header("x-amz-meta-a", "v".repeat(2048));
    client.send(large).refused(400, "MetadataTooLarge");
}

#[test]
fn ranges_parts_and_conditions_on_reads_follow_the_rfc() {
    let server = Server::with_bucket("photos");
    let body = content(7, 200_000);
    let etag = put(&server, "/photos/a", &body).header("etag").unwrap().to_owned();
    put(&server, "/photos/empty", b"");
    let mut client = server.client();
    let mut get = |range: &str| client.send(Call::new("GET", "/photos/a").header("range", range));
    for (range, first, last) in [
        ("bytes=0-0", 0, 0),
        ("bytes=65530-131080", 65_530, 131_080),
        ("bytes=199999-", 199_999, 199_999),
        ("bytes=-5", 199_995, 199_999),
        ("bytes=-999999", 0, 199_999),
    ] {
        let part = get(range).expect(206);
        assert!(part.body == body[first..=last], "{range}");
        assert_eq!(part.header("content-range"), Some(&*format!("bytes {first}-{last}/200000")));
    }
    for range in ["bytes=0-1,5-6", "lines=1-2", "bytes=5-2"] {
        assert_eq!(get(range).expect(200).body.len(), 200_000, "{range}");
    }
    for range in ["bytes=200000-", "bytes=-0"] {
        let refused = get(range).refused(416, "InvalidRange");
        assert_eq!(refused.header("content-range"), Some("bytes */200000"));
    }
    let mut send = |call: Call| client.send(call);
    send(Call::new("GET", "/photos/empty").header("range", "bytes=0-0")).refused(416, "InvalidRange");
    let head = send(Call::new("HEAD", "/photos/a").header("range", "bytes=0-9")).expect(206);
    assert_eq!(head.header("content-length"), Some("10"));
    assert_eq!(send(Call::new("HEAD", "/photos/a").header("range", "bytes=999999-")).expect(416).body, b"");

    let part = send(Call::new("GET", "/photos/a?partNumber=1")).expect(206);
    assert_eq!((part.body.len(), part.header("x-amz-mp-parts-count")), (200_000, None));
    send(Call::new("GET", "/photos/a?partNumber=2")).refused(416, "InvalidPartNumber");
    send(Call::new("GET", "/photos/a?partNumber=0")).refused(400, "InvalidArgument");
    send(Call::new("GET", "/photos/a?partNumber=1").header("range", "bytes=0-1"))
        .refused(400, "InvalidRequest");

    let not_modified = send(Call::new("GET", "/photos/a").header("if-none-match", &etag)).expect(304);
    assert_eq!(not_modified.header("etag"), Some(&*etag));
    assert!(
        not_modified.header("last-modified").is_some() && not_modified.header("content-length").is_none()
    );
    send(Call::new("GET", "/photos/a").header("if-match", "\"other\"")).refused(412, "PreconditionFailed");
    send(Call::new("GET", "/photos/a").header("if-match", etag.trim_matches('"'))).expect(200);
    let past = "Sun, 06 Nov 1994 08:49:37 GMT";
    send(Call::new("HEAD", "/photos/a").header("if-unmodified-since", past)).expect(412);
    send(Call::new("GET", "/photos/a").header("if-modified-since", past)).expect(200);
    let if_range = Call::new("GET", "/photos/a").header("range", "bytes=0-1").header("if-range", "\"other\"");
    assert_eq!(send(if_range).expect(200).body.len(), 200_000);
}

#[test]
fn conditions_on_writes_decide_who_writes_and_deletes() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let mut send = |call: Call| client.send(call);
    let create = || Call::new("PUT", "/photos/a").header("if-none-match", "*").body("one");
    let etag = send(create()).expect(200).header("etag").unwrap().to_owned();
    send(create()).refused(412, "PreconditionFailed");
    send(Call::new("PUT", "/photos/a").header("if-match", "\"no\"").body("x"))
        .refused(412, "PreconditionFailed");
    send(Call::new("PUT", "/photos/none").header("if-match", &etag).body("x")).refused(404, "NoSuchKey");
    send(Call::new("PUT", "/photos/a").header("if-none-match", &etag).body("x"))
        .refused(501, "NotImplemented");
    assert_eq!(send(Call::new("GET", "/photos/a")).body, b"one");
    let etag = send(Call::new("PUT", "/photos/a").header("if-match", &etag).body("two"));
    let etag = etag.expect(200).header("etag").unwrap().to_owned();

    for (name, value) in [
        ("if-match", "\"no\""),
        ("x-amz-if-match-size", "4"),
        ("x-amz-if-match-last-modified-time", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ] {
        send(Call::new("DELETE", "/photos/a").header(name, value)).refused(412, "PreconditionFailed");
    }
    send(Call::new("DELETE", "/photos/a").header("if-match", &etag).header("x-amz-if-match-size", "3"))
        .expect(204);
    send(Call::new("DELETE", "/photos/a")).expect(204);
    send(Call::new("DELETE", "/photos/a").header("if-match", "*")).expect(204);
    send(Call::new("GET", "/photos/a")).refused(404, "NoSuchKey");
}

#[test]
fn digests_and_checksums_are_checked_kept_and_returned() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let mut send = |call: Call| client.send(call);
    let body = "123456789";
    for (name, right) in [
        ("x-amz-checksum-crc32", "y/Q5Jg=="),
        ("x-amz-checksum-crc32c", "4waSgw=="),
        ("x-amz-checksum-crc64nvme", "rosUhgp5mIg="),
        ("x-amz-checksum-sha1", "98O8HYCOBHMq32eZZczDTKeuNEE="),
        ("x-amz-checksum-sha256", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="),
    ] {
        let answer = send(Call::new("PUT", "/photos/a").header(name, right).body(body)).expect(200);
        assert_eq!(answer.header(name), Some(right));
        let got = send(Call::new("GET", "/photos/a").header("x-amz-checksum-mode", "enabled")).expect(200);
        assert_eq!((got.header(name), got.header("x-amz-checksum-type")), (Some(right), Some("FULL_OBJECT")));
        assert_eq!(send(Call::new("GET", "/photos/a")).header(name), None);
        let ranged = Call::new("GET", "/photos/a")
            .header("x-amz-checksum-mode", "ENABLED")
            .header("range", "bytes=0-1");
        assert_eq!(send(ranged).expect(206).header(name), None);
        send(Call::new("PUT", "/photos/bad").header(name, right).body("12345678x")).refused(400, "BadDigest");
    }
    send(Call::new("PUT", "/photos/a").header("content-md5", "JfnnlDI7RTiF9RgfG2JNCw==").body(body))
        .expect(200);
    let bad = Call::new("PUT", "/photos/bad").header("content-md5", "JfnnlDI7RTiF9RgfG2JNCw==").body("x");
    send(bad).refused(400, "BadDigest");
    send(Call::new("PUT", "/photos/bad").header("content-md5", "").body("x")).refused(400, "InvalidDigest");
    let wrong = Call::new("PUT", "/photos/bad").payload(&"0".repeat(64)).body("x");
    send(wrong).refused(400, "XAmzContentSHA256Mismatch");
    send(Call::new("PUT", "/photos/unsigned").payload("UNSIGNED-PAYLOAD").body("x")).expect(200);
    send(Call::new("GET", "/photos/bad")).refused(404, "NoSuchKey");
}

#[test]
fn a_body_that_breaks_off_stores_nothing() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let call =
        Call::new("PUT", "/photos/half").length("1000000").payload("UNSIGNED-PAYLOAD").body(content(1, 5000));
    let bytes = client.signed(&call);
    client.raw(bytes).stream.shutdown(std::net::Shutdown::Write).unwrap();
    client.answer(false).refused(400, "IncompleteBody");
    assert!(client.is_closed());
    server.client().send(Call::new("GET", "/photos/half")).refused(404, "NoSuchKey");
}

#[test]
fn a_refusal_comes_before_100_continue_and_an_acceptance_after_it() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let call = Call::new("PUT", "/photos/a")
        .payload("UNSIGNED-PAYLOAD")
        .length("5")
        .header("expect", "100-continue");
    let bytes = client.signed(&call);
    assert_eq!(client.raw(bytes).answer(false).status, 100);
    client.raw("hello").answer(false).expect(200);
    let mut refused = server.client();
    let call = Call { path: "/missing/a".to_owned(), ..call };
    let bytes = refused.signed(&call);
    refused.raw(bytes).answer(false).refused(404, "NoSuchBucket");
}

#[test]
fn keys_are_taken_as_they_are() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    for path in
        ["/photos//", "/photos/a//b/../c/.", "/photos/a%2Fb+c%20d", "/photos/%C3%A4%0D%01", "/photos/dir/"]
    {
        client.send(Call::new("PUT", path).body(path)).expect(200);
        assert_eq!(client.send(Call::new("GET", path)).expect(200).text(), path);
    }
    assert_eq!(client.send(Call::new("GET", "/photos/a/b+c%20d")).expect(200).text(), "/photos/a%2Fb+c%20d");
    let long = format!("/photos/{}", "k".repeat(1024));
    client.send(Call::new("PUT", &long).body("x")).expect(200);
    client.send(Call::new("PUT", &format!("{long}k")).body("x")).refused(400, "KeyTooLongError");
    client.send(Call::new("GET", "/photos/%ff")).refused(400, "InvalidURI");
}

#[test]
fn presigned_urls_get_and_put_and_are_no_good_for_head() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let host = client.host.clone();
    let put = client.presigned(&Call::new("PUT", "/photos/a%20b"));
    client
        .raw(format!("PUT {put} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 2\r\n\r\nhi"))
        .answer(false)
        .expect(200);
    let get = client.presigned(&Call::new("GET", "/photos/a%20b?response-content-type=text%2Fhtml"));
    let got = client.raw(format!("GET {get} HTTP/1.1\r\nhost: {host}\r\n\r\n")).answer(false).expect(200);
    assert_eq!((&*got.text(), got.header("content-type")), ("hi", Some("text/html")));
    client.raw(format!("HEAD {get} HTTP/1.1\r\nhost: {host}\r\n\r\n")).answer(true).expect(403);
    let acl = client.presigned(&Call::new("PUT", "/photos/b?x-amz-acl=public-read"));
    let request = format!("PUT {acl} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 2\r\n\r\nhi");
    client.raw(request).answer(false).refused(501, "NotImplemented");
    let hoisted = client.presigned(&Call::new(
        "PUT",
        "/photos/c?x-amz-checksum-crc32=AAAAAA%3D%3D&x-amz-sdk-checksum-algorithm=CRC32",
    ));
    let request = format!("PUT {hoisted} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 2\r\n\r\nhi");
    client.raw(request).answer(false).expect(200);
}
