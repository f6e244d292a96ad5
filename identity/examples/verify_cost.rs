//! What verifying one request costs, in nanoseconds: `cargo run --release -p cairn-identity --example verify_cost`.
//!
//! Uses the published examples of AWS, with the headers that an SDK sends besides, so that no signer is needed.
#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use cairn_identity::{Authenticator, RootCredential, SignedRequest};
use cairn_model::Timestamp;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: u32 = 200_000;
const REPETITIONS: u32 = 5;
const NOW: Timestamp = Timestamp(1_369_353_600_000);
const HOST: (&str, &[u8]) = ("host", b"examplebucket.s3.amazonaws.com");

fn main() {
    let header = [
        HOST,
        ("accept-encoding", b"identity"),
        ("user-agent", b"Boto3/1.44 md/Botocore#1.44 ua/2.1 os/linux lang/python"),
        ("range", b"bytes=0-9"),
        ("amz-sdk-invocation-id", b"c4cc7942-4b0e-4ba6-a7c4-58a0a0c0a1a5"),
        ("amz-sdk-request", b"attempt=1"),
        ("x-amz-content-sha256", b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("x-amz-date", b"20130524T000000Z"),
        (
            "authorization",
            b"AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
              SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, \
              Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
    ];
    let request = SignedRequest { method: "GET", path: "/test.txt", query: None, headers: &header };
    measure("header, signing key cached", &request);
    let presigned = SignedRequest {
        query: Some(
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2F\
             s3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
             &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
        ),
        headers: &[HOST],
        ..request
    };
    measure("presigned, signing key cached", &presigned);
}

/// The best of a few repetitions, for the others were disturbed.
fn measure(name: &str, request: &SignedRequest<'_>) {
    let root = RootCredential::new("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
    let authenticator = Authenticator::new(root);
    let mut best = u128::MAX;
    for _ in 0..REPETITIONS {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            let outcome = authenticator.authenticate(black_box(request), NOW);
            assert!(outcome.is_ok(), "{outcome:?}");
        }
        best = best.min(start.elapsed().as_nanos() / u128::from(ROUNDS));
    }
    println!("{name}: {best} ns");
}
