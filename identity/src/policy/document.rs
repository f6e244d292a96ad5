//! A policy as it is written, and the reading of it: every rule that a document must keep is checked here, once.

use super::action::{Action, ActionSet};
use super::limits::{
    DESCRIPTION_CHARACTERS_MAX, NAME_CHARACTERS_MAX, STATEMENT_RESOURCES_MAX, STATEMENTS_MAX,
};
use super::resource::ResourcePattern;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a statement does with what it names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Allows it, unless something else denies it.
    Allow,
    /// Denies it, whatever else allows it.
    Deny,
}

impl Effect {
    /// As policies spell it.
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

/// A policy as JSON has it, not yet found right. Unknown fields are refused, so that a misspelt one is not ignored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyDraft {
    /// What people call it.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// What it allows and denies.
    pub statements: Vec<StatementDraft>,
}

/// A statement as JSON has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementDraft {
    /// `allow` or `deny`.
    pub effect: String,
    /// Names of actions.
    pub actions: Vec<String>,
    /// Resources, see [`ResourcePattern`].
    pub resources: Vec<String>,
}

/// One statement: every action that it names on every resource that it names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// Allow or deny.
    pub effect: Effect,
    /// The actions, in the order in which they were written.
    pub actions: Vec<Action>,
    /// The resources.
    pub resources: Vec<ResourcePattern>,
}

/// A policy that keeps every rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    /// What people call it.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What it allows and denies.
    pub statements: Vec<Statement>,
}

/// Why a document is no policy: what is wrong, where, and with which value, in a sentence.
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

/// Most bytes of a value that a message repeats.
const QUOTED_BYTES_MAX: usize = 200;

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(QUOTED_BYTES_MAX)]
}

/// A value of the document in a message: escaped, and cut when it is long.
fn quoted(text: &str) -> String {
    let more = if text.len() > QUOTED_BYTES_MAX { " and further characters" } else { "" };
    format!("{:?}{more}", cut(text))
}

/// Checks a name of an account, a policy or a management token: 1 to [`NAME_CHARACTERS_MAX`] printable ASCII characters,
/// neither the first nor the last of them a space. Other scripts have letters that look like these, and a name in an audit
/// record must not be mistaken for another.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn check_name(name: &str) -> Result<(), InvalidPolicy> {
    if name.is_empty() || name.len() > NAME_CHARACTERS_MAX {
        return invalid(format!("the name must have 1 to {NAME_CHARACTERS_MAX} characters"));
    }
    if !name.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        return invalid("the name may only have printable ASCII characters");
    }
    if name.trim_matches(' ') != name {
        return invalid("the name may not begin or end with a space");
    }
    Ok(())
}

/// Checks a description: at most [`DESCRIPTION_CHARACTERS_MAX`] characters.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn check_description(description: &str) -> Result<(), InvalidPolicy> {
    if description.chars().count() > DESCRIPTION_CHARACTERS_MAX {
        return invalid(format!("the description has more than {DESCRIPTION_CHARACTERS_MAX} characters"));
    }
    Ok(())
}

impl Policy {
    /// Reads a policy from JSON.
    ///
    /// # Errors
    /// [`InvalidPolicy`].
    pub fn from_json(json: &[u8]) -> Result<Self, InvalidPolicy> {
        let draft: PolicyDraft = serde_json::from_slice(json)
            .map_err(|error| InvalidPolicy(cut(&error.to_string()).to_owned()))?;
        Self::from_draft(&draft)
    }

    /// Checks a policy.
    ///
    /// # Errors
    /// [`InvalidPolicy`].
    pub fn from_draft(draft: &PolicyDraft) -> Result<Self, InvalidPolicy> {
        let PolicyDraft { name, description, statements } = draft;
        check_name(name)?;
        check_description(description)?;
        if statements.is_empty() {
            return invalid("statements: a policy has at least one");
        }
        if statements.len() > STATEMENTS_MAX {
            return invalid(format!("statements: a policy has at most {STATEMENTS_MAX}"));
        }
        let read = |(at, statement)| {
            read_statement(statement).map_err(|error| InvalidPolicy(format!("statements[{at}].{error}")))
        };
        let statements: Result<_, _> = statements.iter().enumerate().map(read).collect();
        Ok(Self { name: name.clone(), description: description.clone(), statements: statements? })
    }

    /// The document as it was written.
    #[must_use]
    pub fn to_draft(&self) -> PolicyDraft {
        let written = |statement: &Statement| StatementDraft {
            effect: statement.effect.name().to_owned(),
            actions: statement.actions.iter().map(ToString::to_string).collect(),
            resources: statement.resources.iter().map(ToString::to_string).collect(),
        };
        PolicyDraft {
            name: self.name.clone(),
            description: self.description.clone(),
            statements: self.statements.iter().map(written).collect(),
        }
    }

