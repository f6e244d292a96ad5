//! Passwords of shares: hashing, limits against guessing, and the tokens of unlocked visitors.

pub(crate) mod attempts;
pub(crate) mod hash_threads;
pub(crate) mod unlock_token;
