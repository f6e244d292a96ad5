//! Checks the tables of a file, and returns what they ask for.
//!
//! Everything is checked that can be checked without a server: names, values, duplicates, and the places of secrets.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;
use std::path::Path;

use cairn_admin::checks;
use cairn_api::{
    CreateWebhook, GivenCredential, PolicyDocument, PublicAccess, PublicRule, Statement, VersioningState,
};
use serde_json::Value;
use toml::Spanned;

use super::secrets::Elsewhere;
use super::source::{Problems, Tables};
use super::tables::{
    AccountTable, BucketTable, PolicyTable, PublicTable, QuotaTable, Retention, Rules, WebhookTable,
};
use super::values;

/// A place in the file.
pub(super) type Place = Range<usize>;
/// A value with its place.
pub(super) type Placed<T> = (Place, T);

/// The state that a file asks for.
pub(super) struct Wanted {
    pub(super) buckets: Vec<WantedBucket>,
    pub(super) policies: Vec<WantedPolicy>,
    pub(super) accounts: Vec<WantedAccount>,
    pub(super) webhooks: Vec<WantedWebhook>,
}

impl Wanted {
    /// Returns whether the file contains nothing: then everything would be pruned.
    pub(super) const fn is_empty(&self) -> bool {
        let Self { buckets, policies, accounts, webhooks } = self;
        buckets.is_empty() && policies.is_empty() && accounts.is_empty() && webhooks.is_empty()
    }
}

/// A bucket. What is `None` is not managed.
pub(super) struct WantedBucket {
    pub(super) name: String,
    pub(super) object_lock: Option<Placed<bool>>,
    pub(super) versioning: Option<Placed<VersioningState>>,
    /// Null removes it.
    pub(super) default_retention: Option<Placed<Value>>,
    /// `Some(None)` is unlimited.
    pub(super) bytes: Option<Placed<Option<u64>>>,
    pub(super) objects: Option<Placed<Option<u64>>>,
    pub(super) cors: Option<Placed<Vec<Value>>>,
    pub(super) lifecycle: Option<Placed<Vec<Value>>>,
    pub(super) public_rules: Option<Placed<Vec<Value>>>,
    pub(super) public_blocked: Option<bool>,
}

/// A policy. The statements are in their canonical form.
pub(super) struct WantedPolicy {
    pub(super) place: Place,
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) statements: Vec<Value>,
}

/// A service account.
pub(super) struct WantedAccount {
    pub(super) name: String,
    pub(super) description: Option<Placed<String>>,
    pub(super) enabled: Option<bool>,
    /// Names of policies.
    pub(super) policies: Option<Vec<Placed<String>>>,
    pub(super) credential: Option<Placed<GivenCredential>>,
}

/// A webhook.
pub(super) struct WantedWebhook {
    pub(super) place: Place,
    pub(super) target_url: String,
    /// Sorted.
    pub(super) event_types: Vec<String>,
    pub(super) bucket_filter: Option<String>,
    pub(super) object_prefix_filter: Option<String>,
    pub(super) enabled: Option<bool>,
}

/// Checks all tables. Problems are added to those that reading has found. `folder` is that of the file.
pub(super) fn wanted(tables: Tables, folder: &Path, problems: &Problems) -> Wanted {
    let mut names = Names::new("bucket", problems);
    let buckets =
        tables.buckets.into_iter().map(|table| bucket(table.into_inner(), &mut names, problems)).collect();
    let mut names = Names::new("policy", problems);
    let policies =
        tables.policies.into_iter().map(|table| policy(table.into_inner(), &mut names, problems)).collect();
    let (mut names, mut keys) = (Names::new("account", problems), Names::new("access key", problems));
    let of_account =
        |table: Spanned<AccountTable>| account(table.into_inner(), folder, (&mut names, &mut keys), problems);
    let accounts = tables.accounts.into_iter().map(of_account).collect();
    let mut targets = Names::new("webhook with this target and these filters", problems);
    let of_webhook = |table: Spanned<WebhookTable>| webhook(table, folder, &mut targets, problems);
    let webhooks = tables.webhooks.into_iter().filter_map(of_webhook).collect();
    Wanted { buckets, policies, accounts, webhooks }
}

/// The names of one kind, which must differ.
struct Names<'p, N> {
    kind: &'static str,
    problems: &'p Problems,
    seen: HashMap<N, usize>,
}

impl<'p, N: Hash + Eq> Names<'p, N> {
    fn new(kind: &'static str, problems: &'p Problems) -> Self {
        Self { kind, problems, seen: HashMap::new() }
    }

    fn add(&mut self, place: &Place, name: N, shown: &str) {
        let line = self.problems.line(place);
        if let Some(first) = self.seen.get(&name) {
            let text = format!("the {} {shown}occurs twice: it is in line {first} already", self.kind);
            self.problems.add(place, text);
        } else {
            self.seen.insert(name, line);
        }
    }
}

fn placed<T>(value: Spanned<T>) -> Placed<T> {
    (value.span(), value.into_inner())
}

