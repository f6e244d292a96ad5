//! Translates AWS policy documents for operators who paste one.
//!
//! A translation never allows more than the document, except that the five actions are coarser: the notes say where. What would
//! need more (a wildcard in the middle, most conditions, an action for settings alone) is listed instead. Nothing is created
//! from a translation.
//!
//! Source: IAM User Guide, "JSON policy elements"; Service Authorization Reference, "Actions for Amazon S3".

use super::action::Action;
use super::document::{Effect, Policy, PolicyDraft, StatementDraft, quoted};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Most problems that a message lists.
const PROBLEMS_MAX: usize = 20;
/// Most values in a document that is read. The largest that is allowed on AWS has fewer.
const VALUES_MAX: usize = 20_000;
const ARN_PREFIX: &str = "arn:aws:s3:::";
/// The version of a document that says no other (IAM User Guide, "Version").
const OLDEST_VERSION: &str = "2008-10-17";
/// The versions of the language. What is translated here means the same in both.
pub const AWS_POLICY_VERSIONS: [&str; 2] = [OLDEST_VERSION, "2012-10-17"];
/// The elements of a statement that are translated. `Sid` is only a name.
const STATEMENT_ELEMENTS: [&str; 5] = ["Sid", "Effect", "Action", "Resource", "Condition"];
/// Elements of a statement that have no translation, and what to do instead.
const OTHER_ELEMENTS: [(&str, &str); 4] = [
    ("NotAction", "name the actions in Action"),
    ("NotResource", "name the resources in Resource"),
    ("Principal", "attach the policy to service accounts instead"),
    ("NotPrincipal", "attach the policy to service accounts instead"),
];
/// The name of a translated policy. AWS documents have no name.
const TRANSLATED_NAME: &str = "translated";

/// Actions of AWS and the action that includes them. A name that ends with `*` stands for this prefix.
const ACTIONS: &[(&str, &[Action])] = &[
    ("*", &Action::ALL),
    ("s3:*", &Action::ALL),
    ("s3:ListBucket", &[Action::ListBucket]),
    ("s3:ListBucketVersions", &[Action::ListBucket]),
    ("s3:ListBucketMultipartUploads", &[Action::ListBucket]),
    ("s3:GetBucketLocation", &[Action::ListBucket]),
    ("s3:GetObject*", &[Action::GetObject]),
    ("s3:GetObject", &[Action::GetObject]),
    ("s3:GetObjectVersion", &[Action::GetObject]),
    ("s3:GetObjectRetention", &[Action::GetObject]),
    ("s3:GetObjectLegalHold", &[Action::GetObject]),
    ("s3:ListMultipartUploadParts", &[Action::GetObject]),
    ("s3:PutObject*", &[Action::PutObject]),
    ("s3:PutObject", &[Action::PutObject]),
    ("s3:PutObjectRetention", &[Action::PutObject]),
    ("s3:PutObjectLegalHold", &[Action::PutObject]),
    ("s3:DeleteObject*", &[Action::DeleteObject]),
    ("s3:DeleteObject", &[Action::DeleteObject]),
    ("s3:DeleteObjectVersion", &[Action::DeleteObject]),
    ("s3:AbortMultipartUpload", &[Action::DeleteObject]),
    // Every account may list buckets, and sees those on which it may do something.
    ("s3:ListAllMyBuckets", &[]),
    ("s3:ListBuckets", &[]),
    ("s3:GetObjectAttributes", &[Action::GetObject]),
    ("s3:GetObjectVersionAttributes", &[Action::GetObject]),
];

/// Actions of AWS that only `s3:ManageBucket` includes, which also deletes and configures buckets.
const MANAGEMENT_ACTIONS: &[&str] = &[
    "s3:CreateBucket",
    "s3:DeleteBucket",
    "s3:GetBucketVersioning",
    "s3:PutBucketVersioning",
    "s3:GetBucketCORS",
    "s3:PutBucketCORS",
    "s3:GetBucketObjectLockConfiguration",
    "s3:PutBucketObjectLockConfiguration",
    "s3:BypassGovernanceRetention",
];

/// Returns a message about an AWS policy document: its translation, or what cannot be translated. `None` if the JSON is no
/// such document.
#[must_use]
pub fn explain_aws_document(json: &[u8]) -> Option<String> {
    // With a repeated name, it is not certain what the document says.
    let document = cairn_model::json::parse(json, VALUES_MAX).ok()?;
    let document = document.as_object().filter(|document| document.contains_key("Statement"))?;
    let mut translator = Translator::default();
    translator.document(document);
    Some(translator.finish())
}

