//! `cairn app`: everything that an application needs, in one step.
//!
//! An application is an account and a policy of its name. The description of the account says what it was asked to have, so
//! that a later run with other options is found before anything is changed.

use std::env;
use std::path::PathBuf;

use cairn_api::{
    BucketList, CreateBucket, CreateServiceAccount, NewCredential, NewServiceAccount, Policy, PolicyDocument,
    PolicyList, ServiceAccount, ServiceAccountList, Statement, SystemInfo,
};
use serde_json::{Value, json};

use crate::client::{Client, Request, read};
use crate::commands::doctor::is_bucket_name;
use crate::commands::macros::{command, noun};
use crate::commands::policy::template::{Scope, Template};
use crate::commands::resources::{ACCOUNTS, BUCKETS, POLICIES};
use crate::doctor::{Application, Facts, Mode, REGION, S3Client};
use crate::environment::CA_VARIABLE;
use crate::failure::{Failure, Outcome};
use crate::output::table::labelled;
use crate::s3::endpoint::Endpoint;
use crate::terminal::plain;

noun! {
    /// Set up what an application needs: a bucket, an account, a policy, and the settings to paste.
    struct App("app"): AppCommand { Create }
}

command! {
    /// Create an account and a policy for an application, its bucket if it is missing, and print the settings of its client
    /// with the keys. A second run with the same options changes nothing; one that was interrupted is completed.
    #[argh(note = "Rights: read-write lists, reads, writes and deletes. read-only lists and reads. create-only lists, reads, and
writes new objects, but overwrites and deletes nothing.")]
    struct Create("create") {
        /// the name of the application, of its account and of its policy
        #[argh(positional)]
        name: String,
        /// the bucket
        #[argh(option, arg_name = "bucket")]
        bucket: String,
        /// the beginning of the keys that the application may use (default: all keys)
        #[argh(option, arg_name = "prefix", default = "String::new()")]
        prefix: String,
        /// what it may do: read-only, read-write (default) or create-only
        #[argh(option, arg_name = "rights", default = "Template(READ_WRITE)")]
        rights: Template,
        /// the client whose settings are printed, as for `cairn doctor`
        #[argh(option, arg_name = "client")]
        client: Option<String>,
        /// the address by which the application reaches the S3 plane (default: as the server says)
        #[argh(option, arg_name = "url")]
        endpoint_url: Option<Endpoint>,
    }
}

const READ_WRITE: &str = "read-write";
/// Longest prefix: with it, the description of the account and the resources of the policy are within their limits.
const PREFIX_BYTES_MAX: usize = 512;

/// The application that the options describe.
struct Wanted<'a> {
    name: &'a str,
    bucket: &'a str,
    prefix: &'a str,
    rights: Template,
}

/// The parts of an application that the server has already.
struct Found {
    has_bucket: bool,
    account: Option<ServiceAccount>,
    policy: Option<Policy>,
}

/// The application as it is in the end.
struct Ready {
    account: String,
    is_enabled: bool,
    policy: String,
    access_key: Option<String>,
    /// Only if this run made it.
    secret_key: Option<String>,
    /// The things that were made, for people.
    created: Vec<String>,
}

impl Ready {
    /// Returns what keeps the application from working, and what to do about it.
    fn lack(&self) -> Option<String> {
        if !self.is_enabled {
            let account = plain(&self.account);
            return Some(format!(
                "its account is disabled; `cairn service-account enable {account}` enables it"
            ));
        }
        let has_key = self.access_key.is_some();
        (!has_key)
            .then(|| format!("its account has no valid access key; {} makes one", rotation(&self.account)))
    }
}

impl Wanted<'_> {
    /// Returns the description of the account. [`differences`] reads it.
    fn description(&self) -> String {
        let Self { bucket, prefix, rights, .. } = self;
        format!("Application: {} on {bucket}/{prefix}*", rights.0)
    }

    fn document(&self) -> PolicyDocument {
        self.rights.document(&Scope { bucket: self.bucket, prefix: self.prefix }, Some(self.name))
    }

    fn check(&self) -> Outcome {
        let wrong = |message: String| Err(Failure::WrongUsage(plain(&message)));
        if !is_bucket_name(self.bucket) {
            return wrong(format!("--bucket: {:?} is not the name of a bucket", self.bucket));
        }
        if self.prefix.len() > PREFIX_BYTES_MAX
            || self.prefix.chars().any(|character| character == '*' || character.is_control())
        {
            return wrong(format!(
                "--prefix: it has at most {PREFIX_BYTES_MAX} bytes, no * and no control characters"
            ));
        }
        Ok(())
    }
}

/// Returns the options in which an application differs from the description of its account. `None` if that is no application.
fn differences(description: &str, wanted: &Wanted<'_>) -> Option<Vec<String>> {
    let (rights, place) = description.strip_prefix("Application: ")?.split_once(" on ")?;
    let (bucket, prefix) = place.strip_suffix('*')?.split_once('/')?;
    let options = [
        ("--bucket", bucket, wanted.bucket),
        ("--prefix", prefix, wanted.prefix),
        ("--rights", rights, wanted.rights.0),
    ];
    let shown = |text: &str| if text.is_empty() { "\"\"".to_owned() } else { text.to_owned() };
    let different = options.into_iter().filter(|(_, had, wants)| had != wants);
    Some(
        different
            .map(|(option, had, wants)| format!("{option} is {}, not {}", shown(had), shown(wants)))
            .collect(),
    )
}

