//! Makes the settings of buckets.

use std::collections::BTreeMap;

use cairn_api::{
    Bucket, BucketTags, ByteQuota, CorsRules, CreateBucket, CreateWebhook, LifecycleRule, LifecycleRuleList,
    ObjectLock, PublicAccess, PublicRule, Quota, QuotaMode, SetCorsRules, SetLifecycleRule, SetObjectLock,
    SetQuota, SetVersioning, Tag, VersioningState, Webhook,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::notification::Notification;
use super::proposal::{Address, Fate, Proposal};
use super::wanted::WantedBucket;
use crate::client::{Request, read};
use crate::commands::import::changes::Changes;
use crate::commands::resources::{BUCKETS, WEBHOOKS};
use crate::failure::Failure;
use crate::output::table::{bytes, text};

/// A line of the report about a bucket.
#[derive(Serialize)]
pub(super) struct BucketLine<'w> {
    pub(super) name: &'w str,
    /// `created`, `updated` or `unchanged`.
    pub(super) result: &'static str,
    pub(super) changes: Vec<String>,
}

/// Makes the settings of one run.
pub(super) struct Made<'c> {
    pub(super) changes: Changes<'c>,
    /// Whether proposals are made.
    pub(super) accept: bool,
    pub(super) addresses: &'c [Address],
}

/// The settings that a bucket has here. One that would be created in a dry run has none.
struct Here<'b> {
    name: &'b str,
    versioning: VersioningState,
    object_lock: bool,
    quota: Option<Quota>,
    /// Whether it exists, so that its other settings can be read.
    exists: bool,
}

