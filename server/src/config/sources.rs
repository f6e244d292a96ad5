//! The sources of values, in order of precedence: command line, environment, file, secrets of `--dev`, defaults.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeroize::{Zeroize, Zeroizing};

use super::closest::{EDITS_MAX, closest};
use super::effective::{DEFAULT, Document, EffectiveKey, Given, effective};
use super::key::{Key, Kind};
use super::keys::ALL_KEYS;
use super::problem::{ConfigError, Problem};
use super::secret_file;
use super::value::{Value, parse_text, parse_toml};

/// Names the configuration file if `--config` is not given.
pub const CONFIG_FILE_VARIABLE: &str = "SERVICE_CONFIG";
/// The token of the command-line client. Listed here so that it may be set in the environment of the server.
pub const MANAGEMENT_TOKEN_VARIABLE: &str = "SERVICE_MANAGEMENT_TOKEN";

/// The certificate authorities that the command-line client trusts. Listed here for the same reason.
pub(super) const CA_CERTIFICATE_VARIABLE: &str = "SERVICE_CA_CERTIFICATE";

/// The address that the command-line client uses. Listed here for the same reason.
pub(super) const MANAGEMENT_ENDPOINT_VARIABLE: &str = "SERVICE_MANAGEMENT_ENDPOINT";

const PREFIX: &str = "SERVICE_";
/// The sections of the configuration, and `tls`, with which variables of `server.tls` begin. An unknown variable that begins
/// with one of them is a mistake in the configuration of this program.
const SECTIONS: [&str; 13] = [
    "server",
    "tls",
    "storage",
    "auth",
    "s3",
    "webhooks",
    "sharing",
    "lifecycle",
    "events",
    "audit",
    "console",
    "observability",
    "metrics",
];
/// Maximum size of a configuration file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A copy of the environment, so that tests do not have to change the process's own.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// Copies the environment of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// Returns the value of a variable. An empty variable counts as not set, because container manifests cannot unset one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsString> {
        self.0.get(std::ffi::OsStr::new(name)).filter(|value| !value.is_empty())
    }
}

impl<N: Into<OsString>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// The values of all keys that are set or have a default.
#[derive(Debug)]
pub struct Values {
    given: BTreeMap<&'static str, Given>,
    /// Warnings for the operator about the sources of values.
    warnings: Vec<String>,
    /// Unknown variables that are ignored, each with the known variable that was probably meant.
    stray: Vec<(String, String)>,
}

impl Values {
    pub(crate) fn get(&self, key: &Key) -> Option<&Value> {
        self.given.get(key.name).map(|given| &given.value)
    }

    /// Returns the name to use for a key in messages about its value: the variable or file key that set it, or the variable
    /// that would set it.
    pub(crate) fn source(&self, key: &Key) -> String {
        let given = self.given.get(key.name).filter(|given| given.source != DEFAULT);
        given.map_or_else(|| key.variable(), |given| given.source.clone())
    }

    pub(crate) fn is_given(&self, key: &Key) -> bool {
        self.given.get(key.name).is_some_and(|given| given.source != DEFAULT)
    }

    /// Returns each key with its value, with secrets redacted, and its source.
    pub fn redacted(&self) -> impl Iterator<Item = (&'static str, String, &str)> {
        self.given.iter().map(|(name, given)| (*name, given.value.to_string(), given.source.as_str()))
    }

    /// Returns every key with its effective value and its origin.
    pub(crate) fn effective(&self) -> Vec<EffectiveKey> {
        effective(|key| self.given.get(key.name))
    }

    /// Returns warnings for the operator about the sources of values.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the unknown variables that were probably meant to set this key.
    pub(super) fn misspelt(&self, key: &Key) -> impl Iterator<Item = Problem> {
        let own: Vec<String> = key.variables().chain(key.file_variables()).collect();
        let of_key = self.stray.iter().filter(move |(_, meant)| own.contains(meant));
        of_key.map(|(name, meant)| Problem::Unknown { name: name.clone(), meant: Some(meant.clone()) })
    }
}

/// Collects values and problems from several layers. The first layer that sets a key wins.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    given: BTreeMap<&'static str, Given>,
    problems: Vec<Problem>,
    warnings: Vec<String>,
    stray: Vec<(String, String)>,
    /// The document that is being read.
    reading: Option<Document>,
}

