//! PutBucketPolicy, GetBucketPolicy, DeleteBucketPolicy, GetBucketPolicyStatus, and the three operations of
//! PublicAccessBlock. Source: API Reference, the actions of these names.
//!
//! The only policies are those that say what rules of public access can say (`public_policy.rs`).

use crate::access::public::ENABLE_PUBLIC_ACCESS;
use crate::body::declared;
use crate::body::digests::BodyDigests;
use crate::body::{read_document, read_small_body};
use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::ops::public_policy;
use crate::reply::Reply;
use crate::xml::reader::{Element, XML_BODY_BYTES_MAX};
use crate::xml::writer::XmlWriter;
use cairn_engine::{
    Bucket, BucketChange, NewPublicRules, PUBLIC_POLICY_BYTES_MAX, PublicAccess, PublicAccessBlock,
    public_rules_text,
};
use cairn_http1::StatusCode;
use cairn_net::{RequestBody, ResponseBody};
use std::sync::Arc;

/// Returns the rules of a bucket that has some.
///
/// # Errors
/// `NoSuchBucketPolicy`.
fn existing(bucket: &Bucket) -> S3Result<Arc<PublicAccess>> {
    let access = bucket.public_access().filter(|access| !access.rules.is_empty());
    access.ok_or_else(|| ErrorCode::NoSuchBucketPolicy.into())
}

pub(crate) async fn put_bucket_policy(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    let digests = BodyDigests::new(declared::from_request(call.fields, call.authentication.payload)?);
    let bytes = read_small_body(call, body, digests, XML_BODY_BYTES_MAX).await?;
    if bytes.len() > PUBLIC_POLICY_BYTES_MAX {
        let message = "Policy exceeds the maximum allowed document size.";
        return Err(S3Error::with_message(ErrorCode::MalformedPolicy, message));
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| ErrorCode::MalformedPolicy)?;
    let prefixes = public_policy::to_rules(bucket.name.as_str(), text)?;
    let denied = |message: String| Err(S3Error::with_message(ErrorCode::AccessDenied, message));
    if !call.public_access {
        return denied(format!("Access Denied: {ENABLE_PUBLIC_ACCESS}"));
    }
    let block = bucket.public_access().and_then(|access| access.block).unwrap_or_default();
    if block.block_public_policy {
        return denied(
            "Access Denied: public policies are blocked by the BlockPublicPolicy setting of the bucket's public access block."
                .to_owned(),
        );
    }
    call.recording.describe(|| public_rules_text(&prefixes));
    let created_by = Arc::from(&*call.authentication.principal.to_string());
    let rules = NewPublicRules { prefixes, created_at: call.now, created_by, policy: Some(text.into()) };
    let change = BucketChange::PublicAccess { rules: Some(rules), block: None };
    call.engine.store().change_bucket(&bucket, change).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

pub(crate) fn get_bucket_policy(call: &Call<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    let document = public_policy::document_of(bucket.name.as_str(), &*existing(&bucket)?);
    let mut reply = Reply::empty(StatusCode::OK);
    reply.head.header("content-type", "application/json");
    reply.body = ResponseBody::Full(document.into_bytes());
    Ok(reply)
}

pub(crate) async fn delete_bucket_policy(call: &Call<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    let created_by = Arc::from(&*call.authentication.principal.to_string());
    let rules = NewPublicRules { prefixes: Vec::new(), created_at: call.now, created_by, policy: None };
    if bucket.public_access().is_some() {
        let change = BucketChange::PublicAccess { rules: Some(rules), block: None };
        call.engine.store().change_bucket(&bucket, change).await?;
    }
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

pub(crate) fn get_bucket_policy_status(call: &Call<'_>) -> S3Result<Reply> {
    let access = existing(&*call.bucket()?)?;
    let mut xml = XmlWriter::with_capacity(256);
    xml.open_root("PolicyStatus");
    xml.value("IsPublic", call.public_access && !access.is_blocked());
    xml.close("PolicyStatus");
    Ok(Reply::xml(xml))
}

const BLOCK: &str = "PublicAccessBlockConfiguration";

pub(crate) async fn put_public_access_block(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    let block = parse_block(&read_document(call, body, BLOCK).await?)?;
    call.recording.describe(|| format!("{block:?}"));
    let change = BucketChange::PublicAccess { rules: None, block: Some(Some(block)) };
    call.engine.store().change_bucket(&bucket, change).await?;
    Ok(Reply::empty(StatusCode::OK))
}

/// Reads the four flags. A flag that is not there is false, as on AWS.
fn parse_block(document: &Element) -> S3Result<PublicAccessBlock> {
    let flag = |name| match document.only_text(name)? {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
        Some(_) => Err(S3Error::new(ErrorCode::MalformedXML)),
    };
    Ok(PublicAccessBlock {
        block_public_acls: flag("BlockPublicAcls")?,
        ignore_public_acls: flag("IgnorePublicAcls")?,
        block_public_policy: flag("BlockPublicPolicy")?,
        restrict_public_buckets: flag("RestrictPublicBuckets")?,
    })
}

pub(crate) fn get_public_access_block(call: &Call<'_>) -> S3Result<Reply> {
    let block = call.bucket()?.public_access().and_then(|access| access.block);
    let block = block.ok_or(ErrorCode::NoSuchPublicAccessBlockConfiguration)?;
    let mut xml = XmlWriter::with_capacity(512);
    xml.open_root(BLOCK);
    for (name, value) in [
        ("BlockPublicAcls", block.block_public_acls),
        ("IgnorePublicAcls", block.ignore_public_acls),
        ("BlockPublicPolicy", block.block_public_policy),
        ("RestrictPublicBuckets", block.restrict_public_buckets),
    ] {
        xml.value(name, value);
    }
    xml.close(BLOCK);
    Ok(Reply::xml(xml))
}

pub(crate) async fn delete_public_access_block(call: &Call<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    if bucket.public_access().is_some_and(|access| access.block.is_some()) {
        let change = BucketChange::PublicAccess { rules: None, block: Some(None) };
        call.engine.store().change_bucket(&bucket, change).await?;
    }
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}
