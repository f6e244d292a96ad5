//! What reading and changing the directory, and opening it, can fail with.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a change was not made. Nothing of a refused change is in the directory, neither on the disk nor in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DirectoryError {
    /// There is no such service account.
    AccountNotFound,
    /// The account has no such credential.
    CredentialNotFound,
    /// There is no such policy.
    PolicyNotFound,
    /// There is no such management token.
    TokenNotFound,
    /// An account of this name is there already.
    NameTaken,
    /// The policy is attached to so many accounts and cannot be removed.
    PolicyInUse {
        /// How many.
        accounts: usize,
    },
    /// A value is out of its bounds: a sentence for who sent it.
    Invalid(String),
    /// There may not be more.
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        max: usize,
    },
    /// No space on the disk. Later it may work again.
    Full,
    /// More changes wait than may.
    Overloaded,
    /// The device failed, now or before: nothing is changed until the next start.
    Failed(String),
    /// The directory is closing.
    ShuttingDown,
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AccountNotFound => out.write_str("service account was not found"),
            Self::CredentialNotFound => out.write_str("credential was not found"),
            Self::PolicyNotFound => out.write_str("policy was not found"),
            Self::TokenNotFound => out.write_str("management token was not found"),
            Self::NameTaken => out.write_str("a service account of this name exists already"),
            Self::PolicyInUse { accounts } => {
                write!(
                    out,
                    "the policy is attached to {accounts} service accounts; detach it from them first"
                )
            }
            Self::Invalid(what) => out.write_str(what),
            Self::TooMany { what, max } => write!(out, "there may not be more than {max} {what}"),
            Self::Full => out.write_str("no space is left for the directory of accounts"),
            Self::Overloaded => out.write_str("too many changes wait for the directory of accounts"),
            Self::Failed(reason) => write!(out, "the directory of accounts failed: {reason}"),
            Self::ShuttingDown => out.write_str("the directory of accounts is closing"),
        }
    }
}

impl std::error::Error for DirectoryError {}

impl From<io::Error> for DirectoryError {
    /// The system's random source failed: nothing was changed.
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Why the directory did not open. The text says what to do about it.
#[derive(Debug)]
pub enum DirectoryOpenError {
    /// The data file is missing, damaged or belongs to another store. Nothing was changed.
    Damaged {
        /// The folder of the directory.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The operating system refused.
    Io {
        /// The folder of the directory.
        path: PathBuf,
        /// Its answer.
        error: io::Error,
    },
}

impl fmt::Display for DirectoryOpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged { path, what } => write!(
                out,
                "{folder}: the directory of accounts: {what}; nothing was changed: restore the folder from a backup, or move \
                 it away and make it anew with an empty file {folder}/{marker} to begin without accounts, policies and tokens",
                folder = path.display(),
                marker = cairn_lmdb::UNMADE_MARKER
            ),
            Self::Io { path, error } => {
                write!(out, "the directory of accounts in {}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for DirectoryOpenError {}
