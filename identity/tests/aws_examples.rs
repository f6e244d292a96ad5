//! The signature examples that AWS publishes for S3.
//!
//! Source: "Signature Calculations for the Authorization Header: Transferring Payload in a Single Chunk" and
//! "Authenticating Requests: Using Query Parameters" in the Amazon S3 API reference.

use crate::signer::{ACCESS_KEY, DATE, EMPTY_SHA256, NOW, Request, SECRET_KEY, authenticator};
use cairn_identity::{Authenticator, ChunkedBody, PayloadDigest, Principal, RootCredential, SignatureKind};
use sha2::{Digest, Sha256};

const HOST: (&str, &str) = ("host", "examplebucket.s3.amazonaws.com");

fn authorization(signed_headers: &str, signature: &str) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
         SignedHeaders={signed_headers},Signature={signature}"
    )
}

#[test]
fn published_get_object_signature_verifies() {
    let authorization = authorization(
        "host;range;x-amz-content-sha256;x-amz-date",
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    );
    let request = Request::new(
        "GET",
        "/test.txt",
        "",
        &[
            HOST,
            ("authorization", &authorization),
            ("range", "bytes=0-9"),
            ("x-amz-content-sha256", EMPTY_SHA256),
            ("x-amz-date", DATE),
        ],
    );
    let authentication = request.verify().expect("the published signature verifies");
    assert_eq!(authentication.principal, Principal::Root);
    assert_eq!(&*authentication.access_key, "AKIAIOSFODNN7EXAMPLE");
    assert_eq!(authentication.kind, SignatureKind::Header);
    assert_eq!(authentication.signed_at, NOW);
    assert!(matches!(authentication.payload, PayloadDigest::Sha256([0xe3, 0xb0, 0xc4, ..])));
}

#[test]
fn published_put_object_signature_verifies() {
    let authorization = authorization(
        "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
    );
    let request = Request::new(
        "PUT",
        "/test$file.text",
        "",
        &[
            HOST,
            ("date", "Fri, 24 May 2013 00:00:00 GMT"),
            ("authorization", &authorization),
            ("x-amz-date", DATE),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            ("x-amz-content-sha256", "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"),
        ],
    );
    request.verify().expect("the published signature verifies");
}

#[test]
fn published_get_bucket_lifecycle_signature_verifies() {
    verify_query_example("lifecycle", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

#[test]
fn published_list_objects_signature_verifies() {
    verify_query_example(
        "max-keys=2&prefix=J",
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
    );
    verify_query_example(
        "prefix=J&max-keys=2",
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
    );
}

fn verify_query_example(query: &str, signature: &str) {
    let authorization = authorization("host;x-amz-content-sha256;x-amz-date", signature);
    let request = Request::new(
        "GET",
        "/",
        query,
        &[
            HOST,
            ("x-amz-date", DATE),
            ("authorization", &authorization),
            ("x-amz-content-sha256", EMPTY_SHA256),
        ],
    );
    request.verify().expect("the published signature verifies");
}

#[test]
fn published_presigned_url_signature_verifies() {
    let request = Request::new(
        "GET",
        "/test.txt",
        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2F\
         aws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
         &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
        &[HOST],
    );
    let authentication = request.verify().expect("the published signature verifies");
    assert_eq!(authentication.kind, SignatureKind::Presigned);
    assert_eq!(authentication.payload, PayloadDigest::Unsigned);

    // Valid for exactly a day, and only for this method.
    let after = |seconds: u64| cairn_model::Timestamp(NOW.0 + seconds * 1000);
    request.authenticate(&authenticator(), after(86_400)).expect("the last second");
    let expired = request.authenticate(&authenticator(), after(86_401)).expect_err("a second too late");
    assert_eq!(expired.message(), "Request has expired");
    let head = Request { method: "HEAD".into(), ..request };
    assert_eq!(head.error_code(), (403, "SignatureDoesNotMatch"));
}

/// The request of "Transferring Payload in Multiple Chunks". Without `with_chunked_bodies` it is refused.
#[test]
fn published_chunked_upload_verifies_with_its_chunks() {
    let authorization = authorization(
        "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;\
         x-amz-storage-class",
        "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
    );
    let request = Request::new(
        "PUT",
        "/examplebucket/chunkObject.txt",
        "",
        &[
            ("host", "s3.amazonaws.com"),
            ("x-amz-date", DATE),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            ("authorization", &authorization),
            ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
            ("content-encoding", "aws-chunked"),
            ("x-amz-decoded-content-length", "66560"),
            ("content-length", "66824"),
        ],
    );
    assert_eq!(request.error_code(), (501, "NotImplemented"));
    let accepting = Authenticator::new(RootCredential::new(ACCESS_KEY, SECRET_KEY)).with_chunked_bodies();
    // Twice: the second time the signing key comes from the cache.
    for _ in 0..2 {
        let authentication = request.authenticate(&accepting, NOW).expect("the published signature verifies");
        assert_eq!(authentication.payload, PayloadDigest::Chunked(ChunkedBody::Signed));
        let mut signatures = authentication.chunk_signatures.expect("the chunks are signed");
        let first = Sha256::digest(vec![b'a'; 65_536]).into();
        let signature = b"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648";
        signatures.verify_chunk(&first, signature).expect("the published signature of the first chunk");
    }
}
