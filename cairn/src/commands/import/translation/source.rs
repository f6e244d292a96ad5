//! A policy document of the source: reading it, and evaluating it as MinIO does.
//!
//! What has no counterpart here is refused when a document is read: conditions other than `IpAddress` on `aws:SourceIp`,
//! `NotAction`, `NotResource`, and variables other than `${aws:username}`.
//!
//! Sources: IAM User Guide, "JSON policy elements"; probes of a MinIO server of 2025. It compares a resource with
//! `<bucket>/<key>`, and with `<bucket>/` for a request about a bucket: `photos/*` therefore matches the bucket, too.

use std::net::IpAddr;

use cairn_model::IpNetwork;
use serde_json::{Map, Value};

use super::actions::{self, Rule};
use super::pattern::{has_wildcard, matches};

const ARN_PREFIX: &str = "arn:aws:s3:::";
const USERNAME: &str = "${aws:username}";
/// Most statements, actions or resources in one list. MinIO's documents have at most 20 KiB.
const LIST_MAX: usize = 2000;
/// Longest part of a value that a message quotes, in characters.
const QUOTED_CHARACTERS_MAX: usize = 100;

/// The effect of a statement: it allows or denies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    Allow,
    Deny,
}

/// A statement of a document.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) effect: Effect,
    /// Patterns of names.
    pub(super) actions: Vec<String>,
    /// Patterns of `<bucket>/<key>`.
    pub(super) resources: Vec<String>,
    /// Networks of clients that it is for; none for all.
    pub(super) networks: Vec<IpNetwork>,
}

/// A document, with the names of one user in place of its variables.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(super) statements: Vec<Statement>,
}

/// A request: an action on a bucket, or on a key in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) action: &'a str,
    pub(super) bucket: &'a str,
    pub(super) key: Option<&'a str>,
    pub(super) client: IpAddr,
}

/// The reason why a document cannot be translated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) reason: String,
    /// Whether the document denies something. Without it, other policies would then allow more than at the source.
    pub(crate) denies: bool,
}

/// Returns whether a document has a place for the name of the user.
pub(crate) fn has_username(document: &Value) -> bool {
    document.to_string().contains(USERNAME)
}

impl Document {
    /// Reads a document for a user.
    ///
    /// # Errors
    /// The document is no policy, or a part of it cannot be expressed here.
    pub(crate) fn read(document: &Value, username: &str) -> Result<Self, Refusal> {
        let refused = |reason: String| Refusal { reason, denies: may_deny(document) };
        let Some(members) = document.as_object() else { return Err(refused("it is no object".to_owned())) };
        let known = |name: &str| matches!(name, "Version" | "Id" | "ID" | "Statement");
        if let Some(name) = members.keys().find(|name| !known(name)) {
            return Err(refused(format!("{} is unknown", quoted(name))));
        }
        let statements = statements(document);
        if statements.len() > LIST_MAX {
            return Err(refused(format!("it has more than {LIST_MAX} statements")));
        }
        let read = statements.iter().enumerate().map(|(index, statement)| {
            Statement::read(statement, username)
                .map_err(|reason| refused(format!("Statement[{index}]: {reason}")))
        });
        Ok(Self { statements: read.collect::<Result<_, _>>()? })
    }

    /// Returns whether a statement denies something.
    pub(crate) fn denies(&self) -> bool {
        self.statements.iter().any(|statement| statement.effect == Effect::Deny)
    }

    /// Returns whether the document allows something, as MinIO decides: a denial wins.
    #[cfg(test)]
    pub(super) fn allows(&self, asked: &Asked<'_>) -> bool {
        allow(std::slice::from_ref(self), asked)
    }
}

/// Returns whether documents together allow something.
pub(super) fn allow(documents: &[Document], asked: &Asked<'_>) -> bool {
    let has = |effect, names: &[&str]| {
        let statements = documents.iter().flat_map(|document| &document.statements);
        let mut of_effect = statements.filter(|statement| statement.effect == effect);
        of_effect.any(|statement| statement.applies(asked, names))
    };
    // One statement allows it, and none denies it.
    let decides = |names: &[&str]| !has(Effect::Deny, names) && has(Effect::Allow, names);
    let own = asked.action;
    match actions::named(own).map_or(Rule::Own, |action| action.rule) {
        Rule::Own => decides(&[own]),
        Rule::SameAs(other) => decides(&[own, other]),
        Rule::OrAllowed(other) => decides(&[own]) || decides(&[other]),
        Rule::IfAllowed(other) => decides(&[other]) && !has(Effect::Deny, &[own]),
    }
}

