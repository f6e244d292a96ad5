//! Adds records of the audit trail to a history: client addresses, created and deleted links.

use std::collections::HashMap;
use std::time::Instant;

use cairn_api::HistoryKind;
use cairn_engine::Tick;
use cairn_identity::{Role, Standing};
use cairn_model::{BucketName, ObjectKey, Timestamp};
use cairn_observe::{AUDIT_PAGE_EVENTS_MAX, AuditEvent, AuditQuery, AuditResult};
use cairn_sharing::LinkId;

use super::entries::Entry;
use crate::call::Call;
use crate::error::AdminError;
use crate::limits::{HISTORY_AUDIT_PAGES_MAX, HISTORY_TIME_MAX};

/// The operations that create links.
const CREATE_SHARE: &str = "create_share";
const CREATE_EMBED: &str = "create_embed";

/// Returns whether the caller may read the audit trail. Others get a history without it.
pub(super) fn may_read(call: &Call<'_, '_>) -> bool {
    call.caller
        .is_some_and(|caller| matches!(caller.standing, Standing::Role(Role::SystemAdmin | Role::Auditor)))
}

/// Adds what the trail says of an object since a time. Returns whether all of it was read.
///
/// # Errors
/// `NOT_READY` if too many queries wait.
pub(super) async fn add(
    call: &Call<'_, '_>,
    bucket: &BucketName,
    key: &ObjectKey,
    since: Timestamp,
    history: &mut Vec<Entry>,
) -> Result<bool, AdminError> {
    let (log, begun) = (call.audit_log()?, Instant::now());
    let mut query = AuditQuery {
        since: Some(since),
        resource: Some(format!("{bucket}/{key}")),
        result: Some(AuditResult::Allowed),
        limit: AUDIT_PAGE_EVENTS_MAX,
        ..AuditQuery::default()
    };
    for _ in 0..HISTORY_AUDIT_PAGES_MAX {
        let page = log.page(query.clone()).await?;
        join(history, page.events);
        match page.next {
            None => return Ok(true),
            _ if begun.elapsed() >= HISTORY_TIME_MAX => break,
            next => query.after = next,
        }
    }
    Ok(false)
}

/// Joins records with the entries of their requests and links, and adds entries of links that no longer exist.
fn join(history: &mut Vec<Entry>, records: Vec<AuditEvent>) {
    let mut of_request: HashMap<String, Vec<usize>> = HashMap::new();
    let mut of_link = HashMap::new();
    for (index, entry) in history.iter().enumerate() {
        if let Some(id) = &entry.request_id {
            of_request.entry(id.clone()).or_default().push(index);
        }
        if let Some(link) = entry.link {
            of_link.insert(link, index);
        }
    }
    for AuditEvent { id, record } in records {
        let source_ip = record.source_ip.map(|address| address.to_string());
        let kind = match record.operation.as_str() {
            CREATE_SHARE => HistoryKind::Shared,
            CREATE_EMBED => HistoryKind::Embedded,
            _ => {
                for index in of_request.get(&record.request_id).into_iter().flatten() {
                    history[*index].source_ip.clone_from(&source_ip);
                }
                continue;
            }
        };
        let known = |text: String| Some(text).filter(|text| !text.is_empty());
        let request_id = known(record.request_id);
        // The detail names the link.
        let link = record.detail.split([' ', ':']).find_map(LinkId::parse);
        match link.and_then(|link| of_link.get(&link)) {
            Some(index) => (history[*index].request_id, history[*index].source_ip) = (request_id, source_ip),
            None => history.push(Entry {
                principal: known(record.principal),
                request_id,
                source_ip,
                ..Entry::new(Tick::first_at(id.time()), kind)
            }),
        }
    }
}