fn bucket(table: BucketTable, names: &mut Names<'_, String>, problems: &Problems) -> WantedBucket {
    let (place, name) = placed(table.name);
    let name = String::from(name);
    problems.check(&place, checks::bucket_name(&name));
    names.add(&place, name.clone(), &format!("{name} "));
    let has_lock = table.object_lock.as_ref().map(|lock| *lock.get_ref());
    if let Some(versioning) = &table.versioning {
        check_versioning(versioning, has_lock, problems);
    }
    let default_retention = table.default_retention.map(placed);
    let default_retention = default_retention.map(|(place, Retention(retention))| {
        if let Some(retention) = &retention {
            problems.check(&place, checks::default_retention(retention));
            if has_lock == Some(false) {
                problems.add(&place, "default_retention needs object_lock = true");
            }
        }
        (place, values::retention(retention.as_ref()))
    });
    let (bytes, objects) = table.quota.map_or((None, None), |quota| limits(quota.into_inner(), problems));
    let public = table.public.map(Spanned::into_inner).unwrap_or_default();
    WantedBucket {
        name,
        object_lock: table.object_lock.map(placed),
        versioning: table.versioning.map(placed),
        default_retention,
        bytes,
        objects,
        cors: table.cors.map(|rules| cors(rules, problems)),
        lifecycle: table.lifecycle.map(|rules| lifecycle(rules, problems)),
        public_blocked: public.blocked,
        public_rules: public_rules(public, problems),
    }
}

fn check_versioning(versioning: &Spanned<VersioningState>, has_lock: Option<bool>, problems: &Problems) {
    match versioning.get_ref() {
        VersioningState::Unversioned => {
            let text = "versioning must be Enabled or Suspended: it cannot be removed; leave it out where it does not matter";
            problems.add(&versioning.span(), text);
        }
        VersioningState::Suspended if has_lock == Some(true) => {
            problems.add(&versioning.span(), "object lock requires versioning to stay Enabled");
        }
        _ => {}
    }
}

/// Both limits of a quota.
type Limits = (Option<Placed<Option<u64>>>, Option<Placed<Option<u64>>>);

fn limits(quota: QuotaTable, problems: &Problems) -> Limits {
    let bytes = quota.bytes.map(placed).map(|(place, limit)| {
        problems.check(&place, checks::byte_quota(&limit.0));
        (place, limit.0.bytes)
    });
    let objects = quota.objects.map(placed).map(|(place, limit)| {
        problems.check(&place, checks::object_quota(&limit.0));
        (place, limit.0.objects)
    });
    (bytes, objects)
}

/// Rules are checked one by one, which gives each problem its line. Origins may have all forms of the mode `extended`: which
/// mode the server has is not known yet.
fn cors(rules: Spanned<Rules<cairn_api::CorsRule>>, problems: &Problems) -> Placed<Vec<Value>> {
    let (place, Rules(rules)) = placed(rules);
    let check = |rule: Spanned<cairn_api::CorsRule>| {
        let (place, rule) = placed(rule);
        let value = values::cors_rule(&rule);
        let checked = checks::cors_rules(vec![rule], "extended");
        problems.check(&place, checked.map_err(|error| without_index(&error, "rules[0].")));
        value
    };
    let rules = rules.into_iter().map(check).collect();
    (place, rules)
}

fn lifecycle(rules: Spanned<Rules<cairn_api::SetLifecycleRule>>, problems: &Problems) -> Placed<Vec<Value>> {
    let (place, Rules(rules)) = placed(rules);
    problems.check(&place, checks::lifecycle_rule_count(rules.len()));
    let mut seen: Vec<Value> = Vec::with_capacity(rules.len());
    for rule in rules {
        let (place, rule) = placed(rule);
        let value = values::lifecycle_rule(&rule);
        problems.check(&place, checks::lifecycle_rule(rule));
        if seen.contains(&value) {
            problems.add(&place, "an earlier rule is the same");
        }
        seen.push(value);
    }
    (place, seen)
}

fn public_rules(public: PublicTable, problems: &Problems) -> Option<Placed<Vec<Value>>> {
    let rules = public.rules?;
    let place = rules.first().map_or(0..0, Spanned::span);
    let (mut written, mut all) = (Vec::with_capacity(rules.len()), Vec::with_capacity(rules.len()));
    let mut are_valid = true;
    for rule in rules {
        let (place, rule) = placed(rule);
        written.push(values::public_rule(&rule));
        let is_repeated = all.iter().any(|earlier: &PublicRule| earlier.prefix == rule.prefix);
        let alone = PublicAccess { rules: vec![rule], blocked: false };
        let checked = match checks::public_rules(&alone) {
            Ok(()) if is_repeated => Err("prefix: an earlier rule has it".to_owned()),
            checked => checked.map_err(|error| without_index(&error, "rules[0].")),
        };
        are_valid &= problems.check(&place, checked);
        all.extend(alone.rules);
    }
    if are_valid {
        problems.check(&place, checks::public_rules(&PublicAccess { rules: all, blocked: false }));
    }
    Some((place, written))
}