impl Statement {
    fn read(statement: &Value, username: &str) -> Result<Self, String> {
        let members = statement.as_object().ok_or("it is no object")?;
        let effect = match members.get("Effect").and_then(Value::as_str) {
            Some("Allow") => Effect::Allow,
            Some("Deny") => Effect::Deny,
            _ => return Err("Effect is neither Allow nor Deny".to_owned()),
        };
        for name in members.keys() {
            match name.as_str() {
                "Effect" | "Action" | "Resource" | "Condition" | "Sid" => {}
                "NotAction" => return Err("NotAction has no counterpart".to_owned()),
                "NotResource" => return Err("NotResource has no counterpart".to_owned()),
                _ => return Err(format!("{} has no counterpart", quoted(name))),
            }
        }
        let actions = texts(members.get("Action")).ok_or("Action is no list of texts")?;
        let resources = match members.get("Resource") {
            // Statements about administration have none.
            None => Vec::new(),
            resources => texts(resources).ok_or("Resource is no list of texts")?,
        };
        let resources = resources.iter().map(|resource| path_of(resource, username));
        let networks = match members.get("Condition") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Object(condition)) if condition.is_empty() => Vec::new(),
            Some(condition) => networks(condition)?,
        };
        Ok(Self { effect, actions, resources: resources.collect::<Result<_, _>>()?, networks })
    }

    /// Returns whether a resource includes a bucket, or a key in it.
    pub(super) fn is_about(resource: &str, bucket: &str, key: Option<&str>) -> bool {
        let path = format!("{bucket}/{}", key.unwrap_or_default());
        matches(resource, &path) || (key.is_none() && resource == bucket)
    }

    /// Returns whether the statement is about one of these actions on what is asked for.
    fn applies(&self, asked: &Asked<'_>, actions: &[&str]) -> bool {
        let Asked { bucket, key, client, .. } = asked;
        self.actions.iter().any(|pattern| actions.iter().any(|action| matches(pattern, action)))
            && self.resources.iter().any(|resource| Self::is_about(resource, bucket, *key))
            && (self.networks.is_empty() || self.networks.iter().any(|network| network.contains(*client)))
    }
}

/// Returns the statements of a document; one may stand without a list.
fn statements(document: &Value) -> &[Value] {
    match document.get("Statement") {
        Some(Value::Array(statements)) => statements,
        Some(statement) => std::slice::from_ref(statement),
        None => &[],
    }
}

/// Returns whether a document, of which anything may be wrong, may deny something.
fn may_deny(document: &Value) -> bool {
    let allows = |statement: &Value| statement.get("Effect").and_then(Value::as_str) == Some("Allow");
    !statements(document).iter().all(allows)
}

/// Returns the texts of a member that is a text or a list of texts.
fn texts(value: Option<&Value>) -> Option<Vec<String>> {
    match value? {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(values) if values.len() <= LIST_MAX => {
            values.iter().map(|value| value.as_str().map(str::to_owned)).collect()
        }
        _ => None,
    }
}

/// Returns the pattern of `<bucket>/<key>` that a resource is.
fn path_of(resource: &str, username: &str) -> Result<String, String> {
    // MinIO exports `*` as `**`.
    let is_everything = !resource.is_empty() && resource.bytes().all(|byte| byte == b'*');
    let path = if is_everything { Some("*") } else { resource.strip_prefix(ARN_PREFIX) };
    let path = path.ok_or_else(|| format!("the resource {} does not name a bucket", quoted(resource)))?;
    let rest = path.replace(USERNAME, "");
    if rest.contains("${") {
        return Err(format!("the resource {} has a variable other than {USERNAME}", quoted(resource)));
    }
    if rest.len() != path.len() && (has_wildcard(username) || username.is_empty()) {
        return Err(format!("the resource {} has the name of a user without a usual name", quoted(resource)));
    }
    Ok(path.replace(USERNAME, username))
}

