//! CopyObject over a real socket and the real engine: what the copy is, and which requests for one are refused.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Call, Client, Server, content};

const CRC32: &str = "x-amz-checksum-crc32";

fn copy(to: &str, from: &str) -> Call {
    Call::new("PUT", to).header("x-amz-copy-source", from)
}

fn body_of(client: &mut Client, target: &str) -> Vec<u8> {
    client.send(Call::new("GET", target)).expect(200).body
}

#[test]
fn copies_of_every_size_have_the_bytes_and_the_headers_of_their_source() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    client.send(Call::new("PUT", "/other")).expect(200);
    for (seed, size) in [0, 1, 4096, 16 * 1024 + 1, 300_000, 3 << 20].into_iter().enumerate() {
        let body = content(seed as u64, size);
        let put = Call::new("PUT", "/photos/dir/a%20b")
            .header("content-type", "text/plain")
            .header("cache-control", "no-store")
            .header("x-amz-meta-colour", "red")
            .body(body.clone());
        let put = client.send(put).expect(200);
        for (to, from) in [("/photos/c", "photos/dir/a%20b"), ("/other/d", "/photos/dir%2Fa%20b")] {
            // What the request says of the content is the source's to say.
            let answer = client.send(copy(to, from).header("content-type", "ignored/ignored")).expect(200);
            let etag = answer.element("ETag").unwrap().replace("&quot;", "\"");
            assert_eq!(Some(&*etag), put.header("etag"));
            assert!(answer.element("LastModified").is_some());
            assert_eq!(answer.header("x-amz-copy-source-version-id"), None);
            let got = client.send(Call::new("GET", to)).expect(200);
            assert!(got.body == body, "{size} bytes differ");
            assert_eq!(got.header("etag"), Some(&*etag));
            assert_eq!(got.header("content-type"), Some("text/plain"));
            assert_eq!(got.header("cache-control"), Some("no-store"));
            assert_eq!(got.header("x-amz-meta-colour"), Some("red"));
        }
    }
    let replaced = copy("/other/e", "/photos/dir/a%20b")
        .header("x-amz-metadata-directive", "REPLACE")
        .header("x-amz-meta-size", "large");
    client.send(replaced).expect(200);
    let head = client.send(Call::new("HEAD", "/other/e")).expect(200);
    assert_eq!(head.header("content-type"), Some("binary/octet-stream"));
    assert_eq!((head.header("x-amz-meta-colour"), head.header("x-amz-meta-size")), (None, Some("large")));
    // Sources are as they were, and copies live on without them.
    client.send(Call::new("DELETE", "/photos/dir/a%20b")).expect(204);
    assert!(body_of(&mut client, "/other/e") == content(5, 3 << 20));
}

/// The entity tag and the composite checksum of an upload say how it was cut into parts, which the copy is not.
#[test]
fn a_copy_of_an_upload_in_parts_is_one_piece() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let begun = Call::new("POST", "/photos/a?uploads").header("x-amz-checksum-algorithm", "CRC32");
    let id = client.send(begun).expect(200).element("UploadId").unwrap();
    let bodies = [content(1, 5 << 20), content(2, 70_000)];
    let mut named = String::new();
    for (number, body) in (1..).zip(&bodies) {
        let part = Call::new("PUT", &format!("/photos/a?partNumber={number}&uploadId={id}"));
        let etag = client.send(part.body(body.clone())).expect(200).header("etag").unwrap().to_owned();
        named += &format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>");
    }
    let named = format!("<CompleteMultipartUpload>{named}</CompleteMultipartUpload>");
    client.send(Call::new("POST", &format!("/photos/a?uploadId={id}")).body(named)).expect(200);
    let whole = bodies.concat();
    let same = client.send(Call::new("PUT", "/photos/put").body(whole.clone())).expect(200);

    client.send(copy("/photos/b", "photos/a")).expect(200);
    let got = client.send(Call::new("GET", "/photos/b").header("x-amz-checksum-mode", "ENABLED")).expect(200);
    assert!(got.body == whole);
    assert_eq!(got.header("etag"), same.header("etag"));
    assert_eq!((got.header(CRC32), got.header("x-amz-checksum-type")), (None, None));
    let part = client.send(Call::new("HEAD", "/photos/b?partNumber=1")).expect(206);
    assert_eq!(part.header("x-amz-mp-parts-count"), None);
    client.send(Call::new("HEAD", "/photos/b?partNumber=2")).expect(416);
}

