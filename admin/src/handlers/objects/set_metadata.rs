//! `PUT /api/v1/buckets/{bucket}/object-metadata/{key}`: replaces content type, headers and metadata of an object.
//!
//! It is a copy of the current version onto its key: a new version, or one in place of the old one in a bucket without
//! versions. The data does not leave the engine, and tags stay. When the copy is committed, the object must still be the
//! version that was copied, with the tags that were copied.

use std::collections::BTreeMap;

use cairn_api::SetObjectMetadata;
use cairn_engine::{Attributes, Cause, WriteCondition};
use cairn_http1::{is_field_value, is_token, parse_rfc3339_millis, trim_ows};

use super::copy::{copied_range, copy_opened};
use super::headers::{CONDITIONS, CONTENT_TYPE, METADATA_PREFIX, STORED, refuse_conditions, validate_sizes};
use super::new_version::Destination;
use super::object_ref::ObjectRef;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;

type Headers = Vec<(String, Vec<u8>)>;

pub(crate) async fn set_metadata(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (bucket, key) = (call.bucket()?, call.key()?);
    refuse_conditions(call.head, &CONDITIONS)?;
    let request: SetObjectMetadata = call.json().await?;
    let headers = headers_of(&request)?;
    let written = request.if_last_modified.as_deref().map(|text| {
        parse_rfc3339_millis(text)
            .ok_or_else(|| AdminError::invalid("if_last_modified: must be a time (RFC 3339)"))
    });
    let written = written.transpose()?;
    let source = ObjectRef { bucket, key, version: None };
    let engine = call.engine()?;
    let opened = engine.open_object(&source.bucket, &source.key, None, copied_range);
    let (object, mut info) = opened.map_err(|error| source.source_error(error))?;
    let etag = info.etag.to_string();
    let is_same = request.if_match.as_ref().is_none_or(|tag| tag.trim_matches('"') == etag)
        && written.is_none_or(|time| time == info.last_modified.0);
    if !is_same {
        return Err(AdminError::PreconditionFailed);
    }
    info.attributes.headers = kept_bytes(headers, &info.attributes);
    let condition = WriteCondition::if_unchanged(&info);
    let destination = Destination { bucket: source.bucket.clone(), key: source.key.clone(), condition };
    let mut reply = copy_opened(&call, &source, (object, info), destination, Cause::Copy).await?;
    reply.record.detail = format!("metadata, {}", reply.record.detail);
    Ok(reply)
}

/// Returns the headers of a request, as they are stored.
fn headers_of(request: &SetObjectMetadata) -> Result<Headers, AdminError> {
    let mut headers = Headers::new();
    let mut add = |name: String, value: &str, what: &str| {
        let trimmed = trim_ows(value.as_bytes());
        if !is_field_value(trimmed) {
            return Err(AdminError::invalid(format!("{what}: must have no control characters")));
        }
        headers.push((name, trimmed.to_vec()));
        Ok(())
    };
    if let Some(content_type) = request.content_type.as_deref().filter(|text| !text.is_empty()) {
        add(CONTENT_TYPE.to_owned(), content_type, "content_type")?;
    }
    for (name, value) in &request.headers {
        if name == CONTENT_TYPE || !STORED.contains(&&**name) {
            return Err(AdminError::invalid(format!("headers: {} is not stored", printed(name))));
        }
        if !value.is_empty() {
            add(name.clone(), value, &format!("headers.{name}"))?;
        }
    }
    for (name, value) in lower_case(&request.metadata)? {
        add(format!("{METADATA_PREFIX}{name}"), value, &format!("metadata.{name}"))?;
    }
    validate_sizes(&headers)?;
    Ok(headers)
}

/// Returns the metadata with names as they are stored.
fn lower_case(metadata: &BTreeMap<String, String>) -> Result<BTreeMap<String, &str>, AdminError> {
    let mut found = BTreeMap::new();
    for (name, value) in metadata {
        if !is_token(name) {
            let message =
                format!("metadata: the name {} must have letters, digits and dashes only", printed(name));
            return Err(AdminError::invalid(message));
        }
        if found.insert(name.to_ascii_lowercase(), &**value).is_some() {
            return Err(AdminError::invalid(format!("metadata: the name {name} occurs twice")));
        }
    }
    Ok(found)
}

/// Returns the beginning of a name that a client sent, for a message.
fn printed(name: &str) -> String {
    format!("{:?}", name.chars().take(64).collect::<String>())
}

/// Keeps the stored bytes of values that did not change: some are not UTF-8, and are shown with replacements.
fn kept_bytes(headers: Headers, earlier: &Attributes) -> Headers {
    let stored =
        |name: &str| earlier.headers.iter().find(|(stored, _)| stored == name).map(|(_, value)| value);
    let kept = |(name, value): (String, Vec<u8>)| match stored(&name) {
        Some(bytes) if String::from_utf8_lossy(bytes).as_bytes() == value => (name, bytes.clone()),
        _ => (name, value),
    };
    headers.into_iter().map(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::{headers_of, kept_bytes};
    use cairn_api::SetObjectMetadata;
    use cairn_engine::Attributes;

    fn headers(json: &str) -> Result<Vec<(String, Vec<u8>)>, String> {
        let request: SetObjectMetadata = serde_json::from_str(json).expect("a request");
        headers_of(&request).map_err(|error| error.message())
    }

    #[test]
    fn names_and_values_are_those_of_headers() {
        let json = r#"{"content_type": "text/plain", "headers": {"cache-control": " no-cache "}, "metadata": {"Who": "Ann"}}"#;
        let pair = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
        let expected = [
            pair("content-type", "text/plain"),
            pair("cache-control", "no-cache"),
            pair("x-amz-meta-who", "Ann"),
        ];
        assert_eq!(headers(json), Ok(expected.to_vec()));
        for wrong in [
            r#"{"content_type": "a\r\nb"}"#,
            r#"{"content_type": null, "headers": {"content-type": "x"}}"#,
            r#"{"content_type": null, "headers": {"set-cookie": "x"}}"#,
            r#"{"content_type": null, "metadata": {"a b": "x"}}"#,
            r#"{"content_type": null, "metadata": {"": "x"}}"#,
            r#"{"content_type": null, "metadata": {"a": "1", "A": "2"}}"#,
            r#"{"content_type": null, "metadata": {"a": "\u0000"}}"#,
        ] {
            assert!(headers(wrong).is_err(), "{wrong}");
        }
        let long = format!(r#"{{"content_type": null, "metadata": {{"a": "{}"}}}}"#, "v".repeat(2048));
        assert!(headers(&long).is_err());
    }

    #[test]
    fn bytes_that_are_no_text_survive() {
        let stored =
            vec![("x-amz-meta-a".to_owned(), vec![0xe4]), ("x-amz-meta-b".to_owned(), b"1".to_vec())];
        let earlier = Attributes { headers: stored.clone(), ..Attributes::default() };
        let sent =
            headers(r#"{"content_type": null, "metadata": {"a": "\ufffd", "b": "2"}}"#).expect("valid");
        let kept = kept_bytes(sent, &earlier);
        assert_eq!(kept, [stored[0].clone(), ("x-amz-meta-b".to_owned(), b"2".to_vec())]);
    }
}