impl Made<'_> {
    /// Makes all buckets and settings. Returns what was done, and what is proposed.
    pub(super) fn all<'w>(
        &mut self,
        wanted: &'w BTreeMap<String, WantedBucket>,
    ) -> Result<(Vec<BucketLine<'w>>, Vec<Proposal>), Failure> {
        let body = self.changes.client.call(&Request::get(BUCKETS.path))?;
        let here: Vec<Bucket> = read(&body[BUCKETS.member])?;
        let mut here: BTreeMap<String, Bucket> =
            here.into_iter().map(|bucket| (bucket.name.to_string(), bucket)).collect();
        let (mut lines, mut proposals) = (Vec::new(), Vec::new());
        for (name, bucket) in wanted {
            let found = here.remove(name);
            let (result, changes) = match self.bucket(name, bucket, found, &mut proposals) {
                Ok((is_new, changes)) if is_new => ("created", changes),
                Ok((_, changes)) if changes.is_empty() => ("unchanged", changes),
                Ok((_, changes)) => ("updated", changes),
                Err(failure) => {
                    self.changes.refuse("bucket", name, failure)?;
                    ("refused", Vec::new())
                }
            };
            lines.push(BucketLine { name, result, changes });
        }
        Ok((lines, proposals))
    }

    fn bucket(
        &mut self,
        name: &str,
        wanted: &WantedBucket,
        found: Option<Bucket>,
        proposals: &mut Vec<Proposal>,
    ) -> Result<(bool, Vec<String>), Failure> {
        let is_new = found.is_none();
        let mut done = Vec::new();
        let here = match found {
            Some(Bucket { versioning, object_lock, quota, .. }) => {
                Here { name, versioning, object_lock, quota: Some(quota), exists: true }
            }
            None => {
                let body = CreateBucket { name: name.to_owned().into(), object_lock: wanted.object_lock };
                self.changes.change(&Request::post(BUCKETS.path).json(&body))?;
                done.push(if wanted.object_lock { "created with object lock" } else { "created" }.to_owned());
                let versioning =
                    if wanted.object_lock { VersioningState::Enabled } else { VersioningState::Unversioned };
                let exists = !self.changes.is_dry;
                Here { name, versioning, object_lock: wanted.object_lock, quota: None, exists }
            }
        };
        let settings = [
            ("versioning", self.versioning(&here, wanted)),
            ("object_lock", self.object_lock(&here, wanted)),
            ("quota", self.quota(&here, wanted)),
            ("cors", self.cors(&here, wanted)),
            ("tags", self.tags(&here, wanted)),
            ("lifecycle", self.lifecycle(&here, wanted)),
        ];
        for (kind, change) in settings {
            match change {
                Ok(change) => done.extend(change),
                Err(failure) => self.changes.refuse(kind, name, failure)?,
            }
        }
        self.public(&here, wanted, proposals)?;
        self.webhooks(name, wanted, proposals)?;
        Ok((is_new, done))
    }

    /// Reads a setting of a bucket; `None` if the bucket does not exist yet.
    fn read<T: DeserializeOwned>(&self, here: &Here<'_>, setting: &str) -> Result<Option<T>, Failure> {
        if !here.exists {
            return Ok(None);
        }
        let path = format!("{}/{setting}", BUCKETS.path_of(here.name));
        read(&self.changes.client.call(&Request::get(path))?).map(Some)
    }

    fn put(&self, here: &Here<'_>, setting: &str, body: &impl Serialize) -> Result<(), Failure> {
        let path = format!("{}/{setting}", BUCKETS.path_of(here.name));
        self.changes.change(&Request::put(path).json(body)).map(drop)
    }

    fn versioning(&self, here: &Here<'_>, wanted: &WantedBucket) -> Result<Option<String>, Failure> {
        let Some(versioning) = wanted.versioning else { return Ok(None) };
        // A bucket that keeps versions here goes on with it.
        if here.versioning == versioning || here.versioning == VersioningState::Enabled {
            return Ok(None);
        }
        self.put(here, "versioning", &SetVersioning { versioning })?;
        Ok(Some(format!("versioning {}", text(&versioning))))
    }

    fn object_lock(&self, here: &Here<'_>, wanted: &WantedBucket) -> Result<Option<String>, Failure> {
        if wanted.object_lock && !here.object_lock {
            return Err(
                "the bucket is here already, without object lock, which it can only get when it is created"
                    .into(),
            );
        }
        let Some(retention) = &wanted.retention else { return Ok(None) };
        let present = self.read::<ObjectLock>(here, "object-lock")?.and_then(|lock| lock.default_retention);
        if let Some(present) = present {
            return same_or(json!(present) == json!(retention), "another default retention");
        }
        // The types of requests own what they contain.
        let default_retention = read(&json!(retention))?;
        self.put(here, "object-lock", &SetObjectLock { default_retention: Some(default_retention) })?;
        Ok(Some("default retention".to_owned()))
    }

    fn quota(&self, here: &Here<'_>, wanted: &WantedBucket) -> Result<Option<String>, Failure> {
        let Some(limit) = wanted.quota else { return Ok(None) };
        let present = here.quota.as_ref().and_then(|quota| quota.bytes.bytes);
        if let Some(present) = present {
            return same_or(present == limit, "another quota");
        }
        let objects = match &here.quota {
            Some(quota) => read(&json!(quota.objects))?,
            None => read(&json!({"mode": "unlimited"}))?,
        };
        let quota = Quota { bytes: ByteQuota { mode: QuotaMode::Limit, bytes: Some(limit) }, objects };
        self.put(here, "quota", &SetQuota { quota })?;
        Ok(Some(format!("quota {}", bytes(&limit))))
    }

    fn cors(&self, here: &Here<'_>, wanted: &WantedBucket) -> Result<Option<String>, Failure> {
        if wanted.cors.is_empty() {
            return Ok(None);
        }
        let present = self.read::<CorsRules>(here, "cors")?.filter(|present| !present.rules.is_empty());
        if let Some(present) = present {
            return same_or(json!(present.rules) == json!(wanted.cors), "other CORS rules");
        }
        self.put(here, "cors", &SetCorsRules { rules: read(&json!(wanted.cors))? })?;
        Ok(Some("CORS rules".to_owned()))
    }

    fn tags(&self, here: &Here<'_>, wanted: &WantedBucket) -> Result<Option<String>, Failure> {
        if wanted.tags.is_empty() {
            return Ok(None);
        }
        let sorted = |tags: &[Tag]| {
            let mut pairs: Vec<_> = tags.iter().map(|tag| (tag.key.clone(), tag.value.clone())).collect();
            pairs.sort_unstable();
            pairs
        };
        let present = self.read::<BucketTags>(here, "tags")?.filter(|present| !present.tags.is_empty());
        if let Some(present) = present {
            return same_or(sorted(&present.tags) == sorted(&wanted.tags), "other tags");
        }
        self.put(here, "tags", &BucketTags { tags: read(&json!(wanted.tags))? })?;
        Ok(Some(crate::quantity::counted(wanted.tags.len() as u64, "tag")))
    }

    /// Adds the rules that are not here. Others stay.
    fn lifecycle(&mut self, here: &Here<'_>, wanted: &WantedBucket) -> Result<Option<String>, Failure> {
        if wanted.lifecycle.is_empty() {
            return Ok(None);
        }
        let present = self.read::<LifecycleRuleList>(here, "lifecycle")?;
        let present = present.map_or_else(Vec::new, |list| list.rules.iter().map(members_of).collect());
        let mut added = 0;
        for rule in wanted.lifecycle.iter().filter(|rule| !present.contains(&json!(rule))) {
            let path = BUCKETS.path_of(here.name) + "/lifecycle";
            match self.changes.change(&Request::post(path).json(rule)) {
                Ok(_) => added += 1,
                Err(failure) => self.changes.refuse("lifecycle", here.name, failure)?,
            }
        }
        Ok((added > 0).then(|| crate::quantity::counted(added, "lifecycle rule")))
    }

    fn public(
        &mut self,
        here: &Here<'_>,
        wanted: &WantedBucket,
        proposals: &mut Vec<Proposal>,
    ) -> Result<(), Failure> {
        if wanted.public.is_empty() {
            return Ok(());
        }
        let present = self.read::<PublicAccess>(here, "public-access")?;
        let PublicAccess { mut rules, blocked } =
            present.unwrap_or(PublicAccess { rules: Vec::new(), blocked: false });
        let is_here = |rules: &[PublicRule], wanted: &PublicRule| {
            rules.iter().any(|rule| *rule.prefix == *wanted.prefix && rule.list >= wanted.list)
        };
        let missing: Vec<bool> = wanted.public.iter().map(|rule| !is_here(&rules, rule)).collect();
        let mut made = if self.accept { Fate::Made } else { Fate::Proposed };
        if self.accept && missing.contains(&true) {
            let added = wanted.public.iter().zip(&missing).filter(|(_, is_missing)| **is_missing);
            for (rule, _) in added {
                rules.retain(|other| *other.prefix != *rule.prefix);
                rules.push(PublicRule { prefix: rule.prefix.clone(), read: true, list: rule.list });
            }
            if let Err(failure) = self.put(here, "public-access", &PublicAccess { rules, blocked }) {
                self.changes.refuse("public_access", here.name, failure)?;
                made = Fate::Refused;
            }
        }
        for (rule, is_missing) in wanted.public.iter().zip(missing) {
            proposals.push(Proposal::Public {
                bucket: here.name.to_owned(),
                prefix: rule.prefix.to_string(),
                list: rule.list,
                result: if is_missing { made } else { Fate::Unchanged },
            });
        }
        Ok(())
    }

    fn webhooks(
        &mut self,
        bucket: &str,
        wanted: &WantedBucket,
        proposals: &mut Vec<Proposal>,
    ) -> Result<(), Failure> {
        if wanted.notifications.is_empty() {
            return Ok(());
        }
        let body = self.changes.client.call(&Request::get(WEBHOOKS.path))?;
        let present: Vec<Webhook> = read(&body[WEBHOOKS.member])?;
        for notification in &wanted.notifications {
            let Notification { target, events, prefix } = notification;
            let address = self.addresses.iter().find(|address| address.target == *target);
            let result = match address {
                Some(Address { url, .. })
                    if present.iter().any(|one| is_same(one, bucket, notification, url)) =>
                {
                    Fate::Unchanged
                }
                _ if !self.accept => Fate::Proposed,
                None => {
                    let reason = format!(
                        "the archive does not contain the URL of the target {target}: --webhook {target}=<url> gives it"
                    );
                    self.changes.lose("notification", bucket, reason);
                    Fate::Refused
                }
                Some(Address { url, .. }) => self.create_webhook(bucket, notification, url)?,
            };
            proposals.push(Proposal::Webhook {
                bucket: bucket.to_owned(),
                target: target.clone(),
                target_url: address.map(|address| address.url.clone()),
                event_types: events.clone(),
                prefix: prefix.clone(),
                result,
            });
        }
        Ok(())
    }

    /// Creates a webhook. Its signing secret is not shown; another one can be made.
    fn create_webhook(
        &mut self,
        bucket: &str,
        notification: &Notification,
        url: &str,
    ) -> Result<Fate, Failure> {
        let body = CreateWebhook {
            target_url: url.to_owned().into(),
            event_types: notification.event_types(),
            bucket_filter: Some(bucket.to_owned().into()),
            object_prefix_filter: notification.prefix.clone().map(Into::into),
            enabled: true,
        };
        match self.changes.change(&Request::post(WEBHOOKS.path).json(&body)) {
            Ok(_) => Ok(Fate::Made),
            Err(failure) => {
                self.changes.refuse("notification", bucket, failure)?;
                Ok(Fate::Refused)
            }
        }
    }
}

