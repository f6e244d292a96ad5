//! Benchmarks signature verification with the examples that AWS publishes.

use cairn_identity::{Authenticator, RootCredential, SignedRequest};
use cairn_model::Timestamp;
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

/// 2013-05-24T00:00:00Z, the date of the examples.
const NOW: Timestamp = Timestamp(1_369_353_600_000);

fn signatures(criterion: &mut Criterion) {
    let root = RootCredential::new("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
    let authenticator = Authenticator::new(root);
    let header: [(&str, &[u8]); 5] = [
        ("host", b"examplebucket.s3.amazonaws.com"),
        ("range", b"bytes=0-9"),
        ("x-amz-content-sha256", b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("x-amz-date", b"20130524T000000Z"),
        (
            "authorization",
            b"AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
              SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, \
              Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
    ];
    let in_header = SignedRequest {
        method: "GET",
        path: "/test.txt",
        query: None,
        headers: &header,
        bucket_in_host: None,
    };
    let presigned = SignedRequest {
        query: Some(
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2F\
             s3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
             &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
        ),
        headers: &header[..1],
        bucket_in_host: None,
        ..in_header
    };
    let mut group = criterion.benchmark_group("SigV4 verification");
    for (what, request) in [("header", in_header), ("presigned", presigned)] {
        assert!(
            authenticator.authenticate(&request, NOW).is_ok(),
            "the benchmark's request must be a good one"
        );
        group.bench_function(what, |bencher| {
            bencher.iter(|| authenticator.authenticate(black_box(&request), NOW))
        });
    }
    group.finish();
}

criterion_group!(benches, signatures);
criterion_main!(benches);
