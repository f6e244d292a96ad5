//! CopyObject: requests that are refused.

use crate::common::{Call, Client, Server};

fn copy(to: &str, from: &str) -> Call {
    Call::new("PUT", to).header("x-amz-copy-source", from)
}

fn body_of(client: &mut Client, target: &str) -> Vec<u8> {
    client.send(Call::new("GET", target)).expect(200).0.body
}

#[test]
fn invalid_copies_are_refused() {
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
        ("x-amz-source-expected-bucket-owner", "somebody", 400, "InvalidBucketOwnerAWSAccountID"),
        ("x-amz-object-annotation-directive", "REPLACE", 501, "NotImplemented"),
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
