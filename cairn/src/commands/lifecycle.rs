//! `cairn lifecycle`: rules that remove objects and versions after a number of days.

use std::str::FromStr;

use cairn_api::{LifecyclePreview, LifecycleRuleList, LifecycleStatus, PlannedRemoval, SetLifecycleRule};
use cairn_http1::encode_strict;
use serde_json::json;

use crate::client::{Client, Request, read};
use crate::commands::macros::{command, noun, verbs};
use crate::commands::resources::{BUCKETS, LIFECYCLE_RULES};
use crate::failure::{Failure, Outcome};
use crate::output::table::{Columns, bytes, table, text, words};
use crate::quantity::{Whole, bytes_text, counted};

noun! {
    /// Remove objects and versions after a number of days.
    struct Lifecycle("lifecycle"): LifecycleCommand { List, Create, Update, Delete, Preview, Status, Resume }
}

/// A number of days; `None` means never.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Days(Option<u32>);

impl FromStr for Days {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "never" {
            return Ok(Self(None));
        }
        text.parse().map(|days| Self(Some(days))).map_err(|_| "expected a number of days, or never")
    }
}

/// A tag, written `key=value`. An equals sign in a key is written `%3D`: tags have no percent sign.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tag(pub(crate) String, pub(crate) String);

impl FromStr for Tag {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (key, value) = text.split_once('=').ok_or("expected key=value")?;
        Ok(Self(key.replace("%3D", "="), value.to_owned()))
    }
}

impl Tag {
    fn body(&self) -> cairn_api::Tag {
        cairn_api::Tag { key: self.0.clone(), value: self.1.clone() }
    }
}

command! {
    /// List a bucket's rules, with what each has done.
    struct List("list") {
        /// the bucket's name
        #[argh(positional)]
        bucket: String,
    }
}

command! {
    /// Create a rule. It applies to objects that exist already, too.
    struct Create("create") {
        /// the bucket's name
        #[argh(positional)]
        bucket: String,
        /// only keys that begin with this prefix (default: all keys)
        #[argh(option, arg_name = "prefix")]
        prefix: Option<String>,
        /// only versions that have this tag, key=value; may be repeated: versions that have all of them
        #[argh(option, arg_name = "tag")]
        tag: Vec<Tag>,
        /// days after which current objects expire
        #[argh(option, arg_name = "n")]
        expire_days: Option<Days>,
        /// days after which non-current versions are removed
        #[argh(option, arg_name = "n")]
        noncurrent_days: Option<Days>,
        /// number of the newest non-current versions that are kept
        #[argh(option, arg_name = "n")]
        keep_noncurrent: Option<Whole<0, 1000>>,
        /// remove delete markers that are a key's only version
        #[argh(switch)]
        remove_expired_markers: bool,
        /// days after which unfinished uploads are aborted
        #[argh(option, arg_name = "n")]
        abort_uploads_days: Option<Days>,
        /// create it disabled
        #[argh(switch)]
        disabled: bool,
        /// create nothing, but show what the rule would do now
        #[argh(switch)]
        preview: bool,
    }
}

command! {
    /// Change a rule. What is not given does not change.
    struct Update("update") {
        /// the bucket's name
        #[argh(positional)]
        bucket: String,
        /// the rule's id
        #[argh(positional)]
        rule: String,
        /// only keys that begin with this prefix
        #[argh(option, arg_name = "prefix")]
        prefix: Option<String>,
        /// only versions that have this tag, key=value; replaces all tags of the rule
        #[argh(option, arg_name = "tag")]
        tag: Vec<Tag>,
        /// remove the tags of the rule, which then applies to versions with any tags
        #[argh(switch)]
        no_tags: bool,
        /// days after which current objects expire, or never
        #[argh(option, arg_name = "n")]
        expire_days: Option<Days>,
        /// days after which non-current versions are removed, or never
        #[argh(option, arg_name = "n")]
        noncurrent_days: Option<Days>,
        /// number of the newest non-current versions that are kept
        #[argh(option, arg_name = "n")]
        keep_noncurrent: Option<Whole<0, 1000>>,
        /// whether to remove delete markers that are a key's only version: true or false
        #[argh(option, arg_name = "flag")]
        remove_expired_markers: Option<bool>,
        /// days after which unfinished uploads are aborted, or never
        #[argh(option, arg_name = "n")]
        abort_uploads_days: Option<Days>,
        /// whether the rule acts: true or false
        #[argh(option, arg_name = "flag")]
        enabled: Option<bool>,
        /// change nothing, but show what the rule would do now
        #[argh(switch)]
        preview: bool,
    }
}

