//! Rules of public access from the bucket policies of an export.
//!
//! A rule lets everybody read below a prefix, and perhaps list. What a policy allows beyond that is named and left out. A
//! policy that denies something becomes no rule, because rules cannot deny.

use std::collections::BTreeMap;

use cairn_api::PublicRule;
use serde_json::Value;

const ARN_PREFIX: &str = "arn:aws:s3:::";
/// An action that nobody needs who knows the address, or that is a part of listing.
const WITHOUT_USE: &str = "s3:GetBucketLocation";

/// Reads the rules that a policy of a bucket becomes. `lose` gets the reasons for what is left out.
pub(super) fn read(bucket: &str, policy: &Value, lose: &mut dyn FnMut(String)) -> Vec<PublicRule> {
    let statements = match policy.get("Statement") {
        Some(Value::Array(statements)) => &statements[..],
        Some(statement) => std::slice::from_ref(statement),
        None => &[],
    };
    if statements.iter().any(|statement| statement["Effect"] != "Allow") {
        lose("it denies something, which rules of public access cannot".to_owned());
        return Vec::new();
    }
    let (mut readable, mut listed) = (Vec::new(), Vec::new());
    for (index, statement) in statements.iter().enumerate() {
        let mut lose = |reason: String| lose(format!("Statement[{index}]: {reason}"));
        match access(bucket, statement, &mut lose) {
            Ok(Access { reads, lists }) => {
                readable.extend(reads);
                listed.extend(lists);
            }
            Err(reason) => lose(reason),
        }
    }
    joined(&readable, &listed, lose)
}

/// Prefixes that a statement lets everybody read and list.
#[derive(Default)]
struct Access {
    reads: Vec<String>,
    lists: Vec<String>,
}

fn access(bucket: &str, statement: &Value, lose: &mut dyn FnMut(String)) -> Result<Access, String> {
    let members = statement.as_object().ok_or("it is no object")?;
    const KNOWN: [&str; 6] = ["Sid", "Effect", "Principal", "Action", "Resource", "Condition"];
    if let Some(name) = members.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        return Err(format!("{name} has no counterpart"));
    }
    if !is_everybody(&statement["Principal"]) {
        return Err("it is not for everybody".to_owned());
    }
    let actions = texts(&statement["Action"]).ok_or("Action is no list of texts")?;
    let resources = texts(&statement["Resource"]).ok_or("Resource is no list of texts")?;
    let condition = &statement["Condition"];
    let has_condition = condition.as_object().is_some_and(|condition| !condition.is_empty());
    let mut access = Access::default();
    let mut others = Vec::new();
    for action in actions {
        match &*action {
            "s3:GetObject" if has_condition => {
                return Err("its Condition has no counterpart for s3:GetObject".to_owned());
            }
            "s3:GetObject" => {
                for resource in &resources {
                    match prefix_of(bucket, resource) {
                        Some(Some(prefix)) => access.reads.push(prefix),
                        // Reading is not about the bucket.
                        Some(None) => {}
                        None => lose(format!(
                            "the resource {resource} does not end in its only *, or is of another bucket"
                        )),
                    }
                }
            }
            "s3:ListBucket" => {
                // MinIO takes `photos/*` for the bucket, too.
                let is_meant = |resource: &String| matches!(prefix_of(bucket, resource).map(Option::unwrap_or_default), Some(prefix) if prefix.is_empty());
                if resources.iter().any(is_meant) {
                    access.lists.extend(if has_condition {
                        listed_prefixes(condition)?
                    } else {
                        vec![String::new()]
                    });
                }
            }
            WITHOUT_USE => {}
            _ => others.push(action),
        }
    }
    if !others.is_empty() {
        lose(format!(
            "{} is not possible without a signature; rules of public access allow reading and listing",
            others.join(", ")
        ));
    }
    Ok(access)
}

fn is_everybody(principal: &Value) -> bool {
    let is_star = |value: &Value| texts(value).is_some_and(|texts| texts == ["*"]);
    is_star(principal)
        || principal.as_object().is_some_and(|members| members.len() == 1 && is_star(&principal["AWS"]))
}

fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(values) => values.iter().map(|value| value.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

/// Returns the prefix of keys that a resource is about; inside, `None` for the bucket itself. `None` if it is neither.
fn prefix_of(bucket: &str, resource: &str) -> Option<Option<String>> {
    let path = resource.strip_prefix(ARN_PREFIX)?.strip_prefix(bucket)?;
    if path.is_empty() {
        return Some(None);
    }
    let prefix = path.strip_prefix('/')?.strip_suffix('*')?;
    (!prefix.contains(['*', '?', '$'])).then(|| Some(prefix.to_owned()))
}

/// Returns the prefixes that a condition allows to be listed.
fn listed_prefixes(condition: &Value) -> Result<Vec<String>, String> {
    let no_counterpart =
        || "only a condition on s3:prefix has a counterpart, by StringEquals or StringLike".to_owned();
    let mut prefixes = Vec::new();
    for (test, keys) in condition.as_object().ok_or_else(no_counterpart)? {
        let is_known = matches!(test.as_str(), "StringEquals" | "StringLike");
        let values = keys
            .as_object()
            .filter(|keys| is_known && keys.len() == 1)
            .and_then(|keys| texts(keys.get("s3:prefix")?));
        for value in values.ok_or_else(no_counterpart)? {
            let prefix = if test == "StringLike" { value.trim_end_matches('*') } else { &value };
            if prefix.contains(['*', '?']) {
                return Err(no_counterpart());
            }
            prefixes.push(prefix.to_owned());
        }
    }
    // Several tests must all be true.
    if condition.as_object().is_some_and(|tests| tests.len() > 1) {
        Err(no_counterpart())
    } else {
        Ok(prefixes)
    }
}

/// Joins what may be read and listed to rules. Listing without reading is left out.
fn joined(readable: &[String], listed: &[String], lose: &mut dyn FnMut(String)) -> Vec<PublicRule> {
    let mut rules: BTreeMap<&str, bool> = BTreeMap::new();
    for prefix in readable {
        rules.entry(prefix).or_default();
    }
    for prefix in listed {
        let mut is_used = false;
        for readable in readable.iter().filter(|readable| readable.starts_with(&**prefix)) {
            rules.insert(readable, true);
            is_used |= readable == prefix;
        }
        if readable.iter().any(|readable| prefix.starts_with(&**readable)) {
            rules.insert(prefix, true);
            is_used = true;
        }
        if !is_used {
            lose(format!("listing {prefix}* is only possible where everybody may read"));
        }
    }
    let rule =
        |(prefix, list): (&str, bool)| PublicRule { prefix: prefix.to_owned().into(), read: true, list };
    rules.into_iter().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_policy(statements: &Value) -> (Vec<(String, bool)>, Vec<String>) {
        let mut lost = Vec::new();
        let rules = read("photos", &json!({"Statement": statements}), &mut |reason| lost.push(reason));
        (rules.iter().map(|rule| (rule.prefix.to_string(), rule.list)).collect(), lost)
    }

    fn allow(actions: &[&str], path: &str) -> Value {
        json!({"Effect": "Allow", "Principal": {"AWS": ["*"]}, "Action": actions, "Resource": [format!("{ARN_PREFIX}{path}")]})
    }

    fn list_below(prefix: &str) -> Value {
        let mut statement = allow(&["s3:ListBucket"], "photos");
        statement["Condition"] = json!({"StringEquals": {"s3:prefix": [prefix]}});
        statement
    }

    /// `mc anonymous set download` makes these policies, for a bucket and for a prefix.
    #[test]
    fn downloads_become_rules() {
        let whole = json!([
            allow(&["s3:GetBucketLocation", "s3:ListBucket"], "photos"),
            allow(&["s3:GetObject"], "photos/*")
        ]);
        assert_eq!(read_policy(&whole), (vec![(String::new(), true)], vec![]));
        let folder = json!([
            allow(&["s3:GetBucketLocation"], "photos"),
            list_below("a/"),
            allow(&["s3:GetObject"], "photos/a/*")
        ]);
        assert_eq!(read_policy(&folder), (vec![("a/".to_owned(), true)], vec![]));
        let hidden = json!([allow(&["s3:GetObject"], "photos/a/*"), allow(&["s3:GetObject"], "photos/b*")]);
        assert_eq!(read_policy(&hidden), (vec![("a/".to_owned(), false), ("b".to_owned(), false)], vec![]));
        let part = json!([allow(&["s3:GetObject"], "photos/*"), list_below("a/")]);
        assert_eq!(read_policy(&part), (vec![(String::new(), false), ("a/".to_owned(), true)], vec![]));
    }

    #[test]
    fn what_rules_cannot_say_is_left_out_by_name() {
        let (rules, lost) =
            read_policy(&json!([allow(&["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], "photos/*")]));
        assert_eq!(rules, [(String::new(), false)]);
        assert!(lost[0].contains("s3:PutObject, s3:DeleteObject"), "{lost:?}");
        let mut named = allow(&["s3:GetObject"], "photos/*");
        named["Principal"] = json!({"AWS": ["alice"]});
        let mut from_office = allow(&["s3:GetObject"], "photos/*");
        from_office["Condition"] = json!({"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}});
        let mut denial = allow(&["s3:GetObject"], "photos/secret/*");
        denial["Effect"] = json!("Deny");
        for statements in [
            json!([named]),
            json!([from_office]),
            json!([allow(&["s3:GetObject"], "photos/*.jpg")]),
            json!([allow(&["s3:GetObject"], "other/*")]),
            json!([allow(&["s3:ListBucket"], "photos")]),
            json!([allow(&["s3:GetObject"], "photos/*"), denial]),
            json!(["x"]),
            json!([allow(&["s3:PutObject"], "photos/*")]),
        ] {
            let (rules, lost) = read_policy(&statements);
            assert!(rules.is_empty() && lost.len() == 1, "{statements}: {rules:?} {lost:?}");
        }
    }

    /// Listing the whole bucket shows more than the readable folder.
    #[test]
    fn listing_more_than_is_readable_is_narrowed_and_named() {
        let (rules, lost) = read_policy(&json!([
            allow(&["s3:ListBucket"], "photos"),
            allow(&["s3:GetObject"], "photos/a/*")
        ]));
        assert_eq!(rules, [("a/".to_owned(), true)]);
        assert!(lost[0].contains("only possible where"), "{lost:?}");
    }
}
