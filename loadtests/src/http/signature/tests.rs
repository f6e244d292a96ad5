//! Tests with the SigV4 examples that AWS publishes.

use super::*;

const HOST: &str = "examplebucket.s3.amazonaws.com";

fn signer() -> Signer {
    Signer::new("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1")
}

fn moment() -> Moment {
    Moment::from_unix_seconds(1_369_353_600)
}

fn signature_of(parts: &Parts<'_>) -> String {
    let mut header = String::new();
    signer().push_authorization(parts, &moment(), &mut header);
    header.split_once("Signature=").unwrap().1.to_owned()
}

#[test]
fn get_object_with_a_range_signs_as_published() {
    let headers = [
        ("host", HOST),
        ("range", "bytes=0-9"),
        ("x-amz-content-sha256", EMPTY_SHA256),
        ("x-amz-date", "20130524T000000Z"),
    ];
    let parts =
        Parts { method: "GET", path: "/test.txt", query: "", headers: &headers, payload: EMPTY_SHA256 };
    let mut header = String::new();
    signer().push_authorization(&parts, &moment(), &mut header);
    assert_eq!(
        header,
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
         SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, \
         Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    );
}

#[test]
fn put_object_signs_as_published() {
    let payload = hex::encode(Sha256::digest(b"Welcome to Amazon S3."));
    let headers = [
        ("date", "Fri, 24 May 2013 00:00:00 GMT"),
        ("host", HOST),
        ("x-amz-content-sha256", payload.as_str()),
        ("x-amz-date", "20130524T000000Z"),
        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
    ];
    let mut path = String::from("/");
    push_encoded_path("test$file.text", &mut path);
    let parts = Parts { method: "PUT", path: &path, query: "", headers: &headers, payload: &payload };
    assert_eq!(signature_of(&parts), "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

#[test]
fn bucket_requests_with_a_query_sign_as_published() {
    let headers =
        [("host", HOST), ("x-amz-content-sha256", EMPTY_SHA256), ("x-amz-date", "20130524T000000Z")];
    let lifecycle = canonical_query([("lifecycle", "")].iter());
    let list = canonical_query([("prefix", "J"), ("max-keys", "2")].iter());
    for (query, expected) in [
        (lifecycle, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        (list, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ] {
        let parts =
            Parts { method: "GET", path: "/", query: &query, headers: &headers, payload: EMPTY_SHA256 };
        assert_eq!(signature_of(&parts), expected);
    }
}

#[test]
fn a_presigned_get_signs_as_published() {
    let query = signer().presigned_query(("GET", "/test.txt", HOST), &[], &moment(), 86_400);
    assert_eq!(
        query,
        "X-Amz-Algorithm=AWS4-HMAC-SHA256\
         &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
         &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
         &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    );
}

#[test]
fn the_key_of_a_day_is_not_used_on_the_next() {
    let headers = [("host", HOST)];
    let parts = Parts { method: "GET", path: "/", query: "", headers: &headers, payload: UNSIGNED_PAYLOAD };
    let tomorrow = Moment::from_unix_seconds(1_369_353_600 + 86_400);
    let mut kept = signer();
    let (mut first, mut second, mut fresh) = (String::new(), String::new(), String::new());
    kept.push_authorization(&parts, &moment(), &mut first);
    kept.push_authorization(&parts, &tomorrow, &mut second);
    signer().push_authorization(&parts, &tomorrow, &mut fresh);
    assert_eq!(second, fresh);
    assert_ne!(first, second);
}

#[test]
fn queries_are_sorted_by_their_encoded_form_and_encoded_strictly() {
    let query = canonical_query([("prefix", "a b+c/é"), ("list-type", "2"), ("delimiter", "")].iter());
    assert_eq!(query, "delimiter=&list-type=2&prefix=a%20b%2Bc%2F%C3%A9");
}