verbs! {
    LIFECYCLE_RULES by {
        /// the rule's id
        rule
    }
    /// Delete a rule. What it has removed stays removed.
    delete,
}

command! {
    /// Show what an existing rule would do now, with some of the versions.
    struct Preview("preview") {
        /// the bucket's name
        #[argh(positional)]
        bucket: String,
        /// the rule's id
        #[argh(positional)]
        rule: String,
    }
}

command! {
    /// Show when rules were applied, when they will be next, and whether they are paused.
    struct Status("status") {}
}

command! {
    /// Resume the rules after a jump of the clock. Check the date of the server's host first.
    struct Resume("resume") {}
}

const SAMPLE: Columns<PlannedRemoval> = &[
    ("key", |planned| text(&planned.key)),
    ("version", |planned| text(&planned.version_id)),
    ("size", |planned| bytes(&planned.size)),
    ("due since", |planned| text(&planned.due_at)),
    ("action", |planned| words(&planned.action)),
];

const STATUS: Columns<LifecycleStatus> = &[
    ("enabled", |status| text(&status.enabled)),
    ("paused", |status| text(&status.paused)),
    ("reason", |status| text(&status.reason)),
    ("last run began", |status| text(&status.last_run_started_at)),
    ("last run ended", |status| text(&status.last_run_finished_at)),
    ("next run", |status| text(&status.next_run_at)),
    ("oldest overdue (s)", |status| text(&status.oldest_overdue_seconds)),
    ("indexes in progress", |status| text(&status.indexes_in_progress)),
    ("last error", |status| text(&status.last_error)),
];

/// Returns the route of a bucket's rules.
fn path_of(bucket: &str) -> String {
    BUCKETS.path_of(bucket) + "/lifecycle"
}

/// Says in a sentence what a rule would do.
fn sentence(preview: &LifecyclePreview) -> String {
    let of_bytes = |count: String, bytes: u64| format!("{count} ({})", bytes_text(bytes));
    let mut parts = vec![of_bytes(counted(preview.current_objects, "object"), preview.current_bytes)];
    if preview.noncurrent_versions > 0 {
        let count = counted(preview.noncurrent_versions, "non-current version");
        parts.push(of_bytes(count, preview.noncurrent_bytes));
    }
    if preview.delete_markers > 0 {
        parts.push(counted(preview.delete_markers, "delete marker"));
    }
    let mut text = format!("would remove {} now", parts.join(", "));
    if preview.multipart_uploads > 0 {
        let count = counted(preview.multipart_uploads, "unfinished upload");
        text += &format!(", and abort {}", of_bytes(count, preview.multipart_bytes));
    }
    if preview.locked > 0 {
        text += &format!("; {} stay because they are locked", counted(preview.locked, "version"));
    }
    if let Some(next) = &preview.next_due_at {
        text += &format!("; more is due from {next} on");
    }
    if !preview.complete {
        text += "; not everything was examined, so the numbers are too small";
    }
    text + "\n"
}

/// Asks the server what a rule would do, and prints it.
fn show_preview(client: &Client, bucket: &str, rule: &SetLifecycleRule) -> Outcome {
    let request = Request::post(format!("{}/preview", path_of(bucket))).json(rule).long_running();
    client.print_as(&client.call(&request)?, |preview: &LifecyclePreview| {
        let sample = &preview.sample;
        let listed = if sample.is_empty() { String::new() } else { format!("\n{}", table(SAMPLE, sample)) };
        sentence(preview) + &listed
    })
}

/// Returns the rule with this id, without the members that the server sets.
fn existing(client: &Client, bucket: &str, id: &str) -> Result<SetLifecycleRule, Failure> {
    let body = client.call(&Request::get(path_of(bucket)))?;
    let list: LifecycleRuleList = read(&body)?;
    // A member that is not sent back is removed, and the rule might then act on more than before.
    if body != json!(list) {
        return Err("the rules have members that this version does not know: use that of the server".into());
    }
    let found = list.rules.into_iter().find(|rule| *rule.id == *id);
    let rule = found.ok_or_else(|| format!("bucket {bucket} has no lifecycle rule {id}"))?;
    Ok(rule.into())
}

impl List {
    fn run(&self) -> Outcome {
        self.client()?.list(path_of(&self.bucket), "rules", LIFECYCLE_RULES.columns)
    }
}

