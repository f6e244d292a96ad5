//! Shared code of GetObject and HeadObject: conditions, ranges, parts and response headers.
//!
//! Source: API Reference, GetObject and HeadObject; RFC 9110 sections 13 and 14. Nothing here reads a payload.

use crate::call::Call;
use crate::compatibility::Compatibility;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::attributes;
use crate::headers::checksum;
use crate::headers::encryption;
use crate::headers::expiration;
use crate::headers::tagging;
use crate::headers::version;
use crate::multipart::parse_part_number;
use cairn_engine::{Bucket, ChecksumKind, ObjectInfo, ObjectLock};
use cairn_http1::{
    ResolvedRange, ResponseHead, StatusCode, Validators, http_date, unsatisfied_content_range,
};
use cairn_model::{ObjectKey, VersionName};
use cairn_transfer::ReadPlan;
use std::ops::Range;
use std::sync::Arc;

/// The response to a request for an existing object.
pub(crate) enum ObjectResponse {
    /// This head and these bytes.
    Content {
        head: ResponseHead,
        range: Range<u64>,
        /// The part whose checksum the head still lacks.
        part: Option<u16>,
    },
    /// 304 without a body.
    NotModified { head: ResponseHead },
}

/// Evaluates conditions, range and part, and writes the head.
///
/// # Errors
/// `PreconditionFailed`, `InvalidRange`, `InvalidPartNumber`, `InvalidArgument`, `InvalidRequest`.
pub(crate) fn object_response(
    call: &Call<'_>,
    bucket: &Bucket,
    info: &ObjectInfo,
) -> S3Result<ObjectResponse> {
    if call.compatibility == Compatibility::Extended {
        refuse_unknown_overrides(call)?;
    }
    let etag = info.etag.quoted();
    let shows_state = shows_state(call, info);
    let validators = Validators { etag: &etag, last_modified_seconds: info.last_modified.seconds() };
    let part_number = call.query.get("partNumber").map(parse_part_number).transpose()?;
    let range = call.head.header("range");
    if part_number.is_some() && range.is_some() {
        let message = "Cannot specify both Range header and partNumber query parameter.";
        return Err(S3Error::with_message(ErrorCode::InvalidRequest, message));
    }
    let plan = match ReadPlan::with_validators(call.head, &validators, info.size, call.now) {
        ReadPlan::PreconditionFailed(condition) => {
            return Err(S3Error::new(ErrorCode::PreconditionFailed).element("Condition", condition));
        }
        ReadPlan::Unsatisfiable { size } => return Err(invalid_range(range, size)),
        ReadPlan::NotModified => {
            let mut head = ResponseHead::new(StatusCode::NOT_MODIFIED);
            write_validators(&mut head, &etag, info);
            write_version(&mut head, bucket, info, shows_state);
            attributes::write_cache_headers(&mut head, &info.attributes);
            return Ok(ObjectResponse::NotModified { head });
        }
        plan => part_number.map_or(Ok(plan), |number| part_plan(number, info))?,
    };
    let mut head = ResponseHead::new(plan.status());
    if let ReadPlan::Part(part) = &plan {
        head.header("content-range", part.content_range());
    }
    write_validators(&mut head, &etag, info);
    write_version(&mut head, bucket, info, shows_state);
    // Only the current object expires; named versions are removed when they are not current any more.
    let is_current = call.query.get(version::VERSION_ID).is_none() && call.system_object().is_none();
    if bucket.settings().lifecycle.is_some() && is_current {
        let (_, key) = call.object()?;
        let (store, tags) = (call.engine.store(), &info.attributes.tags);
        expiration::write_header(&mut head, store, bucket, &key, tags, info.last_modified);
    }
    head.header("accept-ranges", "bytes");
    encryption::write(&mut head, call.compatibility, info.encrypted);
    attributes::write_stored(&mut head, &info.attributes, |name| call.query.get_non_empty(name));
    if shows_state && !info.attributes.tags.is_empty() {
        tagging::write_count(&mut head, &info.attributes.tags);
    }
    // Only multipart objects have a number of parts, as on AWS.
    if part_number.is_some() && info.etag.parts > 0 {
        head.header("x-amz-mp-parts-count", info.etag.parts.to_string());
    }
    let mode = call.fields.amz("x-amz-checksum-mode");
    let wants_checksum = mode.is_some_and(|mode| mode.eq_ignore_ascii_case("enabled"));
    let mut part = None;
    match part_number {
        // The checksum of the object is not that of a part of it.
        None if wants_checksum && covers_all(call, &plan, info.size) => {
            attributes::write_checksums(&mut head, &info.attributes, info.etag.parts);
        }
        Some(_) if wants_checksum && call.compatibility == Compatibility::Extended => {
            if info.attributes.checksum_kind == ChecksumKind::Composite {
                part = part_number;
            } else if plan.range() == (0..info.size) {
                attributes::write_checksums(&mut head, &info.attributes, info.etag.parts);
            }
        }
        _ => {}
    }
    Ok(ObjectResponse::Content { head, range: plan.range(), part })
}

