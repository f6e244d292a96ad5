//! The resources of the management plane: a row for each kind, with its names, routes and columns.

use serde_json::Value;

use crate::client::resource::{Resource, id, is_id};
use crate::client::{Client, Request, rows};
use crate::commands::statement::statement_text;
use crate::failure::Failure;
use crate::output::table::{Columns, bytes, joined, limit, record, table, text, words};
use crate::quantity::counted;
use crate::terminal::word;

pub(crate) const BUCKETS: Resource = Resource {
    noun: "bucket",
    command: "bucket list",
    path: "/api/v1/buckets",
    member: "buckets",
    listed: &[
        ("name", |bucket| text(&bucket["name"])),
        ("created", |bucket| text(&bucket["created_at"])),
        ("versioning", |bucket| text(&bucket["versioning"])),
        ("lock", |bucket| text(&bucket["object_lock"])),
        ("objects", |bucket| text(&bucket["usage"]["objects"])),
        ("size", |bucket| bytes(&bucket["usage"]["bytes"])),
    ],
    shown: |bucket| record(BUCKET, bucket),
    ..Resource::DEFAULT
};

const BUCKET: Columns = &[
    ("name", |bucket| text(&bucket["name"])),
    ("created", |bucket| text(&bucket["created_at"])),
    ("versioning", |bucket| text(&bucket["versioning"])),
    ("object lock", |bucket| text(&bucket["object_lock"])),
    ("objects", |bucket| text(&bucket["usage"]["objects"])),
    ("size", |bucket| bytes(&bucket["usage"]["bytes"])),
    ("versions", |bucket| text(&bucket["contents"]["versions"])),
    ("size of versions", |bucket| bytes(&bucket["contents"]["version_bytes"])),
    ("delete markers", |bucket| text(&bucket["contents"]["delete_markers"])),
    ("unfinished uploads", |bucket| text(&bucket["contents"]["multipart_uploads"])),
    ("size of uploads", |bucket| bytes(&bucket["contents"]["multipart_bytes"])),
    ("objects limit", |bucket| limit(&bucket["quota"]["objects"], "objects", text)),
    ("size limit", |bucket| limit(&bucket["quota"]["bytes"], "bytes", bytes)),
];

/// The limits of buckets, which are shown with their usage.
pub(crate) const QUOTAS: Resource = Resource {
    shown: |bucket| {
        record(
            &[
                ("objects", |bucket| text(&bucket["usage"]["objects"])),
                ("objects limit", |bucket| limit(&bucket["quota"]["objects"], "objects", text)),
                ("size", |bucket| bytes(&bucket["usage"]["bytes"])),
                ("size limit", |bucket| limit(&bucket["quota"]["bytes"], "bytes", bytes)),
            ],
            bucket,
        )
    },
    ..BUCKETS
};

pub(crate) const LIFECYCLE_RULES: Resource = Resource {
    noun: "lifecycle rule",
    path: "/api/v1/lifecycle-rules",
    member: "rules",
    listed: &[
        ("id", |rule| text(&rule["id"])),
        ("prefix", |rule| text(&rule["prefix"])),
        ("tags", |rule| tags_text(&rule["tags"])),
        ("expire after", |rule| days_text(&rule["expiration"])),
        ("noncurrent after", |rule| days_text(&rule["noncurrent_version_expiration"])),
        ("keep", |rule| text(&rule["newer_noncurrent_versions"])),
        ("markers", |rule| text(&rule["expired_delete_markers"])),
        ("enabled", |rule| text(&rule["enabled"])),
        ("expired", |rule| text(&rule["status"]["expired_objects"])),
        ("versions removed", |rule| text(&rule["status"]["noncurrent_versions_removed"])),
        ("freed", |rule| bytes(&rule["status"]["bytes_freed"])),
        ("locked", |rule| text(&rule["status"]["skipped_locked"])),
        ("next due", |rule| text(&rule["status"]["next_due_at"])),
        ("last error", |rule| text(&rule["status"]["last_error"])),
    ],
    shown: |rule| record(LIFECYCLE_RULES.listed, rule),
    ..Resource::DEFAULT
};

fn days_text(days: &Value) -> String {
    days.as_u64().map_or_else(|| "never".to_owned(), |days| counted(days, "day"))
}

/// Formats tags as the options of commands are written.
pub(super) fn tags_text(tags: &Value) -> String {
    let part = |tag: &Value, name: &str| tag[name].as_str().unwrap_or_default().to_owned();
    let tag = |tag: &Value| format!("{}={}", part(tag, "key").replace('=', "%3D"), part(tag, "value"));
    tags.as_array().into_iter().flatten().map(tag).collect::<Vec<_>>().join(", ")
}

