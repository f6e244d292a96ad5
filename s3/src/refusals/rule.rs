//! Finds the rule that refused a request, and its values.
//!
//! It is looked up right after the refusal, so accepted requests pay nothing. A rule that was changed in between and does not
//! refuse the request any more is not named.

use crate::compatibility::Compatibility;
use crate::cors::responses::cross_origin;
use crate::errors::S3Error;
use crate::headers::version;
use crate::request::query::Query;
use crate::request::target::Target;
use cairn_cors::{Mismatch, Rules};
use cairn_engine::{Bucket, Engine};
use cairn_http1::RequestHead;
use cairn_observe::{CorsMismatch, DecidingRule, QuotaFact, RefusedBy};
use std::sync::Arc;

/// Returns the rule that decided; `None` if the error says it, or it cannot be found any more.
pub(super) fn deciding_rule(
    refused_by: RefusedBy,
    error: &S3Error,
    engine: &Engine,
    mode: Compatibility,
    target: Option<&Target>,
    head: &RequestHead,
) -> Option<DecidingRule> {
    let bucket = target.and_then(|target| target.bucket().ok()).and_then(|name| engine.store().bucket(&name));
    match refused_by {
        RefusedBy::Quota => bucket.map(|bucket| quota(&bucket)),
        RefusedBy::ObjectLock => object_lock(engine, &bucket?, target?, head),
        RefusedBy::CorsRules => Some(cors_rules(bucket.as_deref(), mode, head)),
        RefusedBy::Request => {
            let name = error.elements().iter().find(|(name, _)| *name == "ArgumentName");
            name.map(|(_, argument)| DecidingRule::Argument(argument.clone()))
        }
        RefusedBy::Authentication | RefusedBy::Policy | RefusedBy::NotImplemented | RefusedBy::Storage => {
            None
        }
    }
}

fn quota(bucket: &Bucket) -> DecidingRule {
    let (quota, usage) = (bucket.settings().quota, bucket.usage());
    DecidingRule::Quota {
        bytes: QuotaFact { limit: quota.bytes, used: usage.bytes },
        objects: QuotaFact { limit: quota.objects, used: usage.objects },
    }
}

fn object_lock(
    engine: &Engine,
    bucket: &Arc<Bucket>,
    target: &Target,
    head: &RequestHead,
) -> Option<DecidingRule> {
    let query = Query::parse(head.query()).ok()?;
    let requested = version::requested(&query).ok()?;
    let info = engine.head_object(bucket, &target.key().ok()?, requested).ok()?;
    let retention = info.lock.retention.map(|found| (found.mode.name(), found.until));
    let legal_hold = info.lock.legal_hold == Some(true);
    (legal_hold || retention.is_some()).then(|| DecidingRule::ObjectLock {
        version_id: info.version_name().to_string(),
        retention,
        legal_hold,
    })
}

fn cors_rules(bucket: Option<&Bucket>, mode: Compatibility, head: &RequestHead) -> DecidingRule {
    let Some(bucket) = bucket else {
        return DecidingRule::CorsRules { rules: 0, mismatch: Some(CorsMismatch::Bucket) };
    };
    let rules = bucket.settings().cors.as_deref().and_then(Rules::decode).unwrap_or_default();
    let mismatch = cross_origin(head).map(|asked| match rules.mismatch(asked, mode.origin_matching()) {
        Mismatch::Origin => CorsMismatch::Origin,
        Mismatch::Method => CorsMismatch::Method,
        Mismatch::Headers => CorsMismatch::Headers,
    });
    let rules = rules.rules().len();
    DecidingRule::CorsRules { rules, mismatch: mismatch.filter(|_| rules > 0) }
}
