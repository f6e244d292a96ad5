//! Routes of the audit trail and refused requests.

use cairn_api::*;

use super::Route;
use super::row::*;
use crate::handlers::{audit_events, refused_requests};

pub(super) static ROUTES: &[Route] = &[
    get("/api/v1/audit/events", OVERSIGHT, "list_audit_events")
        .summary("Queries the audit trail, the latest event first.")
        .query(&[
            optional::<Time>("since"),
            optional::<Time>("until"),
            optional::<String>("principal"),
            repeated::<OperationNames>("operation"),
            optional::<String>("resource"),
            optional::<String>("bucket"),
            optional::<String>("key"),
            optional::<AuditResult>("result"),
            optional::<IpAddress>("source_ip"),
            optional::<String>("request_id"),
            optional::<ContainedText>("contains"),
            optional::<Time>("after_time"),
            optional::<Id>("after_id"),
            optional::<PageLimit>("limit"),
        ])
        .answers(&[ok::<AuditPage>()], &[(400, "INVALID_AUDIT_CURSOR")])
        .handler(boxed!(audit_events::events)),
    get("/api/v1/refused-requests", OVERSIGHT, "list_refused_requests")
        .summary("Lists the last refused S3 requests in memory, the latest first, with what would help.")
        .query(&[
            optional::<IpAddress>("client"),
            optional::<String>("code"),
            optional::<String>("bucket"),
            optional::<String>("principal"),
            optional::<PageLimit>("limit"),
        ])
        .answers(&[ok::<RefusedRequestList>()], &[])
        .handler(boxed!(refused_requests::list)),
    get("/api/v1/refused-requests/{request_id}", OVERSIGHT, "get_refused_request")
        .summary("Shows one refused S3 request.")
        .answers(&[ok::<RefusedRequest>()], &[(404, "REFUSED_REQUEST_NOT_FOUND")])
        .handler(boxed!(refused_requests::get)),
];
