//! PostObject: stores the file of a browser form. Source: API Reference, POST Object; "Browser-Based Uploads Using POST".
//!
//! `service/form.rs` has read the fields of the form, verified its signature and checked its policy. The fields count as the
//! headers of PutObject here.

use crate::body::declared;
use crate::body::digests::BodyDigests;
use crate::body::payload::receive_file;
use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::{attributes, object_lock, tagging, write_conditions};
use crate::ops::form_response::{StoredObject, Success};
use crate::ops::put_object::store;
use crate::reply::Reply;
use crate::xml::reader;
use cairn_engine::limits::OBJECT_TAGS_MAX;
use cairn_engine::{Cause, PutObject, Tags, WriteCondition};
use cairn_net::RequestBody;

pub(crate) async fn post_object(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    let form = call.form.expect("a form is read before its operation is called");
    let success = Success::of_form(&form.fields)?;
    let (bucket, key) = call.object()?;
    let condition = write_conditions::of_put(call.fields)?;
    let mut attributes = attributes::from_request(call.fields)?;
    if let Some(document) = form.fields.get("tagging").filter(|document| !document.is_empty()) {
        if !attributes.tags.is_empty() {
            return Err(S3Error::invalid_request(
                "The form has tags in tagging and in x-amz-tagging: send one of them.",
            ));
        }
        attributes.tags = read_tags(document)?;
    }
    let settings = bucket.settings();
    let lock = object_lock::of_new_version(call.fields, &settings, call.now)?;
    let declared = declared::from_request(call.fields, call.authentication.payload)?;
    let early = call.permitted(condition.clone());
    if early != WriteCondition::default() {
        // The commit decides. This check only avoids the transfer of a file that would be refused.
        write_conditions::check_early(&early, call.engine.head_object(&bucket, &key, None))?;
    }
    // The file may turn out to be smaller than the form, so only what it certainly has is checked here.
    call.engine.check_quota(&bucket, &key, settings.quota, form.bounds.least)?;

    let digests = BodyDigests::new(declared);
    let (payload, checksum) = receive_file(call, body, form, (&bucket, &key), digests).await?;

    let (etag, origin) = (payload.etag(), call.origin(Cause::Request));
    attributes.checksums = checksum.into_iter().collect();
    let url = call.location(bucket.name.as_str(), &key);
    let put = PutObject { bucket, key, payload, etag, attributes, condition, lock, origin };
    let mut reply = store(call, put).await?;
    let (bucket, key) = (call.target.bucket_text(), call.target.key_text());
    success.write(&mut reply, StoredObject { bucket, key, etag: &etag.quoted(), url: &url });
    Ok(reply)
}

/// Reads the field `tagging`.
fn read_tags(document: &str) -> S3Result<Tags> {
    let root = reader::parse(document.as_bytes()).ok().filter(|root| root.name() == tagging::DOCUMENT);
    let root = root.ok_or(ErrorCode::MalformedXML)?;
    tagging::from_document(&root, OBJECT_TAGS_MAX, "Object tags")
}
