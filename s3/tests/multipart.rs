//! Multipart uploads: refused requests, repeated completions and usage.

use crate::common::{Call, Client, Server};

const CRC32: &str = "x-amz-checksum-crc32";

fn begin(client: &mut Client, key: &str, headers: &[(&str, &str)]) -> String {
    let mut call = Call::new("POST", &format!("{key}?uploads"));
    for (name, value) in headers {
        call = call.header(name, value);
    }
    client.send(call).expect(200).element("UploadId").unwrap()
}

fn put_part(key: &str, id: &str, number: u32, body: impl Into<Vec<u8>>) -> Call {
    Call::new("PUT", &format!("{key}?partNumber={number}&uploadId={id}"))
        .payload("UNSIGNED-PAYLOAD")
        .body(body)
}

/// Uploads a part and returns its entity tag.
fn upload(client: &mut Client, key: &str, id: &str, number: u32, body: impl Into<Vec<u8>>) -> String {
    client.send(put_part(key, id, number, body)).expect(200).header("etag").unwrap().to_owned()
}

fn list<'p>(parts: impl IntoIterator<Item = (u32, &'p str)>) -> String {
    let parts: String = parts
        .into_iter()
        .map(|(number, etag)| format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"))
        .collect();
    format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>")
}

fn complete(key: &str, id: &str, body: impl Into<Vec<u8>>) -> Call {
    Call::new("POST", &format!("{key}?uploadId={id}")).body(body)
}

#[test]
fn replaced_and_unnamed_parts_release_their_usage() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let id = begin(&mut client, "/photos/a", &[]);
    let old = upload(&mut client, "/photos/a", &id, 1, "old");
    let new = upload(&mut client, "/photos/a", &id, 1, "new");
    upload(&mut client, "/photos/a", &id, 2, "not named");
    client.send(complete("/photos/a", &id, list([(1, &*old)]))).refused(400, "InvalidPart");
    client.send(complete("/photos/a", &id, list([(1, &*new)]))).expect(200);
    assert_eq!(client.send(Call::new("GET", "/photos/a")).expect(200).body, b"new");
    let bucket = server.store.buckets()[0].usage();
    assert_eq!((bucket.uploads, bucket.part_bytes, bucket.bytes), (0, 0, 3));
}

#[test]
fn invalid_completions_change_nothing() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let key = "/photos/a";
    let id = begin(&mut client, key, &[]);
    let small = upload(&mut client, key, &id, 1, "small");
    let last = upload(&mut client, key, &id, 2, "last");
    for (body, code) in [
        (list([(2, &*last), (1, &*small)]), "InvalidPartOrder"),
        (list([(1, &*small), (1, &*small)]), "InvalidPartOrder"),
        (list([(1, &*last)]), "InvalidPart"),
        (list([(1, &*small), (3, &*last)]), "InvalidPart"),
        (list([(0, &*small)]), "InvalidArgument"),
        (list([(10_001, &*small)]), "InvalidArgument"),
        (list([]), "MalformedXML"),
        (String::new(), "MalformedXML"),
        ("<Delete/>".to_owned(), "MalformedXML"),
    ] {
        client.send(complete(key, &id, body.clone())).refused(400, code);
    }
    let both = list([(1, &*small), (2, &*last)]);
    let too_small = client.send(complete(key, &id, both)).refused(400, "EntityTooSmall");
    assert_eq!(too_small.element("MinSizeAllowed").as_deref(), Some("5242880"));
    assert_eq!(too_small.element("ProposedSize").as_deref(), Some("5"));
    assert_eq!(too_small.element("PartNumber").as_deref(), Some("1"));
    let one = || complete(key, &id, list([(1, &*small)]));
    client.send(one().header("x-amz-mp-object-size", "6")).refused(400, "InvalidRequest");
    client.send(one().header("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")).refused(400, "BadDigest");
    client.send(one().header("if-match", "\"x\"")).refused(404, "NoSuchKey");
    client.send(Call::new("GET", key)).refused(404, "NoSuchKey");

    client.send(Call::new("PUT", key).body("there")).expect(200);
    client.send(one().header("if-none-match", "*")).refused(412, "PreconditionFailed");
    assert_eq!(client.send(Call::new("GET", key)).body, b"there");
    // The upload is unchanged.
    client.send(one().header("x-amz-mp-object-size", "5")).expect(200);
    assert_eq!(client.send(Call::new("GET", key)).body, b"small");
}

