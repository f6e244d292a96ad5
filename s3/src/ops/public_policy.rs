//! Translates bucket policies into rules of public access, and back.
//!
//! Only what a rule can say has a translation: everybody may get objects whose keys begin with a prefix, and perhaps list
//! them. Everything else is refused by name, so that no policy is taken that would allow or deny less than it says.
//!
//! Source: Amazon S3 User Guide, "Bucket policies"; IAM User Guide, "JSON policy elements".

use crate::errors::{ErrorCode, S3Error, S3Result};
use cairn_engine::{PUBLIC_POLICY_BYTES_MAX, PUBLIC_PREFIXES_BYTES_MAX, PUBLIC_RULES_MAX, PublicAccess};
use cairn_identity::policy::AWS_POLICY_VERSIONS;
use cairn_model::OBJECT_KEY_BYTES_MAX;
use cairn_model::json::parse;
use serde_json::{Map, Value, json};

const ARN_PREFIX: &str = "arn:aws:s3:::";
const VERSION: &str = "2012-10-17";

/// The rules of a document: prefixes, each with whether it may be listed.
pub(super) type Prefixes = Vec<(Box<str>, bool)>;

fn malformed(message: impl Into<String>) -> S3Error {
    S3Error::with_message(ErrorCode::MalformedPolicy, message.into())
}

/// Translates a document about this bucket.
///
/// # Errors
/// `MalformedPolicy` for what is no policy document, `NotImplemented` for a statement that rules cannot say, with the reason.
pub(super) fn to_rules(bucket: &str, document: &str) -> S3Result<Prefixes> {
    // A value has at least one byte.
    let parsed = parse(document.as_bytes(), PUBLIC_POLICY_BYTES_MAX).map_err(|error| {
        malformed(format!("Policies must be valid JSON and the first byte must be '{{': {error}"))
    })?;
    let members = parsed.as_object();
    let members =
        members.ok_or_else(|| malformed("Policies must be valid JSON and the first byte must be '{'"))?;
    if let Some(name) = members.keys().find(|name| !matches!(name.as_str(), "Version" | "Id" | "Statement")) {
        return Err(malformed(format!("Unknown field {name}")));
    }
    let is_known =
        |version: &Value| version.as_str().is_some_and(|version| AWS_POLICY_VERSIONS.contains(&version));
    if !members.get("Version").is_none_or(is_known) {
        return Err(malformed("The policy must contain a valid version string"));
    }
    let statements = match members.get("Statement") {
        Some(Value::Array(statements)) => statements.iter().collect(),
        Some(statement @ Value::Object(_)) => vec![statement],
        _ => return Err(malformed("Missing required field Statement")),
    };
    let mut found = Found { is_of_minio: is_of_minio(&parsed), ..Found::default() };
    for (index, statement) in statements.into_iter().enumerate() {
        let place = format!("Statement[{index}]");
        let statement =
            statement.as_object().ok_or_else(|| malformed(format!("{place} is not an object")))?;
        found.statement(bucket, &place, statement)?;
    }
    found.finish()
}

/// The permissions found in the statements so far.
#[derive(Default)]
struct Found {
    readable: Vec<Box<str>>,
    listed: Vec<(String, Box<str>)>,
    is_of_minio: bool,
}

/// A refusal that names the statement and the reason.
fn refused(place: &str, why: impl std::fmt::Display) -> S3Error {
    S3Error::not_implemented(format!(
        "{place}: {why}. A bucket policy can say that everybody may read the objects below a prefix and list them; \
         nothing was stored. Grant other access with the policies of service accounts."
    ))
}