impl Layers {
    /// Adds the environment. Unknown variables that begin with the name of a section are problems. Other unknown `SERVICE_`
    /// variables cause a warning, because orchestrators set some: Consul and Swarm set `SERVICE_NAME` and `SERVICE_PORT`.
    #[must_use]
    pub fn environment(mut self, environment: &Environment) -> Self {
        for key in ALL_KEYS {
            let set: Vec<_> = key.variables().filter(|name| environment.get(name).is_some()).collect();
            if let [first, second] = &set[..]
                && environment.get(first) != environment.get(second)
            {
                self.problems.push(Problem::Contradiction { first: first.clone(), second: second.clone() });
            }
            let files: Vec<_> = key.file_variables().filter(|name| environment.get(name).is_some()).collect();
            self.problems.extend(secret_file::check_one(&set, &files).err());
            let Some(name) = set.into_iter().next() else {
                self.value_in_file(key, files.first(), environment);
                continue;
            };
            let text = environment.get(&name).and_then(|value| value.to_str());
            let parsed =
                text.ok_or_else(|| "valid UTF-8".to_owned()).and_then(|text| parse_text(key.kind, text));
            self.take(key, name, parsed);
        }
        let variables = || ALL_KEYS.iter().flat_map(|key| key.variables().chain(key.file_variables()));
        let known = |name: &str| {
            name == CONFIG_FILE_VARIABLE
                || name == MANAGEMENT_TOKEN_VARIABLE
                || name == CA_CERTIFICATE_VARIABLE
                || name == MANAGEMENT_ENDPOINT_VARIABLE
                || variables().any(|variable| variable == name)
        };
        for name in environment.0.keys().map(|name| name.to_string_lossy()) {
            let Some(rest) = name.strip_prefix(PREFIX).filter(|_| !known(&name)) else { continue };
            let begins_with = |section: &&str| {
                rest.get(..section.len()).is_some_and(|start| start.eq_ignore_ascii_case(section))
                    && rest[section.len()..].starts_with('_')
            };
            if SECTIONS.iter().any(begins_with) {
                let meant = closest(&name, variables(), EDITS_MAX);
                self.problems.push(Problem::Unknown { meant, name: name.into_owned() });
            } else {
                let meant = closest(&name, variables(), EDITS_OF_STRAY_MAX);
                let question =
                    meant.as_ref().map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
                self.warnings.push(format!("{name} is not a configuration key and has no effect{question}"));
                self.stray.extend(meant.map(|meant| (name.into_owned(), meant)));
            }
        }
        self
    }

    /// Adds the value from the file that a variable names, if one does.
    fn value_in_file(&mut self, key: &'static Key, variable: Option<&String>, environment: &Environment) {
        let Some((variable, file)) = variable.and_then(|name| Some((name, environment.get(name)?))) else {
            return;
        };
        match secret_file::read(variable, file) {
            Ok(found) => {
                self.warnings.extend(found.warning);
                self.take(key, secret_file::source(variable), parse_text(key.kind, &found.text));
            }
            Err(problem) => self.problems.push(problem),
        }
    }

    /// Adds a TOML file. Unknown sections and keys are problems.
    #[must_use]
    pub fn file(mut self, path: &Path) -> Self {
        match read_file(path).and_then(|(text, mode)| Ok((parse_file(path, &text)?, mode))) {
            Ok((table, mode)) => {
                if holds_secrets(&table) {
                    self.warnings.extend(secret_file::exposure(path, mode));
                }
                self.table_of(Document::File(path.to_path_buf()), table);
            }
            Err(problem) => self.problems.push(problem),
        }
        self
    }

    /// Adds the TOML text of generated values; messages name `path`.
    #[must_use]
    pub(crate) fn generated(mut self, path: &Path, text: &str) -> Self {
        match parse_file(path, text) {
            Ok(table) => self.table_of(Document::Generated, table),
            Err(problem) => self.problems.push(problem),
        }
        self
    }

    fn table_of(&mut self, document: Document, table: toml::Table) {
        self.reading = Some(document);
        self.table(table);
        self.reading = None;
    }

    fn table(&mut self, table: toml::Table) {
        for (section, content) in table {
            let toml::Value::Table(content) = content else {
                // Its section may be missing, or still be a comment.
                let mut named = ALL_KEYS.iter().filter(|key| name_alone(key) == section);
                match (named.next(), named.next()) {
                    (Some(key), None) => {
                        self.problems
                            .push(Problem::Unknown { name: section, meant: Some(key.name.to_owned()) });
                    }
                    _ => self.unknown(section),
                }
                continue;
            };
            self.section(section, content);
        }
    }

