//! The checksum that a client declared for a version at its source: read from headers, compared with the content.
//!
//! The names and forms are those of S3, in `cairn_transfer::checksum`. A version has at most one checksum.

use cairn_engine::{ChecksumAlgorithm, ChecksumKind, Engine, PartsDigest, UploadChecksum, composite_etag};
use cairn_http1::RequestHead;
use cairn_model::UploadId;
use cairn_transfer::checksum::{
    PartsChecksum, header, kind_name, kinds_in_parts, name, object_text, of_kind_name, of_name, parse_digest,
};
use futures_lite::future::yield_now;

use super::header_text::text;
use super::run::Import;
use crate::error::AdminError;

/// Parts that are read at a time.
const PARTS_PAGE: usize = 1000;
const ALGORITHM: &str = "x-amz-checksum-algorithm";
const TYPE: &str = "x-amz-checksum-type";

/// Returns whether a header belongs to checksums.
pub(super) fn is_header(name: &str) -> bool {
    name == ALGORITHM || name == TYPE || ChecksumAlgorithm::ALL.iter().any(|known| header(*known) == name)
}

/// A declared checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Declared {
    pub(super) algorithm: ChecksumAlgorithm,
    pub(super) digest: Vec<u8>,
    /// The number of parts that a composite names.
    parts: Option<u32>,
}

/// Reads the declared checksum of a version.
///
/// # Errors
/// `INVALID_REQUEST`: several, or one that is not valid.
pub(super) fn declared(head: &RequestHead) -> Result<Option<Declared>, AdminError> {
    let mut found = None;
    for algorithm in ChecksumAlgorithm::ALL {
        let name = header(algorithm);
        let Some(value) = text(head, name)? else { continue };
        if found.is_some() {
            return Err(AdminError::invalid("a version has at most one x-amz-checksum- header"));
        }
        let parsed = match value.split_once('-') {
            None => parse_digest(algorithm, value).map(|digest| (digest, None)),
            Some((digest, parts)) => parse_digest(algorithm, digest).zip(parts.parse().ok().map(Some)),
        };
        let (digest, parts) = parsed.ok_or_else(|| {
            AdminError::invalid(format!(
                "{name}: must be a digest in Base64, followed by a dash and the number of parts if it is of their digests"
            ))
        })?;
        found = Some(Declared { algorithm, digest, parts });
    }
    Ok(found)
}

/// Reads the declared checksum of a version that has no parts.
///
/// # Errors
/// As [`declared`]; `INVALID_REQUEST` for a composite.
pub(super) fn declared_of_body(head: &RequestHead) -> Result<Option<Declared>, AdminError> {
    match declared(head)? {
        Some(Declared { parts: Some(_), .. }) => {
            Err(AdminError::invalid("only a version with parts has a checksum of their digests"))
        }
        declared => Ok(declared),
    }
}

/// Returns the refusal of content that does not have a declared checksum.
pub(super) fn mismatch(algorithm: ChecksumAlgorithm) -> AdminError {
    AdminError::invalid(format!("the content does not have this checksum ({})", name(algorithm)))
}

/// Reads the checksum that the parts of an upload get.
///
/// # Errors
/// `INVALID_REQUEST`: an unknown algorithm or type, or a type that the algorithm does not have for parts.
pub(super) fn of_upload(head: &RequestHead) -> Result<Option<UploadChecksum>, AdminError> {
    let (algorithm, kind) = match (text(head, ALGORITHM)?, text(head, TYPE)?) {
        (None, None) => return Ok(None),
        (Some(algorithm), kind) => (algorithm, kind),
        (None, Some(_)) => return Err(AdminError::invalid(format!("{TYPE} needs {ALGORITHM}"))),
    };
    let algorithm = of_name(algorithm)
        .ok_or_else(|| AdminError::invalid(format!("{ALGORITHM}: is no algorithm of checksums")))?;
    let kinds = kinds_in_parts(algorithm);
    let kind = match kind {
        None => kinds.first().copied(),
        Some(kind) => of_kind_name(kind).filter(|kind| kinds.contains(kind)),
    };
    let kind = kind.ok_or_else(|| {
        let known = kinds.iter().map(|kind| kind_name(*kind)).collect::<Vec<_>>().join(" or ");
        AdminError::invalid(format!("{TYPE}: must be {known} for {}", name(algorithm)))
    })?;
    Ok(Some(UploadChecksum { algorithm, kind }))
}