/// Returns statements in a form that can be compared: the order of actions means nothing.
fn comparable(statements: &[Statement]) -> Value {
    let mut all = json!(statements);
    for statement in all.as_array_mut().into_iter().flatten() {
        if let Some(actions) = statement["actions"].as_array_mut() {
            actions.sort_by_key(ToString::to_string);
        }
    }
    all
}

impl Found {
    /// Reads what the server has.
    ///
    /// # Errors
    /// The existing parts differ from the wanted ones.
    fn read(client: &Client, wanted: &Wanted<'_>) -> Result<Self, Failure> {
        let Wanted { name, bucket, .. } = wanted;
        let BucketList { buckets } = read(&client.call(&Request::get(BUCKETS.path))?)?;
        let ServiceAccountList { service_accounts } = read(&client.call(&Request::get(ACCOUNTS.path))?)?;
        let PolicyList { policies } = read(&client.call(&Request::get(POLICIES.path))?)?;
        let account = service_accounts.into_iter().find(|account| *account.name == **name);
        let mut policies =
            policies.into_iter().map(|bound| bound.policy).filter(|policy| *policy.name == **name);
        let (policy, another) = (policies.next(), policies.next());
        let refused = |why: String| {
            let next = "use another name, or delete the account and the policy of this name first";
            Err(Failure::Failed(format!("{}\n  nothing was changed; {next}", plain(&why))))
        };
        if let Some(account) = &account {
            match differences(&account.description, wanted) {
                None => {
                    return refused(format!("the service account {name} was not made by `cairn app create`"));
                }
                Some(found) if !found.is_empty() => {
                    return refused(format!(
                        "the application {name} has other options: {}",
                        found.join("; ")
                    ));
                }
                Some(_) => {}
            }
        }
        if another.is_some() {
            return refused(format!("several policies have the name {name}"));
        }
        if let Some(policy) = &policy
            && comparable(&policy.statements) != comparable(&wanted.document().statements)
        {
            return refused(format!(
                "the policy {name} does not say {}: `cairn policy show {}`",
                wanted.description().trim_start_matches("Application: "),
                policy.id
            ));
        }
        Ok(Self { has_bucket: buckets.iter().any(|found| *found.name == **bucket), account, policy })
    }

    /// Makes what is missing. The policy comes first, because the server checks all names in it: a wrong one changes nothing.
    fn complete(self, client: &Client, wanted: &Wanted<'_>) -> Result<Ready, Failure> {
        let Wanted { name, bucket, .. } = wanted;
        let mut created = Vec::new();
        let policy = match self.policy {
            Some(policy) => policy,
            None => {
                created.push(format!("the policy {name}"));
                read(&client.call(&Request::post(POLICIES.path).json(&wanted.document()))?)?
            }
        };
        if !self.has_bucket {
            client.call(
                &Request::post(BUCKETS.path)
                    .json(&CreateBucket { name: String::from(*bucket).into(), object_lock: false }),
            )?;
            created.push(format!("the bucket {bucket}"));
        }
        let existed = self.account.is_some();
        let (account, mut access_key, mut secret_key) = match self.account {
            // The last one is the newest.
            Some(account) => {
                let usable = account.credentials.iter().rfind(|one| one.enabled && !one.temporary);
                let access_key = usable.map(|one| one.access_key.to_string());
                (account, access_key, None)
            }
            None => {
                let request = CreateServiceAccount {
                    name: String::from(*name).into(),
                    description: wanted.description().into(),
                    credential: None,
                };
                let new: NewServiceAccount =
                    read(&client.call(&Request::post(ACCOUNTS.path).json(&request))?)?;
                created.push(format!("the service account {name}"));
                let secret_key = new.credential.secret_key.map(|secret| secret.to_string());
                (new.service_account, Some(new.credential.access_key.to_string()), secret_key)
            }
        };
        if !account.policies.iter().any(|attached| *attached.id == *policy.id) {
            let path = format!("{}/bindings/{}", POLICIES.path_of(&policy.id), account.id);
            client.call(&Request::put(path))?;
            created.push("its attachment".to_owned());
            if existed {
                // The run that made the account did not come to the end, where the keys are shown.
                let path = ACCOUNTS.path_of(&account.id) + "/credentials";
                let NewCredential { credential } = read(&client.call(&Request::post(path))?)?;
                access_key = Some(credential.credential.access_key.to_string());
                secret_key = credential.secret_key.map(|secret| secret.to_string());
                created.push(
                    "another access key, because the secret key of an earlier one cannot be shown again"
                        .to_owned(),
                );
            }
        }
        Ok(Ready {
            account: account.id.to_string(),
            is_enabled: account.enabled,
            policy: policy.id.to_string(),
            access_key,
            secret_key,
            created,
        })
    }
}

