//! `cairn import accounts`: users and service accounts of MinIO, with their keys, and their policies.
//!
//! What is there already is left as it is, so that the command can be repeated. Secrets are sent and never shown.

use std::collections::{BTreeMap, BTreeSet};

use cairn_api::{
    BoundPolicy, CreateServiceAccount, GivenCredential, NewServiceAccount, ServiceAccount, SetStatus,
};
use cairn_http1::{iso8601_millis, parse_rfc3339_millis};
use cairn_identity::policy::PolicyDraft;
use ring::digest::{SHA256, digest};
use serde::Serialize;
use serde_json::{Value, json};

use super::archive;
use super::changes::Changes;
use super::iam::Iam;
use super::loss::{Loss, end, losses_text};
use super::translation::Difference;
use super::wanted::{POLICY_DESCRIPTION, WITHOUT_DENIAL, Wanted, WantedAccount, WantedPolicy};
use crate::client::{Request, read};
use crate::commands::macros::command;
use crate::commands::resources::{ACCOUNTS, POLICIES};
use crate::failure::{Failure, Outcome};
use crate::quantity::counted;
use crate::terminal::plain;

command! {
    /// Take over the users and service accounts of a MinIO server, with the same access and secret keys. Exits with 1 if
    /// something could not be taken over; it is listed.
    #[argh(note = "The archive is what `mc admin cluster iam export` writes. It contains secrets: keep it to yourself.
Policies are translated. What they allow here beside what they allowed there is listed as well.
The command can be repeated: what is here already is left as it is.")]
    struct Accounts("accounts") {
        /// the archive
        #[argh(positional)]
        zip: String,
        /// show what would be done, and change nothing
        #[argh(switch)]
        dry_run: bool,
        /// the access key of the source's root user, whose service accounts may do everything
        #[argh(option, arg_name = "access-key")]
        root: Option<String>,
    }
}

/// The accounts that an export would become here, for the plan of a move.
pub(super) struct PlannedAccounts {
    pub(super) losses: Vec<Loss>,
    /// The rights of policies that exceed those at the source.
    pub(super) wider: Vec<Wider>,
}

/// The rights of a policy that exceed those at the source.
#[derive(Serialize)]
pub(super) struct Wider {
    policy: String,
    #[serde(flatten)]
    difference: Difference,
}

impl Wider {
    pub(super) fn text(&self) -> String {
        let Difference { includes, actions, resources } = &self.difference;
        let (policy, actions, resources) = (&self.policy, actions.join(", "), resources.join(", "));
        format!("policy {policy} on {resources}: {includes} includes {actions}")
    }
}

/// Translates the accounts of an export, and changes nothing.
///
/// # Errors
/// The archive cannot be read.
pub(super) fn planned(zip: &str, root: Option<&str>) -> Result<PlannedAccounts, Failure> {
    let Wanted { policies, losses, .. } = Wanted::new(&Iam::read(&archive::read(zip)?)?, root);
    let wider = policies.into_iter().flat_map(|(policy, about)| {
        let differences = about.differences.wider.into_iter();
        differences.map(move |difference| Wider { policy: policy.clone(), difference })
    });
    Ok(PlannedAccounts { losses, wider: wider.collect() })
}

/// The outcome of an account or a policy. In a dry run: the expected outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Fate {
    Created,
    Updated,
    Unchanged,
    /// It was changed here since an earlier run, which counts.
    Kept,
    Refused,
}

impl Fate {
    fn word(self, is_dry_run: bool) -> &'static str {
        match (self, is_dry_run) {
            (Self::Created, false) => "created",
            (Self::Created, true) => "would be created",
            (Self::Updated, false) => "updated",
            (Self::Updated, true) => "would be updated",
            (Self::Unchanged, _) => "unchanged",
            (Self::Kept, _) => "kept as it was changed here",
            (Self::Refused, _) => "refused",
        }
    }
}

/// Bytes of the digest in the description of a policy.
const DIGEST_BYTES: usize = 8;

/// A line of the report about an account.
#[derive(Serialize)]
struct AccountLine<'w> {
    access_key: &'w str,
    name: &'w str,
    kind: &'static str,
    enabled: bool,
    /// Those that are attached.
    policies: Vec<String>,
    result: Fate,
}

/// A line of the report about a policy.
#[derive(Serialize)]
struct PolicyLine<'w> {
    name: &'w str,
    result: Fate,
    /// The rights here that the source does not give.
    wider: &'w [Difference],
    /// The rights at the source that are left out here, and are hardly missed.
    left_out: &'w [Difference],
}

