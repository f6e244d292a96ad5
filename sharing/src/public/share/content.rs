//! `GET /s/{token}/content`: the content of a share.
//!
//! The content is untrusted, and the console has the same origin. So a browser runs nothing in it: only images of pixels,
//! video, audio, PDF and plain text are shown, everything else is downloaded, and types are never guessed.

use super::refusals;
use super::visit::Visit;
use crate::links::Download;
use crate::public::read_audit::ReadAudit;
use crate::public::refusal::Refusal;
use crate::public::reply::Reply;
use crate::types::link::{Disposition, LinkKind, LinkStatus};
use crate::types::media_type::MediaClass;
use cairn_engine::{Attributes, EngineError, ObjectInfo};
use cairn_http1::{ResponseHead, attachment, inline};
use cairn_net::ResponseBody;
use cairn_observe::DataEvents;
use cairn_transfer::{ReadPlan, StartedPayload, ValidatorHeaders, stored_content_type, stored_header};

/// The security policy for content other than PDF: a browser may do nothing but show it.
const SANDBOX: &str = "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; \
                       frame-ancestors 'self'";
/// The same for video and audio, with its own origin: the browser's player requests further parts by itself, and would get
/// neither an answer nor the cookie for an origin of its own. No script runs that could use the origin.
const PLAYER: &str = "sandbox allow-same-origin; default-src 'none'; media-src 'self'; style-src 'unsafe-inline'; \
                      frame-ancestors 'self'";
/// The security policy for PDF. Chromium's viewer does not work in a sandbox; it is isolated in its own process.
const PDF: &str = "script-src 'none'; object-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'self'";
/// Uses of the content as part of a program (Fetch Metadata, `Sec-Fetch-Dest`).
const PROGRAMS: [&str; 11] = [
    "script",
    "style",
    "object",
    "embed",
    "worker",
    "sharedworker",
    "serviceworker",
    "audioworklet",
    "paintworklet",
    "xslt",
    "manifest",
];

/// Returns whether a request may be answered although the share is exhausted: its visitor continues a download that was
/// counted. [`crate::Links::begin_share_download`] decides.
pub(crate) fn may_continue(visit: &Visit<'_>) -> bool {
    !visit.is_head() && visit.request.head.header("range").is_some()
}

/// Answers a request for the content. The share is active, or exhausted and [`may_continue`].
pub(crate) async fn content(visit: &Visit<'_>) -> Result<Reply, Refusal> {
    let head = &visit.request.head;
    if head.header_str("sec-fetch-dest").is_some_and(|used| PROGRAMS.contains(&used)) {
        return Err(refusals::destination());
    }
    if head.header_str("sec-purpose").is_some_and(|purpose| purpose.starts_with("prefetch")) {
        return Err(refusals::prefetch());
    }
    let visitor = visit.visitor()?;
    let (share, public) = (visit.share, visit.public);
    let object = &share.link.object;
    let bucket = public.bucket_of(object).map_err(refusals::of_engine)?;
    let is_exhausted = share.status_at(public.links.now()) == LinkStatus::Exhausted;
    let opened = public.engine.open_object(&bucket, &object.key, object.version, |info| {
        let plan = ReadPlan::of(head, info, public.links.now());
        let planned = if is_exhausted && !matches!(plan, ReadPlan::Part(_)) {
            Err(refusals::gone(LinkStatus::Exhausted))
        } else {
            response_head(visit, &plan, info)
        };
        let range = if visit.is_head() || planned.is_err() { 0..0 } else { plan.range() };
        (range, (plan, planned))
    });
    let (opened, (plan, headers)) = opened.map_err(|error| refuse_read(visit, error))?;
    let head = headers?;
    let range = plan.range();
    let length = range.end - range.start;
    let body = if plan == ReadPlan::NotModified {
        ResponseBody::Omitted { length: None }
    } else if visit.is_head() {
        ResponseBody::Omitted { length: Some(length) }
    } else if length == 0 {
        ResponseBody::Full(Vec::new())
    } else {
        let payload = StartedPayload::start(opened).await.map_err(|error| refuse_read(visit, error))?;
        let begun =
            public.links.begin_share_download(share, visitor, matches!(plan, ReadPlan::Part(_))).await;
        match begun.map_err(refusals::of_store)? {
            Download::Allowed => {}
            Download::Refused(status) => return Err(refusals::gone(status)),
        }
        payload.into_body(length, || {
            let audit = read_audit(visit);
            move |cause| audit.failed(&cause)
        })
    };
    record_read(visit).await?;
    Ok(Reply { head, body })
}

