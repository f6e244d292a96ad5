//! The bodies of this crate's fuzz targets in `fuzz/`: properties of the parsers that must hold for any bytes.
//!
//! `cargo test` runs them on the stored corpora and on mutations of these.

use crate::chunked::{ChunkedDecoder, ChunkedError};
use crate::conditional::{Comparison, entity_tag_matches};
use crate::date::{http_date, parse_http_date};
use crate::forwarded::{ForwardedHeader, addresses_of_value};
use crate::head::{HeadLimits, HeadParser, RequestHead, parse_head};
use crate::percent::{decode, encode_path, encode_strict};
use crate::query::query_pairs;
use crate::range::{RangeOutcome, resolve_range};

/// A function that a fuzz target calls with its input. It panics when a property does not hold.
pub type Body = fn(&[u8]);

/// The bodies of this crate with the names of their targets.
pub const BODIES: &[(&str, Body)] = &[
    ("http_chunked", http_chunked),
    ("http_forwarded", forwarded),
    ("http_head", http_head),
    ("http_range", http_range),
    ("http_date", dates),
    ("http_uri", http_uri),
];

/// Takes a body with the chunked coding. Cut anywhere, it gives the same result as in one piece, and a body that is valid
/// has at least as many bytes as were certain to come. The first byte chooses the cuts.
///
/// # Panics
/// Panics when a property does not hold.
pub fn http_chunked(data: &[u8]) {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let whole = dechunked(bytes, bytes.len().max(1));
    assert_eq!(whole, dechunked(bytes, 1 + usize::from(choice)));
    if let Ok((content, consumed)) = whole {
        assert!(content.len() <= consumed && consumed <= bytes.len());
    }
}

fn dechunked(bytes: &[u8], step: usize) -> Result<(Vec<u8>, usize), ChunkedError> {
    let (mut decoder, mut content, mut consumed) = (ChunkedDecoder::new(), Vec::new(), 0);
    // Consumed bytes and the bytes that were certain to follow them.
    let mut certain = Vec::new();
    for piece in bytes.chunks(step) {
        certain.push((consumed as u64, decoder.bytes_at_least()));
        let mut piece = piece.to_vec();
        let decoded = decoder.decode(&mut piece)?;
        content.extend_from_slice(&piece[..decoded.content]);
        consumed += decoded.consumed;
        if decoder.is_done() {
            assert!(certain.iter().all(|(before, least)| before + least <= consumed as u64));
            return Ok((content, consumed));
        }
    }
    assert!(decoder.bytes_at_least() > 0);
    Ok((content, consumed))
}

/// Takes a forwarded field. An entry with an address has the same address when it is alone, and an entry that a proxy
/// appends is parsed whatever it is appended to.
///
/// # Panics
/// Panics when a property does not hold.
pub fn forwarded(data: &[u8]) {
    for header in [ForwardedHeader::XForwardedFor, ForwardedHeader::Forwarded] {
        let whole: Vec<_> = addresses_of_value(data, header).collect();
        assert!(!whole.is_empty() && whole.len() <= data.len() + 1);
        let node =
            if header == ForwardedHeader::Forwarded { "for=\"[2001:db8::7]:_p\"" } else { "2001:db8::7" };
        let appended = [data, b", ", node.as_bytes()].concat();
        let mut read = addresses_of_value(&appended, header);
        assert_eq!(read.next(), Some("2001:db8::7".parse().ok()));
        assert!(read.eq(whole.iter().copied()), "an appended entry changes nothing to its left");
        for address in whole.into_iter().flatten() {
            assert_eq!(address, address.to_canonical());
            let plain = match header {
                ForwardedHeader::XForwardedFor => address.to_string(),
                ForwardedHeader::Forwarded if address.is_ipv4() => format!("for={address}"),
                ForwardedHeader::Forwarded => format!("for=\"[{address}]\""),
            };
            assert!(addresses_of_value(plain.as_bytes(), header).eq([Some(address)]));
        }
    }
}

/// Takes a request head. Cut anywhere, it gives the same result as in one piece. It stays within its limits, and a head
/// that is formatted from it parses to the same head. The first byte chooses limits and cuts.
///
/// # Panics
/// Panics when a property does not hold.
pub fn http_head(data: &[u8]) {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let small = HeadLimits { bytes_max: 512, fields_max: 8 };
    let limits = if choice & 1 == 0 { HeadLimits::default() } else { small };
    let whole = parse_head(bytes, &limits);
    let (mut parser, mut end) = (HeadParser::new(limits), 0);
    let piecemeal = loop {
        match parser.parse(&bytes[..end]) {
            Ok(None) if end < bytes.len() => {}
            decided => break decided,
        }
        // Steps of 1 to 128 bytes of varying size, unrelated to the lines.
        end = bytes.len().min(end + 1 + (end.wrapping_mul(31) ^ usize::from(choice >> 1)) % 128);
    };
    match (&whole, &piecemeal) {
        (Ok(Some((head, length))), Ok(Some((other, other_length)))) => {
            assert_eq!(length, other_length);
            assert!(is_same(head, other));
            assert!(*length <= limits.bytes_max && head.headers().count() <= limits.fields_max);
            check_head(head);
        }
        (Ok(None), Ok(None)) => {}
        (Err(error), Err(other)) => assert_eq!(error, other),
        _ => panic!("cutting changes the result: {whole:?}, {piecemeal:?}"),
    }
}

