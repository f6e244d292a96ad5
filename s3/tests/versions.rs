//! Versions over a real socket and the real engine: what each state of a bucket keeps, names and lists.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Answer, Call, Client, Server};

const UNKNOWN: &str = "00000000ffffffff";

fn set_versioning(client: &mut Client, bucket: &str, status: &str) {
    let body = format!("<VersioningConfiguration><Status>{status}</Status></VersioningConfiguration>");
    client.send(Call::new("PUT", &format!("/{bucket}?versioning")).body(body)).expect(200);
}

fn versioned(bucket: &str) -> (Server, Client) {
    let server = Server::with_bucket(bucket);
    let mut client = server.client();
    set_versioning(&mut client, bucket, "Enabled");
    (server, client)
}

fn put(client: &mut Client, target: &str, body: &str) -> Option<String> {
    let answer = client.send(Call::new("PUT", target).body(body)).expect(200);
    answer.header("x-amz-version-id").map(str::to_owned)
}

fn get(client: &mut Client, target: &str) -> Answer {
    client.send(Call::new("GET", target))
}

fn delete(client: &mut Client, target: &str) -> (Option<String>, bool) {
    let answer = client.send(Call::new("DELETE", target)).expect(204);
    let marker = answer.header("x-amz-delete-marker");
    assert!(marker.is_none_or(|marker| marker == "true"));
    (answer.header("x-amz-version-id").map(str::to_owned), marker.is_some())
}

/// Key, version id, whether it is the latest, whether it is a marker, of each entry in order.
fn entries(page: &Answer) -> Vec<(String, String, bool, bool)> {
    let text = page.text();
    let mut found = Vec::new();
    for (at, tag) in text.match_indices("<IsLatest>") {
        let (before, after) = (&text[..at], &text[at + tag.len()..]);
        let field = |name: &str| {
            let at = before.rfind(&format!("<{name}>")).unwrap() + name.len() + 2;
            before[at..].split('<').next().unwrap().to_owned()
        };
        let is_marker = before.rfind("<DeleteMarker>") > before.rfind("<Version>");
        found.push((field("Key"), field("VersionId"), after.starts_with("true"), is_marker));
    }
    found
}

fn list(client: &mut Client, query: &str) -> Answer {
    client.send(Call::new("GET", &format!("/photos?versions{query}"))).expect(200)
}

#[test]
fn a_bucket_that_never_had_versioning_names_no_version_and_knows_null() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    let state = get(&mut client, "/photos?versioning").expect(200);
    assert!(state.text().contains("<VersioningConfiguration") && state.element("Status").is_none());
    assert_eq!(put(&mut client, "/photos/a", "one"), None);
    for target in ["/photos/a", "/photos/a?versionId=null"] {
        let answer = get(&mut client, target).expect(200);
        assert_eq!(
            (answer.body.as_slice(), answer.header("x-amz-version-id")),
            (&b"one"[..], None),
            "{target}"
        );
    }
    get(&mut client, &format!("/photos/a?versionId={UNKNOWN}")).refused(404, "NoSuchVersion");
    assert_eq!(entries(&list(&mut client, "")), [("a".to_owned(), "null".to_owned(), true, false)]);
    assert_eq!(delete(&mut client, "/photos/a"), (None, false));
    get(&mut client, "/photos/a").refused(404, "NoSuchKey");
    assert_eq!(delete(&mut client, "/photos/a"), (None, false));
}

