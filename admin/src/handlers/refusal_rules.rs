//! The rule behind a refused request: statement, quota, lock, CORS rules or setting.
//!
//! A statement is looked up when somebody asks, in the policies that the account has then. The answer says whether these
//! are still the policies that decided, with the same documents, so that no statement is blamed for a decision it did not
//! make.

use cairn_api::{QuotaUse, RefusalRule, RefusingStatement};
use cairn_identity::directory::{AccountAccess, AccountId, Directory};
use cairn_identity::policy::{Action, AppliedStatement, Decision, Resource, ResourcePattern};
use cairn_model::u64_of;
use cairn_observe::{DecidingRule, QuotaFact, RefusedRequest, RefusedRight, RefusingSetting};

use std::net::IpAddr;

use crate::context::SettingValues;
use crate::error::AdminError;
use crate::limits::SETTING_VALUE_BYTES_MAX;

use super::access::explain;

/// Returns what decided about a request.
pub(super) fn deciding_rule(request: &RefusedRequest) -> RefusalRule {
    let body = RefusalRule { kind: request.refused_by.name().into(), ..RefusalRule::default() };
    match &request.rule {
        None => body,
        Some(DecidingRule::Quota { bytes, objects }) => {
            RefusalRule { bytes: Some(quota_use(bytes)), objects: Some(quota_use(objects)), ..body }
        }
        Some(DecidingRule::ObjectLock { version_id, retention, legal_hold }) => RefusalRule {
            version_id: Some(version_id.clone()),
            mode: Some(retention.map(|(mode, _)| mode.to_owned())),
            retain_until: Some(retention.map(|(_, until)| until.into())),
            legal_hold: Some(*legal_hold),
            ..body
        },
        Some(DecidingRule::CorsRules { rules, mismatch }) => RefusalRule {
            rules: Some(u64_of(*rules)),
            not_allowed: Some(mismatch.map(|part| part.name().to_owned())),
            ..body
        },
        Some(DecidingRule::Credential { state }) => RefusalRule { credential: Some((*state).into()), ..body },
        Some(DecidingRule::Argument(argument)) => RefusalRule { argument: Some(argument.clone()), ..body },
    }
}

fn quota_use(QuotaFact { limit, used }: &QuotaFact) -> QuotaUse {
    QuotaUse { limit: *limit, used: *used }
}

/// Returns the setting with its value; null in a server that does not know it.
pub(super) fn setting_body(setting: RefusingSetting, values: &SettingValues) -> cairn_api::RefusingSetting {
    let value = values.iter().find(|(known, _)| *known == setting).map(|(_, value)| value.as_str());
    let value = value.map(|text| text[..text.floor_char_boundary(SETTING_VALUE_BYTES_MAX)].to_owned());
    let (name, would_help) = (setting.name().to_owned(), setting.would_help().to_owned());
    cairn_api::RefusingSetting { name, value, would_help }
}

/// Adds the statement that decides about a right now; nothing for a right that no account's policies decided. The policies
/// decide, whatever else did then.
///
/// # Errors
/// `INTERNAL` if the explanation differs from the decision.
pub(super) async fn explain_right(
    directory: &Directory,
    right: &RefusedRight,
    client: IpAddr,
    rule: RefusalRule,
) -> Result<RefusalRule, AdminError> {
    let (Some(asked), Some(action)) = (&right.account, Action::parse(right.action)) else { return Ok(rule) };
    let mut explained = RefusalRule {
        kind: rule.kind,
        policies_unchanged: Some(false),
        decision_now: Some("account_deleted".into()),
        policies_attached: Some(0),
        statement: Some(None),
        ..RefusalRule::default()
    };
    let Some(account) = AccountId::parse(&asked.id).and_then(|id| directory.account_access(id)) else {
        return Ok(explained);
    };
    let resource = match &right.key {
        None => Resource::Bucket(&right.bucket),
        Some(key) => Resource::Object(&right.bucket, key),
    };
    let explanation = explain(action, resource, Some(client), &account).await?;
    let decision = match explanation.decision() {
        Decision::Allowed => "allowed",
        Decision::AllowedIfAbsent => "allowed_if_absent",
        Decision::DeniedExplicitly => "denied",
        Decision::DeniedImplicitly => "no_statement",
    };
    let first = explanation.statements().next();
    explained.policies_unchanged = Some(asked.rights.is_of(&account.rights));
    explained.decision_now = Some(decision.into());
    explained.policies_attached = Some(u64_of(account.policies.len()));
    explained.statement = Some(first.map(|applied| statement_body(applied, &account, right.shows_key)));
    Ok(explained)
}

fn statement_body(
    applied: AppliedStatement<usize>,
    account: &AccountAccess,
    shows_key: bool,
) -> RefusingStatement {
    let (id, policy) = &account.policies[applied.policy];
    let statement = &policy.statements[applied.statement];
    let matching = &statement.resources[applied.resource];
    let names_key = matches!(matching, ResourcePattern::Object(..));
    RefusingStatement {
        policy_id: id.to_string().into(),
        policy_name: policy.name.clone().into(),
        statement: u64_of(applied.statement),
        effect: statement.effect.name().into(),
        matching_resource: (shows_key || !names_key).then(|| matching.to_string()),
    }
}
