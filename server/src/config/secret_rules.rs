//! Rules for secrets: present, long enough, printable if they are sent in headers, and different from each other.

use super::key::Key;
use super::keys::{MASTER_KEY, ROOT_ACCESS_KEY, ROOT_SECRET_KEY, SCRAPE_TOKEN, SYSTEM_TOKEN};
use super::problem::Problem;
use super::secret::Secret;
use super::sources::Values;
use super::value::Value;

/// Minimum length of the master key.
const MASTER_KEY_BYTES_MIN: usize = 16;
/// Shorter secrets cause a warning. As random bytes in hexadecimal digits, this is too long to be guessed.
const SECRET_BYTES_RECOMMENDED: usize = 32;
/// Minimum length of the system token, from the specification.
const SYSTEM_TOKEN_BYTES_MIN: usize = 32;
const SCRAPE_TOKEN_BYTES_MIN: usize = 16;
const ROOT_ACCESS_KEY_BYTES_MIN: usize = 3;
const ROOT_SECRET_KEY_BYTES_MIN: usize = 8;
/// Maximum length of a secret: it must be far shorter than a request head may be.
const SECRET_BYTES_MAX: usize = 1024;

/// The secrets of the service.
#[derive(Clone, Debug)]
pub struct AuthSettings {
    /// Encrypts all other secrets.
    pub credential_master_key: Secret,
    /// The root credential's access key.
    pub root_access_key: String,
    /// The root credential's secret key.
    pub root_secret_key: Secret,
    /// Whether root may use the data plane.
    pub root_s3_enabled: bool,
    /// Whether the rules of public access have an effect.
    pub public_access_enabled: bool,
    /// The management plane's system token.
    pub management_system_token: Secret,
    /// The token of `/metrics`.
    pub metrics_scrape_token: Option<Secret>,
}

/// Secrets that satisfy all rules, and warnings about them.
pub(super) struct Checked {
    pub(super) master_key: Secret,
    pub(super) root_access_key: String,
    pub(super) root_secret_key: Secret,
    pub(super) system_token: Secret,
    pub(super) scrape_token: Option<Secret>,
    pub(super) warnings: Vec<String>,
}

/// Validates all secrets. Returns `None` if it has added a problem to `problems`.
pub(super) fn check(values: &Values, problems: &mut Vec<Problem>) -> Option<Checked> {
    let before = problems.len();
    let master_key = required(values, &MASTER_KEY, problems);
    let root_access_key = required(values, &ROOT_ACCESS_KEY, problems);
    let root_secret_key = required(values, &ROOT_SECRET_KEY, problems);
    let system_token = required(values, &SYSTEM_TOKEN, problems);
    let scrape_token = text(values, &SCRAPE_TOKEN);
    let mut warnings = Vec::new();
    if let Some(key) = master_key {
        check_length(values, &MASTER_KEY, key, MASTER_KEY_BYTES_MIN, problems);
        let remedy =
            "A store keeps the key that it was created with, so choose a longer one for the next store";
        warnings.extend(short_secret(values, &MASTER_KEY, key, remedy));
    }
    if let Some(key) = root_access_key {
        check_access_key(values, key, problems);
    }
    for (key, value, bytes_min) in [
        (&ROOT_SECRET_KEY, root_secret_key, ROOT_SECRET_KEY_BYTES_MIN),
        (&SYSTEM_TOKEN, system_token, SYSTEM_TOKEN_BYTES_MIN),
        (&SCRAPE_TOKEN, scrape_token, SCRAPE_TOKEN_BYTES_MIN),
    ] {
        if let Some(value) = value {
            check_length(values, key, value, bytes_min, problems);
            let remedy = "Replace it, for example with the output of `openssl rand -hex 32`";
            warnings.extend(short_secret(values, key, value, remedy));
            check_printable(values, key, value, problems);
        }
    }
    check_distinct(values, problems);
    if problems.len() > before {
        return None;
    }
    let secret = |text: Option<&str>| text.map(|text| Secret::new(text.to_owned()));
    Some(Checked {
        master_key: secret(master_key)?,
        root_access_key: root_access_key?.to_owned(),
        root_secret_key: secret(root_secret_key)?,
        system_token: secret(system_token)?,
        scrape_token: secret(scrape_token),
        warnings,
    })
}

fn text<'a>(values: &'a Values, key: &Key) -> Option<&'a str> {
    match values.get(key) {
        Some(Value::Secret(secret)) => Some(secret.expose()),
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

fn required<'a>(values: &'a Values, key: &'static Key, problems: &mut Vec<Problem>) -> Option<&'a str> {
    let found = text(values, key).filter(|text| !text.is_empty());
    if found.is_none() {
        problems.push(Problem::Missing { variable: key.variable(), key: key.name, doc: key.doc });
        problems.extend(values.misspelt(key));
    }
    found
}

fn check_length(values: &Values, key: &Key, value: &str, bytes_min: usize, problems: &mut Vec<Problem>) {
    if !(bytes_min..=SECRET_BYTES_MAX).contains(&value.len()) {
        let expected = format!("{bytes_min} to {SECRET_BYTES_MAX} bytes long");
        problems.push(Problem::Invalid { name: values.source(key), expected });
    }
}

/// Warns about a secret that could be guessed.
fn short_secret(values: &Values, key: &Key, value: &str, remedy: &str) -> Option<String> {
    (value.len() < SECRET_BYTES_RECOMMENDED).then(|| {
        let name = values.source(key);
        format!("{name} is shorter than the recommended {SECRET_BYTES_RECOMMENDED} bytes and could be guessed. {remedy}")
    })
}

/// These secrets are compared with header values, and only visible ASCII is transmitted unchanged in a header.
fn check_printable(values: &Values, key: &Key, value: &str, problems: &mut Vec<Problem>) {
    if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
        let expected = "visible ASCII without spaces".to_owned();
        problems.push(Problem::Invalid { name: values.source(key), expected });
    }
}

/// An access key may contain neither a slash, which ends it in a signature's scope, nor a colon, which ends it in HTTP Basic.
fn check_access_key(values: &Values, value: &str, problems: &mut Vec<Problem>) {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if value.len() < ROOT_ACCESS_KEY_BYTES_MIN || !value.bytes().all(allowed) {
        let expected = format!("{ROOT_ACCESS_KEY_BYTES_MIN} or more letters, digits, '_', '-' or '.'");
        problems.push(Problem::Invalid { name: values.source(&ROOT_ACCESS_KEY), expected });
    }
}

/// Secrets must differ, so that learning one of them reveals no other.
fn check_distinct(values: &Values, problems: &mut Vec<Problem>) {
    let all = [&MASTER_KEY, &ROOT_SECRET_KEY, &SYSTEM_TOKEN, &SCRAPE_TOKEN, &ROOT_ACCESS_KEY];
    for (index, first) in all.iter().enumerate() {
        for second in &all[index + 1..] {
            if let (Some(one), Some(other)) = (text(values, first), text(values, second))
                && one == other
            {
                let (first, second) = (values.source(first), values.source(second));
                problems.push(Problem::Inconsistent(format!("{first} and {second} must be different")));
            }
        }
    }
}