/// A setting that is here already stays. It is no loss if it is the same.
fn same_or(is_same: bool, other: &str) -> Result<Option<String>, Failure> {
    if is_same { Ok(None) } else { Err(format!("the bucket has {other} here, which was not changed").into()) }
}

/// Returns the members of a rule that a client sets.
fn members_of(rule: &LifecycleRule) -> Value {
    json!(SetLifecycleRule {
        prefix: rule.prefix.clone(),
        tags: Some(
            rule.tags
                .iter()
                .map(|tag| cairn_api::Tag { key: tag.key.clone(), value: tag.value.clone() })
                .collect()
        ),
        expiration: rule.expiration,
        noncurrent_version_expiration: rule.noncurrent_version_expiration,
        newer_noncurrent_versions: Some(rule.newer_noncurrent_versions),
        expired_delete_markers: Some(rule.expired_delete_markers),
        abort_incomplete_multipart_upload: rule.abort_incomplete_multipart_upload,
        enabled: Some(rule.enabled),
    })
}

fn is_same(webhook: &Webhook, bucket: &str, notification: &Notification, url: &str) -> bool {
    let mut events: Vec<&str> = webhook.event_types.iter().map(|event| &**event).collect();
    let mut wanted = notification.events.clone();
    events.sort_unstable();
    wanted.sort_unstable();
    *webhook.target_url == *url
        && webhook.bucket_filter.as_deref() == Some(bucket)
        && webhook.object_prefix_filter == notification.prefix
        && events == wanted
}