#[test]
fn enabled_keeps_every_version_and_a_delete_makes_a_marker() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    assert_eq!(put(&mut client, "/photos/a", "before"), None);
    set_versioning(&mut client, "photos", "Enabled");
    assert_eq!(get(&mut client, "/photos?versioning").element("Status").as_deref(), Some("Enabled"));
    let null = get(&mut client, "/photos/a").expect(200);
    assert_eq!(null.header("x-amz-version-id"), Some("null"));
    let one = put(&mut client, "/photos/a", "one").unwrap();
    let two = put(&mut client, "/photos/a", "two").unwrap();
    for (version, body) in [("null", "before"), (&one, "one"), (&two, "two")] {
        let target = format!("/photos/a?versionId={version}");
        let answer = get(&mut client, &target).expect(200);
        assert_eq!((answer.text(), answer.header("x-amz-version-id")), (body.to_owned(), Some(version)));
        let head = client.send(Call::new("HEAD", &target)).expect(200);
        assert_eq!(head.header("x-amz-version-id"), Some(version));
        let part = get(&mut client, &format!("{target}&partNumber=1")).expect(206);
        assert_eq!((part.text(), part.header("x-amz-version-id")), (body.to_owned(), Some(version)));
    }

    let (marker, is_marker) = delete(&mut client, "/photos/a");
    let marker = marker.unwrap();
    assert!(is_marker);
    let gone = get(&mut client, "/photos/a").refused(404, "NoSuchKey");
    assert_eq!(gone.header("x-amz-delete-marker"), Some("true"));
    assert_eq!(gone.header("x-amz-version-id"), Some(&*marker));
    let by_id = get(&mut client, &format!("/photos/a?versionId={marker}")).refused(405, "MethodNotAllowed");
    assert_eq!((by_id.header("allow"), by_id.header("x-amz-delete-marker")), (Some("DELETE"), Some("true")));
    assert!(by_id.header("last-modified").is_some());
    let head = client.send(Call::new("HEAD", &format!("/photos/a?versionId={marker}"))).expect(405);
    assert_eq!((head.header("allow"), head.header("x-amz-delete-marker")), (Some("DELETE"), Some("true")));
    let head = client.send(Call::new("HEAD", "/photos/a")).expect(404);
    assert_eq!(head.header("x-amz-delete-marker"), Some("true"));

    let of = |version: &str, latest, marker| ("a".to_owned(), version.to_owned(), latest, marker);
    assert_eq!(
        entries(&list(&mut client, "")),
        [of(&marker, true, true), of(&two, false, false), of(&one, false, false), of("null", false, false)]
    );
    // A prefix that holds nothing but a deleted key is none in the list of objects.
    assert_eq!(get(&mut client, "/photos?list-type=2").element("KeyCount").as_deref(), Some("0"));
    client.send(Call::new("DELETE", "/photos")).refused(409, "BucketNotEmpty");

    assert_eq!(delete(&mut client, &format!("/photos/a?versionId={marker}")), (Some(marker), true));
    assert_eq!(get(&mut client, "/photos/a").expect(200).text(), "two");
    assert_eq!(delete(&mut client, &format!("/photos/a?versionId={two}")), (Some(two), false));
    assert_eq!(get(&mut client, "/photos/a").expect(200).text(), "one");
    assert_eq!(delete(&mut client, "/photos/a?versionId=null"), (Some("null".to_owned()), false));
    assert_eq!(delete(&mut client, &format!("/photos/a?versionId={one}")), (Some(one), false));
    assert_eq!(entries(&list(&mut client, "")), []);
    client.send(Call::new("DELETE", "/photos")).expect(204);
}

#[test]
fn suspended_replaces_the_null_version_alone() {
    let (_server, mut client) = versioned("photos");
    let kept = put(&mut client, "/photos/a", "kept").unwrap();
    set_versioning(&mut client, "photos", "Suspended");
    assert_eq!(put(&mut client, "/photos/a", "null 1"), None);
    assert_eq!(put(&mut client, "/photos/a", "null 2"), None);
    let current = get(&mut client, "/photos/a").expect(200);
    assert_eq!((current.text(), current.header("x-amz-version-id")), ("null 2".to_owned(), Some("null")));
    let of = |version: &str, latest, marker| ("a".to_owned(), version.to_owned(), latest, marker);
    assert_eq!(entries(&list(&mut client, "")), [of("null", true, false), of(&kept, false, false)]);

    assert_eq!(delete(&mut client, "/photos/a"), (Some("null".to_owned()), true));
    assert_eq!(entries(&list(&mut client, "")), [of("null", true, true), of(&kept, false, false)]);
    get(&mut client, "/photos/a?versionId=null").refused(405, "MethodNotAllowed");
    assert_eq!(get(&mut client, &format!("/photos/a?versionId={kept}")).expect(200).text(), "kept");
    assert_eq!(delete(&mut client, "/photos/a?versionId=null"), (Some("null".to_owned()), true));
    assert_eq!(get(&mut client, "/photos/a").expect(200).text(), "kept");

    assert_eq!(put(&mut client, "/photos/a", "null 3"), None);
    set_versioning(&mut client, "photos", "Enabled");
    let later = put(&mut client, "/photos/a", "later").unwrap();
    assert_eq!(
        entries(&list(&mut client, "")),
        [of(&later, true, false), of("null", false, false), of(&kept, false, false)]
    );
}