/// The translation so far.
#[derive(Default)]
struct Translator {
    statements: Vec<StatementDraft>,
    /// The parts that cannot be translated, each with its place in the document.
    problems: Vec<String>,
}

impl Translator {
    fn problem(&mut self, place: &str, what: impl std::fmt::Display) {
        self.problems.push(format!("{place}: {what}"));
    }

    fn document(&mut self, document: &Map<String, Value>) {
        for name in document.keys().filter(|name| !matches!(name.as_str(), "Version" | "Id" | "Statement")) {
            self.problem(&quoted(name), "unknown element");
        }
        let version = document.get("Version").map_or(Some(OLDEST_VERSION), Value::as_str);
        if !version.is_some_and(|version| AWS_POLICY_VERSIONS.contains(&version)) {
            self.problem("Version", format_args!("must be one of {}", AWS_POLICY_VERSIONS.join(", ")));
        }
        match &document["Statement"] {
            Value::Array(statements) => {
                for (index, statement) in statements.iter().enumerate() {
                    self.statement(&format!("Statement[{index}]"), statement);
                }
            }
            statement => self.statement("Statement", statement),
        }
    }

    fn statement(&mut self, place: &str, statement: &Value) {
        let Some(members) = statement.as_object() else {
            return self.problem(place, "a statement must be an object");
        };
        for name in members.keys().filter(|name| !STATEMENT_ELEMENTS.contains(&name.as_str())) {
            match OTHER_ELEMENTS.iter().find(|(other, _)| other == name) {
                Some((_, reason)) => self.problem(&format!("{place}.{name}"), reason),
                None => self.problem(place, format_args!("unknown element {}", quoted(name))),
            }
        }
        let effect = match members.get("Effect").and_then(Value::as_str) {
            Some("Allow") => Effect::Allow,
            Some("Deny") => Effect::Deny,
            _ => return self.problem(&format!("{place}.Effect"), "must be \"Allow\" or \"Deny\""),
        };
        let actions = self.actions(&format!("{place}.Action"), members.get("Action"), effect);
        let resources =
            self.resources(&format!("{place}.Resource"), members.get("Resource"), actions.is_empty());
        let source_ip = self.source_ip(&format!("{place}.Condition"), members.get("Condition"));
        if actions.is_empty() || resources.is_empty() {
            return;
        }
        self.statements.push(StatementDraft {
            effect: effect.name().to_owned(),
            actions: actions.into_iter().map(|action| action.name().to_owned()).collect(),
            resources,
            only_if_absent: false,
            source_ip,
        });
    }

