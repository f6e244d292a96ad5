//! Multipart uploads over a real socket and the real engine: what is uploaded in parts comes out as one object, and what is
//! wrong is refused and changes nothing.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Answer, Call, Client, Server, content};

/// The least size of a part but the last.
const PART: usize = 5 << 20;
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

/// Uploads a part and gives its entity tag.
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

fn etag_of(answer: &Answer) -> String {
    answer.element("ETag").unwrap().replace("&quot;", "\"")
}

#[test]
fn parts_become_one_object_that_reads_whole_in_ranges_and_by_part() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let key = "/photos/dir/a%20b";
    let id = begin(&mut client, key, &[("content-type", "text/plain"), ("x-amz-meta-colour", "red")]);
    client.send(Call::new("GET", key)).refused(404, "NoSuchKey");
    let bodies = [content(1, PART), content(2, PART + 4097), content(3, 100)];
    let mut tags = Vec::new();
    // In any order, and with gaps between the numbers.
    for (number, body) in [(9, &bodies[2]), (2, &bodies[0]), (5, &bodies[1])] {
        tags.push((number, upload(&mut client, key, &id, number, body.clone())));
    }
    tags.sort();
    let named = list(tags.iter().map(|(number, etag)| (*number, etag.as_str())));
    let whole = bodies.concat();
    let done = client
        .send(complete(key, &id, named.clone()).header("x-amz-mp-object-size", whole.len().to_string()))
        .expect(200);
    assert_eq!(done.element("Bucket").as_deref(), Some("photos"));
    assert_eq!(done.element("Key").as_deref(), Some("dir/a b"));
    assert_eq!(done.element("Location"), Some(format!("http://{}{key}", client.host)));
    assert!(etag_of(&done).ends_with("-3\""), "{}", done.text());
    assert_eq!(done.header("x-amz-version-id"), None);

    let got = client.send(Call::new("GET", key)).expect(200);
    assert!(got.body == whole, "the bytes differ");
    assert_eq!(got.header("etag"), Some(&*etag_of(&done)));
    assert_eq!(
        (got.header("content-type"), got.header("x-amz-meta-colour")),
        (Some("text/plain"), Some("red"))
    );
    let across =
        client.send(Call::new("GET", key).header("range", format!("bytes={}-{}", PART - 5, PART + 5)));
    assert!(across.expect(206).body == whole[PART - 5..=PART + 5]);
    for (number, body) in [(2, &bodies[0]), (5, &bodies[1]), (9, &bodies[2])] {
        let part = client.send(Call::new("GET", &format!("{key}?partNumber={number}"))).expect(206);
        assert!(part.body == *body, "part {number} differs");
        assert_eq!(part.header("x-amz-mp-parts-count"), Some("3"));
        let head = client.send(Call::new("HEAD", &format!("{key}?partNumber={number}"))).expect(206);
        assert_eq!(head.header("content-length"), Some(&*body.len().to_string()));
    }
    client.send(Call::new("GET", &format!("{key}?partNumber=1"))).refused(416, "InvalidPartNumber");

    // The upload is gone, and the same completion gets the same answer.
    client.send(Call::new("GET", &format!("{key}?uploadId={id}"))).refused(404, "NoSuchUpload");
    let again = client.send(complete(key, &id, named)).expect(200);
    assert_eq!(again.text(), done.text());
    let other = list([(2, &*tags[0].1)]);
    client.send(complete(key, &id, other)).refused(404, "NoSuchUpload");
}

