//! Tests of the decoder: the examples of AWS, every way to cut a body, and what must be refused.

use super::super::error::ChunkedError;
use super::{Decoder, LINE_BYTES_MAX, decode_in_pieces};
use crate::headers::checksum::RunningChecksum;
use cairn_engine::ChecksumAlgorithm::{self, Crc32, Crc32c, Crc64Nvme, Sha1, Sha256};
use cairn_identity::fuzz::{chunk_signatures, sign_chunk, sign_trailer};
use proptest::prelude::*;
use sha2::Digest as _;

type Decoded = Result<(Vec<u8>, Option<Vec<u8>>), ChunkedError>;

fn checksum_of(algorithm: ChecksumAlgorithm, content: &[u8]) -> Vec<u8> {
    let mut running = RunningChecksum::new(algorithm);
    running.update(content);
    running.finish()
}

fn trailer_line(algorithm: ChecksumAlgorithm, content: &[u8]) -> String {
    use crate::headers::checksum::{header, text};
    format!("{}:{}", header(algorithm), text(&checksum_of(algorithm, content)))
}

/// The signature of the request of the signed bodies here.
const SEED: &str = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";

/// Returns an unsigned body of chunks of `size` bytes.
fn unsigned(content: &[u8], size: usize, trailer: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for chunk in content.chunks(size) {
        body.extend(format!("{:x}\r\n", chunk.len()).bytes());
        body.extend_from_slice(chunk);
        body.extend(b"\r\n");
    }
    body.extend(format!("0\r\n{trailer}\r\n").bytes());
    body
}

/// Returns a signed body of chunks of `size` bytes.
fn signed(content: &[u8], size: usize, trailer: Option<&str>) -> Vec<u8> {
    let mut previous = SEED.to_owned();
    let mut body = Vec::new();
    for chunk in content.chunks(size).chain([&[][..]]) {
        previous = sign_chunk(&previous, &sha2::Sha256::digest(chunk).into());
        body.extend(format!("{:X};chunk-signature={previous}\r\n", chunk.len()).bytes());
        body.extend_from_slice(chunk);
        if !chunk.is_empty() {
            body.extend(b"\r\n");
        }
    }
    if let Some(line) = trailer {
        let signature = sign_trailer(&previous, format!("{line}\n").as_bytes());
        body.extend(format!("{line}\r\nx-amz-trailer-signature:{signature}\r\n").bytes());
    }
    body.extend(b"\r\n");
    body
}

fn signed_decoder(size: usize, trailer: Option<ChecksumAlgorithm>) -> Decoder {
    Decoder::new(size as u64, Some(Box::new(chunk_signatures(SEED))), trailer)
}

fn decode_unsigned(body: &[u8], size: u64, step: usize) -> Decoded {
    decode_in_pieces(Decoder::new(size, None, None), body, step)
}

/// The bodies of both AWS pages, as they are sent: 66 824 and 66 946 bytes.
#[test]
fn published_bodies_decode_however_they_are_cut() {
    let chunk = |size: &str, signature: &str, data: usize| {
        let data = if data > 0 { format!("{}\r\n", "a".repeat(data)) } else { String::new() };
        format!("{size};chunk-signature={signature}\r\n{data}")
    };
    let chunks = [
        chunk("10000", "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648", 65_536),
        chunk("400", "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497", 1024),
        chunk("0", "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9", 0),
        "\r\n".to_owned(),
    ];
    let trailed = [
        chunk("10000", "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2", 65_536),
        chunk("400", "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7", 1024),
        chunk("0", "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992", 0),
        "x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:\
         d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n"
            .to_owned(),
    ];
    let content = vec![b'a'; 66_560];
    assert_eq!((chunks.concat().len(), trailed.concat().len()), (66_824, 66_946));
    for step in [1, 85, 89, 4096, 65_536, 70_000] {
        for (seed, parts, trailer) in [
            (SEED, &chunks, None),
            ("106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e", &trailed, Some(Crc32c)),
        ] {
            let signatures = Box::new(chunk_signatures(seed));
            let decoder = Decoder::new(66_560, Some(signatures), trailer);
            let checksum = trailer.map(|algorithm| checksum_of(algorithm, &content));
            let decoded = decode_in_pieces(decoder, parts.concat().as_bytes(), step);
            assert_eq!(decoded, Ok((content.clone(), checksum)), "{step}");
        }
    }
}