pub(crate) const ACCOUNTS: Resource = Resource {
    noun: "service account",
    command: "service-account list",
    path: "/api/v1/service-accounts",
    member: "service_accounts",
    locate: Resource::by_id_or_name,
    listed: &[
        ("id", |account| text(&account["id"])),
        ("name", |account| text(&account["name"])),
        ("enabled", |account| text(&account["enabled"])),
        ("credentials", |account| items(&account["credentials"]).len().to_string()),
        ("policies", |account| items(&account["policies"]).len().to_string()),
        ("created", |account| text(&account["created_at"])),
        ("description", |account| text(&account["description"])),
    ],
    shown: |account| {
        let own: Columns = &[
            ("id", |account| text(&account["id"])),
            ("name", |account| text(&account["name"])),
            ("description", |account| text(&account["description"])),
            ("enabled", |account| text(&account["enabled"])),
            ("created", |account| text(&account["created_at"])),
        ];
        let policies: Columns =
            &[("policy", |policy| text(&policy["id"])), ("name", |policy| text(&policy["name"]))];
        let credentials = table(CREDENTIALS.listed, items(&account["credentials"]));
        [record(own, account), credentials, table(policies, items(&account["policies"]))].join("\n")
    },
    ..Resource::DEFAULT
};

/// The credentials of an account. One is named by the account, and by its own id or access key.
pub(crate) const CREDENTIALS: Resource = Resource {
    noun: "credential",
    command: "service-account show",
    locate: credential_path,
    listed: &[
        ("credential", |credential| text(&credential["id"])),
        ("access key", |credential| text(&credential["access_key"])),
        ("enabled", |credential| text(&credential["enabled"])),
        ("created", |credential| text(&credential["created_at"])),
        ("expires", |credential| text(&credential["expires_at"])),
        ("last used", |credential| text(&credential["last_used_at"])),
    ],
    ..Resource::DEFAULT
};

fn credential_path(_: &Resource, client: &Client, names: &[&str]) -> Result<String, Failure> {
    let [account, credential] = *names else {
        unreachable!("commands on credentials take an account and a credential: {names:?}")
    };
    let account = ACCOUNTS.by_id_or_name(client, &[account])?;
    let credential = if is_id(credential) {
        credential.to_owned()
    } else {
        let body = client.call(&Request::get(account.as_str()))?;
        let found = rows(&body, "credentials")?.iter().find(|one| one["access_key"] == credential);
        found.and_then(id).ok_or_else(|| {
            format!(
                "the account has no credential with the id or access key {credential}\n  \
                 `cairn {}` shows its credentials",
                CREDENTIALS.command
            )
        })?
    };
    Ok(format!("{account}/credentials/{credential}"))
}

pub(crate) const POLICIES: Resource = Resource {
    noun: "policy",
    command: "policy list",
    path: "/api/v1/policies",
    member: "policies",
    locate: Resource::by_id_or_name,
    listed: &[
        ("id", |policy| text(&policy["id"])),
        ("name", |policy| text(&policy["name"])),
        ("statements", |policy| items(&policy["statements"]).len().to_string()),
        ("accounts", |policy| items(&policy["attached_to"]).len().to_string()),
        ("created", |policy| text(&policy["created_at"])),
        ("description", |policy| text(&policy["description"])),
    ],
    shown: |policy| {
        let own: Columns = &[
            ("id", |policy| text(&policy["id"])),
            ("name", |policy| text(&policy["name"])),
            ("description", |policy| text(&policy["description"])),
            ("created", |policy| text(&policy["created_at"])),
        ];
        let mut shown = record(own, policy) + "statements:\n";
        let statement = |one: &Value| format!("  {}\n", statement_text(one));
        shown.extend(items(&policy["statements"]).iter().map(statement));
        // The response to a creation does not contain it, because no account has the policy yet.
        if policy["attached_to"].is_array() {
            shown.push_str("attached to:\n");
            let account = |account: &Value| format!("  {}\n", word(account));
            shown.extend(items(&policy["attached_to"]).iter().map(account));
        }
        shown
    },
    ..Resource::DEFAULT
};

pub(crate) const TOKENS: Resource = Resource {
    noun: "management token",
    command: "token list",
    path: "/api/v1/management-tokens",
    member: "management_tokens",
    locate: Resource::by_id_or_name,
    listed: &[
        ("id", |token| text(&token["id"])),
        ("name", |token| text(&token["name"])),
        ("role", |token| text(&token["role"])),
        ("created", |token| text(&token["created_at"])),
        ("expires", |token| text(&token["expires_at"])),
    ],
    ..Resource::DEFAULT
};