#[test]
fn a_part_that_is_uploaded_again_counts_and_one_that_is_not_named_is_dropped() {
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
fn completions_that_are_wrong_have_their_own_codes_and_change_nothing() {
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
    // Nothing of all this has touched the upload.
    client.send(one().header("x-amz-mp-object-size", "5")).expect(200);
    assert_eq!(client.send(Call::new("GET", key)).body, b"small");
}

#[test]
fn an_upload_is_found_by_its_own_bucket_and_key_alone() {
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
    client.send(no_id).refused(400, "InvalidRequest");
    let no_number = Call::new("PUT", &format!("/photos/a?uploadId={id}")).body("x");
    client.send(no_number).refused(400, "InvalidArgument");
    let copied = put_part("/photos/a", &id, 1, "").header("x-amz-copy-source", "/photos/b");
    client.send(copied).refused(501, "NotImplemented");
    let huge = put_part("/photos/a", &id, 1, "").length("5368709121");
    server.client().send(huge).refused(400, "EntityTooLarge");
    server.client().send(put_part("/photos/a", &id, 1, "").length("")).refused(411, "MissingContentLength");
    client.send(Call::new("GET", "/photos/a?uploads")).refused(400, "InvalidRequest");
    client
        .send(Call::new("GET", &format!("/photos/a?uploadId={id}&partNumber=1")))
        .refused(400, "InvalidArgument");
    client.send(Call::new("DELETE", "/photos")).refused(409, "BucketNotEmpty");
    client.send(Call::new("DELETE", &format!("/photos/a?uploadId={id}"))).expect(204);
    client.send(Call::new("DELETE", &format!("/photos/a?uploadId={id}"))).refused(404, "NoSuchUpload");
    client.send(put_part("/photos/a", &id, 1, "x")).refused(404, "NoSuchUpload");
    client.send(Call::new("DELETE", "/photos")).expect(204);
}

#[test]
fn a_part_for_no_upload_is_refused_before_its_body_is_asked_for() {
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

/// The list of parts of an upload that nobody had begun was asked for, up to 8 MiB of it.
#[test]
fn a_completion_of_no_upload_is_refused_before_its_body_is_asked_for() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let id = begin(&mut client, "/photos/a", &[]);
    let etag = upload(&mut client, "/photos/a", &id, 1, "x");
    let named = list([(1, &*etag)]);
    let expecting = |id: &str| {
        let call = complete("/photos/a", id, "").payload("UNSIGNED-PAYLOAD");
        call.length(&named.len().to_string()).header("expect", "100-continue")
    };
    // The second time the upload has become an object.
    for time in 0..2 {
        let mut client = server.client();
        let bytes = client.signed(&expecting(&id));
        assert_eq!(client.raw(bytes).answer(false).status, 100, "{time}");
        client.raw(&named).answer(false).expect(200);
    }
    let bytes = client.signed(&expecting("00000000ffffffff"));
    client.raw(bytes).answer(false).refused(404, "NoSuchUpload");
}

/// What the client said of the object was compared only the first time.
#[test]
fn a_completion_that_is_sent_again_is_held_against_the_object() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let versioning = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    client.send(Call::new("PUT", "/photos?versioning").body(versioning)).expect(200);
    let algorithm = ("x-amz-checksum-algorithm", "CRC32");
    let id = begin(&mut client, "/photos/a", &[algorithm, ("x-amz-checksum-type", "FULL_OBJECT")]);
    let etag = upload(&mut client, "/photos/a", &id, 1, "123456789");
    let again = || complete("/photos/a", &id, list([(1, &*etag)]));
    let first = client.send(again()).expect(200);
    // It is the version that was made that counts, whatever the current one is.
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
fn steps_of_an_upload_have_no_conditions() {
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

/// The answers named another key.
#[test]
fn an_upload_for_a_key_that_xml_cannot_carry_is_refused() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    client.send(Call::new("POST", "/photos/a%01b?uploads")).refused(400, "InvalidRequest");
    assert_eq!(begin(&mut client, "/photos/a%0Db", &[]).len(), begin(&mut client, "/photos/a", &[]).len());
}

#[test]
fn parts_are_listed_page_by_page() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let id = begin(&mut client, "/photos/a", &[("x-amz-checksum-algorithm", "CRC32")]);
    let mut tags = Vec::new();
    for number in [1, 3, 10_000] {
        tags.push(upload(&mut client, "/photos/a", &id, number, number.to_string()));
    }
    let mut page = |query: &str| client.send(Call::new("GET", &format!("/photos/a?uploadId={id}{query}")));
    let all = page("").expect(200);
    assert_eq!(all.elements("PartNumber"), ["1", "3", "10000"]);
    assert_eq!(all.elements("Size"), ["1", "1", "5"]);
    let listed: Vec<String> = all.elements("ETag").iter().map(|etag| etag.replace("&quot;", "\"")).collect();
    assert_eq!(listed, tags);
    assert_eq!(all.elements("ChecksumCRC32").len(), 3);
    assert_eq!(all.element("IsTruncated").as_deref(), Some("false"));
    assert_eq!(all.element("ChecksumType").as_deref(), Some("COMPOSITE"));
    let first = page("&max-parts=2").expect(200);
    assert_eq!(first.elements("PartNumber"), ["1", "3"]);
    assert_eq!(first.element("NextPartNumberMarker").as_deref(), Some("3"));
    assert_eq!(first.element("IsTruncated").as_deref(), Some("true"));
    let second = page("&max-parts=2&part-number-marker=3").expect(200);
    assert_eq!(second.elements("PartNumber"), ["10000"]);
    assert_eq!(second.element("IsTruncated").as_deref(), Some("false"));
    let exact = page("&max-parts=3").expect(200);
    assert_eq!(exact.element("IsTruncated").as_deref(), Some("false"));
    assert!(page("&max-parts=0").expect(200).elements("PartNumber").is_empty());
    page("&max-parts=x").refused(400, "InvalidArgument");
}

