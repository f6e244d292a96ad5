//! The effective value of every key, and where it comes from. Secrets are redacted.

use std::path::PathBuf;

use super::key::Key;
use super::keys::ALL_KEYS;
use super::value::Value;

/// The source of a default value.
pub(super) const DEFAULT: &str = "default";

/// A validated value, and the name under which the user set it.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) value: Value,
    pub(super) source: String,
    /// The document that contains it.
    pub(super) document: Option<Document>,
}

/// A TOML document with values.
#[derive(Clone, Debug)]
pub(super) enum Document {
    /// A configuration file.
    File(PathBuf),
    /// The file that `serve --dev` would create, with values made up for this process.
    Generated,
}

/// The origin of a key's value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// An option of the command line.
    CommandLine(String),
    /// A variable, or the file that a variable names.
    Environment(String),
    /// A configuration file.
    File(PathBuf),
    /// The default.
    Default,
    /// The first `serve --dev` in the data folder makes it up.
    Generated,
    /// It has no value.
    NotSet,
}

/// A key with its effective value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EffectiveKey {
    /// The key.
    pub name: &'static str,
    /// The variable that sets it.
    pub variable: String,
    /// Its value, with secrets redacted. `None` if it has none, or none yet.
    pub value: Option<String>,
    /// The origin of the value.
    pub origin: Origin,
}

/// Returns all keys with their values.
pub(super) fn effective<'g>(given: impl Fn(&Key) -> Option<&'g Given>) -> Vec<EffectiveKey> {
    let row = |key: &&'static Key| {
        let found = given(key);
        let origin = found.map_or(Origin::NotSet, Given::origin);
        let value = found.filter(|_| origin != Origin::Generated).map(|given| given.value.to_string());
        EffectiveKey { name: key.name, variable: key.variable(), value, origin }
    };
    ALL_KEYS.iter().map(row).collect()
}

impl Given {
    fn origin(&self) -> Origin {
        match (&self.document, self.source.as_str()) {
            (Some(Document::File(path)), _) => Origin::File(path.clone()),
            (Some(Document::Generated), _) => Origin::Generated,
            (None, DEFAULT) => Origin::Default,
            (None, option) if option.starts_with("--") => Origin::CommandLine(option.to_owned()),
            (None, variable) => Origin::Environment(variable.to_owned()),
        }
    }
}
