//! `cairn lifecycle`: rules that remove objects and versions after a number of days.

use std::str::FromStr;

use cairn_http1::encode_strict;
use serde_json::{Map, Value, json};

use crate::client::{Client, Request, rows};
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
struct Tag(String, String);

impl FromStr for Tag {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (key, value) = text.split_once('=').ok_or("expected key=value")?;
        Ok(Self(key.replace("%3D", "="), value.to_owned()))
    }
}

impl Tag {
    fn json(&self) -> Value {
        json!({"key": self.0, "value": self.1})
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
        /// only versions that have this tag, key=value; several: that have all of them
        #[argh(option, arg_name = "tag")]
        tag: Vec<Tag>,
        /// days after which current objects expire
        #[argh(option, arg_name = "n")]
        expire_days: Option<Days>,
        /// days after which non-current versions are removed
        #[argh(option, arg_name = "n")]
        noncurrent_days: Option<Days>,
        /// keep so many of the newest non-current versions
        #[argh(option, arg_name = "n")]
        keep_noncurrent: Option<Whole<0, 1000>>,
        /// remove delete markers that are a key's only version
        #[argh(switch)]
        remove_expired_markers: bool,
        /// create it disabled
        #[argh(switch)]
        disabled: bool,
        /// create nothing, but show what the rule would do now
        #[argh(switch)]
        preview: bool,
    }
}

