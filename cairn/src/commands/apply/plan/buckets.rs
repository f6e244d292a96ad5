//! Compares buckets with the file.

use cairn_admin::checks;
use cairn_api::{
    BucketContents, ByteQuota, CreateBucket, ObjectQuota, SetQuota, SetVersioning, VersioningState,
};
use cairn_http1::encode_strict;
use serde_json::{Value, json};

use crate::client::Request;
use crate::commands::apply::change::{Action, Change, Member, QUOTA_BYTES, Step};
use crate::commands::apply::source::Problems;
use crate::commands::apply::state::{BucketSettings, State};
use crate::commands::apply::tables::Dimension;
use crate::commands::apply::values;
use crate::commands::apply::wanted::WantedBucket;
use crate::commands::resources::{BUCKETS, LIFECYCLE_RULES};
use crate::quantity::counted;

/// Returns what has to change for a bucket to be as the file says; `None` if it is.
pub(super) fn change(wanted: &WantedBucket, state: &State, problems: &Problems) -> Option<Change> {
    let name = &wanted.name;
    let existing = state.settings.get(name);
    let wants_lock = wanted.object_lock.as_ref().map(|(_, lock)| *lock);
    if let (Some(existing), Some((place, lock))) = (existing, &wanted.object_lock)
        && existing.object_lock != *lock
    {
        let (has, why) = if *lock { ("no object lock", "added") } else { ("object lock", "removed") };
        problems.add(place, format_args!("bucket {name} has {has}, which cannot be {why}"));
    }
    let fresh = BucketSettings::of_new_bucket(wants_lock.unwrap_or_default());
    let before = existing.unwrap_or(&fresh);
    let action = if existing.is_some() { Action::Change } else { Action::Create };
    let mut change = Change::new(action, "bucket", name.clone());
    if existing.is_none() {
        let object_lock = wants_lock.unwrap_or_default();
        let request = CreateBucket { name: name.clone().into(), object_lock };
        change.steps.push(("the bucket", Step::Send(Request::post(BUCKETS.path).json(&request))));
        if object_lock {
            change.members.push(Member::new("object_lock", Value::Null, true));
        }
    }
    let comparison =
        Comparison { wanted, before, path: BUCKETS.path_of(name), is_new: existing.is_none(), problems };
    comparison.versioning(&mut change);
    comparison.default_retention(&mut change);
    comparison.quota(&mut change);
    comparison.cors(&state.s3_compatibility, &mut change);
    comparison.lifecycle(&mut change);
    comparison.public(state.public_access, &mut change);
    (!change.steps.is_empty()).then_some(change)
}

/// Returns the deletion of a bucket that is not in the file. It is a problem if the bucket is not empty.
pub(super) fn deletion(name: &str, contents: &BucketContents, problems: &Problems) -> Option<Change> {
    let BucketContents { versions, delete_markers, multipart_uploads, .. } = *contents;
    if versions > 0 || delete_markers > 0 || multipart_uploads > 0 {
        problems.add_without_line(format_args!(
            "bucket {name} is not in the file and is not deleted, because it is not empty: it has {}, {} and {}; add it to \
             the file, or delete it with `cairn bucket delete --force`",
            counted(versions, "version"),
            counted(delete_markers, "delete marker"),
            counted(multipart_uploads, "unfinished upload"),
        ));
        return None;
    }
    let mut change = Change::new(Action::Delete, "bucket", name.to_owned());
    change.steps.push(("the bucket", Step::Send(Request::delete(BUCKETS.path_of(name)))));
    Some(change)
}

/// A bucket in the file, and its settings before.
struct Comparison<'c> {
    wanted: &'c WantedBucket,
    before: &'c BucketSettings,
    path: String,
    is_new: bool,
    problems: &'c Problems,
}

