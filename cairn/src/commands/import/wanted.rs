//! Plans the accounts and policies to create from an IAM export.
//!
//! Users and service accounts become accounts with the same keys. An account gets the policies of its user and of the user's
//! groups. A service account with a session policy gets one policy, the intersection.

use std::collections::{BTreeMap, BTreeSet};

use cairn_http1::parse_rfc3339_millis;
use cairn_identity::directory::GivenCredential;
use cairn_identity::policy::{StatementDraft, validate_description, validate_name};
use serde_json::{Value, json};

use super::iam::{Iam, ServiceAccount, Session};
use super::loss::Loss;
use super::translation::{
    Difference, Differences, Document, Source, check, compare, has_username, intersection, translate,
};
use crate::moment::now_millis;

/// The policy of service accounts of the root user.
const ROOT_POLICY: &str = "everything";
/// Policies that every MinIO server has. Those that nobody has are no loss.
const BUILT_IN: [&str; 5] = ["consoleAdmin", "diagnostics", "readonly", "readwrite", "writeonly"];
/// The beginning of the descriptions of imported policies.
pub(super) const POLICY_DESCRIPTION: &str = "Imported from MinIO";

/// The reason why an account gets none of its policies.
pub(super) const WITHOUT_DENIAL: &str = "it gets no policies: one of those that were refused denies something, so that the \
                                         others would allow more than at the source";

/// Everything that is to be created.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) accounts: Vec<WantedAccount>,
    /// By name.
    pub(super) policies: BTreeMap<String, WantedPolicy>,
    pub(super) losses: Vec<Loss>,
}

/// An account.
pub(super) struct WantedAccount {
    /// `user` or `service_account`.
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) access_key: String,
    pub(super) secret_key: String,
    /// In milliseconds since the Unix epoch.
    pub(super) expires_at: Option<u64>,
    pub(super) is_enabled: bool,
    /// Names of policies.
    pub(super) policies: Vec<String>,
}

/// A policy.
pub(super) struct WantedPolicy {
    pub(super) description: String,
    pub(super) statements: Vec<StatementDraft>,
    pub(super) differences: Differences,
}

impl WantedPolicy {
    /// Returns whether a statement denies something.
    pub(super) fn denies(&self) -> bool {
        self.statements.iter().any(|statement| statement.effect == "deny")
    }
}

/// The rights of a user at the source.
#[derive(Default)]
struct Rights {
    /// The policies that could be translated, with their names there.
    documents: Vec<(String, Document)>,
    /// The names here of those that allow or deny something.
    policies: Vec<String>,
    /// The names there of those that could not.
    refused: Vec<String>,
    /// One of those denies something, so that the others alone would allow more.
    is_denial_refused: bool,
}

/// A policy that was translated for a user, or for all.
enum Translated {
    Done {
        document: Document,
        /// Its name here; `None` if it allows and denies nothing here.
        name: Option<String>,
    },
    Refused {
        denies: bool,
    },
}

impl Wanted {
    /// Translates an export. `root` is the access key of the source's root user, which the export does not contain.
    pub(super) fn new(iam: &Iam, root: Option<&str>) -> Self {
        let mut translator = Translator { iam, done: BTreeMap::new(), wanted: Self::default() };
        translator.users();
        translator.service_accounts(root);
        translator.others();
        let mut wanted = translator.wanted;
        wanted.losses.sort();
        wanted.losses.dedup();
        wanted
    }
}

struct Translator<'i> {
    iam: &'i Iam,
    /// Policies by name, and by user if they contain the user's name.
    done: BTreeMap<(String, Option<String>), Translated>,
    wanted: Wanted,
}

