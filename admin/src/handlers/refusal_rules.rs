//! What decided about a refused request: statement, quota, lock, CORS rules or setting.
//!
//! A statement is looked up when somebody asks, in the policies that the account has then. The answer says whether these
//! are still the policies that decided, so that no statement is blamed for a decision it did not make. A policy itself
//! never changes, so its id and the number of a statement always name the same statement.

use cairn_http1::iso8601_millis;
use cairn_identity::directory::{AccountAccess, AccountId, Directory};
use cairn_identity::policy::{Action, AppliedStatement, Decision, Resource, ResourcePattern};
use cairn_observe::{DecidingRule, QuotaFact, RefusedRequest, RefusedRight, RefusingSetting};
use serde::Serialize;

use crate::context::SettingValues;
use crate::error::AdminError;
use crate::limits::SETTING_VALUE_BYTES_MAX;

use super::access::explain;

/// What decided. Its members depend on `kind`.
#[derive(Serialize)]
pub(super) struct DecidedByBody<'r> {
    kind: &'static str,
    #[serde(flatten)]
    rule: Option<RuleBody<'r>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum RuleBody<'r> {
    Policy(PoliciesBody),
    Quota { bytes: QuotaBody, objects: QuotaBody },
    Lock { version_id: &'r str, mode: Option<&'static str>, retain_until: Option<String>, legal_hold: bool },
    Cors { rules: usize, not_allowed: Option<&'static str> },
    Credential { credential: &'static str },
    Argument { argument: &'r str },
}

/// What the policies of the account say now.
#[derive(Serialize)]
pub(super) struct PoliciesBody {
    /// Whether the account still has the policies that decided; false also if the account was deleted.
    policies_unchanged: bool,
    decision_now: &'static str,
    policies_attached: usize,
    statement: Option<StatementBody>,
}

/// The statement that decides now.
#[derive(Serialize)]
struct StatementBody {
    policy_id: String,
    policy_name: String,
    /// The index of the statement in its policy.
    statement: usize,
    effect: &'static str,
    /// Null if it names one key, and keys are not logged.
    matching_resource: Option<String>,
}

#[derive(Serialize)]
struct QuotaBody {
    limit: Option<u64>,
    used: u64,
}

impl From<QuotaFact> for QuotaBody {
    fn from(QuotaFact { limit, used }: QuotaFact) -> Self {
        Self { limit, used }
    }
}

impl<'r> DecidedByBody<'r> {
    /// Returns what decided about a request. `policies` is what was found about its right.
    pub(super) fn new(request: &'r RefusedRequest, policies: Option<PoliciesBody>) -> Self {
        let rule = request.rule.as_ref().map(|rule| match rule {
            DecidingRule::Quota { bytes, objects } => {
                RuleBody::Quota { bytes: (*bytes).into(), objects: (*objects).into() }
            }
            DecidingRule::ObjectLock { version_id, retention, legal_hold } => RuleBody::Lock {
                version_id,
                mode: retention.map(|(mode, _)| mode),
                retain_until: retention.map(|(_, until)| iso8601_millis(until.0)),
                legal_hold: *legal_hold,
            },
            DecidingRule::CorsRules { rules, mismatch } => {
                RuleBody::Cors { rules: *rules, not_allowed: mismatch.map(|part| part.name()) }
            }
            DecidingRule::Credential { state } => RuleBody::Credential { credential: state },
            DecidingRule::Argument(argument) => RuleBody::Argument { argument },
        });
        Self { kind: request.refused_by.name(), rule: policies.map(RuleBody::Policy).or(rule) }
    }
}

/// A key of the configuration, its value, and the value that would help.
#[derive(Serialize)]
pub(super) struct SettingBody<'r> {
    name: &'static str,
    value: Option<&'r str>,
    would_help: &'static str,
}

impl<'r> SettingBody<'r> {
    /// Returns the setting with its value; null in a server that does not know it.
    pub(super) fn new(setting: RefusingSetting, values: &'r SettingValues) -> Self {
        let value = values.iter().find(|(known, _)| *known == setting).map(|(_, value)| value.as_str());
        let value = value.map(|text| &text[..text.floor_char_boundary(SETTING_VALUE_BYTES_MAX)]);
        Self { name: setting.name(), value, would_help: setting.would_help() }
    }
}

/// Finds the statement that decides about a right now; `None` for a right that no account's policies decided.
///
/// # Errors
/// `INTERNAL` if the explanation differs from the decision.
pub(super) async fn explain_right(
    directory: &Directory,
    right: &RefusedRight,
) -> Result<Option<PoliciesBody>, AdminError> {
    let (Some(asked), Some(action)) = (&right.account, Action::parse(right.action)) else { return Ok(None) };
    let Some(account) = AccountId::parse(&asked.id).and_then(|id| directory.account_access(id)) else {
        return Ok(Some(PoliciesBody {
            policies_unchanged: false,
            decision_now: "account_deleted",
            policies_attached: 0,
            statement: None,
        }));
    };
    let resource = match &right.key {
        None => Resource::Bucket(&right.bucket),
        Some(key) => Resource::Object(&right.bucket, key),
    };
    let explanation = explain(action, resource, &account).await?;
    let first = explanation.statements().next();
    Ok(Some(PoliciesBody {
        policies_unchanged: asked.rights.is_of(&account.rights),
        decision_now: match explanation.decision() {
            Decision::Allowed => "allowed",
            Decision::DeniedExplicitly => "denied",
            Decision::DeniedImplicitly => "no_statement",
        },
        policies_attached: account.policies.len(),
        statement: first.map(|applied| statement_body(applied, &account, right.shows_key)),
    }))
}

fn statement_body(
    applied: AppliedStatement<usize>,
    account: &AccountAccess,
    shows_key: bool,
) -> StatementBody {
    let (id, policy) = &account.policies[applied.policy];
    let statement = &policy.statements[applied.statement];
    let matching = &statement.resources[applied.resource];
    let names_key = matches!(matching, ResourcePattern::Object(..));
    StatementBody {
        policy_id: id.to_string(),
        policy_name: policy.name.clone(),
        statement: applied.statement,
        effect: statement.effect.name(),
        matching_resource: (shows_key || !names_key).then(|| matching.to_string()),
    }
}
