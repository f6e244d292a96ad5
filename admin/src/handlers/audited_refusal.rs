//! Explains a refused request from the audit trail.
//!
//! The request is no longer in memory: the server was restarted, or has refused many others since.
//!
//! The trail has who was denied what, and why in words. It has neither the response nor the client's program, so these
//! are null.

use cairn_api::{MissingRight, RefusalRule, RefusedRequest};
use cairn_observe::{AUDIT_PAGE_EVENTS_DEFAULT, AuditEvent, AuditQuery, AuditRecord, AuditResult};

use crate::call::Call;
use crate::error::AdminError;

const ADVICE: &str = "The server was restarted since, or has refused many other requests, so only the audit trail knows this one. \
                      `cairn policy check` says what an account may do now; the client's next request is explained in full.";

/// Finds the denial of a request in the audit trail. Reads the trail a page at a time, from its latest event to its oldest,
/// until the denial is found or the client disconnects.
///
/// # Errors
/// `REFUSED_REQUEST_NOT_FOUND`, and those of reading the trail.
pub(super) async fn find(call: &Call<'_, '_>, request_id: &str) -> Result<RefusedRequest, AdminError> {
    let log = call.audit_log()?;
    let mut query = AuditQuery {
        request_id: Some(request_id.to_owned()),
        result: Some(AuditResult::Denied),
        limit: AUDIT_PAGE_EVENTS_DEFAULT,
        ..AuditQuery::default()
    };
    loop {
        let page = async { log.page(query.clone()).await.map_err(AdminError::from) };
        let page = call.wait_for_read(page).await?;
        if let Some(body) = page.events.iter().find_map(body) {
            return Ok(body);
        }
        query.after = Some(page.next.ok_or(AdminError::RefusedRequestNotFound)?);
    }
}

/// Returns the JSON form of a denial of the data plane; `None` for any other event.
fn body(event: &AuditEvent) -> Option<RefusedRequest> {
    let record = &event.record;
    // Operations of S3 have upper-case names, and none if the request was refused before it was routed.
    let is_s3 = record.role.is_empty() && record.operation.chars().next().is_none_or(char::is_uppercase);
    let client = record.source_ip.filter(|_| is_s3)?;
    let known = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let Detail { code, because, access_key } = Detail::parse(&record.detail);
    let right = because.and_then(|because| missing_right(because, &record.resource));
    let is_authenticated = record.principal != AuditRecord::ANONYMOUS;
    let refused_by = match (&right, is_authenticated) {
        (Some(_), _) => "policy",
        (None, false) => "authentication",
        (None, true) => "request",
    };
    let (bucket, key) = record.resource.split_once('/').unwrap_or((&record.resource, ""));
    Some(RefusedRequest {
        time: event.id.time().into(),
        request_id: record.request_id.clone(),
        client: client.to_string().into(),
        user_agent: None,
        principal: known(&record.principal).filter(|_| is_authenticated),
        access_key: access_key.map(str::to_owned),
        method: None,
        operation: known(&record.operation),
        bucket: known(bucket),
        key: known(key),
        status: None,
        code: code.to_owned(),
        message: because.map(str::to_owned),
        refused_by: refused_by.into(),
        right,
        decided_by: RefusalRule { kind: refused_by.into(), ..RefusalRule::default() },
        setting: None,
        advice: Some(ADVICE.to_owned()),
    })
}

/// The parts of a detail: `CODE: reason; access key KEY`, each after the code optional.
#[derive(PartialEq, Eq, Debug)]
struct Detail<'d> {
    code: &'d str,
    because: Option<&'d str>,
    access_key: Option<&'d str>,
}

impl<'d> Detail<'d> {
    fn parse(detail: &'d str) -> Self {
        const ACCESS_KEY: &str = "access key ";
        let (rest, last) = detail.rsplit_once("; ").unwrap_or((detail, ""));
        let (text, access_key) = match last.strip_prefix(ACCESS_KEY) {
            Some(key) => (rest, Some(key)),
            None => (detail, None),
        };
        let (code, because) = match text.split_once(": ") {
            Some((code, because)) => (code, Some(because)),
            None => (text, None),
        };
        match because.and_then(|because| because.strip_prefix(ACCESS_KEY)) {
            // The access key that a wrong signature claims.
            Some(claimed) => Self { code, because: None, access_key: Some(claimed) },
            None => Self { code, because, access_key },
        }
    }
}

/// Returns the right that a reason names: `no policy allows ACTION on the object`.
fn missing_right(because: &str, resource: &str) -> Option<MissingRight> {
    let allowed = because.strip_prefix("no policy allows ");
    let restricted = because.strip_prefix("only_if_absent restricts ");
    let restricted = restricted.and_then(|because| because.strip_suffix(" to new objects"));
    let named = allowed.or(restricted).or_else(|| because.strip_prefix("a policy denies "))?;
    let (action, what) = named.split_once(" on ")?;
    let place = match what {
        "the object" => resource,
        "the bucket" => resource.split_once('/').map_or(resource, |(bucket, _)| bucket),
        _ => return None,
    };
    Some(MissingRight {
        action: action.to_owned(),
        resource: format!("bucket:{place}"),
        denied_explicitly: allowed.or(restricted).is_none(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_divided_into_their_parts() {
        for (detail, code, because, access_key) in [
            (
                "AccessDenied: no policy allows s3:GetObject on the object; access key AK",
                "AccessDenied",
                Some("no policy allows s3:GetObject on the object"),
                Some("AK"),
            ),
            ("AccessDenied", "AccessDenied", None, None),
            ("AccessDenied; access key AK", "AccessDenied", None, Some("AK")),
            ("SignatureDoesNotMatch: access key AK", "SignatureDoesNotMatch", None, Some("AK")),
            ("AccessDenied: one; two", "AccessDenied", Some("one; two"), None),
            ("", "", None, None),
        ] {
            assert_eq!(Detail::parse(detail), Detail { code, because, access_key }, "{detail}");
        }
    }

    #[test]
    fn the_missing_right_is_read_from_the_reason() {
        let right = |because: &str| {
            missing_right(because, "photos/a/b")
                .map(|right| (right.action, right.resource, right.denied_explicitly))
        };
        let of = |resource: &str, denied| Some(("s3:GetObject".to_owned(), resource.to_owned(), denied));
        assert_eq!(right("no policy allows s3:GetObject on the object"), of("bucket:photos/a/b", false));
        assert_eq!(right("a policy denies s3:GetObject on the bucket"), of("bucket:photos", true));
        assert_eq!(right("a signature within the body is wrong"), None);
    }
}