#[test]
fn malformed_framing_is_refused() {
    let long = format!("{}\r\nhello\r\n0\r\n\r\n", "0".repeat(LINE_BYTES_MAX));
    for body in [
        "",
        "5",
        "5\r\n",
        "5\r\nhel",
        "5\r\nhello",
        "5\r\nhello\r\n",
        "5\r\nhello\r\n0",
        "5\r\nhello\r\n0\r",
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "\r\n5\r\nhello\r\n0\r\n\r\n",
        "g\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "5 \r\nhello\r\n0\r\n\r\n",
        "5;a=b\r\nhello\r\n0\r\n\r\n",
        "5;\r\nhello\r\n0\r\n\r\n",
        "00000000000000005\r\nhello\r\n0\r\n\r\n",
        &long,
    ] {
        let refused = decode_unsigned(body.as_bytes(), 5, 7);
        assert!(matches!(refused, Err(ChunkedError::Malformed(_))), "{body:?}: {refused:?}");
    }
}

#[test]
fn content_has_exactly_the_declared_size() {
    let body = unsigned(b"hello", 3, "");
    assert_eq!(decode_unsigned(&body, 5, 1), Ok((b"hello".to_vec(), None)));
    for (declared, provided) in [(0, 3), (2, 3), (3, 5), (4, 5), (6, 5), (1 << 40, 5)] {
        assert_eq!(decode_unsigned(&body, declared, 99), Err(ChunkedError::WrongSize { declared, provided }));
    }
    let huge = decode_unsigned(b"ffffffffffffffff\r\nx", 5, 99);
    assert_eq!(huge, Err(ChunkedError::WrongSize { declared: 5, provided: u64::MAX }));
    assert_eq!(decode_unsigned(b"0\r\n\r\n", 0, 1), Ok((vec![], None)));
    assert_eq!(decode_unsigned(b"000\r\n", 0, 1), Ok((vec![], None)));
}

#[test]
fn anything_after_the_last_chunk_but_the_trailer_is_refused() {
    for rest in
        ["5\r\nhello\r\n0\r\n\r\n", "\r\nGET / HTTP/1.1\r\n", "x", "x-amz-checksum-crc32:AAAAAA==\r\n\r\n"]
    {
        let refused = decode_unsigned(format!("0\r\n{rest}").as_bytes(), 0, 3);
        assert!(matches!(refused, Err(ChunkedError::Trailer(_))), "{rest:?}: {refused:?}");
    }
    let long = format!("0\r\n{}", "\r\n".repeat(513));
    assert!(matches!(decode_unsigned(long.as_bytes(), 0, 3), Err(ChunkedError::Trailer(_))));
}

#[test]
fn altered_signed_bodies_are_refused() {
    let line = trailer_line(Crc32, b"hello, world");
    let body = signed(b"hello, world", 5, Some(&line));
    let decode = |body: &[u8]| decode_in_pieces(signed_decoder(12, Some(Crc32)), body, 11);
    assert_eq!(decode(&body), Ok((b"hello, world".to_vec(), Some(checksum_of(Crc32, b"hello, world")))));
    let positions = |needle: &str| {
        let at = body.windows(needle.len()).position(|window| window == needle.as_bytes());
        at.expect("it is there")
    };
    for (at, what) in [
        (positions("hello"), "content"),
        (positions("chunk-signature=") + 20, "signature"),
        (positions("x-amz-trailer-signature:") + 30, "trailer signature"),
    ] {
        let mut altered = body.clone();
        altered[at] = if altered[at] == b'1' { b'2' } else { b'1' };
        assert!(matches!(decode(&altered), Err(ChunkedError::Signature(_))), "{what}");
    }
    // Another valid checksum, with the signature of the first.
    let other = trailer_line(Crc32, b"other");
    let altered = String::from_utf8(body.clone()).expect("text").replace(&line, &other);
    assert!(matches!(decode(altered.as_bytes()), Err(ChunkedError::Signature(_))));
    let unsigned_trailer = &body[..positions("x-amz-trailer-signature:")];
    assert!(matches!(decode(unsigned_trailer), Err(ChunkedError::Trailer(_))));
    // Chunks without a signature, and a signature of the wrong length.
    let plain = unsigned(b"hello, world", 5, &format!("{line}\r\n"));
    assert!(matches!(decode(&plain), Err(ChunkedError::Malformed(_))));
    let short = String::from_utf8(body).expect("text").replacen("chunk-signature=", "chunk-signature=0", 1);
    assert!(matches!(decode(short.as_bytes()), Err(ChunkedError::Malformed(_))));
}