#[test]
fn uploads_are_listed_with_prefix_delimiter_and_markers_and_pages_are_full() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let mut begun = Vec::new();
    for key in ["a/1", "a/2", "b", "b", "c/1", "c%20/2"] {
        begun.push(begin(&mut client, &format!("/photos/{key}"), &[]));
    }
    let mut page = |query: &str| client.send(Call::new("GET", &format!("/photos?uploads{query}")));
    let all = page("").expect(200);
    assert_eq!(all.elements("Key"), ["a/1", "a/2", "b", "b", "c /2", "c/1"]);
    let ids: Vec<&String> = [0, 1, 2, 3, 5, 4].map(|at: usize| &begun[at]).to_vec();
    assert_eq!(all.elements("UploadId").iter().collect::<Vec<_>>(), ids);
    assert_eq!(all.element("IsTruncated").as_deref(), Some("false"));
    assert_eq!(page("&encoding-type=url").expect(200).elements("Key")[4], "c%20/2");
    let folded = page("&delimiter=/").expect(200);
    assert_eq!(folded.elements("Key"), ["b", "b"]);
    assert_eq!(folded.elements("Prefix"), ["", "a/", "c /", "c/"]);
    assert_eq!(page("&prefix=a/").expect(200).elements("Key"), ["a/1", "a/2"]);

    // Every page is as long as was asked for, and together they are all, once.
    for (size, delimiter) in [(1, ""), (2, ""), (3, ""), (1, "&delimiter=/"), (2, "&delimiter=/")] {
        let (mut seen, mut markers) = (Vec::new(), String::new());
        loop {
            let next = page(&format!("&max-uploads={size}{delimiter}{markers}")).expect(200);
            let entries = next.elements("UploadId").len() + next.elements("CommonPrefixes").len();
            seen.extend(next.elements("UploadId"));
            seen.extend(next.elements("Prefix").split_off(1));
            if next.element("IsTruncated").as_deref() == Some("false") {
                assert!(entries <= size);
                break;
            }
            assert_eq!(entries, size, "{}", next.text());
            let marker = |name| next.element(name).unwrap().replace(' ', "%20").replace('/', "%2F");
            let (key, id) = (marker("NextKeyMarker"), marker("NextUploadIdMarker"));
            markers = format!("&key-marker={key}&upload-id-marker={id}");
        }
        let expected = if delimiter.is_empty() { 6 } else { 5 };
        assert_eq!(seen.len(), expected, "{size} {delimiter} {seen:?}");
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), expected);
    }
    page("&key-marker=a&upload-id-marker=x").refused(400, "InvalidArgument");
    assert!(page("&max-uploads=0").expect(200).elements("Upload").is_empty());
}

