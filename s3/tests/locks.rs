//! Object lock over a real socket and the real engine: nothing removes a locked version but who may, when they may.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Answer, Call, Client, Server};

const LATER: &str = "2099-01-01T00:00:00Z";
const LATEST: &str = "2100-01-01T00:00:00.5+00:00";
const SOONER: &str = "2098-01-01T00:00:00.000Z";
/// MD5 of `kept`.
const MD5: &str = "TYtghPPRZ7dsrGaiKpG+Ag==";

fn locking() -> (Server, Client) {
    let server = Server::start();
    let mut client = server.client();
    let create = Call::new("PUT", "/vault").header("x-amz-bucket-object-lock-enabled", "true");
    client.send(create).expect(200);
    client.send(Call::new("PUT", "/plain")).expect(200);
    (server, client)
}

fn put(key: &str) -> Call {
    Call::new("PUT", &format!("/vault/{key}")).header("content-md5", MD5).body("kept")
}

fn locked(key: &str, mode: &str, until: &str) -> Call {
    put(key).header("x-amz-object-lock-mode", mode).header("x-amz-object-lock-retain-until-date", until)
}

fn stored(client: &mut Client, call: Call) -> String {
    client.send(call).expect(200).header("x-amz-version-id").unwrap().to_owned()
}

fn retain(target: &str, mode: &str, until: &str) -> Call {
    let body =
        format!("<Retention><Mode>{mode}</Mode><RetainUntilDate>{until}</RetainUntilDate></Retention>");
    Call::new("PUT", target).body(body)
}

fn hold(target: &str, status: &str) -> Call {
    Call::new("PUT", target).body(format!("<LegalHold><Status>{status}</Status></LegalHold>"))
}

fn bypassing(call: Call) -> Call {
    call.header("x-amz-bypass-governance-retention", "true")
}

fn retention(answer: &Answer) -> (Option<String>, Option<String>) {
    (answer.element("Mode"), answer.element("RetainUntilDate"))
}

#[test]
fn a_bucket_gets_lock_when_it_is_created_and_keeps_versioning() {
    let (_server, mut client) = locking();
    assert_eq!(
        client.send(Call::new("GET", "/vault?versioning")).element("Status").as_deref(),
        Some("Enabled")
    );
    let suspend = "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>";
    client.send(Call::new("PUT", "/vault?versioning").body(suspend)).refused(409, "InvalidBucketState");
    let enable = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    client.send(Call::new("PUT", "/vault?versioning").body(enable)).expect(200);
    let configuration = client.send(Call::new("GET", "/vault?object-lock")).expect(200);
    assert_eq!(configuration.element("ObjectLockEnabled").as_deref(), Some("Enabled"));
    assert!(configuration.element("Rule").is_none());
    let none = client.send(Call::new("GET", "/plain?object-lock"));
    none.refused(404, "ObjectLockConfigurationNotFoundError");
    let configure =
        "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>";
    let late = Call::new("PUT", "/plain?object-lock").body(configure);
    client.send(late.clone()).refused(409, "InvalidBucketState");
    client.send(late.header("x-amz-bucket-object-lock-token", "t")).refused(501, "NotImplemented");
}