/// A million chunks of one byte cost a million signatures. The first thousand are free, and no more.
#[test]
fn chunks_that_are_small_on_average_are_refused() {
    let size = 1_000_000;
    let tiny = unsigned(&vec![b'x'; 2000], 1, "");
    let refused = decode_unsigned(&tiny, size, 4096);
    assert_eq!(refused, Err(ChunkedError::SmallChunks { chunk: 1002, size: 1 }));
    // Content that comes first pays for small chunks that come later, but never the other way round.
    let mut body = unsigned(&vec![b'x'; 512 * 1000], 512 * 1000, "");
    body.truncate(body.len() - 5);
    body.extend(unsigned(&vec![b'x'; 1999], 1, ""));
    assert!(decode_unsigned(&body, 512 * 1000 + 1999, 4096).is_ok());
    for chunk in [512, 700, 8192] {
        let content = vec![b'x'; 1_000_000];
        assert!(decode_unsigned(&unsigned(&content, chunk, ""), size, 65_536).is_ok(), "{chunk}");
    }
}

/// Reads that follow [`Decoder::read_size`] end with the framing, so nothing is moved and little is read twice.
#[test]
fn reads_of_large_chunks_end_with_their_framing() {
    let content: Vec<u8> = (0..1 << 20).map(|at: u32| at.to_le_bytes()[1]).collect();
    let body = signed(&content, 65_536, None);
    let mut decoder = signed_decoder(content.len(), None);
    let (mut at, mut reads, mut decoded) = (0, 0, Vec::new());
    while decoded.len() < content.len() {
        let room = (256 * 1024 - decoded.len() % (256 * 1024)).min(content.len() - decoded.len());
        let alone = decoder.reads_framing_alone(room);
        let wanted =
            if alone { decoder.framing_at_least() } else { decoder.read_size(room) }.min(body.len() - at);
        let mut piece = body[at..at + wanted].to_vec();
        let count = decoder.decode(&mut piece).expect("valid");
        assert!(!alone || count == 0);
        decoded.extend_from_slice(&piece[..count]);
        at += wanted;
        reads += 1;
    }
    assert!(decoded == content);
    assert!(reads <= 16 + 1 + 4 * 3, "{reads} reads for 16 chunks in 4 buffers");
}

proptest! {
    #[test]
    fn decoding_is_independent_of_cuts(
        content in proptest::collection::vec(any::<u8>(), 0..3000), size in 1..700_usize, step in 1..200_usize,
        algorithm in prop_oneof![Just(Crc32), Just(Crc32c), Just(Crc64Nvme), Just(Sha1), Just(Sha256)],
    ) {
        let size = size.max(content.len().div_ceil(900));
        let line = trailer_line(algorithm, &content);
        let expected = Ok((content.clone(), Some(checksum_of(algorithm, &content))));
        let body = unsigned(&content, size, &format!("{line}\r\n"));
        let decoder = || Decoder::new(content.len() as u64, None, Some(algorithm));
        prop_assert_eq!(&decode_in_pieces(decoder(), &body, step), &expected);
        prop_assert_eq!(&decode_in_pieces(decoder(), &body, body.len()), &expected);
        let body = signed(&content, size, Some(&line));
        let decoder = || signed_decoder(content.len(), Some(algorithm));
        prop_assert_eq!(&decode_in_pieces(decoder(), &body, step), &expected);
        prop_assert_eq!(&decode_in_pieces(decoder(), &body, body.len()), &expected);
        for end in [body.len() / 3, body.len() / 2] {
            prop_assert!(decode_in_pieces(decoder(), &body[..end], step).is_err(), "a part is no body");
        }
    }
}