impl Found {
    fn statement(&mut self, bucket: &str, place: &str, statement: &Map<String, Value>) -> S3Result<()> {
        const KNOWN: [&str; 6] = ["Sid", "Effect", "Principal", "Action", "Resource", "Condition"];
        if let Some(name) = statement.keys().find(|name| !KNOWN.contains(&name.as_str())) {
            return Err(refused(place, format_args!("{name} is not implemented")));
        }
        match statement.get("Effect").and_then(Value::as_str) {
            Some("Allow") => {}
            Some("Deny") => return Err(refused(place, "Effect Deny is not implemented")),
            _ => return Err(malformed(format!("{place} has no valid Effect"))),
        }
        if !is_everybody(statement.get("Principal")) {
            return Err(refused(place, "the only Principal is \"*\""));
        }
        let lists = prefixes_of_condition(place, statement.get("Condition"), self.is_of_minio)?;
        let (mut reads, mut list) = (false, false);
        for action in texts(place, "Action", statement.get("Action"))? {
            match &*action.to_ascii_lowercase() {
                "s3:getobject" => reads = true,
                "s3:listbucket" => list = true,
                "s3:getbucketlocation" => {}
                _ => return Err(refused(place, format_args!("the action {action} is not implemented"))),
            }
        }
        if lists.is_some() && (reads || !list) {
            return Err(refused(place, "a Condition is for a statement that allows s3:ListBucket alone"));
        }
        let (mut names_keys, mut names_bucket) = (false, false);
        for resource in texts(place, "Resource", statement.get("Resource"))? {
            let path = resource.strip_prefix(ARN_PREFIX).and_then(|path| path.strip_prefix(bucket));
            match path {
                Some("") => names_bucket = true,
                Some(path) if path.starts_with('/') => {
                    let prefix =
                        path[1..].strip_suffix('*').filter(|prefix| !prefix.contains(['*', '?', '$']));
                    let prefix = prefix.ok_or_else(|| {
                        refused(
                            place,
                            format_args!("the resource {resource} must end with its only wildcard"),
                        )
                    })?;
                    if reads {
                        self.readable.push(prefix.into());
                    }
                    names_keys = true;
                }
                _ => return Err(malformed(format!("{place}: Policy has invalid resource"))),
            }
        }
        let names_all = if reads { names_keys } else { names_bucket };
        if !names_all || (list && !names_bucket) {
            return Err(malformed("Action does not apply to any resource(s) in statement"));
        }
        if list && names_bucket {
            let lists = lists.unwrap_or_else(|| vec!["".into()]);
            self.listed.extend(lists.into_iter().map(|prefix| (place.to_owned(), prefix)));
        }
        Ok(())
    }

    /// Joins what may be read and listed to rules.
    fn finish(self) -> S3Result<Prefixes> {
        let mut rules: Prefixes = Vec::new();
        let mut add =
            |prefix: Box<str>, list: bool| match rules.iter_mut().find(|(known, _)| *known == prefix) {
                Some((_, listed)) => *listed |= list,
                None => rules.push((prefix, list)),
            };
        for prefix in &self.readable {
            add(prefix.clone(), false);
        }
        for (place, prefix) in self.listed {
            if !self.readable.iter().any(|readable| prefix.starts_with(&**readable)) {
                let why = "s3:ListBucket needs s3:GetObject for the same prefix";
                return Err(refused(&place, why));
            }
            add(prefix, true);
        }
        if rules.is_empty() {
            return Err(refused("Statement", "no statement allows s3:GetObject"));
        }
        let bytes: usize = rules.iter().map(|(prefix, _)| prefix.len()).sum();
        let is_long = rules.iter().any(|(prefix, _)| prefix.len() > OBJECT_KEY_BYTES_MAX);
        if rules.len() > PUBLIC_RULES_MAX || bytes > PUBLIC_PREFIXES_BYTES_MAX || is_long {
            return Err(malformed("The policy has too many or too long prefixes"));
        }
        Ok(rules)
    }
}

/// Returns the prefixes that a statement's condition names, or `None` if it has no condition.
///
/// In a document of MinIO's library, one condition may have both operators; see [`is_of_minio`].
fn prefixes_of_condition(
    place: &str,
    condition: Option<&Value>,
    is_of_minio: bool,
) -> S3Result<Option<Vec<Box<str>>>> {
    let Some(condition) = condition else { return Ok(None) };
    let other = || refused(place, "the only Condition is StringEquals or StringLike on s3:prefix");
    let mut prefixes = Vec::new();
    for (operator, test) in
        condition.as_object().filter(|tests| tests.len() == 1 || is_of_minio).ok_or_else(other)?
    {
        let test = test.as_object().filter(|keys| keys.len() == 1).and_then(|keys| keys.get("s3:prefix"));
        for text in texts(place, "s3:prefix", Some(test.ok_or_else(other)?))? {
            let prefix = match operator.as_str() {
                "StringEquals" => text,
                "StringLike" => text.strip_suffix('*').unwrap_or(text),
                _ => return Err(other()),
            };
            if operator == "StringLike" && prefix.contains(['*', '?']) {
                return Err(refused(place, "s3:prefix has a wildcard before its end"));
            }
            prefixes.push(prefix.into());
        }
    }
    Ok(Some(prefixes))
}

fn is_everybody(principal: Option<&Value>) -> bool {
    let is_star = |value: &Value| value.as_str() == Some("*");
    match principal {
        Some(Value::Object(members)) if members.len() == 1 => match members.get("AWS") {
            Some(Value::Array(principals)) => principals.len() == 1 && is_star(&principals[0]),
            Some(principal) => is_star(principal),
            None => false,
        },
        Some(principal) => is_star(principal),
        None => false,
    }
}

/// Returns the texts of an element that is a text or a list of texts.
fn texts<'v>(place: &str, name: &str, value: Option<&'v Value>) -> S3Result<Vec<&'v str>> {
    let found: Option<Vec<&str>> = match value {
        Some(Value::Array(values)) => values.iter().map(Value::as_str).collect(),
        Some(value) => value.as_str().map(|text| vec![text]),
        None => None,
    };
    found.filter(|texts| !texts.is_empty()).ok_or_else(|| malformed(format!("{place} has no valid {name}")))
}