#[test]
fn headers_of_a_put_lock_its_version_and_answers_show_it() {
    let (_server, mut client) = locking();
    let version =
        stored(&mut client, locked("a", "GOVERNANCE", LATEST).header("x-amz-object-lock-legal-hold", "ON"));
    for method in ["GET", "HEAD"] {
        for target in ["/vault/a".to_owned(), format!("/vault/a?versionId={version}")] {
            let answer = client.send(Call::new(method, &target)).expect(200);
            for (name, value) in [
                ("x-amz-object-lock-mode", "GOVERNANCE"),
                ("x-amz-object-lock-retain-until-date", "2100-01-01T00:00:00.500Z"),
                ("x-amz-object-lock-legal-hold", "ON"),
                ("x-amz-version-id", &version),
            ] {
                assert_eq!(answer.header(name), Some(value), "{method} {target} {name}");
            }
        }
    }
    let plain = client.send(put("b")).expect(200);
    assert!(plain.header("x-amz-version-id").is_some());
    let head = client.send(Call::new("HEAD", "/vault/b")).expect(200);
    assert!(!head.head.contains("x-amz-object-lock"));

    let mode = ("x-amz-object-lock-mode", "GOVERNANCE");
    let until = ("x-amz-object-lock-retain-until-date", LATER);
    for (headers, code) in [
        (&[mode][..], "InvalidArgument"),
        (&[until], "InvalidArgument"),
        (&[("x-amz-object-lock-mode", "x"), until], "InvalidArgument"),
        (&[mode, ("x-amz-object-lock-retain-until-date", "2020-01-01T00:00:00Z")], "InvalidArgument"),
        (&[mode, ("x-amz-object-lock-retain-until-date", "tomorrow")], "InvalidArgument"),
        (&[("x-amz-object-lock-legal-hold", "MAYBE")], "InvalidArgument"),
    ] {
        let call = headers.iter().fold(put("c"), |call, (name, value)| call.header(name, value));
        client.send(call).refused(400, code);
    }
    let undeclared = Call::new("PUT", "/vault/c").body("kept").header("x-amz-object-lock-legal-hold", "ON");
    client.send(undeclared.clone()).refused(400, "InvalidRequest");
    client.send(Call::new("GET", "/vault/c")).refused(404, "NoSuchKey");
    client.send(undeclared.header("x-amz-checksum-crc32", "wP4vDQ==")).refused(400, "BadDigest");
    let elsewhere = Call::new("PUT", "/plain/c").header("content-md5", MD5).body("kept");
    client.send(elsewhere.header("x-amz-object-lock-legal-hold", "ON")).refused(400, "InvalidRequest");
    client.send(Call::new("GET", "/plain/c")).refused(404, "NoSuchKey");
    let misplaced = Call::new("GET", "/vault/a").header("x-amz-object-lock-legal-hold", "ON");
    client.send(misplaced).refused(400, "InvalidRequest");
}

#[test]
fn governance_yields_to_bypass_and_compliance_to_nobody() {
    let (_server, mut client) = locking();
    let governed = stored(&mut client, locked("g", "GOVERNANCE", LATER));
    let complied = stored(&mut client, locked("c", "COMPLIANCE", LATER));
    for (key, version) in [("g", &governed), ("c", &complied)] {
        let target = format!("/vault/{key}?versionId={version}");
        client.send(Call::new("DELETE", &target)).refused(403, "AccessDenied");
        // A plain delete hides it and takes nothing away; nor does a new version.
        let marker = client.send(Call::new("DELETE", &format!("/vault/{key}"))).expect(204);
        assert_eq!(marker.header("x-amz-delete-marker"), Some("true"));
        stored(&mut client, put(key));
        assert_eq!(client.send(Call::new("GET", &target)).expect(200).text(), "kept");
    }
    let refused = Call::new("DELETE", &format!("/vault/c?versionId={complied}"));
    client.send(bypassing(refused)).refused(403, "AccessDenied");
    let not_bypassing = Call::new("DELETE", &format!("/vault/g?versionId={governed}"))
        .header("x-amz-bypass-governance-retention", "false");
    client.send(not_bypassing).refused(403, "AccessDenied");
    client.send(bypassing(Call::new("DELETE", &format!("/vault/g?versionId={governed}")))).expect(204);
    client.send(Call::new("GET", &format!("/vault/g?versionId={governed}"))).refused(404, "NoSuchVersion");
    client.send(Call::new("PUT", "/plain/a").body("x")).expect(200);
    client.send(bypassing(Call::new("DELETE", "/plain/a"))).refused(400, "InvalidArgument");
    client.send(bypassing(Call::new("GET", "/vault/c"))).refused(400, "InvalidRequest");
    client.send(Call::new("GET", "/plain/a")).expect(200);
    client.send(Call::new("DELETE", "/vault")).refused(409, "BucketNotEmpty");
}

