//! Policies: what they may say, and how all those of an account become one answer to "may it do this?".
//!
//! Pure: no I/O, no clock. [`Policy`] is a document that was found right; [`Rights`] is what the policies of one account
//! amount to, compiled once, so that a question costs the same however many policies there are. Resources are compared
//! with canonical decoded keys, byte by byte: nothing here decodes, normalises or folds anything.
//!
//! Source: specification, "Policy" and "Data plane": an explicit deny wins, no matching allow is an implicit deny, and
//! only a trailing wildcard is allowed.

mod action;
mod document;
mod limits;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod naive;
mod prefixes;
mod resource;
mod rights;
#[cfg(test)]
mod tests;

pub use action::{Action, ActionSet};
pub use document::{
    Effect, InvalidPolicy, Policy, PolicyDraft, Statement, StatementDraft, check_description, check_name,
};
pub use limits::{DESCRIPTION_CHARACTERS_MAX, NAME_CHARACTERS_MAX, STATEMENT_RESOURCES_MAX, STATEMENTS_MAX};
pub use resource::{InvalidResource, Resource, ResourcePattern};
pub use rights::{Decision, Rights};