    /// How many pairs of effect and resource it has: what compiling it costs.
    #[must_use]
    pub fn patterns(&self) -> usize {
        self.statements.iter().map(|statement| statement.resources.len()).sum()
    }
}

fn read_statement(draft: &StatementDraft) -> Result<Statement, InvalidPolicy> {
    let StatementDraft { effect, actions, resources } = draft;
    let Some(effect) = Effect::parse(effect) else {
        return invalid(format!("effect: {} is neither \"allow\" nor \"deny\"", quoted(effect)));
    };
    Ok(Statement { effect, actions: read_actions(actions)?, resources: read_resources(resources)? })
}

fn read_actions(names: &[String]) -> Result<Vec<Action>, InvalidPolicy> {
    if names.is_empty() {
        return invalid("actions: a statement has at least one");
    }
    let (mut actions, mut seen) = (Vec::new(), ActionSet::default());
    for (at, name) in names.iter().enumerate() {
        let Some(action) = Action::parse(name) else {
            let known = Action::ALL.map(Action::name).join(", ");
            return invalid(format!("actions[{at}]: {} is no action; those are {known}", quoted(name)));
        };
        if !seen.insert(action) {
            return invalid(format!("actions[{at}]: {} is named twice", quoted(name)));
        }
        actions.push(action);
    }
    Ok(actions)
}

fn read_resources(texts: &[String]) -> Result<Vec<ResourcePattern>, InvalidPolicy> {
    if texts.is_empty() {
        return invalid("resources: a statement has at least one");
    }
    if texts.len() > STATEMENT_RESOURCES_MAX {
        return invalid(format!("resources: a statement has at most {STATEMENT_RESOURCES_MAX}"));
    }
    let read = |(at, text): (usize, &String)| {
        ResourcePattern::parse(text)
            .map_err(|error| InvalidPolicy(format!("resources[{at}]: {} {error}", quoted(text))))
    };
    texts.iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::{Policy, check_description, check_name};
    use serde_json::json;

    fn refused(document: &serde_json::Value) -> String {
        Policy::from_json(document.to_string().as_bytes()).expect_err("refused").to_string()
    }

    fn with_statement(statement: &serde_json::Value) -> serde_json::Value {
        let good = json!({"effect": "allow", "actions": ["s3:GetObject"], "resources": ["bucket:photos/*"]});
        json!({"name": "p", "statements": [good, statement]})
    }

    #[test]
    fn a_policy_is_written_as_it_was_read() {
        let text = json!({
            "name": "readers", "description": "may read",
            "statements": [
                {"effect": "allow", "actions": ["s3:GetObject", "s3:ListBucket"],
                 "resources": ["bucket:photos", "bucket:photos/*"]},
                {"effect": "deny", "actions": ["s3:GetObject"], "resources": ["bucket:photos/secret/*"]},
            ],
        });
        let policy = Policy::from_json(text.to_string().as_bytes()).expect("a policy");
        assert_eq!(serde_json::to_value(policy.to_draft()).expect("writes"), text);
        assert_eq!(policy.patterns(), 3);
    }

    #[test]
    fn a_refusal_names_the_statement_and_the_value() {
        for (statement, expected) in [
            (
                json!({"effect": "Allow", "actions": ["s3:GetObject"], "resources": ["bucket:photos"]}),
                "statements[1].effect: \"Allow\" is neither",
            ),
            (
                json!({"effect": "allow", "actions": ["s3:*"], "resources": ["bucket:photos"]}),
                "statements[1].actions[0]: \"s3:*\" is no action",
            ),
            (
                json!({"effect": "allow", "actions": [], "resources": ["bucket:photos"]}),
                "statements[1].actions: a statement has at least one",
            ),
            (
                json!({"effect": "allow", "actions": ["s3:GetObject", "s3:GetObject"], "resources": ["bucket:photos"]}),
                "statements[1].actions[1]: \"s3:GetObject\" is named twice",
            ),
            (
                json!({"effect": "allow", "actions": ["s3:GetObject"], "resources": []}),
                "statements[1].resources: a statement has at least one",
            ),
            (
                json!({"effect": "deny", "actions": ["s3:GetObject"], "resources": ["bucket:photos", "bucket:*"]}),
                "statements[1].resources[1]: \"bucket:*\" has a * in the bucket's name",
            ),
        ] {
            let refused = refused(&with_statement(&statement));
            assert!(refused.starts_with(expected), "{refused}");
        }
    }

    #[test]
    fn a_misspelt_field_is_refused_and_not_ignored() {
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
    fn limits_hold_and_long_values_are_cut_in_messages() {
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
    fn names_are_short_printable_ascii_without_spaces_around() {
        for good in ["a", "web app 1", "~!@#$", &"n".repeat(128)] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", " a", "a ", "a\nb", "\u{430}dmin", &"n".repeat(129)] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        assert!(check_description(&"ä".repeat(1024)).is_ok());
        assert!(check_description(&"ä".repeat(1025)).is_err());
    }
}
