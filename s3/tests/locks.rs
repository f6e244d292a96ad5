//! Object lock headers and documents: where they are accepted and refused.

use crate::common::{Call, Client, Server};

const LATER: &str = "2099-01-01T00:00:00Z";
const LATEST: &str = "2100-01-01T00:00:00.5+00:00";
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

#[test]
fn lock_headers_of_a_put_lock_its_version() {
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
    client.send(undeclared.clone().header("x-amz-checksum-crc32", "wP4vDQ==")).refused(400, "BadDigest");
    client.send(Call::new("GET", "/vault/c")).refused(404, "NoSuchKey");
    client.send(undeclared).expect(200);
    let locked = client.send(Call::new("HEAD", "/vault/c")).expect(200);
    assert_eq!(locked.header("x-amz-object-lock-legal-hold"), Some("ON"), "no digest is required");
    let elsewhere = Call::new("PUT", "/plain/c").header("content-md5", MD5).body("kept");
    client.send(elsewhere.header("x-amz-object-lock-legal-hold", "ON")).refused(400, "InvalidRequest");
    client.send(Call::new("GET", "/plain/c")).refused(404, "NoSuchKey");
    let misplaced = Call::new("GET", "/vault/a").header("x-amz-object-lock-legal-hold", "ON");
    client.send(misplaced).refused(400, "InvalidRequest");
}

#[test]
fn locks_require_a_version_in_a_bucket_with_lock() {
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