#[test]
fn upload_is_found_by_its_bucket_and_key_only() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    client.send(Call::new("PUT", "/other")).expect(200);
    let id = begin(&mut client, "/photos/a", &[]);
    for (key, id) in [
        ("/photos/b", &*id),
        ("/other/a", &*id),
        ("/photos/a", "x"),
        ("/photos/a", ""),
        ("/photos/a", "00000000ffffffff"),
    ] {
        client.send(put_part(key, id, 1, "x")).refused(404, "NoSuchUpload");
        client.send(Call::new("GET", &format!("{key}?uploadId={id}"))).refused(404, "NoSuchUpload");
        client.send(Call::new("DELETE", &format!("{key}?uploadId={id}"))).refused(404, "NoSuchUpload");
        let etag = "d41d8cd98f00b204e9800998ecf8427e";
        client.send(complete(key, id, list([(1, etag)]))).refused(404, "NoSuchUpload");
    }
    client.send(put_part("/missing/a", &id, 1, "x")).refused(404, "NoSuchBucket");
    for number in [0, 10_001] {
        client.send(put_part("/photos/a", &id, number, "x")).refused(400, "InvalidArgument");
    }
    let no_id = Call::new("PUT", "/photos/a?partNumber=1").body("x");
    client.send(no_id).refused(400, "InvalidArgument");
    let no_number = Call::new("PUT", &format!("/photos/a?uploadId={id}")).body("x");
    client.send(no_number).refused(405, "MethodNotAllowed");
    let copied = put_part("/photos/a", &id, 1, "").header("x-amz-copy-source", "/photos/b");
    client.send(copied).refused(501, "NotImplemented");
    let huge = put_part("/photos/a", &id, 1, "").length("5368709121");
    server.client().send(huge).refused(400, "EntityTooLarge");
    server.client().send(put_part("/photos/a", &id, 1, "").length("")).refused(411, "MissingContentLength");
    client.send(Call::new("GET", "/photos/a?uploads")).refused(400, "InvalidRequest");
    client
        .send(Call::new("GET", &format!("/photos/a?uploadId={id}&partNumber=1")))
        .refused(400, "InvalidArgument");
    client.send(Call::new("DELETE", &format!("/photos/a?uploadId={id}"))).expect(204);
    client.send(Call::new("DELETE", &format!("/photos/a?uploadId={id}"))).refused(404, "NoSuchUpload");
    client.send(put_part("/photos/a", &id, 1, "x")).refused(404, "NoSuchUpload");
    client.send(Call::new("DELETE", "/photos")).expect(204);
}

#[test]
fn part_of_a_missing_upload_is_refused_before_its_body() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let id = begin(&mut client, "/photos/a", &[]);
    let expecting = |id: &str| put_part("/photos/a", id, 1, "").length("5").header("expect", "100-continue");
    let bytes = client.signed(&expecting("00000000ffffffff"));
    client.raw(bytes).answer(false).refused(404, "NoSuchUpload");
    let mut client = server.client();
    let bytes = client.signed(&expecting(&id));
    assert_eq!(client.raw(bytes).answer(false).status, 100);
    client.raw("hello").answer(false).expect(200);
}

/// The list of parts of a missing upload was requested from the client, up to 8 MiB of it.
#[test]
fn completion_of_a_missing_upload_is_refused_before_its_body() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let id = begin(&mut client, "/photos/a", &[]);
    let etag = upload(&mut client, "/photos/a", &id, 1, "x");
    let named = list([(1, &*etag)]);
    let expecting = |id: &str| {
        let call = complete("/photos/a", id, "").payload("UNSIGNED-PAYLOAD");
        call.length(&named.len().to_string()).header("expect", "100-continue")
    };
    // The second time, the upload has become an object.
    for time in 0..2 {
        let mut client = server.client();
        let bytes = client.signed(&expecting(&id));
        assert_eq!(client.raw(bytes).answer(false).status, 100, "{time}");
        client.raw(&named).answer(false).expect(200);
    }
    let bytes = client.signed(&expecting("00000000ffffffff"));
    client.raw(bytes).answer(false).refused(404, "NoSuchUpload");
}