impl Translator<'_> {
    fn lose(&mut self, kind: &'static str, name: &str, reason: impl Into<String>) {
        self.wanted.losses.push(Loss::new(kind, name, reason));
    }

    fn users(&mut self) {
        for (access_key, user) in &self.iam.users {
            let rights = self.rights(access_key);
            let policies = self.attachable(access_key, &rights);
            self.account(WantedAccount {
                kind: "user",
                name: access_key.clone(),
                description: String::new(),
                access_key: access_key.clone(),
                secret_key: user.secret_key.clone(),
                expires_at: None,
                is_enabled: user.is_enabled(),
                policies,
            });
        }
    }

    fn service_accounts(&mut self, root: Option<&str>) {
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for account in self.iam.service_accounts.values() {
            *names.entry(&account.name).or_default() += 1;
        }
        for (access_key, account) in &self.iam.service_accounts {
            let expiry = account.expires_at().map(|time| (time, has_passed(time)));
            if let Some((time, true)) = expiry {
                let reason = format!("it expired at {time}");
                self.lose("account", access_key, reason);
                continue;
            }
            if let Some((time, false)) = expiry.filter(|(time, _)| parse_rfc3339_millis(time).is_none()) {
                let reason = format!("it expires at {time}, which is no time, and does not expire here");
                self.lose("expiration", access_key, reason);
            }
            let is_own = names.get(&*account.name) == Some(&1)
                && !self.iam.users.contains_key(&account.name)
                && !self.iam.service_accounts.contains_key(&account.name)
                && validate_name(&account.name).is_ok();
            let name = if is_own { account.name.clone() } else { access_key.clone() };
            let description = match account.description.trim() {
                "" => format!("Service account of {}", account.parent),
                description => description.to_owned(),
            };
            let parent = self.iam.users.get(&account.parent);
            // A key of a disabled user is not accepted at the source, either.
            let is_enabled = account.is_enabled() && parent.is_none_or(super::iam::User::is_enabled);
            let policies = self.policies_of_service_account(access_key, &name, account, root);
            self.account(WantedAccount {
                kind: "service_account",
                name,
                description: if validate_description(&description).is_ok() {
                    description
                } else {
                    String::new()
                },
                access_key: access_key.clone(),
                secret_key: account.secret_key.clone(),
                expires_at: expiry.and_then(|(time, _)| parse_rfc3339_millis(time)),
                is_enabled,
                policies,
            });
        }
    }

    /// Adds an account, if its name and keys are possible here.
    fn account(&mut self, account: WantedAccount) {
        let keys = GivenCredential::new(account.access_key.clone(), account.secret_key.clone());
        if let Err(error) = keys {
            return self.lose(
                "account",
                &account.access_key,
                format!("its keys are not possible here: {error}"),
            );
        }
        self.wanted.accounts.push(account);
    }

    /// Returns the names here of the policies that an account gets, and names what it does not get.
    fn attachable(&mut self, access_key: &str, rights: &Rights) -> Vec<String> {
        for refused in &rights.refused {
            self.lose(
                "account",
                access_key,
                format!("the policy {refused} was refused, and is not attached"),
            );
        }
        if rights.is_denial_refused {
            self.lose("account", access_key, WITHOUT_DENIAL);
            return Vec::new();
        }
        rights.policies.clone()
    }

    /// Returns the rights of a user: those of its own policies, and of its groups.
    fn rights(&mut self, user: &str) -> Rights {
        let iam = self.iam;
        let groups = iam.groups.iter().filter(|(_, group)| {
            group.is_enabled() && group.members.iter().flatten().any(|member| member == user)
        });
        let mappings = iam
            .user_policies
            .get(user)
            .into_iter()
            .chain(groups.filter_map(|(name, _)| iam.group_policies.get(name)));
        let names: BTreeSet<&str> = mappings.flat_map(|mapping| mapping.policies()).collect();
        let mut rights = Rights::default();
        for name in names {
            match self.policy(name, user) {
                Some(Translated::Done { document, name: here }) => {
                    rights.policies.extend(here.clone());
                    rights.documents.push((name.to_owned(), document.clone()));
                }
                Some(Translated::Refused { denies }) => {
                    rights.is_denial_refused |= denies;
                    rights.refused.push(name.to_owned());
                }
                // The source leaves it out, too.
                None => rights.refused.push(name.to_owned()),
            }
        }
        rights
    }

    /// Translates a policy of the export for a user. `None` if the export does not contain it.
    fn policy(&mut self, name: &str, user: &str) -> Option<&Translated> {
        let Some(document) = self.iam.policies.get(name) else {
            self.lose("policy", name, "the export does not contain it");
            return None;
        };
        let user = has_username(document).then(|| user.to_owned());
        let key = (name.to_owned(), user.clone());
        if !self.done.contains_key(&key) {
            let translated = self.translate(name, document, user.as_deref());
            self.done.insert(key.clone(), translated);
        }
        self.done.get(&key)
    }

    fn translate(&mut self, name: &str, document: &Value, user: Option<&str>) -> Translated {
        let here = user.map_or_else(|| name.to_owned(), |user| format!("{name} ({user})"));
        let read = match Document::read(document, user.unwrap_or_default()) {
            Ok(read) => read,
            Err(refusal) => {
                self.lose("policy", &here, format!("refused: {}", refusal.reason));
                return Translated::Refused { denies: refusal.denies };
            }
        };
        let description = format!("{POLICY_DESCRIPTION}: policy {name}");
        let source = Source { documents: std::slice::from_ref(&read), session: None };
        let added = translate(&read).and_then(|translation| {
            for action in &translation.without_counterpart {
                let reason =
                    format!("{action} has no counterpart among the rights of accounts{}", instead(action));
                self.lose("policy", &here, reason);
            }
            self.add_policy(&here, description, translation.statements, &source)
        });
        match added {
            Ok(name) => Translated::Done { document: read, name },
            Err(reason) => {
                self.lose("policy", &here, format!("refused: {reason}"));
                Translated::Refused { denies: read.denies() }
            }
        }
    }

    /// Adds a policy of these statements. Returns its name; `None` if it says nothing.
    fn add_policy(
        &mut self,
        name: &str,
        description: String,
        statements: Vec<StatementDraft>,
        source: &Source<'_>,
    ) -> Result<Option<String>, String> {
        validate_name(name).map_err(|error| error.to_string())?;
        let differences = compare(source, &statements)?;
        for narrower in &differences.narrower {
            let Difference { includes, actions, resources } = narrower;
            let why = if actions.contains(includes) {
                "the source denies a part of what it is here"
            } else {
                "it would allow more than the source"
            };
            let (actions, resources) = (actions.join(", "), resources.join(", "));
            let reason =
                format!("{actions} on {resources} is not taken over: here it is {includes}, and {why}");
            self.lose("policy", name, reason);
        }
        if statements.is_empty() {
            return Ok(None);
        }
        let policy = WantedPolicy { description, statements, differences };
        if self.wanted.policies.insert(name.to_owned(), policy).is_some() {
            return Err("another policy has the same name here".to_owned());
        }
        Ok(Some(name.to_owned()))
    }

    fn policies_of_service_account(
        &mut self,
        access_key: &str,
        name: &str,
        account: &ServiceAccount,
        root: Option<&str>,
    ) -> Vec<String> {
        let rights = if self.iam.users.contains_key(&account.parent) {
            self.rights(&account.parent)
        } else if root == Some(&*account.parent) {
            self.rights_of_root()
        } else {
            let reason = format!(
                "created without rights: its user {} is not in the export; if that is the source's root user, \
                 repeat the command with --root {0}",
                account.parent
            );
            self.lose("account", access_key, reason);
            return Vec::new();
        };
        let session = match account.session() {
            Session::Inherited => return self.attachable(access_key, &rights),
            Session::Embedded(policy) => policy,
            Session::Missing => {
                let reason = "created without rights: the export does not contain its session policy";
                self.lose("account", access_key, reason);
                return Vec::new();
            }
        };
        if self.attachable(access_key, &rights).is_empty() {
            return Vec::new();
        }
        match self.session_policy(name, account, &rights, session) {
            Ok(policy) => policy.into_iter().collect(),
            Err(reason) => {
                let reason =
                    format!("created without rights: its session policy cannot be expressed: {reason}");
                self.lose("account", access_key, reason);
                Vec::new()
            }
        }
    }

    /// Adds the policy of a service account with a session policy.
    fn session_policy(
        &mut self,
        name: &str,
        account: &ServiceAccount,
        rights: &Rights,
        session: &Value,
    ) -> Result<Option<String>, String> {
        let session = Document::read(session, &account.parent).map_err(|refusal| refusal.reason)?;
        let of_session = translate(&session)?.statements;
        let of_parent: Vec<_> = rights
            .policies
            .iter()
            .filter_map(|name| self.wanted.policies.get(name))
            .flat_map(|policy| policy.statements.iter().cloned())
            .collect();
        let statements = intersection(&of_parent, &of_session);
        check(&statements)?;
        let documents: Vec<_> = rights.documents.iter().map(|(_, document)| document.clone()).collect();
        let source = Source { documents: &documents, session: Some(&[session]) };
        let description =
            format!("{POLICY_DESCRIPTION}: session policy of a service account of {}", account.parent);
        self.add_policy(&format!("{name} (session)"), description, statements, &source)
    }

    fn rights_of_root(&mut self) -> Rights {
        let document = json!({"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]});
        let document =
            Document::read(&document, "").unwrap_or_else(|_| unreachable!("the document is valid"));
        let documents = vec![(ROOT_POLICY.to_owned(), document)];
        let policies = if self.wanted.policies.contains_key(ROOT_POLICY) {
            Ok(Some(ROOT_POLICY.to_owned()))
        } else {
            let statements = translate(&documents[0].1).map(|translation| translation.statements);
            let description = format!("{POLICY_DESCRIPTION}: the rights of the root user");
            let source = Source { documents: std::slice::from_ref(&documents[0].1), session: None };
            statements.and_then(|statements| self.add_policy(ROOT_POLICY, description, statements, &source))
        };
        Rights { policies: policies.ok().flatten().into_iter().collect(), documents, ..Rights::default() }
    }

    /// Names what belongs to no account: policies that nobody has, members and users that are not in the export.
    fn others(&mut self) {
        let iam = self.iam;
        let attached: BTreeSet<String> = self.done.keys().map(|(name, _)| name.clone()).collect();
        for (name, document) in &iam.policies {
            if attached.contains(name) || BUILT_IN.contains(&&**name) {
                continue;
            }
            if has_username(document) {
                self.lose("policy", name, "no account has it, and it says something for each of them");
            } else {
                self.policy(name, "");
            }
        }
        for (group, about) in &iam.groups {
            for member in about.members.iter().flatten().filter(|member| !iam.users.contains_key(*member)) {
                self.lose("group", group, format!("its member {member} is not in the export"));
            }
        }
        for user in iam.user_policies.keys().filter(|user| !iam.users.contains_key(*user)) {
            self.lose("mapping", user, "the user is not in the export, but has policies");
        }
        for user in iam.external_policies.keys() {
            self.lose("mapping", user, "users of LDAP and OpenID have no counterpart; only keys are moved");
        }
    }
}

/// Says what takes the place of an action without a counterpart.
fn instead(action: &str) -> &'static str {
    if action.starts_with("admin:") { "; management tokens administer (`cairn token create`)" } else { "" }
}

