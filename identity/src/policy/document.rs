//! Policy documents: parsing and validation.

use super::action::{Action, ActionSet};
use super::limits::{
    DESCRIPTION_CHARACTERS_MAX, NAME_CHARACTERS_MAX, STATEMENT_NETWORKS_MAX, STATEMENT_RESOURCES_MAX,
    STATEMENTS_MAX,
};
use super::resource::ResourcePattern;
use cairn_model::IpNetwork;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The effect of a statement: it allows or denies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Allows, unless another statement denies.
    Allow,
    /// Denies, even if another statement allows.
    Deny,
}

impl Effect {
    /// Returns the name that policies use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::Allow, Self::Deny].into_iter().find(|effect| effect.name() == name)
    }
}

/// A policy as parsed from JSON, not yet validated. Unknown fields are errors, so that a misspelt field is not ignored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyDraft {
    /// The name, for people.
    pub name: String,
    /// The purpose, for people.
    #[serde(default)]
    pub description: String,
    /// The statements.
    pub statements: Vec<StatementDraft>,
}

/// A statement as parsed from JSON, not yet validated.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementDraft {
    /// `allow` or `deny`.
    pub effect: String,
    /// Names of actions.
    pub actions: Vec<String>,
    /// Resource patterns, see [`ResourcePattern`].
    pub resources: Vec<String>,
    /// Whether `s3:PutObject` is only allowed for keys that have no current object.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_if_absent: bool,
    /// The networks of the clients that the statement applies to; `None` for all clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_ip: Option<Vec<String>>,
}

/// A statement: applies to each of its actions on each of its resources.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// Allow or deny.
    pub effect: Effect,
    /// The actions, in the order of the document.
    pub actions: Vec<Action>,
    /// The resources, in the order of the document.
    pub resources: Vec<ResourcePattern>,
    /// Whether `s3:PutObject` is only allowed for keys that have no current object. Never of a denial.
    pub only_if_absent: bool,
    /// The networks of the clients that the statement applies to, in the order of the document; none for all clients.
    pub source_ip: Vec<IpNetwork>,
}

/// As a person reads it: `allow s3:GetObject on bucket:photos/*`, and its restrictions.
impl fmt::Display for Statement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { effect, actions, resources, only_if_absent, source_ip } = self;
        let listed = |out: &mut fmt::Formatter<'_>, before: &str, items: &[&dyn fmt::Display]| {
            items
                .iter()
                .enumerate()
                .try_for_each(|(index, item)| write!(out, "{}{item}", if index == 0 { before } else { ", " }))
        };
        out.write_str(effect.name())?;
        listed(out, " ", &actions.iter().map(|action| action as _).collect::<Vec<_>>())?;
        listed(out, " on ", &resources.iter().map(|resource| resource as _).collect::<Vec<_>>())?;
        if *only_if_absent {
            out.write_str(" only if absent")?;
        }
        listed(out, " from ", &source_ip.iter().map(|network| network as _).collect::<Vec<_>>())
    }
}

/// A valid policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    /// The name, for people.
    pub name: String,
    /// The purpose, for people.
    pub description: String,
    /// The statements.
    pub statements: Vec<Statement>,
}

/// The error of an invalid policy document: a sentence with the path of the field, its value and the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidPolicy(String);

impl fmt::Display for InvalidPolicy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for InvalidPolicy {}

fn invalid<T>(text: impl Into<String>) -> Result<T, InvalidPolicy> {
    Err(InvalidPolicy(text.into()))
}

/// Longest part of a value that a message quotes, in bytes.
const QUOTED_BYTES_MAX: usize = 200;

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(QUOTED_BYTES_MAX)]
}

/// Quotes a value of the document for a message: escaped, and shortened if it is long.
pub(super) fn quoted(text: &str) -> String {
    let shortened = if text.len() > QUOTED_BYTES_MAX { " (shortened)" } else { "" };
    format!("{:?}{shortened}", cut(text))
}

