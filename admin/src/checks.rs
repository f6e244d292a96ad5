//! Checks of request values, for clients that check before they send.
//!
//! Each function judges a value by itself, with the code and the words of the route that accepts it. What depends on the
//! content of a store or on its settings is left to the server.

use cairn_api::{
    ByteQuota, CorsRule, CreateWebhook, DefaultRetention, GivenCredential, ObjectQuota, PolicyDocument,
    PublicAccess, SetLifecycleRule,
};
use cairn_cors::{CONFIGURATION_BYTES_MAX, Rules};
use cairn_engine::RuleId;
use cairn_engine::limits::LIFECYCLE_RULES_MAX;
use cairn_identity::policy::{Policy, validate_description, validate_name};
use cairn_model::{OBJECT_KEY_BYTES_MAX, Timestamp};
use cairn_webhooks::destination::TargetUrl;

use crate::error::AdminError;
use crate::handlers::{accounts, buckets, cors, lifecycle, object_lock, policies, public_access, webhooks};
use crate::request::names;

/// The result of a check: a sentence with the reason of a refusal.
pub type Checked<T = ()> = Result<T, String>;

fn checked<T>(result: Result<T, AdminError>) -> Checked {
    result.map(drop).map_err(|error| error.message())
}

/// Checks the name of a bucket.
///
/// # Errors
/// The rule that it breaks.
pub fn bucket_name(name: &str) -> Checked {
    checked(names::bucket_name(name))
}

/// Checks a limit on bytes.
///
/// # Errors
/// Its mode and its number contradict each other, or it is too large.
pub fn byte_quota(quota: &ByteQuota) -> Checked {
    checked(buckets::limit(quota.mode, "bytes", quota.bytes))
}

/// Checks a limit on objects.
///
/// # Errors
/// Its mode and its number contradict each other, or it is too large.
pub fn object_quota(quota: &ObjectQuota) -> Checked {
    checked(buckets::limit(quota.mode, "objects", quota.objects))
}

/// Checks a default retention.
///
/// # Errors
/// It has no period, two periods, or one out of range.
pub fn default_retention(retention: &DefaultRetention) -> Checked {
    checked(object_lock::checked(retention))
}

/// Checks the CORS rules of a bucket, of which there may be none.
///
/// # Errors
/// The first rule and member that is not valid in a server of this mode, or the limit that is exceeded.
pub fn cors_rules(rules: Vec<CorsRule>, s3_compatibility: &str) -> Checked {
    if rules.is_empty() {
        return Ok(());
    }
    let rules: Vec<_> = rules.into_iter().map(cors::rule_of).collect();
    let rules = Rules::new(rules, cors::matching(s3_compatibility))
        .map_err(|error| cors::refusal(error).message())?;
    if rules.encode().len() > CONFIGURATION_BYTES_MAX {
        return Err(format!("the CORS rules of a bucket have at most {CONFIGURATION_BYTES_MAX} bytes"));
    }
    Ok(())
}

/// Checks a lifecycle rule.
///
/// # Errors
/// The member that is not valid, or that the rule does nothing.
pub fn lifecycle_rule(rule: SetLifecycleRule) -> Checked {
    let now = Timestamp::default();
    let id = RuleId::new(now).map_err(|error| error.to_string())?;
    checked(lifecycle::rule_of(rule, id, now))
}

/// Checks the number of lifecycle rules of a bucket.
///
/// # Errors
/// There are too many.
pub fn lifecycle_rule_count(count: usize) -> Checked {
    if count <= LIFECYCLE_RULES_MAX {
        return Ok(());
    }
    Err(format!("a bucket can have {LIFECYCLE_RULES_MAX} lifecycle rules"))
}

/// Checks the rules of public access of a bucket.
///
/// # Errors
/// The first rule and member that is not valid, or the limit that is exceeded.
pub fn public_rules(access: &PublicAccess) -> Checked {
    checked(public_access::checked(access))
}

/// Checks the name of an account or a policy.
///
/// # Errors
/// The rule that it breaks.
pub fn name(name: &str) -> Checked {
    validate_name(name).map_err(|error| error.to_string())
}

/// Checks the description of an account or a policy.
///
/// # Errors
/// It is too long.
pub fn description(description: &str) -> Checked {
    validate_description(description).map_err(|error| error.to_string())
}

/// Checks keys that a client gives. The message contains neither.
///
/// # Errors
/// The key that is not valid.
pub fn given_credential(credential: GivenCredential) -> Checked {
    checked(accounts::keys(credential))
}

/// Checks the document of a policy. Returns it as a server returns it: with networks in their canonical form.
///
/// # Errors
/// The first member that is not valid, with its path and its value.
pub fn policy(document: PolicyDocument) -> Checked<PolicyDocument> {
    let policy = Policy::from_draft(&policies::draft(document)).map_err(|error| error.to_string())?;
    let draft = policy.to_draft();
    Ok(PolicyDocument {
        name: draft.name.into(),
        description: draft.description.into(),
        statements: draft.statements.into_iter().map(policies::statement_body).collect(),
    })
}

/// Checks a new webhook. Whether its target is allowed depends on the settings of a server.
///
/// # Errors
/// The first member that is not valid. The message does not contain the target.
pub fn webhook(webhook: &CreateWebhook) -> Checked {
    TargetUrl::parse(&webhook.target_url).map_err(|error| format!("target_url: {error}"))?;
    checked(webhooks::event_types(&webhook.event_types))?;
    if let Some(bucket) = &webhook.bucket_filter {
        bucket_name(bucket).map_err(|error| format!("bucket_filter: {error}"))?;
    }
    match &webhook.object_prefix_filter {
        Some(prefix) if prefix.len() > OBJECT_KEY_BYTES_MAX => {
            Err(format!("object_prefix_filter must have at most {OBJECT_KEY_BYTES_MAX} bytes"))
        }
        _ => Ok(()),
    }
}
