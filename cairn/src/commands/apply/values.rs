//! Rules and statements as JSON, in one form.
//!
//! Members that have their default are left out, so that equal rules are equal values. Each value is also a valid part of a
//! request.

use cairn_api::{CorsRule, DefaultRetention, LifecycleRule, PublicRule, SetLifecycleRule, Statement};
use serde::Serialize;
use serde_json::{Value, json};

/// Returns a value without members that are null, false, zero or empty.
fn without_defaults<T: Serialize>(value: &T) -> Value {
    let mut value = json!(value);
    if let Some(members) = value.as_object_mut() {
        members.retain(|_, member| match member {
            Value::Null | Value::Bool(false) => false,
            Value::Array(items) => !items.is_empty(),
            _ => true,
        });
    }
    value
}

/// Returns a CORS rule.
pub(super) fn cors_rule(rule: &CorsRule) -> Value {
    without_defaults(rule)
}

/// Returns a statement of a policy.
pub(super) fn statement(statement: &Statement) -> Value {
    without_defaults(statement)
}

/// Returns a rule of public access.
pub(super) fn public_rule(rule: &PublicRule) -> Value {
    let PublicRule { prefix, list, .. } = rule;
    if *list { json!({"prefix": prefix, "list": true}) } else { json!({"prefix": prefix}) }
}

/// Returns a default retention; null if there is none.
pub(super) fn retention(retention: Option<&DefaultRetention>) -> Value {
    json!(retention)
}

/// Returns a lifecycle rule, with its tags in the order of their keys.
pub(super) fn lifecycle_rule(rule: &SetLifecycleRule) -> Value {
    let mut value = without_defaults(rule);
    if let Some(tags) = value["tags"].as_array_mut() {
        tags.sort_by_key(|tag| tag["key"].to_string());
    }
    let members = value.as_object_mut().unwrap_or_else(|| unreachable!("a rule is an object"));
    members.retain(|name, member| {
        let is_default = match &**name {
            "tags" => member.is_null(),
            "newer_noncurrent_versions" => *member == 0,
            _ => false,
        };
        !is_default && name != "enabled"
    });
    if rule.enabled == Some(false) {
        members.insert("enabled".to_owned(), Value::Bool(false));
    }
    value
}

/// Returns a stored lifecycle rule, without what the server has added.
pub(super) fn stored_lifecycle_rule(rule: LifecycleRule) -> Value {
    lifecycle_rule(&rule.into())
}

/// Returns what a lifecycle rule is about: its prefix and its tags.
pub(super) fn selection(rule: &Value) -> (&Value, &Value) {
    (&rule["prefix"], &rule["tags"])
}

/// Members that say what a rule is about. They are shown first.
const FIRST: [&str; 6] = ["effect", "prefix", "key", "mode", "id", "allowed_origins"];

/// Returns names of members in the order in which they are shown.
pub(super) fn ordered<'n>(names: impl IntoIterator<Item = &'n String>) -> Vec<&'n String> {
    let mut names: Vec<&String> = names.into_iter().collect();
    names.sort_by_key(|name| (FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len()), *name));
    names
}

/// Formats a value as TOML would have it, on one line.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members: Vec<String> = ordered(members.keys())
                .into_iter()
                .map(|name| format!("{name} = {}", text(&members[name])))
                .collect();
            if members.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", members.join(", ")) }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_api::Tag;

    #[test]
    fn rules_that_mean_the_same_are_equal() {
        let tag = |key: &str| Tag { key: key.to_owned(), value: String::new() };
        let rule = |tags, zero, no, on| SetLifecycleRule {
            prefix: "logs/".to_owned(),
            tags,
            expiration: Some(3),
            noncurrent_version_expiration: None,
            newer_noncurrent_versions: zero,
            expired_delete_markers: no,
            abort_incomplete_multipart_upload: None,
            enabled: on,
        };
        let short = lifecycle_rule(&rule(None, None, None, None));
        assert_eq!(short, json!({"prefix": "logs/", "expiration": 3}));
        assert_eq!(short, lifecycle_rule(&rule(Some(Vec::new()), Some(0), Some(false), Some(true))));
        let off = lifecycle_rule(&rule(Some(vec![tag("b"), tag("a")]), None, None, Some(false)));
        assert_eq!(off, lifecycle_rule(&rule(Some(vec![tag("a"), tag("b")]), None, None, Some(false))));
        assert_eq!(
            text(&off),
            r#"{ prefix = "logs/", enabled = false, expiration = 3, tags = [{ key = "a", value = "" }, { key = "b", value = "" }] }"#
        );
        let public = |read, list| public_rule(&PublicRule { prefix: "p/".into(), read, list });
        assert_eq!(text(&public(true, false)), r#"{ prefix = "p/" }"#);
        assert_eq!(text(&public(true, true)), r#"{ prefix = "p/", list = true }"#);
    }
}