/// Validates the name of an account, a policy or a management token.
///
/// A name has 1 to [`NAME_CHARACTERS_MAX`] printable ASCII characters and does not begin or end with a space. Other scripts
/// have letters that look like ASCII ones, and a name in an audit record must not be mistaken for another.
///
/// # Errors
/// A sentence with the reason.
pub fn validate_name(name: &str) -> Result<(), InvalidPolicy> {
    if name.is_empty() || name.len() > NAME_CHARACTERS_MAX {
        return invalid(format!("the name must have 1 to {NAME_CHARACTERS_MAX} characters"));
    }
    if !name.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        return invalid("the name must only have printable ASCII characters");
    }
    if name.trim_matches(' ') != name {
        return invalid("the name must not begin or end with a space");
    }
    Ok(())
}

/// Validates a description: at most [`DESCRIPTION_CHARACTERS_MAX`] characters.
///
/// # Errors
/// A sentence with the reason.
pub fn validate_description(description: &str) -> Result<(), InvalidPolicy> {
    if description.chars().count() > DESCRIPTION_CHARACTERS_MAX {
        return invalid(format!("the description must have at most {DESCRIPTION_CHARACTERS_MAX} characters"));
    }
    Ok(())
}

impl Policy {
    /// Parses and validates a policy in JSON.
    ///
    /// # Errors
    /// [`InvalidPolicy`].
    pub fn from_json(json: &[u8]) -> Result<Self, InvalidPolicy> {
        let draft: PolicyDraft = serde_json::from_slice(json)
            .map_err(|error| InvalidPolicy(cut(&error.to_string()).to_owned()))?;
        Self::from_draft(&draft)
    }

    /// Validates a parsed policy.
    ///
    /// # Errors
    /// [`InvalidPolicy`].
    pub fn from_draft(draft: &PolicyDraft) -> Result<Self, InvalidPolicy> {
        let PolicyDraft { name, description, statements } = draft;
        validate_name(name)?;
        validate_description(description)?;
        if statements.is_empty() {
            return invalid("statements: a policy needs at least one statement");
        }
        if statements.len() > STATEMENTS_MAX {
            return invalid(format!("statements: a policy can have at most {STATEMENTS_MAX} statements"));
        }
        let parse = |(index, statement)| {
            parse_statement(statement).map_err(|error| InvalidPolicy(format!("statements[{index}].{error}")))
        };
        let statements: Result<_, _> = statements.iter().enumerate().map(parse).collect();
        Ok(Self { name: name.clone(), description: description.clone(), statements: statements? })
    }

    /// Returns the document that this policy was parsed from.
    #[must_use]
    pub fn to_draft(&self) -> PolicyDraft {
        let written = |statement: &Statement| StatementDraft {
            effect: statement.effect.name().to_owned(),
            actions: statement.actions.iter().map(ToString::to_string).collect(),
            resources: statement.resources.iter().map(ToString::to_string).collect(),
            only_if_absent: statement.only_if_absent,
            source_ip: (!statement.source_ip.is_empty())
                .then(|| statement.source_ip.iter().map(ToString::to_string).collect()),
        };
        PolicyDraft {
            name: self.name.clone(),
            description: self.description.clone(),
            statements: self.statements.iter().map(written).collect(),
        }
    }

    /// Returns the number of resource patterns in all statements, which is what compiling the policy costs.
    #[must_use]
    pub fn pattern_count(&self) -> usize {
        self.statements.iter().map(|statement| statement.resources.len()).sum()
    }
}

fn parse_statement(draft: &StatementDraft) -> Result<Statement, InvalidPolicy> {
    let StatementDraft { effect, actions, resources, only_if_absent, source_ip } = draft;
    let Some(effect) = Effect::parse(effect) else {
        return invalid(format!("effect: {} must be \"allow\" or \"deny\"", quoted(effect)));
    };
    let (actions, resources) = (parse_actions(actions)?, parse_resources(resources)?);
    if *only_if_absent && (effect == Effect::Deny || !actions.contains(&Action::PutObject)) {
        return invalid("only_if_absent: it is for statements that allow s3:PutObject");
    }
    let source_ip = source_ip.as_deref().map_or(Ok(Vec::new()), parse_networks)?;
    Ok(Statement { effect, actions, resources, only_if_absent: *only_if_absent, source_ip })
}

