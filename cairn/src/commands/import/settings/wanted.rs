//! Plans the settings to create from an export of buckets.
//!
//! Source: MinIO, `cmd/admin-bucket-handlers.go`, and exports of a server: a folder for each bucket, a file for each setting.

use std::collections::BTreeMap;

use cairn_api::{
    CorsRule, DefaultRetention, PublicRule, RetentionMode, SetLifecycleRule, Tag, VersioningState,
};
use cairn_model::BucketName;
use serde_json::Value;

use super::lifecycle;
use super::notification::{self, Notification};
use super::public;
use crate::commands::import::archive::Files;
use crate::commands::import::loss::Loss;
use crate::failure::Failure;
use crate::s3::xml::{Element, parse};

/// The settings of a bucket that can be made here.
#[derive(Default)]
pub(super) struct WantedBucket {
    pub(super) versioning: Option<VersioningState>,
    pub(super) object_lock: bool,
    pub(super) retention: Option<DefaultRetention>,
    /// Most bytes.
    pub(super) quota: Option<u64>,
    pub(super) lifecycle: Vec<SetLifecycleRule>,
    pub(super) cors: Vec<CorsRule>,
    pub(super) tags: Vec<Tag>,
    /// Made only if they are accepted.
    pub(super) public: Vec<PublicRule>,
    /// Made only if they are accepted.
    pub(super) notifications: Vec<Notification>,
}

/// All buckets by name, and what does not come along.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) buckets: BTreeMap<String, WantedBucket>,
    pub(super) losses: Vec<Loss>,
}

impl Wanted {
    /// Reads an export.
    ///
    /// # Errors
    /// The archive is no export of buckets.
    pub(super) fn read(files: &Files) -> Result<Self, Failure> {
        // Every bucket has this file.
        if !files.is_empty() && !files.keys().any(|name| name.ends_with("/notification.xml")) {
            let advice = "`mc admin cluster bucket export ALIAS` writes one";
            return Err(format!("the archive is no export of buckets\n  {advice}").into());
        }
        let mut wanted = Self::default();
        for (path, content) in files {
            let Some((bucket, file)) = path.split_once('/') else {
                wanted.losses.push(Loss::new("file", path, "it belongs to no bucket"));
                continue;
            };
            if let Err(invalid) = BucketName::parse(bucket) {
                wanted.losses.push(Loss::new(
                    "bucket",
                    bucket,
                    format!("its name is not possible here: {}", invalid.rule),
                ));
                continue;
            }
            let losses = &mut wanted.losses;
            let mut lose = |kind, reason: String| losses.push(Loss::new(kind, bucket, reason));
            let about = wanted.buckets.entry(bucket.to_owned()).or_default();
            if let Err(reason) = about.read_file(bucket, file, content, &mut lose) {
                lose(kind_of(file), reason);
            }
        }
        wanted.losses.sort();
        wanted.losses.dedup();
        Ok(wanted)
    }
}

/// Returns the kind of loss that a file's content is.
fn kind_of(file: &str) -> &'static str {
    match file {
        "versioning.xml" => "versioning",
        "object-lock.xml" => "object_lock",
        "quota.json" => "quota",
        "lifecycle.xml" => "lifecycle",
        "cors.xml" => "cors",
        "policy.json" => "policy",
        "notification.xml" => "notification",
        "tagging.xml" => "tags",
        "bucket-encryption.xml" => "encryption",
        "replication.xml" | "bucket-targets.json" => "replication",
        _ => "file",
    }
}