#[test]
fn retention_is_made_longer_by_all_and_shorter_by_bypass_alone() {
    let (_server, mut client) = locking();
    let version = stored(&mut client, put("a"));
    let of_version = format!("/vault/a?retention&versionId={version}");
    let none = client.send(Call::new("GET", "/vault/a?retention"));
    none.refused(404, "NoSuchObjectLockConfiguration");
    client
        .send(retain(&of_version, "GOVERNANCE", LATER).header("x-amz-checksum-crc32", "AAAAAA=="))
        .refused(400, "BadDigest");
    client.send(retain(&of_version, "GOVERNANCE", LATER)).expect(200);
    let governed = |until: &str| (Some("GOVERNANCE".to_owned()), Some(until.to_owned()));
    let read = |client: &mut Client| retention(&client.send(Call::new("GET", &of_version)).expect(200));
    assert_eq!(read(&mut client), governed("2099-01-01T00:00:00.000Z"));
    client.send(retain("/vault/a?retention", "GOVERNANCE", LATEST)).expect(200);
    assert_eq!(read(&mut client), governed("2100-01-01T00:00:00.500Z"));
    client.send(retain(&of_version, "GOVERNANCE", SOONER)).refused(403, "AccessDenied");
    client.send(Call::new("PUT", &of_version).body("<Retention/>")).refused(403, "AccessDenied");
    assert_eq!(read(&mut client), governed("2100-01-01T00:00:00.500Z"));
    client.send(bypassing(retain(&of_version, "GOVERNANCE", SOONER))).expect(200);
    assert_eq!(read(&mut client), governed(SOONER));
    client.send(bypassing(Call::new("PUT", &of_version).body("<Retention/>"))).expect(200);
    client.send(Call::new("GET", &of_version)).refused(404, "NoSuchObjectLockConfiguration");

    client.send(retain(&of_version, "COMPLIANCE", LATER)).expect(200);
    for call in [
        retain(&of_version, "COMPLIANCE", SOONER),
        retain(&of_version, "GOVERNANCE", LATEST),
        Call::new("PUT", &of_version).body("<Retention/>"),
    ] {
        client.send(call.clone()).refused(403, "AccessDenied");
        client.send(bypassing(call)).refused(403, "AccessDenied");
    }
    client.send(retain(&of_version, "COMPLIANCE", LATEST)).expect(200);
    assert_eq!(read(&mut client).1.as_deref(), Some("2100-01-01T00:00:00.500Z"));
}

/// A change of mode under the same date went through without bypass, and nobody could take back what it made of a governed
/// version.
#[test]
fn governance_becomes_compliance_by_bypass_alone() {
    let (_server, mut client) = locking();
    stored(&mut client, locked("a", "GOVERNANCE", LATER));
    client.send(retain("/vault/a?retention", "COMPLIANCE", LATER)).refused(403, "AccessDenied");
    client.send(bypassing(retain("/vault/a?retention", "COMPLIANCE", LATER))).expect(200);
}

#[test]
fn a_legal_hold_stands_apart_from_retention() {
    let (_server, mut client) = locking();
    let version = stored(&mut client, put("a"));
    let target = format!("/vault/a?versionId={version}");
    let of_version = format!("/vault/a?legal-hold&versionId={version}");
    let status =
        |client: &mut Client| client.send(Call::new("GET", &of_version)).expect(200).element("Status");
    client.send(Call::new("GET", &of_version)).refused(404, "NoSuchObjectLockConfiguration");
    client.send(hold("/vault/a?legal-hold", "ON")).expect(200);
    assert_eq!(status(&mut client).as_deref(), Some("ON"));
    client.send(bypassing(Call::new("DELETE", &target))).refused(403, "AccessDenied");
    client.send(Call::new("GET", "/vault/a?retention")).refused(404, "NoSuchObjectLockConfiguration");
    client.send(hold(&of_version, "OFF")).expect(200);
    assert_eq!(status(&mut client).as_deref(), Some("OFF"));
    client.send(Call::new("DELETE", &target)).expect(204);
}

#[test]
fn locks_belong_to_versions_of_buckets_that_have_them() {
    let (_server, mut client) = locking();
    client.send(Call::new("PUT", "/plain/a").body("x")).expect(200);
    for call in [
        retain("/plain/a?retention", "GOVERNANCE", LATER),
        Call::new("GET", "/plain/a?retention"),
        hold("/plain/a?legal-hold", "ON"),
        Call::new("GET", "/plain/a?legal-hold"),
    ] {
        client.send(call).refused(400, "InvalidRequest");
    }
    for (subresource, body) in
        [("retention", "<Retention/>"), ("legal-hold", "<LegalHold><Status>ON</Status></LegalHold>")]
    {
        for method in ["GET", "PUT"] {
            let mut send = |target: &str| {
                client.send(Call::new(method, target).body(if method == "PUT" { body } else { "" }))
            };
            send(&format!("/vault/none?{subresource}")).refused(404, "NoSuchKey");
            send(&format!("/vault/none?{subresource}&versionId=0000000000000001"))
                .refused(404, "NoSuchVersion");
            send(&format!("/vault/none?{subresource}&versionId=")).refused(400, "InvalidArgument");
            send(&format!("/missing/none?{subresource}")).refused(404, "NoSuchBucket");
        }
    }
    stored(&mut client, put("a"));
    let marker = client.send(Call::new("DELETE", "/vault/a")).expect(204);
    let marker = marker.header("x-amz-version-id").unwrap();
    client
        .send(hold(&format!("/vault/a?legal-hold&versionId={marker}"), "ON"))
        .refused(405, "MethodNotAllowed");
    client.send(retain("/vault/a?retention", "GOVERNANCE", LATER)).refused(404, "NoSuchKey");
}