impl Create {
    fn run(&self) -> Outcome {
        let Self { name, bucket, prefix, rights, .. } = self;
        let settings_of =
            self.client.as_deref().map(S3Client::find).transpose().map_err(Failure::WrongUsage)?;
        let wanted = Wanted { name, bucket, prefix, rights: *rights };
        wanted.check()?;
        let client = self.client()?;
        let info: SystemInfo = read(&client.call(&Request::get("/api/v1/system/info"))?)?;
        let endpoint = match &self.endpoint_url {
            Some(endpoint) => endpoint.clone(),
            None => info.s3_endpoint.parse().map_err(|why| {
                plain(&format!(
                    "the server's S3 endpoint is {:?}: {why}\n  --endpoint-url sets it",
                    info.s3_endpoint
                ))
            })?,
        };
        let ready = Found::read(&client, &wanted)?.complete(&client, &wanted)?;
        let authority = env::var_os(CA_VARIABLE).filter(|_| endpoint.has_tls());
        let authority =
            authority.map(|path| std::path::absolute(&path).unwrap_or_else(|_| PathBuf::from(&path)));
        let facts = Facts {
            endpoint: &endpoint,
            mode: Mode::parse(&info.s3_compatibility),
            region: REGION,
            authority,
            application: Some(Application {
                name,
                bucket,
                prefix,
                access_key: ready.access_key.as_deref(),
                secret_key: ready.secret_key.as_deref(),
            }),
        };
        let body = json!({
            "application": name,
            "bucket": bucket,
            "prefix": prefix,
            "rights": rights.0,
            "service_account_id": ready.account,
            "enabled": ready.is_enabled,
            "policy_id": ready.policy,
            "endpoint": endpoint.url(),
            "region": REGION,
            "mode": info.s3_compatibility,
            "access_key": ready.access_key,
            "secret_key": ready.secret_key,
            "created": ready.created,
            "changed": !ready.created.is_empty(),
            "client": settings_of.map(|client| client.json(&facts)),
        });
        let text = || self.text(&ready, &facts, settings_of);
        if ready.secret_key.is_none() {
            return client.print(&body, text);
        }
        let lost = format!(
            "the application was created, but its secret key is lost; {} creates another",
            rotation(&ready.account)
        );
        client.print_secret(&body, text, &lost)
    }

    /// Returns the text for people: what was done, the facts, the settings.
    fn text(&self, ready: &Ready, facts: &Facts<'_>, settings_of: Option<S3Client>) -> String {
        let Self { name, bucket, prefix, rights, .. } = self;
        let made = format!("created: {}", ready.created.join(", "));
        let done = match ready.lack() {
            Some(lack) if ready.created.is_empty() => format!("the application {name} cannot work: {lack}"),
            Some(lack) => format!("{made}\nthe application {name} cannot work: {lack}"),
            None if ready.created.is_empty() => {
                format!("nothing was changed: the application {name} has all that it needs")
            }
            None => made,
        };
        let shown = |value: Option<&str>| value.filter(|text| !text.is_empty()).unwrap_or("-").to_owned();
        let rows = [
            ("application", name.clone()),
            ("bucket", bucket.clone()),
            ("prefix", shown(Some(prefix))),
            ("rights", rights.0.to_owned()),
            ("endpoint", facts.endpoint.url()),
            ("region", facts.region.to_owned()),
            ("access key", shown(ready.access_key.as_deref())),
            ("secret key", shown(ready.secret_key.as_deref())),
        ]
        .map(|(label, value)| (label.to_owned(), plain(&value)));
        let about_secret = match &ready.secret_key {
            Some(_) => "The secret key is shown only once: store it now.".to_owned(),
            None => format!(
                "The secret key cannot be shown again. If it is lost, {} makes another access key; \
                 the settings are then complete with its keys.",
                rotation(&ready.account)
            ),
        };
        let settings = match settings_of {
            Some(client) => client.text(facts),
            None => {
                "`--client` prints the settings of a client, such as boto3, django, nextcloud or restic.\n"
                    .to_owned()
            }
        };
        format!("{}\n\n{}\n{about_secret}\n\n{settings}", plain(&done), labelled(&rows))
    }
}

/// The command that makes another access key.
fn rotation(account: &str) -> String {
    format!("`cairn service-account rotate {}`", plain(account))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_is_recognized_by_its_description() {
        let wanted = |bucket, prefix, rights| Wanted { name: "n", bucket, prefix, rights: Template(rights) };
        let first = wanted("media", "a on b/", READ_WRITE);
        assert_eq!(differences(&first.description(), &first), Some(vec![]));
        assert_eq!(
            differences(&first.description(), &wanted("other", "", "read-only")),
            Some(vec![
                "--bucket is media, not other".to_owned(),
                "--prefix is a on b/, not \"\"".to_owned(),
                "--rights is read-write, not read-only".to_owned(),
            ])
        );
        for other in ["", "the blog", "Application: x", "Application: a on b", "Application: a on b/c"] {
            assert_eq!(differences(other, &first), None, "{other}");
        }
    }
}