/// Reads the one condition that has a counterpart.
fn networks(condition: &Value) -> Result<Vec<IpNetwork>, String> {
    let only = |value: &Value, name: &str| -> Option<Value> {
        let members: &Map<_, _> = value.as_object().filter(|members| members.len() == 1)?;
        members.get(name).cloned()
    };
    let named = condition.as_object().and_then(|members| {
        let (test, keys) = members.iter().next()?;
        let key = keys.as_object().and_then(|keys| keys.keys().next()).map_or("", String::as_str);
        Some(format!("{} on {}", quoted(test), quoted(key)))
    });
    let named = named.unwrap_or_else(|| "a condition".to_owned());
    let no_counterpart =
        || format!("the condition {named} has no counterpart; only IpAddress on aws:SourceIp has");
    let value = only(condition, "IpAddress").and_then(|test| only(&test, "aws:SourceIp"));
    let texts = value.and_then(|value| texts(Some(&value))).ok_or_else(no_counterpart)?;
    if texts.is_empty() {
        return Err(no_counterpart());
    }
    texts.iter().map(|text| network(text).ok_or_else(|| format!("{} is no network", quoted(text)))).collect()
}

/// Parses a network. Bits after the prefix do not count, as at the source.
fn network(text: &str) -> Option<IpNetwork> {
    if let Some(network) = IpNetwork::parse(text) {
        return Some(network);
    }
    let (address, bits) = text.split_once('/')?;
    let (address, bits): (IpAddr, u32) = (address.parse().ok()?, bits.parse().ok()?);
    let first: IpAddr = match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.checked_sub(bits)?).unwrap_or(0);
            std::net::Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.checked_sub(bits)?).unwrap_or(0);
            std::net::Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    };
    IpNetwork::parse(&format!("{first}/{bits}"))
}