impl WantedBucket {
    fn read_file(
        &mut self,
        bucket: &str,
        file: &str,
        content: &[u8],
        lose: &mut dyn FnMut(&'static str, String),
    ) -> Result<(), String> {
        let kind = kind_of(file);
        let mut lose = |reason: String| lose(kind, reason);
        match file {
            "versioning.xml" => self.versioning(&xml(content)?, &mut lose)?,
            "object-lock.xml" => self.object_lock(&xml(content)?)?,
            "quota.json" => self.quota(&json(content)?, &mut lose)?,
            "lifecycle.xml" => self.lifecycle = lifecycle::read(&xml(content)?, &mut lose),
            "cors.xml" => self.cors = cors(&xml(content)?)?,
            "policy.json" => self.public = public::read(bucket, &json(content)?, &mut lose),
            "notification.xml" => self.notifications = notification::read(&xml(content)?, &mut lose),
            "tagging.xml" => self.tags = tags(&xml(content)?),
            "bucket-encryption.xml" => {
                lose(
                    "encryption is a setting of the whole server here (storage.encryption_enabled)"
                        .to_owned(),
                );
            }
            "replication.xml" => lose("there is no replication between servers".to_owned()),
            // It contains secrets, and nothing if there is no replication.
            "bucket-targets.json" => {
                if !is_without_targets(content) {
                    lose("there is no replication between servers".to_owned());
                }
            }
            _ => lose(format!("the setting {file} is unknown")),
        }
        Ok(())
    }

    fn versioning(&mut self, document: &Element, lose: &mut dyn FnMut(String)) -> Result<(), String> {
        self.versioning = match document.text_of("Status").map(str::trim) {
            Some("Enabled") => Some(VersioningState::Enabled),
            Some("Suspended") => Some(VersioningState::Suspended),
            None | Some("") => None,
            Some(_) => return Err("its Status is neither Enabled nor Suspended".to_owned()),
        };
        let excluded = |element: &&Element| match element.name() {
            "ExcludedPrefixes" => true,
            "ExcludeFolders" => element.text().trim() == "true",
            _ => false,
        };
        for element in document.children().iter().filter(excluded) {
            lose(format!("{} has no counterpart: all objects of a bucket have versions", element.name()));
        }
        Ok(())
    }

    fn object_lock(&mut self, document: &Element) -> Result<(), String> {
        self.object_lock = document.text_of("ObjectLockEnabled").map(str::trim) == Some("Enabled");
        let Some(retention) = document.child("Rule").and_then(|rule| rule.child("DefaultRetention")) else {
            return Ok(());
        };
        let period = |name| {
            let text = retention.text_of(name).map(str::trim).filter(|text| !text.is_empty() && *text != "0");
            text.map(|text| text.parse().map_err(|_| format!("{name} is no number"))).transpose()
        };
        let mode = match retention.text_of("Mode").map(str::trim) {
            Some("GOVERNANCE") => RetentionMode::Governance,
            Some("COMPLIANCE") => RetentionMode::Compliance,
            None | Some("") => return Ok(()),
            Some(_) => return Err("its mode is neither GOVERNANCE nor COMPLIANCE".to_owned()),
        };
        self.retention = Some(DefaultRetention { mode, days: period("Days")?, years: period("Years")? });
        Ok(())
    }

    fn quota(&mut self, document: &Value, lose: &mut dyn FnMut(String)) -> Result<(), String> {
        let number = |name: &str| match document.get(name) {
            None | Some(Value::Null) => Ok(0),
            Some(value) => value.as_u64().ok_or(format!("{name} is no number")),
        };
        // The first name is the older one of the same.
        let bytes = if number("size")? > 0 { number("size")? } else { number("quota")? };
        if number("rate")? > 0 || number("requests")? > 0 {
            lose("limits of rate and requests have no counterpart".to_owned());
        }
        let kind = document.get("quotatype").and_then(Value::as_str).unwrap_or_default();
        if bytes > 0 && !matches!(kind, "" | "hard") {
            return Err(format!("the kind {kind} has no counterpart: a quota refuses what exceeds it"));
        }
        self.quota = Some(bytes).filter(|bytes| *bytes > 0);
        Ok(())
    }
}

fn cors(document: &Element) -> Result<Vec<CorsRule>, String> {
    let rules = document.children().iter().filter(|element| element.name() == "CORSRule");
    let rule = |rule: &Element| {
        let texts = |name: &'static str| {
            let named = rule.children().iter().filter(move |child| child.name() == name);
            named.map(|child| child.text().trim().to_owned())
        };
        let age = rule.text_of("MaxAgeSeconds").map(str::trim).filter(|text| !text.is_empty());
        Ok(CorsRule {
            id: rule.text_of("ID").map(str::to_owned).filter(|id| !id.is_empty()),
            allowed_origins: texts("AllowedOrigin").map(Into::into).collect(),
            allowed_methods: texts("AllowedMethod").map(Into::into).collect(),
            allowed_headers: texts("AllowedHeader").map(Into::into).collect(),
            expose_headers: texts("ExposeHeader").map(Into::into).collect(),
            max_age_seconds: age
                .map(|age| age.parse().map_err(|_| "MaxAgeSeconds is no number"))
                .transpose()?,
        })
    };
    rules.map(rule).collect()
}