command! {
    /// Change a rule. What is not given stays.
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
        /// remove the tags of the rule: it is about versions with any tags
        #[argh(switch)]
        no_tags: bool,
        /// days after which current objects expire, or never
        #[argh(option, arg_name = "n")]
        expire_days: Option<Days>,
        /// days after which non-current versions are removed, or never
        #[argh(option, arg_name = "n")]
        noncurrent_days: Option<Days>,
        /// keep so many of the newest non-current versions
        #[argh(option, arg_name = "n")]
        keep_noncurrent: Option<Whole<0, 1000>>,
        /// whether to remove delete markers that are a key's only version: true or false
        #[argh(option, arg_name = "flag")]
        remove_expired_markers: Option<bool>,
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

const SAMPLE: Columns = &[
    ("key", |planned| text(&planned["key"])),
    ("version", |planned| text(&planned["version_id"])),
    ("size", |planned| bytes(&planned["size"])),
    ("due since", |planned| text(&planned["due_at"])),
    ("action", |planned| words(&planned["action"])),
];

const STATUS: Columns = &[
    ("enabled", |status| text(&status["enabled"])),
    ("paused", |status| text(&status["paused"])),
    ("reason", |status| text(&status["reason"])),
    ("last run began", |status| text(&status["last_run_started_at"])),
    ("last run ended", |status| text(&status["last_run_finished_at"])),
    ("next run", |status| text(&status["next_run_at"])),
    ("oldest overdue (s)", |status| text(&status["oldest_overdue_seconds"])),
    ("indexes in progress", |status| text(&status["indexes_in_progress"])),
    ("last error", |status| text(&status["last_error"])),
];

/// Returns the route of a bucket's rules.
fn path_of(bucket: &str) -> String {
    BUCKETS.path_of(bucket) + "/lifecycle"
}

/// Says in a sentence what a rule would do.
fn sentence(preview: &Value) -> String {
    let number = |name: &str| preview[name].as_u64().unwrap_or_default();
    let of_bytes = |count: String, name: &str| format!("{count} ({})", bytes_text(number(name)));
    let mut parts = vec![of_bytes(counted(number("current_objects"), "object"), "current_bytes")];
    if number("noncurrent_versions") > 0 {
        let count = counted(number("noncurrent_versions"), "non-current version");
        parts.push(of_bytes(count, "noncurrent_bytes"));
    }
    if number("delete_markers") > 0 {
        parts.push(counted(number("delete_markers"), "delete marker"));
    }
    let mut text = format!("would remove {} now", parts.join(", "));
    if number("locked") > 0 {
        text += &format!("; {} stay because they are locked", counted(number("locked"), "version"));
    }
    if let Some(next) = preview["next_due_at"].as_str() {
        text += &format!("; more is due from {next} on");
    }
    if preview["complete"] != true {
        text += "; not everything was examined, so the numbers are too small";
    }
    text + "\n"
}

/// Asks the server what a rule would do, and prints it.
fn show_preview(client: &Client, bucket: &str, rule: &Value) -> Outcome {
    let request = Request::post(format!("{}/preview", path_of(bucket))).json(rule).long_running();
    let preview = client.call(&request)?;
    let sample = rows(&preview, "sample")?;
    client.print(&preview, || {
        let listed = if sample.is_empty() { String::new() } else { format!("\n{}", table(SAMPLE, sample)) };
        sentence(&preview) + &listed
    })
}

/// Returns the rule with this id, without the members that the server sets.
fn existing(client: &Client, bucket: &str, id: &str) -> Result<Map<String, Value>, Failure> {
    let body = client.call(&Request::get(path_of(bucket)))?;
    let found = rows(&body, "rules")?.iter().find(|rule| rule["id"] == id);
    let mut rule = found
        .and_then(Value::as_object)
        .cloned()
        .ok_or_else(|| Failure::Failed(format!("bucket {bucket} has no lifecycle rule {id}")))?;
    for name in ["id", "s3_id", "created_at", "status"] {
        rule.remove(name);
    }
    Ok(rule)
}

impl List {
    fn run(&self) -> Outcome {
        self.client()?.list(path_of(&self.bucket), "rules", LIFECYCLE_RULES.listed)
    }
}

impl Create {
    fn run(&self) -> Outcome {
        let mut rule = json!({
            "prefix": self.prefix.as_deref().unwrap_or_default(),
            "tags": self.tag.iter().map(Tag::json).collect::<Vec<_>>(),
            "expired_delete_markers": self.remove_expired_markers,
            "enabled": !self.disabled,
        });
        if let Some(Days(Some(days))) = self.expire_days {
            rule["expiration"] = days.into();
        }
        if let Some(Days(Some(days))) = self.noncurrent_days {
            rule["noncurrent_version_expiration"] = days.into();
        }
        if let Some(Whole(keep)) = self.keep_noncurrent {
            rule["newer_noncurrent_versions"] = keep.into();
        }
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
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                rule.insert(name.to_owned(), value);
            }
        };
        set("prefix", self.prefix.as_deref().map(Value::from));
        let tags = || self.tag.iter().map(Tag::json).collect::<Vec<_>>().into();
        set("tags", (self.no_tags || !self.tag.is_empty()).then(tags));
        set("expiration", self.expire_days.map(|Days(days)| days.into()));
        set("noncurrent_version_expiration", self.noncurrent_days.map(|Days(days)| days.into()));
        set("newer_noncurrent_versions", self.keep_noncurrent.map(|Whole(keep)| keep.into()));
        set("expired_delete_markers", self.remove_expired_markers.map(Value::from));
        set("enabled", self.enabled.map(Value::from));
        let rule = Value::Object(rule);
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
        show_preview(&client, &self.bucket, &Value::Object(rule))
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
    use serde_json::json;

    #[test]
    fn preview_is_a_sentence_with_all_that_would_be_removed() {
        let mut preview = json!({"complete": true, "current_objects": 1, "current_bytes": 5, "noncurrent_versions": 0,
            "noncurrent_bytes": 0, "delete_markers": 0, "locked": 0, "next_due_at": null});
        assert_eq!(sentence(&preview), "would remove 1 object (5 B) now\n");
        preview["noncurrent_versions"] = 2.into();
        preview["noncurrent_bytes"] = 1024.into();
        preview["delete_markers"] = 3.into();
        preview["locked"] = 4.into();
        preview["complete"] = false.into();
        preview["next_due_at"] = "2026-11-23T00:00:00.000Z".into();
        assert_eq!(
            sentence(&preview),
            "would remove 1 object (5 B), 2 non-current versions (1 KiB (1024 bytes)), 3 delete markers now; 4 versions \
             stay because they are locked; more is due from 2026-11-23T00:00:00.000Z on; not everything was examined, so \
             the numbers are too small\n"
        );
    }

    #[test]
    fn tags_are_key_and_value() {
        let tag: Tag = "a%3Db=c=d".parse().expect("a tag");
        assert_eq!(tag, Tag("a=b".into(), "c=d".into()));
        assert_eq!(tags_text(&json!([tag.json(), {"key": "e", "value": ""}])), "a%3Db=c=d, e=");
        assert!("a".parse::<Tag>().is_err());
    }

    #[test]
    fn days_are_a_number_or_never() {
        assert_eq!("3".parse(), Ok(Days(Some(3))));
        assert_eq!("never".parse(), Ok(Days(None)));
        assert!("3d".parse::<Days>().is_err());
    }
}
