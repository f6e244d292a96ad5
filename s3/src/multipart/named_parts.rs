//! Reads the body of CompleteMultipartUpload: the parts that the client names. Source: API Reference,
//! CompleteMultipartUpload.
//!
//! Ten thousand parts are a few megabytes of XML: the document is read in pieces, and other tasks run in between.

use super::PART_NUMBER_MAX;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::checksum;
use crate::xml::reader::{Document, Element, InvalidXml, Progress, limits};
use cairn_engine::ChecksumAlgorithm;
use cairn_model::Etag;
use futures_lite::future::yield_now;

/// Longest list of parts, in bytes. The limit of other documents is too small: an SDK that writes each part with
/// number, tag and five checksums, indented, takes some 700 bytes for each of 10 000.
pub(crate) const BODY_BYTES_MAX: usize = 8 << 20;
/// Bytes of the document that are read before other tasks run, whatever they contain.
const BYTES_PER_YIELD: u64 = 32 << 10;

/// A part as the client names it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamedPart {
    /// 1 to 10 000.
    pub(crate) number: u16,
    /// Its entity tag.
    pub(crate) etag: Etag,
    /// The checksums that the client names.
    pub(crate) checksums: Vec<(ChecksumAlgorithm, Vec<u8>)>,
}

impl NamedPart {
    /// Returns `InvalidPart` about this part.
    pub(crate) fn refusal(&self) -> S3Error {
        invalid_part(self.number).element("ETag", self.etag.to_string())
    }
}

/// Reads the list: at least one part, in ascending order of their numbers.
///
/// # Errors
/// `MalformedXML`, also for an empty list; `InvalidPartOrder`; `InvalidPart` for an invalid entity tag or checksum;
/// `InvalidArgument` for a number out of range.
pub(crate) async fn parse(body: &[u8]) -> S3Result<Vec<NamedPart>> {
    let malformed = |_: InvalidXml| S3Error::new(ErrorCode::MalformedXML);
    let mut document = Document::new(body, limits(BODY_BYTES_MAX)).map_err(malformed)?;
    let mut parts: Vec<NamedPart> = Vec::new();
    let mut bytes_since_yield = 0;
    loop {
        let before = document.position();
        let progress = document.read_on(BYTES_PER_YIELD).map_err(malformed)?;
        bytes_since_yield += document.position() - before;
        if bytes_since_yield >= BYTES_PER_YIELD {
            bytes_since_yield = 0;
            yield_now().await;
        }
        let child = match progress {
            Progress::Child(child) if child.name() == "Part" => child,
            Progress::Child(_) | Progress::Paused => continue,
            Progress::End => break,
        };
        let part = named_part(&child)?;
        if parts.last().is_some_and(|last| last.number >= part.number) {
            return Err(ErrorCode::InvalidPartOrder.into());
        }
        parts.push(part);
    }
    assert!(parts.len() <= usize::from(PART_NUMBER_MAX), "numbers ascend within their range");
    if document.root_name() != Some("CompleteMultipartUpload") || parts.is_empty() {
        return Err(ErrorCode::MalformedXML.into());
    }
    Ok(parts)
}

fn named_part(part: &Element) -> S3Result<NamedPart> {
    let text = |name| part.child(name).map(|child| child.text().trim()).ok_or(ErrorCode::MalformedXML);
    let number = parse_number(text("PartNumber")?)?;
    let text_of_etag = text("ETag")?;
    let etag = parse_etag(text_of_etag).ok_or_else(|| invalid_part(number).element("ETag", text_of_etag))?;
    let mut checksums = Vec::new();
    for algorithm in ChecksumAlgorithm::ALL {
        if let Ok(text) = text(checksum::element(algorithm)) {
            let digest = checksum::parse_digest(algorithm, text).ok_or_else(|| invalid_part(number))?;
            checksums.push((algorithm, digest));
        }
    }
    Ok(NamedPart { number, etag, checksums })
}

fn parse_number(text: &str) -> S3Result<u16> {
    let number: i64 = text.parse().map_err(|_| ErrorCode::MalformedXML)?;
    let valid = u16::try_from(number).ok().filter(|number| (1..=PART_NUMBER_MAX).contains(number));
    valid.ok_or_else(|| {
        let message = "PartNumber must be an integer between 1 and 10000, inclusive.";
        S3Error::invalid_argument("PartNumber", text, message)
    })
}

/// Parses the entity tag of a part, an MD5 or opaque, with or without quotes.
fn parse_etag(text: &str) -> Option<Etag> {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let (digits, is_opaque) = inner.strip_suffix("-1").map_or((inner, false), |digits| (digits, true));
    let mut bytes = [0; 16];
    hex::decode_to_slice(digits, &mut bytes).ok()?;
    Some(if is_opaque { Etag::opaque(bytes) } else { Etag::single(bytes) })
}

/// Returns `InvalidPart` with the part's number, as AWS sends it.
pub(crate) fn invalid_part(number: u16) -> S3Error {
    S3Error::new(ErrorCode::InvalidPart).element("PartNumber", number.to_string())
}

/// Checks what must hold of every list of parts.
///
/// # Panics
/// Panics when it does not hold.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check_list(body: &[u8]) {
    let parsed = futures_lite::future::block_on(parse(body));
    let Ok(parts) = parsed else { return };
    assert!(!parts.is_empty() && parts.len() <= usize::from(PART_NUMBER_MAX));
    assert!(parts.is_sorted_by(|one, next| one.number < next.number));
    assert!(parts.iter().all(|part| (1..=PART_NUMBER_MAX).contains(&part.number)));
    let fits = |(algorithm, digest): &(ChecksumAlgorithm, Vec<u8>)| {
        digest.len() == checksum::digest_bytes(*algorithm)
    };
    assert!(parts.iter().all(|part| part.checksums.iter().all(fits)));
}

