//! PutBucketVersioning: enables or suspends versioning; it cannot be removed. Source: API Reference,
//! PutBucketVersioning.

use crate::body::read_document;
use crate::call::Call;
use crate::compatibility::Compatibility;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::reply::Reply;
use crate::xml::reader::Element;
use cairn_engine::{BucketChange, EngineError, Versioning};
use cairn_http1::StatusCode;
use cairn_net::RequestBody;

pub(crate) async fn put_bucket_versioning(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    let versioning =
        parse_document(&read_document(call, body, "VersioningConfiguration").await?, call.compatibility)?;
    let change = BucketChange::Versioning(versioning);
    call.engine.store().change_bucket(&bucket, change).await.map_err(|error| match error {
        EngineError::InvalidBucketState => S3Error::with_message(
            ErrorCode::InvalidBucketState,
            "An Object Lock configuration is present on this bucket, so the versioning state cannot be changed.",
        ),
        other => other.into(),
    })?;
    call.recording.describe(|| format!("{versioning:?}"));
    Ok(Reply::empty(StatusCode::OK))
}

/// Reads the document. MFA delete may be present as `Disabled`.
fn parse_document(document: &Element, mode: Compatibility) -> S3Result<Versioning> {
    match document.only_text("MfaDelete")? {
        None | Some("Disabled") => {}
        Some("Enabled") => {
            return Err(S3Error::not_implemented("MFA delete is not implemented: omit MfaDelete."));
        }
        Some(_) => return Err(ErrorCode::MalformedXML.into()),
    }
    match document.only_text("Status")? {
        Some("Enabled") => Ok(Versioning::Enabled),
        Some("Suspended") => Ok(Versioning::Suspended),
        None if mode == Compatibility::Extended && document.children().is_empty() => {
            Err(ErrorCode::IllegalVersioningConfigurationException.into())
        }
        _ => Err(ErrorCode::MalformedXML.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_document;
    use crate::compatibility::Compatibility;
    use crate::xml::reader::parse;
    use cairn_engine::Versioning;

    #[test]
    fn status_is_enabled_or_suspended() {
        let parsed = |inner: &str| {
            let body = format!("<VersioningConfiguration>{inner}</VersioningConfiguration>");
            parse_document(&parse(body.as_bytes()).expect(inner), Compatibility::Strict)
                .map_err(|error| (error.status(), error.code()))
        };
        assert_eq!(parsed("<Status>Enabled</Status>"), Ok(Versioning::Enabled));
        let suspended = "<MfaDelete>Disabled</MfaDelete><Status> Suspended\n</Status><Unknown/>";
        assert_eq!(parsed(suspended), Ok(Versioning::Suspended));
        for inner in [
            "",
            "<Status/>",
            "<Status>enabled</Status>",
            "<Status>Unversioned</Status>",
            "<Status>Enabled</Status><Status>Suspended</Status>",
            "<Status>Enabled</Status><MfaDelete>x</MfaDelete>",
        ] {
            assert_eq!(parsed(inner), Err((400, "MalformedXML")), "{inner}");
        }
        let mfa = "<Status>Enabled</Status><MfaDelete>Enabled</MfaDelete>";
        assert_eq!(parsed(mfa), Err((501, "NotImplemented")));
    }
}
