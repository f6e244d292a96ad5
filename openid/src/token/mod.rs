//! ID tokens and logout tokens: which key signed one, and what it says.

mod claims;
mod key_set;
mod logout;
mod ring_verifier;

pub(crate) use claims::{Claims, Expected, Flaw, verified};
pub(crate) use key_set::{KeySet, WantedKey};
pub use logout::Logout;
pub(crate) use logout::verified_logout;
