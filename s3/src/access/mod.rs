//! Authentication, authorization and the audit trail of the data plane.

pub(crate) mod account;
pub(crate) mod audit;
pub(crate) mod auth;
pub(crate) mod public;
pub(crate) mod recording;