impl Create {
    fn run(&self) -> Outcome {
        let rule = SetLifecycleRule {
            prefix: self.prefix.clone().unwrap_or_default(),
            tags: Some(self.tag.iter().map(Tag::body).collect()),
            expiration: self.expire_days.and_then(|Days(days)| days),
            noncurrent_version_expiration: self.noncurrent_days.and_then(|Days(days)| days),
            newer_noncurrent_versions: self.keep_noncurrent.map(Whole::short),
            expired_delete_markers: Some(self.remove_expired_markers),
            abort_incomplete_multipart_upload: self.abort_uploads_days.and_then(|Days(days)| days),
            enabled: Some(!self.disabled),
        };
        let client = self.client()?;
        if self.preview {
            return show_preview(&client, &self.bucket, &rule);
        }
        LIFECYCLE_RULES.print(&client, &Request::post(path_of(&self.bucket)).json(&rule))
    }
}

impl Update {
    /// The server replaces the whole rule, so it is read first. A concurrent change of it is lost.
    fn run(&self) -> Outcome {
        if self.no_tags && !self.tag.is_empty() {
            return Err(Failure::WrongUsage("give either --tag or --no-tags".to_owned()));
        }
        let client = self.client()?;
        let mut rule = existing(&client, &self.bucket, &self.rule)?;
        if let Some(prefix) = &self.prefix {
            rule.prefix.clone_from(prefix);
        }
        if self.no_tags || !self.tag.is_empty() {
            rule.tags = Some(self.tag.iter().map(Tag::body).collect());
        }
        if let Some(Days(days)) = self.expire_days {
            rule.expiration = days;
        }
        if let Some(Days(days)) = self.noncurrent_days {
            rule.noncurrent_version_expiration = days;
        }
        if let Some(Days(days)) = self.abort_uploads_days {
            rule.abort_incomplete_multipart_upload = days;
        }
        rule.newer_noncurrent_versions =
            self.keep_noncurrent.map(Whole::short).or(rule.newer_noncurrent_versions);
        rule.expired_delete_markers = self.remove_expired_markers.or(rule.expired_delete_markers);
        rule.enabled = self.enabled.or(rule.enabled);
        if self.preview {
            return show_preview(&client, &self.bucket, &rule);
        }
        let path = format!("{}/{}", path_of(&self.bucket), encode_strict(&self.rule));
        LIFECYCLE_RULES.print(&client, &Request::put(path).json(&rule))
    }
}

impl Preview {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let rule = existing(&client, &self.bucket, &self.rule)?;
        show_preview(&client, &self.bucket, &rule)
    }
}

impl Status {
    fn run(&self) -> Outcome {
        self.client()?.show(&Request::get("/api/v1/lifecycle/status"), STATUS)
    }
}

impl Resume {
    fn run(&self) -> Outcome {
        self.client()?.show(&Request::post("/api/v1/lifecycle/resume"), STATUS)
    }
}

#[cfg(test)]
mod tests {
    use super::{Days, Tag, sentence};
    use crate::commands::resources::tags_text;
    use cairn_api::LifecyclePreview;

    #[test]
    fn preview_is_a_sentence_with_all_that_would_be_removed() {
        let mut preview = LifecyclePreview {
            complete: true,
            current_objects: 1,
            current_bytes: 5,
            noncurrent_versions: 0,
            noncurrent_bytes: 0,
            delete_markers: 0,
            locked: 0,
            multipart_uploads: 0,
            multipart_bytes: 0,
            next_due_at: None,
            sample: Vec::new(),
        };
        assert_eq!(sentence(&preview), "would remove 1 object (5 B) now\n");
        preview.noncurrent_versions = 2;
        preview.noncurrent_bytes = 1024;
        preview.delete_markers = 3;
        preview.locked = 4;
        preview.multipart_uploads = 5;
        preview.multipart_bytes = 7;
        preview.complete = false;
        preview.next_due_at = Some("2026-11-23T00:00:00.000Z".into());
        assert_eq!(
            sentence(&preview),
            "would remove 1 object (5 B), 2 non-current versions (1 KiB (1024 bytes)), 3 delete markers now, and abort \
             5 unfinished uploads (7 B); 4 versions stay because they are locked; more is due from 2026-11-23T00:00:00.000Z on; not everything was examined, so \
             the numbers are too small\n"
        );
    }

    #[test]
    fn tags_are_key_and_value() {
        let tag: Tag = "a%3Db=c=d".parse().expect("a tag");
        assert_eq!(tag, Tag("a=b".into(), "c=d".into()));
        assert_eq!(tags_text(&[tag.body(), Tag("e".into(), String::new()).body()]), "a%3Db=c=d, e=");
        assert!("a".parse::<Tag>().is_err());
    }

    #[test]
    fn days_are_a_number_or_never() {
        assert_eq!("3".parse(), Ok(Days(Some(3))));
        assert_eq!("never".parse(), Ok(Days(None)));
        assert!("3d".parse::<Days>().is_err());
    }
}
