//! Request bodies that are small and wanted whole: XML.

use crate::body::declared;
use crate::body::digests::BodyDigests;
use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::xml::reader::{Element, XML_BODY_BYTES_MAX, parse};
use cairn_engine::Md5;
use cairn_net::{RequestBody, Turns};

/// How much room is made at a time: a body takes memory as it arrives, not as it was announced.
const PIECE_BYTES: usize = 64 * 1024;

/// Reads and checks the XML document that an operation needs, whose root has this name.
///
/// # Errors
/// As [`read_xml_body`]; `MalformedXML` when there is none, or another one.
pub(crate) async fn read_document(
    call: &Call<'_>,
    body: &mut RequestBody<'_>,
    root: &str,
) -> S3Result<Element> {
    let declared = declared::from_request(call.fields, call.authentication.payload)?;
    let document = read_xml_body(body, BodyDigests::new(declared)).await?;
    document.filter(|document| document.name() == root).ok_or_else(|| ErrorCode::MalformedXML.into())
}

/// Reads and checks a body of XML; `None` when there is none.
///
/// # Errors
/// `MalformedXML`, also for a body that is too long, and what the declared digests or the connection give.
pub(crate) async fn read_xml_body(
    body: &mut RequestBody<'_>,
    digests: BodyDigests,
) -> S3Result<Option<Element>> {
    let bytes = read_small_body(body, digests, XML_BODY_BYTES_MAX).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    parse(&bytes).map(Some).map_err(|_| ErrorCode::MalformedXML.into())
}

/// Reads and checks a body of at most `bytes_max` bytes, a whole number of MiB.
///
/// # Errors
/// `MalformedXML` for a body that is too long, and what the declared digests or the connection give.
pub(crate) async fn read_small_body(
    body: &mut RequestBody<'_>,
    mut digests: BodyDigests,
    bytes_max: usize,
) -> S3Result<Vec<u8>> {
    let length = usize::try_from(body.remaining()).unwrap_or(usize::MAX);
    if length > bytes_max {
        let message = format!("The XML you provided is longer than {} MiB.", bytes_max >> 20);
        return Err(S3Error::with_message(ErrorCode::MalformedXML, message));
    }
    let mut bytes = Vec::new();
    let mut md5 = digests.wants_md5().then(Md5::new);
    let mut turns = Turns::default();
    while bytes.len() < length {
        let filled = bytes.len();
        bytes.resize(length.min(filled + PIECE_BYTES), 0);
        let count = body.read(&mut bytes[filled..]).await?;
        if count == 0 {
            return Err(ErrorCode::IncompleteBody.into());
        }
        bytes.truncate(filled + count);
        digests.update(&bytes[filled..]);
        if let Some(md5) = &mut md5 {
            md5.update(&bytes[filled..]);
        }
        turns.took(count).await;
    }
    digests.check(md5.map(Md5::finish).unwrap_or_default())?;
    Ok(bytes)
}
