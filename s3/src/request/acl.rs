//! Access control lists (ACLs) in headers. Source: User Guide, "Access control list (ACL) overview".
//!
//! There are no ACLs but that of the owner. A header is first checked as on AWS, so that a wrong value gets the same error; then
//! an ACL that asks for more is refused, as in buckets of AWS whose object ownership is enforced.

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::request::fields::Fields;
use crate::xml::reader::shortened;

/// The canned ACLs that mean nothing more than the ACL of the owner. `access/public.rs` decides about `public-read`.
const ACCEPTED: [&str; 3] = ["private", "bucket-owner-full-control", "public-read"];
/// The other canned ACLs.
const REFUSED: [&str; 5] =
    ["public-read-write", "authenticated-read", "aws-exec-read", "bucket-owner-read", "log-delivery-write"];
/// The groups that a grant may name.
const GROUPS: [&str; 3] = [
    "http://acs.amazonaws.com/groups/global/AllUsers",
    "http://acs.amazonaws.com/groups/global/AuthenticatedUsers",
    "http://acs.amazonaws.com/groups/s3/LogDelivery",
];
const OWNERSHIP: &str = "x-amz-object-ownership";
const OTHER_ACL: &str = "The bucket does not allow ACLs. Buckets and objects belong to the owner alone: send x-amz-acl with private or \
                         bucket-owner-full-control, x-amz-object-ownership with BucketOwnerEnforced, or neither, and grant \
                         access with the policies of service accounts.";

/// Checks the headers of ACLs and of object ownership, and those hoisted into the query, in the mode `extended`.
///
/// # Errors
/// `InvalidArgument` for a value that AWS does not know, `InvalidRequest` for a canned ACL with grants,
/// `AccessControlListNotSupported` for other valid ACLs, `NotImplemented` for another valid ownership.
pub(crate) fn check_headers(fields: Fields<'_>) -> S3Result<()> {
    // An empty header asks for nothing.
    let canned = fields.amz("x-amz-acl").filter(|value| !value.is_empty());
    let is_accepted = canned.is_none_or(|value| is_one_of(value, &ACCEPTED));
    if let Some(value) = canned.filter(|value| !is_accepted && !is_one_of(value, &REFUSED)) {
        let message = "x-amz-acl names no canned ACL: send private or bucket-owner-full-control.";
        return Err(S3Error::invalid_argument("x-amz-acl", &shortened(value), message));
    }
    let of_headers = fields.headers().iter().map(|(name, value)| (*name, std::str::from_utf8(value)));
    let of_query = fields.hoisted().map(|(name, value)| (name, Ok(value)));
    let grants = of_headers.chain(of_query).filter(|(name, _)| name.starts_with("x-amz-grant-"));
    let mut has_grants = false;
    for (name, value) in grants {
        if canned.is_some() {
            return Err(S3Error::invalid_request(
                "Specifying both Canned ACLs and Header Grants is not allowed",
            ));
        }
        check_grants(name, value.unwrap_or("\u{fffd}"))?;
        has_grants = true;
    }
    check_ownership(fields)?;
    if is_accepted && !has_grants { Ok(()) } else { Err(not_supported()) }
}

fn is_one_of(value: &str, names: &[&str]) -> bool {
    names.iter().any(|name| value.eq_ignore_ascii_case(name))
}

fn not_supported() -> S3Error {
    S3Error::with_message(ErrorCode::AccessControlListNotSupported, OTHER_ACL)
}

/// Checks the grantees of an `x-amz-grant-*` header: a list of `id="…"`, `uri="…"` and `emailAddress="…"`.
fn check_grants(header: &str, value: &str) -> S3Result<()> {
    for grantee in value.split(',') {
        let (kind, name) = grantee.split_once('=').unwrap_or((grantee, ""));
        let name = name.trim().trim_matches('"');
        match kind.trim() {
            "id" => check_id("id", name)?,
            "uri" => check_group("uri", name)?,
            // Whether there is such an account, only AWS knows.
            "emailAddress" => {}
            _ => {
                let message = "Argument format not recognized";
                return Err(S3Error::invalid_argument(header, &shortened(value), message));
            }
        }
    }
    Ok(())
}

