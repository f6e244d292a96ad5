//! Request bodies that are small and wanted whole: the XML of bucket operations.

use crate::body::declared;
use crate::body::digests::BodyDigests;
use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::xml::reader::{Element, XML_BODY_BYTES_MAX, parse};
use cairn_engine::md5_digest;
use cairn_net::RequestBody;

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
    mut digests: BodyDigests,
) -> S3Result<Option<Element>> {
    let length = usize::try_from(body.remaining()).unwrap_or(usize::MAX);
    if length > XML_BODY_BYTES_MAX {
        let message = "The XML you provided is longer than 1 MiB.";
        return Err(S3Error::with_message(ErrorCode::MalformedXML, message));
    }
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match body.read(&mut bytes[filled..]).await? {
            0 => return Err(ErrorCode::IncompleteBody.into()),
            count => filled += count,
        }
    }
    digests.update(&bytes);
    digests.check(md5_digest(&bytes))?;
    if bytes.is_empty() {
        return Ok(None);
    }
    parse(&bytes).map(Some).map_err(|_| ErrorCode::MalformedXML.into())
}