    /// Adds a section and its subsections.
    fn section(&mut self, section: String, content: toml::Table) {
        let is_section = |name: &str| {
            ALL_KEYS.iter().any(|key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
        };
        if !is_section(&section) {
            self.unknown(section);
            return;
        }
        for (name, value) in content {
            let name = format!("{section}.{name}");
            match (ALL_KEYS.iter().find(|key| key.name == name), value) {
                (Some(key), mut value) => {
                    self.take(key, name, parse_toml(key.kind, &value));
                    if let toml::Value::String(text) = &mut value {
                        text.zeroize();
                    }
                }
                // The depth is bounded: each section must occur in the table of keys.
                (None, toml::Value::Table(content)) if is_section(&name) => self.section(name, content),
                (None, _) => self.unknown(name),
            }
        }
    }

    fn unknown(&mut self, name: String) {
        let names = ALL_KEYS.iter().map(|key| key.name.to_owned());
        self.problems.push(Problem::Unknown { meant: closest(&name, names, EDITS_MAX), name });
    }

    fn take(&mut self, key: &'static Key, source: String, parsed: Result<Value, String>) {
        match parsed {
            Ok(value) => {
                let document = self.reading.clone();
                self.given.entry(key.name).or_insert(Given { value, source, document });
            }
            Err(expected) => self.problems.push(Problem::Invalid { name: source, expected }),
        }
    }

    /// Sets a key from the command line, which overrides all other sources.
    #[must_use]
    pub(crate) fn option(mut self, key: &'static Key, option: &str, text: &str) -> Self {
        let parsed = parse_text(key.kind, text);
        self.take(key, option.to_owned(), parsed);
        self
    }

    /// Sets a default that differs from the one in the table.
    #[must_use]
    pub(crate) fn default_value(mut self, key: &'static Key, text: &str) -> Self {
        let parsed = parse_text(key.kind, text);
        self.take(key, DEFAULT.to_owned(), parsed);
        self
    }

    /// Reports the problems found so far.
    ///
    /// # Errors
    /// [`ConfigError`] if there are any.
    pub(crate) fn check(&mut self) -> Result<(), ConfigError> {
        let problems = std::mem::take(&mut self.problems);
        if problems.is_empty() { Ok(()) } else { Err(ConfigError { problems }) }
    }

    pub(crate) fn lacks_any(&self, keys: &[&Key]) -> bool {
        keys.iter().any(|key| !self.given.contains_key(key.name))
    }

    pub(crate) fn path(&self, key: &Key) -> Option<PathBuf> {
        match &self.given.get(key.name)?.value {
            Value::Path(path) => Some(path.clone()),
            _ => None,
        }
    }

    pub(crate) fn address(&self, key: &Key) -> Option<SocketAddr> {
        match &self.given.get(key.name)?.value {
            Value::Address(address) => Some(address.address),
            _ => None,
        }
    }

    /// Returns every key with its effective value and its origin, whatever problems there are.
    pub(crate) fn effective(mut self) -> Vec<EffectiveKey> {
        for key in ALL_KEYS {
            if let Some(text) = key.default {
                self = self.default_value(key, text);
            }
        }
        effective(|key| self.given.get(key.name))
    }

    /// Fills in the defaults.
    ///
    /// # Errors
    /// [`ConfigError`] with the problems of all layers.
    pub fn finish(mut self) -> Result<Values, ConfigError> {
        for key in ALL_KEYS {
            if let Some(text) = key.default {
                self = self.default_value(key, text);
            }
        }
        if self.problems.is_empty() {
            Ok(Values { given: self.given, warnings: self.warnings, stray: self.stray })
        } else {
            Err(ConfigError { problems: self.problems })
        }
    }
}

/// Returns the text of a configuration file and its permissions.
fn read_file(path: &Path) -> Result<(Zeroizing<String>, u32), Problem> {
    let unreadable = |error| Problem::Unreadable { path: PathBuf::from(path), error: Arc::new(error) };
    let found = std::fs::metadata(path).map_err(unreadable)?;
    if found.len() > FILE_BYTES_MAX {
        return Err(unreadable(std::io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes"))));
    }
    let text = Zeroizing::new(std::fs::read_to_string(path).map_err(unreadable)?);
    Ok((text, found.mode()))
}

/// Returns whether the file contains a secret.
fn holds_secrets(table: &toml::Table) -> bool {
    ALL_KEYS.iter().filter(|key| key.kind == Kind::Secret).any(|key| {
        let (section, name) = key.name.split_once('.').unwrap_or((key.name, ""));
        table.get(section).and_then(|content| content.get(name)).is_some()
    })
}

fn parse_file(path: &Path, text: &str) -> Result<toml::Table, Problem> {
    text.parse().map_err(|error: toml::de::Error| {
        // The error's own text would quote the line. Its message has nothing of the file.
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let index = before.matches('\n').count();
        let reason = match error.message() {
            "duplicate key" => "it is there twice: a section and a key may be there once",
            other => other,
        };
        Problem::NotToml {
            path: PathBuf::from(path),
            line: index + 1,
            name: text.split('\n').nth(index).and_then(known_name),
            reason: reason.to_owned(),
        }
    })
}

/// Returns the section or key with which a line begins, if it is a known one. Anything else may be a part of a secret.
fn known_name(line: &str) -> Option<String> {
    let line = line.trim_start();
    let name =
        line.strip_prefix('[').map_or_else(|| line.split('=').next(), |rest| rest.split(']').next())?;
    let (name, section) = (name.trim(), format!("{}.", name.trim()));
    let is_known = |key: &&Key| key.name.starts_with(&section) || name_alone(key) == name;
    ALL_KEYS.iter().any(is_known).then(|| name.to_owned())
}

/// Returns the name of a key without its section.
fn name_alone(key: &Key) -> &'static str {
    key.name.rsplit_once('.').map_or(key.name, |(_, name)| name)
}

/// Like [`EDITS_MAX`], for variables that are probably not meant for this program: `SERVICE_PORT` is three edits from
/// `SERVICE_LOG`.
const EDITS_OF_STRAY_MAX: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_is_listed() {
        for key in ALL_KEYS {
            let (section, _) = key.name.split_once('.').unwrap();
            assert!(SECTIONS.contains(&section), "{section}");
        }
    }
}
