//! Ids of accounts, credentials, policies and tokens.

use cairn_model::time_id;
pub(crate) use cairn_model::time_id::ID_BYTES;

time_id! {
    /// The id of a service account.
    AccountId
}

time_id! {
    /// The id of a credential of a service account.
    CredentialId
}

time_id! {
    /// The id of a policy.
    PolicyId
}

time_id! {
    /// The id of a management token.
    TokenId
}
