//! The resources of the management plane: a row for each kind, with its names, routes and columns.

use cairn_api::{
    AttachedPolicy, BoundPolicy, Bucket, Credential, Embed, LifecycleRule, ManagementToken, Policy,
    ServiceAccount, Share, Tag, Webhook, WebhookHealth,
};

use crate::client::resource::{Resource, is_id};
use crate::client::{Client, Request, read};
use crate::commands::statement::statement_text;
use crate::failure::Failure;
use crate::output::table::{Columns, bytes, joined, limit, table, text, words};
use crate::quantity::counted;
use crate::terminal::plain;

pub(crate) const BUCKETS: Resource<Bucket> = Resource {
    noun: "bucket",
    command: "bucket list",
    path: "/api/v1/buckets",
    member: "buckets",
    columns: &[
        ("name", |bucket| text(&bucket.name)),
        ("created", |bucket| text(&bucket.created_at)),
        ("versioning", |bucket| text(&bucket.versioning)),
        ("lock", |bucket| text(&bucket.object_lock)),
        ("object lock", |bucket| text(&bucket.object_lock)),
        ("objects", |bucket| text(&bucket.usage.objects)),
        ("size", |bucket| bytes(&bucket.usage.bytes)),
        ("objects limit", |bucket| limit(bucket.quota.objects.objects, text)),
        ("size limit", |bucket| limit(bucket.quota.bytes.bytes, bytes)),
    ],
    listed: "name, created, versioning, lock, objects, size",
    shown: "name, created, versioning, object lock",
    ..Resource::DEFAULT
};

/// The limits of buckets, which are shown with what is used of them.
pub(crate) const QUOTAS: Resource<Bucket> =
    Resource { shown: "objects, objects limit, size, size limit", ..BUCKETS };

pub(crate) const LIFECYCLE_RULES: Resource<LifecycleRule> = Resource {
    noun: "lifecycle rule",
    path: "/api/v1/lifecycle-rules",
    member: "rules",
    columns: &[
        ("id", |rule| text(&rule.id)),
        ("prefix", |rule| text(&rule.prefix)),
        ("tags", |rule| tags_text(&rule.tags)),
        ("expire after", |rule| days_text(rule.expiration)),
        ("noncurrent after", |rule| days_text(rule.noncurrent_version_expiration)),
        ("keep", |rule| text(&rule.newer_noncurrent_versions)),
        ("markers", |rule| text(&rule.expired_delete_markers)),
        ("abort uploads after", |rule| days_text(rule.abort_incomplete_multipart_upload)),
        ("enabled", |rule| text(&rule.enabled)),
        ("expired", |rule| text(&rule.status.expired_objects)),
        ("versions removed", |rule| text(&rule.status.noncurrent_versions_removed)),
        ("uploads aborted", |rule| text(&rule.status.multipart_uploads_aborted)),
        ("freed", |rule| bytes(&rule.status.bytes_freed)),
        ("locked", |rule| text(&rule.status.skipped_locked)),
        ("next due", |rule| text(&rule.status.next_due_at)),
        ("last error", |rule| text(&rule.status.last_error)),
    ],
    ..Resource::DEFAULT
};

fn days_text(days: Option<u32>) -> String {
    days.map_or_else(|| "never".to_owned(), |days| counted(days.into(), "day"))
}

/// Formats tags as the options of commands are written.
pub(super) fn tags_text(tags: &[Tag]) -> String {
    let tag = |tag: &Tag| format!("{}={}", tag.key.replace('=', "%3D"), tag.value);
    tags.iter().map(tag).collect::<Vec<_>>().join(", ")
}