/// Returns whether a document was made by MinIO's library, as `mc anonymous` puts it: each statement has an empty `Sid`.
///
/// It writes `StringLike` with a wildcard for a prefix, but understands only `StringEquals` when it reads the document to
/// change it. With what it has written, `set none` would leave the list of a prefix that nobody may read. So it gets
/// `StringEquals`. When it adds a prefix, it puts its `StringLike` into the same condition, and means both of them.
fn is_of_minio(document: &Value) -> bool {
    let statements = document.get("Statement").and_then(Value::as_array);
    let has_empty_sid = |statement: &Value| statement.get("Sid").and_then(Value::as_str) == Some("");
    statements.is_some_and(|statements| statements.iter().all(has_empty_sid))
}

/// Returns the document that an S3 client put, or else one that says the same as the rules.
pub(super) fn document_of(bucket: &str, access: &PublicAccess) -> String {
    let is_other = |policy: &&str| !serde_json::from_str(policy).is_ok_and(|parsed| is_of_minio(&parsed));
    if let Some(policy) = access.policy.as_deref().filter(is_other) {
        return policy.to_owned();
    }
    let arn = format!("{ARN_PREFIX}{bucket}");
    let allow = |action: &str, resource: Value| json!({"Effect": "Allow", "Principal": {"AWS": ["*"]}, "Action": [action], "Resource": resource});
    // Clients of MinIO look for this action beside the others.
    let mut statements = vec![allow("s3:GetBucketLocation", json!([arn]))];
    for rule in access.rules.iter().filter(|rule| rule.list) {
        let mut statement = allow("s3:ListBucket", json!([arn]));
        if !rule.prefix.is_empty() {
            statement["Condition"] = json!({"StringEquals": {"s3:prefix": [rule.prefix]}});
        }
        statements.push(statement);
    }
    let objects: Vec<_> = access.rules.iter().map(|rule| format!("{arn}/{}*", rule.prefix)).collect();
    statements.push(allow("s3:GetObject", json!(objects)));
    json!({"Version": VERSION, "Statement": statements}).to_string()
}

#[cfg(test)]
mod tests {
    use super::{document_of, to_rules};
    use cairn_engine::{PublicAccess, PublicRule};
    use cairn_model::Timestamp;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn statement(action: &Value, resource: &Value) -> Value {
        json!({"Effect": "Allow", "Principal": "*", "Action": action, "Resource": resource})
    }

    fn rules(statements: &[Value]) -> Result<Vec<(String, bool)>, String> {
        let document = json!({"Version": "2012-10-17", "Statement": statements}).to_string();
        to_rules("site", &document)
            .map(|rules| rules.into_iter().map(|(prefix, list)| (prefix.into(), list)).collect())
            .map_err(|error| format!("{} {}", error.code(), error.message()))
    }

    #[test]
    fn public_reads_and_lists_become_rules() {
        let read =
            statement(&json!("s3:GetObject"), &json!(["arn:aws:s3:::site/a/*", "arn:aws:s3:::site/b*"]));
        assert_eq!(rules(std::slice::from_ref(&read)), Ok(vec![("a/".into(), false), ("b".into(), false)]));
        let mut list =
            statement(&json!(["s3:ListBucket", "s3:GetBucketLocation"]), &json!("arn:aws:s3:::site"));
        list["Principal"] = json!({"AWS": ["*"]});
        list["Condition"] = json!({"StringLike": {"s3:prefix": ["a/*", "b/c"]}});
        let expected = vec![("a/".into(), true), ("b".into(), false), ("b/c".into(), true)];
        assert_eq!(rules(&[list, read]), Ok(expected));
        let all = statement(
            &json!(["s3:GetObject", "s3:ListBucket"]),
            &json!(["arn:aws:s3:::site", "arn:aws:s3:::site/*"]),
        );
        assert_eq!(rules(&[all]), Ok(vec![(String::new(), true)]));
        // A resource that no action is about is allowed beside one that is.
        let both = json!(["arn:aws:s3:::site", "arn:aws:s3:::site/*"]);
        let apart = ["s3:GetObject", "s3:ListBucket"].map(|action| statement(&json!(action), &both));
        assert_eq!(rules(&apart), Ok(vec![(String::new(), true)]));
    }

