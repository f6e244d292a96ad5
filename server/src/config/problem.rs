//! Errors in a configuration. No message repeats a value.

use std::fmt;
use std::path::PathBuf;

/// All problems of a configuration, reported together.
#[derive(Debug)]
pub struct ConfigError {
    /// At least one.
    pub problems: Vec<Problem>,
}

/// One problem of a configuration.
#[derive(Clone, Debug)]
pub enum Problem {
    /// The file could not be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::sync::Arc<std::io::Error>,
    },
    /// The file is not TOML. The text of the line is not shown, because it may contain a secret.
    NotToml {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The section or key of the line, if it is a known one.
        name: Option<String>,
        /// The reason; repeats nothing of the file.
        reason: String,
    },
    /// An unknown name in the file or in the environment.
    Unknown {
        /// As the user wrote it.
        name: String,
        /// The most similar known name.
        meant: Option<String>,
    },
    /// A value that its key does not accept.
    Invalid {
        /// The variable, or the key in the file.
        name: String,
        /// The values that are accepted; not the one that was given.
        expected: String,
    },
    /// Two variables that set one key to different values.
    Contradiction {
        /// One.
        first: String,
        /// The other.
        second: String,
    },
    /// Two variables that set one key.
    GivenTwice {
        /// One variable.
        first: String,
        /// The other.
        second: String,
    },
    /// A file that should contain a value and cannot be used.
    SecretFile {
        /// The variable that names it.
        variable: String,
        /// The file.
        path: PathBuf,
        /// The problem with it; completes a sentence that begins with its name. Repeats nothing of its content.
        reason: String,
    },
    /// A required key that is not set.
    Missing {
        /// The variable.
        variable: String,
        /// The key in the file.
        key: &'static str,
        /// The purpose of the key.
        doc: &'static str,
    },
    /// Values that contradict each other.
    Inconsistent(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, error } => {
                write!(out, "the configuration file {} cannot be read: {error}", path.display())
            }
            Self::NotToml { path, line, name, reason } => {
                let path = path.display();
                write!(out, "the configuration file {path} is not valid TOML at line {line}")?;
                name.iter().try_for_each(|name| write!(out, ", {name}"))?;
                write!(out, ": {reason}")
            }
            Self::Unknown { name, meant: Some(meant) } => {
                write!(out, "{name} is not a configuration key; did you mean {meant}?")
            }
            Self::Unknown { name, meant: None } => {
                write!(out, "{name} is not a configuration key (docs/configuration.md lists all keys)")
            }
            Self::Invalid { name, expected } => write!(out, "{name} must be {expected}"),
            Self::Contradiction { first, second } => {
                write!(out, "{first} and {second} set the same key to different values; remove one of them")
            }
            Self::GivenTwice { first, second } => {
                write!(out, "{first} and {second} set the same key; remove one of them")
            }
            Self::SecretFile { variable, path, reason } => {
                write!(out, "{variable}: the file {} {reason}", path.display())
            }
            Self::Missing { variable, key, doc } => {
                write!(
                    out,
                    "{variable} (or {variable}{}, or {key} in the configuration file) is not set. {doc}",
                    super::key::FILE_SUFFIX
                )
            }
            Self::Inconsistent(text) => out.write_str(text),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            write!(out, "{}{problem}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }
}