/// Checks the form of a canonical user id, which `argument` has.
///
/// # Errors
/// `InvalidArgument`.
pub(crate) fn check_id(argument: &str, id: &str) -> S3Result<()> {
    if id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(());
    }
    Err(S3Error::invalid_argument(argument, &shortened(id), "Invalid id"))
}

/// Checks that `argument` names a group of AWS.
///
/// # Errors
/// `InvalidArgument`.
pub(crate) fn check_group(argument: &str, uri: &str) -> S3Result<()> {
    if GROUPS.contains(&uri) {
        return Ok(());
    }
    Err(S3Error::invalid_argument(argument, &shortened(uri), "Invalid group uri"))
}

fn check_ownership(fields: Fields<'_>) -> S3Result<()> {
    match fields.amz(OWNERSHIP) {
        None => Ok(()),
        Some(value) if is_one_of(value, &["BucketOwnerEnforced"]) => Ok(()),
        Some(value) if is_one_of(value, &["BucketOwnerPreferred", "ObjectWriter"]) => {
            Err(S3Error::not_implemented(OTHER_ACL))
        }
        Some(value) => {
            let message = format!("Invalid {OWNERSHIP} header: {}", shortened(value));
            Err(S3Error::invalid_argument_name(OWNERSHIP, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{GROUPS, check_headers};
    use crate::request::fields::Fields;
    use crate::request::query::Query;

    fn code(headers: &[(&str, &str)], query: &str) -> Option<String> {
        let headers: Vec<(&str, &[u8])> =
            headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        let query = Query::parse(Some(query)).expect("parses");
        check_headers(Fields::new(&headers, &query)).err().map(|error| error.code().to_owned())
    }

    #[test]
    fn valid_acls_that_ask_for_more_are_refused_as_such() {
        let group = format!("uri=\"{}\"", GROUPS[0]);
        let id = format!("id={0}, id=\"{0}\"", "0a".repeat(32));
        for (name, value, expected) in [
            ("x-amz-acl", "", None),
            ("x-amz-acl", "private", None),
            ("x-amz-acl", "bucket-owner-full-control", None),
            ("x-amz-acl", "public-read-write", Some("AccessControlListNotSupported")),
            ("x-amz-acl", "log-delivery-write", Some("AccessControlListNotSupported")),
            ("x-amz-grant-read", group.as_str(), Some("AccessControlListNotSupported")),
            ("x-amz-grant-write", id.as_str(), Some("AccessControlListNotSupported")),
            ("x-amz-grant-read-acp", "emailAddress=a@example.com", Some("AccessControlListNotSupported")),
            ("x-amz-object-ownership", "BucketOwnerEnforced", None),
            ("x-amz-object-ownership", "ObjectWriter", Some("NotImplemented")),
        ] {
            let headers = [(name, value)];
            assert_eq!(code(&headers, "").as_deref(), expected, "{name}: {value}");
        }
        assert_eq!(code(&[], "X-Amz-Acl=private"), None);
        for query in ["X-Amz-Acl=public-read-write", "X-Amz-Grant-Read=emailAddress=a"] {
            assert_eq!(code(&[], query).as_deref(), Some("AccessControlListNotSupported"), "{query}");
        }
    }

    #[test]
    fn wrong_values_are_refused_before() {
        for (name, value) in [
            ("x-amz-acl", "publicread"),
            ("x-amz-grant-read", ""),
            ("x-amz-grant-read", "id"),
            ("x-amz-grant-read", "id=x"),
            ("x-amz-grant-read", "name=x"),
            ("x-amz-grant-read", "emailAddress=a@example.com,"),
            ("x-amz-grant-full-control", "uri=http://acs.amazonaws.com/groups/global/Everybody"),
            ("x-amz-object-ownership", ""),
            ("x-amz-object-ownership", "Everybody"),
        ] {
            assert_eq!(code(&[(name, value)], "").as_deref(), Some("InvalidArgument"), "{name}: {value}");
        }
        let both = [("x-amz-acl", "private"), ("x-amz-grant-read", "id=x")];
        assert_eq!(code(&both, "").as_deref(), Some("InvalidRequest"));
    }
}