#[test]
fn unknown_and_malformed_versions() {
    let (_server, mut client) = versioned("photos");
    put(&mut client, "/photos/a", "kept").unwrap();
    for key in ["a", "missing"] {
        let unknown = format!("/photos/{key}?versionId={UNKNOWN}");
        let refused = get(&mut client, &unknown).refused(404, "NoSuchVersion");
        assert_eq!(refused.element("VersionId").as_deref(), Some(UNKNOWN));
        client.send(Call::new("HEAD", &unknown)).expect(404);
        assert_eq!(delete(&mut client, &unknown), (Some(UNKNOWN.to_owned()), false));
        assert_eq!(
            delete(&mut client, &format!("/photos/{key}?versionId=null")),
            (Some("null".to_owned()), false)
        );
        for method in ["GET", "HEAD", "DELETE"] {
            for version in ["", "=", "=x", "=NULL", "=000000000000000A"] {
                let answer = client.send(Call::new(method, &format!("/photos/{key}?versionId{version}")));
                let answer = answer.expect(400);
                assert!(method == "HEAD" || answer.element("Code").as_deref() == Some("InvalidArgument"));
            }
        }
    }
    let misplaced = Call::new("PUT", "/photos/a?versionId=null").body("lost");
    client.send(misplaced).refused(400, "InvalidArgument");
    for target in ["/photos/a?versions", "/photos/a?versioning", "/photos/a?cors"] {
        get(&mut client, target).refused(400, "InvalidRequest");
    }
    assert_eq!(get(&mut client, "/photos/a").expect(200).text(), "kept");
}

#[test]
fn states_that_do_not_exist_change_nothing() {
    let (_server, mut client) = versioned("photos");
    for (body, status, code) in [
        ("<VersioningConfiguration/>", 400, "MalformedXML"),
        ("<VersioningConfiguration><Status>Off</Status></VersioningConfiguration>", 400, "MalformedXML"),
        ("<Other><Status>Suspended</Status></Other>", 400, "MalformedXML"),
        ("", 400, "MalformedXML"),
        (
            "<!DOCTYPE a><VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>",
            400,
            "MalformedXML",
        ),
        (
            "<VersioningConfiguration><Status>Suspended</Status><MfaDelete>Enabled</MfaDelete></VersioningConfiguration>",
            501,
            "NotImplemented",
        ),
    ] {
        client.send(Call::new("PUT", "/photos?versioning").body(body)).refused(status, code);
    }
    let suspend = "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>";
    let wrong = Call::new("PUT", "/photos?versioning").header("x-amz-checksum-crc32", "AAAAAA==");
    client.send(wrong.body(suspend)).refused(400, "BadDigest");
    let wrong = Call::new("PUT", "/photos?versioning").header("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==");
    client.send(wrong.body(suspend)).refused(400, "BadDigest");
    assert_eq!(get(&mut client, "/photos?versioning").element("Status").as_deref(), Some("Enabled"));
}

/// Conditions are decided on the current version, and a delete marker counts as absent.
#[test]
fn a_delete_marker_counts_as_absent() {
    let (_server, mut client) = versioned("photos");
    let one = put(&mut client, "/photos/a", "one").unwrap();
    let create = || Call::new("PUT", "/photos/a").header("if-none-match", "*").body("new");
    client.send(create()).refused(412, "PreconditionFailed");
    delete(&mut client, "/photos/a");
    let replace = Call::new("PUT", "/photos/a").header("if-match", "*").body("new");
    client.send(replace).refused(404, "NoSuchKey");
    client.send(create()).expect(200);
    let other = Call::new("DELETE", &format!("/photos/a?versionId={one}")).header("if-match", "\"x\"");
    client.send(other).refused(412, "PreconditionFailed");
    assert_eq!(get(&mut client, &format!("/photos/a?versionId={one}")).expect(200).text(), "one");
}