#[test]
fn documents_that_make_no_sense_change_nothing() {
    let (_server, mut client) = locking();
    stored(&mut client, put("a"));
    for (target, body, code) in [
        ("/vault/a?retention", "<Retention><Mode>GOVERNANCE</Mode></Retention>", "MalformedXML"),
        (
            "/vault/a?retention",
            "<Retention><Mode>x</Mode><RetainUntilDate>2099-01-01T00:00:00Z</RetainUntilDate></Retention>",
            "MalformedXML",
        ),
        (
            "/vault/a?retention",
            "<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>2020-01-01T00:00:00Z</RetainUntilDate></Retention>",
            "InvalidArgument",
        ),
        ("/vault/a?retention", "<Other/>", "MalformedXML"),
        ("/vault/a?retention", "", "MalformedXML"),
        ("/vault/a?legal-hold", "<LegalHold><Status>abc</Status></LegalHold>", "MalformedXML"),
        ("/vault/a?legal-hold", "<LegalHold", "MalformedXML"),
        (
            "/vault?object-lock",
            "<ObjectLockConfiguration><ObjectLockEnabled>Disabled</ObjectLockEnabled></ObjectLockConfiguration>",
            "MalformedXML",
        ),
        ("/vault?object-lock", "<ObjectLockConfiguration/>", "MalformedXML"),
    ] {
        client.send(Call::new("PUT", target).body(body)).refused(400, code);
    }
    let head = client.send(Call::new("HEAD", "/vault/a")).expect(200);
    assert!(!head.head.contains("x-amz-object-lock"));
}

#[test]
fn a_bucket_s_default_locks_what_is_put_without_a_lock_of_its_own() {
    let (_server, mut client) = locking();
    let rule = |inner: &str| {
        Call::new("PUT", "/vault?object-lock").body(format!(
            "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>\
             {inner}</DefaultRetention></Rule></ObjectLockConfiguration>"
        ))
    };
    for (inner, code) in [
        ("<Mode>GOVERNANCE</Mode><Days>0</Days>", "InvalidArgument"),
        ("<Mode>GOVERNANCE</Mode><Years>-1</Years>", "InvalidArgument"),
        ("<Mode>GOVERNANCE</Mode><Days>36501</Days>", "InvalidArgument"),
        ("<Mode>GOVERNANCE</Mode><Days>1</Days><Years>1</Years>", "MalformedXML"),
        ("<Mode>abc</Mode><Days>1</Days>", "MalformedXML"),
    ] {
        client.send(rule(inner)).refused(400, code);
    }
    client.send(rule("<Mode>COMPLIANCE</Mode><Years>1</Years>")).expect(200);
    client.send(rule("<Mode>GOVERNANCE</Mode><Days>1</Days>")).expect(200);
    let configuration = client.send(Call::new("GET", "/vault?object-lock")).expect(200);
    assert_eq!(configuration.element("Mode").as_deref(), Some("GOVERNANCE"));
    assert_eq!((configuration.element("Days").as_deref(), configuration.element("Years")), (Some("1"), None));
    let by_default = stored(&mut client, Call::new("PUT", "/vault/a").body("kept"));
    let own = stored(&mut client, locked("b", "COMPLIANCE", LATER));
    let head = client.send(Call::new("HEAD", "/vault/a")).expect(200);
    assert_eq!(head.header("x-amz-object-lock-mode"), Some("GOVERNANCE"));
    client
        .send(Call::new("DELETE", &format!("/vault/a?versionId={by_default}")))
        .refused(403, "AccessDenied");
    let head = client.send(Call::new("HEAD", &format!("/vault/b?versionId={own}"))).expect(200);
    assert_eq!(head.header("x-amz-object-lock-mode"), Some("COMPLIANCE"));
    let without =
        "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>";
    client.send(Call::new("PUT", "/vault?object-lock").body(without)).expect(200);
    stored(&mut client, Call::new("PUT", "/vault/c").body("kept"));
    assert!(!client.send(Call::new("HEAD", "/vault/c")).expect(200).head.contains("x-amz-object-lock"));
}