/// The declared size and checksum were compared only the first time.
#[test]
fn repeated_completion_is_compared_with_the_object() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let versioning = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    client.send(Call::new("PUT", "/photos?versioning").body(versioning)).expect(200);
    let algorithm = ("x-amz-checksum-algorithm", "CRC32");
    let id = begin(&mut client, "/photos/a", &[algorithm, ("x-amz-checksum-type", "FULL_OBJECT")]);
    let etag = upload(&mut client, "/photos/a", &id, 1, "123456789");
    let again = || complete("/photos/a", &id, list([(1, &*etag)]));
    let first = client.send(again()).expect(200);
    // The completed version counts, even if it is not the current one.
    client.send(Call::new("PUT", "/photos/a").body("later")).expect(200);
    for (name, value, code) in [
        ("x-amz-mp-object-size", "9", None),
        ("x-amz-mp-object-size", "8", Some("InvalidRequest")),
        (CRC32, "y/Q5Jg==", None),
        (CRC32, "AAAAAQ==", Some("BadDigest")),
        ("x-amz-checksum-crc32c", "4waSgw==", Some("InvalidRequest")),
        ("x-amz-checksum-type", "FULL_OBJECT", None),
        ("x-amz-checksum-type", "COMPOSITE", Some("InvalidRequest")),
    ] {
        let answer = client.send(again().header(name, value));
        match code {
            None => assert_eq!(answer.expect(200).text(), first.text(), "{name}: {value}"),
            Some(code) => drop(answer.refused(400, code)),
        }
    }
    assert_eq!(client.send(Call::new("GET", "/photos/a")).expect(200).body, b"later");
}

#[test]
fn upload_steps_refuse_conditions() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let id = begin(&mut client, "/photos/a", &[]);
    let abort = Call::new("DELETE", &format!("/photos/a?uploadId={id}"));
    for call in [Call::new("POST", "/photos/a?uploads"), put_part("/photos/a", &id, 1, "x"), abort] {
        client.send(call.header("if-none-match", "*")).refused(501, "NotImplemented");
    }
    let parts = client.send(Call::new("GET", &format!("/photos/a?uploadId={id}"))).expect(200);
    assert!(parts.elements("Part").is_empty());
    assert_eq!(server.store.buckets()[0].usage().uploads, 1);
}

/// The responses named another key.
#[test]
fn upload_for_a_key_that_xml_cannot_represent_is_refused() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    client.send(Call::new("POST", "/photos/a%01b?uploads")).refused(400, "InvalidRequest");
    assert_eq!(begin(&mut client, "/photos/a%0Db", &[]).len(), begin(&mut client, "/photos/a", &[]).len());
}

#[test]
fn list_of_ten_thousand_parts_is_accepted() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let id = begin(&mut client, "/photos/a", &[]);
    let etag = upload(&mut client, "/photos/a", &id, 10_000, "x");
    let last = upload(&mut client, "/photos/a", &id, 1, "y");
    // The whole list is read. Its first error is the second part.
    let named = list((1..=10_000).map(|number| (number, if number == 1 { &*last } else { &*etag })));
    assert!(named.len() > 600_000);
    let refused = client.send(complete("/photos/a", &id, named)).refused(400, "InvalidPart");
    assert_eq!(refused.element("PartNumber").as_deref(), Some("2"));
    let padding = " ".repeat(1 << 20);
    let padded = list([(10_000, &*etag)]).replace("<Part>", &format!("{padding}<Part>"));
    client.send(complete("/photos/a", &id, padded)).expect(200);
    let too_long = complete("/photos/a", &id, "").length("8388609");
    server.client().send(too_long).refused(400, "MalformedXML");
}

#[test]
fn completed_version_has_the_lock_of_its_upload() {
    let server = Server::start();
    let mut client = server.client();
    let create = Call::new("PUT", "/photos").header("x-amz-bucket-object-lock-enabled", "true");
    client.send(create).expect(200);
    let id = begin(&mut client, "/photos/a", &[("x-amz-object-lock-legal-hold", "ON")]);
    let etag = upload(&mut client, "/photos/a", &id, 1, "x");
    let done = client.send(complete("/photos/a", &id, list([(1, &*etag)]))).expect(200);
    let version = done.header("x-amz-version-id").unwrap().to_owned();
    let head = client.send(Call::new("HEAD", "/photos/a")).expect(200);
    assert_eq!(head.header("x-amz-version-id"), Some(&*version));
    assert_eq!(head.header("x-amz-object-lock-legal-hold"), Some("ON"));
    client.send(Call::new("DELETE", &format!("/photos/a?versionId={version}"))).refused(403, "AccessDenied");
    let again = client.send(complete("/photos/a", &id, list([(1, &*etag)]))).expect(200);
    assert_eq!(again.header("x-amz-version-id"), Some(&*version));
}