/// Returns whether the response has all bytes of an object of this size. On AWS, a range that covers them counts too.
fn covers_all(call: &Call<'_>, plan: &ReadPlan, size: u64) -> bool {
    match plan {
        ReadPlan::Whole { .. } => true,
        ReadPlan::Part(_) => call.compatibility == Compatibility::Extended && plan.range() == (0..size),
        _ => false,
    }
}

/// Writes the checksum of a part, if it was uploaded with one. `version` is the version that the response is of.
///
/// # Errors
/// Those of the engine.
pub(crate) fn write_part_checksum(
    call: &Call<'_>,
    head: &mut ResponseHead,
    (bucket, key): (&Arc<Bucket>, &ObjectKey),
    version: VersionName,
    number: u16,
) -> S3Result<()> {
    let found = call.engine.object_parts(bucket, key, Some(version), number - 1, 1)?;
    let part = found.parts.first().filter(|part| part.number == number);
    let Some((algorithm, digest)) = part.and_then(|part| part.checksum.as_ref()) else { return Ok(()) };
    head.header(checksum::header(*algorithm), checksum::text(digest));
    head.header("x-amz-checksum-type", checksum::kind_name(found.info.attributes.checksum_kind));
    Ok(())
}

/// Refuses `response-*` parameters that no header of a response has, and values that no header can have.
///
/// # Errors
/// `InvalidArgument`.
fn refuse_unknown_overrides(call: &Call<'_>) -> S3Result<()> {
    let known = |name: &str| attributes::STORED_HEADERS.iter().any(|(_, parameter)| *parameter == name);
    let overrides = || call.query.iter().filter(|(name, _)| name.starts_with("response-"));
    let is_latin_1 = |text: &str| text.chars().all(|character| u32::from(character) < 256);
    if let Some((name, value)) = overrides().find(|(_, value)| !is_latin_1(value)) {
        let message = "Header value cannot be represented using ISO-8859-1.";
        return Err(S3Error::invalid_argument(name, value, message));
    }
    match overrides().find(|(name, _)| !known(name)) {
        None => Ok(()),
        Some((name, value)) => {
            let message =
                format!("{} is not in the set of overridable response headers.", name.escape_default());
            Err(S3Error::invalid_argument(name, value, message))
        }
    }
}

fn write_validators(head: &mut ResponseHead, etag: &str, info: &ObjectInfo) {
    head.header("etag", etag);
    head.header("last-modified", http_date(info.last_modified.seconds()));
}

/// Returns whether the response has the lock and the number of tags. A rule of public access shows the content and not how
/// it is kept, as on AWS, where these headers need permissions of their own.
fn shows_state(call: &Call<'_>, info: &ObjectInfo) -> bool {
    let has_state = info.lock != ObjectLock::default() || !info.attributes.tags.is_empty();
    has_state && call.is_allowed_by_policy()
}

