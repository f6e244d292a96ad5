//! GetBucketAcl, GetObjectAcl, PutBucketAcl, PutObjectAcl. Source: API Reference, the actions of these names.
//!
//! There are no ACLs: policies of service accounts grant access. The one ACL that every bucket and object has, as in
//! buckets of AWS whose object ownership is enforced, gives its owner full control. It can be read, and it can be set
//! again, which changes nothing. Any other ACL is 400, as there. `request/unsupported_headers.rs` refuses other canned ACLs and
//! grants.

use crate::access::account::{self, OWNER_ID};
use crate::body::declared;
use crate::body::digests::BodyDigests;
use crate::body::read_xml_body;
use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::version;
use crate::reply::Reply;
use crate::xml::reader::{Element, InvalidXml};
use crate::xml::writer::XmlWriter;
use cairn_http1::StatusCode;
use cairn_net::RequestBody;

const OTHER_ACL: &str = "The bucket does not allow ACLs: grant access with the policies of service accounts, and set no ACL, or \
                         one that gives the owner full control and nobody else anything.";
/// The grantee's type is an attribute, as AWS writes it.
const GRANTEE: &str =
    "Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"CanonicalUser\"";

pub(crate) fn get_bucket_acl(call: &Call<'_>) -> S3Result<Reply> {
    call.bucket()?;
    Ok(Reply::xml(document()))
}

pub(crate) fn get_object_acl(call: &Call<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    let version = version::requested(call.query)?;
    let info = call.engine.head_object(&bucket, &key, version);
    let info = info.map_err(|error| version::read_error(error, version, call.head.method()))?;
    let mut reply = Reply::xml(document());
    version::write_id(&mut reply.head, &bucket, info.version_name());
    Ok(reply)
}

pub(crate) async fn put_bucket_acl(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    call.bucket()?;
    check_acl(call, body).await?;
    Ok(Reply::empty(StatusCode::OK))
}

pub(crate) async fn put_object_acl(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    let (bucket, key) = call.object()?;
    let version = version::requested(call.query)?;
    let info = call.engine.head_object(&bucket, &key, version);
    let info = info.map_err(|error| version::subresource_error(error, version, call.head.method()))?;
    check_acl(call, body).await?;
    let mut reply = Reply::empty(StatusCode::OK);
    version::write_id(&mut reply.head, &bucket, info.version_name());
    Ok(reply)
}

/// Checks that the request sets the ACL that there is: by a canned one in the header, or by a document.
///
/// # Errors
/// `MissingSecurityHeader` for neither, `UnexpectedContent` for both, `MalformedACLError`, `AccessControlListNotSupported`
/// for another ACL, and errors of the body.
async fn check_acl(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<()> {
    let declared = declared::from_request(call.fields, call.authentication.payload)?;
    let document = read_xml_body(call, body, BodyDigests::new(declared)).await;
    let document = document.map_err(|error| match error.code() {
        "MalformedXML" => S3Error::with_message(ErrorCode::MalformedACLError, error.message().to_owned()),
        _ => error,
    })?;
    match (call.fields.amz("x-amz-acl"), document) {
        (Some(_), None) => Ok(()),
        (None, Some(document)) => check_document(&document),
        (Some(_), Some(_)) => Err(S3Error::with_message(
            ErrorCode::UnexpectedContent,
            "This request does not support content: name the ACL in the header x-amz-acl or in the body, not in both.",
        )),
        (None, None) => Err(ErrorCode::MissingSecurityHeader.into()),
    }
}

/// Checks that a document gives the owner full control, and nobody else anything.
fn check_document(document: &Element) -> S3Result<()> {
    match gives_only_owner(document) {
        Ok(true) => Ok(()),
        Ok(false) => Err(S3Error::with_message(ErrorCode::AccessControlListNotSupported, OTHER_ACL)),
        Err(InvalidXml) => Err(ErrorCode::MalformedACLError.into()),
    }
}

/// Returns whether a document gives the owner full control, and nobody else anything.
fn gives_only_owner(document: &Element) -> Result<bool, InvalidXml> {
    if document.name() != "AccessControlPolicy" {
        return Err(InvalidXml);
    }
    let list = document.only_child("AccessControlList")?.ok_or(InvalidXml)?;
    let mut grants = list.children_named("Grant").peekable();
    let has_grants = grants.peek().is_some();
    grants.try_fold(has_grants, |all, grant| {
        let grantee = grant.only_child("Grantee")?.ok_or(InvalidXml)?;
        let permission = grant.only_text("Permission")?.ok_or(InvalidXml)?;
        Ok(all && grantee.only_text("ID")? == Some(OWNER_ID) && permission == "FULL_CONTROL")
    })
}

fn document() -> XmlWriter {
    let mut xml = XmlWriter::with_capacity(1024);
    xml.open_root("AccessControlPolicy");
    account::write_owner(&mut xml);
    xml.open("AccessControlList");
    xml.open("Grant");
    xml.open(GRANTEE);
    xml.text("ID", OWNER_ID);
    xml.text("DisplayName", account::OWNER_DISPLAY_NAME);
    xml.close("Grantee");
    xml.text("Permission", "FULL_CONTROL");
    xml.close("Grant");
    xml.close("AccessControlList");
    xml.close("AccessControlPolicy");
    xml
}

#[cfg(test)]
mod tests {
    use super::{check_document, document};
    use crate::xml::reader::parse;

    #[test]
    fn acl_that_is_read_can_be_set_again() {
        let written = document().finish();
        assert!(check_document(&parse(&written).expect("well-formed")).is_ok());
    }

    #[test]
    fn any_other_acl_is_refused() {
        const REFUSED: &str = "AccessControlListNotSupported";
        let written = String::from_utf8(document().finish()).expect("text");
        let everyone = "<Grant><Grantee><URI>http://acs.amazonaws.com/groups/global/AllUsers</URI></Grantee>\
                        <Permission>READ</Permission></Grant>";
        for (changed, code) in [
            (written.replace("FULL_CONTROL", "READ"), REFUSED),
            (written.replace("</Grant>", &format!("</Grant>{everyone}")), REFUSED),
            (written.replace("<Grant>", &format!("{everyone}<Grant>")), REFUSED),
            ("<AccessControlPolicy><AccessControlList/></AccessControlPolicy>".to_owned(), REFUSED),
            ("<AccessControlPolicy/>".to_owned(), "MalformedACLError"),
            (written.replace("AccessControlPolicy", "Other"), "MalformedACLError"),
            (written.replace("<Permission>FULL_CONTROL</Permission>", ""), "MalformedACLError"),
        ] {
            let refused =
                check_document(&parse(changed.as_bytes()).expect("well-formed")).expect_err(&changed);
            assert_eq!(refused.code(), code, "{changed}");
        }
    }
}
