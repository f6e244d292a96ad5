//! Reads the settings of AWS SDKs: a profile of `~/.aws/config` and `~/.aws/credentials`, and the environment.
//!
//! Source: "Shared config and credentials files" (AWS SDKs and Tools Reference Guide). Roles, SSO and processes are not
//! carried out: an object store of one's own has access keys.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::s3::signature::Credentials;

/// Largest configuration file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The values of one section. A value below another one has the name `s3.addressing_style`.
type Section = BTreeMap<String, String>;

/// A setting with the place where it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Setting {
    pub(crate) value: String,
    pub(crate) place: String,
}

/// A profile and the environment.
#[derive(Debug)]
pub(crate) struct Profile {
    /// The profile's name.
    pub(crate) name: String,
    /// Whether it was named on the command line. Then access keys of the environment do not count.
    pub(crate) is_named: bool,
    pub(crate) config_file: PathBuf,
    pub(crate) credentials_file: PathBuf,
    config: Section,
    secrets: Section,
    services: Section,
    environment: fn(&str) -> Option<OsString>,
}

impl Profile {
    /// Reads the files. `named` is the profile of the command line.
    ///
    /// # Errors
    /// A file that cannot be read, or a named profile that does not exist.
    pub(crate) fn read(
        named: Option<&str>,
        environment: fn(&str) -> Option<OsString>,
    ) -> Result<Self, Failure> {
        let variable = |name: &str| environment(name).filter(|value| !value.is_empty());
        let home = || variable("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
        let file = |name: &str, own: &str| {
            variable(name).map_or_else(|| home().join(".aws").join(own), PathBuf::from)
        };
        let config_file = file("AWS_CONFIG_FILE", "config");
        let credentials_file = file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        let of_environment = || variable("AWS_PROFILE").or_else(|| variable("AWS_DEFAULT_PROFILE"));
        let chosen = named.map(str::to_owned).or_else(|| of_environment()?.into_string().ok());
        let is_chosen = chosen.is_some();
        let name = chosen.unwrap_or_else(|| "default".to_owned());

        let mut configured = sections(&config_file)?;
        let mut secret = sections(&credentials_file)?;
        let section = if name == "default" { name.clone() } else { format!("profile {name}") };
        let known = names(&configured, &secret);
        let config = configured.remove(&section).or_else(|| configured.remove(&format!("profile {name}")));
        let secrets = secret.remove(&name);
        if is_chosen && config.is_none() && secrets.is_none() {
            let known = if known.is_empty() {
                "there are none".to_owned()
            } else {
                format!("there are {}", known.join(", "))
            };
            return Err(Failure::WrongUsage(format!(
                "no profile {name} in {} or {}: {known}",
                config_file.display(),
                credentials_file.display()
            )));
        }
        let config = config.unwrap_or_default();
        let services = config.get("services").and_then(|name| configured.remove(&format!("services {name}")));
        Ok(Self {
            name,
            is_named: named.is_some(),
            config_file,
            credentials_file,
            config,
            secrets: secrets.unwrap_or_default(),
            services: services.unwrap_or_default(),
            environment,
        })
    }

    /// Returns whether any file says something about it.
    pub(crate) fn exists(&self) -> bool {
        !self.config.is_empty() || !self.secrets.is_empty()
    }

    /// Returns a variable of the environment.
    pub(crate) fn variable(&self, name: &str) -> Option<Setting> {
        let value = (self.environment)(name)?.into_string().ok().filter(|value| !value.is_empty())?;
        Some(Setting { value, place: name.to_owned() })
    }

    /// Returns a value of the profile.
    pub(crate) fn value(&self, name: &str) -> Option<Setting> {
        let value = self.config.get(name)?.clone();
        Some(Setting { value, place: format!("{name} of the profile {}", self.name) })
    }

    /// Returns a value of the first variable that is set, or else of the profile.
    pub(crate) fn setting(&self, variables: &[&str], name: &str) -> Option<Setting> {
        variables.iter().find_map(|variable| self.variable(variable)).or_else(|| self.value(name))
    }

    /// Returns the endpoint that SDKs use, in their order.
    pub(crate) fn endpoint(&self) -> Option<Setting> {
        let is_ignored = self
            .setting(&["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"], "ignore_configured_endpoint_urls")
            .is_some_and(|setting| setting.value.eq_ignore_ascii_case("true"));
        if is_ignored {
            return None;
        }
        let of_service = || {
            let value = self.services.get("s3.endpoint_url")?.clone();
            Some(Setting { value, place: "s3.endpoint_url of the services section".to_owned() })
        };
        self.variable("AWS_ENDPOINT_URL_S3")
            .or_else(|| self.variable("AWS_ENDPOINT_URL"))
            .or_else(of_service)
            .or_else(|| self.value("endpoint_url"))
    }

    /// Returns a value about keys: from the environment, or else from the credentials file, or else from the configuration.
    fn secret(&self, variable: &str, name: &str) -> Option<String> {
        let of_environment = || self.variable(variable).map(|setting| setting.value);
        let of_files = || self.secrets.get(name).or_else(|| self.config.get(name)).cloned();
        if self.is_named { of_files() } else { of_environment().or_else(of_files) }
    }

    /// Returns the access key and its secret, if both are there.
    pub(crate) fn credentials(&self) -> Option<Credentials> {
        // Half of a pair from the environment and half from a file belong to different keys.
        let has_variable = !self.is_named && self.variable("AWS_ACCESS_KEY_ID").is_some();
        let secret_key = if has_variable {
            self.variable("AWS_SECRET_ACCESS_KEY").map(|setting| setting.value)
        } else {
            self.secrets
                .get("aws_secret_access_key")
                .or_else(|| self.config.get("aws_secret_access_key"))
                .cloned()
        };
        Some(Credentials {
            access_key: self.secret("AWS_ACCESS_KEY_ID", "aws_access_key_id")?,
            secret_key: secret_key?,
        })
    }

    /// Returns whether a session token is set.
    pub(crate) fn has_session_token(&self) -> bool {
        self.secret("AWS_SESSION_TOKEN", "aws_session_token").is_some()
    }
}

/// The names of all profiles.
fn names(configured: &BTreeMap<String, Section>, secret: &BTreeMap<String, Section>) -> Vec<String> {
    let of_config = configured
        .keys()
        .filter_map(|name| if name == "default" { Some("default") } else { name.strip_prefix("profile ") });
    let mut names: Vec<String> =
        of_config.chain(secret.keys().map(String::as_str)).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

/// Reads the sections of a file. A file that does not exist has none.
fn sections(path: &Path) -> Result<BTreeMap<String, Section>, Failure> {
    let refused = |why: String| Failure::WrongUsage(format!("{} could not be read: {why}", path.display()));
    let file = match std::fs::File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(refused(error.to_string())),
        Ok(file) => file,
    };
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| refused(error.to_string()))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(refused(format!("it is longer than {FILE_BYTES_MAX} bytes")));
    }
    parse(&text).map_err(refused)
}

