//! Reads small request bodies, such as XML, into memory.

use crate::body::declared;
use crate::body::digests::BodyDigests;
use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::xml::reader::{Element, XML_BODY_BYTES_MAX, parse};
use cairn_md5::Md5;
use cairn_net::RequestBody;
use cairn_transfer::{SmallBody, SmallBodyError};

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
/// `MalformedXML` for a body that is too long, `RequestTimeout` for one that is too slow while others wait for memory, and
/// errors of the digests, the connection and [`Call::authorize_again`].
pub(crate) async fn read_small_body(
    call: &Call<'_>,
    body: &mut RequestBody<'_>,
    mut digests: BodyDigests,
    bytes_max: usize,
) -> S3Result<SmallBody> {
    assert_eq!(bytes_max % (1 << 20), 0, "the error names a whole number of MiB");
    let mut md5 = digests.wants_md5().then(Md5::new);
    let observe = |piece: &[u8]| {
        digests.update(piece);
        if let Some(md5) = &mut md5 {
            md5.update(piece);
        }
    };
    let read = cairn_transfer::read_small_body(call.engine, body, bytes_max, observe).await;
    let bytes = read.map_err(|error| match error {
        SmallBodyError::TooLarge => {
            let message = format!("The XML you provided is longer than {} MiB.", bytes_max >> 20);
            S3Error::with_message(ErrorCode::MalformedXML, message)
        }
        SmallBodyError::Body(error) => error.into(),
        SmallBodyError::TooSlow => {
            let message = "The body arrived too slowly while other requests waited for memory; try again.";
            S3Error::with_message(ErrorCode::RequestTimeout, message).closing()
        }
    })?;
    digests.check(md5.map(Md5::finish))?;
    call.authorize_again()?;
    Ok(bytes)
}