    #[test]
    fn everything_else_is_refused_by_name() {
        let keys = json!("arn:aws:s3:::site/*");
        let good = statement(&json!("s3:GetObject"), &keys);
        let with = |name: &str, value: Value| {
            let mut changed = good.clone();
            changed[name] = value;
            changed
        };
        for (statement, why) in [
            (with("Effect", json!("Deny")), "NotImplemented Statement[0]: Effect Deny"),
            (with("Principal", json!({"AWS": "arn:aws:iam::1:root"})), "the only Principal"),
            (with("Action", json!("s3:PutObject")), "the action s3:PutObject"),
            (with("Action", json!("s3:*")), "the action s3:*"),
            (with("NotAction", json!("s3:PutObject")), "NotAction is not implemented"),
            (with("Condition", json!({"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}})), "the only Condition"),
            (with("Condition", json!({"StringEquals": {"s3:prefix": "a"}})), "s3:ListBucket alone"),
            (with("Resource", json!("arn:aws:s3:::site/*.jpg")), "only wildcard"),
            (with("Resource", json!("arn:aws:s3:::site/a")), "only wildcard"),
            (
                with("Resource", json!("arn:aws:s3:::other/*")),
                "MalformedPolicy Statement[0]: Policy has invalid resource",
            ),
            (with("Resource", json!("arn:aws:s3:::site")), "MalformedPolicy Action does not apply"),
            (statement(&json!("s3:ListBucket"), &keys), "MalformedPolicy Action does not apply"),
            (
                statement(&json!("s3:ListBucket"), &json!("arn:aws:s3:::site")),
                "needs s3:GetObject for the same prefix",
            ),
            (
                statement(&json!("s3:GetBucketLocation"), &json!("arn:aws:s3:::site")),
                "no statement allows s3:GetObject",
            ),
        ] {
            let refused = rules(&[statement]).expect_err(why);
            assert!(refused.contains(why), "{refused}, not {why}");
        }
        for text in [
            "",
            "[]",
            "{",
            "{\"Statement\": 5}",
            "{\"Statement\": [5]}",
            "{\"Statement\": [], \"More\": 1}",
            "{\"Version\": \"2020-01-01\", \"Statement\": []}",
            "{\"Version\": 2012, \"Statement\": []}",
        ] {
            assert_eq!(to_rules("site", text).expect_err(text).code(), "MalformedPolicy", "{text}");
        }
    }

    #[test]
    fn a_condition_with_two_operators_is_for_minio_s_library_alone() {
        let mut list = statement(&json!("s3:ListBucket"), &json!("arn:aws:s3:::site"));
        list["Condition"] =
            json!({"StringEquals": {"s3:prefix": ["a/"]}, "StringLike": {"s3:prefix": ["b/*"]}});
        let mut read =
            statement(&json!("s3:GetObject"), &json!(["arn:aws:s3:::site/a/*", "arn:aws:s3:::site/b/*"]));
        read["Sid"] = json!("");
        // Anybody else means that both must be true.
        assert!(
            rules(&[list.clone(), read.clone()]).expect_err("two operators").contains("the only Condition")
        );
        list["Sid"] = json!("");
        assert_eq!(rules(&[list, read]), Ok(vec![("a/".into(), true), ("b/".into(), true)]));
    }

    #[test]
    fn a_document_is_returned_as_it_was_put_unless_minio_s_library_made_it() {
        let mut access = PublicAccess {
            rules: [PublicRule {
                prefix: "a/".into(),
                list: true,
                created_at: Timestamp(1),
                created_by: "me".into(),
            }]
            .into(),
            ..PublicAccess::default()
        };
        let generated = document_of("site", &access);
        let mut list = statement(&json!("s3:ListBucket"), &json!("arn:aws:s3:::site"));
        list["Condition"] = json!({"StringLike": {"s3:prefix": "a/*"}});
        let mut statements = [list, statement(&json!("s3:GetObject"), &json!("arn:aws:s3:::site/a/*"))];
        for (sid, is_kept) in [("Read", true), ("", false)] {
            statements[0]["Sid"] = json!(sid);
            statements[1]["Sid"] = json!("");
            let put = json!({"Statement": statements}).to_string();
            access.policy = Some(put.as_str().into());
            assert_eq!(document_of("site", &access), if is_kept { put } else { generated.clone() });
        }
    }

    proptest! {
        #[test]
        fn a_generated_document_says_what_the_rules_say(
            prefixes in prop::collection::btree_map("[a-z/]{0,6}", any::<bool>(), 1..6)
        ) {
            let rules = prefixes.iter().map(|(prefix, list)| PublicRule {
                prefix: prefix.as_str().into(), list: *list, created_at: Timestamp(1), created_by: "me".into(),
            });
            let access = PublicAccess { rules: rules.collect(), ..PublicAccess::default() };
            let read = to_rules("site", &document_of("site", &access)).expect("a document");
            let read: std::collections::BTreeMap<_, _> = read.into_iter().map(|(prefix, list)| (prefix.into(), list)).collect();
            prop_assert_eq!(read, prefixes);
        }
    }
}