    /// Translates the one condition that has a counterpart: the networks of the client.
    fn source_ip(&mut self, place: &str, condition: Option<&Value>) -> Option<Vec<String>> {
        let only = |value: &Value, name: &str| -> Option<Value> {
            let members = value.as_object().filter(|members| members.len() == 1)?;
            members.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone())
        };
        let condition = condition?;
        let networks = only(condition, "IpAddress").and_then(|test| only(&test, "aws:SourceIp"));
        let texts: Option<Vec<String>> = networks.and_then(|networks| {
            texts(Some(&networks)).into_iter().map(|text| text.map(str::to_owned)).collect()
        });
        if texts.is_none() {
            self.problem(place, "the only condition here is IpAddress on aws:SourceIp");
        }
        texts
    }

    fn actions(&mut self, place: &str, value: Option<&Value>, effect: Effect) -> Vec<Action> {
        let mut actions = Vec::new();
        for text in texts(value) {
            let Some(text) = text else {
                self.problem(place, "must be a text or a list of texts");
                continue;
            };
            // Names of actions are not case-sensitive on AWS.
            let is = |name: &str| name.eq_ignore_ascii_case(text);
            if let Some((_, translated)) = ACTIONS.iter().find(|(name, _)| is(name)) {
                if translated.is_empty() && effect == Effect::Deny {
                    self.problem(place, format_args!("{} cannot be denied", quoted(text)));
                }
                for action in *translated {
                    if !actions.contains(action) {
                        actions.push(*action);
                    }
                }
            } else if MANAGEMENT_ACTIONS.iter().copied().any(is) {
                self.problem(
                    place,
                    format_args!(
                        "{} is part of s3:ManageBucket, which also deletes and configures buckets",
                        quoted(text)
                    ),
                );
            } else {
                let known = Action::ALL.map(Action::name).join(", ");
                self.problem(
                    place,
                    format_args!("{} has no counterpart; the actions are {known}", quoted(text)),
                );
            }
        }
        actions
    }

    /// `is_unused`: no action is left that could apply to the resources.
    fn resources(&mut self, place: &str, value: Option<&Value>, is_unused: bool) -> Vec<String> {
        if is_unused {
            return Vec::new();
        }
        let mut resources = Vec::new();
        for text in texts(value) {
            let Some(text) = text else {
                self.problem(place, "must be a text or a list of texts");
                continue;
            };
            let path = if text == "*" { Some("*") } else { text.strip_prefix(ARN_PREFIX) };
            let Some(path) = path else {
                self.problem(
                    place,
                    format_args!(
                        "{} does not name a bucket; name each, as {ARN_PREFIX}<bucket>",
                        quoted(text)
                    ),
                );
                continue;
            };
            if path.contains('?') || path.contains("${") {
                self.problem(place, format_args!("{} has a ? or a variable", quoted(text)));
                continue;
            }
            resources.push(format!("bucket:{path}"));
        }
        resources
    }

    fn finish(mut self) -> String {
        let draft = PolicyDraft {
            name: TRANSLATED_NAME.to_owned(),
            description: String::new(),
            statements: std::mem::take(&mut self.statements),
        };
        if self.problems.is_empty()
            && let Err(error) = Policy::from_draft(&draft)
        {
            self.problems.push(error.to_string());
        }
        if self.problems.is_empty() {
            let json = serde_json::to_string(&draft).expect("a draft consists of texts");
            let coarser = [Action::GetObject, Action::PutObject, Action::DeleteObject].map(Action::name);
            let mut actions = draft.statements.iter().flat_map(|statement| &statement.actions);
            let note = if actions.any(|action| coarser.contains(&action.as_str())) {
                "; its actions include more than those of AWS: s3:GetObject and s3:DeleteObject include all versions, \
                 s3:PutObject includes locks, s3:DeleteObject aborts uploads"
            } else {
                ""
            };
            return format!("this is an AWS policy document; here it is written {json}{note}");
        }
        let mut text = "this is an AWS policy document that cannot be translated: ".to_owned();
        let shown = self.problems.len().min(PROBLEMS_MAX);
        text.push_str(&self.problems[..shown].join("; "));
        if self.problems.len() > shown {
            // Writing to a string cannot fail.
            let _ = write!(text, "; and {} more", self.problems.len() - shown);
        }
        text
    }
}

/// Returns the texts of a member that is a text or a list of texts; `None` for anything else, also for an empty list.
fn texts(value: Option<&Value>) -> Vec<Option<&str>> {
    match value {
        Some(Value::Array(values)) if values.is_empty() => vec![None],
        Some(Value::Array(values)) => values.iter().map(Value::as_str).collect(),
        Some(value) => vec![value.as_str()],
        None => vec![None],
    }
}

#[cfg(test)]
mod tests {
    use super::explain_aws_document;
    use crate::policy::Policy;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn explained(document: &Value) -> String {
        explain_aws_document(document.to_string().as_bytes()).expect("recognized")
    }

    fn translated(document: &Value) -> Value {
        let text = explained(document);
        let (_, json) = text.split_once("here it is written ").expect(&text);
        let mut stream = serde_json::Deserializer::from_str(json).into_iter::<Value>();
        let translation = stream.next().expect("JSON").expect("valid");
        Policy::from_json(translation.to_string().as_bytes()).expect("a valid policy");
        translation["statements"].clone()
    }

    fn statement(action: &Value, resource: &Value) -> Value {
        json!({"Version": "2012-10-17", "Statement": [{"Sid": "a", "Effect": "Allow", "Action": action, "Resource": resource}]})
    }

