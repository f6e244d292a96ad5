//! What can be wrong with a configuration. No message repeats a value.

use std::fmt;
use std::path::PathBuf;

/// Everything that is wrong with a configuration, found in one go.
#[derive(Debug)]
pub struct ConfigError {
    /// At least one.
    pub problems: Vec<Problem>,
}

/// One thing wrong.
#[derive(Debug)]
pub enum Problem {
    /// The file could not be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The file is not TOML. The text of the line is not shown, since it may hold a secret.
    NotToml {
        /// The file.
        path: PathBuf,
        /// Where, counted from 1.
        line: usize,
    },
    /// A name that is no key, in the file or in the environment.
    Unknown {
        /// As the user wrote it.
        name: String,
        /// The known name that it resembles most.
        meant: Option<String>,
    },
    /// A value that does not fit its key.
    Invalid {
        /// The variable, or the key in the file.
        name: String,
        /// What a value must be; not what it was.
        expected: String,
    },
    /// Two variables for one key that do not say the same.
    Contradiction {
        /// One.
        first: String,
        /// The other.
        second: String,
    },
    /// One key's value, in two places.
    GivenTwice {
        /// One variable.
        first: String,
        /// The other.
        second: String,
    },
    /// A file that should hold a value.
    SecretFile {
        /// The variable that names it.
        variable: String,
        /// The file.
        path: PathBuf,
        /// What is wrong with it, to go on after its name; nothing of its content.
        reason: String,
    },
    /// A key without which the service does not start.
    Missing {
        /// The variable.
        variable: String,
        /// The key in the file.
        key: &'static str,
        /// What it is for.
        doc: &'static str,
    },
    /// Values that do not go together.
    Inconsistent(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, error } => {
                write!(out, "the configuration file {} cannot be read: {error}", path.display())
            }
            Self::NotToml { path, line } => {
                write!(out, "the configuration file {} is not valid TOML at line {line}", path.display())
            }
            Self::Unknown { name, meant: Some(meant) } => {
                write!(out, "{name} is not a configuration key; {meant} is")
            }
            Self::Unknown { name, meant: None } => {
                write!(out, "{name} is not a configuration key (docs/configuration.md lists all of them)")
            }
            Self::Invalid { name, expected } => write!(out, "{name} must be {expected}"),
            Self::Contradiction { first, second } => {
                write!(out, "{first} and {second} set the same key to different values; keep one of them")
            }
            Self::GivenTwice { first, second } => {
                write!(out, "{first} and {second} both set the same key; keep one of them")
            }
            Self::SecretFile { variable, path, reason } => {
                write!(out, "{variable}: the file {} {reason}", path.display())
            }
            Self::Missing { variable, key, doc } => {
                write!(
                    out,
                    "{variable} (or {variable}{}, or {key} in the configuration file) is not set. {doc}",
                    super::secret_file::SUFFIX
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