pub(crate) const ACCOUNTS: Resource<ServiceAccount> = Resource {
    noun: "service account",
    command: "service-account list",
    path: "/api/v1/service-accounts",
    member: "service_accounts",
    locate: Resource::by_id_or_name,
    columns: &[
        ("id", |account| text(&account.id)),
        ("name", |account| text(&account.name)),
        ("enabled", |account| text(&account.enabled)),
        ("credentials", |account| account.credentials.len().to_string()),
        ("policies", |account| account.policies.len().to_string()),
        ("created", |account| text(&account.created_at)),
        ("description", |account| text(&account.description)),
    ],
    shown: "id, name, description, enabled, created",
    details: |account| {
        let policies: Columns<AttachedPolicy> =
            &[("policy", |policy| text(&policy.id)), ("name", |policy| text(&policy.name))];
        let credentials = table(CREDENTIALS.columns, &account.credentials);
        format!("\n{credentials}\n{}", table(policies, &account.policies))
    },
    ..Resource::DEFAULT
};

/// The credentials of an account. One is named by the account, and by its own id or access key.
pub(crate) const CREDENTIALS: Resource<Credential> = Resource {
    noun: "credential",
    command: "service-account show",
    locate: credential_path,
    columns: &[
        ("credential", |credential| text(&credential.id)),
        ("access key", |credential| text(&credential.access_key)),
        ("enabled", |credential| text(&credential.enabled)),
        ("created", |credential| text(&credential.created_at)),
        ("expires", |credential| text(&credential.expires_at)),
        ("last used", |credential| text(&credential.last_used_at)),
    ],
    ..Resource::DEFAULT
};

fn credential_path(kind: &Resource<Credential>, client: &Client, names: &[&str]) -> Result<String, Failure> {
    let [account, credential] = *names else {
        unreachable!("commands on credentials take an account and a credential: {names:?}")
    };
    let account = ACCOUNTS.by_id_or_name(client, &[account])?;
    if is_id(credential) {
        return Ok(format!("{account}/credentials/{credential}"));
    }
    let shown: ServiceAccount = read(&client.call(&Request::get(account.as_str()))?)?;
    let found = shown.credentials.iter().find(|one| *one.access_key == *credential && is_id(&one.id));
    let found = found.ok_or_else(|| {
        format!(
            "the account has no credential with the id or access key {credential}\n  \
             `cairn {}` shows its credentials",
            kind.command
        )
    })?;
    Ok(format!("{account}/credentials/{}", found.id))
}

pub(crate) const POLICIES: Resource<BoundPolicy> = Resource {
    noun: "policy",
    command: "policy list",
    path: "/api/v1/policies",
    member: "policies",
    locate: Resource::by_id_or_name,
    columns: &[
        ("id", |bound| text(&bound.policy.id)),
        ("name", |bound| text(&bound.policy.name)),
        ("statements", |bound| bound.policy.statements.len().to_string()),
        ("accounts", |bound| bound.attached_to.len().to_string()),
        ("created", |bound| text(&bound.policy.created_at)),
        ("description", |bound| text(&bound.policy.description)),
    ],
    shown: "id, name, description, created",
    details: |bound| {
        let accounts: String = bound.attached_to.iter().map(|id| format!("  {}\n", plain(id))).collect();
        format!("{}attached to:\n{accounts}", statements_text(&bound.policy))
    },
    ..Resource::DEFAULT
};

/// Formats the statements of a policy.
pub(super) fn statements_text(policy: &Policy) -> String {
    let statements = policy.statements.iter().map(|one| format!("  {}\n", statement_text(one)));
    "statements:\n".to_owned() + &statements.collect::<String>()
}

pub(crate) const TOKENS: Resource<ManagementToken> = Resource {
    noun: "management token",
    command: "token list",
    path: "/api/v1/management-tokens",
    member: "management_tokens",
    locate: Resource::by_id_or_name,
    columns: &[
        ("id", |token| text(&token.id)),
        ("name", |token| text(&token.name)),
        ("role", |token| text(&token.role)),
        ("created", |token| text(&token.created_at)),
        ("expires", |token| text(&token.expires_at)),
    ],
    ..Resource::DEFAULT
};

