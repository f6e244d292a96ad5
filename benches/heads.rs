//! Parsing request heads and building response heads.

use cairn_http1::{HeadLimits, parse_head};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

/// The head that an SDK sends with a GET.
const SDK_GET: &[u8] = b"GET /bucket/folder/object-00000042 HTTP/1.1\r\nHost: 127.0.0.1:7600\r\n\
Accept-Encoding: identity\r\nUser-Agent: Boto3/1.44 md/Botocore#1.44 ua/2.1 os/linux lang/python\r\n\
X-Amz-Content-SHA256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\r\n\
X-Amz-Date: 20261121T000000Z\r\nAuthorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20261121/us-east-1/\
s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, \
Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41\r\n\
amz-sdk-invocation-id: c4cc7942-4b0e-4ba6-a7c4-58a0a0c0a1a5\r\namz-sdk-request: attempt=1\r\n\r\n";

const SHORT_GET: &[u8] = b"GET /bucket/object HTTP/1.1\r\nHost: 127.0.0.1:7600\r\n\r\n";

fn heads(criterion: &mut Criterion) {
    let limits = HeadLimits::default();
    let mut group = criterion.benchmark_group("request heads");
    for (what, bytes) in [("short GET", SHORT_GET), ("GET of an SDK", SDK_GET)] {
        assert!(matches!(parse_head(bytes, &limits), Ok(Some(_))), "the benchmark's head must be a good one");
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(what, |bencher| bencher.iter(|| parse_head(black_box(bytes), &limits)));
    }
    group.finish();
}

criterion_group!(benches, heads);
criterion_main!(benches);