fn is_without_targets(content: &[u8]) -> bool {
    // Written in either of two forms.
    let text = String::from_utf8_lossy(content);
    let value: Option<Value> = serde_json::from_slice(content).ok();
    match value {
        Some(value) => value["Targets"].as_array().is_none_or(Vec::is_empty),
        None => matches!(text.trim(), "" | "<BucketTargets></BucketTargets>"),
    }
}

fn xml(content: &[u8]) -> Result<Element, String> {
    let text = std::str::from_utf8(content).map_err(|_| "the file is not UTF-8")?;
    parse(text).ok_or_else(|| "the file is not XML as MinIO writes it".to_owned())
}

fn tags(tagging: &Element) -> Vec<Tag> {
    let text = |tag: &Element, name| tag.text_of(name).unwrap_or_default().to_owned();
    let tags = tagging.child("TagSet").map_or(&[][..], Element::children).iter();
    tags.map(|tag| Tag { key: text(tag, "Key"), value: text(tag, "Value") }).collect()
}

fn json(content: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(content).map_err(|_| "the file is not JSON".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(entries: &[(&str, &str)]) -> Wanted {
        let files = [("photos/notification.xml", "<NotificationConfiguration/>")].iter().chain(entries);
        let files = files.map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect();
        Wanted::read(&files).unwrap_or_else(|failure| panic!("{failure:?}"))
    }

    /// As a server exported them.
    #[test]
    fn settings_are_read_as_minio_writes_them() {
        let wanted = read(&[
            (
                "photos/quota.json",
                r#"{"quota":1073741824,"size":0,"rate":0,"requests":0,"quotatype":"hard"}"#,
            ),
            (
                "photos/versioning.xml",
                r#"<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>Enabled</Status></VersioningConfiguration>"#,
            ),
            ("photos/bucket-targets.json", "<BucketTargets></BucketTargets>"),
            (
                "locked/object-lock.xml",
                "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>3</Days></DefaultRetention></Rule></ObjectLockConfiguration>",
            ),
            (
                "photos/tagging.xml",
                "<Tagging><TagSet><Tag><Key>team</Key><Value>red</Value></Tag></TagSet></Tagging>",
            ),
            ("plain/quota.json", r#"{"quota":0,"size":0,"rate":0,"requests":0}"#),
        ]);
        assert_eq!(wanted.losses, []);
        let photos = &wanted.buckets["photos"];
        let tags: Vec<_> = photos.tags.iter().map(|tag| (&*tag.key, &*tag.value)).collect();
        assert_eq!(tags, [("team", "red")]);
        assert_eq!((photos.quota, photos.versioning), (Some(1 << 30), Some(VersioningState::Enabled)));
        let locked = &wanted.buckets["locked"];
        let retention =
            locked.retention.as_ref().map(|retention| (retention.mode, retention.days, retention.years));
        assert_eq!((locked.object_lock, retention), (true, Some((RetentionMode::Governance, Some(3), None))));
        assert_eq!(wanted.buckets["plain"].quota, None);
    }

    #[test]
    fn what_has_no_counterpart_is_named_without_secrets() {
        let wanted = read(&[
            ("photos/bucket-encryption.xml", "<ServerSideEncryptionConfiguration/>"),
            ("photos/bucket-targets.json", r#"{"Targets":[{"credentials":{"secretKey":"hush"}}]}"#),
            ("photos/quota.json", r#"{"size":5,"quotatype":"fifo"}"#),
            (
                "photos/versioning.xml",
                "<VersioningConfiguration><Status>Enabled</Status><ExcludeFolders>true</ExcludeFolders></VersioningConfiguration>",
            ),
            ("photos/lifecycle.xml", "not XML"),
            ("photos/odd.bin", ""),
            ("Bad_Name/versioning.xml", ""),
        ]);
        let losses: Vec<_> = wanted.losses.iter().map(|loss| (loss.kind, &*loss.name)).collect();
        let kinds = ["encryption", "file", "lifecycle", "quota", "replication", "versioning"];
        assert_eq!(losses[0], ("bucket", "Bad_Name"));
        assert_eq!(losses[1..], kinds.map(|kind| (kind, "photos")));
        assert!(!format!("{:?}", wanted.losses).contains("hush"));
    }

    #[test]
    fn another_archive_is_refused() {
        let files = Files::from([("iam-assets/users.json".to_owned(), b"{}".to_vec())]);
        assert!(Wanted::read(&files).is_err());
    }
}