/// Compares the declared checksum with that of an upload's parts. An upload that was begun with a checksum needs one.
///
/// # Errors
/// `INVALID_REQUEST` if they differ; `UPLOAD_NOT_FOUND`.
pub(super) async fn of_parts(
    engine: &Engine,
    import: &Import,
    upload: UploadId,
    declared: Option<Declared>,
) -> Result<Option<PartsDigest>, AdminError> {
    let begun = engine.upload(&import.bucket, &import.key, upload)?.upload.checksum;
    let (begun, declared) = match (begun, declared) {
        (None, None) => return Ok(None),
        (Some(begun), Some(declared)) if begun.algorithm == declared.algorithm => (begun, declared),
        _ => {
            let message = "the checksum must be of the algorithm that the upload was begun with";
            return Err(AdminError::invalid(message));
        }
    };
    let mut sum = PartsChecksum::new(begun).ok_or(AdminError::Internal)?;
    let (mut tags, mut after) = (Vec::new(), 0);
    loop {
        let page = engine.list_parts(&import.bucket, &import.key, upload, after, PARTS_PAGE)?;
        for part in &page.parts {
            let checksum = part.checksum.as_ref().filter(|(algorithm, _)| *algorithm == begun.algorithm);
            let (_, digest) = checksum.ok_or(AdminError::Internal)?;
            sum.add(digest, part.size);
            tags.push(part.md5);
            after = part.number;
        }
        if !page.is_truncated {
            break;
        }
        yield_now().await;
    }
    let etag = composite_etag(tags.into_iter());
    let computed = Declared {
        algorithm: begun.algorithm,
        digest: sum.finish(),
        parts: (begun.kind == ChecksumKind::Composite).then_some(etag.parts),
    };
    if computed != declared {
        let text = object_text(&computed.digest, begun.kind, etag.parts);
        return Err(AdminError::invalid(format!(
            "the content does not have this checksum: the {} of its parts is {text}",
            name(begun.algorithm)
        )));
    }
    Ok(Some(PartsDigest { algorithm: computed.algorithm, digest: computed.digest, etag }))
}

#[cfg(test)]
mod tests {
    use super::{declared, declared_of_body, is_header, of_upload};
    use cairn_engine::{ChecksumAlgorithm, ChecksumKind};
    use cairn_http1::{HeadLimits, RequestHead, parse_head};

    fn head(fields: &str) -> RequestHead {
        let text = format!("PUT / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        parse_head(text.as_bytes(), &HeadLimits::default()).expect("parses").expect("whole").0
    }

    #[test]
    fn checksums_are_read_in_the_forms_of_s3() {
        let found = declared(&head("x-amz-checksum-crc32: AAAAAQ==-12\r\n")).expect("valid").expect("one");
        assert_eq!(
            (found.algorithm, found.digest, found.parts),
            (ChecksumAlgorithm::Crc32, vec![0, 0, 0, 1], Some(12))
        );
        assert!(
            declared_of_body(&head("x-amz-checksum-crc32: AAAAAQ==\r\n")).is_ok_and(|found| found.is_some())
        );
        assert!(declared_of_body(&head("")).is_ok_and(|found| found.is_none()));
        assert!(declared_of_body(&head("x-amz-checksum-crc32: AAAAAQ==-1\r\n")).is_err());
        for fields in [
            "x-amz-checksum-crc32: AAAA\r\n",
            "x-amz-checksum-crc32: AAAAAQ==-x\r\n",
            "x-amz-checksum-crc32: AAAAAQ==\r\nx-amz-checksum-crc32c: AAAAAQ==\r\n",
        ] {
            assert!(declared(&head(fields)).is_err(), "{fields}");
        }
        assert!(is_header("x-amz-checksum-sha256") && is_header("x-amz-checksum-type"));
        assert!(!is_header("x-amz-checksum-md4"));
    }

    #[test]
    fn uploads_have_a_checksum_that_parts_can_have() {
        let read = |algorithm: &str, kind: &str| {
            of_upload(&head(&format!(
                "x-amz-checksum-algorithm: {algorithm}\r\nx-amz-checksum-type: {kind}\r\n"
            )))
        };
        let found = read("crc64nvme", "FULL_OBJECT").expect("valid").expect("one");
        assert_eq!((found.algorithm, found.kind), (ChecksumAlgorithm::Crc64Nvme, ChecksumKind::FullObject));
        for (algorithm, kind) in
            [("SHA256", "FULL_OBJECT"), ("CRC64NVME", "COMPOSITE"), ("CRC32", "HALF"), ("MD4", "COMPOSITE")]
        {
            assert!(read(algorithm, kind).is_err(), "{algorithm} {kind}");
        }
        assert!(of_upload(&head("x-amz-checksum-type: COMPOSITE\r\n")).is_err());
        assert!(of_upload(&head("")).is_ok_and(|found| found.is_none()));
    }
}
