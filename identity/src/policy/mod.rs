//! S3 access policies: documents and their evaluation.
//!
//! A [`Policy`] is a valid document. [`Rights`] are the policies of one account, compiled once, so that an evaluation costs the
//! same however many policies there are. An [`Explanation`] names the statements behind a decision. Resources are compared byte
//! by byte with decoded keys: nothing here decodes, normalises or folds case. The module is pure: no I/O, no clock.
//!
//! Source: specification, "Policy" and "Data plane". An explicit deny wins, no matching allow is an implicit deny, and only
//! a trailing wildcard is allowed.

mod action;
mod aws_document;
mod document;
mod explain;
mod limits;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod naive;
mod prefixes;
mod resource;
mod rights;
#[cfg(test)]
mod tests;

pub use action::{Action, ActionSet};
pub use aws_document::{AWS_POLICY_VERSIONS, explain_aws_document};
pub use document::{
    Effect, InvalidPolicy, Policy, PolicyDraft, Statement, StatementDraft, validate_description,
    validate_name,
};
pub use explain::{AppliedStatement, EXPLAINED_STATEMENTS_MAX, Explanation, narrowest_statement};
pub use limits::{
    DESCRIPTION_CHARACTERS_MAX, NAME_CHARACTERS_MAX, STATEMENT_NETWORKS_MAX, STATEMENT_RESOURCES_MAX,
    STATEMENTS_MAX,
};
pub use resource::{InvalidResource, Resource, ResourcePattern};
pub use rights::{Decision, Permission, Rights, source_list_count};
