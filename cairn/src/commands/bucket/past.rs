//! `cairn bucket restore` and `cairn bucket protect`: a bucket as it was, and versions that make this possible.

use cairn_api::{
    LifecycleRule, LifecycleRuleList, RestoreAction, RestoreBucket, RestoredBucket, SetLifecycleRule,
    SetVersioning, VersioningState,
};
use serde_json::json;

use crate::client::{Client, Request, read};
use crate::commands::macros::command;
use crate::commands::resources::{BUCKETS, LIFECYCLE_RULES};
use crate::failure::{Failure, Outcome};
use crate::moment::Moment;
use crate::quantity::{Days, bytes_text, counted};
use crate::terminal::{lines, plain};

command! {
    /// Make the objects of a bucket equal to those of a moment. Older versions become current again as new versions, and
    /// objects that did not exist get delete markers. No version is deleted.
    struct Restore("restore") {
        /// the bucket's name
        #[argh(positional)]
        name: String,
        /// the moment: an age such as 2h, a date or a time
        #[argh(option, arg_name = "time")]
        at: Moment,
        /// only keys that begin with this prefix (default: all keys)
        #[argh(option, arg_name = "prefix", default = "String::new()")]
        prefix: String,
        /// keep the objects that did not exist at that moment
        #[argh(switch)]
        keep_newer: bool,
        /// show what would be done, and change nothing
        #[argh(switch)]
        dry_run: bool,
    }
}

command! {
    /// Keep what is overwritten and deleted in a bucket for some days: enable versioning, and add a lifecycle rule that removes
    /// older versions afterwards.
    struct Protect("protect") {
        /// the bucket's name
        #[argh(positional)]
        name: String,
        /// days for which older versions are kept
        #[argh(option, arg_name = "n")]
        days: Days,
    }
}

impl Restore {
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        let request = RestoreBucket {
            at: self.at.0.clone().into(),
            prefix: self.prefix.clone(),
            dry_run: self.dry_run,
            keep_newer: self.keep_newer,
        };
        let done = self.send(&client, &request)?;
        let body = json!(&done);
        client.print(&body, || lines(&self.text(&done)))?;
        match done.failed {
            0 => Ok(()),
            failed => Err(format!(
                "{} could not be restored; the log of the server says why",
                counted(failed, "object")
            )
            .into()),
        }
    }

    /// Sends the request until everything was looked at. The first answer has the moment that undoes all of it.
    fn send(&self, client: &Client, request: &RestoreBucket) -> Result<RestoredBucket, Failure> {
        let path = BUCKETS.path_of(&self.name) + "/restore";
        let send = || {
            read::<RestoredBucket>(&client.call(&Request::post(path.clone()).json(request).long_running())?)
        };
        let mut total = send()?;
        while !total.complete {
            let more = send()?;
            if !more.complete && more.restored + more.deleted == 0 {
                return Err("the server went no further: too many objects could not be restored".into());
            }
            // What was restored before is unchanged now.
            total.unchanged = more.unchanged.saturating_sub(total.restored);
            total.restored += more.restored;
            total.deleted += more.deleted;
            total.bytes += more.bytes;
            (total.complete, total.failed) = (more.complete, more.failed);
        }
        Ok(total)
    }

    fn text(&self, done: &RestoredBucket) -> String {
        let would = if self.dry_run { "would restore" } else { "restored" };
        let delete = if self.dry_run { "delete" } else { "deleted" };
        let leave = if self.dry_run { "leave" } else { "left" };
        let mut text = format!(
            "{would} {} ({}), {delete} {}, {leave} {}\n",
            counted(done.restored, "object"),
            bytes_text(done.bytes),
            done.deleted,
            done.unchanged
        );
        if self.dry_run {
            for key in &done.sample {
                let action = match key.action {
                    RestoreAction::Restore => "restore",
                    RestoreAction::Delete => "delete",
                };
                text += &format!("  {action:7} {}\n", plain(&key.key));
            }
            let (changed, shown) = (done.restored + done.deleted, done.sample.len() as u64);
            if changed > shown {
                text += &format!("  and {} more\n", changed - shown);
            }
        } else if done.restored + done.deleted > 0 {
            let prefix = if self.prefix.is_empty() {
                String::new()
            } else {
                format!(" --prefix {}", shell(&self.prefix))
            };
            text += &format!(
                "undo with: cairn bucket restore {} --at {}{prefix}\n",
                shell(&self.name),
                done.undo_at
            );
        }
        text
    }
}

impl Protect {
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        let path = BUCKETS.path_of(&self.name);
        let days = self.days.short();
        let versioning = SetVersioning { versioning: VersioningState::Enabled };
        client.call(&Request::put(path.clone() + "/versioning").json(&versioning))?;
        let rules: LifecycleRuleList = read(&client.call(&Request::get(path.clone() + "/lifecycle"))?)?;
        let (own, others): (Vec<_>, Vec<_>) = rules.rules.iter().partition(|rule| is_of_protect(rule));
        let (same, former): (Vec<_>, Vec<_>) =
            own.into_iter().partition(|rule| rule.noncurrent_version_expiration == Some(days));
        let is_added = same.is_empty();
        if is_added {
            let rule = SetLifecycleRule {
                prefix: String::new(),
                tags: None,
                expiration: None,
                noncurrent_version_expiration: Some(days),
                newer_noncurrent_versions: None,
                expired_delete_markers: Some(true),
                abort_incomplete_multipart_upload: None,
                enabled: None,
            };
            client.call(&Request::post(path + "/lifecycle").json(&rule))?;
        }
        // The new rule is there before the rules of earlier calls go.
        for rule in &former {
            client.call(&Request::delete(LIFECYCLE_RULES.path_of(&rule.id)))?;
        }
        let sooner: Vec<_> = others.into_iter().filter(|rule| removes_before(rule, days)).collect();
        let ids = |rules: &[&LifecycleRule]| rules.iter().map(|rule| rule.id.to_string()).collect::<Vec<_>>();
        let body = json!({
            "bucket": self.name,
            "days": days,
            "rule_added": is_added,
            "rules_removed": ids(&former),
            "rules_that_remove_sooner": ids(&sooner),
        });
        client.print(&body, || {
            let kept = counted(days.into(), "day");
            let mut text =
                format!("{} keeps what is overwritten and deleted for {kept}\n", plain(&self.name));
            for rule in &former {
                text += &format!("  this replaces the rule {}\n", &*rule.id);
            }
            for rule in &sooner {
                text += &format!(
                    "  but the rule {} removes versions below {:?} sooner: cairn lifecycle delete {0}\n",
                    &*rule.id,
                    plain(&rule.prefix)
                );
            }
            lines(&text)
        })
    }
}

/// Returns whether a rule has the form that this command makes, with any number of days.
fn is_of_protect(rule: &LifecycleRule) -> bool {
    let keeps_all = rule.newer_noncurrent_versions == 0 && rule.expiration.is_none() && rule.tags.is_empty();
    let removes = rule.noncurrent_version_expiration.is_some() && rule.expired_delete_markers;
    let aborts = rule.abort_incomplete_multipart_upload.is_some();
    rule.enabled && rule.prefix.is_empty() && keeps_all && removes && !aborts
}

/// Returns whether a rule removes noncurrent versions before they are so many days old.
fn removes_before(rule: &LifecycleRule, days: u32) -> bool {
    rule.enabled && rule.noncurrent_version_expiration.is_some_and(|other| other < days)
}

/// Quotes a word for a shell, if it needs that.
fn shell(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}