impl Accounts {
    pub(super) fn run(&self) -> Outcome {
        let iam = Iam::read(&archive::read(&self.zip)?)?;
        let wanted = Wanted::new(&iam, self.root.as_deref());
        let client = self.client()?;
        let changes = Changes { client: &client, is_dry: self.dry_run, losses: wanted.losses.clone() };
        let mut run = Run { changes, created: BTreeSet::new() };
        let (policies, ids) = run.policies(&wanted.policies)?;
        let accounts = run.accounts(&wanted, &ids)?;
        let losses = run.changes.losses;
        let body = json!({
            "dry_run": self.dry_run,
            "complete": losses.is_empty(),
            "accounts": accounts,
            "policies": policies,
            "losses": losses,
        });
        client.print(&body, || text(self.dry_run, &accounts, &policies, &losses))?;
        end(&losses)
    }
}

fn text(
    is_dry_run: bool,
    accounts: &[AccountLine<'_>],
    policies: &[PolicyLine<'_>],
    losses: &[Loss],
) -> String {
    let mut lines = Vec::new();
    let counts = [counted(accounts.len() as u64, "account"), counted(policies.len() as u64, "policy")];
    lines.push(format!("{} and {} in the archive", counts[0], counts[1]));
    for line in policies {
        lines.push(format!("  policy {}: {}", line.name, line.result.word(is_dry_run)));
    }
    for line in accounts {
        let state = if line.enabled { "" } else { ", disabled" };
        let policies = match &line.policies[..] {
            [] => "no policies".to_owned(),
            names => format!("policies {}", names.join(", ")),
        };
        lines.push(format!("  account {}: {}{state}, {policies}", line.name, line.result.word(is_dry_run)));
    }
    let wider = grouped(policies, |line| line.wider);
    if !wider.is_empty() {
        lines.push("allowed here beside what the source allows:".to_owned());
    }
    for ((includes, actions), places) in &wider {
        lines.push(format!("  {includes} includes {}: {}", actions.join(", "), places.join("; ")));
    }
    let left_out = grouped(policies, |line| line.left_out);
    if !left_out.is_empty() {
        lines.push("left out, because only a * names it, or because nobody needs it here:".to_owned());
    }
    for ((_, actions), places) in &left_out {
        lines.push(format!("  {}: {}", actions.join(", "), places.join("; ")));
    }
    let lines: String = lines.iter().map(|line| plain(line) + "\n").collect();
    lines + &losses_text(losses)
}

/// Groups differences that are the same for several policies, which are then named with their resources.
fn grouped<'l>(
    policies: &'l [PolicyLine<'_>],
    differences: impl Fn(&PolicyLine<'l>) -> &'l [Difference],
) -> BTreeMap<(&'static str, &'l [&'static str]), Vec<String>> {
    let mut groups: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for line in policies {
        for Difference { includes, actions, resources } in differences(line) {
            let place = format!("policy {} on {}", line.name, resources.join(", "));
            groups.entry((*includes, &actions[..])).or_default().push(place);
        }
    }
    groups
}

/// One run of the command.
struct Run<'c> {
    changes: Changes<'c>,
    /// The ids of the policies that this run has created.
    created: BTreeSet<String>,
}

/// A policy that an account has at the source.
#[derive(Clone, Copy)]
struct Attachment<'i> {
    name: &'i str,
    id: &'i str,
    denies: bool,
}