#[cfg(test)]
mod tests {
    use super::{BODY_BYTES_MAX, NamedPart, parse};
    use crate::errors::S3Result;
    use cairn_engine::ChecksumAlgorithm;
    use cairn_model::Etag;
    use futures_lite::future::block_on;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    const ETAG: &str = "d41d8cd98f00b204e9800998ecf8427e";

    fn parsed(parts: &str) -> S3Result<Vec<NamedPart>> {
        block_on(parse(format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>").as_bytes()))
    }

    fn part(number: &str, etag: &str) -> String {
        format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>")
    }

    #[test]
    fn parts_are_read_with_their_tags_and_checksums_however_they_are_written() {
        let body = format!(
            "\n <Part>\n <ETag>&quot;{ETAG}&quot;</ETag><PartNumber> 1 </PartNumber>\
             <ChecksumCRC32>AAAAAQ==</ChecksumCRC32></Part><Other/>{}",
            part("10000", &ETAG.to_uppercase())
        );
        let parts = parsed(&body).expect("a list");
        let etag = parts[0].etag;
        assert_eq!(etag.to_string(), ETAG);
        let checksums = vec![(ChecksumAlgorithm::Crc32, vec![0, 0, 0, 1])];
        assert_eq!(parts[0], NamedPart { number: 1, etag, checksums });
        assert_eq!(parts[1], NamedPart { number: 10_000, etag, checksums: Vec::new() });
    }

    #[test]
    fn tags_of_parts_may_be_opaque() {
        let parts = parsed(&part("1", &format!("\"{ETAG}-1\""))).expect("a list");
        assert_eq!(parts[0].etag, Etag::opaque(parts[0].etag.md5));
        assert_eq!(parts[0].etag.to_string(), format!("{ETAG}-1"));
        for invalid in ["-1", "-2", "--1"] {
            let error = parsed(&part("1", &format!("{ETAG}-1{invalid}"))).expect_err(invalid);
            assert_eq!(error.code(), "InvalidPart", "{invalid}");
        }
    }

    #[test]
    fn invalid_lists_have_their_own_codes() {
        for (body, code) in [
            (String::new(), "MalformedXML"),
            ("<Part><PartNumber>1</PartNumber></Part>".to_owned(), "MalformedXML"),
            (format!("<Part><ETag>{ETAG}</ETag></Part>"), "MalformedXML"),
            (part("one", ETAG), "MalformedXML"),
            (part("0", ETAG), "InvalidArgument"),
            (part("-1", ETAG), "InvalidArgument"),
            (part("10001", ETAG), "InvalidArgument"),
            (part("1", "x"), "InvalidPart"),
            (part("1", &format!("{ETAG}-2")), "InvalidPart"),
            (part("1", ETAG).replace("</Part>", "<ChecksumSHA1>x</ChecksumSHA1></Part>"), "InvalidPart"),
            (part("2", ETAG) + &part("1", ETAG), "InvalidPartOrder"),
            (part("1", ETAG) + &part("1", ETAG), "InvalidPartOrder"),
            ("<Part>".to_owned(), "MalformedXML"),
        ] {
            assert_eq!(parsed(&body).expect_err(&body).code(), code, "{body}");
        }
        let other = block_on(parse(format!("<Delete>{}</Delete>", part("1", ETAG)).as_bytes()));
        assert_eq!(other.expect_err("another document").code(), "MalformedXML");
    }

    /// Only parts were counted: 8 MiB of anything else were read without a yield.
    #[test]
    fn reading_yields_whatever_the_document_contains() {
        for (start, filling) in
            [("", "<Other>text</Other>"), ("", "<!-- nothing -->"), ("<Part>", "<A>text</A>")]
        {
            let many = filling.repeat((1 << 20) / filling.len());
            let body = format!("<CompleteMultipartUpload>{start}{many}");
            let mut context = Context::from_waker(Waker::noop());
            let mut reading = pin!(parse(body.as_bytes()));
            let mut yields = 0;
            while reading.as_mut().poll(&mut context).is_pending() {
                yields += 1;
            }
            assert!((30..=32).contains(&yields), "{filling}: {yields}");
        }
    }

    #[test]
    fn ten_thousand_parts_with_all_their_checksums_fit() {
        let checksums = "\n    <ChecksumCRC32>AAAAAQ==</ChecksumCRC32>\n    <ChecksumCRC32C>AAAAAQ==</ChecksumCRC32C>\
            \n    <ChecksumCRC64NVME>AAAAAAAAAAE=</ChecksumCRC64NVME>\
            \n    <ChecksumSHA1>98O8HYCOBHMq32eZZczDTKeuNEE=</ChecksumSHA1>\
            \n    <ChecksumSHA256>FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=</ChecksumSHA256>\n  </Part>";
        let parts: String = (1..=10_000)
            .map(|number| {
                part(&number.to_string(), &format!("&quot;{ETAG}&quot;")).replace("</Part>", checksums)
            })
            .collect();
        assert_eq!(parsed(&parts).expect("fits").len(), 10_000);
        assert!(parts.len() < BODY_BYTES_MAX);
    }
}
