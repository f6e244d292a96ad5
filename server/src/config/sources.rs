//! Where values come from: the environment before the file, the file before what `--dev` made, that before the
//! defaults.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::key::{Availability, Key, Kind};
use super::keys::ALL_KEYS;
use super::problem::{ConfigError, Problem};
use super::secret_file;
use super::value::{Value, parse_text, parse_toml};

/// Names the configuration file when `--config` does not.
pub const CONFIG_FILE_VARIABLE: &str = "SERVICE_CONFIG";
/// The token of the command-line client; known here so that it may stand in the environment of the server.
pub const MANAGEMENT_TOKEN_VARIABLE: &str = "SERVICE_MANAGEMENT_TOKEN";

/// The authority that the command-line client trusts; known here for the same reason.
pub(super) const CA_CERTIFICATE_VARIABLE: &str = "SERVICE_CA_CERTIFICATE";

const PREFIX: &str = "SERVICE_";
/// A configuration file larger than this is some other file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A copy of the environment, so that tests need not change that of the process.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The environment of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// The value of a variable. Empty is the same as not set, for that is how a container's manifest leaves one out.
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

/// A checked value and the name under which the user gave it.
#[derive(Clone, Debug)]
struct Given {
    value: Value,
    source: String,
}

/// The values of all keys that were given or have a default.
#[derive(Debug)]
pub struct Values {
    given: BTreeMap<&'static str, Given>,
    /// What to tell the operator about where values came from.
    warnings: Vec<String>,
}

impl Values {
    pub(crate) fn get(&self, key: &Key) -> Option<&Value> {
        self.given.get(key.name).map(|given| &given.value)
    }

    /// The name to use for a key when its value is at fault: the variable or file key that set it.
    pub(crate) fn source(&self, key: &Key) -> String {
        self.given.get(key.name).map_or_else(|| key.variable(), |given| given.source.clone())
    }

    pub(crate) fn is_given(&self, key: &Key) -> bool {
        self.given.get(key.name).is_some_and(|given| given.source != DEFAULT)
    }

    /// Each key with its value, secrets redacted, and where it came from.
    pub fn redacted(&self) -> impl Iterator<Item = (&'static str, String, &str)> {
        self.given.iter().map(|(name, given)| (*name, given.value.to_string(), given.source.as_str()))
    }

    /// What to tell the operator about where values came from.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Keys that were given although this build does nothing with them.
    pub fn without_effect(&self) -> impl Iterator<Item = &'static Key> {
        ALL_KEYS
            .iter()
            .copied()
            .filter(|key| key.availability == Availability::NotBuilt && self.is_given(key))
    }
}

/// The source of a value that nobody gave.
const DEFAULT: &str = "default";

/// Collects values from the layers, the first layer that gives a key winning, and problems from all of them.
#[derive(Debug, Default)]
pub struct Layers {
    given: BTreeMap<&'static str, Given>,
    problems: Vec<Problem>,
    warnings: Vec<String>,
}

