//! Reads small request bodies, such as XML, into memory.

use crate::body::declared;
use crate::body::digests::BodyDigests;
use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::xml::reader::{Element, XML_BODY_BYTES_MAX, parse};
use cairn_engine::Md5;
use cairn_model::usize_of;
use cairn_net::{RequestBody, YieldBudget};

/// Bytes allocated at a time: memory grows with the bytes received, not with the declared length.
const PIECE_BYTES: usize = 64 * 1024;

/// Reads the XML document that an operation needs and checks its digests. Its root must be named `root`.
///
/// # Errors
/// Those of [`read_xml_body`]; `MalformedXML` for no document or another root.
pub(crate) async fn read_document(
    call: &Call<'_>,
    body: &mut RequestBody<'_>,
    root: &str,
) -> S3Result<Element> {
    let declared = declared::from_request(call.fields, call.authentication.payload)?;
    let document = read_xml_body(call, body, BodyDigests::new(declared)).await?;
    document.filter(|document| document.name() == root).ok_or_else(|| ErrorCode::MalformedXML.into())
}

/// Reads an XML body and checks its digests; `None` for an empty body.
///
/// # Errors
/// `MalformedXML`, also for a body that is too long, and errors of the digests and the connection.
pub(crate) async fn read_xml_body(
    call: &Call<'_>,
    body: &mut RequestBody<'_>,
    digests: BodyDigests,
) -> S3Result<Option<Element>> {
    let bytes = read_small_body(call, body, digests, XML_BODY_BYTES_MAX).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    parse(&bytes).map(Some).map_err(|_| ErrorCode::MalformedXML.into())
}

/// Reads a body of at most `bytes_max` bytes, a multiple of 1 MiB, and checks its digests. Then checks that the client may
/// still do what it asks for.
///
/// # Errors
/// `MalformedXML` for a body that is too long, and errors of the digests, the connection and [`Call::authorize_again`].
pub(crate) async fn read_small_body(
    call: &Call<'_>,
    body: &mut RequestBody<'_>,
    mut digests: BodyDigests,
    bytes_max: usize,
) -> S3Result<Vec<u8>> {
    assert_eq!(bytes_max % (1 << 20), 0, "the error names a whole number of MiB");
    let length = usize_of(body.remaining());
    if length > bytes_max {
        let message = format!("The XML you provided is longer than {} MiB.", bytes_max >> 20);
        return Err(S3Error::with_message(ErrorCode::MalformedXML, message));
    }
    let mut bytes = Vec::new();
    let mut md5 = digests.wants_md5().then(Md5::new);
    let mut yield_budget = YieldBudget::default();
    while bytes.len() < length {
        let filled = bytes.len();
        bytes.resize(length.min(filled + PIECE_BYTES), 0);
        let count = body.read(&mut bytes[filled..]).await?;
        assert!(count > 0, "a read returns bytes or fails while bytes are missing");
        bytes.truncate(filled + count);
        digests.update(&bytes[filled..]);
        if let Some(md5) = &mut md5 {
            md5.update(&bytes[filled..]);
        }
        yield_budget.spend(count).await;
    }
    digests.check(md5.map(Md5::finish))?;
    call.authorize_again()?;
    Ok(bytes)
}
