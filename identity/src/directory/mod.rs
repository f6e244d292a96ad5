//! The directory of service accounts, credentials, policies, bindings and management tokens.
//!
//! All of it is in memory, and every change is durable before it takes effect (`changes.rs`). `record.rs` defines the on-disk
//! records. Requests look up credentials through [`ExecutorCredentials`] without a lock. Secrets are sealed at rest (`seal.rs`)
//! and shown once, in the response to their creation.

mod access;
mod changes;
mod error;
mod given;
mod handle;
mod limits;
mod lookup;
mod maintenance;
mod named_rights;
mod record;
mod rights_cache;
mod seal;
mod secret;
mod shared;
mod state;
mod store;
#[cfg(test)]
mod testing;
mod view;

pub use crate::id::{AccountId, CredentialId, PolicyId, TokenId};
pub use crate::last_use::LastUse;
pub use error::DirectoryError;
pub use given::GivenCredential;
pub use handle::{Directory, DirectoryOptions};
pub use limits::{
    ACCOUNTS_MAX, ATTACHED_RESOURCES_MAX, CREDENTIALS_PER_ACCOUNT_MAX, MANAGEMENT_TOKENS_MAX, POLICIES_MAX,
    POLICIES_PER_ACCOUNT_MAX, RESOURCES_MAX, RESOURCES_PER_ACCOUNT_MAX, SOURCE_LISTS_PER_ACCOUNT_MAX,
    TEMPORARY_PER_ACCOUNT_MAX, TEMPORARY_SECONDS_MAX, TEMPORARY_SECONDS_MIN, TOKEN_SECONDS_MAX,
};
pub use lookup::ExecutorCredentials;
pub use named_rights::UnusablePolicies;
pub use secret::Secret;
pub use view::{
    Account, AccountAccess, AttachedPolicy, CredentialInfo, CredentialStatus, ManagementToken, NewCredential,
    NewManagementToken, Outcome, PolicyInfo, PolicyReplacement,
};