#[test]
fn checksums_of_parts_are_checked_and_make_that_of_the_object() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    // The CRC-32 of "123456789" is a catalogue value; the composite is the CRC-32 of its four bytes.
    for (kind, text) in [("COMPOSITE", "7kxlUA==-1"), ("FULL_OBJECT", "y/Q5Jg==")] {
        let headers = [("x-amz-checksum-algorithm", "CRC32"), ("x-amz-checksum-type", kind)];
        let created = Call::new("POST", "/photos/a?uploads").header(headers[0].0, headers[0].1);
        let created = client.send(created.header(headers[1].0, headers[1].1)).expect(200);
        assert_eq!(created.header("x-amz-checksum-algorithm"), Some("CRC32"));
        assert_eq!(created.header("x-amz-checksum-type"), Some(kind));
        let id = created.element("UploadId").unwrap();
        let part = || put_part("/photos/a", &id, 1, "123456789");
        client.send(part().header(CRC32, "AAAAAQ==")).refused(400, "BadDigest");
        client.send(part().header("x-amz-checksum-crc32c", "4waSgw==")).refused(400, "InvalidRequest");
        // Declared, or computed here: it is the same.
        let declared = client.send(part().header(CRC32, "y/Q5Jg==")).expect(200);
        let computed = client.send(part()).expect(200);
        assert_eq!(declared.header(CRC32), Some("y/Q5Jg=="));
        assert_eq!(computed.header(CRC32), declared.header(CRC32));
        let etag = computed.header("etag").unwrap();
        let with_checksum = |digest: &str| {
            let checksum = format!("<ChecksumCRC32>{digest}</ChecksumCRC32></Part>");
            complete("/photos/a", &id, list([(1, etag)]).replace("</Part>", &checksum))
        };
        client.send(with_checksum("AAAAAQ==")).refused(400, "InvalidPart");
        client.send(with_checksum("y/Q5Jg==").header(CRC32, "AAAAAQ==")).refused(400, "BadDigest");
        let other = if kind == "COMPOSITE" { "FULL_OBJECT" } else { "COMPOSITE" };
        client
            .send(with_checksum("y/Q5Jg==").header("x-amz-checksum-type", other))
            .refused(400, "InvalidRequest");
        let done = client.send(with_checksum("y/Q5Jg==").header(CRC32, text)).expect(200);
        assert_eq!(done.element("ChecksumCRC32").as_deref(), Some(text));
        assert_eq!(done.element("ChecksumType").as_deref(), Some(kind));
        let again = client.send(with_checksum("y/Q5Jg==")).expect(200);
        assert_eq!(again.text(), done.text());
        for (query, shown) in [("", Some(text)), ("?partNumber=1", None)] {
            let call =
                Call::new("HEAD", &format!("/photos/a{query}")).header("x-amz-checksum-mode", "ENABLED");
            let head = client.send(call);
            assert_eq!(head.header(CRC32), shown, "{query}");
            assert_eq!(head.header("x-amz-checksum-type"), shown.map(|_| kind));
        }
        let listed = client.send(Call::new("GET", "/photos?list-type=2")).expect(200);
        assert_eq!(listed.element("ChecksumType").as_deref(), Some(kind));
    }
}

#[test]
fn a_full_object_checksum_of_many_parts_is_the_one_of_their_bytes() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    for algorithm in ["CRC32", "CRC32C", "CRC64NVME"] {
        let headers = [("x-amz-checksum-algorithm", algorithm), ("x-amz-checksum-type", "FULL_OBJECT")];
        let id = begin(&mut client, "/photos/a", &headers);
        let bodies = [content(1, PART), content(2, PART), content(3, PART + 1), content(4, 77)];
        let tags: Vec<String> = (1..)
            .zip(&bodies)
            .map(|(number, body)| upload(&mut client, "/photos/a", &id, number, body.clone()))
            .collect();
        let named = list((1..).zip(tags.iter().map(String::as_str)));
        let done = client.send(complete("/photos/a", &id, named)).expect(200);
        let checksum = done.element(&format!("Checksum{algorithm}")).unwrap();
        // A PUT of the same bytes accepts it, which it checks.
        let header = format!("x-amz-checksum-{}", algorithm.to_ascii_lowercase());
        client
            .send(Call::new("PUT", "/photos/b").header(&header, &checksum).body(bodies.concat()))
            .expect(200);
    }
}

#[test]
fn ten_thousand_parts_are_completed_by_one_document() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let id = begin(&mut client, "/photos/a", &[]);
    let etag = upload(&mut client, "/photos/a", &id, 10_000, "x");
    let last = upload(&mut client, "/photos/a", &id, 1, "y");
    // The list is read to its end: what is wrong with it is the second part.
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
fn completed_versions_are_named_and_locked_as_their_uploads_asked() {
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