#[test]
fn full_object_checksums_are_carried_over_and_others_computed() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let put = Call::new("PUT", "/photos/a").header(CRC32, "y/Q5Jg==").body("123456789");
    client.send(put).expect(200);
    let carried = client.send(copy("/photos/b", "photos/a")).expect(200);
    assert_eq!(carried.element("ChecksumCRC32").as_deref(), Some("y/Q5Jg=="));
    for (algorithm, element, header, text) in [
        ("CRC32", "ChecksumCRC32", CRC32, "y/Q5Jg=="),
        ("CRC32C", "ChecksumCRC32C", "x-amz-checksum-crc32c", "4waSgw=="),
        ("SHA256", "ChecksumSHA256", "x-amz-checksum-sha256", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="),
    ] {
        let computed = copy("/photos/b", "photos/a").header("x-amz-checksum-algorithm", algorithm);
        let computed = client.send(computed).expect(200);
        assert_eq!(computed.element(element).as_deref(), Some(text));
        assert_eq!(computed.elements("ChecksumType"), ["FULL_OBJECT"]);
        let head = client.send(Call::new("HEAD", "/photos/b").header("x-amz-checksum-mode", "ENABLED"));
        assert_eq!(head.expect(200).header(header), Some(text));
    }
    let unknown = copy("/photos/b", "photos/a").header("x-amz-checksum-algorithm", "MD5");
    client.send(unknown).refused(501, "NotImplemented");
}

#[test]
fn conditions_on_source_and_destination_decide() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let put = client.send(Call::new("PUT", "/photos/a").body("a")).expect(200);
    let etag = put.header("etag").unwrap().to_owned();
    let past = "Sun, 06 Nov 1994 08:49:37 GMT";
    for (name, value, holds) in [
        ("x-amz-copy-source-if-match", &*etag, true),
        ("x-amz-copy-source-if-match", "\"x\"", false),
        ("x-amz-copy-source-if-none-match", &*etag, false),
        ("x-amz-copy-source-if-none-match", "\"x\"", true),
        ("x-amz-copy-source-if-modified-since", past, true),
        ("x-amz-copy-source-if-unmodified-since", past, false),
        ("if-match", "\"x\"", false),
        ("if-none-match", "*", false),
    ] {
        client.send(Call::new("PUT", "/photos/b").body("before")).expect(200);
        let answer = client.send(copy("/photos/b", "photos/a").header(name, value));
        let left = if holds { &b"a"[..] } else { b"before" };
        match holds {
            true => drop(answer.expect(200)),
            false => drop(answer.refused(412, "PreconditionFailed")),
        }
        assert_eq!(body_of(&mut client, "/photos/b"), left, "{name}: {value}");
    }
    client.send(copy("/photos/new", "photos/a").header("if-none-match", "*")).expect(200);
    client.send(copy("/photos/none", "photos/a").header("if-match", &etag)).refused(404, "NoSuchKey");
}

#[test]
fn requests_that_name_no_source_or_mean_no_copy_are_refused() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    client.send(Call::new("PUT", "/photos/a").body("a")).expect(200);
    for (from, status, code) in [
        ("photos/a?versionId=x", 400, "InvalidArgument"),
        ("photos", 400, "InvalidArgument"),
        ("", 400, "InvalidArgument"),
        ("photos/%zz", 400, "InvalidArgument"),
    ] {
        client.send(copy("/photos/b", from)).refused(status, code);
    }
    // An error about the source names the source.
    for (from, code, bucket, key) in [
        ("photos/no%20ne", "NoSuchKey", "photos", "no ne"),
        ("missing/a", "NoSuchBucket", "missing", "a"),
        ("photos/a?versionId=00000000ffffffff", "NoSuchVersion", "photos", "a"),
    ] {
        let refused = client.send(copy("/photos/b", from)).refused(404, code);
        assert_eq!(refused.elements("BucketName"), [bucket]);
        assert_eq!(refused.elements("Key"), [key]);
        assert_eq!(refused.elements("Resource"), [format!("/{bucket}/{}", key.replace(' ', "%20"))]);
    }
    let refused = client.send(copy("/missing/b", "photos/a")).refused(404, "NoSuchBucket");
    assert_eq!(
        (refused.elements("BucketName"), refused.elements("Key")),
        (vec!["missing".to_owned()], vec!["b".to_owned()])
    );
    client.send(copy("/photos/b", "photos/a").body("x")).refused(400, "InvalidRequest");
    for (name, value, status, code) in [
        ("x-amz-metadata-directive", "KEEP", 400, "InvalidArgument"),
        ("x-amz-tagging-directive", "REPLACE", 501, "NotImplemented"),
        ("x-amz-copy-source-range", "bytes=0-1", 501, "NotImplemented"),
        ("x-amz-copy-source-server-side-encryption-customer-key", "k", 501, "NotImplemented"),
        ("x-amz-source-expected-bucket-owner", "111122223333", 403, "AccessDenied"),
        ("x-amz-expected-bucket-owner", "111122223333", 403, "AccessDenied"),
        ("x-amz-object-lock-legal-hold", "ON", 400, "InvalidRequest"),
    ] {
        client.send(copy("/photos/b", "photos/a").header(name, value)).refused(status, code);
    }
    for method in ["GET", "DELETE"] {
        let elsewhere = Call::new(method, "/photos/a").header("x-amz-copy-source", "/photos/a");
        client.send(elsewhere).refused(400, "InvalidArgument");
    }
    let head = Call::new("HEAD", "/photos/a").header("x-amz-copy-source", "/photos/a");
    assert_eq!(client.send(head).status, 400);
    let condition = Call::new("PUT", "/photos/a").header("x-amz-copy-source-if-match", "x").body("lost");
    client.send(condition).refused(400, "InvalidArgument");
    client.send(Call::new("GET", "/photos/b")).refused(404, "NoSuchKey");
    assert_eq!(body_of(&mut client, "/photos/a"), b"a");
}