/// Removes the index of the only element that was checked.
fn without_index(error: &str, index: &str) -> String {
    error.strip_prefix(index).unwrap_or(error).to_owned()
}

/// Returns a document whose name and description are valid.
fn document(statements: Vec<Statement>) -> PolicyDocument {
    PolicyDocument { name: "x".into(), description: "".into(), statements }
}

fn policy(table: PolicyTable, names: &mut Names<'_, String>, problems: &Problems) -> WantedPolicy {
    let (place, name) = placed(table.name);
    let name = String::from(name);
    problems.check(&place, checks::name(&name));
    names.add(&place, name.clone(), &format!("{name:?} "));
    let description = table.description.map(placed).map(|(place, description)| {
        problems.check(&place, checks::description(&description));
        String::from(description)
    });
    let (list_place, statements) = placed(table.statements);
    let mut written = Vec::with_capacity(statements.len());
    let mut all: Vec<Statement> = Vec::with_capacity(statements.len());
    let mut are_valid = true;
    for one in statements {
        let (place, one) = placed(one);
        match checks::policy(document(vec![one])) {
            Ok(document) => {
                written.extend(document.statements.iter().map(values::statement));
                all.extend(document.statements);
            }
            Err(error) => {
                are_valid = false;
                problems.add(&place, without_index(&error, "statements[0]."));
            }
        }
    }
    if are_valid {
        problems.check(&list_place, checks::policy(document(all)).map(drop));
    }
    WantedPolicy { place, name, description, statements: written }
}

fn account(
    table: AccountTable,
    folder: &Path,
    (names, keys): (&mut Names<'_, String>, &mut Names<'_, String>),
    problems: &Problems,
) -> WantedAccount {
    let (place, name) = placed(table.name);
    let name = String::from(name);
    problems.check(&place, checks::name(&name));
    names.add(&place, name.clone(), &format!("{name:?} "));
    let description = table.description.map(placed).map(|(place, description)| {
        problems.check(&place, checks::description(&description));
        (place, String::from(description))
    });
    let policies = table.policies.map(|policies| {
        let mut attached = Names::new("policy", problems);
        let add = |policy: Spanned<cairn_api::Name>| {
            let (place, policy) = placed(policy);
            let policy = String::from(policy);
            attached.add(&place, policy.clone(), &format!("{policy:?} "));
            (place, policy)
        };
        policies.into_iter().map(add).collect()
    });
    let credential = table.credential.and_then(|credential| {
        let (place, table) = placed(credential);
        let access_key = table.access_key.get_ref();
        keys.add(&table.access_key.span(), access_key.clone(), &format!("{access_key} "));
        let (file, variable) = (table.secret_key_file.as_ref(), table.secret_key_env.as_ref());
        if file.is_none() && variable.is_none() {
            problems.add(&place, "credential needs secret_key_file or secret_key_env");
        }
        let secret_key = Elsewhere { member: "secret_key", file, variable }.read(folder, problems)?;
        let given = || GivenCredential {
            access_key: access_key.clone().into(),
            secret_key: secret_key.clone().into(),
            expires_at: None,
        };
        problems.check(&place, checks::given_credential(given()));
        Some((place, given()))
    });
    WantedAccount { name, description, enabled: table.enabled, policies, credential }
}

/// The identity of a webhook: target, bucket and prefix.
type Identity = (String, Option<String>, Option<String>);

fn webhook(
    table: Spanned<WebhookTable>,
    folder: &Path,
    targets: &mut Names<'_, Identity>,
    problems: &Problems,
) -> Option<WantedWebhook> {
    let (place, table) = placed(table);
    let WebhookTable { target_url, target_url_file, target_url_env, .. } = table;
    let elsewhere =
        Elsewhere { member: "target_url", file: target_url_file.as_ref(), variable: target_url_env.as_ref() };
    let target_url = match (target_url, elsewhere.file.or(elsewhere.variable)) {
        (Some(here), None) => String::from(here.into_inner()),
        (None, Some(_)) => elsewhere.read(folder, problems)?,
        _ => {
            problems.add(&place, "a webhook needs one of target_url, target_url_file and target_url_env");
            return None;
        }
    };
    let (types_place, event_types) = placed(table.event_types);
    let new = CreateWebhook {
        target_url: target_url.into(),
        event_types,
        bucket_filter: table.bucket_filter,
        object_prefix_filter: table.object_prefix_filter,
        enabled: true,
    };
    if let Err(error) = checks::webhook(&new) {
        let place = if error.contains("event") { &types_place } else { &place };
        problems.add(place, error);
    }
    let mut event_types: Vec<String> = new.event_types.into_iter().map(String::from).collect();
    event_types.sort();
    let wanted = WantedWebhook {
        place: place.clone(),
        target_url: new.target_url.into(),
        event_types,
        bucket_filter: new.bucket_filter.map(String::from),
        object_prefix_filter: new.object_prefix_filter.map(String::from),
        enabled: table.enabled,
    };
    let identity =
        (wanted.target_url.clone(), wanted.bucket_filter.clone(), wanted.object_prefix_filter.clone());
    targets.add(&place, identity, "");
    Some(wanted)
}