    #[test]
    fn documents_with_counterparts_are_translated() {
        let document = json!({"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Action": ["s3:ListBucket", "s3:GetBucketLocation"], "Resource": "arn:aws:s3:::photos"},
            {"Effect": "Allow", "Action": ["s3:getobject", "s3:PutObject", "s3:ListAllMyBuckets"],
             "Resource": ["arn:aws:s3:::photos/*", "arn:aws:s3:::photos/a b"]},
            {"Effect": "Deny", "Action": "s3:DeleteObject*", "Resource": "arn:aws:s3:::photos/keep/*"},
            {"Effect": "Allow", "Action": "s3:GetObject", "Resource": ["arn:aws:s3:::photos-*", "*"],
             "Condition": {"IpAddress": {"aws:SourceIp": ["10.0.0.0/8", "192.0.2.7"]}}},
        ]});
        let expected = json!([
            {"effect": "allow", "actions": ["s3:ListBucket"], "resources": ["bucket:photos"]},
            {"effect": "allow", "actions": ["s3:GetObject", "s3:PutObject"],
             "resources": ["bucket:photos/*", "bucket:photos/a b"]},
            {"effect": "deny", "actions": ["s3:DeleteObject"], "resources": ["bucket:photos/keep/*"]},
            {"effect": "allow", "actions": ["s3:GetObject"], "resources": ["bucket:photos-*", "bucket:*"],
             "source_ip": ["10.0.0.0/8", "192.0.2.7"]},
        ]);
        assert_eq!(translated(&document), expected);
        let one =
            json!({"Statement": {"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::photos"}});
        assert_eq!(translated(&one)[0]["actions"].as_array().map(Vec::len), Some(5));
    }

    #[test]
    fn everything_without_counterpart_is_listed() {
        let (get, bucket) = (json!("s3:GetObject"), json!("arn:aws:s3:::photos/*"));
        for (document, problem) in [
            (
                statement(&json!("s3:PutBucketAcl"), &bucket),
                "Statement[0].Action: \"s3:PutBucketAcl\" has no counterpart",
            ),
            (statement(&json!("s3:Get*"), &bucket), "\"s3:Get*\" has no counterpart"),
            (statement(&json!("s3:GetBucketVersioning"), &bucket), "is part of s3:ManageBucket"),
            (statement(&get, &json!("photos")), "Statement[0].Resource: \"photos\" does not name a bucket"),
            (statement(&get, &json!("arn:aws:s3:::*/*")), "bucket:*/*"),
            (statement(&get, &json!("arn:aws:s3:::pho*os")), "bucket:pho*os"),
            (statement(&get, &json!("arn:aws:s3:::photos/${aws:username}/*")), "a variable"),
            (statement(&get, &json!("arn:aws:s3:::photos/*.jpg")), "bucket:photos/*.jpg"),
            (statement(&json!(5), &bucket), "a text or a list of texts"),
            (json!({"Statement": {"Effect": "Deny", "Action": "s3:ListAllMyBuckets"}}), "cannot be denied"),
            (json!({"Statement": []}), "at least one statement"),
            (json!({"Statement": 5}), "must be an object"),
            (
                json!({"Version": "2099-10-17", "Statement": []}),
                "Version: must be one of 2008-10-17, 2012-10-17",
            ),
            (statement(&get, &json!([])), "Statement[0].Resource: must be a text"),
            (statement(&json!([]), &bucket), "Statement[0].Action: must be a text"),
        ] {
            let text = explained(&document);
            assert!(text.contains("cannot be translated: ") && text.contains(problem), "{text}");
        }
        let all = json!({"Statement": [{"Effect": "Allow", "Principal": "*", "NotAction": "s3:GetObject",
            "NotResource": "arn:aws:s3:::a", "Condition": {"Bool": {"aws:SecureTransport": "true"}}}]});
        let text = explained(&all);
        for element in ["Principal", "NotAction", "NotResource", "Condition"] {
            assert!(text.contains(&format!("Statement[0].{element}: ")), "{text}");
        }
        let many: Vec<Value> = (0..100).map(|_| json!({"Effect": "No"})).collect();
        assert!(explained(&json!({"Statement": many})).ends_with("; and 80 more"));
    }

    /// They were ignored, so the translation allowed more than the document.
    #[test]
    fn misspelt_elements_are_listed() {
        let condition = json!({"Bool": {"aws:SecureTransport": "true"}});
        for (name, value) in [("Conditon", condition), ("effect", json!("Deny"))] {
            let mut document = statement(&json!("s3:GetObject"), &json!("arn:aws:s3:::photos/*"));
            document["Statement"][0][name] = value;
            let problem = format!("Statement[0]: unknown element {name:?}");
            assert!(explained(&document).contains(&problem), "{name}");
        }
    }

    /// The last of several values was taken, and other readers take the first.
    #[test]
    fn repeated_elements_have_no_translation() {
        let twice =
            r#"{"Statement": {"Effect": "Deny", "Effect": "Allow", "Action": "s3:*", "Resource": "*"}}"#;
        assert_eq!(explain_aws_document(twice.as_bytes()), None);
        assert!(explain_aws_document(twice.replacen("\"Effect\": \"Deny\", ", "", 1).as_bytes()).is_some());
    }

    #[test]
    fn other_documents_are_not_aws_ones() {
        for other in
            [json!({"name": "p", "statements": []}), json!([]), json!("Statement"), json!({"statement": []})]
        {
            assert_eq!(explain_aws_document(other.to_string().as_bytes()), None);
        }
        assert_eq!(explain_aws_document(b"{\"Statement\": "), None);
    }

    proptest! {
        #[test]
        fn any_text_in_a_document_is_explained(action: String, resource: String) {
            let text = explained(&statement(&json!(action), &json!(resource)));
            prop_assert!(text.len() < 20_000);
        }
    }
}
