//! GetBucketOwnershipControls, PutBucketOwnershipControls, DeleteBucketOwnershipControls. Source: API Reference, the actions of
//! these names.
//!
//! There are no ACLs, so the ownership of every bucket is `BucketOwnerEnforced`. That can be set again and deleted, which
//! changes nothing: Terraform does both. Whatever would allow ACLs is refused.

use crate::body::read_document;
use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::ops::fixed_settings::fixed;
use crate::reply::Reply;
use crate::xml::reader::Element;
use cairn_http1::StatusCode;
use cairn_net::RequestBody;

const ROOT: &str = "OwnershipControls";
const ENFORCED: &str = "BucketOwnerEnforced";

pub(crate) fn get_bucket_ownership_controls(call: &Call<'_>) -> S3Result<Reply> {
    fixed(call, ROOT, |xml| {
        xml.open("Rule");
        xml.text("ObjectOwnership", ENFORCED);
        xml.close("Rule");
    })
}

pub(crate) async fn put_bucket_ownership_controls(
    call: &Call<'_>,
    body: &mut RequestBody<'_>,
) -> S3Result<Reply> {
    call.bucket()?;
    check(&read_document(call, body, ROOT).await?)?;
    Ok(Reply::empty(StatusCode::OK))
}

pub(crate) fn delete_bucket_ownership_controls(call: &Call<'_>) -> S3Result<Reply> {
    call.bucket()?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

/// Checks that a document says what is the case.
///
/// # Errors
/// `MalformedXML`; `NotImplemented` for an ownership with ACLs.
fn check(document: &Element) -> S3Result<()> {
    let mut rules = document.children_named("Rule");
    let (Some(rule), None) = (rules.next(), rules.next()) else {
        return Err(ErrorCode::MalformedXML.into());
    };
    match rule.only_text("ObjectOwnership")? {
        Some(ENFORCED) => Ok(()),
        Some("BucketOwnerPreferred" | "ObjectWriter") => Err(S3Error::not_implemented(
            "ACLs are not implemented: set ObjectOwnership to BucketOwnerEnforced, and grant access with the policies of \
             service accounts.",
        )),
        _ => Err(ErrorCode::MalformedXML.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::xml::reader::parse;

    #[test]
    fn only_ownership_without_acls_can_be_set() {
        let code = |rules: &str| {
            let document = parse(format!("<OwnershipControls>{rules}</OwnershipControls>").as_bytes());
            check(&document.expect("well-formed")).map_err(|error| error.code().to_owned())
        };
        let rule = |ownership: &str| format!("<Rule><ObjectOwnership>{ownership}</ObjectOwnership></Rule>");
        assert_eq!(code(&rule("BucketOwnerEnforced")), Ok(()));
        for with_acls in ["BucketOwnerPreferred", "ObjectWriter"] {
            assert_eq!(code(&rule(with_acls)), Err("NotImplemented".to_owned()));
        }
        for malformed in ["", "<Rule/>", &rule("Everybody"), &rule("BucketOwnerEnforced").repeat(2)] {
            assert_eq!(code(malformed), Err("MalformedXML".to_owned()), "{malformed}");
        }
    }
}
