//! `GET /api/v1/buckets/{bucket}/object-content/{key}[?version_id=|?at=]`: the content as a download.
//!
//! The content is untrusted and must not run in the console's origin. Whatever its type, it is an attachment, its type
//! is not guessed (`nosniff`, in every response), and a browser that shows it nevertheless runs nothing in it
//! (`sandbox`).

use cairn_engine::{Attributes, ObjectInfo};
use cairn_http1::attachment;
use cairn_model::{Clock as _, SystemClock};
use cairn_net::ResponseBody;
use cairn_transfer::{ReadPlan, ValidatorHeaders, stored_content_type, stored_header};

use super::object_ref::ObjectRef;
use super::source::stream;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::{ChangeRecord, Reply};

/// The header that stops browsers from running scripts in an object.
pub(crate) const SANDBOX: (&str, &str) = ("content-security-policy", "sandbox");

pub(crate) async fn content(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let source = ObjectRef::with_moment(&call)?;
    let opened = call.engine()?.open_object(&source.bucket, &source.key, source.version, |info| {
        let plan = ReadPlan::of(call.head, info, SystemClock.now());
        let headers = response_headers(&plan, &source, info);
        (plan.range(), (plan, headers))
    });
    let (object, (plan, headers)) = opened.map_err(|error| source.read_error(&call, error))?;
    let headers = headers?;
    let range = plan.range();
    let body = if plan == ReadPlan::NotModified {
        ResponseBody::Empty
    } else {
        stream(&call, &source, object, range.end - range.start).await?
    };
    Ok(Reply { status: plan.status(), headers, body, record: ChangeRecord::default() })
}

/// Returns the headers of the response, or the refusal.
fn response_headers(
    plan: &ReadPlan,
    object: &ObjectRef,
    info: &ObjectInfo,
) -> Result<Vec<(&'static str, String)>, AdminError> {
    let ValidatorHeaders { etag, last_modified } = ValidatorHeaders::of(info);
    let mut headers = vec![("etag", etag), ("last-modified", last_modified)];
    match plan {
        ReadPlan::PreconditionFailed(_) => return Err(AdminError::PreconditionFailed),
        ReadPlan::Unsatisfiable { size } => return Err(AdminError::RangeNotSatisfiable(*size)),
        ReadPlan::NotModified => return Ok(headers),
        ReadPlan::Whole { .. } => {}
        ReadPlan::Part(part) => headers.push(("content-range", part.content_range())),
    }
    headers.extend(content_headers(object, &info.attributes));
    Ok(headers)
}

fn content_headers(object: &ObjectRef, attributes: &Attributes) -> Vec<(&'static str, String)> {
    let mut headers = vec![
        ("content-type", stored_content_type(attributes)),
        (SANDBOX.0, SANDBOX.1.to_owned()),
        ("content-disposition", attachment(&object.key.to_string())),
        ("accept-ranges", "bytes".to_owned()),
    ];
    // Without these headers, clients would misinterpret the bytes.
    for name in ["content-encoding", "content-language"] {
        if let Some(value) = stored_header(attributes, name) {
            headers.push((name, String::from_utf8_lossy(value).into_owned()));
        }
    }
    headers
}