impl Comparison<'_> {
    fn put(&self, route: &str, body: &impl serde::Serialize) -> Step {
        Step::Send(Request::put(format!("{}/{route}", self.path)).json(body))
    }

    /// Returns a value before, which is not shown for a new bucket.
    fn old(&self, value: impl Into<Value>) -> Value {
        if self.is_new { Value::Null } else { value.into() }
    }

    fn versioning(&self, change: &mut Change) {
        let Some((place, versioning)) = &self.wanted.versioning else { return };
        let before = self.before.versioning;
        if *versioning == before {
            return;
        }
        if self.before.object_lock && *versioning == VersioningState::Suspended {
            self.problems.add(place, "object lock requires versioning to stay Enabled");
        }
        let step = self.put("versioning", &SetVersioning { versioning: *versioning });
        change.set(Member::new("versioning", self.old(json!(before)), json!(versioning)), step);
    }

    fn default_retention(&self, change: &mut Change) {
        let Some((place, retention)) = &self.wanted.default_retention else { return };
        let before = &self.before.default_retention;
        if retention == before {
            return;
        }
        if !self.before.object_lock {
            self.problems.add(place, "default_retention needs a bucket with object lock");
        }
        let step = self.put("object-lock", &json!({ "default_retention": retention }));
        change.set(Member::new("default_retention", before.clone(), retention.clone()), step);
    }

    fn quota(&self, change: &mut Change) {
        let shown = |limit: Option<u64>| limit.map_or_else(|| json!("unlimited"), Value::from);
        let (mut bytes, mut objects) = (self.before.bytes, self.before.objects);
        let limits = [
            (QUOTA_BYTES, &self.wanted.bytes, &mut bytes, self.before.used_bytes),
            ("quota.objects", &self.wanted.objects, &mut objects, self.before.used_objects),
        ];
        for (name, wanted, limit, used) in limits {
            let Some((place, wanted)) = wanted else { continue };
            if wanted == limit {
                continue;
            }
            if wanted.is_some_and(|wanted| wanted < used) {
                self.problems.add(place, format_args!("{name}: the bucket already holds {used}"));
            }
            change.members.push(Member::new(name, self.old(shown(*limit)), shown(*wanted)));
            *limit = *wanted;
        }
        if (bytes, objects) != (self.before.bytes, self.before.objects) {
            let quota = cairn_api::Quota { bytes: ByteQuota::of(bytes), objects: ObjectQuota::of(objects) };
            change.steps.push(("quota", self.put("quota", &SetQuota { quota })));
        }
    }

    /// Browsers try the rules in their order.
    fn cors(&self, s3_compatibility: &str, change: &mut Change) {
        let Some((place, rules)) = &self.wanted.cors else { return };
        if *rules == self.before.cors {
            return;
        }
        let typed =
            serde_json::from_value(json!(rules)).unwrap_or_else(|error| unreachable!("were read: {error}"));
        self.problems.check(
            place,
            checks::cors_rules(typed, s3_compatibility).map_err(|error| format!("cors: {error}")),
        );
        let step = if rules.is_empty() {
            Step::Send(Request::delete(format!("{}/cors", self.path)))
        } else {
            self.put("cors", &json!({ "rules": rules }))
        };
        change.set(Member::new("cors", json!(self.before.cors), json!(rules)), step);
    }

    /// Rules that stay keep their ids and their status. A rule about the same objects as one in the file is replaced. Rules
    /// that go are deleted first, because they delete objects.
    fn lifecycle(&self, change: &mut Change) {
        let Some((_, rules)) = &self.wanted.lifecycle else { return };
        let before = &self.before.lifecycle;
        let mut new: Vec<&Value> =
            rules.iter().filter(|rule| !before.iter().any(|(_, old)| old == *rule)).collect();
        let (mut deletions, mut replacements, mut after) = (Vec::new(), Vec::new(), Vec::new());
        for (id, old) in before {
            let successor = new.iter().position(|rule| values::selection(rule) == values::selection(old));
            if rules.contains(old) && !after.contains(old) {
                after.push(old.clone());
            } else if let Some(successor) = successor {
                let rule = new.remove(successor);
                let path = format!("{}/lifecycle/{}", self.path, encode_strict(id));
                replacements.push(Step::Send(Request::put(path).json(rule)));
                after.push(rule.clone());
            } else {
                deletions.push(Step::Send(Request::delete(LIFECYCLE_RULES.path_of(id))));
            }
        }
        let create =
            |rule: &&Value| Step::Send(Request::post(format!("{}/lifecycle", self.path)).json(*rule));
        let steps: Vec<Step> =
            deletions.into_iter().chain(replacements).chain(new.iter().map(create)).collect();
        if steps.is_empty() {
            return;
        }
        after.extend(new.into_iter().cloned());
        let before: Vec<&Value> = before.iter().map(|(_, rule)| rule).collect();
        change.members.push(Member::new("lifecycle", json!(before), after));
        change.steps.extend(steps.into_iter().map(|step| ("lifecycle", step)));
    }

    fn public(&self, is_enabled: bool, change: &mut Change) {
        let before = &self.before.public_rules;
        let rules = self.wanted.public_rules.as_ref().map_or(before, |(_, rules)| rules);
        let blocked = self.wanted.public_blocked.unwrap_or(self.before.public_blocked);
        let (old, new) = (sorted(before), sorted(rules));
        if old == new && blocked == self.before.public_blocked {
            return;
        }
        if let (Some((place, rules)), false) = (&self.wanted.public_rules, is_enabled)
            && rules.iter().any(|rule| !before.contains(rule))
        {
            self.problems.add(
                place,
                "public: auth.public_access_enabled is false on the server, so rules can only be removed",
            );
        }
        if old != new {
            change.members.push(Member::new("public", old, new));
        }
        if blocked != self.before.public_blocked {
            change.members.push(Member::new("public.blocked", self.old(self.before.public_blocked), blocked));
        }
        change
            .steps
            .push(("public", self.put("public-access", &json!({"rules": rules, "blocked": blocked}))));
    }
}

/// Returns rules in the order of their prefixes, which has no meaning.
fn sorted(rules: &[Value]) -> Vec<Value> {
    let mut rules = rules.to_vec();
    rules.sort_by_key(|rule| rule["prefix"].to_string());
    rules
}