/// Quotes a part of a document for a message.
pub(super) fn quoted(text: &str) -> String {
    text.chars().take(QUOTED_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(statement: &Value) -> Result<Document, String> {
        let document = json!({"Version": "2012-10-17", "Statement": [statement]});
        Document::read(&document, "alice").map_err(|refusal| refusal.reason)
    }

    fn allows(document: &Document, action: &str, path: &str, client: &str) -> bool {
        let (bucket, key) = path.split_once('/').map_or((path, None), |(bucket, key)| (bucket, Some(key)));
        document.allows(&Asked { action, bucket, key, client: client.parse().unwrap() })
    }

    /// The expected values are answers of a MinIO server.
    #[test]
    fn documents_are_evaluated_as_minio_does() {
        let of = |actions: &[&str], resources: &[&str]| {
            let resources: Vec<_> = resources.iter().map(|path| format!("{ARN_PREFIX}{path}")).collect();
            document(&json!({"Effect": "Allow", "Action": actions, "Resource": resources})).unwrap()
        };
        for (document, action, path, expected) in [
            (of(&["s3:ListBucket"], &["photos/*"]), "s3:ListBucket", "photos", true),
            (of(&["s3:ListBucket"], &["photos"]), "s3:ListBucketVersions", "photos", true),
            (of(&["s3:*"], &["photos/a/*"]), "s3:ListBucket", "photos", false),
            (of(&["s3:*"], &["photos/a/*"]), "s3:GetObject", "photos/a/x", true),
            (of(&["s3:GetObject"], &["photos"]), "s3:GetObject", "photos/a", false),
            (of(&["s3:GetObjectVersion"], &["photos/*"]), "s3:GetObject", "photos/a", true),
            (of(&["s3:GetObject"], &["photos/*"]), "s3:GetObjectTagging", "photos/a", false),
            (of(&["s3:Get*"], &["photos/*"]), "s3:GetObjectTagging", "photos/a", true),
            (of(&["s3:DeleteObject"], &["photos/*"]), "s3:DeleteObjectVersion", "photos/a", true),
            (of(&["s3:getobject"], &["photos/*"]), "s3:GetObject", "photos/a", false),
            (of(&["s3:ListBucketVersions"], &["photos"]), "s3:ListBucket", "photos", false),
            (of(&["s3:*"], &["home-${aws:username}/*"]), "s3:GetObject", "home-alice/a", true),
            (of(&["s3:*"], &["home-${aws:username}/*"]), "s3:GetObject", "home-bob/a", false),
        ] {
            assert_eq!(allows(&document, action, path, "10.0.0.1"), expected, "{document:?} {action}");
        }
    }

    /// The expected values are answers of a MinIO server to an account that is allowed everything, except for one action.
    #[test]
    fn denials_are_evaluated_as_minio_does() {
        for (denied, action, path, expected) in [
            ("s3:GetObjectVersion", "s3:GetObject", "photos/a", false),
            ("s3:GetObject", "s3:GetObjectVersion", "photos/a", false),
            ("s3:ListBucketVersions", "s3:ListBucketVersions", "photos", true),
            ("s3:ListBucket", "s3:ListBucketVersions", "photos", true),
            ("s3:ListBucket", "s3:HeadBucket", "photos", true),
            ("s3:ListBucket", "s3:ListBucket", "photos", false),
            ("s3:DeleteObjectVersion", "s3:DeleteObject", "photos/a", true),
            ("s3:DeleteObjectVersion", "s3:DeleteObjectVersion", "photos/a", false),
            ("s3:DeleteObject", "s3:DeleteObjectVersion", "photos/a", false),
        ] {
            let value = json!({"Statement": [
                {"Effect": "Allow", "Action": "s3:*", "Resource": "**"},
                {"Effect": "Deny", "Action": denied, "Resource": "arn:aws:s3:::photos/*"}]});
            let document = Document::read(&value, "alice").unwrap();
            assert_eq!(allows(&document, action, path, "10.0.0.1"), expected, "{denied} {action}");
        }
        let of =
            |action: &str| document(&json!({"Effect": "Allow", "Action": action, "Resource": "*"})).unwrap();
        assert!(!allows(&of("s3:DeleteObjectVersion"), "s3:DeleteObjectVersion", "photos/a", "10.0.0.1"));
    }

    #[test]
    fn a_denial_wins_and_networks_count() {
        let value = json!({"Statement": [
            {"Effect": "Allow", "Action": "s3:*", "Resource": "*"},
            {"Effect": "Deny", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::b/*",
             "Condition": {"IpAddress": {"aws:SourceIp": ["10.1.2.3/8", "::1"]}}}]});
        let document = Document::read(&value, "alice").unwrap();
        for (client, expected) in [("10.9.9.9", false), ("11.0.0.1", true), ("::1", false), ("::2", true)] {
            assert_eq!(allows(&document, "s3:PutObject", "b/a", client), expected, "{client}");
        }
    }

    #[test]
    fn what_has_no_counterpart_is_refused_by_name() {
        let with = |name: &str, value: Value| {
            let mut statement =
                json!({"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": "arn:aws:s3:::b/*"});
            statement[name] = value;
            document(&statement).unwrap_err()
        };
        for (name, value, part) in [
            ("NotAction", json!("s3:PutObject"), "NotAction"),
            ("NotResource", json!("arn:aws:s3:::b/*"), "NotResource"),
            ("Principal", json!("*"), "Principal"),
            ("Resource", json!("arn:aws:s3:::b/${jwt:sub}/*"), "variable"),
            ("Resource", json!("arn:minio:sqs:::b"), "does not name a bucket"),
            ("Resource", json!([1]), "Resource"),
            ("Effect", json!("allow"), "Effect"),
            ("Condition", json!({"StringLike": {"s3:prefix": ["a/*"]}}), "StringLike on s3:prefix"),
            ("Condition", json!({"NotIpAddress": {"aws:SourceIp": ["10.0.0.0/8"]}}), "NotIpAddress"),
            (
                "Condition",
                json!({"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}, "Bool": {"aws:SecureTransport": "true"}}),
                "condition",
            ),
            ("Condition", json!({"IpAddress": {"aws:SourceIp": "10.0.0.0/33"}}), "no network"),
            ("Condition", json!({"IpAddress": {"aws:SourceIp": []}}), "condition"),
        ] {
            let reason = with(name, value);
            assert!(reason.contains(part), "{name}: {reason}");
        }
    }

    /// A name with a wildcard would match the resources of others.
    #[test]
    fn a_name_with_a_wildcard_is_not_expanded() {
        let document = json!({"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::${aws:username}/*"}]});
        assert!(Document::read(&document, "alice").is_ok());
        for name in ["*", "a?", ""] {
            assert!(Document::read(&document, name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_refusal_says_whether_the_document_denies() {
        for (statements, denies) in [
            (json!([{"Effect": "Allow", "Action": "s3:*", "NotResource": "x"}]), false),
            (
                json!([{"Effect": "Allow", "NotAction": "s3:*"}, {"Effect": "Deny", "Action": "s3:*", "Resource": "*"}]),
                true,
            ),
            (json!({"Effect": "Allow", "NotAction": "s3:*"}), false),
            (json!([{"Effect": "deny"}]), true),
            (json!("x"), true),
        ] {
            let refusal = Document::read(&json!({"Statement": statements}), "alice").unwrap_err();
            assert_eq!(refusal.denies, denies, "{statements}");
        }
    }
}