#[test]
fn a_copy_onto_itself_has_to_change_something() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let body = content(1, 200_000);
    client.send(Call::new("PUT", "/photos/a").header("x-amz-meta-a", "1").body(body.clone())).expect(200);
    client.send(copy("/photos/a", "photos/a")).refused(400, "InvalidRequest");
    client.send(copy("/photos/a", "photos/a?versionId=null")).refused(400, "InvalidRequest");
    let replaced = copy("/photos/a", "photos/a")
        .header("x-amz-metadata-directive", "REPLACE")
        .header("x-amz-meta-a", "2");
    client.send(replaced).expect(200);
    let got = client.send(Call::new("GET", "/photos/a")).expect(200);
    assert!(got.body == body);
    assert_eq!(got.header("x-amz-meta-a"), Some("2"));
}

#[test]
fn versions_are_copied_by_name_and_delete_markers_not_at_all() {
    let server = Server::start();
    let mut client = server.client();
    let create = Call::new("PUT", "/photos").header("x-amz-bucket-object-lock-enabled", "true");
    client.send(create).expect(200);
    client.send(Call::new("PUT", "/plain")).expect(200);
    let mut put = |body: &str| {
        let answer = client.send(Call::new("PUT", "/photos/a").body(body)).expect(200);
        answer.header("x-amz-version-id").unwrap().to_owned()
    };
    let (old, new) = (put("old"), put("new"));
    let current = client.send(copy("/plain/a", "photos/a")).expect(200);
    assert_eq!(current.header("x-amz-copy-source-version-id"), Some(&*new));
    assert_eq!(current.header("x-amz-version-id"), None);
    assert_eq!(body_of(&mut client, "/plain/a"), b"new");

    // An older version becomes the current one again; the current one has nothing to become.
    let same = format!("photos/a?versionId={new}");
    client.send(copy("/photos/a", &same)).refused(400, "InvalidRequest");
    let held =
        copy("/photos/a", &format!("photos/a?versionId={old}")).header("x-amz-object-lock-legal-hold", "ON");
    let restored = client.send(held).expect(200);
    assert_eq!(restored.header("x-amz-copy-source-version-id"), Some(&*old));
    let third = restored.header("x-amz-version-id").unwrap().to_owned();
    assert!(third != old && third != new);
    assert_eq!(body_of(&mut client, "/photos/a"), b"old");
    client.send(Call::new("DELETE", &format!("/photos/a?versionId={third}"))).refused(403, "AccessDenied");
    // The lock is not copied.
    client.send(copy("/photos/b", "photos/a")).expect(200);
    let copied = client.send(Call::new("HEAD", "/photos/b")).expect(200);
    assert_eq!(copied.header("x-amz-object-lock-legal-hold"), None);

    let marker = client.send(Call::new("DELETE", "/photos/a")).expect(204);
    let marker = marker.header("x-amz-version-id").unwrap().to_owned();
    client.send(copy("/plain/b", "photos/a")).refused(404, "NoSuchKey");
    let by_version = format!("photos/a?versionId={marker}");
    client.send(copy("/plain/b", &by_version)).refused(400, "InvalidRequest");
    client.send(copy("/photos/a", &format!("photos/a?versionId={new}"))).expect(200);
    assert_eq!(body_of(&mut client, "/photos/a"), b"new");
}