impl Layers {
    /// Adds what the environment says. Unknown variables that begin with `SERVICE_` are problems.
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
                || variables().any(|variable| variable == name)
        };
        for name in environment.0.keys().map(|name| name.to_string_lossy()) {
            if name.starts_with(PREFIX) && !known(&name) {
                self.problems
                    .push(Problem::Unknown { meant: closest(&name, variables()), name: name.into_owned() });
            }
        }
        self
    }

    /// Adds the value in the file that a variable names, if one does.
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

    /// Adds what a TOML file says. Unknown sections and keys are problems.
    #[must_use]
    pub fn file(mut self, path: &Path) -> Self {
        match read_file(path).and_then(|(text, mode)| Ok((parse_file(path, &text)?, mode))) {
            Ok((table, mode)) => {
                if holds_secrets(&table) {
                    self.warnings.extend(secret_file::exposure(path, mode));
                }
                self.table(table);
            }
            Err(problem) => self.problems.push(problem),
        }
        self
    }

    /// Adds what the text of a TOML file says, that would be at `path`.
    #[must_use]
    pub(crate) fn text(mut self, path: &Path, text: &str) -> Self {
        match parse_file(path, text) {
            Ok(table) => self.table(table),
            Err(problem) => self.problems.push(problem),
        }
        self
    }

    fn table(&mut self, table: toml::Table) {
        for (section, content) in table {
            let toml::Value::Table(content) = content else {
                self.unknown(section);
                continue;
            };
            self.section(section, content);
        }
    }

    /// One section, and those within it.
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
                (Some(key), value) => self.take(key, name, parse_toml(key.kind, &value)),
                // No deeper than the table of keys is: each section must be one of it.
                (None, toml::Value::Table(content)) if is_section(&name) => self.section(name, content),
                (None, _) => self.unknown(name),
            }
        }
    }

    fn unknown(&mut self, name: String) {
        let names = ALL_KEYS.iter().map(|key| key.name.to_owned());
        self.problems.push(Problem::Unknown { meant: closest(&name, names), name });
    }

    fn take(&mut self, key: &'static Key, source: String, parsed: Result<Value, String>) {
        match parsed {
            Ok(value) => {
                self.given.entry(key.name).or_insert(Given { value, source });
            }
            Err(expected) => self.problems.push(Problem::Invalid { name: source, expected }),
        }
    }

    /// Sets keys from the command line, which goes before everything else.
    #[must_use]
    pub(crate) fn option(mut self, key: &'static Key, option: &str, text: &str) -> Self {
        let parsed = parse_text(key.kind, text);
        self.take(key, option.to_owned(), parsed);
        self
    }

    /// A default other than the table's.
    #[must_use]
    pub(crate) fn default_value(mut self, key: &'static Key, text: &str) -> Self {
        let parsed = parse_text(key.kind, text);
        self.take(key, DEFAULT.to_owned(), parsed);
        self
    }

    /// Whether all is well so far.
    ///
    /// # Errors
    /// With the problems found up to now.
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

    /// Fills in the defaults.
    ///
    /// # Errors
    /// With every problem found in any layer.
    pub fn finish(mut self) -> Result<Values, ConfigError> {
        for key in ALL_KEYS {
            if let Some(text) = key.default {
                self = self.default_value(key, text);
            }
        }
        if self.problems.is_empty() {
            Ok(Values { given: self.given, warnings: self.warnings })
        } else {
            Err(ConfigError { problems: self.problems })
        }
    }
}

/// The text of a configuration file, and its permissions.
fn read_file(path: &Path) -> Result<(String, u32), Problem> {
    let unreadable = |error| Problem::Unreadable { path: PathBuf::from(path), error };
    let found = std::fs::metadata(path).map_err(unreadable)?;
    if found.len() > FILE_BYTES_MAX {
        return Err(unreadable(std::io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes"))));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    Ok((text, found.mode()))
}

/// Whether any key that is never shown stands in the file.
fn holds_secrets(table: &toml::Table) -> bool {
    ALL_KEYS.iter().filter(|key| key.kind == Kind::Secret).any(|key| {
        let (section, name) = key.name.split_once('.').unwrap_or((key.name, ""));
        table.get(section).and_then(|content| content.get(name)).is_some()
    })
}

fn parse_file(path: &Path, text: &str) -> Result<toml::Table, Problem> {
    text.parse().map_err(|error: toml::de::Error| {
        // The error's own text quotes the line.
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        Problem::NotToml { path: PathBuf::from(path), line: before.matches('\n').count() + 1 }
    })
}

/// The known name that differs least from an unknown one, if it is close enough to be what was meant.
fn closest(name: &str, known: impl Iterator<Item = String>) -> Option<String> {
    /// More edits than this make another word.
    const EDITS_MAX: usize = 3;
    known
        .map(|candidate| (edits(name, &candidate), candidate))
        .filter(|(count, _)| *count <= EDITS_MAX)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance.
fn edits(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, left_byte) in left.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, right_byte) in right.bytes().enumerate() {
            let replaced = diagonal + usize::from(left_byte != right_byte);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}