fn parse_networks(texts: &[String]) -> Result<Vec<IpNetwork>, InvalidPolicy> {
    if texts.is_empty() {
        return invalid("source_ip: it needs at least one network; omit it for all clients");
    }
    if texts.len() > STATEMENT_NETWORKS_MAX {
        return invalid(format!("source_ip: a statement can have at most {STATEMENT_NETWORKS_MAX} networks"));
    }
    let parse = |(index, text): (usize, &String)| {
        IpNetwork::parse(text).ok_or_else(|| {
            InvalidPolicy(format!(
                "source_ip[{index}]: {} is not an address or network such as 10.0.0.0/8, with no bits set after its prefix",
                quoted(text)
            ))
        })
    };
    texts.iter().enumerate().map(parse).collect()
}

fn parse_actions(names: &[String]) -> Result<Vec<Action>, InvalidPolicy> {
    if names.is_empty() {
        return invalid("actions: a statement needs at least one action");
    }
    let (mut actions, mut seen) = (Vec::new(), ActionSet::default());
    for (index, name) in names.iter().enumerate() {
        let Some(action) = Action::parse(name) else {
            let known = Action::ALL.map(Action::name).join(", ");
            return invalid(format!(
                "actions[{index}]: {} is not an action; the actions are {known}",
                quoted(name)
            ));
        };
        if !seen.insert(action) {
            return invalid(format!("actions[{index}]: {} is listed twice", quoted(name)));
        }
        actions.push(action);
    }
    Ok(actions)
}

