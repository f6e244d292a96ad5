//! Errors of the directory.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a change was not made. A change that failed has no effect, on disk or in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DirectoryError {
    /// The service account does not exist.
    AccountNotFound,
    /// The account does not have this credential.
    CredentialNotFound,
    /// The policy does not exist.
    PolicyNotFound,
    /// The management token does not exist.
    TokenNotFound,
    /// An account with this name already exists.
    NameTaken,
    /// The policy is attached to accounts and cannot be deleted.
    PolicyInUse {
        /// The number of these accounts.
        accounts: usize,
    },
    /// A value is invalid. Holds a sentence for the client.
    Invalid(String),
    /// A limit is reached.
    TooMany {
        /// What is limited, in the plural.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// The disk is full. A later attempt may succeed.
    Full,
    /// Too many changes are waiting.
    Overloaded,
    /// The device failed, now or earlier. Nothing is changed until the next start.
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
            Self::NameTaken => out.write_str("a service account with this name already exists"),
            Self::PolicyInUse { accounts } => {
                let ending = if *accounts == 1 { "" } else { "s" };
                write!(out, "the policy is attached to {accounts} service account{ending}; detach it first")
            }
            Self::Invalid(what) => out.write_str(what),
            Self::TooMany { what, max } => write!(out, "the limit of {max} {what} is reached"),
            Self::Full => out.write_str("no space is left for the directory of accounts"),
            Self::Overloaded => out.write_str("too many changes are waiting for the directory of accounts"),
            Self::Failed(reason) => write!(out, "the directory of accounts failed: {reason}"),
            Self::ShuttingDown => out.write_str("the directory of accounts is closing"),
        }
    }
}

impl std::error::Error for DirectoryError {}

impl From<io::Error> for DirectoryError {
    /// The random number generator of the system failed. Nothing was changed.
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Why the directory did not open. The message says what the operator can do.
#[derive(Debug)]
pub enum DirectoryOpenError {
    /// The data file is missing, damaged or belongs to another store. Nothing was changed.
    Damaged {
        /// The folder of the directory.
        path: PathBuf,
        /// The reason.
        what: String,
    },
    /// The operating system reported an error.
    Io {
        /// The folder of the directory.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl fmt::Display for DirectoryOpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged { path, what } => write!(
                out,
                "{folder}: the directory of accounts cannot be opened: {what}. Nothing was changed. Restore the folder from \
                 a backup. To start without accounts, policies and tokens, move the folder away and create it again with \
                 an empty file {folder}/{marker}",
                folder = path.display(),
                marker = cairn_lmdb::UNMADE_MARKER
            ),
            Self::Io { path, error } => {
                write!(out, "the directory of accounts in {} cannot be opened: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for DirectoryOpenError {}
