//! Translates the statements of a document.
//!
//! An allowance gives an action only where the source allows what that action is for. A denial denies all that an action
//! includes if the source denies any of it. So a translation allows no more than the source, except for what the five actions
//! include beside what they are for. `compare.rs` names both differences.

use std::collections::BTreeSet;

use cairn_identity::policy::{
    Action, Policy, PolicyDraft, STATEMENT_NETWORKS_MAX, STATEMENT_RESOURCES_MAX, STATEMENTS_MAX,
    StatementDraft,
};

use super::actions::{ACTIONS, LISTS_BUCKETS, Weight};
use super::pattern::{has_wildcard, matches};
use super::source::{Document, Effect, Statement, quoted};

/// A translated document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Translation {
    pub(crate) statements: Vec<StatementDraft>,
    /// Patterns of allowed actions that have no counterpart at all, such as `admin:*`.
    pub(crate) without_counterpart: BTreeSet<String>,
}

/// Translates a document.
///
/// # Errors
/// The reason why it cannot be expressed.
pub(crate) fn translate(document: &Document) -> Result<Translation, String> {
    let mut statements = Vec::new();
    let mut without_counterpart = BTreeSet::new();
    for (index, statement) in document.statements.iter().enumerate() {
        let actions = actions(statement, &mut without_counterpart);
        if actions.is_empty() {
            continue;
        }
        let translated = translate_statement(statement, &actions);
        statements.extend(translated.map_err(|reason| format!("Statement[{index}]: {reason}"))?);
    }
    check(&statements)?;
    Ok(Translation { statements, without_counterpart })
}

/// Checks statements as the server does.
///
/// # Errors
/// The problem with them.
pub(crate) fn check(statements: &[StatementDraft]) -> Result<(), String> {
    compile(statements).map(|_| ())
}

/// Returns the policy of these statements; `None` if there are none.
///
/// # Errors
/// The problem with them.
pub(super) fn compile(statements: &[StatementDraft]) -> Result<Option<Policy>, String> {
    if statements.is_empty() {
        return Ok(None);
    }
    if statements.len() > STATEMENTS_MAX {
        return Err(format!("it needs more than {STATEMENTS_MAX} statements"));
    }
    let draft = PolicyDraft {
        name: "translated".to_owned(),
        description: String::new(),
        statements: statements.to_vec(),
    };
    Policy::from_draft(&draft).map(Some).map_err(|invalid| invalid.to_string())
}

/// Returns the actions here of a statement, in their order, and notes those without a counterpart.
fn actions(statement: &Statement, without_counterpart: &mut BTreeSet<String>) -> Vec<Action> {
    let mut here = Vec::new();
    for pattern in &statement.actions {
        let mut is_known = LISTS_BUCKETS.iter().any(|name| matches(pattern, name));
        for action in ACTIONS.iter().filter(|action| matches(pattern, action.name)) {
            is_known = true;
            let is_meant = match statement.effect {
                Effect::Allow => action.weight == Weight::Main,
                Effect::Deny => true,
            };
            if is_meant && !here.contains(&action.here) {
                here.push(action.here);
            }
        }
        if !is_known && statement.effect == Effect::Allow {
            without_counterpart.insert(quoted(pattern));
        }
    }
    Action::ALL.into_iter().filter(|action| here.contains(action)).collect()
}

fn translate_statement(statement: &Statement, actions: &[Action]) -> Result<Vec<StatementDraft>, String> {
    if statement.networks.len() > STATEMENT_NETWORKS_MAX {
        return Err(format!("it has more than {STATEMENT_NETWORKS_MAX} networks"));
    }
    let is_on_buckets = actions.iter().any(|action| action.is_on_buckets());
    let is_on_objects = actions.iter().any(|action| !action.is_on_buckets());
    let mut resources = Vec::new();
    for pattern in &statement.resources {
        for (resource, is_for) in translate_resource(pattern)? {
            let is_needed = match is_for {
                Scope::Bucket => is_on_buckets,
                Scope::Objects => is_on_objects,
                Scope::Both => true,
            };
            if is_needed && !resources.contains(&resource) {
                resources.push(resource);
            }
        }
    }
    let source_ip = (!statement.networks.is_empty())
        .then(|| statement.networks.iter().map(ToString::to_string).collect::<Vec<_>>());
    let effect = match statement.effect {
        Effect::Allow => "allow",
        Effect::Deny => "deny",
    };
    let draft = |resources: &[String]| StatementDraft {
        effect: effect.to_owned(),
        actions: actions.iter().map(|action| action.name().to_owned()).collect(),
        resources: resources.to_vec(),
        only_if_absent: false,
        source_ip: source_ip.clone(),
    };
    Ok(resources.chunks(STATEMENT_RESOURCES_MAX).map(draft).collect())
}

/// The scope of a resource: the bucket, its objects, or both.
enum Scope {
    Bucket,
    Objects,
    Both,
}

/// Translates a pattern of `<bucket>/<key>`, which also matches `<bucket>/` for the bucket itself.
fn translate_resource(pattern: &str) -> Result<Vec<(String, Scope)>, String> {
    let refused = |what: &str| Err(format!("the resource {} {what}", quoted(pattern)));
    if pattern.contains('?') {
        return refused("has a ?");
    }
    // Several stars are one.
    let mut path = pattern.to_owned();
    while path.contains("**") {
        path = path.replace("**", "*");
    }
    // Every path has a slash after the name of the bucket, so this slash adds nothing.
    if let Some(names) = path.strip_suffix("*/*").filter(|names| !names.contains(['/', '*'])) {
        path = format!("{names}*");
    }
    let (bucket, key) = path.split_once('/').map_or((&*path, None), |(bucket, key)| (bucket, Some(key)));
    let resource = || format!("bucket:{path}");
    match (has_wildcard(bucket), key) {
        (true, None) => match bucket.strip_suffix('*').filter(|names| !has_wildcard(names)) {
            Some(_) => Ok(vec![(resource(), Scope::Both)]),
            None => refused("has a * inside the name of the bucket"),
        },
        (true, Some(_)) => refused("has a * inside the name of the bucket"),
        (false, None | Some("")) => Ok(vec![(format!("bucket:{bucket}"), Scope::Bucket)]),
        (false, Some("*")) => {
            Ok(vec![(format!("bucket:{bucket}"), Scope::Bucket), (resource(), Scope::Objects)])
        }
        (false, Some(key)) if has_wildcard(key.strip_suffix('*').unwrap_or(key)) => {
            refused("has a * that is not at its end")
        }
        (false, Some(_)) => Ok(vec![(resource(), Scope::Objects)]),
    }
}
