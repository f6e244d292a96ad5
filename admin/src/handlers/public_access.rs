//! The routes of public access: the rules of a bucket, and all that is public.

use cairn_api::{PublicAccess as Body, PublicBucketRule, PublicRule as RuleBody};
use cairn_engine::{
    Bucket, BucketChange, NewPublicRules, PUBLIC_PREFIXES_BYTES_MAX, PUBLIC_RULES_MAX, PublicAccess,
    PublicAccessBlock, public_rules_text,
};
use cairn_model::{Clock, OBJECT_KEY_BYTES_MAX, SystemClock};
use http::StatusCode;
use std::sync::Arc;

use crate::call::Call;
use crate::error::AdminError;
use crate::limits::LIST_YIELD_ENTRIES;
use crate::reply::{Reply, list_with};

fn body_of(access: Option<&PublicAccess>) -> Body {
    let rules = access.map_or(&[][..], |access| &access.rules);
    let rule = |rule: &cairn_engine::PublicRule| RuleBody {
        prefix: rule.prefix.to_string().into(),
        read: true,
        list: rule.list,
    };
    Body { rules: rules.iter().map(rule).collect(), blocked: access.is_some_and(PublicAccess::is_blocked) }
}

/// `GET /api/v1/buckets/{bucket}/public-access`.
pub(crate) async fn get(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    Reply::json(StatusCode::OK, &body_of(call.bucket()?.public_access().as_deref()))
}

/// `PUT /api/v1/buckets/{bucket}/public-access`: replaces all rules. While public access is disabled, rules can only be
/// removed.
pub(crate) async fn set(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let body: Body = call.json().await?;
    let prefixes = checked(&body)?;
    let before = bucket.public_access();
    let is_known = |(prefix, list): &(Box<str>, bool)| {
        let rules = before.as_deref().map_or(&[][..], |before| &before.rules);
        rules.iter().any(|rule| rule.prefix == *prefix && rule.list == *list)
    };
    if !call.context.capabilities.public_access && !prefixes.iter().all(is_known) {
        return Err(AdminError::PublicAccessDisabled);
    }
    let block = changed_block(before.as_deref().and_then(|before| before.block), body.blocked);
    let detail = described(&prefixes, body.blocked);
    let created_by = Arc::from(&*call.caller()?.principal);
    let rules = NewPublicRules { prefixes, created_at: SystemClock.now(), created_by, policy: None };
    let change = BucketChange::PublicAccess { rules: Some(rules), block };
    call.store()?.change_bucket(&bucket, change).await?;
    Ok(Reply::json(StatusCode::OK, &body)?.detail(detail))
}

/// Returns the block that a request sets, if it changes it. While the management API blocks a bucket, all flags are true. The
/// end of a block that an S3 client has put ends `RestrictPublicBuckets` alone.
fn changed_block(before: Option<PublicAccessBlock>, blocked: bool) -> Option<Option<PublicAccessBlock>> {
    let was_blocked = before.is_some_and(|block| block.restrict_public_buckets);
    match before {
        _ if was_blocked == blocked => None,
        _ if blocked => Some(Some(PublicAccessBlock::ALL)),
        Some(block) if block != PublicAccessBlock::ALL => {
            Some(Some(PublicAccessBlock { restrict_public_buckets: false, ..block }))
        }
        _ => Some(None),
    }
}

/// Checks the rules of a request, and returns their prefixes.
pub(crate) fn checked(body: &Body) -> Result<Vec<(Box<str>, bool)>, AdminError> {
    let invalid = |index: usize, why: &str| AdminError::invalid(format!("rules[{index}].{why}"));
    if body.rules.len() > PUBLIC_RULES_MAX {
        return Err(AdminError::invalid(format!("rules: a bucket has at most {PUBLIC_RULES_MAX} rules")));
    }
    let mut prefixes: Vec<(Box<str>, bool)> = Vec::with_capacity(body.rules.len());
    for (index, RuleBody { prefix, read, list }) in body.rules.iter().enumerate() {
        if !read {
            return Err(invalid(index, "read: it must be true; leave the rule out to end it"));
        }
        if prefix.len() > OBJECT_KEY_BYTES_MAX {
            return Err(invalid(index, &format!("prefix: it has more than {OBJECT_KEY_BYTES_MAX} bytes")));
        }
        if prefixes.iter().any(|(known, _)| **known == **prefix) {
            return Err(invalid(index, "prefix: an earlier rule has it"));
        }
        prefixes.push(((**prefix).into(), *list));
    }
    if prefixes.iter().map(|(prefix, _)| prefix.len()).sum::<usize>() > PUBLIC_PREFIXES_BYTES_MAX {
        let message =
            format!("rules: the prefixes have more than {PUBLIC_PREFIXES_BYTES_MAX} bytes together");
        return Err(AdminError::invalid(message));
    }
    Ok(prefixes)
}

/// Describes the rules for the audit record.
fn described(prefixes: &[(Box<str>, bool)], blocked: bool) -> String {
    format!("{}{}", public_rules_text(prefixes), if blocked { "; blocked" } else { "" })
}

/// `GET /api/v1/public-access`: all that is public.
pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let enabled = call.context.capabilities.public_access;
    let mut entries = Vec::new();
    for bucket in call.store()?.buckets() {
        if let Some(access) = bucket.public_access() {
            entries.extend((0..access.rules.len()).map(|index| (bucket.clone(), access.clone(), index)));
        }
    }
    let body = move |(bucket, access, index): &(Arc<Bucket>, Arc<PublicAccess>, usize)| {
        let rule = &access.rules[*index];
        PublicBucketRule {
            bucket: bucket.name.to_string().into(),
            prefix: rule.prefix.to_string().into(),
            read: true,
            list: rule.list,
            effective: enabled && !access.is_blocked(),
            created_at: rule.created_at.into(),
            created_by: rule.created_by.to_string(),
        }
    };
    let tail = format!(",\"enabled\":{enabled}").into_bytes();
    Ok(list_with("rules", entries, LIST_YIELD_ENTRIES, body, tail))
}