/// Records that a visitor saw the object, if reads of objects are recorded (`audit.data_events`).
pub(crate) async fn record_read(visit: &Visit<'_>) -> Result<(), Refusal> {
    if visit.public.audit.data_events() < DataEvents::All {
        return Ok(());
    }
    read_audit(visit).record_read().await.map_err(|failure| Refusal::unrecorded(&failure))
}

fn response_head(visit: &Visit<'_>, plan: &ReadPlan, info: &ObjectInfo) -> Result<ResponseHead, Refusal> {
    let ValidatorHeaders { etag, last_modified } = ValidatorHeaders::of(info);
    let mut head = ResponseHead::new(plan.status());
    head.header("etag", etag).header("last-modified", last_modified);
    match plan {
        ReadPlan::PreconditionFailed(_) => return Err(refusals::precondition_failed()),
        ReadPlan::Unsatisfiable { size } => return Err(refusals::range(*size)),
        ReadPlan::NotModified => return Ok(head),
        ReadPlan::Whole { .. } => {}
        ReadPlan::Part(part) => {
            head.header("content-range", part.content_range());
        }
    }
    let share = visit.share;
    let (content_type, class) = sent_type(&info.attributes);
    let key = share.link.object.key.to_string();
    let is_inline = share.disposition == Disposition::Inline && class != MediaClass::Other;
    head.header("content-type", content_type)
        .header("content-disposition", if is_inline { inline(&key) } else { attachment(&key) })
        .header("accept-ranges", "bytes")
        .header("content-security-policy", security_policy(class));
    // Without these headers, clients would misinterpret the bytes.
    for name in ["content-encoding", "content-language"] {
        if let Some(value) = stored_header(&info.attributes, name) {
            head.header(name, value);
        }
    }
    Ok(head)
}

const fn security_policy(class: MediaClass) -> &'static str {
    match class {
        MediaClass::Video | MediaClass::Audio => PLAYER,
        MediaClass::Pdf => PDF,
        MediaClass::Image | MediaClass::Text | MediaClass::Other => SANDBOX,
    }
}

/// Returns the type that is sent, and its class.
fn sent_type(attributes: &Attributes) -> (String, MediaClass) {
    let stored = stored_content_type(attributes);
    let class = MediaClass::of(&stored);
    (MediaClass::shown_content_type(&stored).unwrap_or(stored), class)
}

fn read_audit(visit: &Visit<'_>) -> ReadAudit {
    let (audit, operation) = (&visit.public.audit, visit.page.operation());
    ReadAudit::new(audit, visit.request, operation, LinkKind::Share, &visit.share.link)
        .with_request_id(visit.id)
}

/// Maps an error of a read. Damaged data and failures of the device are logged and audited.
fn refuse_read(visit: &Visit<'_>, error: EngineError) -> Refusal {
    if let EngineError::Corrupt(_) | EngineError::Io(_) = error {
        read_audit(visit).failed(&error.to_string());
        return refusals::internal();
    }
    refusals::of_engine(error)
}

#[cfg(test)]
mod tests {
    use super::{Attributes, MediaClass, sent_type};

    #[test]
    fn types_that_are_shown_have_no_parameters() {
        for (stored, sent, class) in [
            ("image/png;x, text/html", "image/png", MediaClass::Image),
            ("text/markdown; charset=latin1", "text/plain; charset=utf-8", MediaClass::Text),
            ("Application/PDF;x", "application/pdf", MediaClass::Pdf),
            ("text/html; charset=utf-8", "text/html; charset=utf-8", MediaClass::Other),
        ] {
            let headers = vec![("content-type".to_owned(), stored.as_bytes().to_vec())];
            let attributes = Attributes { headers, ..Attributes::default() };
            assert_eq!(sent_type(&attributes), (sent.to_owned(), class), "{stored}");
        }
    }
}
