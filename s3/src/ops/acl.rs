//! GetBucketAcl, GetObjectAcl, PutBucketAcl, PutObjectAcl. Source: API Reference, the actions of these names.
//!
//! There are no ACLs: policies of service accounts grant access. The one ACL that every bucket and object has, as in
//! buckets of AWS whose object ownership is enforced, gives its owner full control. It can be read, and it can be set
//! again, which changes nothing. Any other ACL is 400, as there. `request/acl.rs` refuses other canned ACLs and grants.

use crate::access::account::{self, OWNER_ID};
use crate::body::declared;
use crate::body::digests::BodyDigests;
use crate::body::read_xml_body;
use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::version;
use crate::reply::Reply;
use crate::request::acl;
use crate::xml::reader::{Element, InvalidXml};
use crate::xml::writer::XmlWriter;
use cairn_http1::StatusCode;
use cairn_net::RequestBody;

const OTHER_ACL: &str = "The bucket does not allow ACLs: grant access with the policies of service accounts, and set no ACL, or \
                         one that gives the owner full control and nobody else anything.";
const FULL_CONTROL: &str = "FULL_CONTROL";
const PERMISSIONS: [&str; 5] = [FULL_CONTROL, "WRITE", "WRITE_ACP", "READ", "READ_ACP"];
/// The argument that AWS names if the id of an owner or grantee is wrong.
const CANONICAL_ID: &str = "CanonicalUser/ID";
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
        (None, None) => {
            Err(S3Error::from(ErrorCode::MissingSecurityHeader).element("MissingHeaderName", "x-amz-acl"))
        }
    }
}

/// Checks that a document gives the owner full control, and nobody else anything. A wrong document gets the error that it has
/// on AWS.
///
/// # Errors
/// `MalformedACLError`, `InvalidArgument` for an owner or a grantee that cannot be, and `AccessControlListNotSupported`.
fn check_document(document: &Element) -> S3Result<()> {
    let policy = AccessControlPolicy::read(document).map_err(|InvalidXml| ErrorCode::MalformedACLError)?;
    acl::check_id(CANONICAL_ID, policy.owner)?;
    for grant in &policy.grants {
        match grant.grantee {
            Grantee::CanonicalUser { id } => acl::check_id(CANONICAL_ID, id)?,
            Grantee::Group { uri } => acl::check_group("Group/URI", uri)?,
            Grantee::Email => {}
        }
    }
    if policy.gives_only_owner() {
        return Ok(());
    }
    Err(S3Error::with_message(ErrorCode::AccessControlListNotSupported, OTHER_ACL))
}

/// The receiver of a permission.
enum Grantee<'a> {
    CanonicalUser { id: &'a str },
    Group { uri: &'a str },
    Email,
}

struct Grant<'a> {
    grantee: Grantee<'a>,
    permission: &'a str,
}

/// The document of an ACL. Source: API Reference, "AccessControlPolicy".
struct AccessControlPolicy<'a> {
    owner: &'a str,
    grants: Vec<Grant<'a>>,
}

impl<'a> AccessControlPolicy<'a> {
    fn read(document: &'a Element) -> Result<Self, InvalidXml> {
        if document.name() != "AccessControlPolicy" {
            return Err(InvalidXml);
        }
        let owner = document.only_child("Owner")?.ok_or(InvalidXml)?.only_text("ID")?.ok_or(InvalidXml)?;
        let list = document.only_child("AccessControlList")?.ok_or(InvalidXml)?;
        let grants = list.children_named("Grant").map(Grant::read).collect::<Result<_, _>>()?;
        Ok(Self { owner, grants })
    }

    fn gives_only_owner(&self) -> bool {
        let is_owner = |grantee: &Grantee<'_>| matches!(grantee, Grantee::CanonicalUser { id: OWNER_ID });
        let all =
            self.grants.iter().all(|grant| is_owner(&grant.grantee) && grant.permission == FULL_CONTROL);
        self.owner == OWNER_ID && all && !self.grants.is_empty()
    }
}

impl<'a> Grant<'a> {
    fn read(grant: &'a Element) -> Result<Self, InvalidXml> {
        let grantee = grant.only_child("Grantee")?.ok_or(InvalidXml)?;
        let permission = grant.only_text("Permission")?.ok_or(InvalidXml)?;
        if !PERMISSIONS.contains(&permission) {
            return Err(InvalidXml);
        }
        let text = |name| grantee.only_text(name)?.ok_or(InvalidXml);
        let grantee = match grantee.type_attribute().ok_or(InvalidXml)? {
            "CanonicalUser" => Grantee::CanonicalUser { id: text("ID")? },
            "Group" => Grantee::Group { uri: text("URI")? },
            "AmazonCustomerByEmail" => text("EmailAddress").map(|_| Grantee::Email)?,
            _ => return Err(InvalidXml),
        };
        Ok(Self { grantee, permission })
    }
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
    xml.text("Permission", FULL_CONTROL);
    xml.close("Grant");
    xml.close("AccessControlList");
    xml.close("AccessControlPolicy");
    xml
}

#[cfg(test)]
mod tests {
    use super::{OWNER_ID, check_document, document};
    use crate::xml::reader::parse;

    #[test]
    fn acl_that_is_read_can_be_set_again() {
        let written = document().finish();
        assert!(check_document(&parse(&written).expect("well-formed")).is_ok());
    }

    #[test]
    fn any_other_acl_is_refused() {
        const REFUSED: &str = "AccessControlListNotSupported";
        const MALFORMED: &str = "MalformedACLError";
        const INVALID: &str = "InvalidArgument";
        let written = String::from_utf8(document().finish()).expect("text");
        let everyone = "<Grant><Grantee xsi:type=\"Group\"><URI>http://acs.amazonaws.com/groups/global/AllUsers</URI></Grantee>\
                        <Permission>READ</Permission></Grant>";
        let owner = written.find("<Owner>").zip(written.find("<AccessControlList>")).expect("an owner");
        let without_owner = format!("{}{}", &written[..owner.0], &written[owner.1..]);
        let list = written.find("<Grant>").zip(written.find("</AccessControlList>")).expect("a list");
        let without_grants = format!("{}{}", &written[..list.0], &written[list.1..]);
        for (changed, code) in [
            (written.replace("FULL_CONTROL", "READ"), REFUSED),
            (written.replace("</Grant>", &format!("</Grant>{everyone}")), REFUSED),
            (written.replace("<Grant>", &format!("{everyone}<Grant>")), REFUSED),
            (without_grants, REFUSED),
            (written.replacen(OWNER_ID, &"0".repeat(64), 1), REFUSED),
            (without_owner, MALFORMED),
            ("<AccessControlPolicy/>".to_owned(), MALFORMED),
            (written.replace("AccessControlPolicy", "Other"), MALFORMED),
            (written.replace("<Permission>FULL_CONTROL</Permission>", ""), MALFORMED),
            (written.replace("FULL_CONTROL", "ANY_CONTROL"), MALFORMED),
            (written.replace("CanonicalUser", "User"), MALFORMED),
            (written.replace("CanonicalUser", "Group"), MALFORMED),
            (written.replacen(OWNER_ID, "wrong", 1), INVALID),
            (written.replace(OWNER_ID, "wrong"), INVALID),
            (
                written.replace("</Grant>", &format!("</Grant>{}", everyone.replace("AllUsers", "Few"))),
                INVALID,
            ),
        ] {
            let refused =
                check_document(&parse(changed.as_bytes()).expect("well-formed")).expect_err(&changed);
            assert_eq!(refused.code(), code, "{changed}");
        }
    }
}