fn write_version(head: &mut ResponseHead, bucket: &Bucket, info: &ObjectInfo, shows_state: bool) {
    version::write_id(head, bucket, info.version_name());
    if shows_state && info.lock != ObjectLock::default() {
        version::write_lock(head, &info.lock);
    }
}

/// Returns the plan for a part. An empty part has no range: in an empty object it is all of it, else it is an invalid
/// part number.
fn part_plan(number: u16, info: &ObjectInfo) -> S3Result<ReadPlan> {
    let size = info.size;
    let range = info.part_range(number).filter(|range| !range.is_empty() || size == 0).ok_or_else(|| {
        S3Error::new(ErrorCode::InvalidPartNumber)
            .element("ActualPartCount", info.etag.parts.max(1).to_string())
            .element("PartNumberRequested", number.to_string())
    })?;
    Ok(ResolvedRange::of(&range, size).map_or(ReadPlan::Whole { size }, ReadPlan::Part))
}

fn invalid_range(range: Option<&[u8]>, size: u64) -> S3Error {
    S3Error::new(ErrorCode::InvalidRange)
        .element("RangeRequested", String::from_utf8_lossy(range.unwrap_or_default()))
        .element("ActualObjectSize", size.to_string())
        .header("content-range", unsatisfied_content_range(size))
}

#[cfg(test)]
mod tests {
    use super::{invalid_range, part_plan};
    use cairn_engine::{Attributes, ObjectInfo, ObjectLock, PartRun};
    use cairn_model::{Etag, Timestamp, VersionId};
    use cairn_transfer::ReadPlan;

    fn info(size: u64, parts: Vec<PartRun>) -> ObjectInfo {
        let count = parts.iter().map(|run| u32::from(run.count)).sum();
        ObjectInfo {
            size,
            etag: Etag { md5: [0; 16], parts: count },
            last_modified: Timestamp(0),
            version: VersionId(1),
            is_null: true,
            imported: None,
            attributes: Attributes::default(),
            encrypted: false,
            lock: ObjectLock::default(),
            parts,
        }
    }

    #[test]
    fn part_one_of_a_single_part_object_is_the_object() {
        let whole = part_plan(1, &info(5, Vec::new())).expect("ok");
        assert!(matches!(&whole, ReadPlan::Part(part) if part.content_range() == "bytes 0-4/5"));
        assert_eq!(part_plan(1, &info(0, Vec::new())).expect("ok"), ReadPlan::Whole { size: 0 });
        let refused = part_plan(2, &info(5, Vec::new())).expect_err("no such part");
        assert_eq!((refused.status(), refused.code()), (416, "InvalidPartNumber"));
    }

    #[test]
    fn part_of_a_multipart_object_is_its_range() {
        let runs = vec![
            PartRun { first: 2, count: 2, size: 10 },
            PartRun { first: 7, count: 1, size: 3 },
            PartRun { first: 8, count: 1, size: 0 },
        ];
        let object = info(23, runs);
        for (number, range) in [(2, 0..10), (3, 10..20), (7, 20..23)] {
            let plan = part_plan(number, &object).expect("a part");
            assert!(matches!(plan, ReadPlan::Part(_)), "{number}");
            assert_eq!(plan.range(), range);
        }
        for number in [1, 4, 8, 9] {
            assert_eq!(part_plan(number, &object).expect_err("none").status(), 416, "{number}");
        }
    }

    #[test]
    fn range_past_the_end_is_416_with_the_size() {
        let refused = invalid_range(Some(b"bytes=5-"), 5);
        assert_eq!((refused.status(), refused.code()), (416, "InvalidRange"));
        assert_eq!(refused.headers(), [("content-range", "bytes */5".to_owned())]);
    }
}