pub(crate) const WEBHOOKS: Resource = Resource {
    noun: "webhook",
    path: "/api/v1/webhooks",
    member: "webhooks",
    listed: &[
        ("id", |webhook| text(&webhook["id"])),
        ("target", |webhook| text(&webhook["target_url"])),
        ("events", |webhook| joined(&webhook["event_types"], ", ")),
        ("bucket", |webhook| text(&webhook["bucket_filter"])),
        ("prefix", |webhook| text(&webhook["object_prefix_filter"])),
        ("enabled", |webhook| text(&webhook["enabled"])),
        ("health", |webhook| words(&webhook["health"]["state"])),
        ("pending", |webhook| text(&webhook["health"]["pending"])),
    ],
    shown: |webhook| record(WEBHOOK, webhook),
    disabled: "is disabled; its pending deliveries were dropped",
    ..Resource::DEFAULT
};

const WEBHOOK: Columns = &[
    ("id", |webhook| text(&webhook["id"])),
    ("target", |webhook| text(&webhook["target_url"])),
    ("events", |webhook| joined(&webhook["event_types"], ", ")),
    ("bucket", |webhook| text(&webhook["bucket_filter"])),
    ("prefix", |webhook| text(&webhook["object_prefix_filter"])),
    ("enabled", |webhook| text(&webhook["enabled"])),
    ("created", |webhook| text(&webhook["created_at"])),
    ("health", |webhook| words(&webhook["health"]["state"])),
    ("failures in a row", |webhook| text(&webhook["health"]["consecutive_failures"])),
    ("last success", |webhook| text(&webhook["health"]["last_success_at"])),
    ("last error", |webhook| text(&webhook["health"]["last_error"])),
    ("pending", |webhook| text(&webhook["health"]["pending"])),
    ("oldest pending", |webhook| text(&webhook["health"]["oldest_pending_at"])),
];

pub(crate) const SHARES: Resource = Resource {
    noun: "share",
    path: "/api/v1/shares",
    member: "shares",
    listed: &[
        ("label", |share| text(&share["label"])),
        ("object", place_text),
        ("version", |share| version_text(&share["version_id"])),
        ("status", |share| text(&share["status"])),
        ("password", |share| text(&share["password_protected"])),
        ("expires", |share| text(&share["expires_at"])),
        ("downloads", |share| text(&share["access_count"])),
        ("created by", |share| text(&share["created_by"])),
        ("id", |share| text(&share["id"])),
    ],
    shown: |share| record(SHARE, share),
    ..Resource::DEFAULT
};

const SHARE: Columns = &[
    ("id", |share| text(&share["id"])),
    ("object", place_text),
    ("version", |share| version_text(&share["version_id"])),
    ("label", |share| text(&share["label"])),
    ("status", |share| text(&share["status"])),
    ("password", |share| text(&share["password_protected"])),
    ("disposition", |share| text(&share["disposition"])),
    ("expires", |share| text(&share["expires_at"])),
    ("downloads", |share| text(&share["access_count"])),
    ("maximum downloads", |share| text(&share["maximum_downloads"])),
    ("last download", |share| text(&share["last_accessed_at"])),
    ("created", |share| text(&share["created_at"])),
    ("created by", |share| text(&share["created_by"])),
];

pub(crate) const EMBEDS: Resource = Resource {
    noun: "embed",
    path: "/api/v1/embeds",
    member: "embeds",
    listed: &[
        ("label", |embed| text(&embed["label"])),
        ("object", place_text),
        ("version", |embed| version_text(&embed["version"]["version_id"])),
        ("status", |embed| text(&embed["status"])),
        ("origins", |embed| joined(&embed["allowed_origins"], " ")),
        ("expires", |embed| text(&embed["expires_at"])),
        ("downloads", |embed| text(&embed["access_count"])),
        ("created by", |embed| text(&embed["created_by"])),
        ("id", |embed| text(&embed["id"])),
    ],
    shown: |embed| record(EMBED, embed),
    ..Resource::DEFAULT
};

const EMBED: Columns = &[
    ("id", |embed| text(&embed["id"])),
    ("object", place_text),
    ("version", |embed| version_text(&embed["version"]["version_id"])),
    ("label", |embed| text(&embed["label"])),
    ("status", |embed| text(&embed["status"])),
    ("origins", |embed| joined(&embed["allowed_origins"], " ")),
    ("disposition", |embed| text(&embed["disposition"])),
    ("expires", |embed| text(&embed["expires_at"])),
    ("downloads", |embed| text(&embed["access_count"])),
    ("last download", |embed| text(&embed["last_accessed_at"])),
    ("created", |embed| text(&embed["created_at"])),
    ("created by", |embed| text(&embed["created_by"])),
];

/// Formats the version of a link.
fn version_text(version: &Value) -> String {
    if version.is_null() { "current".to_owned() } else { text(version) }
}

/// Formats the place of a link's object.
fn place_text(link: &Value) -> String {
    format!("{}/{}", word(&link["bucket"]), word(&link["key"]))
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}
