//! ID tokens: which key signed one, and what it says.

mod claims;
mod key_set;
mod ring_verifier;

pub(crate) use claims::{Claims, Expected, verified};
pub(crate) use key_set::{KeySet, WantedKey};