fn parse_resources(texts: &[String]) -> Result<Vec<ResourcePattern>, InvalidPolicy> {
    if texts.is_empty() {
        return invalid("resources: a statement needs at least one resource");
    }
    if texts.len() > STATEMENT_RESOURCES_MAX {
        return invalid(format!(
            "resources: a statement can have at most {STATEMENT_RESOURCES_MAX} resources"
        ));
    }
    let parse = |(index, text): (usize, &String)| {
        ResourcePattern::parse(text)
            .map_err(|error| InvalidPolicy(format!("resources[{index}]: {} {error}", quoted(text))))
    };
    texts.iter().enumerate().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::{Policy, validate_description, validate_name};
    use serde_json::json;

    fn refused(document: &serde_json::Value) -> String {
        Policy::from_json(document.to_string().as_bytes()).expect_err("refused").to_string()
    }

    fn with_statement(statement: &serde_json::Value) -> serde_json::Value {
        let good = json!({"effect": "allow", "actions": ["s3:GetObject"], "resources": ["bucket:photos/*"]});
        json!({"name": "p", "statements": [good, statement]})
    }

    #[test]
    fn policies_round_trip_through_json() {
        let text = json!({
            "name": "readers", "description": "may read",
            "statements": [
                {"effect": "allow", "actions": ["s3:GetObject", "s3:ListBucket"],
                 "resources": ["bucket:photos", "bucket:photos/*"]},
                {"effect": "deny", "actions": ["s3:GetObject"], "resources": ["bucket:photos/secret/*"],
                 "source_ip": ["0.0.0.0/0", "2001:db8::/32", "192.0.2.7"]},
                {"effect": "allow", "actions": ["s3:PutObject"], "resources": ["bucket:app-*"], "only_if_absent": true},
            ],
        });
        let policy = Policy::from_json(text.to_string().as_bytes()).expect("a policy");
        assert_eq!(serde_json::to_value(policy.to_draft()).expect("writes"), text);
        assert_eq!(policy.pattern_count(), 4);
    }

    #[test]
    fn errors_name_the_statement_and_the_value() {
        for (statement, expected) in [
            (
                json!({"effect": "Allow", "actions": ["s3:GetObject"], "resources": ["bucket:photos"]}),
                "statements[1].effect: \"Allow\" must be",
            ),
            (
                json!({"effect": "allow", "actions": ["s3:*"], "resources": ["bucket:photos"]}),
                "statements[1].actions[0]: \"s3:*\" is not an action",
            ),
            (
                json!({"effect": "allow", "actions": [], "resources": ["bucket:photos"]}),
                "statements[1].actions: a statement needs at least one action",
            ),
            (
                json!({"effect": "allow", "actions": ["s3:GetObject", "s3:GetObject"], "resources": ["bucket:photos"]}),
                "statements[1].actions[1]: \"s3:GetObject\" is listed twice",
            ),
            (
                json!({"effect": "allow", "actions": ["s3:GetObject"], "resources": []}),
                "statements[1].resources: a statement needs at least one resource",
            ),
            (
                json!({"effect": "deny", "actions": ["s3:GetObject"], "resources": ["bucket:photos", "bucket:*/*"]}),
                "statements[1].resources[1]: \"bucket:*/*\" has a * before its end",
            ),
            (
                json!({"effect": "deny", "actions": ["s3:PutObject"], "resources": ["bucket:photos/*"], "only_if_absent": true}),
                "statements[1].only_if_absent: it is for statements that allow",
            ),
            (
                json!({"effect": "allow", "actions": ["s3:GetObject"], "resources": ["bucket:photos/*"], "only_if_absent": true}),
                "statements[1].only_if_absent: it is for statements that allow",
            ),
            (
                json!({"effect": "allow", "actions": ["s3:GetObject"], "resources": ["bucket:photos/*"], "source_ip": []}),
                "statements[1].source_ip: it needs at least one network",
            ),
            (
                json!({"effect": "allow", "actions": ["s3:GetObject"], "resources": ["bucket:photos/*"],
                       "source_ip": ["10.0.0.0/8", "10.0.0.1/8"]}),
                "statements[1].source_ip[1]: \"10.0.0.1/8\" is not an address or network",
            ),
            (
                json!({"effect": "allow", "actions": ["s3:GetObject"], "resources": ["bucket:photos/*"],
                       "source_ip": vec!["10.0.0.1"; 65]}),
                "statements[1].source_ip: a statement can have at most 64 networks",
            ),
        ] {
            let refused = refused(&with_statement(&statement));
            assert!(refused.starts_with(expected), "{refused}");
        }
    }

    #[test]
    fn misspelt_fields_are_refused() {
        let statement =
            json!({"effect": "allow", "actions": ["s3:GetObject"], "resources": ["bucket:photos"]});
        let mut more = statement.clone();
        more["condition"] = json!({});
        for document in [
            json!({"name": "p", "statements": [statement], "descriptoin": ""}),
            json!({"name": "p", "statements": [more]}),
            json!({"name": "p", "Statement": [statement]}),
        ] {
            assert!(refused(&document).contains("unknown field"), "{document}");
        }
        assert!(refused(&json!({"name": "p"})).contains("missing field"));
    }

    #[test]
    fn limits_hold_and_messages_shorten_long_values() {
        let statement =
            json!({"effect": "allow", "actions": ["s3:GetObject"], "resources": ["bucket:photos"]});
        let many = |count| json!({"name": "p", "statements": vec![statement.clone(); count]});
        assert!(Policy::from_json(many(100).to_string().as_bytes()).is_ok());
        assert!(refused(&many(101)).contains("at most 100"));
        assert!(refused(&many(0)).contains("at least one"));
        let resources = |count| {
            with_statement(
                &json!({"effect": "allow", "actions": ["s3:GetObject"], "resources": vec!["bucket:photos"; count]}),
            )
        };
        assert!(Policy::from_json(resources(100).to_string().as_bytes()).is_ok());
        assert!(refused(&resources(101)).contains("at most 100"));
        let long = json!({"effect": "ä".repeat(5000), "actions": [], "resources": []});
        assert!(refused(&with_statement(&long)).len() < 400);
    }

    #[test]
    fn names_are_short_printable_ascii_without_outer_spaces() {
        for good in ["a", "web app 1", "~!@#$", &"n".repeat(128)] {
            assert!(validate_name(good).is_ok(), "{good}");
        }
        for bad in ["", " a", "a ", "a\nb", "\u{430}dmin", &"n".repeat(129)] {
            assert!(validate_name(bad).is_err(), "{bad:?}");
        }
        assert!(validate_description(&"ä".repeat(1024)).is_ok());
        assert!(validate_description(&"ä".repeat(1025)).is_err());
    }
}