/// Where a default retention reached only PutObject, a copy or a multipart upload would have been a way around it.
#[test]
fn copies_and_multipart_uploads_are_locked_as_puts_are() {
    let (_server, mut client) = locking();
    stored(&mut client, put("source"));
    let copy =
        |to: &str| Call::new("PUT", &format!("/vault/{to}")).header("x-amz-copy-source", "/vault/source");
    let upload = |client: &mut Client, key: &str, headers: &[(&str, &str)]| {
        let create = Call::new("POST", &format!("/vault/{key}?uploads"));
        let create = headers.iter().fold(create, |call, (name, value)| call.header(name, value));
        let id = client.send(create).expect(200).element("UploadId").unwrap();
        let part = Call::new("PUT", &format!("/vault/{key}?partNumber=1&uploadId={id}")).body("kept");
        let etag = client.send(part).expect(200).header("etag").unwrap().to_owned();
        let parts = format!(
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part></CompleteMultipartUpload>"
        );
        client.send(Call::new("POST", &format!("/vault/{key}?uploadId={id}")).body(parts)).expect(200);
    };
    let own = [("x-amz-object-lock-mode", "COMPLIANCE"), ("x-amz-object-lock-retain-until-date", LATER)];
    let with_own = own.iter().fold(copy("own-copy"), |call, (name, value)| call.header(name, value));
    client.send(with_own).expect(200);
    upload(&mut client, "own-upload", &own);
    client.send(copy("free-copy")).expect(200);
    upload(&mut client, "free-upload", &[]);
    let rule = "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>\
                <Mode>GOVERNANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>";
    client.send(Call::new("PUT", "/vault?object-lock").body(rule)).expect(200);
    client.send(copy("default-copy")).expect(200);
    upload(&mut client, "default-upload", &[]);
    for (key, mode) in [
        ("own-copy", Some("COMPLIANCE")),
        ("own-upload", Some("COMPLIANCE")),
        ("free-copy", None),
        ("free-upload", None),
        ("default-copy", Some("GOVERNANCE")),
        ("default-upload", Some("GOVERNANCE")),
    ] {
        let head = client.send(Call::new("HEAD", &format!("/vault/{key}"))).expect(200);
        assert_eq!(head.header("x-amz-object-lock-mode"), mode, "{key}");
        let version = head.header("x-amz-version-id").unwrap();
        let removed = client.send(Call::new("DELETE", &format!("/vault/{key}?versionId={version}")));
        assert_eq!(removed.status, if mode.is_some() { 403 } else { 204 }, "{key}");
    }
}

/// An object's own retention stands in place of the default, also once it has ended: the default must not come back.
#[test]
fn a_retention_that_has_ended_is_not_replaced_by_the_default() {
    let (_server, mut client) = locking();
    let rule = "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>\
                <Mode>COMPLIANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>";
    client.send(Call::new("PUT", "/vault?object-lock").body(rule)).expect(200);
    let ends = std::time::SystemTime::now() + std::time::Duration::from_millis(1500);
    let since = ends.duration_since(std::time::UNIX_EPOCH).unwrap();
    let until = cairn_http1::iso8601_millis(u64::try_from(since.as_millis()).unwrap());
    let version = stored(&mut client, locked("a", "COMPLIANCE", &until.to_string()));
    let target = format!("/vault/a?versionId={version}");
    client.send(Call::new("DELETE", &target)).refused(403, "AccessDenied");
    // The end of a retention is no event that could be awaited: the request is repeated until the clock has passed it.
    while client.send(Call::new("DELETE", &target)).status != 204 {
        assert!(std::time::SystemTime::now() < ends + std::time::Duration::from_secs(20), "it never ended");
    }
}
