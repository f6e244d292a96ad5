//! `cairn public`: what anybody may read and list without a signature.

use cairn_api::{PublicAccess, PublicAccessList, PublicBucketRule, PublicRule};
use serde_json::json;

use crate::client::{Client, Request, read};
use crate::commands::macros::{command, noun};
use crate::commands::resources::BUCKETS;
use crate::failure::{Failure, Outcome};
use crate::output::table::{Columns, table, text};
use crate::terminal::plain;

noun! {
    /// Let everybody read the objects below a prefix, and show all that is public.
    struct Public("public"): PublicCommand { List, Set, Remove }
}

command! {
    /// List all that is public.
    struct List("list") {
        /// only this bucket
        #[argh(positional)]
        bucket: Option<String>,
    }
}

command! {
    /// Let everybody read the current objects whose keys begin with a prefix.
    struct Set("set") {
        /// the bucket's name
        #[argh(positional)]
        bucket: String,
        /// the beginning of the keys; "" means all keys
        #[argh(positional)]
        prefix: String,
        /// let everybody list these keys, too
        #[argh(switch)]
        list: bool,
    }
}

command! {
    /// End the public access to a prefix.
    struct Remove("remove") {
        /// the bucket's name
        #[argh(positional)]
        bucket: String,
        /// the prefix, as it was set
        #[argh(positional)]
        prefix: String,
    }
}

const RULES: Columns<PublicBucketRule> = &[
    ("bucket", |rule| text(&rule.bucket)),
    ("prefix", |rule| text(&rule.prefix)),
    ("list", |rule| text(&rule.list)),
    ("effective", |rule| text(&rule.effective)),
    ("created", |rule| text(&rule.created_at)),
    ("by", |rule| text(&rule.created_by)),
];

/// Reads the rules of a bucket, changes them, and sends them back. A concurrent change of them is lost. `change` returns what
/// is said when it is done.
fn change(
    client: &Client,
    bucket: &str,
    change: impl FnOnce(&mut PublicAccess) -> Result<String, Failure>,
) -> Outcome {
    let path = BUCKETS.path_of(bucket) + "/public-access";
    let mut access: PublicAccess = read(&client.call(&Request::get(path.as_str()))?)?;
    let done = plain(&change(&mut access)?);
    let blocked = if access.blocked && !access.rules.is_empty() {
        "\n  but the bucket blocks public access, so its rules have no effect"
    } else {
        ""
    };
    let body = client.call(&Request::put(path).json(&access))?;
    client.print(&body, || format!("{done}{blocked}\n"))
}

/// Says what stays public below or around a prefix that has no rule of its own any more.
fn what_stays(rules: &[PublicRule], bucket: &str, prefix: &str) -> Option<String> {
    let wider = rules.iter().find(|rule| prefix.starts_with(&*rule.prefix));
    if let Some(wider) = wider {
        return Some(format!("stays public by the rule for {bucket}/{}*", &*wider.prefix));
    }
    let below = rules.iter().filter(|rule| rule.prefix.starts_with(prefix));
    let names: Vec<_> = below.map(|rule| format!("{bucket}/{}*", &*rule.prefix)).collect();
    (!names.is_empty()).then(|| format!("is no longer public, apart from {}", names.join(", ")))
}

impl List {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        if let Some(bucket) = &self.bucket {
            // A misspelt name is an error.
            client.call(&Request::get(BUCKETS.path_of(bucket)))?;
        }
        let mut body = client.call(&Request::get("/api/v1/public-access"))?;
        if let (Some(bucket), Some(rules)) = (&self.bucket, body["rules"].as_array_mut()) {
            rules.retain(|rule| rule["bucket"] == json!(bucket));
        }
        client.print_as(&body, |PublicAccessList { enabled, rules }| {
            let place =
                self.bucket.as_deref().map_or_else(String::new, |bucket| format!(" in {}", plain(bucket)));
            let shown =
                if rules.is_empty() { format!("nothing is public{place}\n") } else { table(RULES, rules) };
            let disabled =
                if *enabled { "" } else { "public access is disabled by auth.public_access_enabled\n" };
            shown + disabled
        })
    }
}

impl Set {
    fn run(&self) -> Outcome {
        let Self { bucket, prefix, list, .. } = self;
        let add = |access: &mut PublicAccess| {
            access.rules.retain(|rule| *rule.prefix != **prefix);
            access.rules.push(PublicRule { prefix: prefix.clone().into(), read: true, list: *list });
            // A wider rule may allow more.
            let may_list = access.rules.iter().any(|rule| rule.list && prefix.starts_with(&*rule.prefix));
            let what = if may_list { "read and list" } else { "read" };
            Ok(format!("everybody may {what} {bucket}/{prefix}*"))
        };
        change(&self.client()?, bucket, add)
    }
}

impl Remove {
    fn run(&self) -> Outcome {
        let Self { bucket, prefix, .. } = self;
        let remove = |access: &mut PublicAccess| {
            let before = access.rules.len();
            access.rules.retain(|rule| *rule.prefix != **prefix);
            if access.rules.len() == before {
                let message =
                    format!("no rule is about {bucket}/{prefix}*; `cairn public list {bucket}` shows them");
                return Err(plain(&message).into());
            }
            let now = what_stays(&access.rules, bucket, prefix);
            Ok(format!("{bucket}/{prefix}* {}", now.as_deref().unwrap_or("is no longer public")))
        };
        change(&self.client()?, bucket, remove)
    }
}
