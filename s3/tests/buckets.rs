//! Buckets and lists over a real socket and the real engine.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Answer, Call, Client, Server};

fn list(client: &mut Client, query: &str) -> Answer {
    client.send(Call::new("GET", &format!("/photos?list-type=2{query}"))).expect(200)
}

#[test]
fn a_bucket_is_made_found_listed_and_deleted_once_empty() {
    let server = Server::start();
    let mut client = server.client();
    let mut send = |call: Call| client.send(call);
    send(Call::new("HEAD", "/photos")).expect(404);
    let xml = "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><LocationConstraint>\
               eu-west-1</LocationConstraint></CreateBucketConfiguration>";
    let created = send(Call::new("PUT", "/photos").body(xml)).expect(200);
    assert_eq!(created.header("location"), Some("/photos"));
    send(Call::new("PUT", "/photos/")).refused(409, "BucketAlreadyOwnedByYou");
    send(Call::new("PUT", "/other").length("")).expect(200);
    for path in ["/ab", "/Photos", "/a_b", "/192.168.1.1"] {
        send(Call::new("PUT", path)).refused(400, "InvalidBucketName");
    }
    for body in ["<Create", "<!DOCTYPE x><CreateBucketConfiguration/>", "<Other/>"] {
        send(Call::new("PUT", "/third").body(body)).refused(400, "MalformedXML");
    }
    let long = format!("<CreateBucketConfiguration>{}</CreateBucketConfiguration>", " ".repeat(1 << 20));
    server.client().send(Call::new("PUT", "/third").body(long)).refused(400, "MalformedXML");
    let lock = Call::new("PUT", "/third").header("x-amz-bucket-object-lock-enabled", "yes");
    send(lock).refused(400, "InvalidArgument");
    let head = send(Call::new("HEAD", "/photos")).expect(200);
    assert_eq!(head.header("x-amz-bucket-region"), Some("us-east-1"));
    let location = send(Call::new("GET", "/photos?location")).expect(200);
    assert!(location.text().ends_with(
        "<LocationConstraint xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"></LocationConstraint>"
    ));

    let all = send(Call::new("GET", "/")).expect(200);
    assert_eq!(all.elements("Name"), ["other", "photos"]);
    assert!(all.element("CreationDate").unwrap().ends_with('Z') && all.element("ID").is_some());
    let page = send(Call::new("GET", "/?max-buckets=1")).expect(200);
    assert_eq!(
        (page.elements("Name"), page.element("BucketRegion").as_deref()),
        (vec!["other".to_owned()], Some("us-east-1"))
    );
    let next = format!("/?max-buckets=1&continuation-token={}", page.element("ContinuationToken").unwrap());
    let page = send(Call::new("GET", &next)).expect(200);
    assert_eq!((page.elements("Name"), page.element("ContinuationToken")), (vec!["photos".to_owned()], None));
    assert_eq!(send(Call::new("GET", "/?prefix=ph")).elements("Name"), ["photos"]);

    send(Call::new("PUT", "/photos/a").body("x")).expect(200);
    send(Call::new("DELETE", "/photos")).refused(409, "BucketNotEmpty");
    send(Call::new("DELETE", "/photos/a")).expect(204);
    send(Call::new("DELETE", "/photos")).expect(204);
    send(Call::new("DELETE", "/photos")).refused(404, "NoSuchBucket");
}

#[test]
fn every_operation_under_a_missing_bucket_says_so() {
    let server = Server::start();
    let mut client = server.client();
    for (method, target) in [
        ("GET", "/missing?list-type=2"),
        ("GET", "/missing?location"),
        ("GET", "/missing/a"),
        ("PUT", "/missing/a"),
        ("DELETE", "/missing/a"),
        ("DELETE", "/missing"),
    ] {
        let refused = client.send(Call::new(method, target)).refused(404, "NoSuchBucket");
        assert_eq!(refused.element("BucketName").as_deref(), Some("missing"), "{method} {target}");
    }
    assert_eq!(client.send(Call::new("HEAD", "/missing/a")).expect(404).body, b"");
}

#[test]
fn lists_fold_page_and_encode_as_s3_does() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    for key in ["a", "a/1", "a/2", "b%2Bc", "d%20e/x", "z%0D"] {
        client.send(Call::new("PUT", &format!("/photos/{key}")).body("x")).expect(200);
    }
    let all = list(&mut client, "");
    assert_eq!(all.elements("Key"), ["a", "a/1", "a/2", "b+c", "d e/x", "z&#xD;"]);
    assert_eq!(
        (all.element("KeyCount").as_deref(), all.element("IsTruncated").as_deref()),
        (Some("6"), Some("false"))
    );
    assert_eq!(all.elements("ETag")[0], format!("&quot;{}&quot;", "9dd4e461268c8034f5c8564e155c67a6"));
    let folded = list(&mut client, "&delimiter=%2F&encoding-type=url");
    assert_eq!(folded.elements("Key"), ["a", "b%2Bc", "z%0D"]);
    assert_eq!(folded.element("KeyCount").as_deref(), Some("5"));
    assert!(folded.text().contains("<CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes>"));
    assert!(folded.text().contains("<CommonPrefixes><Prefix>d%20e/</Prefix></CommonPrefixes>"));

    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let page = list(&mut client, &format!("&delimiter=%2F&max-keys=1{token}"));
        found.extend(page.elements("Key"));
        found.extend(page.text().matches("<CommonPrefixes>").map(|_| "prefix".to_owned()));
        let Some(next) = page.element("NextContinuationToken") else { break };
        assert_eq!(page.element("IsTruncated").as_deref(), Some("true"));
        token = format!("&continuation-token={next}");
    }
    assert_eq!(found, ["a", "prefix", "b+c", "prefix", "z&#xD;"]);

    assert_eq!(list(&mut client, "&prefix=a%2F").elements("Key"), ["a/1", "a/2"]);
    let after = list(&mut client, "&start-after=a%2F1&fetch-owner=true");
    assert_eq!(after.elements("Key"), ["a/2", "b+c", "d e/x", "z&#xD;"]);
    assert_eq!((after.element("StartAfter").as_deref(), after.elements("Owner").len()), (Some("a/1"), 4));
    let none = list(&mut client, "&max-keys=0");
    assert_eq!(
        (none.element("KeyCount").as_deref(), none.element("IsTruncated").as_deref()),
        (Some("0"), Some("false"))
    );
    for query in ["max-keys=-1", "max-keys=a", "continuation-token=bad", "encoding-type=x"] {
        let refused = client.send(Call::new("GET", &format!("/photos?list-type=2&{query}")));
        refused.refused(400, "InvalidArgument");
    }
}
