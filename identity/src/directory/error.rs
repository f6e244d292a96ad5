//! Errors of the directory.

use super::store::SCHEMA;
use cairn_tables::StoreFailure;
use std::fmt;

/// The error of a change that was not made. A change that failed has no effect, on disk or in memory.
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
    /// A credential has this access key, or root.
    AccessKeyExists,
    /// The policy is attached to accounts and cannot be deleted.
    PolicyInUse {
        /// The number of these accounts.
        accounts: usize,
    },
    /// A value is invalid. Holds a sentence for the client.
    Invalid(String),
    /// A limit is reached.
    TooMany {
        /// The limited things, in the plural.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// The directory failed, or cannot answer now.
    Store(StoreFailure),
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AccountNotFound => out.write_str("service account was not found"),
            Self::CredentialNotFound => out.write_str("credential was not found"),
            Self::PolicyNotFound => out.write_str("policy was not found"),
            Self::TokenNotFound => out.write_str("management token was not found"),
            Self::NameTaken => out.write_str("a service account with this name already exists"),
            Self::AccessKeyExists => out.write_str("a credential with this access key already exists"),
            Self::PolicyInUse { accounts } => {
                let ending = if *accounts == 1 { "" } else { "s" };
                write!(out, "the policy is attached to {accounts} service account{ending}; detach it first")
            }
            Self::Invalid(what) => out.write_str(what),
            Self::TooMany { what, max } => write!(out, "the limit of {max} {what} is reached"),
            Self::Store(failure) => out.write_str(&failure.message(&SCHEMA)),
        }
    }
}

impl std::error::Error for DirectoryError {}

cairn_tables::convert_store_failures!(DirectoryError);