/// Returns whether a time (RFC 3339, in UTC) is past. One that cannot be read is.
fn has_passed(time: &str) -> bool {
    let now = cairn_http1::iso8601_millis(now_millis());
    // Both have the form `2026-11-26T12:00:00`, and then a fraction or a Z.
    let [time, now] = [time, &now].map(|time| time.get(..19).unwrap_or_default().to_owned());
    time <= now
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::import::archive::Files;

    fn wanted(users: &Value, services: &Value, root: Option<&str>) -> Wanted {
        let policies = json!({
            "read": {"Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::photos/*"}]},
            "readwrite": {"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::*"}]},
        });
        let documents = [
            ("policies", &policies),
            ("users", users),
            ("svcaccts", services),
            ("user_mappings", &json!({"alice": {"policy": "read"}})),
            (
                "groups",
                &json!({"all": {"status": "enabled", "members": ["alice"]}, "off": {"status": "disabled", "members": ["alice"]}}),
            ),
            ("group_mappings", &json!({"off": {"policy": "readwrite"}})),
        ];
        let files: Files = documents
            .into_iter()
            .map(|(name, document)| (format!("iam-assets/{name}.json"), document.to_string().into_bytes()))
            .collect();
        let iam = Iam::read(&files).unwrap_or_else(|failure| panic!("{failure:?}"));
        Wanted::new(&iam, root)
    }

    fn service(parent: &str, members: Value) -> Value {
        let mut service = json!({"parent": parent, "secretKey": "a-secret-key", "status": "on", "sessionPolicy": null,
            "claims": {"sa-policy": "inherited-policy"}});
        service.as_object_mut().expect("an object").extend(members.as_object().expect("an object").clone());
        service
    }

    /// Returns the name, whether it is enabled, and the policies of the account with this key.
    fn account<'w>(wanted: &'w Wanted, key: &str) -> (&'w str, bool, &'w [String]) {
        let found = wanted.accounts.iter().find(|account| account.access_key == key).expect(key);
        (&found.name, found.is_enabled, &found.policies)
    }

    #[test]
    fn service_accounts_have_the_rights_of_their_user_at_most() {
        let users = json!({"alice": {"secretKey": "a-secret-key", "status": "enabled"}});
        let session = json!({"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::photos/a/*"}]});
        let services = json!({
            "all-of-it": service("alice", json!({"name": "ci"})),
            "restricted": service("alice", json!({"name": "ro", "sessionPolicy": session, "claims": {"sa-policy": "embedded-policy"}})),
            "unknown": service("alice", json!({"claims": {"sa-policy": "embedded-policy"}})),
            "of-nobody": service("gone", json!({})),
            "expired": service("alice", json!({"expiration": "2020-01-01T00:00:00Z"})),
        });
        let wanted = wanted(&users, &services, None);
        assert_eq!(account(&wanted, "all-of-it"), ("ci", true, &["read".to_owned()][..]));
        assert_eq!(account(&wanted, "restricted"), ("ro", true, &["ro (session)".to_owned()][..]));
        let statements = &wanted.policies["ro (session)"].statements;
        assert_eq!(
            (&*statements[0].actions, &*statements[0].resources),
            (&["s3:GetObject".to_owned()][..], &["bucket:photos/a/*".to_owned()][..])
        );
        for key in ["unknown", "of-nobody"] {
            assert_eq!(account(&wanted, key), (key, true, &[][..]));
        }
        let lost: Vec<_> = wanted.losses.iter().map(|loss| &*loss.name).collect();
        assert_eq!(lost, ["expired", "of-nobody", "unknown"]);
    }

    #[test]
    fn names_are_unique_and_a_disabled_user_disables_its_service_accounts() {
        let users = json!({"alice": {"secretKey": "a-secret-key", "status": "disabled"}});
        let services = json!({
            "key-one": service("alice", json!({"name": "same"})),
            "key-two": service("alice", json!({"name": "same"})),
            "key-three": service("alice", json!({"name": "alice"})),
            "key-four": service("alice", json!({"name": "key-one"})),
            "key-five": service("alice", json!({"name": "schön"})),
        });
        let wanted = wanted(&users, &services, None);
        for key in ["alice", "key-one", "key-two", "key-three", "key-four", "key-five"] {
            assert_eq!(account(&wanted, key), (key, false, &["read".to_owned()][..]));
        }
        assert_eq!(wanted.losses, []);
    }

    #[test]
    fn only_the_named_root_user_has_all_rights() {
        let services = json!({"of-root": service("minioadmin", json!({}))});
        let lost = |wanted: &Wanted| wanted.losses.iter().any(|loss| loss.name == "of-root");
        let without = wanted(&json!({}), &services, None);
        assert!(account(&without, "of-root").2.is_empty() && lost(&without));
        let with = wanted(&json!({}), &services, Some("minioadmin"));
        assert!(account(&with, "of-root").2 == [ROOT_POLICY] && !lost(&with));
    }
}