#[test]
fn a_list_of_versions_goes_on_exactly_where_it_ended() {
    let (_server, mut client) = versioned("photos");
    let mut expected = Vec::new();
    for key in ["a", "b/1", "b/2", "c"] {
        let mut versions: Vec<String> = (0..3)
            .map(|number| put(&mut client, &format!("/photos/{key}"), &number.to_string()).unwrap())
            .collect();
        if key == "c" {
            versions.push(delete(&mut client, "/photos/c").0.unwrap());
        }
        versions.reverse();
        for (place, version) in versions.into_iter().enumerate() {
            expected.push((key.to_owned(), version, place == 0, key == "c" && place == 0));
        }
    }
    for max in [1, 2, 3, 5, 13, 14] {
        let (mut found, mut markers) = (Vec::new(), String::new());
        loop {
            let page = list(&mut client, &format!("&max-keys={max}{markers}"));
            let entries = entries(&page);
            let truncated = page.element("IsTruncated").as_deref() == Some("true");
            assert!(entries.len() == max || (!truncated && entries.len() <= max), "{max}: {entries:?}");
            found.extend(entries);
            if !truncated {
                assert_eq!(page.element("NextKeyMarker"), None);
                break;
            }
            markers = format!("&key-marker={}", page.element("NextKeyMarker").unwrap().replace('/', "%2F"));
            if let Some(version) = page.element("NextVersionIdMarker") {
                markers += &format!("&version-id-marker={version}");
            }
        }
        assert_eq!(found, expected, "max-keys={max}");
    }

    let after_key = entries(&list(&mut client, "&key-marker=b%2F2"));
    assert_eq!(after_key, expected[9..]);
    let within = format!("&key-marker=b%2F1&version-id-marker={}", expected[4].1);
    assert_eq!(entries(&list(&mut client, &within)), expected[5..]);
    assert_eq!(entries(&list(&mut client, "&prefix=b%2F")), expected[3..9]);
    assert_eq!(entries(&list(&mut client, "&max-keys=0")), []);

    let folded = list(&mut client, "&delimiter=%2F&max-keys=4");
    assert_eq!(entries(&folded), expected[..3]);
    assert!(folded.text().contains("<CommonPrefixes><Prefix>b/</Prefix></CommonPrefixes>"));
    assert_eq!(folded.element("NextKeyMarker").as_deref(), Some("b/"));
    let rest = list(&mut client, "&delimiter=%2F&key-marker=b%2F&encoding-type=url");
    assert_eq!(entries(&rest), expected[9..]);
    assert!(!rest.text().contains("CommonPrefixes"));

    for (query, code) in [
        ("&version-id-marker=null", "InvalidArgument"),
        ("&key-marker=a&version-id-marker=", "InvalidArgument"),
        ("&key-marker=a&version-id-marker=x", "InvalidArgument"),
        ("&max-keys=-1", "InvalidArgument"),
    ] {
        get(&mut client, &format!("/photos?versions{query}")).refused(400, code);
    }
}

#[test]
fn a_version_in_a_list_has_what_an_object_in_a_list_has() {
    let (_server, mut client) = versioned("photos");
    let call = Call::new("PUT", "/photos/a%20b").header("x-amz-checksum-crc32", "y/Q5Jg==").body("123456789");
    client.send(call).expect(200);
    let page = list(&mut client, "&encoding-type=url");
    for (name, value) in [
        ("Key", "a%20b"),
        ("Size", "9"),
        ("ETag", "&quot;25f9e794323b453885f5181f1b624d0b&quot;"),
        ("ChecksumAlgorithm", "CRC32"),
        ("ChecksumType", "FULL_OBJECT"),
        ("StorageClass", "STANDARD"),
        ("EncodingType", "url"),
        ("Name", "photos"),
    ] {
        assert_eq!(page.element(name).as_deref(), Some(value), "{name}");
    }
    assert!(page.element("LastModified").unwrap().ends_with('Z') && page.element("ID").is_some());
}
