//! Reads from the server what a file is compared with.

use std::collections::HashMap;

use cairn_api::{
    Bucket, BucketContents, BucketList, CorsRules, LifecycleRuleList, ObjectLock, PolicyList, PublicAccess,
    PublicAccessList, ServiceAccountList, Session, SystemInfo, VersioningState, WebhookList,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::values;
use super::wanted::{Wanted, WantedBucket};
use crate::client::{Client, Request, read};
use crate::commands::resources::{ACCOUNTS, BUCKETS, POLICIES, WEBHOOKS};
use crate::failure::Failure;

/// The state of a server, as far as a file is about it. What was not read is empty.
pub(super) struct State {
    pub(super) role: String,
    pub(super) s3_compatibility: String,
    pub(super) events: bool,
    /// Whether rules of public access can be set. Read if the file has some.
    pub(super) public_access: bool,
    pub(super) buckets: Vec<Bucket>,
    /// The settings of the buckets in the file that exist.
    pub(super) settings: HashMap<String, BucketSettings>,
    /// The contents of the buckets that could be deleted.
    pub(super) contents: HashMap<String, BucketContents>,
    pub(super) policies: PolicyList,
    pub(super) accounts: ServiceAccountList,
    pub(super) webhooks: WebhookList,
}

/// The settings of a bucket: those that the file has, and the defaults for the others.
pub(super) struct BucketSettings {
    pub(super) versioning: VersioningState,
    pub(super) object_lock: bool,
    pub(super) default_retention: Value,
    pub(super) bytes: Option<u64>,
    pub(super) objects: Option<u64>,
    pub(super) used_bytes: u64,
    pub(super) used_objects: u64,
    pub(super) cors: Vec<Value>,
    /// Ids with rules.
    pub(super) lifecycle: Vec<(String, Value)>,
    pub(super) public_rules: Vec<Value>,
    pub(super) public_blocked: bool,
}

impl BucketSettings {
    /// The settings of a new bucket.
    pub(super) fn of_new_bucket(object_lock: bool) -> Self {
        Self {
            versioning: if object_lock { VersioningState::Enabled } else { VersioningState::Unversioned },
            object_lock,
            default_retention: Value::Null,
            bytes: None,
            objects: None,
            used_bytes: 0,
            used_objects: 0,
            cors: Vec::new(),
            lifecycle: Vec::new(),
            public_rules: Vec::new(),
            public_blocked: false,
        }
    }

    fn read(client: &Client, wanted: &WantedBucket, bucket: &Bucket) -> Result<Self, Failure> {
        let path = BUCKETS.path_of(&bucket.name);
        let mut settings = Self {
            versioning: bucket.versioning,
            bytes: bucket.quota.bytes.bytes,
            objects: bucket.quota.objects.objects,
            used_bytes: bucket.usage.bytes,
            used_objects: bucket.usage.objects,
            ..Self::of_new_bucket(bucket.object_lock)
        };
        if wanted.default_retention.is_some() {
            let lock: ObjectLock = get(client, &format!("{path}/object-lock"))?;
            settings.default_retention = values::retention(lock.default_retention.as_ref());
        }
        if wanted.cors.is_some() {
            let CorsRules { rules } = get(client, &format!("{path}/cors"))?;
            settings.cors = rules.iter().map(values::cors_rule).collect();
        }
        if wanted.lifecycle.is_some() {
            let LifecycleRuleList { rules } = get(client, &format!("{path}/lifecycle"))?;
            let rule = |rule: cairn_api::LifecycleRule| {
                (String::from(rule.id.clone()), values::stored_lifecycle_rule(rule))
            };
            settings.lifecycle = rules.into_iter().map(rule).collect();
        }
        if wanted.public_rules.is_some() || wanted.public_blocked.is_some() {
            let PublicAccess { rules, blocked } = get(client, &format!("{path}/public-access"))?;
            settings.public_rules = rules.iter().map(values::public_rule).collect();
            settings.public_blocked = blocked;
        }
        Ok(settings)
    }
}

fn get<T: DeserializeOwned>(client: &Client, path: &str) -> Result<T, Failure> {
    read(&client.call(&Request::get(path))?)
}

impl State {
    /// Reads what a file is about; with `is_pruned` also what could be deleted.
    pub(super) fn read(client: &Client, wanted: &Wanted, is_pruned: bool) -> Result<Self, Failure> {
        let Session { role, .. } = get(client, "/api/v1/auth/session")?;
        let SystemInfo { s3_compatibility, capabilities, .. } = get(client, "/api/v1/system/info")?;
        let has_public_rules = wanted
            .buckets
            .iter()
            .any(|bucket| matches!(&bucket.public_rules, Some((_, rules)) if !rules.is_empty()));
        let public_access = if has_public_rules {
            get::<PublicAccessList>(client, "/api/v1/public-access")?.enabled
        } else {
            true
        };
        let mut state = Self {
            role: role.into(),
            s3_compatibility: s3_compatibility.into(),
            events: capabilities.events,
            public_access,
            buckets: Vec::new(),
            settings: HashMap::new(),
            contents: HashMap::new(),
            policies: PolicyList { policies: Vec::new() },
            accounts: ServiceAccountList { service_accounts: Vec::new() },
            webhooks: WebhookList { webhooks: Vec::new() },
        };
        if is_pruned || !wanted.buckets.is_empty() {
            state.buckets = get::<BucketList>(client, BUCKETS.path)?.buckets;
            state.read_buckets(client, wanted, is_pruned)?;
        }
        if is_pruned || !wanted.policies.is_empty() || !wanted.accounts.is_empty() {
            state.policies = get(client, POLICIES.path)?;
        }
        if is_pruned || !wanted.accounts.is_empty() {
            state.accounts = get(client, ACCOUNTS.path)?;
        }
        if is_pruned || !wanted.webhooks.is_empty() {
            state.webhooks = get(client, WEBHOOKS.path)?;
        }
        Ok(state)
    }

    fn read_buckets(&mut self, client: &Client, wanted: &Wanted, is_pruned: bool) -> Result<(), Failure> {
        let by_name: HashMap<&str, &WantedBucket> =
            wanted.buckets.iter().map(|bucket| (bucket.name.as_str(), bucket)).collect();
        for bucket in &self.buckets {
            let name = bucket.name.to_string();
            if let Some(wanted) = by_name.get(&*bucket.name) {
                self.settings.insert(name, BucketSettings::read(client, wanted, bucket)?);
            } else if is_pruned {
                let contents = get(client, &(BUCKETS.path_of(&name) + "/contents"))?;
                self.contents.insert(name, contents);
            }
        }
        Ok(())
    }
}