fn parse(text: &str) -> Result<BTreeMap<String, Section>, String> {
    let mut sections = BTreeMap::<String, Section>::new();
    let mut current: Option<String> = None;
    let mut above: Option<String> = None;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        let number = index + 1;
        if let Some(rest) = trimmed.strip_prefix('[') {
            let name = rest.split(']').next().filter(|_| rest.contains(']'));
            let name = name.ok_or_else(|| format!("line {number}: a section ends with ]"))?;
            let words: Vec<&str> =
                name.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect();
            current = Some(words.join(" "));
            sections.entry(words.join(" ")).or_default();
            above = None;
            continue;
        }
        let (name, value) =
            trimmed.split_once('=').ok_or_else(|| format!("line {number}: expected NAME = VALUE"))?;
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().to_owned());
        let section = current.as_ref().and_then(|name| sections.get_mut(name));
        let section =
            section.ok_or_else(|| format!("line {number}: a value comes before the first section"))?;
        let is_below = line.starts_with([' ', '\t']);
        match &above {
            Some(above) if is_below => drop(section.insert(format!("{above}.{name}"), value)),
            _ => {
                above = value.is_empty().then(|| name.clone());
                section.insert(name, value);
            }
        }
    }
    Ok(sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_read_with_values_below_values() {
        let found = parse(
            "# comment\n[default]\nregion = eu\n[profile a b]\ns3 =\n  addressing_style = path\n\tsignature_version=s3v4\n\
             Endpoint_URL = http://h:1/x=y\n[services  \"local\"]\ns3 =\n    endpoint_url = http://s\n",
        )
        .expect("sections");
        assert_eq!(found["default"]["region"], "eu");
        let section = &found["profile a b"];
        assert_eq!(section["s3.addressing_style"], "path");
        assert_eq!(section["s3.signature_version"], "s3v4");
        assert_eq!(section["endpoint_url"], "http://h:1/x=y");
        assert_eq!(found["services local"]["s3.endpoint_url"], "http://s");
    }

    #[test]
    fn errors_name_the_line() {
        for (text, said) in [
            ("a = b", "line 1: a value comes before"),
            ("[a]\nb", "line 2: expected NAME = VALUE"),
            ("[a", "line 1: a section ends"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_pair_of_keys_has_one_place() {
        fn environment(name: &str) -> Option<OsString> {
            (name == "AWS_ACCESS_KEY_ID").then(|| "OTHER".into())
        }
        let mut profile = Profile {
            name: "p".to_owned(),
            is_named: false,
            config_file: PathBuf::new(),
            credentials_file: PathBuf::new(),
            config: Section::new(),
            secrets: [("aws_access_key_id", "OWN"), ("aws_secret_access_key", "secret")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            services: Section::new(),
            environment,
        };
        assert!(profile.credentials().is_none(), "the secret is of another key");
        profile.is_named = true;
        assert_eq!(profile.credentials().map(|found| found.access_key).as_deref(), Some("OWN"));
    }
}