fn is_same(head: &RequestHead, other: &RequestHead) -> bool {
    head.method() == other.method()
        && (head.path(), head.query()) == (other.path(), other.query())
        && head.headers().eq(other.headers())
        && head.framing() == other.framing()
        && head.keep_alive() == other.keep_alive()
        && head.expects_continue() == other.expects_continue()
        && head.is_version_1_1() == other.is_version_1_1()
}

/// Checks that a head formatted in the plainest way parses to the same head.
fn check_head(head: &RequestHead) {
    assert!(head.path().starts_with('/') && !head.path().contains('?'));
    let query = head.query().map_or(String::new(), |query| format!("?{query}"));
    let version = u8::from(head.is_version_1_1());
    let line = format!("{} {}{query} HTTP/1.{version}\r\n", head.method(), head.path());
    let mut plain = line.into_bytes();
    for (name, value) in head.headers() {
        assert!(!name.bytes().any(|byte| byte.is_ascii_uppercase()));
        assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        plain.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    plain.extend(b"\r\n");
    let roomy = HeadLimits { bytes_max: usize::MAX, fields_max: usize::MAX };
    let again = parse_head(&plain, &roomy).expect("an accepted head is accepted again");
    let (again, length) = again.expect("it is whole");
    assert!(length == plain.len() && is_same(head, &again));
}

/// Takes a `Range` header and a size. A resolved range lies within the size, and its own header resolves to it again.
///
/// # Panics
/// Panics when a property does not hold.
pub fn http_range(data: &[u8]) {
    let Some((size, value)) = data.split_first_chunk::<9>() else { return };
    let [shift, size @ ..] = *size;
    let size = u64::from_le_bytes(size) >> (shift % 64);
    match resolve_range(Some(value), size) {
        RangeOutcome::Whole => {}
        RangeOutcome::Unsatisfiable => {
            // On a larger representation the same header can be satisfied, unless it requests no bytes at all.
            let larger = resolve_range(Some(value), u64::MAX);
            let of_nothing = value.ends_with(b"0") || value.iter().rev().any(|byte| !byte.is_ascii_digit());
            assert!(matches!(larger, RangeOutcome::Part(_)) || size == u64::MAX || of_nothing);
        }
        outcome @ RangeOutcome::Part(part) => {
            assert!(part.first() <= part.last() && part.last() < size);
            assert_eq!(part.length(), part.as_range().end - part.as_range().start);
            let plain = format!("bytes={}-{}", part.first(), part.last());
            assert_eq!(resolve_range(Some(plain.as_bytes()), size), outcome);
            assert_eq!(part.content_range(), format!("bytes {}-{}/{size}", part.first(), part.last()));
        }
    }
    assert!(
        !matches!(resolve_range(Some(value), 0), RangeOutcome::Part(_)),
        "an empty representation has no ranges"
    );
}

/// Takes a date in any of its three forms. Formatted in the first form, it is the same second.
///
/// # Panics
/// Panics when a property does not hold.
pub fn dates(data: &[u8]) {
    if let Some(seconds) = parse_http_date(data)
        && let Ok(since_epoch) = u64::try_from(seconds)
    {
        assert_eq!(parse_http_date(http_date(since_epoch).as_bytes()), Some(seconds));
    }
    if let Some((seconds, _)) = data.split_first_chunk::<8>() {
        let written = http_date(u64::from_le_bytes(*seconds));
        let read = parse_http_date(written.as_bytes()).expect("a formatted date parses");
        assert_eq!(http_date(u64::try_from(read).expect("not before 1970")), written);
    }
}

/// Takes bytes for percent-encoding, queries and entity tags. Encoded bytes decode to themselves, and decoding never
/// adds bytes.
///
/// # Panics
/// Panics when a property does not hold.
pub fn http_uri(data: &[u8]) {
    for encoded in [encode_path(data), encode_strict(data)] {
        assert_eq!(decode(&encoded).ok().as_deref(), std::str::from_utf8(data).ok());
    }
    // A strong match is also a weak match.
    let matches = |comparison| entity_tag_matches(data, "\"a\"", comparison);
    assert!(matches(Comparison::Weak) || !matches(Comparison::Strong));
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(decoded) = decode(text) {
        assert!(decoded.len() <= text.len());
        assert_eq!(decode(&encode_path(&*decoded)).as_deref(), Ok(&*decoded));
    }
    let mut pairs = Vec::new();
    for pair in query_pairs(text).flatten() {
        pairs.push((pair.0.into_owned(), pair.1.into_owned()));
    }
    let plain: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", encode_strict(name), encode_strict(value)))
        .collect();
    let plain = plain.join("&");
    let again = query_pairs(&plain).map(|pair| pair.expect("was encoded"));
    assert!(again.eq(pairs.iter().map(|(name, value)| (name.into(), value.into()))));
}

#[cfg(test)]
#[path = "../../fuzz/short_run.rs"]
mod short_run;