pub(crate) const WEBHOOKS: Resource<Webhook> = Resource {
    noun: "webhook",
    path: "/api/v1/webhooks",
    member: "webhooks",
    columns: &[
        ("id", |webhook| text(&webhook.id)),
        ("target", |webhook| text(&webhook.target_url)),
        ("events", |webhook| joined(&webhook.event_types, ", ")),
        ("bucket", |webhook| text(&webhook.bucket_filter)),
        ("prefix", |webhook| text(&webhook.object_prefix_filter)),
        ("enabled", |webhook| text(&webhook.enabled)),
        ("created", |webhook| text(&webhook.created_at)),
        ("health", |webhook| words(&webhook.health.state)),
        ("failures in a row", |webhook| text(&webhook.health.consecutive_failures)),
        ("last success", |webhook| text(&webhook.health.last_success_at)),
        ("last error", |webhook| text(&webhook.health.last_error)),
        ("pending", |webhook| text(&webhook.health.pending)),
        ("oldest pending", |webhook| text(&webhook.health.oldest_pending_at)),
        ("lost", |webhook| text(&webhook.health.lost)),
        ("lost since", |webhook| text(&webhook.health.lost_since)),
    ],
    listed: "id, target, events, bucket, prefix, enabled, health, pending, lost",
    details: |webhook| {
        let WebhookHealth { lost, redeliver_command, .. } = &webhook.health;
        redeliver_command.as_ref().map_or_else(String::new, |command| {
            let (events, again) = (
                counted(*lost, "event"),
                if *lost == 1 { "This sends it again" } else { "This sends them again" },
            );
            format!("\n{events} could not be delivered. {again}:\n  {}\n", plain(command))
        })
    },
    disabled: "is disabled; its pending deliveries were dropped",
    ..Resource::DEFAULT
};

pub(crate) const SHARES: Resource<Share> = Resource {
    noun: "share",
    path: "/api/v1/shares",
    member: "shares",
    columns: &[
        ("id", |share| text(&share.id)),
        ("object", |share| object(&share.bucket, &share.key)),
        ("version", |share| version(share.version_id.as_deref())),
        ("label", |share| text(&share.label)),
        ("status", |share| text(&share.status)),
        ("password", |share| text(&share.password_protected)),
        ("disposition", |share| text(&share.disposition)),
        ("expires", |share| text(&share.expires_at)),
        ("downloads", |share| text(&share.access_count)),
        ("maximum downloads", |share| text(&share.maximum_downloads)),
        ("last download", |share| text(&share.last_accessed_at)),
        ("created", |share| text(&share.created_at)),
        ("created by", |share| text(&share.created_by)),
    ],
    listed: "label, object, version, status, password, expires, downloads, created by, id",
    ..Resource::DEFAULT
};

pub(crate) const EMBEDS: Resource<Embed> = Resource {
    noun: "embed",
    path: "/api/v1/embeds",
    member: "embeds",
    columns: &[
        ("id", |embed| text(&embed.id)),
        ("object", |embed| object(&embed.bucket, &embed.key)),
        ("version", |embed| version(embed.version.version_id.as_deref())),
        ("label", |embed| text(&embed.label)),
        ("status", |embed| text(&embed.status)),
        ("origins", |embed| joined(&embed.allowed_origins, " ")),
        ("disposition", |embed| text(&embed.disposition)),
        ("expires", |embed| text(&embed.expires_at)),
        ("downloads", |embed| text(&embed.access_count)),
        ("last download", |embed| text(&embed.last_accessed_at)),
        ("created", |embed| text(&embed.created_at)),
        ("created by", |embed| text(&embed.created_by)),
    ],
    listed: "label, object, version, status, origins, expires, downloads, created by, id",
    ..Resource::DEFAULT
};

/// Formats the version of a link.
fn version(id: Option<&str>) -> String {
    id.map_or_else(|| "current".to_owned(), text)
}

/// Formats the place of a link's object.
fn object(bucket: &str, key: &str) -> String {
    plain(&format!("{bucket}/{key}"))
}