impl Run<'_> {
    /// Creates and updates policies. Returns what became of each, and the ids of those that are here.
    fn policies<'w>(
        &mut self,
        wanted: &'w BTreeMap<String, WantedPolicy>,
    ) -> Result<(Vec<PolicyLine<'w>>, BTreeMap<&'w str, String>), Failure> {
        let body = self.changes.client.call(&Request::get(POLICIES.path))?;
        let here: Vec<BoundPolicy> = read(&body[POLICIES.member])?;
        let (mut lines, mut ids) = (Vec::new(), BTreeMap::new());
        for (name, policy) in wanted {
            let result = match self.policy(name, policy, &here) {
                Ok((result, id)) => {
                    match result {
                        Fate::Created => drop(self.created.insert(id.clone())),
                        Fate::Kept => {
                            let reason = "it was changed here after its import, and stays as it is";
                            self.changes.lose("policy", name, reason);
                        }
                        Fate::Updated | Fate::Unchanged | Fate::Refused => {}
                    }
                    ids.insert(&**name, id);
                    result
                }
                Err(failure) => {
                    self.changes.refuse("policy", name, failure)?;
                    Fate::Refused
                }
            };
            let differences = &policy.differences;
            let (wider, left_out) = (&differences.wider[..], &differences.left_out[..]);
            lines.push(PolicyLine { name, result, wider, left_out });
        }
        Ok((lines, ids))
    }

    /// Creates or updates a policy. Returns its id, which is empty if it would only be created.
    fn policy(
        &self,
        name: &str,
        wanted: &WantedPolicy,
        here: &[BoundPolicy],
    ) -> Result<(Fate, String), Failure> {
        let document = PolicyDraft {
            name: name.to_owned(),
            description: with_digest(&wanted.description, &json!(wanted.statements)),
            statements: wanted.statements.clone(),
        };
        let same: Vec<_> = here.iter().filter(|bound| *bound.policy.name == *name).collect();
        let statements = json!(document.statements);
        if let Some(bound) = same.iter().find(|bound| json!(bound.policy.statements) == statements) {
            if *bound.policy.description == wanted.description {
                // An earlier version of this program added no digest.
                self.changes.change(&Request::put(POLICIES.path_of(&bound.policy.id)).json(&document))?;
            }
            return Ok((Fate::Unchanged, bound.policy.id.to_string()));
        }
        match same[..] {
            [] => {
                let created = self.changes.change(&Request::post(POLICIES.path).json(&document))?;
                let id = created.as_ref().and_then(|body| body["id"].as_str()).unwrap_or_default();
                Ok((Fate::Created, id.to_owned()))
            }
            // The source gives what it gave before, so it was changed here.
            [bound] if *bound.policy.description == document.description => {
                Ok((Fate::Kept, bound.policy.id.to_string()))
            }
            [bound] if is_as_imported(bound) => {
                self.changes.change(&Request::put(POLICIES.path_of(&bound.policy.id)).json(&document))?;
                Ok((Fate::Updated, bound.policy.id.to_string()))
            }
            _ => {
                Err("a policy of this name is here already, with other statements; it was not changed".into())
            }
        }
    }

    /// Creates accounts and attaches their policies. Returns what became of each.
    fn accounts<'w>(
        &mut self,
        wanted: &'w Wanted,
        ids: &BTreeMap<&str, String>,
    ) -> Result<Vec<AccountLine<'w>>, Failure> {
        let body = self.changes.client.call(&Request::get(ACCOUNTS.path))?;
        let here: Vec<ServiceAccount> = read(&body[ACCOUNTS.member])?;
        let by_key: BTreeMap<&str, &ServiceAccount> = here
            .iter()
            .flat_map(|account| account.credentials.iter().map(move |one| (&*one.access_key, account)))
            .collect();
        let mut lines = Vec::new();
        for account in &wanted.accounts {
            let attached = self.attached(account, &wanted.policies, ids);
            self.compare_expiry(account, &here);
            let mut names: Vec<&str> = attached.iter().map(|policy| policy.name).collect();
            let result = match self.account(account, by_key.get(&*account.access_key).copied(), &attached) {
                Ok((result, left)) => {
                    for name in &left {
                        let reason = format!(
                            "the policy {name} is not attached to it here, and was not attached again; \
                             `cairn policy attach` does it"
                        );
                        self.changes.lose("account", &account.access_key, reason);
                    }
                    names.retain(|name| !left.contains(name));
                    result
                }
                Err(failure) => {
                    self.changes.refuse("account", &account.access_key, failure)?;
                    Fate::Refused
                }
            };
            lines.push(AccountLine {
                access_key: &account.access_key,
                name: &account.name,
                kind: account.kind,
                enabled: account.is_enabled,
                policies: names.into_iter().map(str::to_owned).collect(),
                result,
            });
        }
        Ok(lines)
    }

    /// Names an account that is here already and expires at another time.
    fn compare_expiry(&mut self, wanted: &WantedAccount, here: &[ServiceAccount]) {
        let mut credentials = here.iter().flat_map(|account| &account.credentials);
        let Some(found) = credentials.find(|one| *one.access_key == *wanted.access_key) else { return };
        let expires_at = found.expires_at.as_deref().and_then(parse_rfc3339_millis);
        if expires_at != wanted.expires_at {
            let text = |time: Option<u64>| time.map_or_else(|| "never".to_owned(), iso8601_millis);
            let (there, here) = (text(wanted.expires_at), text(expires_at));
            let reason =
                format!("it is here already, and expires here: {here}, there: {there}; it was not changed");
            self.changes.lose("expiration", &wanted.access_key, reason);
        }
    }

    /// Returns the policies that an account gets, those that deny something first. Names those that it does not get.
    fn attached<'i>(
        &mut self,
        account: &WantedAccount,
        policies: &BTreeMap<String, WantedPolicy>,
        ids: &'i BTreeMap<&str, String>,
    ) -> Vec<Attachment<'i>> {
        let denies = |name: &str| policies.get(name).is_some_and(WantedPolicy::denies);
        let (mut attached, mut is_denial_missing) = (Vec::new(), false);
        for name in &account.policies {
            if let Some((name, id)) = ids.get_key_value(&**name) {
                attached.push(Attachment { name, id, denies: denies(name) });
            } else {
                let reason = format!("the policy {name} was refused, and is not attached");
                self.changes.lose("account", &account.access_key, reason);
                is_denial_missing |= denies(name);
            }
        }
        if is_denial_missing {
            self.changes.lose("account", &account.access_key, WITHOUT_DENIAL);
            return Vec::new();
        }
        attached.sort_by_key(|policy| !policy.denies);
        attached
    }

    /// Creates an account, or completes the one that an earlier run has created. Returns also the names of policies that are
    /// not attached, so that a repeated import does not widen rights that were tightened here.
    fn account<'i>(
        &self,
        wanted: &WantedAccount,
        here: Option<&ServiceAccount>,
        policies: &[Attachment<'i>],
    ) -> Result<(Fate, Vec<&'i str>), Failure> {
        let (mut result, id, is_enabled) = match here {
            Some(account) if *account.name == *wanted.name => {
                (Fate::Unchanged, account.id.to_string(), account.enabled)
            }
            Some(other) => {
                let name = &other.name;
                return Err(format!(
                    "its access key belongs to the account {name} here, which was not changed"
                )
                .into());
            }
            None => {
                let Some(body) = self.changes.change(&Request::post(ACCOUNTS.path).json(&wanted.body()))?
                else {
                    return Ok((Fate::Created, Vec::new()));
                };
                let new: NewServiceAccount = read(&body)?;
                (Fate::Created, new.service_account.id.to_string(), true)
            }
        };
        // Before it gets rights. An account is never enabled again that somebody has disabled here.
        if is_enabled && !wanted.is_enabled {
            let path = ACCOUNTS.path_of(&id) + "/status";
            self.changes.change(&Request::put(path).json(&SetStatus { enabled: false }))?;
            result = if result == Fate::Created { result } else { Fate::Updated };
        }
        let has = |policy: &str| {
            here.is_some_and(|account| account.policies.iter().any(|attached| *attached.id == *policy))
        };
        // An account without any is new, or the run that made it was interrupted.
        let had_none = here.is_none_or(|account| account.policies.is_empty());
        let mut left = Vec::new();
        for policy in policies.iter().filter(|policy| !has(policy.id)) {
            if !had_none && !policy.denies && !self.created.contains(policy.id) {
                left.push(policy.name);
                continue;
            }
            self.changes.change(&Request::put(format!("{}/bindings/{id}", POLICIES.path_of(policy.id))))?;
            result = if result == Fate::Created { result } else { Fate::Updated };
        }
        if result == Fate::Unchanged && !left.is_empty() {
            result = Fate::Kept;
        }
        Ok((result, left))
    }
}

/// Adds a digest of the statements, which shows later whether they were changed here.
fn with_digest(description: &str, statements: &Value) -> String {
    let digest = digest(&SHA256, statements.to_string().as_bytes());
    format!("{description} ({})", hex::encode(&digest.as_ref()[..DIGEST_BYTES]))
}

/// Returns whether a policy was imported, and nobody has changed its statements here since. Without a digest, that is not
/// known.
fn is_as_imported(bound: &BoundPolicy) -> bool {
    let description = &*bound.policy.description;
    let is_digest = |before: &str| with_digest(before, &json!(bound.policy.statements)) == description;
    description.starts_with(POLICY_DESCRIPTION)
        && description.rsplit_once(" (").is_some_and(|(before, _)| is_digest(before))
}

impl WantedAccount {
    fn body(&self) -> CreateServiceAccount {
        CreateServiceAccount {
            name: self.name.clone().into(),
            description: self.description.clone().into(),
            credential: Some(GivenCredential {
                access_key: self.access_key.clone().into(),
                secret_key: self.secret_key.clone().into(),
                expires_at: self.expires_at.map(|time| iso8601_millis(time).into()),
            }),
        }
    }
}
